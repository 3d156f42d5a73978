//! Short errands: a program with some input and a time limit. No supervisor is started for it, and it may run inside one.
//!
//! In: an errand, its input. Out: its output and its status. Neither a program that hangs nor a child that it leaves behind with
//! its streams open can block the caller for longer.

use std::io::{ErrorKind, PipeReader, PipeWriter, Read, Write, pipe};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use duct::Handle;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::errand::Errand;
use super::{children, mark};

/// Its output until its end, or until it was killed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandOutput {
    /// `None` if it took too long, or was no longer wanted.
    pub status: Option<ExitStatus>,
    pub out: Vec<u8>,
    pub err: Vec<u8>,
}

/// Output beyond this is read and discarded.
const MOST_BYTES: usize = 64 << 20;
/// How long its streams are read after its end: a child of its own may keep them open for ever.
const AFTERWARDS: Duration = Duration::from_millis(100);
const TICK_MS: u8 = 5;

impl CommandOutput {
    pub fn success(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }

    pub fn out(&self) -> String {
        String::from_utf8_lossy(&self.out).into_owned()
    }

    pub fn err(&self) -> String {
        String::from_utf8_lossy(&self.err).into_owned()
    }
}

impl Errand {
    /// Run it to its end within its time limit; the error is why it does not start. It is killed with all of its group.
    pub fn ask(self) -> std::io::Result<CommandOutput> {
        self.ask_until(&|| false)
    }

    /// The same, until `unwanted` returns true.
    pub fn ask_until(self, unwanted: &dyn Fn() -> bool) -> std::io::Result<CommandOutput> {
        let deadline = Instant::now() + self.limit;
        let (their_input, input) = pipe()?;
        let (out, their_out) = pipe()?;
        let (err, their_err) = pipe()?;
        let (handle, _own) = children::started(|| self.start(their_input, their_out, their_err), pid)?;
        let mut streams = Streams { input: Some(input), out: Some(out), err: Some(err) };
        let heard = streams.listen(&handle, &self.input, &|| unwanted() || Instant::now() >= deadline);
        if !matches!(&heard, Ok(said) if said.status.is_some()) {
            // It was not waited for yet, so the number is still its own.
            if let Some(pid) = pid(&handle) {
                let _ = killpg(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL);
            }
            let _ = handle.kill();
            let _ = handle.wait();
        }
        heard
    }

    /// Started and awaited by duct, without its `timeout`, which listens for SIGCHLD (shared_child's `sigchld`): in a supervisor
    /// that signal is the supervisor's. It is given pipes instead of capturing: capturing reads everything, on a thread for each
    /// stream, and every `wait` would wait for a child that keeps one open (duct, `Handle::kill`).
    fn start(&self, input: PipeReader, out: PipeWriter, err: PipeWriter) -> std::io::Result<Handle> {
        let mut command =
            duct::cmd(&self.program, &self.arguments).stdin_file(input).stdout_file(out).stderr_file(err).unchecked();
        if let Some(folder) = &self.folder {
            command = command.dir(folder);
        }
        for (name, value) in &self.env {
            command = match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.env(mark::NAME, mark::own()).before_spawn(dies_with_this_thread).start()
    }
}

/// It is killed when the calling thread, which waits here, ends in any way.
fn dies_with_this_thread(command: &mut Command) -> std::io::Result<()> {
    command.process_group(0);
    children::begin(command, Signal::SIGKILL);
    Ok(())
}

fn pid(handle: &Handle) -> Option<u32> {
    handle.pids().first().copied()
}

/// Our ends of its streams.
struct Streams {
    input: Option<PipeWriter>,
    out: Option<PipeReader>,
    err: Option<PipeReader>,
}

impl Streams {
    fn listen(&mut self, handle: &Handle, mut input: &[u8], is_over: &dyn Fn() -> bool) -> std::io::Result<CommandOutput> {
        let Streams { input: stdin, out, err } = self;
        let all = [stdin.as_ref().map(AsFd::as_fd), out.as_ref().map(AsFd::as_fd), err.as_ref().map(AsFd::as_fd)];
        all.into_iter().flatten().try_for_each(do_not_block)?;
        let (mut said, mut wrong) = (Vec::new(), Vec::new());
        let mut ended: Option<(ExitStatus, Instant)> = None;
        loop {
            if let Some(pipe) = stdin {
                // It may be gone already, for without a daemon it ends before it reads; then its status tells. SIGPIPE is ignored in every
                // process that this runs in: collo has Rust's own setting, supervisors set it.
                match pipe.write(input) {
                    Ok(n) => input = &input[n..],
                    Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                    Err(_) => input = &[],
                }
            }
            if input.is_empty() {
                *stdin = None;
            }
            take(out, &mut said);
            take(err, &mut wrong);
            let open = out.is_some() || err.is_some();
            if let Some((status, since)) = ended
                && (!open || since.elapsed() >= AFTERWARDS || is_over())
            {
                return Ok(CommandOutput { status: Some(status), out: said, err: wrong });
            }
            if ended.is_none() {
                ended = handle.try_wait()?.map(|output| (output.status, Instant::now()));
                if ended.is_some() {
                    // What it said last may have come since.
                    continue;
                }
                if is_over() {
                    return Ok(CommandOutput { status: None, out: said, err: wrong });
                }
            }
            wait(&stdin.as_ref().map(AsFd::as_fd), &out.as_ref().map(AsFd::as_fd), &err.as_ref().map(AsFd::as_fd));
        }
    }
}

fn do_not_block(stream: BorrowedFd<'_>) -> std::io::Result<()> {
    let flags = OFlag::from_bits_truncate(fcntl(stream, FcntlArg::F_GETFL)?);
    fcntl(stream, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
    Ok(())
}

/// Read what is available; a closed pipe is dropped.
fn take(pipe: &mut Option<impl Read>, into: &mut Vec<u8>) {
    let mut bytes = [0; 16 << 10];
    // One that never stops is left to its time.
    for _ in 0..64 {
        let Some(open) = pipe else { return };
        match open.read(&mut bytes) {
            Ok(0) => *pipe = None,
            Ok(n) => into.extend(bytes[..n].iter().take(MOST_BYTES.saturating_sub(into.len()))),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) if e.kind() == ErrorKind::WouldBlock => return,
            Err(_) => *pipe = None,
        }
    }
}

/// Wait until something can be read or written, or a moment has passed: its end is detected by polling.
fn wait(stdin: &Option<BorrowedFd<'_>>, out: &Option<BorrowedFd<'_>>, err: &Option<BorrowedFd<'_>>) {
    let mut all: Vec<PollFd<'_>> = out.iter().chain(err).map(|fd| PollFd::new(*fd, PollFlags::POLLIN)).collect();
    all.extend(stdin.iter().map(|fd| PollFd::new(*fd, PollFlags::POLLOUT)));
    let _ = poll(&mut all, PollTimeout::from(TICK_MS));
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const LONG: Duration = Duration::from_secs(20);

    fn sh(script: &str) -> Errand {
        Errand::to("sh", LONG).args(["-c", script])
    }

    #[test]
    fn a_program_is_told_something_and_what_it_says_is_heard() {
        let said = Errand::to("cat", LONG).input("x\n").ask().expect("it starts");
        assert_eq!((said.status.map(|s| s.success()), said.out().as_str()), (Some(true), "x\n"));
        let said = sh("echo a; echo b >&2; exit 3").ask().expect("it starts");
        assert_eq!((said.status.and_then(|s| s.code()), said.out().as_str(), said.err().as_str()), (Some(3), "a\n", "b\n"));
        assert!(Errand::to("/no/such/program", LONG).ask().is_err());
        // More than a pipe holds, each way.
        let much = "x".repeat(1 << 20);
        assert_eq!(Errand::to("cat", LONG).input(much.as_str()).ask().expect("it starts").out.len(), much.len());
        assert_eq!(
            Errand::to("false", LONG).input(much.as_str()).ask().expect("it starts").status.map(|s| s.success()),
            Some(false)
        );
    }

    #[test]
    fn one_that_takes_too_long_is_ended_with_what_it_started() {
        let script = "echo $$; sleep 600 & echo $!; wait";
        let said = Errand::to("sh", Duration::from_millis(300)).args(["-c", script]).ask().expect("it starts");
        assert_eq!(said.status, None);
        let pids: Vec<i32> = said.out().lines().filter_map(|line| line.parse().ok()).collect();
        assert_eq!(pids.len(), 2, "{said:?}");
        let gone = |pid: i32| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with(['Z', 'X']))
        };
        let deadline = Instant::now() + LONG;
        while !pids.iter().all(|pid| gone(*pid)) {
            assert!(Instant::now() < deadline, "it lives on");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn a_child_that_stays_behind_with_the_streams_open_holds_nobody_up() {
        let said = Errand::to("sh", LONG * 20).args(["-c", "setsid sleep 600 & echo $!"]).ask().expect("it starts");
        let child: i32 = said.out().trim().parse().expect("its number");
        let alive = std::path::Path::new(&format!("/proc/{child}")).exists();
        let _ = nix::sys::signal::kill(Pid::from_raw(child), Signal::SIGKILL);
        assert_eq!(said.status.map(|s| s.success()), Some(true));
        assert!(alive, "it was waited for");
    }

    #[test]
    fn one_that_nobody_waits_for_any_more_is_ended() {
        let begun = Instant::now();
        let said = sh("echo a; sleep 600").ask_until(&|| begun.elapsed() > Duration::from_millis(100)).expect("it starts");
        assert_eq!((said.status, said.out().as_str()), (None, "a\n"));
        assert!(begun.elapsed() < LONG);
    }

    #[test]
    fn it_has_the_folder_and_the_variables_that_it_was_given_and_no_others_are_lost() {
        let asked = sh("pwd; echo $A-$HOME-$PATH").folder(Path::new("/")).env("A", Some("b")).env("HOME", None::<String>);
        let path = std::env::var("PATH").expect("one");
        assert_eq!(asked.ask().expect("it starts").out(), format!("/\nb--{path}\n"));
    }

    #[test]
    fn a_program_has_its_own_pipes_end_it() {
        let said = sh("grep SigIgn /proc/self/status").ask().expect("it starts").out();
        let bits = u64::from_str_radix(said.trim_start_matches("SigIgn:").trim(), 16).expect("bits");
        // SIGPIPE is 13, and bit 0 is signal 1.
        assert_eq!(bits >> 12 & 1, 0, "{said}");
    }
}
