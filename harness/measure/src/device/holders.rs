//! Processes that compute on a GPU.

use std::fmt;

use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::struct_wrappers::device::ProcessInfo;
use nvml_wrapper::{Device, Nvml};

use super::nvml::instances::Raw;

/// A process that uses a GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    pub pid: u32,
    /// Absent if the process is not visible, as from inside a container.
    pub name: Option<String>,
    pub user: Option<String>,
    pub memory_bytes: Option<u64>,
}

/// `nv-hostengine` (pid 2140)
impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "`{name}` (pid {})", self.pid),
            None => write!(f, "pid {}", self.pid),
        }
    }
}

impl Holder {
    pub fn of(pid: u32, memory_bytes: Option<u64>) -> Holder {
        Holder { pid, name: crate::launch::tree::name_of(pid), user: user(pid), memory_bytes }
    }

    /// pid 88121 `python` of bob, 31.2 GiB
    pub fn to_text(&self) -> String {
        let name = self.name.as_ref().map(|n| format!(" `{n}`")).unwrap_or_default();
        let user = self.user.as_ref().map(|u| format!(" of {u}")).unwrap_or_default();
        let memory = self.memory_bytes.map(|b| format!(", {}", collo_text::units::gib(b))).unwrap_or_default();
        format!("pid {}{name}{user}{memory}", self.pid)
    }
}

/// A process by its pid: `python` (pid 9).
pub fn named(pid: u32) -> String {
    Holder::of(pid, None).to_string()
}

fn user(pid: u32) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let uid = std::fs::metadata(format!("/proc/{pid}")).ok()?.uid();
    nix::unistd::User::from_uid(uid.into()).ok().flatten().map(|u| u.name)
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
            all.push(Holder::of(process.pid, memory));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_is_named_by_what_it_is() {
        let engine = Holder { pid: 2140, name: Some("nv-hostengine".into()), user: None, memory_bytes: None };
        assert_eq!(engine.to_string(), "`nv-hostengine` (pid 2140)");
        let python = Holder { pid: 9, name: Some("python".into()), user: Some("bob".into()), memory_bytes: Some(1 << 31) };
        assert_eq!(python.to_text(), "pid 9 `python` of bob, 2.0 GiB");
    }
}
