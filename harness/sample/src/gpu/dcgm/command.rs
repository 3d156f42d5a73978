//! A running `dcgmi`: its output lines, and its end.
//!
//! It dies with the thread that started it, so that no stream outlives collo; that thread is the one that reads it.

use std::ffi::OsStr;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use collo_launch::children::{self, Own};
use collo_launch::{Errand, mark, tree};

/// Grace period after it is asked to end.
const GRACE: Duration = Duration::from_millis(700);

/// Longer lines are not dmon output.
const LONGEST_LINE: usize = 16 * 1024;

/// Meant for compute programs: DCGM numbers GPUs itself, and its newest tools complain about it (dcgmi/Environment.cpp).
const NOT_FOR_DCGM: &str = "CUDA_VISIBLE_DEVICES";

fn not_started(program: &str, e: &std::io::Error) -> String {
    match e.kind() {
        std::io::ErrorKind::NotFound => format!("no `{program}` on the PATH"),
        _ => format!("`{program}` does not start: {e}"),
    }
}

/// A running command.
pub struct Running {
    child: Child,
    _own: Own,
    out: PipeLines<std::process::ChildStdout>,
    err: PipeLines<std::process::ChildStderr>,
}

/// Complete lines of a pipe.
struct PipeLines<P> {
    pipe: Option<P>,
    rest: Vec<u8>,
}

/// A command's output since the last call.
#[derive(Debug, Default)]
pub struct Printed {
    pub out: Vec<String>,
    pub err: Vec<String>,
    /// Both pipes are closed: it has ended.
    pub ended: bool,
}

impl<P: Read> PipeLines<P> {
    /// Read once; call it when there is data, or the pipe is closed.
    fn read(&mut self, lines: &mut Vec<String>) {
        let mut buffer = [0; 8192];
        let Some(pipe) = &mut self.pipe else { return };
        match pipe.read(&mut buffer) {
            // What has no end was torn off: it is no line.
            Ok(0) => self.pipe = None,
            Ok(n) => self.rest.extend_from_slice(&buffer[..n]),
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => self.pipe = None,
        }
        while let Some(end) = self.rest.iter().position(|b| *b == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            lines.push(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_string());
        }
        if self.rest.len() > LONGEST_LINE {
            self.rest.clear();
            lines.push("a line without an end".into());
        }
    }
}

impl Running {
    /// CPU time that it has taken so far; `None` once it has ended.
    pub fn cpu_time_ns(&self) -> Option<u64> {
        tree::cpu_time_ns(&[self.child.id()])
    }

    /// Start it; the error says why it does not start.
    pub fn start<S: AsRef<OsStr>>(program: &str, arguments: impl IntoIterator<Item = S>) -> Result<Running, String> {
        let mut command = std::process::Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.env_remove(NOT_FOR_DCGM);
        // Ctrl-C is for collo, which ends what it started.
        command.process_group(0);
        children::begin(&mut command, Signal::SIGKILL);
        command.env(mark::NAME, mark::own());
        let (mut child, own) = children::spawn(&mut command).map_err(|e| not_started(program, &e))?;
        let out = PipeLines { pipe: child.stdout.take(), rest: Vec::new() };
        let err = PipeLines { pipe: child.stderr.take(), rest: Vec::new() };
        Ok(Running { child, _own: own, out, err })
    }

    /// Wait for lines, at most this long.
    pub fn wait(&mut self, at_most: Duration) -> Printed {
        let mut printed = Printed::default();
        let (out, err) = (self.out.pipe.as_ref().map(AsFd::as_fd), self.err.pipe.as_ref().map(AsFd::as_fd));
        let mut fds: Vec<PollFd> = out.iter().chain(&err).map(|p| PollFd::new(*p, PollFlags::POLLIN)).collect();
        if fds.is_empty() {
            printed.ended = true;
            return printed;
        }
        let timeout = PollTimeout::try_from(at_most).unwrap_or(PollTimeout::ZERO);
        // A signal cuts it short; whoever asks will ask again.
        let _ = nix::poll::poll(&mut fds, timeout);
        let mut ready = fds.iter().map(|fd| fd.any().unwrap_or(false));
        let (out, err) = (out.is_some() && ready.next() == Some(true), err.is_some() && ready.next() == Some(true));
        if out {
            self.out.read(&mut printed.out);
        }
        if err {
            self.err.read(&mut printed.err);
        }
        // A child that it left behind may hold its pipes open for ever.
        let nothing = printed.out.is_empty() && printed.err.is_empty();
        let gone = nothing && matches!(self.child.try_wait(), Ok(Some(_)));
        printed.ended = (self.out.pipe.is_none() && self.err.pipe.is_none()) || gone;
        printed
    }

    /// Wait for its own end, now that its pipes are closed; otherwise end it.
    pub fn finish(&mut self) -> Option<ExitStatus> {
        self.exits().or_else(|| self.end())
    }

    /// How it ended, if it does within the grace period.
    fn exits(&mut self) -> Option<ExitStatus> {
        let deadline = Instant::now() + GRACE;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(5)),
                _ => return None,
            }
        }
    }

    /// End it: first SIGTERM, then kill. Returns how it ended.
    pub fn end(&mut self) -> Option<ExitStatus> {
        if let Ok(Some(status)) = self.child.try_wait() {
            return Some(status);
        }
        // It was not waited for yet, so the number is still its own.
        let pid = Pid::from_raw(self.child.id().cast_signed());
        let _ = kill(pid, Signal::SIGTERM);
        if let Some(status) = self.exits() {
            return Some(status);
        }
        let _ = self.child.kill();
        self.child.wait().ok()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// A command that ends by itself.
pub struct DcgmCommand<'a> {
    pub program: &'a str,
    /// Its time limit.
    pub at_most: Duration,
    /// Whether the answer is no longer wanted.
    pub stop: &'a dyn Fn() -> bool,
}

/// A command's output.
pub struct DcgmOutput {
    pub out: String,
    /// Why it failed, if it did.
    pub failed: Option<String>,
}

impl DcgmCommand<'_> {
    /// Its output for these arguments, or why there is none.
    pub fn ask(&self, arguments: &[&str]) -> Result<DcgmOutput, String> {
        let errand = Errand::to(self.program, self.at_most).args(arguments).env(NOT_FOR_DCGM, None::<String>);
        let said = errand.ask_until(self.stop).map_err(|e| not_started(self.program, &e))?;
        let lines = |text: String| text.lines().map(str::to_string).collect::<Vec<_>>();
        match said.status {
            None if (self.stop)() => Err("sampling ended before".into()),
            None => Err(format!("`{} {}` does not answer", self.program, arguments.join(" "))),
            _ if said.success() => Ok(DcgmOutput { out: said.out(), failed: None }),
            status => Ok(DcgmOutput { out: said.out(), failed: Some(reason(&lines(said.err()), &lines(said.out()), status)) }),
        }
    }
}

/// Why a command failed, in its own words: its stderr, else its stdout (DCGM reports connection errors there), else how it ended.
pub fn reason(err: &[String], out: &[String], status: Option<ExitStatus>) -> String {
    let text = |lines: &[String]| {
        let bare = |l: &String| l.trim().trim_start_matches("Error: ").trim_end_matches('.').to_string();
        // A complaint comes last; tables and heads before it are none.
        let is_said = |l: &String| !l.is_empty() && !l.starts_with(['+', '|', '#']);
        let said: Vec<String> = lines.iter().map(bare).filter(is_said).collect();
        let said = &said[said.len().saturating_sub(3)..];
        (!said.is_empty()).then(|| said.join("; ").chars().take(400).collect::<String>())
    };
    let ended = || match status {
        Some(status) => format!("`dcgmi` ended without a message: {status}"),
        None => "`dcgmi` ended without a message".into(),
    };
    text(err).or_else(|| text(out)).unwrap_or_else(ended)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_what_the_command_says_and_else_how_it_ended() {
        let lines = |text: &str| text.lines().map(str::to_string).collect::<Vec<_>>();
        assert_eq!(reason(&lines("\nError setting watches.\n"), &lines("x"), None), "Error setting watches");
        assert_eq!(reason(&[], &lines("Error: no connection\n\nHost engine gone"), None), "no connection; Host engine gone");
        assert_eq!(reason(&[], &[], None), "`dcgmi` ended without a message");
    }

    #[test]
    fn lines_come_whole_and_what_is_torn_off_is_none() {
        let mut lines = PipeLines { pipe: Some(&b"GPU 0  0.1\r\nGPU 1  0.2\nGPU 2  0."[..]), rest: Vec::new() };
        let mut read = Vec::new();
        while lines.pipe.is_some() {
            lines.read(&mut read);
        }
        assert_eq!(read, ["GPU 0  0.1", "GPU 1  0.2"]);
    }
}
