//! A mark in the environment of everything that collo starts, naming its owner. Children inherit it, whoever their parent is
//! later, so processes that outlive a collo killed together with its supervisors are found and ended by the next one. If a
//! control group could be created its name is the mark, too.
//!
//! Nothing is written to disk. A mark identifies a collo by its pid, its start time and the namespaces in which both are valid;
//! processes of a running collo, those of other users, and marks of other namespaces (a container's) are left alone.

pub mod cgroup;

use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::str::FromStr;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};

use super::process::{self, Process};
use super::tree;

/// The hidden first argument that makes collo a supervisor.
pub const SUPERVISOR_VERB: &str = "__supervise";

/// The variable.
pub const NAME: &str = "COLLO_STARTED_BY";

/// Grace period for supervisors that outlived their collo: one may be shutting down an MPS daemon.
const SUPERVISORS: Duration = Duration::from_secs(15);
/// Time limit for ending the rest.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A collo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Mark {
    pid: u32,
    /// Clock ticks since boot; together with the pid it is unique within one boot.
    began: u64,
    /// The namespace of the pid (pid_namespaces(7)).
    numbers: u64,
    /// The namespace of the start time (time_namespaces(7)); 0 if the kernel has none.
    times: u64,
}

/// The variable's value for processes started by this one.
pub fn own() -> &'static str {
    static OWN: OnceLock<String> = OnceLock::new();
    OWN.get_or_init(|| {
        let pid = std::process::id();
        let began = process::stat(pid).map(|stat| stat.began).unwrap_or_default();
        Mark { pid, began, numbers: namespace("pid"), times: namespace("time") }.to_string()
    })
}

fn namespace(kind: &str) -> u64 {
    // `pid:[4026531836]`
    let link = std::fs::read_link(Path::new("/proc/self/ns").join(kind)).unwrap_or_default();
    let text = String::from_utf8_lossy(link.as_os_str().as_bytes()).into_owned();
    text.trim_end_matches(']').rsplit('[').next().and_then(|n| n.parse().ok()).unwrap_or_default()
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}-{}", self.pid, self.began, self.numbers, self.times)
    }
}

impl FromStr for Mark {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let numbers: Vec<u64> = text.split('-').map(|n| n.parse().map_err(drop)).collect::<Result<_, _>>()?;
        let [pid, began, numbers, times] = numbers[..] else { return Err(()) };
        Ok(Mark { pid: u32::try_from(pid).map_err(drop)?, began, numbers, times })
    }
}

impl Mark {
    /// Whether that collo has certainly ended.
    fn is_gone(self) -> bool {
        if self.began == 0 || self.numbers == 0 || (self.numbers, self.times) != (namespace("pid"), namespace("time")) {
            return false;
        }
        match process::stat(self.pid) {
            Some(stat) => stat.began != self.began || stat.is_over(),
            // A mount of `/proc` may hide others' processes.
            None => kill(Pid::from_raw(self.pid as i32), None) == Err(Errno::ESRCH),
        }
    }
}

/// A process that a collo left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    pub pid: u32,
    pub name: String,
}

/// End processes left behind by dead collos; returns them. Supervisors that still work may finish first.
pub fn end_left_behind() -> Vec<Left> {
    let begun = Instant::now();
    let mut ended: Vec<Left> = Vec::new();
    loop {
        let groups = groups_left();
        let in_groups =
            groups.iter().flat_map(|(mark, group)| group.processes().into_iter().filter_map(|pid| in_group(*mark, pid)));
        let mut left: Vec<(Mark, Process)> = process::all().filter_map(left).collect();
        left.extend(in_groups.filter(|(_, p)| !left.iter().any(|(_, known)| known.pid() == p.pid())).collect::<Vec<_>>());
        let patient = begun.elapsed() < SUPERVISORS;
        let waits: Vec<Mark> =
            left.iter().filter(|(_, p)| patient && is_supervisor(p.pid()) && !p.is_stopped()).map(|(mark, _)| *mark).collect();
        if left.is_empty() {
            groups.iter().for_each(|(_, group)| group.remove());
        }
        if left.is_empty() || begun.elapsed() > SUPERVISORS + TIMEOUT {
            return ended;
        }
        for (_, process) in left.iter().filter(|(mark, _)| !waits.contains(mark)) {
            let name = tree::name_of(process.pid()).unwrap_or_default();
            if process.signal(Signal::SIGKILL) && !ended.iter().any(|e| e.pid == process.pid()) {
                ended.push(Left { pid: process.pid(), name });
            }
        }
        // After their names are known: at once, with what they are about to fork.
        groups.iter().filter(|(mark, _)| !waits.contains(mark)).for_each(|(_, group)| group.kill());
        std::thread::sleep(Duration::from_millis(if waits.is_empty() { 2 } else { 50 }));
    }
}

/// The process with this pid, if a dead collo left it behind.
fn left(pid: u32) -> Option<(Mark, Process)> {
    let mark = mark_of(pid)?;
    // Only now is there something to hold: of most processes nobody wants to know.
    let process = Process::of(pid)?;
    // Where this collo itself has the mark (a batch system passes an environment on) those beside it are who started it.
    let is_beside = mark_of(std::process::id()) == Some(mark);
    let is_meant = mark.is_gone() && pid != std::process::id() && !is_beside && is_ours(pid) && mark_of(pid) == Some(mark);
    // It is the one that was read about if it still has its number.
    (is_meant && process.is_it() && !process.is_over()).then_some((mark, process))
}

/// Control groups of dead collos.
fn groups_left() -> Vec<(Mark, cgroup::Cgroup)> {
    let gone = |group: cgroup::Cgroup| Some((group.mark.parse::<Mark>().ok().filter(|mark| mark.is_gone())?, group));
    cgroup::all().into_iter().filter_map(gone).collect()
}

/// A process gets into such a group only by being started in it.
fn in_group(mark: Mark, pid: u32) -> Option<(Mark, Process)> {
    let process = Process::of(pid)?;
    let name = format!("/collo.{mark}");
    let group = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let is_in_it = group.lines().any(|line| line.starts_with("0::") && line.contains(&name));
    (is_in_it && is_ours(pid) && process.is_it() && !process.is_over()).then_some((mark, process))
}

fn mark_of(pid: u32) -> Option<Mark> {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let value = environment.split(|&b| b == 0).find_map(|v| v.strip_prefix(NAME.as_bytes())?.strip_prefix(b"="))?;
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// By its effective user: root can read everybody's, but may only end its own.
fn is_ours(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let uid = status.lines().find_map(|line| line.strip_prefix("Uid:")?.split_whitespace().nth(1)?.parse().ok());
    uid == Some(geteuid().as_raw())
}

fn is_supervisor(pid: u32) -> bool {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|&b| b == 0).nth(1) == Some(SUPERVISOR_VERB.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    fn sleeper(mark: &str) -> Child {
        Command::new("sleep").arg("60").env(NAME, mark).spawn().expect("it starts")
    }

    /// A mark of a process that was here and is gone.
    fn gone() -> Mark {
        let mut child = Command::new("sleep").arg("60").spawn().expect("it starts");
        let began = process::stat(child.id()).expect("it runs").began;
        child.kill().expect("killed");
        child.wait().expect("waited for");
        Mark { pid: child.id(), began, ..own().parse().expect("it is one") }
    }

    #[test]
    fn a_mark_is_read_as_it_was_written() {
        let mark: Mark = own().parse().expect("it is one");
        assert_eq!((mark.pid, mark.to_string().as_str()), (std::process::id(), own()));
        assert!(!mark.is_gone());
        for text in ["", "1", "1-2-3", "1-2-3-4-5", "a-2-3-4", "-1-2-3-4"] {
            assert_eq!(text.parse::<Mark>(), Err(()), "{text}");
        }
    }

    #[test]
    fn who_has_the_number_of_a_collo_that_is_gone_is_not_that_collo() {
        let own: Mark = own().parse().expect("it is one");
        assert!(Mark { began: own.began - 1, ..own }.is_gone());
        assert!(gone().is_gone());
        let elsewhere = Mark { numbers: own.numbers + 1, ..gone() };
        assert!(!elsewhere.is_gone(), "nobody here knows what runs in a container");
        assert!(!Mark { times: own.times + 1, ..gone() }.is_gone());
        assert!(!Mark { began: 0, ..gone() }.is_gone(), "it could not read its own");
    }

    #[test]
    fn what_a_collo_that_is_gone_left_behind_is_ended_and_nothing_of_a_living_one() {
        let (mut left, mut living, mut unmarked) = (sleeper(&gone().to_string()), sleeper(own()), sleeper("nonsense"));
        // The mark comes with exec.
        while mark_of(left.id()).is_none() || mark_of(living.id()).is_none() {
            std::thread::yield_now();
        }
        let ended = end_left_behind();
        assert!(ended.contains(&Left { pid: left.id(), name: "sleep".into() }), "{ended:?}");
        assert!(!ended.iter().any(|e| [living.id(), unmarked.id()].contains(&e.pid)), "{ended:?}");
        left.wait().expect("it has ended");
        for child in [&mut living, &mut unmarked] {
            assert_eq!(child.try_wait().expect("ours"), None);
            child.kill().expect("killed");
            child.wait().expect("waited for");
        }
    }
}
