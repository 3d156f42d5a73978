//! A device that is ready for a run.

use collo_prepare::slot::Slot;
use std::sync::Arc;

use super::daemon::Daemon;
use crate::stage::staging::StagedCard;
use collo_device::lease::GpuLease;
use collo_gpus::PartitionError;

/// A staged device.
pub struct Staged {
    /// By member.
    pub slots: Vec<Slot>,
    /// `None` on a CPU.
    pub card: Option<Arc<StagedCard>>,
    /// The MPS daemons of this run.
    pub(super) daemons: Vec<Daemon>,
}

impl Staged {
    pub fn on_cpu(slots: Vec<Slot>) -> Staged {
        Staged { slots, card: None, daemons: Vec::new() }
    }

    /// End what was started for this run alone; returns any problem with it.
    pub fn trouble_and_end(mut self, hold: Option<&mut GpuLease>) -> Option<String> {
        let trouble = self.daemons.iter_mut().find_map(Daemon::trouble);
        if let Some(hold) = hold {
            self.daemons.into_iter().for_each(|daemon| daemon.end(hold));
        }
        trouble
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
