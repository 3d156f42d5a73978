//! A GPU in the state that a seating asks for: what its members must see, and where that is verified.

use std::path::{Path, PathBuf};

use super::daemon::MpsDaemon;
use collo_device::nvml::instances::MigDevice;
use collo_device::services::Services;
use collo_device::{mps, state_folder};
use collo_gpus::PartitionError;
use collo_plan::experiment::SourceChoice;
use collo_plan::sharing::MPS_PROGRAM;
use collo_sample::{Board, BoardInstance};

/// What the user allows a campaign to do with a GPU.
#[derive(Debug, Clone, Copy, Default)]
pub struct Consent {
    /// Under MPS, let only the server use it.
    pub exclusive: bool,
    /// Measure although others compute on it; the runs are indicative.
    pub foreign: bool,
    /// What to do with services that block a change of MIG mode.
    pub services: Services,
}

/// A staged GPU: what was requested, and where to verify it. Evidence is gathered from a copy of it on any thread.
#[derive(Debug, Clone)]
pub struct StagedCard {
    pub label: String,
    pub uuid: String,
    pub sms: Option<u32>,
    pub mig: bool,
    /// By member.
    pub devices: Vec<Visible>,
    pub daemons: Vec<MpsDaemon>,
    /// The folder in which members without MPS look for a daemon, and find none.
    pub empty: PathBuf,
    pub foreign: bool,
    /// The thread percentage per client, set in the daemons.
    pub thread_limit_percent: Option<u8>,
    /// The memory limit per client, set in the daemons.
    pub memory_limit_bytes: Option<u64>,
    /// Members have memory limits of their own, which no daemon reports.
    pub own_memory_limits: bool,
}

/// What one member must see, and nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visible {
    pub uuid: String,
    pub sms: Option<u32>,
    pub gpu_instance: Option<u32>,
    pub compute_instance: Option<u32>,
    /// The daemon whose client it has to be.
    pub daemon: Option<usize>,
    /// Its limit of active threads.
    pub percent: Option<u8>,
}

impl Visible {
    /// An instance of it instead.
    pub(super) fn on(&self, device: &MigDevice) -> Visible {
        Visible {
            uuid: device.uuid.clone(),
            sms: device.sms,
            gpu_instance: Some(device.gpu_instance),
            compute_instance: Some(device.compute_instance),
            ..self.clone()
        }
    }
}

/// An empty folder of ours: a member that looks there for an MPS daemon finds none.
pub(super) fn empty_folder() -> Result<PathBuf, StageError> {
    let folder = state_folder::make().map_err(|e| StageError::because(e.what()))?.join(mps::NO_DAEMON);
    fs_err::create_dir_all(&folder).map_err(|e| StageError::because(e.to_string()))?;
    match fs_err::read_dir(&folder).map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(folder),
        _ => Err(StageError::because(format!("{} is not empty, so members might find an MPS daemon in it", folder.display()))),
    }
}

/// Without the program there is no daemon.
pub(super) fn needs_program() -> Result<(), StageError> {
    match mps::program() {
        Some(_) => Ok(()),
        None => Err(StageError::because(format!("`{}` is not on the PATH; it comes with the driver", MPS_PROGRAM))),
    }
}

impl StagedCard {
    /// The pipe folder of the daemon whose client a member has to be.
    pub(super) fn pipe_of(&self, member: usize) -> Option<&Path> {
        let daemon = self.devices[member].daemon.and_then(|at| self.daemons.get(at))?;
        Some(&daemon.control.pipe)
    }

    /// Whether one of its devices is among these, UUIDs with commas between them.
    pub(super) fn is_among(&self, uuids: &str) -> bool {
        self.devices.iter().any(|device| uuids.split(',').any(|uuid| uuid == device.uuid))
    }

    /// A daemon serves these devices from now on.
    pub(super) fn serve(&mut self, uuids: &str, daemon: MpsDaemon) {
        for device in self.devices.iter_mut().filter(|device| uuids.split(',').any(|uuid| uuid == device.uuid)) {
            device.daemon = Some(self.daemons.len());
        }
        self.daemons.push(daemon);
    }

    /// What to sample of it.
    pub fn board(&self, sources: SourceChoice) -> Board {
        let mut instances: Vec<BoardInstance> = Vec::new();
        for device in &self.devices {
            if let Some(gpu_instance) = device.gpu_instance.filter(|_| instances.iter().all(|known| known.uuid != device.uuid)) {
                let (uuid, compute_instance) = (device.uuid.clone(), device.compute_instance);
                instances.push(BoardInstance { uuid, gpu_instance, compute_instance });
            }
        }
        Board { uuid: self.uuid.clone(), instances, sources }
    }
}

/// Why a device could not be staged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct StageError {
    pub reason: String,
    /// The device disappeared.
    pub lost: bool,
}

impl StageError {
    pub fn because(reason: impl Into<String>) -> StageError {
        StageError { reason: reason.into(), lost: false }
    }
}

impl From<PartitionError> for StageError {
    fn from(e: PartitionError) -> StageError {
        StageError { reason: e.line(), lost: e.lost }
    }
}
