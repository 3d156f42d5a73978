//! The small process above every member: our own binary, executed again. Nothing that a member starts outlives it.
//!
//! It is a child subreaper in a session of its own (`supervised.rs`), so that it inherits double-forked daemons and `setsid` children, and it has
//! one end of the control socket: when the other end closes, collo is gone, for whatever reason, and all descendants are ended.
//! If the supervisor itself is killed, the member dies with it (`PR_SET_PDEATHSIG`).
//!
//! In: one line of [`Orders`], then nothing or `kill`. Out: [`Report`] lines.
//!
//! To add something that is done before a kill: a field of [`Farewells`], supplied by `supervisor_entry` in `measure/src/lib.rs`.
//! This package knows no GPU.

use crate::mark::{SUPERVISOR_VERB, cgroup};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use collo_store::monotonic_ns;
use collo_text::{PROCESS_LIMIT, is_process_limit};
use command_fds::{CommandFdExt, FdMapping};
use nix::fcntl::{FcntlArg, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::prctl;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::time::TimeValLike;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use super::adapter::Adapter;
use super::foreign::Foreign;
use super::{children, memory_policy, tree};
use crate::interrupted::ENDING;

/// The argument after it if it is to enter the control group of its collo.
pub const IN_GROUP: &str = "in-group";
/// Descriptors in the supervisor.
pub const CONTROL_FD: i32 = 3;
pub const CHANNEL_FD: i32 = 4;
pub const GROUP_FD: i32 = 5;
/// The first of the further channels, for a process that hosts several members.
pub const HOSTED_FD: i32 = 6;
/// The channel's descriptor in the member, passed in `COLLO_FD`; in a process that hosts several members the first of theirs.
pub const MEMBER_FD: i32 = 3;

/// Time for such a service to end, and for clients to leave one.
const FAREWELL: Duration = Duration::from_secs(3);
/// Time in which what a member left behind is killed, again and again.
const LEFT_BEHIND: Duration = Duration::from_secs(10);

/// What to start.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Orders {
    pub command: Vec<String>,
    pub folder: PathBuf,
    /// On top of collo's own environment; `None` removes a variable.
    pub env: BTreeMap<String, Option<String>>,
    pub output: Output,
    /// Logical processors to stay on; all if `None`.
    pub cores: Option<Vec<u32>>,
    /// NUMA nodes that its memory is bound to; the system decides if `None`.
    pub memory_nodes: Option<Vec<u32>>,
    /// For a foreign script.
    pub adapter: Option<Adapter>,
    /// Without one a workload runs as if started by hand.
    pub has_channel: bool,
    /// The number of channels from [`HOSTED_FD`] on, one for each member that the program hosts; 0 for a member of its own.
    #[serde(default)]
    pub channels: u32,
    /// Folder of a service that is asked to end before it is killed: an MPS daemon, which ends its clients first.
    pub asked_to_end: Option<PathBuf>,
    /// Folder of the MPS daemon whose clients the program and its children are: they leave it before they are killed.
    pub client_of: Option<PathBuf>,
}

/// The destination of the started program's output.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Output {
    /// Both streams, appended to this file.
    Log(PathBuf),
    /// The supervisor's own.
    Inherited,
}

/// Events of the started program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "report", rename_all = "snake_case")]
pub enum Report {
    Started {
        pid: u32,
        at_ns: u64,
    },
    NotStarted {
        reason: String,
        /// A limit on the number of processes is the cause, not the program.
        #[serde(default)]
        of_limit: bool,
    },
    Ended {
        code: Option<i32>,
        signal: Option<i32>,
        at_ns: u64,
        /// CPU time of the member and of all its reaped descendants.
        cpu_time_s: f64,
        /// Processes that it left behind and that were ended, with their names.
        orphans: Vec<(u32, String)>,
    },
}

/// The supervisor's program: the running one, even if it was replaced on disk since.
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

pub fn program() -> &'static Path {
    PROGRAM.get_or_init(|| "/proc/self/exe".into())
}

/// For a program without this entry point, such as one of tests: what to start instead.
pub fn is_at(program: impl Into<PathBuf>) {
    let _ = PROGRAM.set(program.into());
}

/// What is done before something is killed that needs more than a signal, each within a time limit.
#[derive(Clone, Copy)]
pub struct Farewells {
    /// Ask a service to end, by the folder of its socket.
    pub service: fn(&Path, Duration),
    /// Part these processes from the service whose clients they are.
    pub clients: fn(&Path, &[u32], Duration),
}

impl Farewells {
    fn say(&self, orders: &Orders) {
        if let Some(at) = &orders.asked_to_end {
            (self.service)(at, FAREWELL);
        }
        if let Some(at) = &orders.client_of {
            (self.clients)(at, &tree::descendants(std::process::id()), FAREWELL);
        }
    }
}

/// If this process was started as a supervisor, run as one; must be called first thing in `main`.
pub fn entry(farewells: Farewells) -> Option<ExitCode> {
    (std::env::args().nth(1).as_deref() == Some(SUPERVISOR_VERB)).then(|| match supervise(farewells) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    })
}

fn supervise(farewells: Farewells) -> std::io::Result<()> {
    // SAFETY: collo mapped exactly these two descriptors into this process, and nothing else here knows them.
    let (control, channel) = unsafe { (OwnedFd::from_raw_fd(CONTROL_FD), OwnedFd::from_raw_fd(CHANNEL_FD)) };
    close_on_exec(&control)?;
    close_on_exec(&channel)?;
    let mut control = UnixStream::from(control);
    prctl::set_child_subreaper(true)?;
    let _ = prctl::set_name(c"collo-supervise");
    // Ctrl-C in the terminal is collo's to judge; the lifeline tells us what follows from it.
    for signal in ENDING.into_iter().chain([Signal::SIGPIPE]) {
        ignore(signal)?;
    }
    let mut children = SigSet::empty();
    children.add(Signal::SIGCHLD);
    children.thread_block()?;
    let died = SignalFd::with_flags(&children, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;

    if std::env::args().nth(2).as_deref() == Some(IN_GROUP) {
        // SAFETY: collo mapped this descriptor as well, and nothing else here knows it.
        cgroup::enter(unsafe { OwnedFd::from_raw_fd(GROUP_FD) });
    }

    let mut line = String::new();
    let mut reader = BufReader::new(&control);
    reader.read_line(&mut line)?;
    // Whoever stops at once may have said so behind the orders already.
    let doomed = !reader.buffer().is_empty();
    let orders: Orders = serde_json::from_str(&line)?;
    // SAFETY: collo mapped as many descriptors as its orders say, and nothing else here knows them.
    let hosted: Vec<OwnedFd> = (0..orders.channels as i32).map(|n| unsafe { OwnedFd::from_raw_fd(HOSTED_FD + n) }).collect();
    for channel in &hosted {
        close_on_exec(channel)?;
    }
    match start(&orders, channel, hosted) {
        Ok(member) => watch(&mut control, &died, member, &|| farewells.say(&orders), doomed),
        Err(NotStarted { reason, of_limit }) => report(&mut control, &Report::NotStarted { reason, of_limit }),
    }
    tree::end_descendants(LEFT_BEHIND);
    Ok(())
}

struct SupervisedMember {
    pid: Pid,
    foreign: Option<Foreign>,
}

/// Why the program was not started.
struct NotStarted {
    reason: String,
    of_limit: bool,
}

impl From<String> for NotStarted {
    fn from(reason: String) -> NotStarted {
        NotStarted { reason, of_limit: false }
    }
}

fn start(orders: &Orders, channel: OwnedFd, hosted: Vec<OwnedFd>) -> Result<SupervisedMember, NotStarted> {
    let [program, arguments @ ..] = &orders.command[..] else {
        return Err("its command is empty".to_string().into());
    };
    let log = match &orders.output {
        Output::Log(path) => Some(File::options().create(true).append(true).open(path).map_err(|e| format!("its log: {e}"))?),
        Output::Inherited => None,
    };
    let mut command = Command::new(program);
    command.args(arguments).current_dir(&orders.folder).stdin(Stdio::null());
    for (name, value) in &orders.env {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    if let Some(nodes) = &orders.memory_nodes {
        memory_policy::bind(nodes)?;
    }
    children::begin(&mut command, Signal::SIGKILL);
    let cores = orders.cores.clone();
    // SAFETY: only async-signal-safe system calls between fork and exec; the vector was allocated before.
    unsafe {
        command.pre_exec(move || {
            for signal in ENDING {
                sigaction(signal, &SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty()))?;
            }
            if let Some(cores) = &cores {
                let mut set = CpuSet::new();
                for &core in cores {
                    set.set(core as usize)?;
                }
                sched_setaffinity(Pid::from_raw(0), &set)?;
            }
            Ok(())
        });
    }
    let started_ns = monotonic_ns();
    let text = |e: std::io::Error| e.to_string();
    let mut foreign = None;
    match (&orders.adapter, log) {
        (Some(adapter), Some(log)) => {
            let (printed, stdout) = std::io::pipe().map_err(text)?;
            let (logged, stderr) = std::io::pipe().map_err(text)?;
            command.stdout(stdout).stderr(stderr).env("PYTHONUNBUFFERED", "1").env_remove("COLLO_FD");
            let outputs = [printed, logged].map(|output| OwnedFd::from(output).into());
            foreign = Some(Foreign::new(adapter, outputs, log, UnixStream::from(channel), started_ns)?);
        }
        (_, log) => {
            if let Some(log) = log {
                command.stdout(log.try_clone().map_err(text)?).stderr(log);
            }
            if orders.has_channel {
                command.env("COLLO_FD", MEMBER_FD.to_string());
                let mapping = FdMapping { parent_fd: channel, child_fd: MEMBER_FD };
                command.fd_mappings(vec![mapping]).map_err(|e| e.to_string())?;
            } else {
                command.env_remove("COLLO_FD");
                if !hosted.is_empty() {
                    let mapping = |(parent_fd, child_fd)| FdMapping { parent_fd, child_fd };
                    let mappings = hosted.into_iter().zip(MEMBER_FD..).map(mapping).collect();
                    command.fd_mappings(mappings).map_err(|e| e.to_string())?;
                }
            }
        }
    }
    // The command holds this side's copies of the channel and of the pipe; they must be closed before anyone waits for
    // their end, so it is dropped here.
    let child = command.spawn().map_err(|e| match is_process_limit(&e) {
        true => NotStarted { reason: format!("`{program}` does not start: {e}; {PROCESS_LIMIT}"), of_limit: true },
        false => format!("`{program}` does not start: {e}").into(),
    })?;
    drop(command);
    Ok(SupervisedMember { pid: Pid::from_raw(child.id() as i32), foreign })
}

/// Run until the member ends, or collo does.
fn watch(control: &mut UnixStream, died: &SignalFd, mut member: SupervisedMember, farewell: &dyn Fn(), mut told: bool) {
    report(control, &Report::Started { pid: member.pid.as_raw() as u32, at_ns: monotonic_ns() });
    let mut doomed = false;
    let ended = loop {
        // Anything said after the orders means the end: `kill`, or the end of collo itself.
        told = told || wait(control, died, member.foreign.as_mut());
        if told && !std::mem::replace(&mut doomed, true) {
            farewell();
        }
        if doomed {
            tree::kill_descendants(std::process::id());
            std::thread::sleep(Duration::from_millis(1));
        }
        while died.read_signal().is_ok_and(|s| s.is_some()) {}
        if let Some(status) = collect(member.pid) {
            break status;
        }
    };
    let at_ns = monotonic_ns();
    let left: Vec<(u32, String)> = tree::descendants(std::process::id())
        .into_iter()
        .filter_map(|pid| Some((pid, tree::name_of(pid).filter(|_| !tree::is_zombie(pid))?)))
        .collect();
    tree::end_descendants(LEFT_BEHIND);
    if let Some(foreign) = &mut member.foreign {
        foreign.finish(!doomed && matches!(ended, WaitStatus::Exited(_, 0)));
    }
    let (code, signal) = match ended {
        WaitStatus::Exited(_, code) => (Some(code), None),
        WaitStatus::Signaled(_, signal, _) => (None, Some(signal as i32)),
        _ => (None, None),
    };
    let cpu_time_s = getrusage(UsageWho::RUSAGE_CHILDREN)
        .map(|u| (u.user_time().num_microseconds() + u.system_time().num_microseconds()) as f64 / 1e6)
        .unwrap_or_default();
    report(control, &Report::Ended { code, signal, at_ns, cpu_time_s, orphans: left });
}

/// Sleep until an event; the output of a foreign script is passed on. True when collo wants the end.
fn wait(control: &UnixStream, died: &SignalFd, foreign: Option<&mut Foreign>) -> bool {
    let mut fds = vec![PollFd::new(control.as_fd(), PollFlags::POLLIN), PollFd::new(died.as_fd(), PollFlags::POLLIN)];
    if let Some(foreign) = &foreign {
        // A script without the protocol cannot hear `stop`: whatever is said on its channel means the end.
        fds.push(PollFd::new(foreign.channel(), PollFlags::POLLIN));
        fds.extend(foreign.outputs().map(|output| PollFd::new(output, PollFlags::POLLIN)));
    }
    // Every process that ends raises SIGCHLD, so there is no need for a timeout; a second is only a belt to the braces.
    let until_due = |due_ns: u64| (due_ns.saturating_sub(monotonic_ns()) / 1_000_000 + 1).min(1000) as u16;
    let timeout_ms = foreign.as_ref().and_then(|foreign| foreign.due_ns()).map_or(1000, until_due);
    let _ = poll(&mut fds, PollTimeout::from(timeout_ms));
    let ready = |i: usize| fds.get(i).and_then(PollFd::any).unwrap_or(false);
    let told = ready(0) || ready(2);
    if let Some(foreign) = foreign {
        foreign.pump();
    }
    told
}

/// Reap all ended children; returns the status of the member itself if it is among them.
fn collect(member: Pid) -> Option<WaitStatus> {
    let mut found = None;
    while let Ok(status) = waitpid(None, Some(WaitPidFlag::WNOHANG)) {
        match status {
            WaitStatus::StillAlive => break,
            status if status.pid() == Some(member) => found = Some(status),
            _ => {}
        }
    }
    found
}

fn report(control: &mut UnixStream, report: &Report) {
    if let Ok(line) = serde_json::to_string(report) {
        let _ = control.write_all(format!("{line}\n").as_bytes());
    }
}

fn ignore(signal: Signal) -> nix::Result<()> {
    // SAFETY: SIG_IGN installs no handler that could run.
    unsafe { sigaction(signal, &SigAction::new(SigHandler::SigIgn, SaFlags::empty(), SigSet::empty())) }.map(drop)
}

fn close_on_exec(fd: &OwnedFd) -> nix::Result<()> {
    fcntl(fd, FcntlArg::F_SETFD(nix::fcntl::FdFlag::FD_CLOEXEC)).map(drop)
}
