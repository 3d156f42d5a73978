//! Samples GPUs and their instances, from the driver, its profiler (GPM) and DCGM.
//!
//! In: the GPUs of a run, as staged. Out: samples of the scopes `gpu:UUID`, `mig:UUID` and, for GPU memory, `member:N`; and for
//! each source how well it was read and why missing values are absent. NVML is opened when sampling begins and closed when it
//! ends, because an open GPU cannot be partitioned. Power and energy are only read of the whole board; values of instances are
//! never added up.

mod dcgm;
mod gauges;
mod gpm;
mod gpm_metrics;
mod handle;
mod pcie;
mod probe;
mod processes;
mod session;
mod xid;

use collo_plan::experiment::SourceChoice;
use std::sync::Arc;

pub use dcgm::replay as dcgm_texts;
pub(super) use handle::GpuLoss;
pub use probe::{Probed, probe};
pub(super) use processes::Strangers;
pub(super) use session::{GpuSamplingSpec, GpuSession};

/// One GPU to sample in one run, and its partition.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Board {
    /// `GPU-…`
    pub uuid: String,
    /// Empty with MIG off.
    pub instances: Vec<BoardInstance>,
    pub sources: SourceChoice,
}

/// A MIG device: a compute instance in a GPU instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoardInstance {
    /// `MIG-…`
    pub uuid: String,
    /// NVML's id of its GPU instance on the GPU.
    pub gpu_instance: u32,
    /// NVML's id of its compute instance in there; `None` if it is the only one.
    pub compute_instance: Option<u32>,
}

/// The scope of a whole GPU.
pub fn gpu_scope(uuid: &str) -> Arc<str> {
    format!("gpu:{uuid}").into()
}

/// The scope of a MIG device.
pub fn mig_scope(uuid: &str) -> Arc<str> {
    format!("mig:{uuid}").into()
}

#[cfg(test)]
mod simulated_tests;
