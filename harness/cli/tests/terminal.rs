//! The live display in a terminal, which `script` provides: it draws, ends with the table, and is plain where that is asked for.

use std::process::{Command, Stdio};

use serde_json::json;

use crate::support::{Answer, Bench};

/// Run experiment `x` in a terminal of 100 columns; none where there is no `script`.
fn in_terminal(bench: &Bench, env: &[(&str, &str)]) -> Option<Answer> {
    typed(bench, "run x", env)
}

/// A command of collo in a terminal of 100 columns; none where there is no `script`.
fn typed(bench: &Bench, words: &str, env: &[(&str, &str)]) -> Option<Answer> {
    let collo = bench.command(&[]);
    let mut script = Command::new("script");
    let line = format!("stty cols 100 rows 30; exec \"$COLLO\" {words}");
    script.args(["-qec", &line, "/dev/null"]).stdin(Stdio::null());
    script.env("TERM", "xterm-256color").env("COLLO", collo.get_program()).current_dir(bench.at(""));
    for (name, value) in collo.get_envs() {
        match value {
            Some(value) => script.env(name, value),
            None => script.env_remove(name),
        };
    }
    match script.envs(env.iter().copied()).output() {
        Ok(output) => Some(Answer::from(output)),
        Err(e) => {
            crate::support::skip::skip("script", &format!("no `script` to make a terminal with: {e}"));
            None
        }
    }
}

fn bench() -> Bench {
    Bench::of("[axes]\nworkload = \"sleep\"\nseconds = 0.5\nitems = 50\ndegree = 2")
}

/// The control sequences of a text that end in one of these letters.
fn sequences(text: &str, letters: &str) -> usize {
    text.split("\x1b[").skip(1).filter(|s| s.find(char::is_alphabetic).is_some_and(|i| letters.contains(&s[i..=i]))).count()
}

const MOVES: &str = "ABCDGHJKfsu";

#[test]
fn in_a_terminal_the_display_is_drawn_in_place_and_ends_with_the_table() {
    let Some(answer) = in_terminal(&bench(), &[]) else { return };
    let answer = answer.exits(0).answers("2/3 runs").answers("member  workload  phase").answers("measure");
    assert!(sequences(&answer.stdout, MOVES) > 10, "it moves the cursor");
    assert!(!answer.stdout.contains("panicked"));
    let (_, end) = answer.stdout.rsplit_once("3 of 3 runs completed").expect("the table comes last");
    assert!(end.contains("cell ") && end.contains("sleep×2 naive") && end.contains("report: reports/x/report.html"), "{end}");
    assert_eq!(sequences(end, MOVES), 0, "nothing is drawn over the table");
}

#[test]
fn without_colour_the_display_still_draws() {
    let Some(answer) = in_terminal(&bench(), &[("NO_COLOR", "1")]) else { return };
    let answer = answer.exits(0);
    assert_eq!(sequences(&answer.stdout, "m"), 0, "{:?}", answer.stdout);
    answer.answers("3 of 3 runs completed");
}

#[test]
fn on_a_dumb_terminal_every_line_stands_alone() {
    let Some(answer) = in_terminal(&bench(), &[("TERM", "dumb"), ("NO_COLOR", "1")]) else { return };
    let answer = answer.exits(0).answers("3 of 3 runs completed").answers(" 1/3 sleep×2 naive").answers("go, ready after");
    assert!(!answer.stdout.contains('\x1b'), "{:?}", answer.stdout);
    assert!(!answer.stdout.replace("\r\n", "").contains('\r'), "{:?}", answer.stdout);
}

#[test]
fn runs_that_are_stored_are_counted_and_are_not_in_the_time_that_is_left() {
    let bench = bench();
    // Time enough to begin a run on a busy machine, and less than a run takes.
    bench.run(&["--for", "400ms"]).exits(4);
    let Some(answer) = in_terminal(&bench, &[]) else { return };
    let answer = answer.exits(0).answers("1/3 runs");
    assert!(!answer.stdout.contains("0/3 runs"), "what is stored is not to do");
    let left = |runs: &str| {
        let shown = answer.stdout.split(runs).skip(1).filter_map(|rest| rest.split_once("about 0:")?.1.split_once(" left"));
        shown.filter_map(|(seconds, _)| seconds.parse::<u32>().ok()).max()
    };
    assert!(left("1/3 runs").is_some() && left("3/3 runs") < left("1/3 runs"), "{:?}", answer.stdout);
}

/// Sets the clipboard, clears the screen, turns the direction of writing, and begins a line as an error of collo does.
const EVIL: &str = "x\u{1b}]52;c;eA==\u{7}\u{1b}[2J\u{202e}\nerror: FORGED";

/// That no text of others was obeyed, or looks like a line of collo's.
fn is_inert(answer: &Answer) {
    let text = &answer.stdout;
    assert!(!["\u{1b}]52", "\u{1b}[2J", "\u{202e}"].iter().any(|evil| text.contains(evil)), "{text:?}");
    assert!(!text.lines().any(|line| line.trim_start().starts_with("error: FORGED")), "{text}");
}

#[test]
fn what_a_trace_says_of_itself_neither_moves_the_cursor_nor_looks_like_an_error() {
    let evil = json!(EVIL).to_string();
    let trace =
        format!("description = {evil}\nsource = {evil}\narrivals_s = [0]\n[[tasks]]\ncount = 1\none_of = [\"sleep 1e\"]\n");
    let bench = bench().file("traces/evil.toml", &trace);
    for words in ["trace show evil", "trace list"] {
        let Some(answer) = typed(&bench, words, &[]) else { return };
        let answer = answer.exits(0);
        is_inert(&answer);
        answer.answers("FORGED");
    }
}

#[test]
fn the_folder_of_a_bundle_reaches_no_terminal_unless_all_of_its_name_can_be_seen() {
    let bench = bench();
    bench.run(&[]).exits(0);
    bench.collo(&["bundle", "last", "--to", "good.tar.gz"]).exits(0);
    let mut good = tar::Archive::new(flate2::read::GzDecoder::new(fs_err::File::open(bench.at("good.tar.gz")).expect("packed")));
    let evil = fs_err::File::create(bench.at("evil.tar.gz")).expect("made");
    let mut packed = tar::Builder::new(flate2::write::GzEncoder::new(evil, flate2::Compression::fast()));
    for entry in good.entries().expect("entries") {
        let entry = entry.expect("an entry");
        let below = entry.path().expect("a path").iter().skip(1).collect::<std::path::PathBuf>();
        let mut header = entry.header().clone();
        packed.append_data(&mut header, std::path::Path::new(EVIL).join(below), entry).expect("appended");
    }
    packed.into_inner().expect("complete").finish().expect("written");
    for verb in ["run", "show", "verify", "report"] {
        let Some(answer) = typed(&bench, &format!("{verb} evil.tar.gz"), &[]) else { return };
        let answer = answer.exits(2);
        is_inert(&answer);
        answer.answers("is not a bundle of collo");
    }
}
