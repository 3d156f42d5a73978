//! The program `nvidia-cuda-mps-control`: the daemon (`-d`, `-f`), or a way to talk to one.
//!
//! In: arguments, and commands on standard input, a line each. Out: answers, and 1 where there is no daemon.

use std::io::{BufRead, Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use nix::unistd::setsid;

use super::{daemon, fits, server, socket};

/// The hidden argument that makes the program the daemon behind `-d`.
const BEHIND: &str = "__daemon";
const NO_DAEMON: &str = "Cannot find MPS control daemon process";
const TAKEN: &str = "An instance of this daemon is already running";

/// Be the program.
pub fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |word: &str| arguments.iter().any(|a| a == word);
    if has(server::ROLE) {
        server::main();
        return ExitCode::SUCCESS;
    }
    if has("-f") || has(BEHIND) {
        return match daemon::run(has("-f")) {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => fails(&why),
        };
    }
    if has("-d") {
        return match start() {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => fails(&why),
        };
    }
    talk()
}

fn fails(why: &str) -> ExitCode {
    if !why.is_empty() {
        let _ = writeln!(std::io::stdout(), "{why}");
    }
    ExitCode::FAILURE
}

/// On standard error, unlike what a daemon prints that does not start.
fn no_daemon() -> ExitCode {
    let _ = writeln!(std::io::stderr(), "{NO_DAEMON}");
    ExitCode::FAILURE
}

/// Start the daemon in the background.
fn start() -> Result<(), String> {
    let scenario = crate::scenario::Scenario::from_environment()?;
    if connect().is_some() {
        return Err(TAKEN.into());
    }
    if scenario.has("mps-no-start") {
        return Err("MPS control daemon failed to start".into());
    }
    if !fits() {
        return Err(String::new());
    }
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let mut command = Command::new(program);
    command.arg0(super::CONTROL).arg(BEHIND).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // SAFETY: one system call between fork and exec.
    unsafe {
        command.pre_exec(|| Ok(setsid().map(|_| ())?));
    }
    let mut child = command.spawn().map_err(|e| e.to_string())?;
    let began = Instant::now();
    while !scenario.has("mps-slow") && connect().is_none() && began.elapsed() < Duration::from_secs(3) {
        if let Ok(Some(_)) = child.try_wait() {
            return Err(TAKEN.into());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

fn connect() -> Option<UnixStream> {
    if fits() { UnixStream::connect(socket()).ok() } else { None }
}

/// Pass commands on and show the answers. The status is 0 wherever the daemon answered, whatever its answer, but for `quit`, which has that
/// of the daemon (its manual page; `tests/vendor.rs`). Where no daemon answers the program ends without a look at its input, as NVIDIA's does: whoever
/// writes to it may find that nobody reads any more.
fn talk() -> ExitCode {
    crate::sim::linger(super::CONTROL);
    if connect().is_none() {
        return no_daemon();
    }
    let mut status = ExitCode::SUCCESS;
    let slow = crate::scenario::Scenario::from_environment().ok().and_then(|s| s.duration_s("slow-control"));
    if let Some(seconds) = slow {
        std::thread::sleep(Duration::from_secs_f64(seconds));
    }
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let line = line.trim();
        let Some(mut stream) = connect() else { return no_daemon() };
        let mut answer = String::new();
        let said = stream.write_all(format!("command {line}\n").as_bytes()).and_then(|()| stream.read_to_string(&mut answer));
        if said.is_err() {
            return no_daemon();
        }
        let (code, text) = answer.split_once('\n').unwrap_or(("1", ""));
        let mut out = std::io::stdout();
        let _ = out.write_all(text.as_bytes());
        let _ = out.flush();
        if code != "0" {
            status = ExitCode::FAILURE;
        }
        if line.split_whitespace().next() == Some("quit") {
            break;
        }
    }
    status
}
