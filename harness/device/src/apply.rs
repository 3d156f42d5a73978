//! Partitioning by an administrator: a GPU is partitioned as requested and stays so.
//!
//! Done under the GPU's lock, so that no campaign loses it, and not while others compute on it. The journal exists only during
//! the change: the new partition is what the next campaign finds.

use crate::company;
use std::time::{Duration, Instant};

use collo_text::Diagnostic;

use super::layout::WantedPartition;
use super::lease::{GpuLease, Restored, Who};
use super::nvml;
use super::services::Services;
use collo_gpus::partition::Partition;
use collo_plan::facts::Gpu;

/// The changes made to a GPU.
#[derive(Debug, Clone, PartialEq)]
pub struct Applied {
    /// The state left by a dead collo, if it was restored first.
    pub restored: Option<Restored>,
    pub before: Partition,
    /// The same as before if no change was needed.
    pub now: Partition,
    pub took: Duration,
}

/// Partition a GPU as wanted, unless it already is.
pub fn apply(gpu: &Gpu, wanted: &WantedPartition, services: Services) -> Result<Applied, Diagnostic> {
    let begun = Instant::now();
    let who = Who { experiment: "collo mig".into(), campaign: String::new() };
    let (mut hold, restored) = GpuLease::take(gpu, &who, false)?;
    hold.with_services(services);
    let before = hold.found().clone();
    if wanted.is_met_by(&before) {
        return Ok(Applied { restored, now: before.clone(), before, took: begun.elapsed() });
    }
    if let Some(who) = company::settled(hold.uuid()).to_text().first() {
        return Err(Diagnostic::new(format!("{} is in use: {who}", gpu.label()))
            .hint("stop the processes using this GPU first; nothing was changed")
            .of_machine());
    }
    let now = hold.apply(&wanted.partition).map_err(|e| {
        let mistake = Diagnostic::from(e);
        // Half of a change is nobody's state.
        match hold.restore() {
            Ok(_) => mistake,
            Err(stays) => {
                hold.give_up();
                mistake.caused_by(format!("it could not be restored to {before} either: {}", stays.line()))
            }
        }
    })?;
    hold.settle()?;
    Ok(Applied { restored, before, now: now.partition, took: begun.elapsed() })
}

/// The PCI device id of a GPU as in NVML: the device's sixteen bits before the vendor's.
pub fn pci_device(gpu: &Gpu) -> Option<u32> {
    let nvml = nvml::open().ok()?;
    let device = nvml.device_by_uuid(gpu.at.as_ref()?.uuid.as_str()).ok()?;
    device.pci_info().ok().map(|pci| pci.pci_device_id)
}
