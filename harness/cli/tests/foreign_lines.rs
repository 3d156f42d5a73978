//! Scripts that know nothing of collo print their progress in many ways: each is measured as it prints it, or answered with the reason.

use collo_store::{EpochRecord, Outcome, StoredRun};

use crate::support::{Answer, Bench, epochs};

/// A script that computes for some time, and prints. `busy` is what an epoch is: it begins when all that was printed before is read (FIONREAD,
/// pipe(7)), so that on a busy machine no line is read later than its own epoch and together with the next.
const PRELUDE: &str = "import array, fcntl, os, sys, termios, time
def busy(seconds):
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
        unread = array.array('i', [1])
        while unread[0]:
            time.sleep(0.001)
            fcntl.ioctl(stream, termios.FIONREAD, unread)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass
";

/// A project with this script, whose lines are read by this `[epochs]` table.
fn bench(wanted: u32, table: &str, script: &str) -> Bench {
    let toml = format!("command = [\"python\", \"train.py\"]\nenvironment = \"system\"\n[epochs]\n{table}\n");
    Bench::of(&format!("epochs = {wanted}\n[axes]\nsharing = \"solo\"\nworkload = \"prints\"\n"))
        .file("workloads/prints/workload.toml", &toml)
        .file("workloads/prints/train.py", &format!("{PRELUDE}{script}"))
}

/// The stored run of such a script, and its epochs.
#[track_caller]
fn measured(wanted: u32, pattern: &str, script: &str) -> (StoredRun, Vec<EpochRecord>) {
    let bench = bench(wanted, &format!("pattern = '{pattern}'"), script);
    bench.run(&[]).exits(0);
    let run = bench.run_of(1);
    assert_eq!(run.record.outcome, Outcome::Completed);
    let epochs = epochs(&run);
    (run, epochs)
}

/// Durations as they were printed, to the millisecond.
fn durations(epochs: &[EpochRecord]) -> Vec<f64> {
    epochs.iter().map(|e| ((e.end_ns - e.start_ns) as f64 / 1e6).round() / 1e3).collect()
}

/// The moments that the script noted in its own file, on the same clock.
fn noted(run_of: &Bench) -> Vec<u64> {
    let text = fs_err::read_to_string(run_of.at("workloads/prints/moments.txt")).expect("noted");
    text.lines().map(|line| line.parse().expect("a number")).collect()
}

const TOOK: &str = r"^epoch (?P<epoch>\d+) took (?P<seconds>\S+) s";

#[test]
fn a_bar_on_stderr_does_not_hide_a_line_on_stdout() {
    let script = "for epoch in range(3):
    sys.stderr.write(f'\\rtraining:  25%|##5       | {epoch}/3 [00:00<00:01,  2.38it/s]')
    sys.stderr.flush()
    busy(0.05)
    print(f'epoch {epoch} took 0.05 s')
";
    let bench = bench(3, &format!("pattern = '{TOOK}'"), script);
    bench.run(&[]).exits(0);
    let run = bench.run_of(1);
    assert_eq!(durations(&epochs(&run)), [0.05, 0.05, 0.05]);
    let log = crate::support::log(&run, 0);
    let lines: Vec<&str> = log.lines().filter(|line| line.starts_with("epoch ")).collect();
    assert_eq!(lines[..2], ["epoch 0 took 0.05 s", "epoch 1 took 0.05 s"], "{log}");
}

#[test]
fn a_line_that_is_logged_behind_a_bar_is_read() {
    let script = "import logging
logging.basicConfig(format='%(asctime)s - %(levelname)s - %(message)s', level=logging.INFO)
for epoch in range(3):
    sys.stderr.write(f'\\r 25%|##5       | {epoch}/3 [00:00<00:01, 24.91it/s]')
    sys.stderr.flush()
    busy(0.05)
    logging.info('epoch %d took 0.05 s', epoch)
";
    let pattern = r"^\S+ \S+ - INFO - epoch (?P<epoch>\d+) took (?P<seconds>\S+) s";
    assert_eq!(durations(&measured(3, pattern, script).1), [0.05, 0.05, 0.05]);
}

#[test]
fn a_redrawn_line_happened_when_it_was_drawn() {
    for first in ["\\r", "\\n"] {
        let script = format!(
            "moments = open('moments.txt', 'a')
for epoch in range(1, 4):
    busy(0.15 * epoch)
    moments.write(f'{{time.monotonic_ns()}}\\n')
    moments.flush()
    sys.stdout.write(f'{first}epoch {{epoch}} ends')
    sys.stdout.flush()
"
        );
        let bench = bench(3, r"pattern = '^epoch (?P<epoch>\d+) ends'", &script);
        bench.run(&[]).exits(0);
        // Those of the first run come first.
        let (epochs, moments) = (epochs(&bench.run_of(1)), noted(&bench));
        assert_eq!(epochs.len(), 3, "the last is there, too");
        for (at, epoch) in epochs.iter().enumerate() {
            let is_before_next = moments.get(at + 1).is_none_or(|next| epoch.end_ns < *next);
            assert!(moments[at] <= epoch.end_ns && is_before_next, "{epochs:?} {moments:?}");
        }
    }
}

#[test]
fn lines_that_are_read_together_keep_their_durations_and_those_after_the_last_are_not_judged() {
    let script = "busy(0.1); os.write(1, b'epoch 1 took 0.100 s\\n')
busy(0.065); os.write(1, b'epoch 2 took 0.030 s\\nepoch 3 took 0.035 s\\n')
busy(0.1); os.write(1, b'epoch 4 took 0.100 s\\nepoch 5 took 99 s\\nepoch 1 took nan s\\n')
";
    assert_eq!(durations(&measured(4, TOOK, script).1)[..4], [0.1, 0.03, 0.035, 0.1]);
}

#[test]
fn durations_are_read_as_scripts_print_them() {
    let printed = |line: &str| {
        format!("for epoch in range(2):\n    busy(1.05 if 'Total' in {line:?} else 0.2)\n    print({line:?} % epoch)\n")
    };
    for (pattern, line, expected) in [
        (r"^Epoch: \[(?P<epoch>\d+)\] Total time: (?P<seconds>\S+)", "Epoch: [%d] Total time: 0:00:01", 1.0),
        (r"^iter (?P<epoch>\d+): time (?P<milliseconds>[0-9.]+)ms", "iter %d: time 155.64ms", 0.156),
        (r"^iter (?P<epoch>\d+): time (?P<seconds>[0-9.]+)ms", "iter %d: time 155.64ms", 0.156),
        (r"^(?P<epoch>\d+) \| Tot: (?P<seconds>\S+)", "%d | Tot: 0m155ms", 0.155),
        (r"^(?P<epoch>\d+): (?P<minutes>\S+) min", "%d: 0.0025 min", 0.15),
    ] {
        assert_eq!(durations(&measured(2, pattern, &printed(line)).1), [expected; 2], "{line}");
    }
}

#[test]
fn colours_are_not_seen_by_the_pattern() {
    let script = "for epoch in range(2):
    busy(0.05)
    print(f'\\x1b[32m2026-11-25\\x1b[0m | \\x1b[1mINFO    \\x1b[0m - \\x1b[1mepoch {epoch} took 0.05 s\\x1b[0m')
";
    let pattern = r"^\S+ \| INFO +- epoch (?P<epoch>\d+) took (?P<seconds>[0-9.]+) s$";
    assert_eq!(durations(&measured(2, pattern, script).1), [0.05, 0.05]);
}

#[test]
fn the_stride_of_numbers_is_the_unit() {
    let script = "for step in range(0, 60):
    busy(0.01)
    if step % 10 == 0: print(f'iter {step}: loss {2.5 / (step + 1):.3f}')
";
    for pattern in [r"^iter (?P<step>\d+): loss (?P<loss>\S+)", r"^iter (?P<epoch>\d+): loss (?P<loss>\S+)"] {
        let (_, epochs) = measured(3, pattern, script);
        assert_eq!(epochs[1].loss.map(|loss| (loss * 1e3).round() as u32), Some(227), "that of step 10");
        assert!(epochs.windows(2).all(|two| two[0].end_ns == two[1].start_ns), "{epochs:?}");
        assert!(durations(&epochs)[1..].iter().all(|s| *s >= 0.05), "{epochs:?}");
    }
}

#[test]
fn a_line_without_a_number_ends_an_epoch_each_time() {
    let script = "for _ in range(4):\n    busy(0.1)\n    print('\\nTest set: accuracy 98 %\\n')\n";
    let (_, epochs) = measured(3, "^Test set:", script);
    assert!(epochs.len() >= 3 && durations(&epochs)[1..].iter().all(|s| *s >= 0.05), "{epochs:?}");
}

/// The answer of a trial and of a run of a script that is not measured, and the sentence that both have.
#[track_caller]
fn lacking(table: &str, script: &str) -> (Answer, Answer, String) {
    let bench = bench(4, table, script);
    let ran = bench.run(&[]).exits(1);
    let Outcome::EndedEarly { member: 0, message } = bench.run_of(1).record.outcome else {
        panic!("{:?}", bench.run_of(1).record.outcome)
    };
    let ran = ran.says(&format!("ended early: member 0: {message}"));
    let checked = bench.collo(&["workload", "check", "prints"]).exits(1);
    (checked, ran, message)
}

#[test]
fn a_script_whose_lines_do_not_match_is_answered_with_the_nearest() {
    let script = "for epoch in range(1, 4):\n    busy(0.3)\n    print(f'Epoch {epoch}/3 loss 0.1')\n";
    let (checked, ran, message) = lacking("pattern = '^epoch (?P<epoch>\\d+) took'", script);
    let nearest = "it ended with 0; 0 of its 3 lines match the pattern; the nearest: `Epoch 1/3 loss 0.1`";
    let proposed = r"`pattern = '^Epoch (?P<epoch>\d+)\b'` in `[epochs]` matches lines such as `Epoch 3/3 loss 0.1`";
    assert_eq!(message, format!("{nearest}; {proposed}"));
    checked.answers(&format!("✗ end      ended early: {message}"));
    assert!(!ran.stderr.contains("crashed") && !ran.stderr.contains("`done`"), "{}", ran.stderr);
}

/// Longer than a second, so that it is not found only before a short limit.
const PRINTS: &str = "for epoch in range(1, 4):\n    busy(0.6)\n    print(f'Epoch {epoch}/3 loss 0.1')\n";
const FOUND: &str = r"pattern = '^Epoch (?P<epoch>\d+)\b'";

#[test]
fn a_script_that_only_prints_is_answered_with_its_epochs_table_which_check_can_write() {
    let toml = "command = [\"python\", \"train.py\"]\nenvironment = \"system\"\n\n[settings] # none so far\n";
    let bench = bench(2, FOUND, PRINTS).file("workloads/prints/workload.toml", toml);
    let written = |bench: &Bench| fs_err::read_to_string(bench.at("workloads/prints/workload.toml")).expect("there");
    let checked = bench.collo(&["workload", "check", "prints"]).exits(1);
    let checked = checked.says("prints does not speak the protocol: looking for progress in its output");
    checked
        .says(&format!("`collo workload check prints --write` puts `{FOUND}` into `[epochs]` of workloads/prints/workload.toml"));
    assert_eq!(written(&bench), toml, "it was not asked to write");
    let checked = bench.collo(&["workload", "check", "prints", "--write", "--json"]).exits(0);
    assert_eq!(checked.json()["proposed_epochs"], FOUND);
    assert_eq!(written(&bench), format!("{toml}\n[epochs]\n{FOUND}\n"));
    bench.collo(&["workload", "check", "prints", "--write"]).exits(0).answers("`prints` can be measured by its output lines");
    assert_eq!(written(&bench), format!("{toml}\n[epochs]\n{FOUND}\n"), "there is nothing more to write");
    bench.run(&[]).exits(0);
}

#[test]
fn a_pattern_that_does_not_match_is_replaced_where_that_is_asked_for() {
    let bench = bench(2, "items = 8\npattern = '^epoch (?P<epoch>\\d+) took' # as it was", PRINTS);
    bench.collo(&["workload", "check", "prints"]).exits(1).says("collo workload check prints --write");
    bench.collo(&["workload", "check", "prints", "--write"]).exits(0).answers("✓ items    8 in an epoch");
    let text = fs_err::read_to_string(bench.at("workloads/prints/workload.toml")).expect("there");
    assert!(text.ends_with(&format!("[epochs]\nitems = 8\n{FOUND} # as it was\n")), "{text}");
}

#[test]
fn where_nothing_shows_progress_nothing_is_written() {
    let bench = bench(2, "pattern = '^epoch (?P<epoch>\\d+) took'", "print('ready'); busy(0.1); print('bye')\n");
    let before = fs_err::read_to_string(bench.at("workloads/prints/workload.toml")).expect("there");
    bench
        .collo(&["workload", "check", "prints", "--write"])
        .exits(1)
        .says("nothing was written to workloads/prints/workload.toml");
    assert_eq!(fs_err::read_to_string(bench.at("workloads/prints/workload.toml")).expect("there"), before);
}

#[test]
fn a_script_that_matches_only_behind_other_text_is_answered_with_the_way_out() {
    let script = "for epoch in range(3):\n    busy(0.01)\n    print(f'[{epoch} of 3] epoch {epoch} took 0.01 s')\n";
    let (_, _, message) = lacking(&format!("pattern = '{TOOK}'"), script);
    assert!(message.contains("other text stands before it on its line, so leave out `^`: `[0 of 3] epoch 0 took"), "{message}");
}

#[test]
fn a_script_that_stops_early_is_answered_with_what_is_missing() {
    let script = "for epoch in (1, 2):\n    busy(0.05)\n    print(f'epoch {epoch} took 0.05 s')\nprint('early stopping')\n";
    let bench = bench(4, &format!("pattern = '{TOOK}'"), script);
    bench.run(&[]).exits(1).says("ended early: member 0: it ended with 0; 2 of 4 epochs: let it train longer");
    bench.collo(&["workload", "check", "prints"]).exits(0).answers("can be measured by its output lines");
}

#[test]
fn a_preset_that_matched_nothing_is_answered_with_its_condition() {
    let script = "print('Epoch 0/5 ---------- 128/128 0:00:01')\n";
    let (checked, _, message) = lacking("preset = \"lightning\"", script);
    assert!(message.contains("does not match the preset `lightning`") && message.contains("TQDMProgressBar()"), "{message}");
    checked.answers(&message);
}
