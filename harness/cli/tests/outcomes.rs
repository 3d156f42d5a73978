//! However a member goes wrong, the run ends in its own outcome, is accounted for, and leaves no process behind.

mod support;

use std::time::Duration;

use collo_store::{Outcome, StoredRun, Verdict};
use support::{Answer, Bench, crash, is_alive, log};

/// Two members, the second of which does one wrong thing at one point; and what else the experiment says.
fn pair(fail_at: &str, how: &str, more: &str) -> (Bench, Answer, StoredRun) {
    let bench = Bench::of(&format!(
        "{more}\n[axes]\nworkload = \"faulty\"\nseconds = 0.06\nitems = 4\nwho = 1\ndegree = 2\nfail_at = \"{fail_at}\"\nhow = \"{how}\""
    ));
    let answer = bench.run(&[]);
    bench.nothing_is_left(Duration::ZERO);
    let runs = bench.runs();
    assert_eq!(runs.len(), bench.campaign().manifest().plan.order.len(), "every planned run is accounted for");
    let run = bench.run_of(2);
    if run.record.outcome != Outcome::Completed {
        assert_eq!(run.record.validity.verdict, Verdict::Void, "no number is kept");
    }
    (bench, answer, run)
}

/// The solo baselines of [`pair`] have no second member, so they complete, whatever the pair did.
fn baselines_complete(bench: &Bench) {
    let runs = bench.runs();
    let solo: Vec<_> = runs.values().filter(|r| r.record.cell.degree == 1).map(|r| &r.record.outcome).collect();
    assert_eq!(solo, [&Outcome::Completed; 2]);
}

#[test]
fn a_member_that_exits_ends_its_group_and_the_campaign_goes_on() {
    let (bench, answer, run) = pair("epoch1", "exit", "");
    let answer = answer.exits(1).says("crashed: member 1 exited with 3 in epoch 1; 0 was stopped");
    assert_eq!(answer.last_line(), "again:  collo run x --only failed");
    assert_eq!(crash(&run), (1, "exited with 3".into(), "in epoch 1".into()));
    assert_eq!(run.record.members[0].exit.as_deref(), Some("exited with 0"), "it obeyed `stop`");
    baselines_complete(&bench);
}

#[test]
fn a_signal_is_told_by_its_name() {
    let (_bench, answer, run) = pair("epoch0", "signal", "");
    answer.exits(1).says("crashed: member 1 killed by SIGSEGV in epoch 0");
    assert_eq!(crash(&run), (1, "killed by SIGSEGV".into(), "in epoch 0".into()));
}

#[test]
fn a_member_that_dies_before_it_says_anything_ends_the_group_at_once() {
    let (_bench, answer, run) = pair("hello", "exit", "");
    answer.exits(1);
    let (member, status, _) = crash(&run);
    assert_eq!((member, &*status), (1, "exited with 3"));
    assert_eq!(run.record.timeline.go_ns, None, "nobody was told to go");
    assert!(support::epochs(&run).is_empty());
}

#[test]
fn a_member_that_dies_at_the_barrier_is_noticed_there() {
    let (_bench, answer, run) = pair("ready", "signal", "");
    answer.exits(1);
    assert_eq!(crash(&run).2, "in warm-up");
    assert_eq!(run.record.timeline.go_ns, None);
}

#[test]
fn success_without_done_is_a_crash() {
    let (_bench, answer, run) = pair("epoch1", "leave", "");
    answer.exits(1).says("member 1 exited with 0 before `done`, in epoch 1");
    assert_eq!(crash(&run).1, "exited with 0");
}

#[test]
fn an_error_carries_its_own_words_and_the_end_of_the_log() {
    let (_bench, answer, run) = pair("epoch1", "error", "");
    answer.exits(1).says("│ RuntimeError: mat1 and mat2 shapes cannot be multiplied").says("member-1.log");
    assert_eq!(crash(&run).2, "mat1 and mat2 shapes cannot be multiplied (32x64 and 128x10), in epoch 1");
    let tail = &run.record.members[1].log_tail;
    assert!(tail.len() <= 5 && tail.last().is_some_and(|l| l.contains("mat1 and mat2")), "{tail:?}");
}

#[test]
fn data_that_cannot_be_used_is_said_without_a_traceback() {
    let (_bench, answer, run) = pair("hello", "data", "");
    answer.exits(1);
    assert!(crash(&run).2.contains("is truncated: unpack the archive again"), "{:?}", run.record.outcome);
    assert!(!log(&run, 1).contains("Traceback"));
}

#[test]
fn what_is_not_the_protocol_is_quoted() {
    let (_bench, answer, run) = pair("epoch1", "garbage", "");
    answer.exits(1).says("protocol error: line 4 of member 1 is not JSON: `epoch 1 loss 0.4`");
    assert!(matches!(run.record.outcome, Outcome::ProtocolError { member: 1, .. }), "{:?}", run.record.outcome);
}

#[test]
fn latencies_of_a_member_that_trains_are_a_protocol_error() {
    let (bench, answer, run) = pair("epoch1", "latencies", "");
    let words = "member 1 sends latencies, but its hello does not say that it serves";
    answer.exits(1).says(&format!("protocol error: {words}"));
    assert_eq!(run.record.outcome, Outcome::ProtocolError { member: 1, message: words.into() });
    assert!(!run.path.join("requests.parquet").exists(), "nobody serves");
    baselines_complete(&bench);
}

#[test]
fn half_a_line_at_the_end_is_no_message() {
    let (_bench, answer, run) = pair("epoch1", "half", "");
    answer.exits(1).says("its last line on the channel was cut off");
    assert!(crash(&run).2.contains("before `done`"));
}

#[test]
fn a_line_without_end_is_given_up_and_its_member_ended() {
    let (_bench, answer, run) = pair("epoch1", "huge", "");
    answer.exits(1).says("line 4 of member 1 has more than 1 MiB");
    assert!(matches!(run.record.outcome, Outcome::ProtocolError { member: 1, .. }), "{:?}", run.record.outcome);
}

#[test]
fn a_member_that_says_nothing_times_out_in_set_up() {
    let (_bench, answer, run) = pair("hello", "silent", "set_up_timeout = \"2s\"");
    answer.exits(1).says("timed out: member 1").says("said nothing for 2 s");
    let Outcome::TimedOut { member, phase, .. } = &run.record.outcome else { panic!("{:?}", run.record.outcome) };
    assert_eq!((*member, &**phase), (1, "set-up"));
}

#[test]
fn a_member_that_hangs_times_out_and_obeys_stop() {
    let (_bench, answer, run) = pair("epoch1", "hang", "stall_timeout = \"1s\"");
    answer.exits(1).says("timed out: member 1");
    let Outcome::TimedOut { member, phase, message } = &run.record.outcome else { panic!("{:?}", run.record.outcome) };
    assert_eq!((*member, &**phase, &**message), (1, "measure", "ended no epoch for 1 s"));
    assert_eq!(run.record.members[1].exit.as_deref(), Some("exited with 0"));
}

#[test]
fn a_frozen_member_is_killed_when_it_does_not_obey() {
    let (_bench, answer, run) = pair("epoch1", "freeze", "stall_timeout = \"1s\"");
    answer.exits(1);
    assert!(matches!(&run.record.outcome, Outcome::TimedOut { member: 1, phase, .. } if phase == "measure"));
    assert_eq!(run.record.members[1].exit.as_deref(), Some("killed by SIGKILL"));
}

#[test]
fn a_run_that_takes_too_long_in_all_times_out() {
    let (_bench, answer, run) = pair("epoch1", "hang", "timeout = \"2s\"");
    answer.exits(1);
    assert!(matches!(&run.record.outcome, Outcome::TimedOut { member: 1, phase, .. } if phase == "total"));
}

#[test]
fn out_of_memory_is_a_result_and_not_a_failure() {
    for (how, word) in [("oom", "Cannot allocate memory"), ("oom_text", "CUDA out of memory")] {
        let (bench, answer, run) = pair("epoch1", how, "");
        answer.exits(0).says("out of memory: member 1");
        let Outcome::OutOfMemory { member, message } = &run.record.outcome else { panic!("{:?}", run.record.outcome) };
        assert_eq!(*member, 1);
        assert!(message.contains(word), "{message}");
        // It is not measured again, not even when failures are.
        let again = bench.run(&["--only", "failed"]);
        assert_eq!(bench.runs().len(), 3, "{}", again.stderr);
        assert_eq!(bench.run_of(2).record.started_utc, run.record.started_utc);
    }
}

#[test]
fn a_child_that_outlives_its_member_is_ended_and_named() {
    let (_bench, answer, run) = pair("epoch1", "fork_and_exit", "");
    let child = left_behind(&run);
    answer.exits(1).says(&format!("its child {child} was ended"));
    assert_eq!(run.record.members[1].orphans, [child]);
    assert!(!is_alive(child));
}

#[test]
fn a_daemon_that_got_away_is_found_and_ended() {
    let (_bench, answer, run) = pair("epoch1", "daemon", "");
    let daemon = left_behind(&run);
    answer.exits(0);
    assert_eq!(run.record.outcome, Outcome::Completed, "it trained on, so the run is complete");
    assert_eq!(run.record.members[1].orphans, [daemon]);
    assert!(!is_alive(daemon));
}

fn left_behind(run: &StoredRun) -> u32 {
    let log = log(run, 1);
    let pid = log.lines().find_map(|l| l.strip_prefix("left behind "));
    pid.and_then(|p| p.parse().ok()).unwrap_or_else(|| panic!("no pid in {log:?}"))
}

#[test]
fn survivors_finish_where_the_experiment_lets_them() {
    let (bench, answer, run) = pair("epoch0", "exit", "member_failure = \"keep-survivors\"");
    answer.exits(1);
    assert_eq!(crash(&run).0, 1);
    let measured: Vec<u32> = support::epochs(&run).iter().filter(|e| e.measured).map(|e| e.member).collect();
    assert_eq!(measured, [0], "the other one finished its measured epoch");
    baselines_complete(&bench);
}

#[test]
fn where_nobody_survives_the_run_ends_all_the_same() {
    let bench = Bench::of(
        "member_failure = \"keep-survivors\"\n[axes]\nworkload = \"faulty\"\nseconds = 0.06\nitems = 4\nwho = -1\ndegree = 2
fail_at = \"epoch1\"\nhow = \"exit\"",
    );
    bench.run(&[]).exits(1);
    let run = bench.run_of(2);
    crash(&run);
    assert!(run.record.members.iter().all(|m| m.exit.as_deref() == Some("exited with 3")));
}

#[test]
fn a_command_that_does_not_exist_is_said_to_be_missing() {
    let bench = Bench::of("[axes]\nworkload = \"nowhere\"")
        .file("workloads/nowhere/workload.toml", "command = [\"./no-such-program\"]\nenvironment = \"system\"\n");
    bench.run(&[]).exits(1).says("no-such-program");
    bench.nothing_is_left(Duration::ZERO);
    assert!(crash(&bench.run_of(1)).1.starts_with("not started: `./no-such-program` does not start"));
}

#[test]
fn the_numbers_of_a_pair_that_failed_are_not_in_the_report() {
    let bench =
        Bench::of("[axes]\nworkload = \"faulty\"\nseconds = 0.2\nwho = 1\ndegree = 2\nfail_at = \"epoch1\"\nhow = \"exit\"");
    let report = bench.collo(&["run", "x", "--json"]).exits(1).json();
    assert_eq!(report["planned"], 3);
    assert_eq!((&report["accounted"]["completed"], &report["accounted"]["crashed"]), (&2.into(), &1.into()));
    let cells = report["cells"].as_array().expect("cells");
    let pair = cells.iter().find(|c| c["degree"] == 2).expect("the pair is listed");
    assert!(pair["epoch_time_s"].is_null() && pair["slowdown"].is_null(), "{pair}");
}
