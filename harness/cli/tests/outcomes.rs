//! However a member goes wrong, the run ends in its own outcome, is accounted for, and leaves no process behind.

use std::time::Duration;

use collo_store::{Outcome, StoredRun, Verdict};

use crate::support::{Answer, Bench, crash, is_alive, log};

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
        assert_eq!(run.record.validity.verdict, Verdict::Discarded, "no number is kept");
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
    let id = bench.campaign().manifest().short_id().to_string();
    bench.collo(&["verify"]).exits(1).says(&format!("next: collo run {id} --only failed"));
    assert_eq!(crash(&run), (1, "exited with 3".into(), "in epoch 1".into()));
    assert_eq!(run.record.members[0].exit.as_deref(), Some("exited with 0"), "it obeyed `stop`");
    baselines_complete(&bench);
    let shown = bench.collo(&["show", "last", &run.record.cell.cell]).exits(0).stdout;
    let parts =
        ["crashed: member 1 exited with 3 in epoch 1", "member 1: `faulty` (pid ", "exited with 3, in training", "      run: "];
    assert!(parts.iter().all(|part| shown.contains(part)), "{shown}");
    assert!(shown.contains(&*run.path.file_name().expect("a name").to_string_lossy()), "{shown}");
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
    assert!(crate::support::epochs(&run).is_empty());
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
    let words = "member 1 sends latencies, but its hello has no `serving`";
    answer.exits(1).says(&format!("protocol error: {words}"));
    assert_eq!(run.record.outcome, Outcome::ProtocolError { member: 1, message: words.into() });
    assert!(!run.path.join("requests.parquet").exists(), "nobody serves");
    baselines_complete(&bench);
}

#[test]
fn half_a_line_at_the_end_is_no_message() {
    let (_bench, answer, run) = pair("epoch1", "half", "");
    answer.exits(1).says("its last line on the channel was truncated");
    assert!(crash(&run).2.contains("before `done`"));
}

#[test]
fn a_line_without_end_is_given_up_and_its_member_ended() {
    let (_bench, answer, run) = pair("epoch1", "huge", "");
    answer.exits(1).says("line 4 of member 1 exceeds 1 MiB");
    assert!(matches!(run.record.outcome, Outcome::ProtocolError { member: 1, .. }), "{:?}", run.record.outcome);
}

#[test]
fn a_member_that_says_nothing_times_out_in_set_up() {
    let (_bench, answer, run) = pair("hello", "silent", "set_up_timeout = \"2s\"");
    answer.exits(1).says("timed out: member 1").says("sent nothing for 2 s");
    let Outcome::TimedOut { member, phase, .. } = &run.record.outcome else { panic!("{:?}", run.record.outcome) };
    assert_eq!((*member, &**phase), (1, "set-up"));
}

#[test]
fn a_member_that_hangs_times_out_and_obeys_stop() {
    let (_bench, answer, run) = pair("epoch1", "hang", "stall_timeout = \"1s\"");
    answer.exits(1).says("timed out: member 1");
    let Outcome::TimedOut { member, phase, message } = &run.record.outcome else { panic!("{:?}", run.record.outcome) };
    assert_eq!((*member, &**phase, &**message), (1, "measure", "finished no epoch for 1 s"));
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
    let measured: Vec<u32> = crate::support::epochs(&run).iter().filter(|e| e.measured).map(|e| e.member).collect();
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
fn a_command_whose_program_is_not_there_is_refused_and_named_by_plan_run_and_check() {
    for (program, reason) in [("./no-such-program", "no such program"), ("no-such-program", "it is not on the PATH")] {
        let bench = Bench::of("[axes]\nworkload = \"nowhere\"")
            .file("workloads/nowhere/workload.toml", &format!("command = [\"{program}\"]\nenvironment = \"system\"\n"));
        let reason = format!("`{program}` of workload `nowhere` does not start: {reason}");
        bench.collo(&["plan", "x"]).answers(&reason);
        bench.run(&[]).exits(3).says(&reason);
        bench.collo(&["workload", "check", "nowhere"]).exits(3).says(&reason);
        assert_eq!(bench.campaigns(), 0, "nothing was measured");
    }
}

#[test]
fn a_program_that_does_not_start_is_named_by_run_and_check_alike() {
    let bench = Bench::of("[axes]\nworkload = \"nowhere\"")
        .file(
            "workloads/nowhere/workload.toml",
            "command = [\"./train\"]\nenvironment = \"system\"\n[epochs]\npattern = 'e(?P<epoch>\\d+)'\n",
        )
        .file("workloads/nowhere/train", "#!/no/such/interpreter\n");
    let at = bench.at("workloads/nowhere/train");
    std::fs::set_permissions(at, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("its mode");
    bench.run(&[]).exits(1).says("not started: `./train` does not start");
    bench.nothing_is_left(Duration::ZERO);
    assert!(crash(&bench.run_of(1)).1.starts_with("not started: `./train` does not start"));
    bench.collo(&["workload", "check", "nowhere"]).exits(1).answers("not started: `./train` does not start: No such file");
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

/// A member that has its own say in what it tells the harness, by raw messages.
const LIAR: &str = r#"
import argparse, json, os, select, socket, sys, time

how = argparse.ArgumentParser()
how.add_argument("--how")
how = how.parse_args().how
channel = socket.socket(fileno=int(os.environ["COLLO_FD"]))
commands = map(json.loads, channel.makefile())
now, S = time.monotonic_ns, 10**9


def say(event, **fields):
    channel.sendall((json.dumps({"event": event, **fields}) + "\n").encode())


def wait_for(command):
    while next(commands)["command"] != command:
        pass


def work():
    start = now()
    while now() < start + S // 10:
        pass
    return start, now()


def moved(by):
    start, end = work()
    return start + by, end + by


def epoch(index, measured, times=None, items=8):
    start, end = times or work()
    say("epoch", index=index, measured=measured, items=items, start_ns=start, end_ns=end, loss=None)


def for_ever(event):
    # Many at a time: on a crowded machine one at a time would be no flood.
    lines = (json.dumps({"event": event}) + "\n").encode() * 1000
    while True:
        channel.sendall(lines)


def until_stop(event):
    while not select.select([channel], [], [], 0.001)[0]:
        say(event)


LIES = {
    "far future": lambda: moved(3 * 3600 * S),
    "the wall clock": lambda: moved(time.time_ns() - now()),
    "no length": lambda: (now(),) * 2,
    "overlap": lambda: moved(-S // 20),
}
if how == "flood before hello":
    for_ever("aurora")
if how == "no hello":
    say("ready")
say("hello", protocol=1, pid=os.getpid(), device="cpu", threads=1)
wait_for("warm_up")
if how == "no ready":
    epoch(0, False)
say("ready")
if how == "done before go":
    say("done")
wait_for("go")
epoch(0, False, (0, 2**64 - 1) if how == "all of time" else None)
if how == "flood":
    for_ever("memory")
if how == "chatter":
    until_stop("memory")
if how == "harmless words":
    print("All good: no MemoryError happened", flush=True)
    os._exit(7)
if how == "retried":
    print("CUDA out of memory. Retrying with half of it", file=sys.stderr, flush=True)
    raise RuntimeError("half of it will not do")
epoch(1, how != "unmeasured", LIES[how]() if how in LIES else None, 2**64 - 1 if how == "too many items" else 8)
say("done")
if how == "one more":
    epoch(2, True)
if how == "exit after done":
    os._exit(3)
try:
    wait_for("stop")
except StopIteration:
    pass
"#;

/// Runs of a liar, one for each way to lie.
fn lies(how: &[&str]) -> (Bench, Vec<StoredRun>) {
    let toml = "command = [\"python\", \"tell.py\", \"--how={how}\"]\nenvironment = \"system\"\n[settings]\nhow = \"honest\"\n";
    let bench = Bench::of(&format!("stall_timeout = \"5s\"\n[axes]\nsharing = \"solo\"\nworkload = \"liar\"\nhow = {how:?}\n"))
        .file("workloads/liar/workload.toml", toml)
        .file("workloads/liar/tell.py", LIAR);
    bench.run(&[]).exits(1);
    bench.nothing_is_left(Duration::ZERO);
    let runs = bench.runs();
    let of = |how: &&str| {
        let own = |r: &&StoredRun| r.record.repetition == 1 && r.record.cell.members[0].settings["how"] == *how;
        runs.values().find(own).expect("each was run").clone()
    };
    let runs = how.iter().map(of).collect();
    (bench, runs)
}

#[test]
fn what_cannot_be_true_is_a_protocol_error_and_is_not_stored() {
    let rows = [
        ("no hello", "sends `ready` before its `hello`"),
        ("no ready", "sends `epoch` before `go`"),
        ("done before go", "sends `done` "),
        ("all of time", "before `go`: times must be of `time.monotonic_ns()`"),
        ("far future", "epoch 1 of member 0 ends 10800 s after its report"),
        ("the wall clock", "not of `time.time_ns()`"),
        ("no length", "ends when it begins"),
        ("overlap", "before epoch 0 ends"),
        ("unmeasured", "reports epoch 1 as unmeasured"),
        ("too many items", "18446744073709551615 items"),
        ("one more", "reports epoch 2 as measured, but epoch 1 alone is measured"),
    ];
    let (_bench, runs) = lies(&rows.map(|(how, _)| how));
    for ((how, wanted), run) in rows.iter().zip(&runs) {
        let Outcome::ProtocolError { member: 0, message } = &run.record.outcome else {
            panic!("{how}: {:?}", run.record.outcome)
        };
        assert!(message.contains(wanted), "{how}: {message}");
        assert_eq!(run.record.validity.verdict, Verdict::Discarded, "{how}");
        let (from_ns, to_ns) = (run.record.timeline.launched_ns, run.record.timeline.ended_ns);
        let told = crate::support::epochs(run);
        assert!(told.iter().all(|e| from_ns < e.start_ns && e.start_ns < e.end_ns && e.end_ns < to_ns), "{how}: {told:?}");
    }
}

#[test]
fn an_end_has_one_name_whatever_was_said_before() {
    let (_bench, runs) = lies(&["honest", "exit after done", "harmless words", "retried"]);
    assert_eq!(runs[0].record.outcome, Outcome::Completed);
    assert_eq!(crash(&runs[1]), (0, "exited with 3".into(), "after `done`".into()));
    assert_eq!(crash(&runs[2]), (0, "exited with 7".into(), "in epoch 1".into()));
    assert_eq!(crash(&runs[3]), (0, "exited with 1".into(), "in epoch 1".into()));
}

#[test]
fn no_member_talks_so_much_that_nobody_looks_at_the_time() {
    let (_bench, runs) = lies(&["flood before hello", "flood", "chatter"]);
    for run in &runs[..2] {
        let Outcome::ProtocolError { member: 0, message } = &run.record.outcome else { panic!("{:?}", run.record.outcome) };
        assert!(message.starts_with("member 0 floods the channel: "), "{message}");
    }
    let stalled = Outcome::TimedOut { member: 0, phase: "measure".into(), message: "finished no epoch for 5 s".into() };
    assert_eq!(runs[2].record.outcome, stalled);
}

#[test]
fn what_arrives_while_collo_is_stopped_arrived_in_time() {
    let bench = Bench::of("stall_timeout = \"1s\"\n[axes]\nsharing = \"solo\"\nworkload = \"sleep\"\nseconds = 0.4\nitems = 4");
    let mut collo = bench.start(&["run", "x", "--no-report"]);
    crate::support::wait_for("a first epoch", || {
        let events = bench.runs_folder().find("last").ok()?.partials().ok()?.first().map(|p| p.join("events.jsonl"))?;
        std::fs::read_to_string(events).ok()?.contains("\"epoch\"").then_some(())
    });
    collo.signal(nix::sys::signal::Signal::SIGSTOP);
    std::thread::sleep(Duration::from_secs(3));
    collo.signal(nix::sys::signal::Signal::SIGCONT);
    collo.ends().exits(0);
    assert_eq!(bench.run_of(1).record.outcome, Outcome::Completed);
}

#[test]
fn lines_of_a_foreign_script_that_cannot_be_true_are_a_protocol_error() {
    let toml = "command = [\"python\", \"say.py\", \"--how={how}\"]\nenvironment = \"system\"\n[settings]\nhow = \"\"\n\
                [epochs]\npattern = '^epoch (?P<epoch>\\d+) took (?P<seconds>\\S+) s'\n";
    let script = "import sys, time\nhow = sys.argv[1].split('=')[1]\nprint('epoch 5 took 0.1 s') if how == 'back' else None\n\
                  seconds = {'huge': '99999', 'nan': 'nan', 'all at once': '5.0', 'back': '0.1'}[how]\n\
                  time.sleep(0.3)\nprint(*(f'epoch {n} took {seconds} s' for n in (1, 2, 3)), sep='\\n', flush=True)\ntime.sleep(20)\n";
    let how = ["huge", "nan", "all at once", "back"];
    let bench = Bench::of(&format!("epochs = 3\n[axes]\nsharing = \"solo\"\nworkload = \"says\"\nhow = {how:?}\n"))
        .file("workloads/says/workload.toml", toml)
        .file("workloads/says/say.py", script);
    bench.run(&[]).exits(1);
    for run in bench.runs().values() {
        let Outcome::ProtocolError { member: 0, message } = &run.record.outcome else { panic!("{:?}", run.record.outcome) };
        assert!(message.starts_with("the output "), "{message}");
        assert!(crate::support::epochs(run).iter().all(|e| e.start_ns >= run.record.timeline.launched_ns));
    }
}

#[test]
fn epochs_whose_lines_a_foreign_script_kept_back_are_no_epochs_of_0_s() {
    let toml =
        "command = [\"python\", \"say.py\"]\nenvironment = \"system\"\n[epochs]\npattern = '^epoch (?P<epoch>\\d+) ended'\n";
    let script = "import sys, time\ntime.sleep(0.2)\n\
                  sys.stdout.write('epoch 1 ended\\nepoch 2 ended\\nepoch 3 ended\\n')\nsys.stdout.flush()\n";
    let bench = Bench::of("epochs = 3\n[axes]\nsharing = \"solo\"\nworkload = \"says\"\n")
        .file("workloads/says/workload.toml", toml)
        .file("workloads/says/say.py", script);
    bench.run(&[]).exits(1);
    let run = bench.run_of(1);
    let Outcome::ProtocolError { member: 0, message } = &run.record.outcome else { panic!("{:?}", run.record.outcome) };
    assert!(message.starts_with("the output reports the ends of epochs 1 and 2 at once"), "{message}");
    assert_eq!(crate::support::epochs(&run).len(), 1, "the first, which began with the script and counts as warm-up");
}

/// It speaks the protocol, but leaves right behind its `done`.
const LEAVES: &str = "import collo, os, time
member = collo.connect()
member.hello(model=('net', 1))
member.ready()
for epoch in member.epochs():
    if epoch.index > 0 and not epoch.measured:
        os._exit(0)
    for _ in epoch.batches(range(2)):
        time.sleep(0.02)
    epoch.finish(items=2)
";

#[test]
fn a_member_that_leaves_right_behind_done_has_crashed_every_time() {
    let bench = Bench::of("repetitions = 6\nepochs = 2\n[axes]\nworkload = \"leaves\"")
        .file("workloads/leaves/workload.toml", "command = [\"python\", \"train.py\"]\nenvironment = \"system\"\n")
        .file("workloads/leaves/train.py", LEAVES);
    bench.run(&["--keep-going"]).exits(1);
    for run in bench.runs().values() {
        let Outcome::Crashed { message, .. } = &run.record.outcome else { panic!("{:?}", run.record.outcome) };
        assert_eq!(message, "after `done`, before it was asked to stop");
    }
}
