//! A group of live members, seen from the harness: what they say comes as one stream of signals, in order per member.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use collo_store::monotonic_ns;
use command_fds::{CommandFdExt, FdMapping};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::UnixStream;
use tokio::sync::mpsc;

use super::adapter::Adapter;
use super::channel::{LONGEST_LINE, Line, Lines};
use super::flood::Allowance;
use super::protocol::{self, Command, Event};
use super::supervisor::{self, Orders, Report};
use super::{service, tree};

/// What to start as one member.
#[derive(Debug, Clone)]
pub struct MemberLaunch {
    pub command: Vec<String>,
    pub folder: PathBuf,
    /// On top of collo's own environment; none removes a variable.
    pub env: BTreeMap<String, Option<String>>,
    pub log: PathBuf,
    pub cores: Option<Vec<u32>>,
    /// For a foreign script: it has no barrier and no hold.
    pub adapter: Option<Adapter>,
}

/// Something that happened to a member.
#[derive(Debug)]
pub enum Signal {
    Started {
        pid: u32,
    },
    Said {
        event: Event,
        raw: Value,
    },
    /// A line that is not the protocol, or one too many; the rest of the channel is thrown away.
    Garbage {
        reason: String,
    },
    /// The member is over, and nothing that it started is left.
    Ended(Ended),
}

/// How a member was over.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    pub live: Live,
    pub cpu_time_s: Option<f64>,
    /// Processes that it left behind, with their names.
    pub orphans: Vec<(u32, String)>,
    /// Its last line on the channel had no end.
    pub cut_off: bool,
}

/// What the kernel says of how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Live {
    Exited(i32),
    Killed(i32),
    NotStarted(String),
    /// Its supervisor was killed, and the member with it.
    SupervisorLost,
}

impl std::fmt::Display for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Live::Exited(code) => write!(f, "exited with {code}"),
            Live::Killed(signal) => match nix::sys::signal::Signal::try_from(*signal) {
                Ok(name) => write!(f, "killed by {name}"),
                Err(_) => write!(f, "killed by signal {signal}"),
            },
            Live::NotStarted(reason) => write!(f, "not started: {reason}"),
            Live::SupervisorLost => write!(f, "its supervisor was killed"),
        }
    }
}

/// A group could not even be set up.
#[derive(Debug, thiserror::Error)]
#[error("cannot start member {member}")]
pub struct LaunchError {
    pub member: usize,
    #[source]
    pub source: std::io::Error,
}

/// The live members. Dropping it closes the lifelines: every process below is ended by its supervisor.
pub struct Group {
    members: Vec<Handles>,
}

struct Handles {
    supervisor: u32,
    channel: StdStream,
    control: StdStream,
}

impl Group {
    /// Start every member; what happens to them comes over `signals` with the member's index. It should hold a few: who has more to say
    /// waits, and all members are heard in turn.
    pub fn launch(members: &[MemberLaunch], signals: &mpsc::Sender<(usize, Signal)>) -> Result<Group, LaunchError> {
        // If a supervisor is killed, what was below it comes to us and can still be ended.
        let _ = nix::sys::prctl::set_child_subreaper(true);
        let mut group = Group { members: Vec::new() };
        for (index, launch) in members.iter().enumerate() {
            let started = start(index, launch, signals.clone()).map_err(|source| LaunchError { member: index, source })?;
            group.members.push(started);
        }
        Ok(group)
    }

    /// Tell a member something. A member that is gone hears nothing; its end is reported anyway.
    pub fn send(&self, member: usize, command: Command) {
        let _ = (&self.members[member].channel).write_all(command.line().as_bytes());
    }

    /// End a member and everything below it, now.
    pub fn kill(&self, member: usize) {
        let _ = (&self.members[member].control).write_all(b"kill\n");
    }

    /// The pids of the supervisors: each member is the tree below one.
    pub fn supervisors(&self) -> Vec<u32> {
        self.members.iter().map(|m| m.supervisor).collect()
    }

    /// End what a killed supervisor left to us: direct children of ours that are none of the supervisors, those of services included.
    pub fn sweep(&self) {
        let own = std::process::id();
        let known = [self.supervisors(), service::supervisors()].concat();
        for pid in tree::descendants(own) {
            if tree::parent_of(pid) == Some(own) && !known.contains(&pid) {
                tree::kill_descendants(pid);
                let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid as i32), nix::sys::signal::SIGKILL);
            }
        }
    }
}

fn start(index: usize, launch: &MemberLaunch, signals: mpsc::Sender<(usize, Signal)>) -> std::io::Result<Handles> {
    let (control, their_control) = pair()?;
    let (channel, their_channel) = pair()?;
    // The running binary, even if it was replaced on disk since.
    let mut command = std::process::Command::new("/proc/self/exe");
    command.arg(supervisor::VERB).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mappings = vec![
        FdMapping { parent_fd: their_control, child_fd: supervisor::CONTROL_FD },
        FdMapping { parent_fd: their_channel, child_fd: supervisor::CHANNEL_FD },
    ];
    command.fd_mappings(mappings).map_err(std::io::Error::other)?;
    let mut command = tokio::process::Command::from(command);
    let mut process = command.spawn()?;
    drop(command);
    let supervisor = process.id().ok_or_else(|| std::io::Error::other("the supervisor ended at once"))?;

    let mut orders = serde_json::to_string(&Orders {
        command: launch.command.clone(),
        folder: launch.folder.clone(),
        env: launch.env.clone(),
        log: launch.log.clone(),
        cores: launch.cores.clone(),
        adapter: launch.adapter.clone(),
        is_service: false,
        mps_pipe: None,
    })?;
    orders.push('\n');
    // The socket is new and empty, and holds far more than one line of orders.
    (&control).write_all(orders.as_bytes())?;
    let reports = UnixStream::from_std(control.try_clone()?)?;
    let said = UnixStream::from_std(channel.try_clone()?)?;
    tokio::spawn(async move {
        let ended = listen(index, said, reports, &signals).await;
        let _ = process.wait().await;
        let _ = signals.send((index, Signal::Ended(ended))).await;
    });
    Ok(Handles { supervisor, channel, control })
}

fn pair() -> std::io::Result<(StdStream, OwnedFd)> {
    let (ours, theirs) = StdStream::pair()?;
    ours.set_nonblocking(true)?;
    Ok((ours, theirs.into()))
}

/// Pass on what a member says and what its supervisor reports, until it is over and its channel is empty.
async fn listen(index: usize, said: UnixStream, reports: UnixStream, signals: &mpsc::Sender<(usize, Signal)>) -> Ended {
    let mut lines = Lines::new(said);
    let mut reports = BufReader::new(reports).lines();
    let mut heard = Heard { index, signals, count: 0, allowance: Allowance::begin(monotonic_ns()), open: true, cut_off: false };
    loop {
        tokio::select! {
            line = lines.next(), if heard.open => heard.line(line, &mut lines).await,
            report = reports.next_line() => {
                let report = report.ok().flatten().and_then(|line| serde_json::from_str::<Report>(&line).ok());
                let (live, cpu_time_s, orphans) = match report {
                    Some(Report::Started { pid, .. }) => {
                        let _ = signals.send((index, Signal::Started { pid })).await;
                        continue;
                    }
                    Some(Report::NotStarted { reason }) => (Live::NotStarted(reason), None, Vec::new()),
                    Some(Report::Ended { code, signal, cpu_time_s, orphans, .. }) => {
                        let live = match (code, signal) {
                            (Some(code), _) => Live::Exited(code),
                            (None, Some(signal)) => Live::Killed(signal),
                            (None, None) => Live::SupervisorLost,
                        };
                        (live, Some(cpu_time_s), orphans)
                    }
                    None => (Live::SupervisorLost, None, Vec::new()),
                };
                // Its last words may still be on their way; every writer is gone, so the end of the channel is near.
                let rest = async { while heard.open { let line = lines.next().await; heard.line(line, &mut lines).await; } };
                let _ = tokio::time::timeout(Duration::from_secs(1), rest).await;
                return Ended { live, cpu_time_s, orphans, cut_off: heard.cut_off };
            }
        }
    }
}

struct Heard<'a> {
    index: usize,
    signals: &'a mpsc::Sender<(usize, Signal)>,
    count: u64,
    allowance: Allowance,
    open: bool,
    cut_off: bool,
}

impl Heard<'_> {
    /// Pass a line on. While nobody has room for it nothing more is read, and the member waits in its `write`.
    async fn line(&mut self, line: Line, lines: &mut Lines<UnixStream>) {
        self.count += 1;
        let said = match line {
            Line::Whole(line) => match self.allowance.hear(line.len(), monotonic_ns()) {
                Ok(()) => {
                    protocol::parse(&line).map_err(|reason| format!("line {} of member {} {reason}", self.count, self.index))
                }
                Err(flood) => Err(format!("member {} {flood}", self.index)),
            },
            Line::TooLong => {
                let limit = LONGEST_LINE >> 20;
                Err(format!("line {} of member {} has more than {limit} MiB", self.count, self.index))
            }
            Line::Closed { cut_off } => {
                self.open = false;
                self.cut_off = cut_off;
                return;
            }
        };
        let signal = match said {
            Ok((event, raw)) => Signal::Said { event, raw },
            Err(reason) => {
                lines.go_deaf();
                Signal::Garbage { reason }
            }
        };
        let _ = self.signals.send((self.index, signal)).await;
    }
}
