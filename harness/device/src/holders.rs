//! Processes that compute on a GPU.

use collo_plan::facts::Holder;
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::struct_wrappers::device::ProcessInfo;
use nvml_wrapper::{Device, Nvml};

use super::nvml::instances::Raw;

/// A process that uses so much of the memory of a GPU, with what this machine knows of it.
pub fn holder(pid: u32, memory_bytes: Option<u64>) -> Holder {
    Holder { pid, name: collo_launch::tree::name_of(pid), user: user(pid), memory_bytes }
}

/// A process by its pid: `python` (pid 9).
pub fn named(pid: u32) -> String {
    holder(pid, None).to_string()
}

fn user(pid: u32) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let uid = std::fs::metadata(format!("/proc/{pid}")).ok()?.uid();
    collo_text::trust::user_name(uid)
}

/// Compute processes on the GPU; `None` if the driver does not report them.
pub fn computing(nvml: &Nvml, uuid: &str) -> Option<Vec<Holder>> {
    let device = nvml.device_by_uuid(uuid).ok()?;
    let lists = listed(&device).or_else(|| of_instances(nvml, &device))?;
    let mut all: Vec<Holder> = Vec::new();
    for process in lists {
        let memory = match process.used_gpu_memory {
            UsedGpuMemory::Used(bytes) => Some(bytes),
            UsedGpuMemory::Unavailable => None,
        };
        if all.iter().all(|h| h.pid != process.pid) {
            all.push(holder(process.pid, memory));
        }
    }
    Some(all)
}

/// Both lists of a GPU or an instance. The list of MPS clients alone is not enough: it lacks other processes. A driver without
/// that list has the clients in the other.
fn listed(device: &Device<'_>) -> Option<Vec<ProcessInfo>> {
    let mut all = device.running_compute_processes().ok()?;
    all.extend(device.mps_running_compute_processes().unwrap_or_default());
    Some(all)
}

/// In MIG mode a normal user cannot read the GPU's own lists, but those of the instances (nvml.h).
fn of_instances(nvml: &Nvml, device: &Device<'_>) -> Option<Vec<ProcessInfo>> {
    let parts = Raw::new(nvml, device).mig_devices().ok().filter(|_| device.mig_mode().is_ok_and(|mode| mode.current == 1))?;
    let mut all = Vec::new();
    for part in parts {
        all.extend(listed(&nvml.device_by_uuid(part.uuid.as_str()).ok()?)?);
    }
    Some(all)
}
