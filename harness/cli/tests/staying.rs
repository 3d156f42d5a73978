//! Nothing stays: whatever collo starts ends with it or before it, however either of them ends.

use std::process::Command;
use std::time::Duration;

use collo_store::{Outcome, Verdict};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{Answer, Bench, Running, crash, is_alive, wait_for};

/// How long what a killed collo had started may take to be gone.
const TIMEOUT: Duration = Duration::from_secs(5);

const TRAINS: &str = "import os, signal, sys, time, collo
member = collo.connect()
member.hello(device=\"cpu\")
member.wait_for_warm_up()
member.ready()
for epoch in member.epochs():
    time.sleep(0.05)
    epoch.finish(items=1)
";

/// A double-forked daemon in a session of its own that no signal but one ends, with all streams open.
const DAEMON: &str = "trap '' TERM HUP INT\nsetsid sh -c \"trap '' TERM HUP INT; touch $1; while :; do sleep 600; done\" &\n";

fn bench(toml: &str, files: &[(&str, &str)]) -> Bench {
    let mut bench = Bench::of("[axes]\nworkload = \"mine\"\n").file("workloads/mine/train.py", TRAINS);
    let toml = format!("command = [\"python\", \"train.py\"]\nenvironment = \"system\"\n{toml}");
    bench = bench.file("workloads/mine/workload.toml", &toml);
    for (name, text) in files {
        bench = bench.file(name, text);
    }
    bench
}

/// Data whose preparation leaves a daemon and then does this; `there` is a file that tells that it runs.
fn preparing(then: &str, toml: &str) -> Bench {
    let script = format!("{DAEMON}while [ ! -e $1 ]; do sleep 0.01; done\n{then}\n");
    bench(&format!("prepare = [\"sh\", \"prepare.sh\", \"there\"]\n{toml}"), &[("workloads/mine/prepare.sh", &script)])
}

/// Send a signal as soon as this file is there; what collo says to it.
fn signalled(bench: &Bench, there: &str, signal: Signal) -> Answer {
    // Also where these tests run under `nohup`, which collo would obey.
    // SAFETY: it installs no handler that could run.
    let _ = unsafe { nix::sys::signal::signal(Signal::SIGHUP, nix::sys::signal::SigHandler::SigDfl) };
    let mut running: Running = bench.start(&["run", "x", "--no-report"]);
    wait_for("the program", || bench.at(there).exists().then_some(()));
    running.signal(signal);
    let answer = running.ends();
    bench.nothing_is_left(if signal == Signal::SIGKILL { TIMEOUT } else { Duration::ZERO });
    answer
}

#[test]
fn collo_that_is_stopped_while_data_is_prepared_says_so_and_leaves_nothing() {
    for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 4), (Signal::SIGHUP, 4)] {
        let bench = preparing("sleep 600", "");
        let answer = signalled(&bench, "workloads/mine/there", signal).exits(code);
        answer.says(&format!("error: stopped while preparing the data of `mine`\n  caused by: received {}", signal.as_str()));
        assert!(!bench.at("runs").exists(), "nothing was measured");
    }
}

#[test]
fn collo_that_is_killed_while_data_is_prepared_leaves_nothing() {
    let bench = preparing("sleep 600", "");
    assert_eq!(signalled(&bench, "workloads/mine/there", Signal::SIGKILL).code, None);
}

#[test]
fn what_the_preparation_of_data_leaves_behind_is_neither_waited_for_nor_left() {
    let bench = preparing("echo '{\"dataset\": \"drawn\", \"synthetic\": true}'", "");
    bench.run(&[]).exits(0).says("drawn");
    bench.nothing_is_left(Duration::ZERO);
}

#[test]
fn a_preparation_that_kills_its_supervisor_leaves_nothing() {
    let bench = preparing("sleep 600 & kill -9 $PPID; wait", "");
    bench.run(&[]).exits(3).says("error: the data of `mine` cannot be prepared");
    bench.nothing_is_left(Duration::ZERO);
}

#[test]
fn data_that_are_never_ready_are_given_up_with_the_key_that_gives_them_longer() {
    let bench = preparing("sleep 600", "prepare_timeout = \"1s\"");
    let answer =
        bench.run(&[]).exits(3).says("error: the data of `mine` cannot be prepared\n  caused by: it did not finish within 1 s");
    assert_eq!(answer.last_line(), "hint: `prepare_timeout = \"12h\"` in workloads/mine/workload.toml allows longer");
    bench.nothing_is_left(Duration::ZERO);
}

#[test]
fn an_interpreter_that_hangs_goes_with_collo() {
    for (signal, code) in [(Signal::SIGTERM, Some(4)), (Signal::SIGKILL, None)] {
        let bench = bench("", &[("hang.sh", &format!("#!/bin/sh\nset -- there\n{DAEMON}sleep 600\n"))]);
        Command::new("chmod").arg("+x").arg(bench.at("hang.sh")).status().expect("chmod");
        let toml = format!("command = [\"python\", \"train.py\"]\nenvironment = \"{}\"\n", bench.at("hang.sh").display());
        bench.write("workloads/mine/workload.toml", &toml);
        let answer = signalled(&bench, "there", signal);
        assert_eq!(answer.code, code, "{}", answer.stderr);
        if code.is_some() {
            answer.says("error: stopped while providing Python, by SIGTERM");
        }
    }
}

/// A member that stops its supervisor at this point and goes on, with a daemon beside it.
fn stops_its_supervisor(at: &str) -> Bench {
    let stop = "os.system('setsid sleep 600 &'); os.kill(os.getppid(), signal.SIGSTOP)\n";
    let script = match at {
        "hello" => TRAINS.replace("member = collo", &format!("{stop}member = collo")),
        "epoch" => TRAINS.replace("    time.sleep(0.05)\n", &format!("    {stop}    time.sleep(0.05)\n")),
        _ => format!("{TRAINS}    if epoch.index == 1: {stop}"),
    };
    bench("", &[("workloads/mine/train.py", &script)])
}

#[test]
fn a_supervisor_that_was_stopped_is_killed_and_its_members_number_is_none() {
    let benches = ["hello", "epoch", "end"].map(stops_its_supervisor);
    let running = benches.each_ref().map(|bench| bench.start(&["run", "x", "--no-report"]));
    for (bench, running) in benches.iter().zip(running) {
        let answer = running.ends();
        bench.nothing_is_left(Duration::ZERO);
        answer.exits(1).says("its supervisor stopped responding and was killed");
        let run = bench.run_of(1);
        assert_eq!(crash(&run).1, "its supervisor stopped responding and was killed");
        assert_eq!(run.record.validity.verdict, Verdict::Discarded);
    }
}

/// collo and its supervisors killed at one moment, so that nobody is left to sweep up: what stays is the member's daemon.
fn killed_with_its_supervisors() -> Option<(Bench, u32)> {
    let script = TRAINS.replace("member.ready()", "os.system('setsid sleep 600 &')\nmember.ready()\ntime.sleep(60)");
    let bench = bench("", &[("workloads/mine/train.py", &script)]);
    let mut running = bench.start(&["run", "x", "--no-report"]);
    let daemon = || bench.left().into_iter().find(|(_, line)| line.starts_with("sleep 600"));
    wait_for("the daemon", daemon);
    running.signal(Signal::SIGSTOP);
    for (pid, _) in bench.left().into_iter().filter(|(_, line)| line.contains("__supervise")) {
        kill(Pid::from_raw(pid as i32), Signal::SIGKILL).expect("it is there");
    }
    running.signal(Signal::SIGKILL);
    assert_eq!(running.ends().code, None);
    let (pid, _) = daemon()?;
    Some((bench, pid))
}

/// What survives is ended by this command of this bench, and it says so. Any collo of this user does that, also one of another test, so
/// now and then the command finds nothing; what survived is gone in any case.
fn ended_by(arguments: &[&str]) {
    let said = (0..10).any(|_| {
        let Some((bench, daemon)) = killed_with_its_supervisors() else { return false };
        bench.write("workloads/mine/train.py", TRAINS);
        let answer = bench.collo(arguments).exits(0);
        bench.nothing_is_left(Duration::ZERO);
        let again = bench.collo(&["restore"]).exits(0);
        assert!(!again.stderr.contains(&daemon.to_string()), "it is said once: {}", again.stderr);
        answer.stderr.contains(&format!("left behind by a killed collo: {daemon} `sleep`"))
    });
    assert!(said, "`collo {}` says nothing", arguments.join(" "));
}

#[test]
fn what_survives_collo_and_its_supervisors_is_ended_by_the_next_run() {
    ended_by(&["run", "x", "--no-report"]);
}

#[test]
fn what_survives_collo_and_its_supervisors_is_ended_by_restore() {
    ended_by(&["restore"]);
}

/// A process that is nobody's by its environment, by its unique command line.
fn unmarked(seconds: &str) -> Option<u32> {
    let entries = fs_err::read_dir("/proc").expect("readable").flatten();
    let mut pids = entries.filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    let line = format!("sleep\0{seconds}\0");
    pids.find(|&pid| std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|found| found == line.as_bytes()) && is_alive(pid))
}

#[test]
fn what_has_thrown_its_mark_away_is_found_by_its_control_group_where_one_can_be_made() {
    let seconds = format!("600.{}", std::process::id());
    let daemon = format!("os.system('env -i setsid sleep {seconds} &')\nmember.ready()\ntime.sleep(60)");
    let bench = bench("", &[("workloads/mine/train.py", &TRAINS.replace("member.ready()", &daemon))]);
    let mut running = bench.start(&["run", "x", "--no-report"]);
    let daemon = wait_for("the daemon", || unmarked(&seconds));
    let group = fs_err::read_to_string(format!("/proc/{daemon}/cgroup")).expect("it is there");
    running.signal(Signal::SIGSTOP);
    for (pid, _) in bench.left().into_iter().filter(|(_, line)| line.contains("__supervise")) {
        kill(Pid::from_raw(pid as i32), Signal::SIGKILL).expect("it is there");
    }
    running.signal(Signal::SIGKILL);
    running.ends();
    bench.collo(&["restore"]).exits(0);
    if group.contains("/collo.") {
        assert_eq!(unmarked(&seconds), None);
    } else {
        eprintln!("no control group can be made here, so nothing is tested: {group}");
        let _ = kill(Pid::from_raw(daemon as i32), Signal::SIGKILL);
    }
}

#[test]
fn a_living_collo_loses_nothing_to_another() {
    let slow = TRAINS.replace("time.sleep(0.05)", "time.sleep(1.5)");
    let long = bench("", &[("workloads/mine/train.py", &slow)]);
    let running = long.start(&["run", "x", "--no-report"]);
    wait_for("a supervisor", || long.left().into_iter().find(|(_, line)| line.contains("__supervise")));
    long.collo(&["restore"]).exits(0);
    bench("", &[]).run(&[]).exits(0);
    running.ends().exits(0);
    assert_eq!(long.run_of(1).record.outcome, Outcome::Completed);
}

#[test]
fn a_script_that_never_stops_printing_is_still_ended_in_time() {
    let endless = "import sys\nwhile True:\n    sys.stdout.write('step 17 loss 0.25\\n' * 1000)\n";
    let epochs = "[epochs]\npattern = \"^epoch (?P<epoch>[0-9]+)\"\n";
    let bench = bench(epochs, &[("workloads/mine/train.py", endless)]);
    let experiment =
        "schema = 1\ndevice = \"cpu\"\nrepetitions = 1\ncooldown = \"0s\"\ntimeout = \"1s\"\n[axes]\nworkload = \"mine\"\n";
    bench.write("experiments/x.toml", experiment);
    bench.run(&[]).exits(1).says("timed out");
    bench.nothing_is_left(Duration::ZERO);
    assert!(matches!(bench.run_of(1).record.outcome, Outcome::TimedOut { .. }));
}

#[test]
fn a_script_that_prints_much_is_measured() {
    let much = "import sys\nfor _ in range(100):\n    sys.stdout.write('x' * 1_000_000)\nfor epoch in range(3):\n    sys.stdout.write('step 17\\n' * 20_000)
    print('\\nepoch', epoch, flush=True)\n";
    let bench = bench("[epochs]\npattern = \"^epoch (?P<epoch>[0-9]+)\"\n", &[("workloads/mine/train.py", much)]);
    let experiment = "schema = 1\ndevice = \"cpu\"\nrepetitions = 1\ncooldown = \"0s\"\nstall_timeout = \"10s\"\n[axes]\nworkload = \"mine\"\n";
    bench.write("experiments/x.toml", experiment);
    bench.run(&[]).exits(0);
    assert_eq!(crate::support::epochs(&bench.run_of(1)).len(), 3);
}

#[test]
fn without_a_path_nothing_is_measured_and_the_reason_is_said() {
    let bench = bench("", &[]);
    let answer = bench.command(&["run", "x", "--no-report"]).env_remove("PATH").output().expect("collo starts");
    let answer = Answer::from(answer).exits(3).says("error: PATH is not set, so no Python can be found");
    assert_eq!(answer.last_line(), "hint: `PATH=/usr/local/bin:/usr/bin:/bin collo …`");
    assert!(!bench.at("runs").exists(), "no run is recorded as crashed");
}

#[test]
fn a_project_below_a_folder_with_a_colon_is_refused_with_the_way_out_that_works() {
    let bench = bench("", &[]);
    let colon = bench.at("a:b");
    fs_err::create_dir(&colon).expect("a folder");
    for folder in ["experiments", "workloads"] {
        fs_err::rename(bench.at(folder), colon.join(folder)).expect("moved");
    }
    let by = |folder: &str| bench.collo(&["-C", folder, "run", "x", "--no-report"]);
    by("a:b").exits(3).says("a:b/workloads` contains a colon").says("hint: use another name: `ln -s ");
    std::os::unix::fs::symlink(&colon, bench.at("link")).expect("linked");
    by("link").exits(0);
}
