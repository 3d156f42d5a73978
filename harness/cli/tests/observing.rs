//! Observers through the command: what watches well, and every way in which one does not. The observers are small shell scripts of the
//! test's own.

use std::time::Duration;

use collo_store::{ObserverOutcome, ObserverRecord, Outcome, StoredRun, Verdict};
use nix::sys::signal::Signal;

use crate::support::{Bench, wait_for};

const NOTHING_LEFT: Duration = Duration::from_secs(20);

/// A sleeping member under these observers, with the files of these.
fn watched(observe: &str, observers: &[(&str, &str)]) -> Bench {
    let bench = Bench::of(&format!(
        "epochs = 3\n[axes]\nworkload = \"sleep\"\nseconds = 0.4\nsharing = [\"solo\"]\nobserve = {observe}\n"
    ));
    for (name, text) in observers {
        bench.write(&format!("observers/{name}.toml"), text);
    }
    bench
}

/// The run of the first repetition under this observer.
fn run_under(bench: &Bench, observer: &str) -> StoredRun {
    let runs = bench.runs();
    let found = runs.values().find(|r| r.record.cell.observe.as_deref() == Some(observer) && r.record.repetition == 1);
    found.unwrap_or_else(|| panic!("no run under {observer}: {:?}", runs.keys())).clone()
}

fn record(run: &StoredRun) -> ObserverRecord {
    run.record.observer.clone().expect("it says who watched")
}

/// How an observer misbehaves, and what is stored of it.
struct Misbehaviour {
    name: &'static str,
    file: &'static str,
    /// Of the run.
    lost: bool,
    /// In the words of the outcome.
    said: &'static str,
}

const MISBEHAVIOURS: [Misbehaviour; 8] = [
    Misbehaviour {
        name: "dies-at-once",
        file: "command = [\"sh\", \"-c\", \"echo no such counter >&2; exit 3\"]",
        lost: true,
        said: "ended early: it exited with 3",
    },
    Misbehaviour {
        name: "dies-midway",
        file: "command = [\"sh\", \"-c\", \"sleep 0.5; kill -SEGV $$\"]",
        lost: true,
        said: "ended early: it was killed by signal 11",
    },
    Misbehaviour {
        name: "never-ends",
        file: "command = [\"sh\", \"-c\", \"trap '' INT; while :; do sleep 0.1; done\"]\nstop_timeout = \"300ms\"",
        lost: false,
        said: "watched to the end",
    },
    Misbehaviour {
        name: "ignores-term",
        file: "command = [\"sh\", \"-c\", \"trap '' INT TERM HUP; while :; do sleep 0.1; done\"]\nstop_timeout = \"300ms\"",
        lost: false,
        said: "was killed because it did not end by itself",
    },
    Misbehaviour {
        name: "fills-the-disk",
        file: "command = [\"sh\", \"-c\", \"while :; do head -c 1000000 /dev/zero >> \\\"$1\\\"; done\", \"sh\", \"{folder}/much\"]\nmost = \"5MB\"",
        lost: true,
        said: "`most` allows 5000000",
    },
    Misbehaviour {
        name: "leaves-a-daemon",
        file: "command = [\"sh\", \"-c\", \"setsid sleep 600 & sleep 600\"]",
        lost: false,
        said: "watched to the end",
    },
    Misbehaviour {
        name: "is-not-there",
        file: "command = [\"/no/such/observer\"]",
        lost: true,
        said: "did not start: `/no/such/observer` does not start",
    },
    Misbehaviour {
        name: "looks-into-nothing",
        file: "runs = \"inside\"\n[variables]\nNOBODY_READS_THIS = \"{folder}\"",
        lost: true,
        said: "wrote nothing",
    },
];

#[test]
fn whatever_an_observer_does_the_run_ends_typed_and_nothing_of_it_is_left() {
    let names: Vec<String> = MISBEHAVIOURS.iter().map(|m| format!("{:?}", m.name)).collect();
    let files: Vec<(&str, &str)> = MISBEHAVIOURS.iter().map(|m| (m.name, m.file)).collect();
    let bench = watched(&format!("[\"none\", {}]", names.join(", ")), &files);
    bench.run(&[]);
    bench.nothing_is_left(NOTHING_LEFT);
    for case in &MISBEHAVIOURS {
        let run = run_under(&bench, case.name);
        let observer = record(&run);
        assert!(observer.outcome.text().contains(case.said), "{}: {:?}", case.name, observer);
        match (&run.record.outcome, case.lost) {
            (Outcome::ObserverLost { reason }, true) => {
                assert!(reason.starts_with(&format!("observer `{}`", case.name)), "{reason}");
                assert_eq!(run.record.validity.verdict, Verdict::Discarded, "{}: it has no number", case.name);
            }
            (Outcome::Completed, false) => assert_eq!(run.record.validity.verdict, Verdict::Valid, "{}", case.name),
            (other, _) => panic!("{}: {other:?}", case.name),
        }
        assert!(!run.path.join("observer").exists(), "{}: what it wrote is in the store", case.name);
    }
    assert_eq!(record(&run_under(&bench, "dies-at-once")).log_tail, ["no such counter"]);
    assert_eq!(run_under(&bench, "none").record.outcome, Outcome::Completed);
}

#[test]
fn an_observer_watches_every_measured_epoch_and_what_it_takes_is_stored() {
    let counts = "about = \"counts\"\ncommand = [\"sh\", \"-c\", \"while :; do echo {pids} {interval_ms}; sleep {interval_s}; done\"]\nrate_hz = 10";
    let each = "command = [\"sh\", \"-c\", \"echo {pid} > \\\"$1\\\"; exec sleep 600\", \"sh\", \"{folder}/{member}\"]";
    let bench =
        watched("[\"none\", \"collo:20Hz\", \"counts\", \"counts:50Hz\", \"each\"]", &[("counts", counts), ("each", each)]);
    bench.run(&[]).exits(0);
    bench.nothing_is_left(NOTHING_LEFT);
    let unwatched = run_under(&bench, "none");
    assert!(unwatched.record.cell.baseline && !unwatched.record.is_sampled(), "not even collo samples");
    assert_eq!(record(&unwatched).cpu_time_s, None);
    let run = run_under(&bench, "counts");
    assert_eq!(run.record.cell.cell, "sleep solo seconds=0.4 counts");
    assert_eq!(run.record.cell.against, ["sleep solo seconds=0.4 none"]);
    assert!(!run.record.is_sampled(), "who is measured watches alone");
    let observer = record(&run);
    assert_eq!((observer.outcome.clone(), observer.place.as_deref()), (ObserverOutcome::Watched, Some("beside")));
    let pid = run.record.members[0].pid.expect("known");
    assert!(observer.commands[0][2].contains(&format!("echo {pid} 100; sleep 0.1")), "{:?}", observer.commands);
    let epochs = crate::support::epochs(&run);
    let first = epochs.iter().filter(|e| e.measured).map(|e| e.start_ns).min().expect("measured");
    let last = epochs.iter().filter(|e| e.measured).map(|e| e.end_ns).max().expect("measured");
    assert!(observer.from_ns.expect("it began") <= first && observer.to_ns.expect("it ended") >= last, "{observer:?}");
    assert!(observer.cpu_time_s.is_some_and(|s| s > 0.0) && observer.peak_rss_bytes.is_some_and(|b| b > 100_000), "{observer:?}");
    assert!(observer.collo_cpu_time_s.is_some_and(|s| s > 0.0));
    // About 0.8 s of measured epochs at ten a second, a dozen bytes each.
    let written = observer.bytes_written.expect("counted");
    assert!((60..2000).contains(&written), "{written} bytes");
    assert!(record(&run_under(&bench, "counts:50Hz")).bytes_written > Some(2 * written), "five times as often");
    let sampled = run_under(&bench, "collo:20Hz");
    assert!(sampled.record.is_sampled() && record(&sampled).bytes_written.is_some_and(|b| b > 0));
    assert!(
        sampled.record.sampling.iter().any(|quality| (quality.asked_hz - 20.0).abs() < 1e-9),
        "{:?}",
        sampled.record.sampling
    );
    let alone = run_under(&bench, "each");
    assert_eq!(record(&alone).commands.len(), 1);
}

#[test]
fn one_around_the_members_starts_them_and_one_inside_is_obeyed() {
    let around = "runs = \"around\"\ncommand = [\"sh\", \"-c\", \"echo $$ > \\\"$1\\\"; shift; exec \\\"$@\\\"\", \"sh\", \"{folder}/{member}\", \"{command}\"]";
    let bench = watched("[\"none\", \"wraps\"]", &[("wraps", around)]);
    bench.run(&[]).exits(0);
    let run = run_under(&bench, "wraps");
    assert_eq!(run.record.members[0].command[..2], ["sh", "-c"], "its command is stored as it was started");
    let observer = record(&run);
    assert_eq!((observer.outcome, observer.cpu_time_s), (ObserverOutcome::Watched, None));
    assert!(observer.bytes_written.is_some_and(|b| b > 0));
}

#[test]
fn one_around_the_members_is_found_in_the_environment_of_their_python() {
    let around = "runs = \"around\"\nneeds = [\"wrapper\"]\ncommand = [\"wrapper\", \"{folder}/{member}\", \"{command}\"]";
    let beside = "needs = [\"wrapper\"]\ncommand = [\"wrapper\"]";
    let bench = watched("[\"none\", \"wraps\", \"sees\"]", &[("wraps", around), ("sees", beside)]);
    let made = std::process::Command::new("python3").args(["-m", "venv", "--without-pip"]).arg(bench.at("venv")).status();
    assert!(made.expect("python3 starts").success());
    let toml = fs_err::read_to_string(bench.at("workloads/sleep/workload.toml")).expect("there");
    bench.write("workloads/sleep/workload.toml", &toml.replace("\"system\"", "\"../../venv\""));
    bench.write("venv/bin/wrapper", "#!/bin/sh\necho $$ > \"$1\"\nshift\nexec \"$@\"\n");
    std::fs::set_permissions(bench.at("venv/bin/wrapper"), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("its mode");
    bench.run(&[]).exits(0).says("observer `sees` needs `wrapper`, which is not on the PATH");
    assert_eq!(record(&run_under(&bench, "wraps")).outcome, ObserverOutcome::Watched);
    fs_err::remove_file(bench.at("venv/bin/wrapper")).expect("removed");
    let plan = bench.collo(&["plan", "x", "--json"]).exits(0);
    assert!(plan.stdout.contains("neither in `bin` of the Python of `sleep` nor on the PATH"), "{}", plan.stdout);
}

#[test]
fn an_observer_that_is_not_installed_is_refused_with_the_way_to_get_it_and_never_a_silent_none() {
    let file = "command = [\"no-such-tool\"]\nneeds = [\"no-such-tool\"]\nhint = \"`apt install no-such-tool`\"";
    let on_gpu = "command = [\"sh\"]\nneeds = [\"sh\", \"gpu\"]\nhint = \"a GPU\"";
    let bench = watched("[\"none\", \"absent\", \"card\"]", &[("absent", file), ("card", on_gpu)]);
    let plan = bench.collo(&["plan", "x", "--json"]).exits(0).json();
    let refusals: Vec<(String, String)> = plan["refusals"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|r| (r["reason"].as_str().unwrap_or_default().into(), r["hint"].as_str().unwrap_or_default().into()))
        .collect();
    assert_eq!(refusals[0].0, "observer `absent` needs `no-such-tool`, which is not on the PATH");
    assert_eq!(refusals[0].1, "`apt install no-such-tool`");
    assert_eq!(refusals[1].0, "observer `card` needs an NVIDIA GPU, this device is a CPU");
    let cells: Vec<&str> = plan["cells"].as_array().expect("a list").iter().filter_map(|c| c["cell"].as_str()).collect();
    assert_eq!(cells, ["sleep solo seconds=0.4 none"]);
    let unknown = watched("[\"none\", \"tops\"]", &[("top", "command = [\"top\"]")]);
    unknown.collo(&["plan", "x"]).exits(2).says("unknown observer `tops`").says("did you mean `top`?");
    let listed = unknown.collo(&["list", "observers", "--json"]).exits(0).json();
    assert_eq!(listed["observers"].as_array().map(Vec::len), Some(3), "none, collo and top");
}

#[test]
fn selected_by_its_name_it_brings_the_unwatched_cell_that_it_is_compared_with() {
    let bench = watched("[\"none\", \"collo\", \"idle\"]", &[("idle", "command = [\"sleep\", \"600\"]")]);
    let plan = bench.collo(&["plan", "x", "--where", "observe == \"idle\"", "--json"]).exits(0).json();
    let cells: Vec<&str> = plan["cells"].as_array().expect("a list").iter().filter_map(|c| c["cell"].as_str()).collect();
    assert_eq!(cells, ["sleep solo seconds=0.4 none", "sleep solo seconds=0.4 idle"]);
    let order: Vec<&str> = plan["order"].as_array().expect("a list").iter().filter_map(|run| run[1].as_str()).collect();
    assert_eq!(order, [cells[0], cells[1], cells[0]], "in one block, between two runs that nobody watches");
}

#[test]
fn a_killed_collo_leaves_no_observer() {
    let bench = watched(
        "[\"none\", \"stays\"]",
        &[("stays", "command = [\"sh\", \"-c\", \"trap '' INT TERM HUP; setsid sleep 601 & while :; do sleep 0.1; done\"]")],
    );
    bench.write(
        "experiments/x.toml",
        "schema = 1\ndevice = \"cpu\"\nrepetitions = 1\ncooldown = \"0s\"\nepochs = 200\n[axes]\nworkload = \"sleep\"\nseconds = 0.4\n\
         sharing = [\"solo\"]\nobserve = [\"stays\"]\n",
    );
    let mut running = bench.start(&["run", "x", "--no-report", "--where", "observe == \"stays\""]);
    // The first run of the block is that of nobody; it is interrupted, and goes on with the observer.
    let is_watched = || bench.left().into_iter().find(|(_, command)| command.starts_with("sleep 601"));
    let first = || bench.left().into_iter().any(|(_, command)| command.contains("train.py")).then_some(());
    wait_for("the unwatched run", first);
    running.signal(Signal::SIGKILL);
    drop(running);
    bench.nothing_is_left(NOTHING_LEFT);
    // The same while it is watched.
    bench.write(
        "experiments/x.toml",
        "schema = 1\ndevice = \"cpu\"\nrepetitions = 1\ncooldown = \"0s\"\nepochs = 2\n[axes]\nworkload = \"sleep\"\nseconds = 1.0\n\
         sharing = [\"solo\"]\nobserve = [\"stays\"]\n",
    );
    let mut running = bench.start(&["run", "x", "--no-report"]);
    wait_for("the observer", is_watched);
    running.signal(Signal::SIGKILL);
    drop(running);
    bench.nothing_is_left(NOTHING_LEFT);
}

#[test]
fn who_watches_from_inside_is_refused_for_a_script_that_knows_nothing_of_it() {
    let inside = "runs = \"inside\"\nabout = \"x\"\n[variables]\nINSIDE = \"{folder}/member-{member}\"\n";
    let bench = Bench::of("[axes]\nworkload = \"lines\"\nsharing = [\"solo\"]\nobserve = [\"none\", \"inside\"]\n")
        .file("observers/inside.toml", inside);
    bench.collo(&["plan", "x"]).exits(0).answers(
        "observer `inside` watches from inside scripts that speak collo's protocol, and `lines` is measured by its output alone",
    );
}

/// A script that watches itself, but only as its first member.
const WATCHES_ITSELF: &str = "import os, time\nimport collo\nmember = collo.connect()\nmember.hello()\nmember.wait_for_warm_up()\n\
    place = os.environ.get('INSIDE')\nif place and place.endswith('member-0'):\n    open(place, 'w').write('x' * 100)\n\
    member.ready()\nfor epoch in member.epochs():\n    time.sleep(0.2)\n    epoch.finish()\n";

#[test]
fn one_member_that_is_watched_does_not_speak_for_another() {
    let inside = "runs = \"inside\"\nabout = \"x\"\n[variables]\nINSIDE = \"{folder}/member-{member}\"\n";
    let bench = Bench::of("[axes]\nworkload = \"itself\"\nsharing = \"naive\"\ndegree = [1, 2]\nobserve = [\"inside\"]\n")
        .file("observers/inside.toml", inside)
        .file("workloads/itself/workload.toml", "command = [\"python\", \"train.py\"]\nenvironment = \"system\"\n")
        .file("workloads/itself/train.py", WATCHES_ITSELF);
    bench.run(&[]).exits(1);
    let outcomes: Vec<(u32, Option<ObserverOutcome>)> =
        bench.runs().values().map(|run| (run.record.cell.degree, run.record.observer.clone().map(|o| o.outcome))).collect();
    assert!(outcomes.contains(&(1, Some(ObserverOutcome::Watched))), "{outcomes:?}");
    assert!(outcomes.contains(&(2, Some(ObserverOutcome::WroteNothing))), "{outcomes:?}");
}

#[test]
fn what_was_written_inside_a_member_that_had_to_be_killed_is_said_not_to_be_all() {
    let inside = "runs = \"inside\"\nabout = \"x\"\n[variables]\nINSIDE = \"{folder}/member-{member}\"\n";
    let bench = Bench::of("[axes]\nworkload = \"itself\"\nsharing = \"solo\"\nobserve = [\"inside\"]\n")
        .file("observers/inside.toml", inside)
        .file("workloads/itself/workload.toml", "command = [\"python\", \"train.py\"]\nenvironment = \"system\"\n")
        .file(
            "workloads/itself/train.py",
            &format!("import os, time\nos._exit = lambda code: time.sleep(600)\n{WATCHES_ITSELF}"),
        );
    bench.run(&["--where", "observe == \"inside\""]).exits(0);
    let run = run_under(&bench, "inside");
    assert_eq!((&run.record.outcome, record(&run).outcome), (&Outcome::Completed, ObserverOutcome::Killed));
}

#[test]
fn the_report_compares_each_observer_with_nobody_within_blocks() {
    let bench = watched("[\"none\", \"idle\"]", &[("idle", "command = [\"sh\", \"-c\", \"echo x; exec sleep 600\"]")]);
    let text =
        fs_err::read_to_string(bench.at("experiments/x.toml")).expect("written").replace("repetitions = 1", "repetitions = 2");
    bench.write("experiments/x.toml", &text);
    bench.run(&[]).exits(0);
    bench.collo(&["report", "last"]).exits(0);
    let report: serde_json::Value =
        serde_json::from_str(&fs_err::read_to_string(bench.at("reports/x/report.json")).expect("written")).expect("it is JSON");
    let group = &report["watching"][0];
    assert_eq!(group["group"], "sleep solo seconds=0.4");
    let idle = &group["observers"][1];
    assert_eq!((idle["observer"].as_str(), idle["repetitions"].as_u64()), (Some("idle"), Some(2)));
    let ratio = &idle["epoch_time_of_none"];
    assert!((ratio["estimate"].as_f64().expect("a ratio") - 1.0).abs() < 0.1, "a sleeping member is not slowed down: {ratio}");
    assert!(ratio["low"].as_f64().is_some() && ratio["repetitions"] == 2, "two blocks carry an interval: {ratio}");
    assert!(idle["cpu_ratio"].as_f64().is_some() && idle["written_bytes"] == 2.0);
    assert_eq!(report["cells"].as_array().map(Vec::len), Some(0), "a watched group is compared with itself alone");
    let page = fs_err::read_to_string(bench.at("reports/x/report.md")).expect("written");
    assert!(page.contains("The cost of watching") && page.contains("PyTorch profiler"), "{page}");
    let csv = bench.collo(&["report", "last", "--format", "csv"]).exits(0);
    assert_eq!(csv.stdout.lines().count(), 1, "no cell but watched ones");
    insta::assert_snapshot!(csv.stderr.trim(), @"no rows, as this campaign has only cells that say who watches them: `--format csv --table observers`");
    let rows = bench.collo(&["report", "last", "--format", "csv", "--table", "observers"]).exits(0);
    assert_eq!((rows.stdout.lines().count(), rows.stderr.trim()), (3, ""));
}

#[test]
fn what_is_wrong_in_an_observer_is_shown_in_its_own_file() {
    let bench = watched("[\"none\", \"broken\"]", &[("broken", "command = [\"true\" \"false\"]\n")]);
    let answer = bench.collo(&["plan", "x"]).exits(2);
    answer.says("observers/broken.toml:1:").says("experiments/x.toml:").says("names this file");
}
