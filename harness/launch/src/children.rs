//! Collo's own children. As a subreaper it also inherits the children of those of its children that were killed: a child not
//! started by collo itself was left behind, and is ended.

use std::collections::BTreeSet;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::{Pid, getppid};

use super::process::{self, Process};
use super::tree;

static OWN: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// Time limit of a sweep: a process stuck in the kernel must not block collo.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Marks a child as collo's own until dropped.
#[derive(Debug)]
pub struct Own(u32);

impl Own {
    pub fn pid(&self) -> u32 {
        self.0
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        own().remove(&self.0);
    }
}

fn own() -> MutexGuard<'static, BTreeSet<u32>> {
    OWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Start a child of collo's own, protected from a concurrent sweep.
pub fn spawn(command: &mut Command) -> std::io::Result<(Child, Own)> {
    started(|| command.spawn(), |child| Some(child.id()))
}

/// The same with another library's way of starting.
pub fn started<C>(start: impl FnOnce() -> std::io::Result<C>, pid: impl Fn(&C) -> Option<u32>) -> std::io::Result<(C, Own)> {
    let mut own = own();
    let child = start()?;
    let pid = pid(&child).ok_or_else(|| std::io::Error::other("it ended at once"))?;
    own.insert(pid);
    Ok((child, Own(pid)))
}

/// How every program that collo starts begins: with no signal blocked, and it gets `signal` when the thread that starts it ends in any
/// way, also with its process.
pub fn begin(command: &mut Command, signal: Signal) {
    let own = Pid::this();
    // SAFETY: three system calls between fork and exec; an error from a number allocates nothing.
    unsafe { command.pre_exec(move || unblock_signals().and_then(|()| ends_with(own, signal))) };
}

/// Between fork and exec. A program inherits the mask of the thread that starts it, and Rust's `Command` does not reset it. With SIGCHLD
/// blocked, as in a supervisor, a DataLoader of PyTorch learns of a dead worker five seconds late (`_set_SIGCHLD_handler` of
/// torch/utils/data/_utils/signal_handling.py).
pub fn unblock_signals() -> std::io::Result<()> {
    SigSet::empty().thread_set_mask().map_err(std::io::Error::from)
}

/// Said in the child. The kernel sends the signal for ends that come after this was asked (prctl(2), `PR_SET_PDEATHSIG`), so a parent
/// that is gone already is noticed by the number of who has inherited the child.
fn ends_with(parent: Pid, signal: Signal) -> std::io::Result<()> {
    prctl::set_pdeathsig(signal)?;
    if getppid() == parent { Ok(()) } else { Err(Errno::ESRCH.into()) }
}

/// From now on this process inherits what a killed child leaves behind (prctl(2), `PR_SET_CHILD_SUBREAPER`).
pub fn inherit() {
    let _ = nix::sys::prctl::set_child_subreaper(true);
}

/// End every child that was not started here, with all its descendants, until none is left.
pub fn sweep() {
    if cfg!(test) {
        // The tests of one program are each other's strangers.
        return;
    }
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let own = own();
        let strangers = strangers(&own);
        if strangers.is_empty() || Instant::now() > deadline {
            return;
        }
        for stranger in strangers {
            tree::kill_descendants(stranger);
            if let Some(process) = Process::of(stranger) {
                process.signal(Signal::SIGKILL);
            }
            let _ = waitpid(Pid::from_raw(stranger as i32), Some(WaitPidFlag::WNOHANG));
        }
        drop(own);
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Includes zombies: nobody else waits for them.
fn strangers(own: &BTreeSet<u32>) -> Vec<u32> {
    let here = std::process::id();
    let mut children = tree::descendants(here);
    children.retain(|pid| !own.contains(pid) && process::stat(*pid).is_some_and(|stat| stat.parent == here));
    children
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_whose_parent_was_killed_before_it_could_ask_to_die_with_it_starts_nothing() {
        let started = |parent: Pid| {
            let mut command = Command::new("true");
            // SAFETY: two system calls between fork and exec.
            unsafe { command.pre_exec(move || ends_with(parent, Signal::SIGKILL)) };
            command.status()
        };
        assert!(started(Pid::this()).expect("it starts").success());
        // Its parent has another number than it was told, as if somebody had inherited it.
        assert_eq!(started(Pid::parent()).expect_err("nobody waits for it").raw_os_error(), Some(Errno::ESRCH as i32));
    }
}
