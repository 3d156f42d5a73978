//! One collo per GPU and machine, across users.
//!
//! In: the UUID of a GPU. Out: a lock on it until dropped or the process ends, or its holder. The lock is a name in the kernel's
//! table of abstract sockets: it needs no folder, every user sees it, it disappears with its process (unix(7)), and the kernel
//! itself reports who has bound it (`SO_PEERCRED`). The table is one for each network namespace (network_namespaces(7)), so a
//! container with a network of its own has another. For collos that share a state folder a file in it is locked too.

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Duration;

use collo_text::{Diagnostic, trust};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::socket::{self, AddressFamily, SockFlag, SockType, UnixAddr, sockopt};

use super::journal;

use crate::state_folder;

/// The lock of a GPU.
#[derive(Debug)]
pub struct CardLock {
    name: UnixListener,
    _file: File,
}

/// The holder of a GPU's lock.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LockHolder {
    /// Absent if it is in a pid namespace that is not visible from here.
    pub pid: Option<u32>,
    pub user: Option<String>,
    /// Its command line, if readable.
    pub command: Option<String>,
}

/// A notice that a campaign measures the CPU. Several may, so it is no lock: each has a name of its own, and finds the others'.
#[derive(Debug)]
pub struct CpuNotice {
    _name: UnixListener,
}

impl CpuNotice {
    /// More campaigns than this on one CPU are not told apart.
    const MOST: u32 = 16;

    /// Post it under the first free name; with whoever has posted one before, as far as visible from here.
    pub fn post() -> (Option<CpuNotice>, Vec<LockHolder>) {
        let (mut own, mut others) = (None, Vec::new());
        for place in 0..Self::MOST {
            let what = format!("cpu-{place}");
            match bind(&what) {
                Ok(name) if own.is_none() => own = Some(CpuNotice { _name: name }),
                Ok(_) => {}
                Err(_) => others.extend(holder(&what)),
            }
        }
        (own, others)
    }

    /// The campaigns that have posted one, as far as visible from here.
    pub fn others() -> Vec<LockHolder> {
        (0..Self::MOST).filter_map(|place| holder(&format!("cpu-{place}"))).collect()
    }
}

impl LockHolder {
    /// `process 4711 of root (collo run x)`. In backticks it would be printed as a command to type here, with the folder of this collo.
    pub fn text(&self) -> String {
        let user = self.user.as_ref().map(|user| format!(" of {user}")).unwrap_or_default();
        let command = self.command.as_ref().map(|command| format!(" ({command})")).unwrap_or_default();
        match self.pid {
            Some(pid) => format!("process {pid}{user}{command}"),
            None => format!("a process{user} not visible from here"),
        }
    }
}

/// Number of tries to lock the file, and the time between them.
const LOOKS: u32 = 20;
const BETWEEN: Duration = Duration::from_millis(10);

fn name_of(uuid: &str) -> String {
    format!("collo/card/{uuid}")
}

/// Bind the name of a GPU, or of whatever else one collo has at a time; [`std::io::ErrorKind::AddrInUse`] if another has it.
pub(super) fn bind(uuid: &str) -> std::io::Result<UnixListener> {
    UnixListener::bind_addr(&SocketAddr::from_abstract_name(name_of(uuid))?)
}

fn file_of(folder: &std::path::Path, uuid: &str) -> PathBuf {
    folder.join(format!("{uuid}.lock"))
}

impl CardLock {
    /// Take the lock; the error names the holder.
    pub fn take(uuid: &str, label: &str) -> Result<CardLock, Diagnostic> {
        let cannot =
            |e: std::io::Error| Diagnostic::new(format!("{label} cannot be locked")).caused_by(e.to_string()).of_machine();
        let name = match bind(uuid) {
            Err(e) if e.kind() == std::io::ErrorKind::AddrInUse => return Err(taken(label, holder(uuid), uuid)),
            bound => bound.map_err(cannot)?,
        };
        name.set_nonblocking(true).map_err(cannot)?;
        let folder = state_folder::make()?;
        let mut options = std::fs::OpenOptions::new();
        options.create(true).append(true).mode(0o600).custom_flags((OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits());
        let file = options.open(file_of(&folder, uuid)).map_err(|e| state_folder::FOLDER.unwritten(&e))?;
        // Whoever looks whether it is locked has it for a moment.
        for _ in 0..LOOKS {
            match file.try_lock() {
                Ok(()) => return Ok(CardLock { name, _file: file }),
                Err(std::fs::TryLockError::WouldBlock) => std::thread::sleep(BETWEEN),
                Err(std::fs::TryLockError::Error(e)) => return Err(cannot(e)),
            }
        }
        Err(taken(label, None, uuid))
    }

    /// Disconnect the processes that asked for the holder: the queue of waiting ones is limited.
    pub fn answer(&self) {
        while self.name.accept().is_ok() {}
    }
}

/// Check that the lock is free; the error names the holder.
pub(super) fn check_free(uuid: &str, label: &str) -> Result<(), Diagnostic> {
    holder(uuid).map_or(Ok(()), |holder| Err(taken(label, Some(holder), uuid)))
}

pub(super) fn taken(label: &str, holder: Option<LockHolder>, uuid: &str) -> Diagnostic {
    let journal = journal::of(uuid).ok().flatten();
    let journal = journal.filter(|j| holder.as_ref().is_none_or(|h| h.pid.is_none_or(|pid| pid == j.process)));
    let pid = holder.as_ref().map_or_else(|| journal.as_ref().map(|j| j.process), |h| h.pid);
    let user = holder.as_ref().and_then(|h| h.user.clone()).map(|user| format!(" of {user}")).unwrap_or_default();
    let who = match pid {
        Some(pid) => format!(": process {pid}{user}"),
        None if holder.is_some() => format!(": a process{user} not visible from here"),
        None => String::new(),
    };
    let runs = journal.map(|j| j.experiment).or(holder.and_then(|h| h.command)).filter(|_| !who.is_empty());
    let runs = runs.map(|text| format!(" runs `{text}`")).unwrap_or_default();
    Diagnostic::new(format!("{label} is in use by another collo{who}{runs}"))
        .hint("watch it with `collo status`, or select another GPU with `--gpu`")
        .of_machine()
}

/// The current holder; `None` if there is none, as far as visible from here.
pub fn holder(uuid: &str) -> Option<LockHolder> {
    let fd =
        socket::socket(AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK, None).ok()?;
    let address = UnixAddr::new_abstract(name_of(uuid).as_bytes()).ok()?;
    match socket::connect(fd.as_raw_fd(), &address) {
        Ok(()) => {}
        // Too many have asked: it is there all the same (connect(2), EAGAIN).
        Err(Errno::EAGAIN) => return Some(LockHolder { pid: None, user: None, command: None }),
        Err(_) => return None,
    }
    // SAFETY: the descriptor is ours alone, and given away here.
    let stream = unsafe { UnixStream::from_raw_fd(fd.into_raw_fd()) };
    let told = socket::getsockopt(&stream, sockopt::PeerCredentials).ok()?;
    let pid = u32::try_from(told.pid()).ok().filter(|pid| *pid > 0);
    Some(LockHolder { pid, user: Some(trust::owner(told.uid())), command: pid.and_then(command_line) })
}

/// Whether the holder is the collo with this pid, or cannot be distinguished from it.
pub(super) fn is_held_by(uuid: &str, process: u32) -> bool {
    match holder(uuid) {
        Some(holder) => holder.pid.is_none_or(|pid| pid == process),
        None => file_is_locked(uuid),
    }
}

fn file_is_locked(uuid: &str) -> bool {
    let Ok(Some(folder)) = state_folder::look() else { return false };
    let mut options = std::fs::OpenOptions::new();
    options.read(true).custom_flags((OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits());
    let Ok(file) = options.open(file_of(&folder, uuid)) else { return false };
    matches!(file.try_lock(), Err(std::fs::TryLockError::WouldBlock))
}

/// `collo run x --gpu 0`: the publicly readable command line of a process, safe to print on a terminal.
fn command_line(pid: u32) -> Option<String> {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let mut words = bytes.split(|b| *b == 0).filter(|word| !word.is_empty()).map(String::from_utf8_lossy);
    let program = words.next()?;
    let name = program.rsplit('/').next().unwrap_or_default().to_string();
    let line: String = std::iter::once(name.into()).chain(words).collect::<Vec<_>>().join(" ");
    Some(collo_text::quoting::line(&line).chars().take(80).collect()).filter(|line: &String| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> String {
        format!("GPU-{name}-{}", std::process::id())
    }

    fn bound(uuid: &str) -> UnixListener {
        bind(uuid).expect("nobody has it")
    }

    #[test]
    fn who_has_a_card_is_named_by_the_kernel() {
        let uuid = named("held");
        assert_eq!(holder(&uuid), None);
        let lock = bound(&uuid);
        let found = holder(&uuid).expect("it is held");
        assert_eq!(found.pid, Some(std::process::id()));
        assert!(found.command.is_some_and(|command| command.contains("collo")));
        assert!(is_held_by(&uuid, std::process::id()) && !is_held_by(&uuid, 1));
        drop(lock);
        assert_eq!(holder(&uuid), None);
    }

    #[test]
    fn the_command_of_another_collo_is_shown_as_it_was_typed() {
        let holder = LockHolder { pid: Some(4711), user: Some("`root`".into()), command: Some("collo run x".into()) };
        let text = holder.text();
        assert_eq!(text, "process 4711 of `root` (collo run x)");
        assert_eq!(collo_text::commands::in_place_of_collo(&text, "collo -C here", |_, _| true), text);
    }

    #[test]
    fn a_card_is_refused_with_the_name_of_who_has_it() {
        let uuid = named("refused");
        let _lock = bound(&uuid);
        let refused = CardLock::take(&uuid, "GPU 0").expect_err("somebody has it");
        let begins = format!("GPU 0 is in use by another collo: process {} of ", std::process::id());
        assert!(refused.what().starts_with(&begins), "{}", refused.what());
        assert_eq!(refused.class().code(), 3);
    }

    #[test]
    fn however_often_it_is_asked_a_held_card_is_held() {
        let uuid = named("asked");
        let _lock = bound(&uuid);
        let most: usize =
            std::fs::read_to_string("/proc/sys/net/core/somaxconn").ok().and_then(|n| n.trim().parse().ok()).unwrap_or(4096);
        for _ in 0..most.min(9000) + 3 {
            assert!(holder(&uuid).is_some());
        }
    }
}
