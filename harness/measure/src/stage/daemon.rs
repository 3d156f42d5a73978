//! MPS daemons of our own: started, asked for their server, examined, ended.
//!
//! In: devices, limits, a folder. Out: a [`DaemonProcess`] that answers and whose server serves, with what that server logged; or the
//! reason, in the words of the daemon's log. What stages a device notes each daemon with the lease: [`Daemon`].

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::orders;
use crate::stage::staging::StageError;
use collo_device::lease::GpuLease;
use collo_device::mps::{self, Control, Logged, ServerStart, Status};
use collo_launch::Service;
use collo_plan::sharing::Limits;

/// Time limit for a daemon to answer, and for its server to start: on a GPU without persistence they initialise that first.
const READY_WITHIN: Duration = Duration::from_secs(15);
/// Time limit for ending one, including its supervisor's.
const ENDS_WITHIN: Duration = Duration::from_secs(15);
const LOOK: Duration = Duration::from_millis(10);
/// How long after its start a server is asked for its status, and then again: each question runs a program.
const ASK_EVERY: Duration = Duration::from_secs(1);

/// Of a log, at most so much is read.
const MOST_LOG_BYTES: u64 = 16 << 20;

/// An MPS daemon of ours, for those who ask it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MpsDaemon {
    pub control: Control,
    /// The folder of its log.
    pub log: PathBuf,
    /// The number of its devices.
    pub devices: u32,
}

impl MpsDaemon {
    /// What it and its servers have logged; members can write there, too.
    pub fn log_text(&self) -> String {
        let bytes = collo_text::read_end(&self.log.join(mps::LOG), MOST_LOG_BYTES).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// An MPS daemon with its process, which ends on drop.
pub struct DaemonProcess {
    daemon: MpsDaemon,
    service: Service,
}

impl DaemonProcess {
    /// Start a daemon on these devices (UUIDs with commas between them), and wait until it answers. `pipe` is a folder of ours. The error
    /// is the reason.
    pub fn start(uuids: &str, pipe: &Path, log: &Path, limits: &Limits, within: Duration) -> Result<DaemonProcess, String> {
        let begun = Instant::now();
        let orders = orders::daemon(uuids, pipe, log, limits);
        let service = Service::start(orders).map_err(|e| format!("the MPS daemon cannot be started: {e}"))?;
        let daemon = MpsDaemon { control: Control::at(pipe), log: log.into(), devices: orders::devices(uuids) };
        let mut started = DaemonProcess { daemon, service };
        loop {
            if let Some(how) = started.service.ended() {
                let reason = started.reason();
                return Err(format!("the MPS daemon did not start: {how}{reason}"));
            }
            if started.daemon.control.is_ready() {
                return Ok(started);
            }
            if begun.elapsed() > within {
                return Err(format!("the MPS daemon did not respond within {} s{}", within.as_secs(), started.reason()));
            }
            std::thread::sleep(LOOK);
        }
    }

    pub fn daemon(&self) -> &MpsDaemon {
        &self.daemon
    }

    /// Start this user's server, which clients would start otherwise, and wait until it serves: what it logged of its devices and limits,
    /// or why no server can start here.
    pub fn start_server(&mut self, within: Duration) -> Result<Logged, String> {
        let begun = Instant::now();
        let control = self.daemon.control.clone();
        control.start_server(nix::unistd::geteuid().as_raw()).map_err(|e| e.to_string())?;
        let mut asked = Instant::now();
        loop {
            let log = self.daemon.log_text();
            match mps::server_start(&log) {
                ServerStart::Serving => return Ok(mps::logged(&log)),
                ServerStart::Failed => return Err(format!("no MPS server can start{}", self.reason())),
                ServerStart::Pending => {}
            }
            if let Some(how) = self.service.ended() {
                return Err(format!("the MPS daemon ended while its server started: {how}{}", self.reason()));
            }
            // A server whose log has other words than those we know serves all the same.
            if asked.elapsed() > ASK_EVERY {
                asked = Instant::now();
                let serves = |server: &u32| control.status(*server) == Ok(Status::Active);
                if control.servers().is_ok_and(|servers| servers.iter().any(serves)) {
                    return Ok(mps::logged(&log));
                }
            }
            if begun.elapsed() > within {
                return Err(format!("no MPS server started within {} s{}", within.as_secs(), self.reason()));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// What its log gives as the reason, to be appended to a sentence: the trouble that it reports, else its last line.
    fn reason(&self) -> String {
        let log = self.daemon.log_text();
        let last = || log.lines().next_back().map(str::to_string);
        mps::trouble(&log).or_else(last).map(|line| format!("; it logged `{line}`")).unwrap_or_default()
    }

    /// What is wrong with it now; `None` if it works.
    pub fn trouble(&mut self) -> Option<String> {
        if let Some(how) = self.service.ended() {
            return Some(format!("the MPS daemon ended while members ran: {how}{}", self.reason()));
        }
        match self.daemon.control.servers() {
            Err(e) => Some(format!("the MPS daemon no longer responds: {e}")),
            Ok(servers) => {
                let fault = |server: &u32| matches!(self.daemon.control.status(*server), Ok(Status::Fault));
                // A server leaves FAULT when its clients are gone, which they are by now; its log stays. And some drivers report no status.
                let faulted = mps::has_fault(&self.daemon.log_text()) || servers.iter().any(fault);
                faulted.then(|| format!("the MPS server is in FAULT{}", self.reason()))
            }
        }
    }

    /// End it, its server and their clients, within this time by force; nothing is left.
    pub fn stop(self, within: Duration) {
        self.service.stop(within);
    }
}

/// An MPS daemon that stages a device: the journal of a lease knows it from before it is started until after it has ended.
pub struct Daemon(DaemonProcess);

impl Daemon {
    /// Start one and its server, whose log must not contradict the limits.
    pub(super) fn start(uuids: &str, log: &Path, hold: &mut GpuLease, limits: &Limits) -> Result<Daemon, StageError> {
        let cannot = |e: std::io::Error| StageError::because(format!("the MPS daemon cannot be started: {e}"));
        fs_err::create_dir_all(log).map_err(cannot)?;
        // The journal has it before it exists, so that none is left that no journal knows.
        let pipe = mps::folder::free();
        hold.note_daemon(&pipe, true).map_err(StageError::from)?;
        let begun = mps::folder::make(&pipe).map_err(cannot);
        let begun =
            begun.and_then(|()| DaemonProcess::start(uuids, &pipe, log, limits, READY_WITHIN).map_err(StageError::because));
        let process = match begun {
            Ok(process) => process,
            Err(reason) => {
                forget(&pipe, hold);
                return Err(reason);
            }
        };
        let mut daemon = Daemon(process);
        let devices = daemon.served().devices;
        let reason = match daemon.0.start_server(READY_WITHIN) {
            Ok(logged) => logged.contradicts(limits, devices).map(|what| format!("the limits of MPS are not in force: {what}")),
            Err(reason) => Some(reason),
        };
        let Some(reason) = reason else { return Ok(daemon) };
        daemon.end(hold);
        Err(StageError::because(reason))
    }

    /// Where to reach it.
    pub(super) fn served(&self) -> &MpsDaemon {
        self.0.daemon()
    }

    /// A folder for the log of one that takes its place.
    pub(super) fn next_log(&self) -> PathBuf {
        let name = self.served().log.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (name, before) = name.split_once('.').map_or((&*name, 0), |(name, n)| (name, n.parse().unwrap_or(0)));
        self.served().log.with_file_name(format!("{name}.{}", before + 1_u32))
    }

    /// What is wrong with it now; `None` if it works.
    pub(super) fn trouble(&mut self) -> Option<String> {
        self.0.trouble()
    }

    pub(super) fn end(self, hold: &mut GpuLease) {
        let pipe = self.served().control.pipe.clone();
        self.0.stop(ENDS_WITHIN);
        forget(&pipe, hold);
    }
}

/// Remove what a daemon leaves. If its end cannot be noted, the next restore finds no daemon there, which is right too.
fn forget(pipe: &Path, hold: &mut GpuLease) {
    mps::folder::remove(pipe);
    let _ = hold.note_daemon(pipe, false);
}
