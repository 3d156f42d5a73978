//! The live display in a terminal, which `script` provides: it draws, ends with the table, and is plain where that is asked for.

use std::process::{Command, Stdio};

use crate::support::{Answer, Bench};

/// Run experiment `x` in a terminal of 100 columns; none where there is no `script`.
fn in_terminal(bench: &Bench, env: &[(&str, &str)]) -> Option<Answer> {
    let collo = bench.command(&[]);
    let mut script = Command::new("script");
    script.args(["-qec", "stty cols 100 rows 30; exec \"$COLLO\" run x", "/dev/null"]).stdin(Stdio::null());
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
    bench.run(&["--for", "1ms"]).exits(4);
    let Some(answer) = in_terminal(&bench, &[]) else { return };
    let answer = answer.exits(0).answers("1/3 runs");
    assert!(!answer.stdout.contains("0/3 runs"), "what is stored is not to do");
    let left = |runs: &str| {
        let shown = answer.stdout.split(runs).skip(1).filter_map(|rest| rest.split_once("about 0:")?.1.split_once(" left"));
        shown.filter_map(|(seconds, _)| seconds.parse::<u32>().ok()).max()
    };
    assert!(left("1/3 runs").is_some() && left("3/3 runs") < left("1/3 runs"), "{:?}", answer.stdout);
}
