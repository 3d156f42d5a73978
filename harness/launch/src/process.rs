//! A process identified by more than its pid: the kernel reuses a pid once its process has been waited for.

use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// One process, safe against pid reuse: by a pidfd (pidfd_open(2), Linux 5.3), and on older kernels by its start time, checked
/// right before each signal.
#[derive(Debug)]
pub struct Process {
    pid: u32,
    began: u64,
    fd: Option<OwnedFd>,
}

impl Process {
    /// The process that has this pid now; `None` if there is none.
    pub fn of(pid: u32) -> Option<Process> {
        let fd = open(pid);
        let process = Process { pid, began: stat(pid)?.began, fd };
        // Were it over since, what was read may be another's.
        process.is_it().then_some(process)
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Send it a signal; false if it no longer exists.
    pub fn signal(&self, signal: Signal) -> bool {
        match &self.fd {
            // SAFETY: a plain system call on a descriptor that is ours.
            Some(fd) => unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd.as_raw_fd(), signal as i32, 0, 0) == 0 },
            None => self.is_it() && kill(Pid::from_raw(self.pid as i32), signal).is_ok(),
        }
    }

    /// Whether it has ended, waited for or not.
    pub fn is_over(&self) -> bool {
        match &self.fd {
            Some(fd) => {
                let mut fds = [PollFd::new(fd.as_fd(), PollFlags::POLLIN)];
                poll(&mut fds, PollTimeout::ZERO) != Ok(0)
            }
            None => !self.is_it() || stat(self.pid).is_none_or(|now| now.is_over()),
        }
    }

    /// Whether it is stopped: it exists but does nothing until continued.
    pub fn is_stopped(&self) -> bool {
        stat(self.pid).is_some_and(|now| now.is_stopped() && now.began == self.began)
    }

    /// Whether the pid is still its own.
    pub fn is_it(&self) -> bool {
        match &self.fd {
            // SAFETY: as above; signal 0 only asks. One that has ended keeps its number until it is waited for.
            Some(fd) => unsafe {
                libc::syscall(libc::SYS_pidfd_send_signal, fd.as_raw_fd(), 0, 0, 0) == 0 || Errno::last() == Errno::EPERM
            },
            None => stat(self.pid).is_some_and(|now| now.began == self.began),
        }
    }
}

fn open(pid: u32) -> Option<OwnedFd> {
    // SAFETY: a plain system call; what it returns is a new descriptor, closed on exec.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    // SAFETY: nobody else knows it.
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// The contents of `/proc/PID/stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    state: char,
    pub parent: u32,
    /// User and system time of all its threads, those that have ended too, in clock ticks (fields 14 and 15).
    pub cpu_ticks: u64,
    /// That of its children that have ended and were waited for, and of theirs, in clock ticks (fields 16 and 17).
    pub reaped_ticks: u64,
    /// Its start time, in clock ticks since boot (field 22 of proc_pid_stat(5)).
    pub began: u64,
}

impl Stat {
    /// It has ended, and is at most a zombie.
    pub fn is_over(&self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x')
    }

    /// By a signal or by a tracer.
    pub fn is_stopped(&self) -> bool {
        matches!(self.state, 'T' | 't')
    }
}

/// `None` if there is no such process.
pub fn stat(pid: u32) -> Option<Stat> {
    read(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn read(stat: &str) -> Option<Stat> {
    // The name stands in parentheses and may itself hold any character.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    Some(Stat {
        state: fields.first()?.chars().next()?,
        parent: fields.get(1)?.parse().ok()?,
        cpu_ticks: fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?,
        reaped_ticks: fields.get(13)?.parse::<u64>().ok()? + fields.get(14)?.parse::<u64>().ok()?,
        began: fields.get(19)?.parse().ok()?,
    })
}

/// All pids of this machine, as far as they are visible.
pub fn all() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_was_waited_for_is_never_signalled_by_its_number() {
        for with_fd in [true, false] {
            let mut child = std::process::Command::new("sleep").arg("30").spawn().unwrap();
            let mut process = Process::of(child.id()).unwrap();
            if !with_fd {
                process.fd = None;
            }
            assert!(!process.is_over() && !process.is_stopped() && process.is_it());
            assert!(process.signal(Signal::SIGSTOP));
            while !process.is_stopped() {
                std::thread::yield_now();
            }
            assert!(process.signal(Signal::SIGKILL));
            while !process.is_over() {
                std::thread::yield_now();
            }
            assert!(process.is_it(), "nobody has waited for it");
            child.wait().unwrap();
            assert!(process.is_over() && !process.is_it() && !process.is_stopped());
            assert!(!process.signal(Signal::SIGKILL));
        }
        assert!(Process::of(u32::MAX >> 1).is_none());
    }

    #[test]
    fn who_has_the_number_later_is_somebody_else() {
        let own = Process { pid: std::process::id(), began: 1, fd: None };
        assert!(!own.is_it() && own.is_over() && !own.signal(Signal::SIGTERM), "this test would end");
    }

    #[test]
    fn a_name_may_hold_anything() {
        let line = "7 (a) R 1 (b) T 42 7 7 0 -1 0 0 0 0 0 250 150 30 12 20 0 1 0 98765 0 0";
        let expected = Stat { state: 'T', parent: 42, cpu_ticks: 400, reaped_ticks: 42, began: 98_765 };
        assert_eq!(read(line), Some(expected));
        assert_eq!(read("7 (a"), None);
    }
}
