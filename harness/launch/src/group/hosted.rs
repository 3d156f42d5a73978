//! Members that are threads of one process: one supervisor, one lifeline, and a channel for each.
//!
//! A member has ended when its thread said so (`left`), the last of them when the process is gone, so that nothing is left when all
//! have ended. The end of the process ends all that had not left before; whose doing it was, it does not tell.

use std::os::unix::net::UnixStream as StdStream;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::sync::{Notify, mpsc};

use crate::channel::ChannelLines;
use crate::group::{self, Ended, Group, Handles, LaunchError, Live, MemberLaunch, MemberReader, Reported, Signal};
use crate::process::Process;
use crate::supervisor::{MEMBER_FD, Orders, Output};
use crate::{children, supervised};

/// A process that hosts several members.
#[derive(Debug, Clone)]
pub struct HostLaunch {
    /// How it is started. Without an adapter: its members speak the protocol.
    pub process: MemberLaunch,
    pub members: usize,
}

/// The one process of a group.
#[derive(Default)]
pub(crate) struct Host {
    ended: Mutex<Option<Ended>>,
}

/// The descriptor of a member's channel in the process that hosts it.
pub fn channel_of(member: usize) -> i32 {
    MEMBER_FD + member as i32
}

impl Group {
    /// Start all members in one process; their events are sent to `signals` as those of [`Group::launch`].
    pub fn host(launch: &HostLaunch, signals: &mpsc::Sender<(usize, Signal)>) -> Result<Group, LaunchError> {
        let mut group = Group::empty();
        let host = Arc::new(Host::default());
        group.host = Some(host.clone());
        start(launch, &mut group.members, host, signals.clone()).map_err(|source| LaunchError { member: 0, source })?;
        Ok(group)
    }

    /// How the one process of all members ended: `None` before, and where each has its own.
    pub fn process_ended(&self) -> Option<Ended> {
        self.host.as_ref()?.ended.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn start(
    launch: &HostLaunch,
    members: &mut Vec<Option<Handles>>,
    host: Arc<Host>,
    signals: mpsc::Sender<(usize, Signal)>,
) -> std::io::Result<()> {
    let (control, their_control) = group::pair()?;
    // A supervisor has one for a member of its own; nobody speaks on it.
    let (_unused, their_unused) = group::pair()?;
    let (channels, theirs): (Vec<StdStream>, Vec<_>) =
        (0..launch.members).map(|_| group::pair()).collect::<std::io::Result<Vec<_>>>()?.into_iter().unzip();
    let mut command = tokio::process::Command::from(supervised::command(their_control, their_unused, theirs)?);
    let (child, own) = children::started(|| command.spawn(), tokio::process::Child::id)?;
    drop(command);
    let supervisor = own.pid();
    let process = Process::of(supervisor).map(Arc::new);
    let (control, doomed) = (Arc::new(control), Arc::new(Notify::new()));
    let (mut said, mut ends) = (Vec::new(), Vec::new());
    for channel in channels {
        ends.push(channel.try_clone()?);
        said.push(UnixStream::from_std(channel.try_clone()?)?);
        let (process, control, doomed) = (process.clone(), control.clone(), doomed.clone());
        members.push(Some(Handles { supervisor, process, channel, control, doomed, unheard: Arc::default() }));
    }
    // From here on an error ends it: the handles close its lifeline.
    let MemberLaunch { command, folder, env, log, cores, memory_nodes, client_of, adapter: _ } = launch.process.clone();
    supervised::orders(
        &control,
        &Orders {
            command,
            folder,
            env,
            output: Output::Log(log),
            cores,
            memory_nodes,
            adapter: None,
            has_channel: false,
            channels: launch.members as u32,
            asked_to_end: None,
            client_of,
        },
    )?;
    let reports = BufReader::new(UnixStream::from_std(control.try_clone()?)?).lines();
    tokio::spawn(watch(Hosted { said, ends, reports, process, doomed, host, signals }, child, own));
    Ok(())
}

/// What is heard of one process and its members.
struct Hosted {
    said: Vec<UnixStream>,
    /// The same channels, so that they can be ended while they are read.
    ends: Vec<StdStream>,
    reports: Lines<BufReader<UnixStream>>,
    process: Option<Arc<Process>>,
    doomed: Arc<Notify>,
    host: Arc<Host>,
    signals: mpsc::Sender<(usize, Signal)>,
}

/// How a member's channel came to its end: whether a line was cut off, whether it failed last, and its exit code if it left.
struct Silent {
    cut_off: bool,
    failing: bool,
    left: Option<i32>,
}

async fn watch(hosted: Hosted, mut child: tokio::process::Child, own: children::Own) {
    let Hosted { said, ends, mut reports, process, doomed, host, signals } = hosted;
    let members = said.len();
    // Each channel is read by a task of its own, so that a member with much to say delays no other.
    let (silent, mut silences) = mpsc::channel::<(usize, Silent)>(members.max(1));
    let mut readers = tokio::task::JoinSet::new();
    for (index, channel) in said.into_iter().enumerate() {
        readers.spawn(listen(index, channel, signals.clone(), silent.clone()));
    }
    drop(silent);
    let mut silences_of: Vec<Option<Silent>> = (0..members).map(|_| None).collect();
    let mut told = vec![false; members];
    // Across all that is heard: how long it has been asked to end must not be forgotten over a message.
    let hangs = group::killed_if_it_hangs(process.as_deref(), &doomed);
    tokio::pin!(hangs);
    let mut by_force = false;
    let ended = loop {
        tokio::select! {
            report = reports.next_line() => match Reported::of(report) {
                Reported::Started(pid) => {
                    for member in 0..members {
                        let _ = signals.send((member, Signal::Started { pid })).await;
                    }
                }
                Reported::Ended(ended) => break ended,
            },
            Some((member, silence)) = silences.recv() => {
                let left = silence.left;
                silences_of[member] = Some(silence);
                // The last to leave has ended when nothing of the process is left.
                let others = (0..members).any(|other| other != member && !told[other]);
                if let (Some(code), true) = (left, others) {
                    told[member] = true;
                    let ended = Ended::of(Live::Exited(code));
                    let _ = signals.send((member, Signal::Ended(ended))).await;
                }
            }
            () = &mut hangs, if !by_force => by_force = true,
        }
    };
    let _ = child.wait().await;
    drop(own);
    let ended = ended.swept(by_force);
    *host.ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(ended.clone());
    ends.iter().for_each(group::end_after_what_is_written);
    while let Some((member, silence)) = silences.recv().await {
        silences_of[member] = Some(silence);
    }
    let said = |member: usize| silences_of[member].as_ref();
    // Whoever said that it fails is heard first: it is the reason for the end of the others.
    let mut order: Vec<usize> = (0..members).filter(|member| !told[*member]).collect();
    order.sort_by_key(|member| !said(*member).is_some_and(|s| s.failing || s.left.is_some_and(|code| code != 0)));
    for member in order {
        let live = match (said(member).and_then(|s| s.left), &ended.live) {
            // It left in order, and so did the process.
            (Some(code), Live::Exited(0)) => Live::Exited(code),
            (_, lost @ (Live::NotStarted(_) | Live::SupervisorLost | Live::SupervisorHung)) => lost.clone(),
            (Some(code), _) if code != 0 => Live::Exited(code),
            (_, how) => Live::WithProcess(Box::new(how.clone())),
        };
        let cut_off = said(member).is_some_and(|s| s.cut_off);
        let ended = Ended { cut_off, ..Ended::of(live) };
        let _ = signals.send((member, Signal::Ended(ended))).await;
    }
}

/// Pass on what a member says, until it leaves or its channel is closed.
async fn listen(index: usize, said: UnixStream, signals: mpsc::Sender<(usize, Signal)>, silent: mpsc::Sender<(usize, Silent)>) {
    let mut lines = ChannelLines::new(said);
    let mut heard = MemberReader::of(index, &signals);
    while heard.open && heard.left.is_none() {
        let line = lines.next().await;
        heard.line(line, &mut lines).await;
    }
    let _ = silent.send((index, Silent { cut_off: heard.cut_off, failing: heard.failing, left: heard.left })).await;
}
