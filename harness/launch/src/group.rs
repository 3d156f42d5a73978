//! A group of live members, seen from the harness: their messages arrive as one stream of signals, in order per member.

mod hosted;
#[cfg(test)]
mod hosted_tests;

pub use hosted::{HostLaunch, channel_of};

use std::collections::BTreeMap;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use collo_store::monotonic_ns;
use collo_text::{Diagnostic, PROCESS_LIMIT, is_process_limit};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::UnixStream;
use tokio::sync::{Notify, mpsc};

use super::adapter::Adapter;
use super::channel::{ChannelLine, ChannelLines, LONGEST_LINE};
use super::children;
use super::flood::Allowance;
use super::process::Process;
use super::protocol::{self, Command, MemberEvent};
use super::supervised::{self, BUSY, Patience};
use super::supervisor::{Orders, Output, Report};
use crate::group::hosted::Host;

/// What to start as one member.
#[derive(Debug, Clone)]
pub struct MemberLaunch {
    pub command: Vec<String>,
    pub folder: PathBuf,
    /// On top of collo's own environment; `None` removes a variable.
    pub env: BTreeMap<String, Option<String>>,
    pub log: PathBuf,
    pub cores: Option<Vec<u32>>,
    /// NUMA nodes that its memory is bound to; the system decides if `None`.
    pub memory_nodes: Option<Vec<u32>>,
    /// How its lines are read, of a script that does not speak the protocol: it has no barrier.
    pub adapter: Option<Adapter>,
    /// The pipe folder of the MPS daemon whose client it is.
    pub client_of: Option<PathBuf>,
}

/// An event of a member.
#[derive(Debug)]
pub enum Signal {
    Started {
        pid: u32,
    },
    Said {
        event: MemberEvent,
        raw: Value,
    },
    /// A line that violates the protocol, or one too many; the rest of the channel is discarded.
    Garbage {
        reason: String,
    },
    /// The member has ended, and nothing that it started is left.
    Ended(Ended),
}

/// How a member ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    pub live: Live,
    pub cpu_time_s: Option<f64>,
    /// Processes that it left behind, with their names.
    pub orphans: Vec<(u32, String)>,
    /// Its last line on the channel had no end.
    pub cut_off: bool,
    /// When it ended, by its supervisor; absent where that is not known.
    pub at_ns: Option<u64>,
    /// It left its channel without reading the last command: it did not leave because of it.
    pub unheard: bool,
}

impl Ended {
    /// One that ended in this way, of which nothing else is known.
    pub fn of(live: Live) -> Ended {
        Ended { live, cpu_time_s: None, orphans: Vec::new(), cut_off: false, at_ns: None, unheard: false }
    }

    /// Below a supervisor that was lost nothing goes on computing beside those who measure on. `by_force`: collo killed it.
    pub(super) fn swept(mut self, by_force: bool) -> Ended {
        if self.live == Live::SupervisorLost {
            children::sweep();
            if by_force {
                self.live = Live::SupervisorHung;
            }
        }
        self
    }
}

/// How it ended, according to the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Live {
    Exited(i32),
    Killed(i32),
    NotStarted(String),
    /// Its supervisor was killed, and the member with it.
    SupervisorLost,
    /// Its supervisor was stopped or hung; collo killed it and its descendants.
    SupervisorHung,
    /// It was a thread, and the process of all members ended, in this way.
    WithProcess(Box<Live>),
}

/// How the exit of a member begins that was never started.
pub const NOT_STARTED: &str = "not started";

impl std::fmt::Display for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Live::Exited(code) => write!(f, "exited with {code}"),
            Live::Killed(signal) => match nix::sys::signal::Signal::try_from(*signal) {
                Ok(name) => write!(f, "killed by {name}"),
                Err(_) => write!(f, "killed by signal {signal}"),
            },
            Live::NotStarted(reason) => write!(f, "{NOT_STARTED}: {reason}"),
            Live::SupervisorLost => write!(f, "its supervisor was killed"),
            Live::WithProcess(how) => write!(f, "ended with the process of all members ({how})"),
            Live::SupervisorHung => write!(f, "its supervisor stopped responding and was killed"),
        }
    }
}

/// A group could not be set up.
#[derive(Debug, thiserror::Error)]
#[error("cannot start member {member}")]
pub struct LaunchError {
    pub member: usize,
    #[source]
    pub source: std::io::Error,
}

impl From<LaunchError> for Diagnostic {
    fn from(e: LaunchError) -> Diagnostic {
        let shown = Diagnostic::new(e.to_string()).of_machine();
        let shown = if is_process_limit(&e.source) { shown.hint(PROCESS_LIMIT) } else { shown };
        shown.caused_by(e.source)
    }
}

/// The live members. Dropping it closes the lifelines: every process below is ended by its supervisor, or with it.
pub struct Group {
    /// By index; `None` once it was forgotten.
    pub(super) members: Vec<Option<Handles>>,
    /// The one process of them all, if they are its threads.
    pub(super) host: Option<Arc<Host>>,
}

/// What is open for a member. Those of one process have one supervisor.
pub(super) struct Handles {
    pub supervisor: u32,
    /// `None` if it exited immediately.
    pub process: Option<Arc<Process>>,
    pub channel: StdStream,
    pub control: Arc<StdStream>,
    /// Notified when it is to end.
    pub doomed: Arc<Notify>,
    /// A command could not be sent: it had closed its channel.
    pub unheard: Arc<AtomicBool>,
}

impl Group {
    /// Start every member; their events are sent to `signals` with the member's index. Its capacity should be small: a member
    /// with more to say waits, and all members are read in turn.
    pub fn launch(members: &[MemberLaunch], signals: &mpsc::Sender<(usize, Signal)>) -> Result<Group, LaunchError> {
        let mut group = Group::empty();
        for launch in members {
            group.add(launch, signals)?;
        }
        Ok(group)
    }

    /// Without members yet.
    pub fn empty() -> Group {
        // If a supervisor is killed, what was below it comes to us and can still be ended.
        children::inherit();
        Group { members: Vec::new(), host: None }
    }

    /// Start a further member; the pid of its supervisor. Its index is the number of members before it, whether or not they live.
    pub fn add(&mut self, launch: &MemberLaunch, signals: &mpsc::Sender<(usize, Signal)>) -> Result<u32, LaunchError> {
        let index = self.reserve();
        self.start(index, launch, signals)
    }

    /// The index of a further member, which is started later.
    pub fn reserve(&mut self) -> usize {
        self.members.push(None);
        self.members.len() - 1
    }

    /// Start a member under an index that was reserved for it; the pid of its supervisor.
    pub fn start(
        &mut self,
        index: usize,
        launch: &MemberLaunch,
        signals: &mpsc::Sender<(usize, Signal)>,
    ) -> Result<u32, LaunchError> {
        let started = start(index, launch, signals.clone()).map_err(|source| LaunchError { member: index, source })?;
        let supervisor = started.supervisor;
        self.members[index] = Some(started);
        Ok(supervisor)
    }

    /// Close what is open for a member that has ended.
    pub fn forget(&mut self, member: usize) {
        self.members[member] = None;
    }

    /// Send a command to a member. It is lost if the member is gone, whose end is reported anyway.
    pub fn send(&self, member: usize, command: Command) {
        if let Some(member) = &self.members[member]
            && (&member.channel).write_all(command.line().as_bytes()).is_err()
        {
            member.unheard.store(true, Ordering::Release);
        }
    }

    /// End a member and its descendants now: through its supervisor, and if that fails, by force.
    pub fn kill(&self, member: usize) {
        let Some(member) = &self.members[member] else { return };
        let _ = (&*member.control).write_all(b"kill\n");
        member.doomed.notify_one();
    }

    /// The pids of the supervisors: each member is the tree below one; without those that were forgotten. Members of one process
    /// have the same.
    pub fn supervisors(&self) -> Vec<u32> {
        self.members.iter().flatten().map(|m| m.supervisor).collect()
    }

    /// End processes inherited from a killed supervisor.
    pub fn sweep(&self) {
        children::sweep();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for member in self.members.iter().flatten() {
            let _ = member.control.shutdown(std::net::Shutdown::Both);
        }
        let left: Vec<&Process> = self.members.iter().flatten().filter_map(|m| m.process.as_deref()).collect();
        supervised::wait_or_kill_all(&left);
    }
}

fn start(index: usize, launch: &MemberLaunch, signals: mpsc::Sender<(usize, Signal)>) -> std::io::Result<Handles> {
    let (control, their_control) = pair()?;
    let (channel, their_channel) = pair()?;
    let mut command = tokio::process::Command::from(supervised::command(their_control, their_channel, Vec::new())?);
    let (mut child, own) = children::started(|| command.spawn(), tokio::process::Child::id)?;
    drop(command);
    let supervisor = own.pid();
    let process = Process::of(supervisor).map(Arc::new);
    let doomed = Arc::new(Notify::new());
    let control = Arc::new(control);
    let unheard = Arc::new(AtomicBool::new(false));
    let (process_, doomed_, unheard_) = (process.clone(), doomed.clone(), unheard.clone());
    let handles = Handles { supervisor, process: process_, channel, control, doomed: doomed_, unheard: unheard_ };
    // From here on an error ends it: the handles close its lifeline.
    supervised::orders(
        &handles.control,
        &Orders {
            command: launch.command.clone(),
            folder: launch.folder.clone(),
            env: launch.env.clone(),
            output: Output::Log(launch.log.clone()),
            cores: launch.cores.clone(),
            memory_nodes: launch.memory_nodes.clone(),
            adapter: launch.adapter.clone(),
            has_channel: true,
            channels: 0,
            asked_to_end: None,
            client_of: launch.client_of.clone(),
        },
    )?;
    let reports = UnixStream::from_std(handles.control.try_clone()?)?;
    let said = UnixStream::from_std(handles.channel.try_clone()?)?;
    let channel = handles.channel.try_clone()?;
    tokio::spawn(async move {
        let mut by_force = false;
        let ended = {
            let listening = listen(index, said, (&channel, &unheard), reports, &signals);
            tokio::pin!(listening);
            loop {
                tokio::select! {
                    ended = &mut listening => break ended,
                    () = killed_if_it_hangs(process.as_deref(), &doomed), if !by_force => by_force = true,
                }
            }
        };
        let _ = child.wait().await;
        drop(own);
        let _ = signals.send((index, Signal::Ended(ended.swept(by_force)))).await;
    });
    Ok(handles)
}

/// Returns when a supervisor had to be killed: it was stopped for too long, or did not end when told to.
pub(super) async fn killed_if_it_hangs(supervisor: Option<&Process>, doomed: &Notify) {
    let Some(process) = supervisor else { return std::future::pending().await };
    let (mut asked, mut patience) = (false, Patience::unasked());
    loop {
        let look = if asked { Duration::from_millis(50) } else { Duration::from_secs(1) };
        tokio::select! {
            () = doomed.notified(), if !asked => {
                asked = true;
                patience = Patience::with_the_end(BUSY);
            }
            () = tokio::time::sleep(look) => {}
        }
        if patience.is_over(process.is_stopped()) {
            process.signal(nix::sys::signal::Signal::SIGKILL);
            return;
        }
    }
}

pub(super) fn pair() -> std::io::Result<(StdStream, OwnedFd)> {
    let (ours, theirs) = StdStream::pair()?;
    ours.set_nonblocking(true)?;
    Ok((ours, theirs.into()))
}

/// Pass on what a member says and its supervisor reports, until it has ended and its channel is empty.
async fn listen(
    index: usize,
    said: UnixStream,
    (channel, unheard): (&StdStream, &AtomicBool),
    reports: UnixStream,
    signals: &mpsc::Sender<(usize, Signal)>,
) -> Ended {
    let mut lines = ChannelLines::new(said);
    let mut reports = BufReader::new(reports).lines();
    let mut heard = MemberReader::of(index, signals);
    loop {
        tokio::select! {
            line = lines.next(), if heard.open => heard.line(line, &mut lines).await,
            report = reports.next_line() => {
                let ended = match Reported::of(report) {
                    Reported::Started(pid) => {
                        let _ = signals.send((index, Signal::Started { pid })).await;
                        continue;
                    }
                    Reported::Ended(ended) => ended,
                };
                end_after_what_is_written(channel);
                while heard.open {
                    let line = lines.next().await;
                    heard.line(line, &mut lines).await;
                }
                let unheard = heard.unread || unheard.load(Ordering::Acquire);
                return Ended { cut_off: heard.cut_off, unheard, ..ended };
            }
        }
    }
}

/// End a member's channel after what was already written to it, which is still read, however long that takes. A process that escaped
/// its supervisor and still has the channel cannot delay the end. Source: unix(7) sockets keep what they received on
/// `shutdown(SHUT_RD)` (`unix_stream_read_generic` in Linux's net/unix/af_unix.c takes the queue first).
pub(super) fn end_after_what_is_written(channel: &StdStream) {
    // It fails only where the channel has already ended.
    let _ = channel.shutdown(std::net::Shutdown::Read);
}

/// What a supervisor reports of the process below it.
pub(super) enum Reported {
    Started(u32),
    Ended(Ended),
}

impl Reported {
    /// Of the next line of a supervisor; one that says nothing any more is lost.
    pub fn of(line: std::io::Result<Option<String>>) -> Reported {
        let report = line.ok().flatten().and_then(|line| serde_json::from_str::<Report>(&line).ok());
        match report {
            Some(Report::Started { pid, .. }) => Reported::Started(pid),
            Some(Report::NotStarted { reason, .. }) => Reported::Ended(Ended::of(Live::NotStarted(reason))),
            Some(Report::Ended { code, signal, cpu_time_s, orphans, at_ns }) => {
                let live = match (code, signal) {
                    (Some(code), _) => Live::Exited(code),
                    (None, Some(signal)) => Live::Killed(signal),
                    (None, None) => Live::SupervisorLost,
                };
                Reported::Ended(Ended { cpu_time_s: Some(cpu_time_s), orphans, at_ns: Some(at_ns), ..Ended::of(live) })
            }
            None => Reported::Ended(Ended::of(Live::SupervisorLost)),
        }
    }
}

pub(super) struct MemberReader<'a> {
    pub index: usize,
    pub signals: &'a mpsc::Sender<(usize, Signal)>,
    pub count: u64,
    pub allowance: Allowance,
    pub open: bool,
    pub cut_off: bool,
    /// It closed its channel without reading all that was sent.
    pub unread: bool,
    /// The exit code with which a thread has left, once it said so: nothing follows.
    pub left: Option<i32>,
    /// Whether it said last that it fails.
    pub failing: bool,
}

impl<'a> MemberReader<'a> {
    pub fn of(index: usize, signals: &'a mpsc::Sender<(usize, Signal)>) -> Self {
        let allowance = Allowance::begin(monotonic_ns());
        MemberReader {
            index,
            signals,
            count: 0,
            allowance,
            open: true,
            cut_off: false,
            unread: false,
            left: None,
            failing: false,
        }
    }

    /// Pass a line on. While the receiver is full nothing more is read, and the member blocks in its `write`.
    pub async fn line(&mut self, line: ChannelLine, lines: &mut ChannelLines<UnixStream>) {
        self.count += 1;
        let said = match line {
            ChannelLine::Whole(line) => match self.allowance.hear(line.len(), monotonic_ns()) {
                Ok(()) => {
                    protocol::parse(&line).map_err(|reason| format!("line {} of member {} {reason}", self.count, self.index))
                }
                Err(flood) => Err(format!("member {} {flood}", self.index)),
            },
            ChannelLine::TooLong => {
                let limit = LONGEST_LINE >> 20;
                Err(format!("line {} of member {} exceeds {limit} MiB", self.count, self.index))
            }
            ChannelLine::Closed { cut_off, unread } => {
                self.open = false;
                (self.cut_off, self.unread) = (cut_off, unread);
                return;
            }
        };
        let signal = match said {
            Ok((MemberEvent::Left { code }, _)) => {
                self.left = Some(code);
                lines.go_deaf();
                return;
            }
            Ok((event, raw)) => {
                self.failing = matches!(event, MemberEvent::Error(_));
                Signal::Said { event, raw }
            }
            Err(reason) => {
                lines.go_deaf();
                Signal::Garbage { reason }
            }
        };
        let _ = self.signals.send((self.index, signal)).await;
    }
}
