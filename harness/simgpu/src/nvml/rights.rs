//! What a normal user may not ask or do: the word `user`.
//!
//! In: the name of a function. Out: whether NVIDIA's header closes it to whoever is no administrator. What the header leaves open stays
//! open: profiles, MIG devices with their ids, attributes, names and memory.

use super::{Device, code};
use crate::sim::Sim;

/// Marked "Requires privileged user", "Requires root user" or "Requires root/admin permissions" in `nvml.h` (go-nvml, gen/nvml/nvml.h). What
/// only puts clocks back is not marked there; nvidia-smi(1) says root of it, as of the application clocks, whose text is gone from the header.
const PRIVILEGED: [&str; 27] = [
    "nvmlComputeInstanceDestroy",
    "nvmlDeviceCreateGpuInstance",
    "nvmlDeviceCreateGpuInstanceWithPlacement",
    "nvmlDeviceGetGpuInstanceById",
    "nvmlDeviceGetGpuInstancePossiblePlacements",
    "nvmlDeviceGetGpuInstancePossiblePlacements_v2",
    "nvmlDeviceGetGpuInstanceRemainingCapacity",
    "nvmlDeviceGetGpuInstances",
    "nvmlDeviceResetApplicationsClocks",
    "nvmlDeviceResetGpuLockedClocks",
    "nvmlDeviceResetMemoryLockedClocks",
    "nvmlDeviceSetApplicationsClocks",
    "nvmlDeviceSetComputeMode",
    "nvmlDeviceSetEccMode",
    "nvmlDeviceSetGpuLockedClocks",
    "nvmlDeviceSetMemoryLockedClocks",
    "nvmlDeviceSetMigMode",
    "nvmlDeviceSetPersistenceMode",
    "nvmlDeviceSetPowerManagementLimit",
    "nvmlDeviceSetPowerManagementLimit_v2",
    "nvmlGpuInstanceCreateComputeInstance",
    "nvmlGpuInstanceCreateComputeInstanceWithPlacement",
    "nvmlGpuInstanceDestroy",
    "nvmlGpuInstanceGetComputeInstanceById",
    "nvmlGpuInstanceGetComputeInstancePossiblePlacements",
    "nvmlGpuInstanceGetComputeInstanceRemainingCapacity",
    "nvmlGpuInstanceGetComputeInstances",
];

fn is_user(sim: &Sim) -> bool {
    sim.scenario.has("user")
}

/// Whether the caller may call this at all.
pub fn allowed(sim: &Sim, symbol: &str) -> Result<(), u32> {
    match is_user(sim) && PRIVILEGED.contains(&symbol) {
        true => Err(code::NO_PERMISSION),
        false => Ok(()),
    }
}

/// In MIG mode the handle of the card answers for all instances together "only if the caller has appropriate privileges": memory and
/// lists of processes. Each instance tells its own to everybody.
pub fn may_see_all(sim: &Sim, of: Device) -> Result<(), u32> {
    match is_user(sim) && of.mig.is_none() && sim.state().cards[of.card].mig {
        true => Err(code::NO_PERMISSION),
        false => Ok(()),
    }
}
