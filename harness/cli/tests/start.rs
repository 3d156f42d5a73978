//! A group starts together or not at all, keeps its company, and a script that has never heard of collo is measured, too.

use collo_store::Outcome;
use serde_json::Value;

use crate::support::{Bench, epochs, events};

/// The moments, in order, at which a member said an event.
fn said(events: &[Value], member: usize, event: &str) -> Vec<u64> {
    let is = |e: &&Value| e["member"] == member && e["said"]["event"] == event;
    events.iter().filter(is).map(|e| e["at_ns"].as_u64().expect("a time")).collect()
}

#[test]
fn a_group_starts_only_when_every_member_is_ready() {
    let bench = Bench::of(
        "[[group]]\nafter_measured = \"keep-running\"\nmembers = [
            { workload = \"sleep\", seconds = 0.2, items = 10, set_up_seconds = 1.0 },
            { workload = \"sleep\", seconds = 0.2, items = 10 },
        ]",
    );
    bench.run(&[]).exits(0);
    let run = bench.run_of(2);
    assert_eq!(run.record.outcome, Outcome::Completed);
    let timeline = &run.record.timeline;
    let (ready_ns, go_ns) = (timeline.ready_ns.expect("ready"), timeline.go_ns.expect("went"));
    assert!(ready_ns - timeline.launched_ns >= 1_000_000_000, "it waited for the slow one");
    assert!(run.record.members.iter().all(|m| m.ready_ns.expect("ready") <= go_ns));
    let epochs = epochs(&run);
    let early = epochs.iter().find(|e| e.start_ns < go_ns);
    assert!(early.is_none(), "{early:?} began before `go` at {go_ns}");
    // The one that was there at once waited for the other, and did not warm up before.
    let all = |event: &str| (0..2).map(|member| said(&events(&run), member, event)[0]).collect::<Vec<_>>();
    let (hellos_ns, ready_ns) = (all("hello"), all("ready"));
    assert!(hellos_ns.iter().any(|hello| go_ns - hello >= 500_000_000), "{hellos_ns:?}, go at {go_ns}");
    assert!(ready_ns.iter().min() > hellos_ns.iter().max(), "{ready_ns:?} before {hellos_ns:?}");
}

#[test]
fn members_warm_up_one_at_a_time_and_start_together() {
    // A member of its own that takes a while to warm up.
    let bench = Bench::of("repetitions = 1\n[axes]\nworkload = \"warm\"\ndegree = 3\n[thresholds]\nstart_skew = \"2s\"")
        .file("workloads/warm/workload.toml", "command = [\"python\", \"train.py\"]\nenvironment = \"system\"\n")
        .file(
            "workloads/warm/train.py",
            "import time, collo
member = collo.connect()
member.hello(device=\"cpu\")
member.wait_for_warm_up()
print(\"from\", time.monotonic_ns(), flush=True)
time.sleep(0.15)
print(\"to\", time.monotonic_ns(), flush=True)
member.ready()
for epoch in member.epochs():
    for item in epoch.batches(range(5)):
        time.sleep(0.02)
    epoch.finish(items=5)
",
        );
    bench.run(&[]).exits(0);
    let run = bench.run_of(3);
    let mut warm_ups: Vec<(u64, u64)> = (0..3)
        .map(|member| {
            let log = crate::support::log(&run, member);
            let ns: Vec<u64> = log.split_whitespace().filter_map(|word| word.parse().ok()).collect();
            (ns[0], ns[1])
        })
        .collect();
    warm_ups.sort_unstable();
    assert!(warm_ups.windows(2).all(|two| two[0].1 <= two[1].0), "two warmed up in company: {warm_ups:?}");
    let starts = run.record.members.iter().map(|m| m.training_start_ns.expect("it trained"));
    let (first, last) = (starts.clone().min().expect("three"), starts.max().expect("three"));
    let go_ns = run.record.timeline.go_ns.expect("went");
    assert!(go_ns <= first && last - first < 1_000_000_000, "the starts are {} ns apart", last - first);
}

#[test]
fn under_hold_nobody_leaves_before_the_slowest_is_done() {
    let bench = Bench::of(
        "[[group]]\nafter_measured = \"keep-running\"\nmembers = [
            { workload = \"sleep\", seconds = 0.1, items = 10 },
            { workload = \"sleep\", seconds = 0.5, items = 50 },
        ]",
    );
    bench.run(&[]).exits(0);
    let run = bench.run_of(2);
    let events = events(&run);
    let done: Vec<u64> = (0..2).map(|m| said(&events, m, "done")[0]).collect();
    let all_done = *done.iter().max().expect("two");
    for (member, record) in run.record.members.iter().enumerate() {
        let end = record.training_end_ns.expect("it trained");
        assert!(end >= run.record.timeline.done_ns.expect("done"), "member {member} left early");
        let epochs = epochs(&run);
        let own = epochs.iter().filter(|e| e.member as usize == member);
        // Warm-up, one measured, and whatever was trained for the others' sake.
        assert!(own.clone().filter(|e| e.measured).all(|e| e.index == 1 && e.end_ns <= all_done), "{epochs:?}");
        assert_eq!(own.clone().filter(|e| e.measured).count(), 1);
        if done[member] != all_done {
            assert!(own.filter(|e| e.index >= 2).count() >= 2, "it trained on: {epochs:?}");
        }
    }
}

#[test]
fn the_only_epoch_of_a_run_is_measured() {
    let bench = Bench::of("epochs = 1\n[axes]\nworkload = \"sleep\"\nseconds = 0.1\nitems = 5");
    bench.run(&[]).exits(0);
    let first = epochs(&bench.run_of(1)).remove(0);
    assert!(first.index == 0 && first.measured, "{first:?}");
}

#[test]
fn under_release_who_is_done_leaves() {
    // The fast one still trains when the slow one's first epoch ends, which is when the evidence is gathered.
    let bench = Bench::of(
        "epochs = 3\n[[group]]\nmembers = [
            { workload = \"sleep\", seconds = 0.6, items = 10 },
            { workload = \"sleep\", seconds = 1.0, items = 10 },
        ]",
    );
    bench.run(&[]).exits(0);
    let run = bench.run_of(2);
    assert_eq!(run.record.cell.after_measured, collo_store::AfterMeasured::Exit);
    let seconds = |m: &collo_store::MemberRecord| m.spec.settings["seconds"].as_f64().expect("a number");
    let end = |s: f64| {
        let member = run.record.members.iter().find(|m| seconds(m) == s).expect("it is there");
        assert_eq!(member.exit.as_deref(), Some("exited with 0"));
        member.training_end_ns.expect("it trained")
    };
    assert!(end(1.0) - end(0.6) > 500_000_000, "the fast one left long before the slow one");
    assert!(epochs(&run).iter().all(|e| e.index < 3), "nobody trained on");
}

#[test]
fn a_script_that_only_prints_lines_is_measured_unedited() {
    let bench = Bench::of("[axes]\nworkload = \"lines\"\nrows = 20000\ndegree = 2");
    bench.run(&[]).exits(0);
    let run = bench.run_of(2);
    assert_eq!(run.record.outcome, Outcome::Completed);
    assert_eq!(run.record.cell.after_measured, collo_store::AfterMeasured::KeepRunning);
    for (index, member) in run.record.members.iter().enumerate() {
        assert!(!member.barrier && member.hello.is_none() && member.ready_ns.is_none());
        let epochs = epochs(&run);
        let own: Vec<_> = epochs.iter().filter(|e| e.member as usize == index).collect();
        assert!(own.len() >= 2, "{own:?}");
        let measured: Vec<u32> = own.iter().filter(|e| e.measured).map(|e| e.index).collect();
        assert!(!measured.is_empty() && !measured.contains(&0), "{measured:?}");
        // What the script said of its epoch is what is stored.
        let log = crate::support::log(&run, index);
        let line = log.lines().find(|l| l.starts_with("epoch 2 done in ")).expect("it printed the epoch");
        let seconds: f64 = line.split_whitespace().nth(4).and_then(|s| s.parse().ok()).expect("a number");
        let stored = (own[1].end_ns - own[1].start_ns) as f64 / 1e9;
        assert!((stored - seconds).abs() < 1e-3, "{stored} and {seconds}");
    }
}

#[test]
fn a_member_with_the_protocol_and_one_without_share_a_group() {
    let bench = Bench::of(
        "after_measured = \"keep-running\"\n[[group]]\nmembers = [{ workload = \"lines\", rows = 80000 }, { workload = \"sleep\", seconds = 2 }]",
    );
    bench.run(&[]).exits(0);
    let run = bench.run_of(2);
    assert_eq!(run.record.outcome, Outcome::Completed);
    let barriers: Vec<(&str, bool)> = run.record.members.iter().map(|m| (&*m.spec.workload, m.barrier)).collect();
    assert!(barriers.contains(&("lines", false)) && barriers.contains(&("sleep", true)), "{barriers:?}");
    assert_eq!(run.record.cell.after_measured, collo_store::AfterMeasured::KeepRunning);
    for (member, barrier) in (0..2).zip(run.record.members.iter().map(|m| m.barrier)) {
        let measured = epochs(&run).iter().filter(|e| e.member == member && e.measured).count();
        assert_eq!(measured, 1, "of member {member}, with a barrier: {barrier}");
    }
}
