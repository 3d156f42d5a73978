//! Whatever stops a campaign, what is stored stays stored, the way back is said, and the next `collo run` does what is missing.

use std::time::Duration;

use collo_store::Outcome;
use nix::sys::signal::Signal;

use crate::support::{Bench, Running, wait_for};

const SLEEP: &str = "[axes]\nworkload = \"sleep\"\nseconds = 0.3\nitems = 30\ndegree = 2";

/// Wait until a member of the campaign that runs in the bench trains, after so many runs were recorded.
fn trains(bench: &Bench, recorded: usize) {
    wait_for("a member that trains", || {
        let campaign = bench.runs_folder().find("last").ok()?;
        // A run is in the journal before it is in its place: until then it is among those that are still measured.
        let stored = campaign.runs().ok()?.0.len();
        let events = campaign.partials().ok()?.first().map(|p| p.join("events.jsonl"))?;
        let text = std::fs::read_to_string(events).ok()?;
        (stored >= recorded && text.contains("\"ready\"")).then_some(())
    });
}

fn interrupted(bench: &Bench) -> usize {
    bench.runs().values().filter(|r| r.record.outcome == Outcome::Interrupted).count()
}

#[track_caller]
fn complete(bench: &Bench) {
    let runs = bench.runs();
    assert_eq!(runs.len(), bench.campaign().manifest().plan.order.len());
    assert!(runs.values().all(|r| r.record.outcome == Outcome::Completed), "{:?}", runs.keys());
}

#[test]
fn ctrl_c_stops_the_run_and_the_next_collo_does_what_is_missing() {
    let bench = Bench::of(SLEEP);
    let mut running = bench.start(&["run", "x", "--no-report"]);
    trains(&bench, 1);
    running.signal_group(Signal::SIGINT);
    let answer = running.ends().exits(130).says("stopping: `sleep×2 naive").says("is asked to stop and recorded");
    bench.nothing_is_left(Duration::ZERO);
    assert!(answer.stderr.contains(": 1 of 3 runs stored"), "{}", answer.stderr);
    assert!(answer.last_line().starts_with("resume: collo run x  "), "{}", answer.stderr);
    assert!(answer.last_line().ends_with("2 runs"));
    assert_eq!(interrupted(&bench), 1);
    assert!(bench.campaign().partials().expect("readable").is_empty());

    let first = bench.runs().into_iter().find(|(_, r)| r.record.outcome == Outcome::Completed).expect("one is stored");
    bench.run(&[]).exits(0).says("1 of 3 runs stored, 2 to do (1 of them was interrupted)");
    complete(&bench);
    assert_eq!(bench.campaigns(), 1);
    assert_eq!(bench.runs()[&first.0].record, first.1.record, "what was stored was not measured again");
    assert!(bench.campaign().path().join(".superseded").is_dir(), "what was interrupted is kept aside");
}

#[test]
fn a_workload_that_is_edited_meanwhile_ends_the_campaign_and_discards_the_run() {
    let bench = Bench::of(SLEEP);
    let running = bench.start(&["run", "x", "--no-report"]);
    trains(&bench, 1);
    let script = bench.at("workloads/sleep/train.py");
    let text = fs_err::read_to_string(&script).expect("there");
    fs_err::write(&script, format!("{text}\n# edited\n")).expect("written");
    let answer = running.ends().exits(4).says("cannot continue; 1 of 3 runs are safe");
    let answer = answer.says("caused by: `workloads/sleep/train.py` changed while the campaign ran").says("resume: collo run x");
    let discarded: Vec<_> = bench.runs().into_values().filter(|r| !r.record.validity.reasons.is_empty()).collect();
    assert_eq!(discarded.len(), 1, "{}", answer.stderr);
    assert_eq!(discarded[0].record.validity.verdict, collo_store::Verdict::Discarded);
    assert_eq!(discarded[0].record.validity.reasons, ["`workloads/sleep/train.py` changed while it ran"]);
    bench.run(&[]).exits(0).says("is not continued, its ingredients changed");
    complete(&bench);
}

#[test]
fn a_run_during_which_a_file_changed_is_measured_again_once_the_file_is_as_before() {
    // Its only run is the last one, too: no other begins that could find the change.
    let bench = Bench::of("epochs = 4\n[axes]\nworkload = \"sleep\"\ndegree = 1\nseconds = 0.3\n");
    let running = bench.start(&["run", "x", "--no-report"]);
    trains(&bench, 0);
    let script = bench.at("workloads/sleep/train.py");
    let text = fs_err::read_to_string(&script).expect("there");
    fs_err::write(&script, format!("{text}\n# edited\n")).expect("written");
    running.ends().exits(4).says("`workloads/sleep/train.py` changed while the campaign ran");
    fs_err::write(&script, text).expect("written");
    bench.run(&[]).exits(0).says("resuming");
    assert_eq!(bench.campaigns(), 1);
    complete(&bench);
    assert!(bench.runs().values().all(|run| run.record.validity.verdict != collo_store::Verdict::Discarded));
}

#[test]
fn a_campaign_that_was_named_or_has_failed_is_continued_or_nothing_is() {
    let bench = Bench::of("[axes]\nworkload = \"sleep\"\ndegree = 1\nseconds = 0.1\n");
    bench.run(&["--for", "1ms"]).exits(4);
    let id = bench.campaign().manifest().short_id().to_string();
    let script = fs_err::read_to_string(bench.at("workloads/sleep/train.py")).expect("there");
    bench.write("workloads/sleep/train.py", &format!("{script}\n# edited\n"));
    for run in [vec![&*id], vec!["x", "--only", "failed"], vec![&*id, "--more", "1"]] {
        let (name, rest) = run.split_first().expect("a name");
        let said = bench.run_named(name, rest).exits(2).says(&format!("`{id}` cannot be continued"));
        said.says("workloads/sleep/train.py").says("`collo run x --new` starts a new campaign");
    }
    assert_eq!(bench.campaigns(), 1, "none was begun");
    bench.run_named(&id, &["--force"]).exits(0);
}

/// A script that leaves files in its own folder: a checkpoint, logs by version, results in a file that looks like settings, links.
const WRITES: &str = "import json, os, sys
sys.path.insert(0, '../sleep')
open('checkpoint.pt', 'w').write(str(os.getpid()))
json.dump({'pid': os.getpid()}, open('results.json', 'w'))
version = 0
while os.path.exists(f'logs/version_{version}'):
    version += 1
os.makedirs(f'logs/version_{version}', exist_ok=True)
open(f'logs/version_{version}/hparams.yaml', 'w').write(str(os.getpid()))
if not os.path.lexists('latest'):
    os.symlink('/no/such/run', 'latest')
if not os.path.exists('pipe'):
    os.mkfifo('pipe')
open(b'n\\xff.json', 'w').write(str(os.getpid()))
exec(open('../sleep/train.py').read())
";

fn writes(outputs: &str) -> Bench {
    let toml =
        format!("command = [\"python\", \"train.py\", \"--seconds=0.1\", \"--items=5\"]\nenvironment = \"system\"\n{outputs}");
    Bench::of("[axes]\nworkload = \"writes\"\ndegree = 2")
        .file("workloads/writes/workload.toml", &toml)
        .file("workloads/writes/train.py", WRITES)
}

#[test]
fn a_script_that_writes_into_its_own_folder_is_measured_again_and_resumed() {
    let bench = writes("");
    let told = "`workloads/writes/checkpoint.pt` was written while it ran: not an ingredient";
    let first = bench.run(&[]).exits(0).says(told).says("`workloads/writes/logs/` was written");
    assert_eq!(first.stderr.matches(told).count(), 1, "it is told once: {}", first.stderr);
    // Another campaign finds what the first one left, and one that was killed finds its own.
    let again = bench.run(&[]).exits(0);
    assert!(!again.stderr.contains("was written"), "it is remembered: {}", again.stderr);
    let mut running = bench.start(&["run", "x", "--no-report"]);
    trains(&bench, 1);
    running.signal(Signal::SIGKILL);
    assert_eq!(running.ends().code, None);
    bench.run(&[]).exits(0).says("resuming ");
    complete(&bench);
    assert_eq!(bench.campaigns(), 3);
    assert!(bench.runs().values().all(|r| r.record.validity.reasons.is_empty()), "no run is discarded");
    let names: Vec<String> = bench.campaign().manifest().ingredients.keys().cloned().collect();
    let own: Vec<&String> = names.iter().filter(|n| n.starts_with("workloads/writes/")).collect();
    assert_eq!(own, ["workloads/writes/train.py", "workloads/writes/workload.toml"]);
}

#[test]
fn a_script_that_was_run_by_hand_before_has_a_way_to_say_what_it_writes() {
    let bench = writes("").file("workloads/writes/results.json", "{}").file("workloads/writes/checkpoint.pt", "");
    let answer = bench.run(&[]).exits(4).says("`workloads/writes/results.json` changed while the campaign ran");
    answer.says("hint: if the script itself writes it: `outputs = [\"results.json\"]` in its `workload.toml`");
    let bench = writes("outputs = [\"results.json\"]\n").file("workloads/writes/results.json", "{}");
    bench.run(&[]).exits(0);
    complete(&bench);
}

#[test]
fn a_script_that_writes_and_is_edited_is_still_protected() {
    let bench = writes("");
    bench.run(&[]).exits(0);
    let running = bench.start(&["run", "x", "--no-report", "--new"]);
    trains(&bench, 1);
    bench.write("workloads/writes/train.py", &format!("{WRITES}\n# edited\n"));
    running.ends().exits(4).says("`workloads/writes/train.py` changed while the campaign ran");
    bench.run(&[]).exits(0).says("is not continued, its ingredients changed");
    // Code that is new beside the code is an edit, too.
    let running = bench.start(&["run", "x", "--no-report", "--new"]);
    trains(&bench, 1);
    drop(running);
    bench.write("workloads/writes/sitecustomize.py", "");
    bench.run(&[]).exits(0).says("workloads/writes/sitecustomize.py   absent → ");
}

#[test]
fn what_a_killed_collo_was_doing_can_be_looked_at() {
    let bench = Bench::of(SLEEP);
    let mut running = bench.start(&["run", "x", "--no-report"]);
    trains(&bench, 1);
    running.signal(Signal::SIGKILL);
    assert_eq!(running.ends().code, None);
    bench.nothing_is_left(Duration::from_secs(60));
    bench.collo(&["show", "--partial"]).exits(0).answers("sleepx2_naive").answers("\"ready\"");
    bench.collo(&["status"]).exits(4).says(&format!("resume: collo run {}", bench.campaign().manifest().short_id()));
    bench.run(&[]).exits(0).says("resuming ").says("1 run was cut off when an earlier collo ended, and begins again");
    complete(&bench);
    bench.collo(&["verify"]).exits(0);
}

#[test]
fn a_second_ctrl_c_kills_at_once_and_drops_the_run() {
    // Frozen members do not hear that they should stop.
    let bench =
        Bench::of("[axes]\nworkload = \"faulty\"\nfail_at = \"epoch0\"\nhow = \"freeze\"\nwho = -1\nseconds = 0.1\nitems = 2");
    let mut running = bench.start(&["run", "x", "--no-report"]);
    trains(&bench, 0);
    std::thread::sleep(Duration::from_millis(300));
    running.signal(Signal::SIGINT);
    std::thread::sleep(Duration::from_millis(500));
    running.signal(Signal::SIGINT);
    let answer = running.ends().exits(130).says("killed: 0 of 2 runs stored, this one is dropped; no process is left");
    bench.nothing_is_left(Duration::ZERO);
    assert!(answer.last_line().starts_with("resume: collo run x"));
    assert!(bench.runs().is_empty() && bench.campaign().partials().expect("readable").is_empty());
}

#[test]
fn a_terminated_campaign_is_incomplete_and_resumable() {
    let bench = Bench::of(SLEEP);
    let mut running = bench.start(&["run", "x", "--no-report"]);
    trains(&bench, 0);
    running.signal(Signal::SIGTERM);
    let answer = running.ends().exits(4);
    bench.nothing_is_left(Duration::ZERO);
    assert!(answer.last_line().starts_with("resume: collo run x"), "{}", answer.stderr);
    assert_eq!(interrupted(&bench), 1);
    bench.run(&[]).exits(0);
    complete(&bench);
}

#[test]
fn ctrl_c_is_heard_while_members_set_up_and_between_runs() {
    let bench = Bench::of(
        "cooldown = \"10m\"\n[axes]\nworkload = \"sleep\"\nset_up_seconds = 290\nseconds = 0.1\n[sampling]\nrate_hz = 5",
    );
    let stop = |mut running: Running| {
        running.signal(Signal::SIGINT);
        // Its members would set up for longer than a command may take to end.
        let answer = running.ends().exits(130);
        bench.nothing_is_left(Duration::ZERO);
        answer
    };
    let running = bench.start(&["run", "x", "--no-report"]);
    wait_for("a member", || {
        let partials = bench.runs_folder().find("last").ok()?.partials().ok()?;
        std::fs::read_to_string(partials.first()?.join("events.jsonl")).ok()?.contains("started").then_some(())
    });
    stop(running);
    assert_eq!(interrupted(&bench), 1);

    let bench = Bench::of("cooldown = \"10m\"\n[axes]\nworkload = \"sleep\"\nseconds = 0.1");
    let mut running = bench.start(&["run", "x", "--no-report"]);
    wait_for("the first run", || (!bench.runs_folder().find("last").ok()?.runs().ok()?.0.is_empty()).then_some(()));
    std::thread::sleep(Duration::from_millis(200));
    running.signal(Signal::SIGINT);
    let answer = running.ends().exits(130).says("1 of 2 runs stored; no process is left");
    assert!(!answer.stderr.contains("interrupted"), "{}", answer.stderr);
    assert_eq!(interrupted(&bench), 0);
}

#[test]
fn the_allowed_time_ends_a_campaign_between_two_runs() {
    let bench = Bench::of(SLEEP);
    let answer = bench.run(&["--for", "10ms"]).exits(4).says("time limit reached: 1 of 3 runs stored");
    assert!(answer.last_line().starts_with("resume: collo run x"));
    assert_eq!((bench.runs().len(), interrupted(&bench)), (1, 0));
    // By the campaign's own name.
    let id = bench.campaign().manifest().id.clone();
    let last = id.rsplit('-').next().expect("it has parts");
    bench.run_named(last, &[]).exits(0).says(&format!("resuming {id}: 1 of 3 runs stored, 2 to do"));
    complete(&bench);
    // What is complete is not continued: the next one is a new campaign.
    bench.run(&["--for", "1ms"]).exits(4);
    assert_eq!(bench.campaigns(), 2);
}

#[test]
fn changed_ingredients_start_a_new_campaign_unless_forced() {
    let bench = Bench::of(SLEEP);
    bench.run(&["--for", "10ms"]).exits(4);
    let old = bench.campaign();
    let id = &old.manifest().id;
    let file = "workloads/sleep/train.py";
    bench.write(file, &format!("{}\n# better\n", fs_err::read_to_string(bench.at(file)).expect("it is there")));

    let answer = bench.run(&["--for", "10ms"]).exits(4);
    let answer = answer.says(&format!("warning: {id} is not continued, its ingredients changed")).says(&format!("  {file} "));
    let short = id.rsplit('-').next().expect("it has parts");
    let answer = answer.says(&format!("collo run {short} --force"));
    assert_eq!(bench.campaigns(), 2, "{}", answer.stderr);
    assert_eq!(old.runs().expect("readable").0.len(), 1, "the old one is left as it was");

    bench.run_named(short, &["--force"]).exits(0);
    assert_eq!(bench.campaigns(), 2);
    let forced = bench.runs_folder().find(short).expect("it is there");
    assert_eq!(forced.runs().expect("readable").0.len(), 3);
    let why = &forced.manifest().indicative;
    assert!(why.len() == 1 && why[0].contains(file), "{why:?}");
    let report = bench.collo(&["report", short, "--json"]).exits(0).json();
    for cell in report["cells"].as_array().expect("cells") {
        assert_eq!(cell["validity"], "indicative", "{cell}");
    }
}

#[test]
fn new_starts_a_new_campaign_whatever_is_unfinished() {
    let bench = Bench::of(SLEEP);
    bench.run(&["--for", "10ms"]).exits(4);
    let old = bench.campaign();
    bench.run(&["--new", "--for", "10ms"]).exits(4);
    assert_eq!(bench.campaigns(), 2);
    assert_eq!(old.runs().expect("readable").0.len(), 1);
}

/// A member that fails as long as a file is there, which is no ingredient.
fn flaky() -> Bench {
    Bench::of("[axes]\nworkload = \"flaky\"\ndegree = 2")
        .file("workloads/flaky/workload.toml", "command = [\"python\", \"train.py\"]\nenvironment = \"system\"\n")
        .file(
            "workloads/flaky/train.py",
            "import os, time, collo
member = collo.connect()
member.hello(device=\"cpu\")
member.wait_for_warm_up()
member.ready()
for epoch in member.epochs():
    assert not os.path.exists(os.environ[\"COLLO_DATA\"] + \"/fail\") or os.environ[\"COLLO_MEMBER\"] == \"0\", \"told so\"
    time.sleep(0.1)
    epoch.finish(items=1)
",
        )
        .file("data/fail", "")
}

#[test]
fn only_failed_measures_failures_again_and_keeps_the_old_ones_aside() {
    let bench = flaky();
    bench.run(&[]).exits(1).says("crashed: member 1");
    let before = bench.runs();
    fs_err::remove_file(bench.at("data/fail")).expect("it is there");
    bench.run(&["--only", "failed"]).exits(0).says("2 of 3 runs stored, 1 to do");
    complete(&bench);
    assert_eq!(bench.campaigns(), 1);
    for (folder, run) in before.iter().filter(|(_, r)| r.record.outcome == Outcome::Completed) {
        assert_eq!(bench.runs()[folder].record, run.record, "{folder} was not measured again");
    }
    let aside = bench.campaign().path().join(".superseded");
    let kept: Vec<_> = fs_err::read_dir(aside).expect("there").map(|e| e.expect("readable").path()).collect();
    assert!(kept.len() == 1 && kept[0].join("run.json").is_file(), "{kept:?}");
    // Now nothing failed, so there is nothing to do and nothing new is begun.
    bench.run(&["--only", "failed"]).exits(0);
    assert_eq!(bench.campaigns(), 1);
    bench.collo(&["verify"]).exits(0);
}

#[test]
fn only_failed_leaves_what_is_missing_to_the_next_run() {
    let bench = flaky();
    bench.run(&["--for", "1ms"]).exits(4);
    let before = bench.runs().len();
    bench.run(&["--only", "failed"]).exits(4).says("missing: collo run x");
    assert_eq!(bench.runs().len(), before);
    fs_err::remove_file(bench.at("data/fail")).expect("it is there");
    bench.run(&[]).exits(0);
    complete(&bench);
}

#[test]
fn only_failed_without_a_campaign_is_a_mistake() {
    let bench = Bench::of(SLEEP);
    bench.run(&["--only", "failed"]).exits(2).says("no campaign of `x` is stored").says("hint: `collo run x` starts one");
    assert!(!bench.at("runs").exists());
}

#[test]
fn one_campaign_has_one_collo() {
    let bench = Bench::of("[axes]\nworkload = \"sleep\"\nseconds = 1\nitems = 100");
    let mut running = bench.start(&["run", "x", "--no-report"]);
    trains(&bench, 0);
    let pid = running.pid();
    bench.run(&[]).exits(3).says("is being run by another collo").says(&format!("process {pid}, since"));
    bench.collo(&["status"]).exits(0).answers(&format!("process {pid}"));
    let status = bench.collo(&["status", "--json"]).exits(0).json();
    assert_eq!(status["process"], pid);
    bench.collo(&["list"]).exits(0).answers("running");
    let watching = bench.start(&["status", "--watch"]);
    running.signal(Signal::SIGINT);
    running.ends().exits(130);
    let watched = watching.ends().exits(4);
    watched.answers("is not running: 0 of ");
    bench.collo(&["status"]).exits(4).says(&format!("resume: collo run {}", bench.campaign().manifest().short_id()));
}

#[test]
fn a_selection_is_resumed_by_the_line_that_collo_prints() {
    let bench = Bench::of("[axes]\nworkload = \"sleep\"\nseconds = 0.1\nitems = 2\ndegree = [1, 2, 3]");
    let condition = "degree == 2";
    let answer = bench.run(&["--where", condition, "--for", "10ms"]).exits(4);
    let resume = format!("resume: collo run x --where '{condition}'");
    assert!(answer.last_line().starts_with(&resume), "{}", answer.stderr);
    // Another selection is another campaign.
    bench.run(&["--for", "1ms"]).exits(4).says("is not continued").says("  --where ");
    assert_eq!(bench.campaigns(), 2);
    let first = bench.runs_folder().find("last-1").expect("it is there").manifest().id.clone();
    // By its id, the campaign brings its selection along, and that is what its status says.
    let short = collo_store::last_part(&first).to_string();
    bench.collo(&["status", &first]).exits(4).says(&format!("resume: collo run {short}"));
    let answer = bench.collo(&["verify", &first]).exits(1).says(&format!("next: collo run {short}"));
    assert!(!answer.stderr.contains("failed"), "nothing did: {}", answer.stderr);
    bench.run_named(&first, &[]).exits(0).says("1 of 3 runs stored, 2 to do");
    let campaign = bench.runs_folder().find(&first).expect("it is there");
    let degrees: Vec<u32> = campaign.manifest().plan.cells.iter().map(|c| c.degree).collect();
    assert_eq!(degrees, [1, 2]);
    assert_eq!(campaign.runs().expect("readable").0.len(), 3);
}
