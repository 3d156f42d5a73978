//! A supervisor from the outside: starting one, and ending it if it does not end itself.
//!
//! It is asked first, since it knows its descendants. A stopped one receives nothing, and a hung one does nothing: after a
//! timeout it is killed, which ends its member, and orphans inherited by collo are swept up.

use crate::mark::{SUPERVISOR_VERB, cgroup};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use command_fds::{CommandFdExt, FdMapping};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::children::{self, Own};
use super::mark;
use super::process::Process;
use super::supervisor::{self, Orders};

/// Time limit for one that is not stopped: it may be shutting down an MPS daemon, or waiting for processes stuck in the kernel.
pub const BUSY: Duration = Duration::from_secs(15);
/// How long one that is to end may be stopped.
const STOPPED: Duration = Duration::from_secs(2);
/// How long one that is not to end yet may be stopped.
const STOPPED_UNASKED: Duration = Duration::from_secs(10);

/// How long to wait for a killed one: it may be stuck in the kernel, on a dead disk.
const KERNEL: Duration = Duration::from_secs(5);

/// Polling interval.
const LOOK: Duration = Duration::from_millis(5);
/// Maximum time counted between two polls: pausing a whole job pauses this process, too, and may resume it first.
const LONGEST_LOOK: Duration = Duration::from_secs(1);

/// The command of a supervisor. Its descendants are marked as ours. `hosted`: the channels of the members that its program hosts.
pub fn command(control: OwnedFd, channel: OwnedFd, hosted: Vec<OwnedFd>) -> std::io::Result<Command> {
    let mut command = Command::new(supervisor::program());
    command.arg(SUPERVISOR_VERB).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.env(mark::NAME, mark::own());
    let mut mappings = vec![
        FdMapping { parent_fd: control, child_fd: supervisor::CONTROL_FD },
        FdMapping { parent_fd: channel, child_fd: supervisor::CHANNEL_FD },
    ];
    let further = hosted.into_iter().zip(supervisor::HOSTED_FD..);
    mappings.extend(further.map(|(parent_fd, child_fd)| FdMapping { parent_fd, child_fd }));
    if let Some(door) = cgroup::door() {
        command.arg(supervisor::IN_GROUP);
        mappings.push(FdMapping { parent_fd: door, child_fd: supervisor::GROUP_FD });
    }
    command.fd_mappings(mappings).map_err(std::io::Error::other)?;
    // Out of the terminal's reach from its first moment: a Ctrl-C that hit it before it could say so itself would end its member.
    // SAFETY: two async-signal-safe system calls between fork and exec.
    unsafe {
        command.pre_exec(|| {
            children::unblock_signals()?;
            nix::unistd::setsid().map(drop).map_err(std::io::Error::from)
        });
    }
    Ok(command)
}

/// The first line that a supervisor reads.
pub fn orders(control: &UnixStream, orders: &Orders) -> std::io::Result<()> {
    let mut line = serde_json::to_string(orders)?;
    line.push('\n');
    // The socket is new and empty, and holds far more than one line of orders.
    (&mut &*control).write_all(line.as_bytes())
}

/// The remaining time to wait for a supervisor.
#[derive(Debug)]
pub struct Patience {
    looked: Instant,
    /// The rest of the limit for one that is not stopped; `None` for one that may continue.
    busy: Option<Duration>,
    stopped: Duration,
    left: Duration,
}

impl Patience {
    /// For one that is to end.
    pub fn with_the_end(busy: Duration) -> Patience {
        Patience { looked: Instant::now(), busy: Some(busy), stopped: STOPPED, left: STOPPED }
    }

    /// For one that is not to end yet.
    pub fn unasked() -> Patience {
        Patience { looked: Instant::now(), busy: None, stopped: STOPPED_UNASKED, left: STOPPED_UNASKED }
    }

    /// Whether the limit is exceeded: called repeatedly.
    pub fn is_over(&mut self, is_stopped: bool) -> bool {
        self.passes(self.looked.elapsed(), is_stopped)
    }

    fn passes(&mut self, time: Duration, is_stopped: bool) -> bool {
        let time = time.min(LONGEST_LOOK);
        self.looked = Instant::now();
        self.busy = self.busy.map(|left| left.saturating_sub(time));
        self.left = if is_stopped { self.left.saturating_sub(time) } else { self.stopped };
        self.left.is_zero() || self.busy.is_some_and(|left| left.is_zero())
    }
}

/// A supervisor with its descendants. Ended on drop, by force if necessary.
pub struct Supervised {
    child: Child,
    process: Option<Process>,
    pub control: UnixStream,
    _own: Own,
}

impl Supervised {
    /// Start one with these orders; `output` are its own streams.
    pub fn start(given: &Orders, output: Option<(Stdio, Stdio)>) -> std::io::Result<Supervised> {
        children::inherit();
        let (control, their_control) = UnixStream::pair()?;
        let (channel, their_channel) = UnixStream::pair()?;
        let mut command = command(their_control.into(), their_channel.into(), Vec::new())?;
        if let Some((out, err)) = output {
            command.stdout(out).stderr(err);
        }
        let (child, own) = children::spawn(&mut command)?;
        // The command holds this side's copies of both sockets, and of the streams.
        drop(command);
        drop(channel);
        let process = Process::of(child.id());
        let supervised = Supervised { child, process, control, _own: own };
        orders(&supervised.control, given)?;
        Ok(supervised)
    }

    /// Whether it has ended, and with it all its descendants.
    pub fn is_over(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// The signal that ended it, if one did: ` by SIGKILL`.
    pub fn killed_by(&mut self) -> Option<String> {
        let signal = self.child.try_wait().ok().flatten()?.signal()?;
        Some(match Signal::try_from(signal) {
            Ok(name) => format!(" by {name}"),
            Err(_) => format!(" by signal {signal}"),
        })
    }

    /// Its pid, which is also that of its session and of the process group of what it starts.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Send a signal to its group: to what it started, for it ignores signals that ask for an end.
    pub fn signal_below(&mut self, signal: Signal) {
        // Once it is over, its number may be another's.
        if !self.is_over() {
            let _ = killpg(Pid::from_raw(self.pid().cast_signed()), signal);
        }
    }

    /// Tell it to end everything; true if it did so itself, and within this time.
    pub fn end(&mut self, busy: Duration) -> bool {
        let _ = self.control.write_all(b"kill\n");
        self.wait_or_kill(busy)
    }

    /// Wait for its end, now that it is no longer needed; true if it ended by itself.
    pub fn wait_or_kill(&mut self, busy: Duration) -> bool {
        let mut patience = Patience::with_the_end(busy);
        while !self.is_over() {
            if patience.is_over(self.process.as_ref().is_some_and(Process::is_stopped)) {
                let _ = self.child.kill();
                let deadline = Instant::now() + KERNEL;
                while !self.is_over() && Instant::now() < deadline {
                    std::thread::sleep(LOOK);
                }
                break;
            }
            std::thread::sleep(LOOK);
        }
        let by_itself = matches!(self.child.try_wait(), Ok(Some(status)) if status.success());
        if !by_itself {
            // Whoever killed it, collo or what it watched over: what was below comes to collo.
            children::sweep();
        }
        by_itself
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        let _ = self.control.shutdown(std::net::Shutdown::Both);
        // Also because a zombie of ours would count as a process that is left.
        self.wait_or_kill(BUSY);
    }
}

/// Wait for these to end, now that they are no longer needed, and kill those that do not.
pub fn wait_or_kill_all(supervisors: &[&Process]) {
    let mut waited: Vec<(&Process, Patience)> = supervisors.iter().map(|p| (*p, Patience::with_the_end(BUSY))).collect();
    let mut killed: Vec<&Process> = Vec::new();
    while !waited.is_empty() {
        waited.retain_mut(|(process, patience)| {
            let hangs = patience.is_over(process.is_stopped());
            if hangs && process.signal(Signal::SIGKILL) {
                killed.push(*process);
            }
            !hangs && !process.is_over()
        });
        std::thread::sleep(LOOK);
    }
    if killed.is_empty() {
        return;
    }
    let deadline = Instant::now() + KERNEL;
    while !killed.iter().all(|process| process.is_over()) && Instant::now() < deadline {
        std::thread::sleep(LOOK);
    }
    children::sweep();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_supervisor_is_out_of_reach_of_the_terminal_as_soon_as_it_exists() {
        // Many, because one that said so itself would sometimes be in time.
        for _ in 0..20 {
            let (control, theirs) = UnixStream::pair().expect("a pair");
            let (_channel, their_channel) = UnixStream::pair().expect("a pair");
            let mut command = command(theirs.into(), their_channel.into(), Vec::new()).expect("a command");
            let (mut child, own) = children::spawn(&mut command).expect("it starts");
            let pid = nix::unistd::Pid::from_raw(child.id() as i32);
            assert_eq!(nix::unistd::getsid(Some(pid)), Ok(pid));
            drop((command, control));
            child.wait().expect("it ends with its lifeline");
            drop(own);
        }
    }

    #[test]
    fn patience_ends_with_one_that_stays_stopped_and_not_with_one_that_was_paused_together_with_collo() {
        let second = Duration::from_secs(1);
        let mut patience = Patience::with_the_end(BUSY);
        assert!(!patience.passes(second, true));
        assert!(!patience.passes(second, false), "it went on");
        assert!(!patience.passes(3600 * second, true), "an hour in which nobody looked is one look");
        assert!(patience.passes(second, true));
        let mut patience = Patience::unasked();
        assert!((0..100).all(|_| !patience.passes(second, false)), "it may work as long as it likes");
        assert!((0..9).all(|_| !patience.passes(second, true)));
        assert!(patience.passes(second, true));
    }

    #[test]
    fn one_that_is_busy_with_the_end_has_its_time() {
        let mut patience = Patience::with_the_end(Duration::from_secs(3));
        assert!(!patience.passes(Duration::from_secs(1), false) && !patience.passes(Duration::from_secs(1), false));
        assert!(patience.passes(Duration::from_secs(1), false));
    }
}
