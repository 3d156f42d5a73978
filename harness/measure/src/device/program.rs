//! A program that is asked something: what it says, and for how long it is waited for.
//!
//! In: a command, what it is told, how long. Out: its words and its status. Neither a program that hangs nor a child that it leaves behind
//! with its streams open holds anybody up for longer.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::launch::{children, mark};

/// What it said until its end, or until it was ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Said {
    /// None if it took too long.
    pub status: Option<ExitStatus>,
    pub out: String,
    pub err: String,
}

/// More than this is read and thrown away.
const MOST_BYTES: usize = 4 << 20;
/// How long its streams are listened to once it has ended: a child of its own may hold them open for ever.
const AFTERWARDS: Duration = Duration::from_millis(100);
const TICK_MS: u8 = 5;

/// Run it to its end, but not for longer than this; the error is why it does not start. It is ended with all of its group.
///
/// Not by a library: it also runs inside supervisors, whose SIGCHLD is theirs.
pub fn hear(command: &mut Command, input: &str, patience: Duration) -> std::io::Result<Said> {
    let deadline = Instant::now() + patience;
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    // Nothing that was asked outlives who asked, however that ends; they wait here, on one thread (prctl(2), PR_SET_PDEATHSIG).
    // SAFETY: a single system call between fork and exec.
    unsafe { command.pre_exec(|| Ok(nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?)) };
    let (mut child, _own) = children::spawn(command.env(mark::NAME, mark::own()))?;
    let heard = listen(&mut child, input.as_bytes(), deadline);
    if !matches!(&heard, Ok(said) if said.status.is_some()) {
        // It was not waited for yet, so the number is still its own.
        let _ = killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL);
        let _ = child.kill();
        let _ = child.wait();
    }
    heard
}

fn listen(child: &mut Child, mut input: &[u8], deadline: Instant) -> std::io::Result<Said> {
    let (mut stdin, mut out, mut err) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    for stream in
        [stdin.as_ref().map(AsFd::as_fd), out.as_ref().map(AsFd::as_fd), err.as_ref().map(AsFd::as_fd)].into_iter().flatten()
    {
        do_not_block(stream)?;
    }
    let (mut said, mut wrong) = (Vec::new(), Vec::new());
    let mut ended: Option<(ExitStatus, Instant)> = None;
    loop {
        if let Some(pipe) = &mut stdin {
            // It may be gone already, for without a daemon it ends before it reads; then its status tells. SIGPIPE is ignored in every
            // process that this runs in: collo has Rust's own setting, supervisors set it.
            match pipe.write(input) {
                Ok(n) => input = &input[n..],
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(_) => input = &[],
            }
        }
        if input.is_empty() {
            stdin = None;
        }
        take(&mut out, &mut said);
        take(&mut err, &mut wrong);
        let open = out.is_some() || err.is_some();
        if let Some((status, since)) = ended
            && (!open || since.elapsed() >= AFTERWARDS || Instant::now() >= deadline)
        {
            return Ok(Said { status: Some(status), ..words(&said, &wrong) });
        }
        if ended.is_none() {
            ended = child.try_wait()?.map(|status| (status, Instant::now()));
            if ended.is_some() {
                // What it said last may have come since.
                continue;
            }
            if Instant::now() >= deadline {
                return Ok(words(&said, &wrong));
            }
        }
        wait(&stdin.as_ref().map(AsFd::as_fd), &out.as_ref().map(AsFd::as_fd), &err.as_ref().map(AsFd::as_fd));
    }
}

fn words(said: &[u8], wrong: &[u8]) -> Said {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Said { status: None, out: text(said), err: text(wrong) }
}

fn do_not_block(stream: BorrowedFd<'_>) -> std::io::Result<()> {
    let flags = OFlag::from_bits_truncate(fcntl(stream, FcntlArg::F_GETFL)?);
    fcntl(stream, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
    Ok(())
}

/// Read what is there; a pipe that is closed is taken away.
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

/// Until something can be read or written, or a moment is over: an end is seen by looking.
fn wait(stdin: &Option<BorrowedFd<'_>>, out: &Option<BorrowedFd<'_>>, err: &Option<BorrowedFd<'_>>) {
    let mut all: Vec<PollFd<'_>> = out.iter().chain(err).map(|fd| PollFd::new(*fd, PollFlags::POLLIN)).collect();
    all.extend(stdin.iter().map(|fd| PollFd::new(*fd, PollFlags::POLLOUT)));
    let _ = poll(&mut all, PollTimeout::from(TICK_MS));
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(20);

    fn sh(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_program_is_told_something_and_what_it_says_is_heard() {
        let said = hear(&mut Command::new("cat"), "x\n", LONG).expect("it starts");
        assert_eq!((said.status.map(|s| s.success()), said.out.as_str()), (Some(true), "x\n"));
        let said = hear(&mut sh("echo a; echo b >&2; exit 3"), "", LONG).expect("it starts");
        assert_eq!((said.status.and_then(|s| s.code()), said.out.as_str(), said.err.as_str()), (Some(3), "a\n", "b\n"));
        assert!(hear(&mut Command::new("/no/such/program"), "", LONG).is_err());
        // More than a pipe holds, each way.
        let much = "x".repeat(1 << 20);
        assert_eq!(hear(&mut Command::new("cat"), &much, LONG).expect("it starts").out.len(), much.len());
        assert_eq!(hear(&mut Command::new("false"), &much, LONG).expect("it starts").status.map(|s| s.success()), Some(false));
    }

    #[test]
    fn one_that_takes_too_long_is_ended_with_what_it_started() {
        let said = hear(&mut sh("echo $$; sleep 600 & echo $!; wait"), "", Duration::from_millis(300)).expect("it starts");
        assert_eq!(said.status, None);
        let pids: Vec<i32> = said.out.lines().filter_map(|line| line.parse().ok()).collect();
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
        let said = hear(&mut sh("setsid sleep 600 & echo $!"), "", LONG * 20).expect("it starts");
        let child: i32 = said.out.trim().parse().expect("its number");
        let alive = std::path::Path::new(&format!("/proc/{child}")).exists();
        let _ = nix::sys::signal::kill(Pid::from_raw(child), Signal::SIGKILL);
        assert_eq!(said.status.map(|s| s.success()), Some(true));
        assert!(alive, "it was waited for");
    }

    #[test]
    fn a_program_has_its_own_pipes_end_it() {
        let said = hear(&mut sh("grep SigIgn /proc/self/status"), "", LONG).expect("it starts").out;
        let bits = u64::from_str_radix(said.trim_start_matches("SigIgn:").trim(), 16).expect("bits");
        // SIGPIPE is 13, and bit 0 is signal 1.
        assert_eq!(bits >> 12 & 1, 0, "{said}");
    }
}
