//! Members that are threads of one process, through the command: what is measured, and what comes of members that do what no member of
//! a process of several should do. The members are those that the Python tests have too, `workloads/tests/hosted`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use collo_store::{AttestationVerdict, Outcome, StoredRun};
use nix::sys::signal::Signal;

use crate::support::{Bench, wait_for};

const HOSTILE: &str = include_str!("../../../workloads/tests/hosted/hostile.py");

/// Members whose second one, `who = 1`, does what `act` says.
const WORKLOAD: &str = r#"
description = "a member that does one thing which no member should"
command = ["python", "train.py", "--act={act}", "--who={who}", "--other={other}", "--seconds={seconds}"]
environment = "system"

[settings]
act = "sys_exit"
who = 1
other = 3       # the first member's channel
seconds = 0.05
"#;

/// Two members in one process; limits are short.
fn bench(keys: &str) -> Bench {
    let head = "stall_timeout = \"2s\"\nset_up_timeout = \"6s\"\nmeasure_for = \"200ms\"\n";
    let bench = Bench::of(&format!("{head}{keys}"));
    bench.write("workloads/hostile/workload.toml", WORKLOAD);
    bench.write("workloads/hostile/train.py", HOSTILE);
    bench
}

/// The acts, each in a group of two.
fn acts(acts: &[&str], more: &str) -> Bench {
    let listed: Vec<String> = acts.iter().map(|act| format!("\"{act}\"")).collect();
    let axes = format!("[axes]\nworkload = \"hostile\"\nsharing = \"threads\"\ndegree = 2\nact = [{}]\n", listed.join(", "));
    bench(&format!("{more}{axes}"))
}

/// The run of each act.
fn runs(bench: &Bench) -> BTreeMap<String, StoredRun> {
    let all = bench.runs().into_values().filter(|run| run.record.cell.degree == 2);
    all.map(|run| (run.record.cell.members[0].settings["act"].as_str().expect("an act").to_string(), run)).collect()
}

/// The outcome in a line.
fn said(run: &StoredRun) -> String {
    match &run.record.outcome {
        Outcome::Completed => "completed".into(),
        Outcome::Crashed { member, status, message, .. } => format!("member {member} {status}: {message}"),
        Outcome::ProcessEnded { status, .. } => format!("the process {status}"),
        Outcome::OutOfMemory { member, .. } => format!("member {member} out of memory"),
        Outcome::TimedOut { member, phase, .. } => format!("member {member} timed out in {phase}"),
        Outcome::ProtocolError { member, message } => format!("member {member} protocol: {message}"),
        other => other.as_str().into(),
    }
}

/// Every act ends as its line says, with nothing left; a line is an act and the beginning of what is said of it.
fn end_as(lines: &[(&str, &str)]) {
    let names: Vec<&str> = lines.iter().map(|(act, _)| *act).collect();
    let bench = acts(&names, "");
    bench.run(&[]);
    bench.nothing_is_left(Duration::from_secs(60));
    let runs = runs(&bench);
    let wrong: Vec<String> = lines
        .iter()
        .filter_map(|(act, expected)| {
            let found = runs.get(*act).map_or("not run".into(), said);
            (!found.starts_with(expected)).then(|| format!("{act}: expected {expected:?}, found {found:?}"))
        })
        .collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Exits and signals.
const ENDS: &[(&str, &str)] = &[
    ("sys_exit", "member 1 exited with 3: in epoch 1"),
    ("sys_exit_0", "member 1 exited with 0: before `done`, in epoch 1"),
    ("sys_exit_text", "member 1 exited with 1: in epoch 1"),
    ("exit_large", "member 1 exited with 1: in epoch 1"),
    ("os_exit", "the process exited with 4"),
    ("os_exit_0", "the process exited with 0"),
    ("os_exit_early", "the process exited with 5"),
    ("os_exit_in_a_thread", "the process exited with 4"),
    ("abort", "the process killed by SIGABRT"),
    ("segfault", "the process killed by SIGSEGV"),
    ("terminate", "the process killed by SIGTERM"),
    ("kill", "the process killed by SIGKILL"),
    ("interrupt", "the process killed by SIGINT"),
    ("alarm", "the process killed by SIGALRM"),
    ("watchdog", "the process exited with 1"),
];

/// Errors, raised wherever one can be.
const ERRORS: &[(&str, &str)] = &[
    ("raise_error", "member 1 exited with 1: mat1 and mat2 shapes cannot be multiplied (32x64 and 128x10), in epoch 1"),
    ("raise_early", "member 1 exited with 1: in start"),
    ("raise_out_of_memory", "member 1 out of memory"),
    ("take_a_pebibyte", "member 1 out of memory"),
    ("raise_no_exception", "member 1 exited with 1: than an error, in epoch 1"),
    ("raise_keyboard_interrupt", "member 1 exited with 1: KeyboardInterrupt, in epoch 1"),
    ("recurse", "member 1 exited with 1: maximum recursion depth exceeded, in epoch 1"),
    ("raise_with_bad_text", "member 1 exited with 1: in epoch 1"),
    ("replace_excepthook", "member 1 exited with 1: in epoch 1"),
    ("break_excepthook", "member 1 exited with 1: in epoch 1"),
    ("handle_a_signal", "member 1 exited with 1: signal only works in main thread of the main interpreter, in epoch 1"),
    ("read_stdin", "member 1 exited with 1: EOF when reading a line, in epoch 1"),
    ("raise_in_a_thread", "completed"),
    ("exit_in_a_thread", "completed"),
    ("raise_at_exit", "completed"),
];

/// What a process has once, and what it only seems to have once.
const SETTINGS: &[(&str, &str)] = &[
    ("switch_rarely", "member 1 exited with 1: `sys.setswitchinterval` is"),
    ("switch_rarely_later", "member 1 exited with 1: `sys.setswitchinterval` is"),
    ("lift_the_recursion_limit", "member 1 exited with 1: `sys.setrecursionlimit` is"),
    ("collect_no_garbage", "member 1 exited with 1: `gc.enable` is"),
    ("collect_garbage_always", "member 1 exited with 1: `gc.set_threshold` is"),
    ("limit_memory", "member 1 exited with 1: `resource.RLIMIT_AS` is"),
    ("trace_threads", "member 1 exited with 1: `threading.settrace` is"),
    ("break_threads", "member 1 exited with 1: `threading.Thread.start()` is"),
    ("stop_the_clock", "member 1 exited with 1: `time.monotonic_ns()` is"),
    ("break_print", "member 1 exited with 1: `builtins.print()` is"),
    ("replace_thread_hook", "member 1 exited with 1: `threading.excepthook()` is"),
    ("break_collo", "member 1 exited with 1: epoch 0 has no end: call `epoch.finish()` after its last batch, in epoch 0"),
    ("change_folder", "completed"),
    ("change_umask", "completed"),
    ("clear_environment", "completed"),
    ("change_arguments", "completed"),
    ("change_path", "completed"),
    ("forget_modules", "completed"),
    ("trace", "completed"),
];

/// Messages, channels, output.
const CHANNELS: &[(&str, &str)] = &[
    ("close_own_channel", "completed"),
    ("close_own_descriptor", "completed"),
    ("close_another_channel", "member 1 exited with 1: [Errno 9] Bad file descriptor, in epoch 1"),
    ("close_all_channels", "the process exited with 0"),
    ("close_everything", "the process exited with 0"),
    ("close_stdio", "completed"),
    ("say_garbage", "member 1 protocol: line 4 of member 1 is not JSON: `epoch 1 loss 0.4`"),
    ("say_a_huge_line", "member 1 protocol: line 4 of member 1 exceeds 1 MiB"),
    (
        "say_half_a_line",
        "member 1 protocol: line 4 of member 1 is not JSON: `{\"event\":\"epo{\"event\": \"left\", \"code\": 0}`",
    ),
    ("say_left", "member 1 exited with 0: before `done`, in epoch 1"),
    ("say_garbage_for_another", "member 1 exited with 1: [Errno 9] Bad file descriptor, in epoch 1"),
    ("ready_twice", "member 1 exited with 1: `member.ready()` was called before: it is said once"),
    ("hello_twice", "member 1 exited with 1: `member.hello()` was called before: it is said once, in warm-up"),
    (
        "end_an_epoch_twice",
        "member 1 exited with 1: epoch 1 was finished before: call `epoch.finish()` once, after its last batc",
    ),
    ("replace_output", "completed"),
    ("close_output", "completed"),
    ("print_much", "completed"),
    ("fault_handler", "completed"),
];

/// Processes and threads that a member starts.
const CHILDREN: &[(&str, &str)] = &[
    ("fork", "completed"),
    ("fork_and_go_on", "completed"),
    ("fork_in_a_thread", "completed"),
    ("double_fork", "completed"),
    ("leave_a_program", "completed"),
    ("fork_many", "completed"),
    ("many_threads", "completed"),
    ("leave_a_daemon_thread", "member 1 exited with 0: before `done`, in epoch 1"),
];

/// Members that never come to an end, each of which a time limit ends.
const STUCK: &[(&str, &str)] = &[
    ("become_another", "member 0 timed out in measure"),
    ("deadlock", "member 1 timed out in measure"),
    ("hang_at_exit", "completed"),
    ("ignore_stop", "completed"),
    ("leave_a_thread", "member 1 timed out in measure"),
    ("loop", "member 1 timed out in measure"),
    ("loop_with_the_lock", "member 0 timed out in measure"),
    ("never_hello", "member 1 timed out in set-up"),
    ("never_ready", "member 1 timed out in warm-up"),
    ("stop", "member 0 timed out in measure"),
    ("wait_outside_python", "member 1 timed out in measure"),
    ("wait_with_the_lock", "member 0 timed out in measure"),
];

#[test]
fn a_member_that_exits_leaves_alone_and_one_that_ends_the_process_takes_all_with_it() {
    end_as(ENDS);
}

#[test]
fn an_error_ends_the_member_that_raised_it() {
    end_as(ERRORS);
}

#[test]
fn what_a_process_has_once_is_the_same_for_all_or_the_error_of_who_changed_it() {
    end_as(SETTINGS);
}

#[test]
fn nobody_speaks_for_another() {
    end_as(CHANNELS);
}

#[test]
fn nothing_that_a_member_starts_is_left() {
    end_as(CHILDREN);
}

#[test]
#[ignore = "a minute; `just torture hostile` runs it"]
fn whoever_never_ends_is_ended_with_the_process() {
    end_as(STUCK);
}

#[test]
#[ignore = "prints what comes of every act, for whoever adds one"]
fn print_what_comes_of_every_act() {
    let listed = std::process::Command::new("python3")
        .args(["-c", HOSTILE])
        .env("PYTHONPATH", crate::support::checkout().join("workloads"))
        .output()
        .expect("python3");
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    let names: Vec<&str> = text.lines().filter_map(|line| line.split(':').next()).collect();
    assert!(names.len() >= 60, "{text}");
    let bench = acts(&names, "");
    bench.run(&[]);
    bench.nothing_is_left(Duration::from_secs(60));
    for (act, run) in runs(&bench) {
        println!("        (\"{act}\", \"{}\"),", said(&run));
    }
}

#[test]
fn threads_of_one_process_are_measured_and_attested() {
    let keys = "[axes]\nworkload = \"hostile\"\nact = \"sys_exit\"\nwho = 99\nsharing = \"threads\"\ndegree = 3\n";
    let bench = bench(keys);
    bench.run(&[]).exits(0);
    let run = bench.run_of(3);
    let record = &run.record;
    assert_eq!(record.outcome, Outcome::Completed);
    assert_eq!(record.attestation.verdict, AttestationVerdict::Attested, "{:#?}", record.attestation.checks);
    let process = record.process.as_ref().expect("there was one");
    assert_eq!(process.exit.as_deref(), Some("exited with 0"));
    assert!(process.cpu_time_s.is_some_and(|s| s > 0.0) && process.peak_rss_bytes.is_some_and(|bytes| bytes > 1 << 20));
    assert!(process.command.iter().any(|word| word.ends_with("collo_host.py")), "{:?}", process.command);
    let pids: Vec<Option<u32>> = record.members.iter().map(|m| m.pid).collect();
    assert_eq!(pids, vec![process.pid; 3], "they are one process");
    for member in &record.members {
        assert_eq!((member.cpu_time_s, member.peak_rss_bytes), (None, None), "that is told of all together");
        assert_eq!(member.exit.as_deref(), Some("exited with 0"));
    }
    let threads: Vec<&str> = record
        .attestation
        .checks
        .iter()
        .filter(|check| check.what == "thread of the process")
        .filter_map(|check| check.found.as_deref())
        .collect();
    assert_eq!(threads.len(), 3, "{threads:?}");
    assert!(run.path.join("process.log").is_file() && !run.path.join("member-0.log").exists());
    bench.collo(&["verify", "last"]).exits(0);
}

#[test]
fn a_survivor_goes_on_where_the_experiment_says_so() {
    let keys = "member_failure = \"keep-survivors\"\n[axes]\nworkload = \"hostile\"\nact = \"raise_error\"\n\
                sharing = \"threads\"\ndegree = 2\n";
    let bench = bench(keys);
    bench.run(&[]);
    let run = bench.run_of(2);
    assert!(matches!(run.record.outcome, Outcome::Crashed { member: 1, .. }), "{:?}", run.record.outcome);
    let epochs = crate::support::epochs(&run);
    assert!(epochs.iter().filter(|e| e.member == 0 && e.measured).count() > 1, "the first went on: {epochs:?}");
    assert_eq!(run.record.members[0].exit.as_deref(), Some("exited with 0"));
}

#[test]
fn nothing_of_a_process_of_several_is_left_when_collo_is_killed() {
    let keys = "timeout = \"60s\"\n[axes]\nworkload = \"hostile\"\nact = \"sys_exit\"\nwho = 99\nseconds = 20.0\n\
                sharing = \"threads\"\ndegree = 2\n";
    let bench = bench(keys);
    let mut running = bench.start(&["run", "x", "--no-report", "--where", "degree == 2"]);
    wait_for("a process of two members", || bench.left().iter().any(|(_, line)| line.contains("collo_host.py")).then_some(()));
    running.signal(Signal::SIGKILL);
    drop(running.ends());
    bench.nothing_is_left(Duration::from_secs(60));
}

#[test]
fn what_cannot_be_in_one_process_is_refused_with_the_way_out() {
    let keys = "[axes]\nworkload = \"sleep\"\nsharing = [\"naive\", \"threads:no-lock\"]\ndegree = 2\n";
    let bench_of_lock = bench(keys);
    for said in [bench_of_lock.collo(&["plan", "x"]).exits(0).stdout, bench_of_lock.run(&[]).exits(0).stderr] {
        assert!(said.contains("is built with Python's global lock"), "{said}");
        assert!(said.contains("put a free-threaded Python first on the PATH"), "{said}");
    }
    let measured: BTreeSet<String> = bench_of_lock.runs().into_values().map(|run| run.record.cell.sharing).collect();
    assert!(measured.contains("naive") && !measured.contains("threads:no-lock"), "{measured:?}");
    let keys = "[[group]]\nmembers = [{ workload = \"sleep\" }, { workload = \"tiny\" }]\nsharing = \"threads\"\n";
    bench(keys).collo(&["plan", "x"]).answers("one process has one interpreter");
    let keys = "[axes]\nworkload = \"sleep\"\nsharing = \"thread\"\ndegree = 2\n";
    bench(keys).collo(&["plan", "x"]).exits(2).says("did you mean `threads`?");
    let apart = bench("cores = \"spread\"\n[axes]\nworkload = \"sleep\"\nsharing = [\"naive\", \"threads\"]\ndegree = 2\n");
    apart
        .collo(&["plan", "x"])
        .exits(0)
        .answers("`cores` gives each member its own, and threads of one process use those of their process");
    let keys = "[[group]]\nsharing = \"threads\"\n\
                members = [{ workload = \"hostile\", keep_cache = true }, { workload = \"hostile\" }]\n";
    let differ = bench(keys);
    differ.write(
        "workloads/hostile/workload.toml",
        &format!("{WORKLOAD}keep_cache = false\n").replace("={seconds}\"", "={seconds}\", \"{keep_cache}\""),
    );
    differ
        .collo(&["plan", "x"])
        .exits(3)
        .answers("its members differ in `keep_cache`, and threads of one process share one allocator");
    let keys = "[axes]\nworkload = \"sleep\"\nsharing = \"threads:lock\"\ndegree = 2\n";
    bench(keys).collo(&["plan", "x"]).exits(2).says("it is `threads` or `threads:no-lock`");
}
