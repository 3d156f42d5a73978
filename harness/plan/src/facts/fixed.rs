//! What cannot be changed on a GPU: cells that need that change are refused, and no others.

use collo_gpus::PartitionError;
use collo_gpus::partition::Partition;

/// Why the GPU has to keep its MIG mode, or its layout; absent if it does not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fixed {
    pub mode: Option<PartitionError>,
    pub layout: Option<PartitionError>,
}

impl Fixed {
    /// What prevents this partition of the GPU.
    pub fn against(&self, found: &Partition, wanted: &Partition) -> Option<&PartitionError> {
        match (wanted.is_as(found), wanted.mig == found.mig) {
            (true, _) => None,
            (_, true) => self.layout.as_ref(),
            (_, false) => self.mode.as_ref(),
        }
    }

    /// What stands against it on one of two GPUs.
    pub fn or(self, other: Fixed) -> Fixed {
        Fixed { mode: self.mode.or(other.mode), layout: self.layout.or(other.layout) }
    }
}
