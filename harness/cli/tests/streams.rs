//! What collo prints may get lost, and what it is told to print may be hostile: neither ends a campaign, nor deceives anybody.

use std::fs::File;
use std::process::{Command, Stdio};
use std::time::Duration;

use collo_store::{JournalEntry, Outcome};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{Answer, Bench, wait_for};

const SLEEP: &str = "[axes]\nworkload = \"sleep\"\nseconds = 0.3\nitems = 30\ndegree = 2";

fn full() -> File {
    File::options().write(true).open("/dev/full").expect("a device that is always full")
}

#[track_caller]
fn complete(bench: &Bench) {
    let runs = bench.runs();
    assert_eq!(runs.len(), 3);
    assert!(runs.values().all(|r| r.record.outcome == Outcome::Completed), "{:?}", runs.keys());
}

#[test]
fn a_log_that_is_full_or_closed_ends_no_campaign() {
    let bench = Bench::of("[axes]\nworkload = \"sleep\"\nseconds = 0.1\nitems = 5\ndegree = 2");
    let output = bench.command(&["run", "x", "--json"]).stdout(full()).output().expect("collo starts");
    Answer::from(output).exits(4).says("the result cannot be written").says("what was measured is stored: `collo report`");
    complete(&bench);
    let output = bench.command(&["run", "x", "--new"]).stderr(full()).output().expect("collo starts");
    Answer::from(output).exits(0).answers("3 of 3 runs completed");
    complete(&bench);
    // Who reads one line and goes: `2>&1 | head -1`.
    let mut child =
        bench.command(&["run", "x", "--new"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    drop((child.stdout.take(), child.stderr.take()));
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    assert_eq!(bench.campaigns(), 3);
    complete(&bench);
}

#[test]
fn a_result_that_cannot_be_written_is_an_error_with_a_sentence() {
    let bench = Bench::of("[axes]\nworkload = \"sleep\"\nseconds = 0.1\nitems = 5");
    bench.run(&[]).exits(0);
    let verbs: [&[&str]; 12] = [
        &["list"],
        &["list", "workloads"],
        &["verify"],
        &["show"],
        &["report"],
        &["report", "--format", "csv"],
        &["plan", "x"],
        &["status"],
        &["workload", "show", "sleep"],
        &["schema", "experiment"],
        &["completions", "bash"],
        &["--help"],
    ];
    for verb in verbs {
        let output = bench.command(verb).stdout(full()).output().expect("collo starts");
        let answer = Answer::from(output).exits(3).says("error: the result cannot be written to stdout");
        let answer = answer.says("caused by: No space left on device");
        assert!(!answer.stderr.contains("panicked"), "{verb:?}: {}", answer.stderr);
        // With both of them lost there is nobody to tell, and the code remains.
        let both = bench.command(verb).stdout(full()).stderr(full()).status().expect("collo starts");
        assert_eq!(both.code(), Some(3), "{verb:?}");
    }
}

/// Run experiment `x` in a terminal and close that while members train; the code that collo ends with. None where there is no `script`.
fn hung_up(bench: &Bench) -> Option<String> {
    let collo = bench.command(&[]);
    let mut script = Command::new("script");
    // The shell passes the signal on, as one that people type into does, and stays to tell how collo ended.
    let told = "trap 'kill -HUP $!' HUP; \"$COLLO\" run x --no-report & wait $!; wait $!; echo $? > code";
    script.args(["-qec", told, "/dev/null"]).stdin(Stdio::null());
    script.env("TERM", "xterm-256color").env("COLLO", collo.get_program()).env("SHELL", "/bin/sh").current_dir(bench.at(""));
    for (name, value) in collo.get_envs() {
        value.map(|value| script.env(name, value));
    }
    let Ok(mut script) = script.stdout(Stdio::null()).stderr(Stdio::null()).spawn() else {
        crate::support::skip::skip("script", "no `script` to make a terminal with");
        return None;
    };
    trains(bench);
    kill(Pid::from_raw(script.id() as i32), Signal::SIGKILL).expect("it is there");
    script.wait().expect("it ends");
    let code = wait_for("the end of collo", || {
        let text = std::fs::read_to_string(bench.at("code")).ok()?;
        text.ends_with('\n').then_some(text)
    });
    bench.nothing_is_left(Duration::from_secs(60));
    let closed = bench.campaign().history().expect("readable").pop();
    assert!(matches!(&closed, Some(JournalEntry::Closed { reason, .. }) if reason == "terminated"), "{closed:?}");
    Some(code.trim().to_string())
}

fn trains(bench: &Bench) {
    wait_for("a member that trains", || {
        let partials = bench.runs_folder().find("last").ok()?.partials().ok()?;
        let text = std::fs::read_to_string(partials.first()?.join("events.jsonl")).ok()?;
        text.contains("\"ready\"").then_some(())
    });
}

#[test]
fn a_terminal_that_is_closed_stops_the_campaign_as_any_signal_does() {
    // There is something to say of it when nobody sees it any more.
    let script = "import os\nopen('checkpoint.pt', 'w').write('x')\nexec(open('../sleep/train.py').read())\n";
    let toml = "command = [\"python\", \"train.py\", \"--seconds=0.5\", \"--items=50\"]\nenvironment = \"system\"\n";
    let bench = Bench::of("[axes]\nworkload = \"writes\"\ndegree = 2");
    let bench = bench.file("workloads/writes/workload.toml", toml).file("workloads/writes/train.py", script);
    let Some(code) = hung_up(&bench) else { return };
    assert_eq!(code, "4");
    bench.run(&[]).exits(0).says("resuming ");
    complete(&bench);
}

#[test]
fn a_terminal_that_is_closed_leaves_the_card_as_it_was_found() {
    let machine =
        crate::sim::Machine::new("a100-40gb,mig=2×3g.20gb", "[axes]\nworkload = \"small\"\ndegree = 2\nsharing = \"naive\"");
    let before = machine.cards();
    let Some(code) = hung_up(&machine.bench) else { return };
    assert_eq!(code, "4");
    assert_eq!(machine.cards(), before);
    assert!(machine.journals().is_empty(), "{:?}", machine.journals());
}

#[test]
fn who_says_nohup_is_not_stopped_by_a_terminal_that_is_closed() {
    let bench = Bench::of(SLEEP);
    let mut command = Command::new("nohup");
    let collo = bench.command(&[]);
    command.arg(collo.get_program()).args(["run", "x", "--no-report"]).current_dir(bench.at("")).stdin(Stdio::null());
    for (name, value) in collo.get_envs() {
        value.map(|value| command.env(name, value));
    }
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("nohup is everywhere");
    trains(&bench);
    kill(Pid::from_raw(child.id() as i32), Signal::SIGHUP).expect("it is there");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    complete(&bench);
}

#[test]
fn a_limit_on_the_size_of_files_is_told_as_a_disk_that_is_full() {
    let bench = Bench::of(SLEEP);
    let mut running = bench.start(&["run", "x", "--no-report"]);
    wait_for("the first run", || bench.runs_folder().find("last").ok()?.runs().ok()?.0.into_values().next());
    let limit = nix::libc::rlimit { rlim_cur: 1000, rlim_max: nix::libc::RLIM_INFINITY };
    let pid = running.pid() as i32;
    // SAFETY: one system call, which reads `limit` and writes nothing.
    let set = unsafe { nix::libc::prlimit(pid, nix::libc::RLIMIT_FSIZE, &limit, std::ptr::null_mut()) };
    assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
    let answer = running.ends();
    let answer = answer.exits(4).says("no space in runs/x/").says("runs are safe").says("File too large");
    assert!(answer.stderr.contains("resume: collo run x"), "{}", answer.stderr);
    bench.nothing_is_left(Duration::from_secs(60));
    bench.run(&[]).exits(0).says("resuming ");
    complete(&bench);
}

/// Sets the clipboard, clears the screen, turns the direction of writing, and writes a line that looks like ours.
const EVIL: &str = "\\u001b]52;c;cm0gLXJmIH4=\\u0007\\u001b[2J\\u009b31m\\u202e\\u200b\\n✓ 6/6 runs completed\\nerror: x\\r";

#[track_caller]
fn is_harmless(what: &str, text: &str) {
    let unseen = text.chars().find(|&c| c != '\n' && collo_text::quoting::is_unseen(c));
    assert_eq!(unseen, None, "{what}: {text:?}");
    let forged = text.lines().find(|l| l.starts_with("✓ 6/6") || *l == "error: x");
    assert_eq!(forged, None, "{what}: {text}");
}

fn evil(ending: &str) -> Bench {
    let toml = format!(
        "command = [\"python\", \"train.py\"]\nenvironment = \"system\"\ndescription = \"{EVIL}\"
prepare = [\"python\", \"prepare.py\", \"{{text}}\"]\n[settings]\ntext = \"{EVIL}\"\n[variables]\nTEXT = \"{{text}}\"\n"
    );
    let prepare =
        "import json, sys\nprint(json.dumps({'dataset': sys.argv[1], 'synthetic': True, 'items': 3, 'where': sys.argv[1]}))\n";
    let train = format!(
        "import os, sys, time, collo
text = os.environ['TEXT']
member = collo.connect()
member.hello(device='cpu', model=(text, 1), dataset={{'name': text, 'synthetic': True}})
print(text, flush=True)
member.ready()
for epoch in member.epochs():
    time.sleep(0.1)
    epoch.finish(items=5)
    {ending}
member.done()
"
    );
    let experiment = format!("description = \"{EVIL}\"\ntags = [\"{EVIL}\"]\n[axes]\nworkload = \"evil\"");
    let bench = Bench::of(&experiment).file("workloads/evil/workload.toml", &toml);
    bench.file("workloads/evil/prepare.py", prepare).file("workloads/evil/train.py", &train)
}

#[test]
fn nothing_that_a_member_or_a_file_says_moves_the_cursor_or_looks_like_a_line_of_ours() {
    for (ending, code) in [("pass", 0), ("raise RuntimeError(text)", 1)] {
        let bench = evil(ending);
        let verbs: [&[&str]; 14] = [
            &["run", "x"],
            &["show"],
            &["report"],
            &["verify"],
            &["list"],
            &["status"],
            &["list", "experiments"],
            &["list", "workloads"],
            &["workload", "show", "evil"],
            &["plan", "x", "--explain"],
            &["plan", "x", "--where", "text == \"\u{1b}[2J\u{202e}"],
            &["show", "last", "\u{1b}[2J"],
            &["list", "--json"],
            &["show", "--json"],
        ];
        for verb in verbs {
            let answer = bench.collo(verb);
            if verb[0] == "run" {
                assert_eq!(answer.code, Some(code), "{}", answer.stderr);
            }
            is_harmless(&format!("{verb:?} stdout"), &answer.stdout);
            is_harmless(&format!("{verb:?} stderr"), &answer.stderr);
        }
    }
}

#[test]
fn what_is_wrong_with_hostile_files_is_told_harmlessly() {
    let bench = Bench::of(&format!("\"{EVIL}\" = 1\ndevice2 = \"{EVIL}\"\n[axes]\nworkload = \"{EVIL}\"\nsharing = \"{EVIL}\""));
    let bench = bench.file("workloads/bad/workload.toml", &format!("command = [\"{EVIL}\"]\nrequires = \"{EVIL}\"\n"));
    for verb in
        [&["plan", "x"][..], &["run", "x"], &["list", "experiments"], &["list", "workloads"], &["workload", "show", "bad"]]
    {
        let answer = bench.collo(verb);
        is_harmless(&format!("{verb:?} stdout"), &answer.stdout);
        is_harmless(&format!("{verb:?} stderr"), &answer.stderr);
    }
}
