//! The other users of a GPU, as its driver lists them, or as memory and utilisation show them.
//!
//! Since 535.113.01 the driver omits processes without a pid in the caller's namespace (open-gpu-kernel-modules, `gpu_rmapi.c`
//! and `os_find_ns_pid`): in a container nobody else is ever listed. So an empty list counts as free only if memory and
//! utilisation agree. A list that could not be read is not an empty one.

use std::time::Duration;

use collo_plan::facts::{Company, Holder, Unlisted};
use nvml_wrapper::error::{nvml_sym, nvml_try};
use nvml_wrapper::{Device, Nvml};

use crate::{holders, nvml};

/// A process that has just ended may still show: number of checks, and the time between them.
const LOOKS: u32 = 5;
const BETWEEN: Duration = Duration::from_millis(500);

/// The users of an open GPU.
pub fn company(nvml: &Nvml, device: &Device<'_>, uuid: &str) -> Company {
    let listed = holders::computing(nvml, uuid);
    let unlisted = listed.as_ref().and_then(|listed| unlisted(nvml, device, listed));
    Company { listed, unlisted }
}

/// The users of the GPU with this UUID, after ending processes have had time to exit.
pub fn settled(uuid: &str) -> Company {
    let look = || {
        let nvml = nvml::open().ok()?;
        let device = nvml.device_by_uuid(uuid).ok()?;
        Some(company(&nvml, &device, uuid))
    };
    let mut seen = look();
    for _ in 1..LOOKS {
        if seen.as_ref().is_none_or(|c| c.unlisted.is_none()) {
            break;
        }
        std::thread::sleep(BETWEEN);
        seen = look();
    }
    seen.unwrap_or(Company { listed: None, unlisted: None })
}

/// Usage not explained by the listed processes.
fn unlisted(nvml: &Nvml, device: &Device<'_>, listed: &[Holder]) -> Option<Unlisted> {
    // A process whose memory is not told may hold all of it.
    let explained: Option<u64> = listed.iter().map(|h| h.memory_bytes).sum();
    let memory_bytes = match (used_bytes(nvml, device), explained) {
        (Some(used), Some(explained)) => Some(used.saturating_sub(explained)).filter(|bytes| *bytes > Unlisted::LEAST_BYTES),
        _ => None,
    };
    // Without persistence mode the driver is loaded for this very question, and its scrubbing of memory counts as busy.
    let believable = listed.is_empty() && device.is_in_persistent_mode().unwrap_or(true);
    let busy_percent =
        device.utilization_rates().ok().map(|u| u.gpu).filter(|percent| believable && *percent >= Unlisted::LEAST_BUSY_PERCENT);
    let found = Unlisted { memory_bytes, busy_percent };
    (found != Unlisted::default()).then_some(found)
}

/// Used memory, without what the driver reserves for itself (version 2 of the call). On a partitioned GPU, a normal user can only
/// query each instance (nvml.h). `None` if the operating system manages the memory, as pages of processes that have ended still
/// count there (nvml.h).
fn used_bytes(nvml: &Nvml, device: &Device<'_>) -> Option<u64> {
    if is_numa_node(nvml, device) {
        return None;
    }
    if let Ok(memory) = device.memory_info() {
        return Some(memory.used);
    }
    let mut seen: Vec<(u32, u64)> = Vec::new();
    for part in nvml::instances::Raw::new(nvml, device).mig_devices().ok()? {
        let used = nvml.device_by_uuid(part.uuid.as_str()).and_then(|d| d.memory_info()).ok()?.used;
        // Compute instances of one GPU instance show the same memory.
        if seen.iter().all(|(id, _)| *id != part.gpu_instance) {
            seen.push((part.gpu_instance, used));
        }
    }
    (!seen.is_empty()).then(|| seen.iter().map(|(_, used)| used).sum())
}

fn is_numa_node(nvml: &Nvml, device: &Device<'_>) -> bool {
    let Ok(call) = nvml_sym(nvml.lib().nvmlDeviceGetNumaNodeId.as_ref()) else { return false };
    let mut node = 0;
    // SAFETY: the handle is used while the library that gave it is open, the place lives through the call.
    nvml_try(unsafe { call(device.handle(), &mut node) }).is_ok()
}
