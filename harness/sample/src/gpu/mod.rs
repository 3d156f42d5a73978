//! Samples GPUs and their instances, from the driver, its profiler (GPM) and DCGM.
//!
//! In: the GPUs of a run, as staged. Out: samples of the scopes `gpu:UUID`, `mig:UUID` and, for GPU memory, `member:N`; and for
//! each source how well it was read and why missing values are absent. NVML is opened when sampling begins and closed when it
//! ends, because an open GPU cannot be partitioned. Power and energy are only read of the whole board; values of instances are
//! never added up.

mod availability;
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
use std::time::Duration;

use collo_store::{SAMPLING_OFF, SamplingQuality};

pub use availability::Account;
pub use dcgm::replay as dcgm_texts;
pub(super) use handle::GpuLoss;
pub use probe::{Probed, probe};
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

/// The result of reading a source, after its end.
pub struct SourceResult {
    pub quality: SamplingQuality,
    pub account: Account,
}

impl SourceResult {
    /// For a thread that did not end, because a call to the driver does not return.
    pub fn stuck(waited: Duration) -> SourceResult {
        let mut finished = SourceResult::without_reading("driver", 0.0, Account::default());
        finished
            .quality
            .absent
            .insert("all".into(), format!("a call to the driver did not return within {} s", waited.as_secs()));
        finished
    }

    /// For time series that are not to be recorded.
    pub fn off() -> SourceResult {
        let mut finished = SourceResult::without_reading("off", 0.0, Account::default());
        finished.quality.absent.insert("all".into(), SAMPLING_OFF.into());
        finished
    }

    /// For a source that gave nothing, or whose caller fills in the rest.
    fn without_reading(source: &str, asked_hz: f64, account: Account) -> SourceResult {
        let quality = SamplingQuality {
            source: source.into(),
            asked_hz,
            achieved_hz: None,
            ticks: 0,
            missed: 0,
            longest_gap_s: None,
            lateness_p50_s: None,
            lateness_p99_s: None,
            lateness_max_s: None,
            cpu_ratio: None,
            moved_ratio: Default::default(),
            absent: account.reported(),
            unread_lines: 0,
            xids: Vec::new(),
            remarks: Vec::new(),
            instrument: None,
        };
        SourceResult { quality, account }
    }
}

#[cfg(test)]
mod simulated_tests;
