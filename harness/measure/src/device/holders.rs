//! Who holds a card: processes that compute on it, and processes that keep its device files open.

use std::fmt;
use std::path::Path;

use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::struct_wrappers::device::ProcessInfo;
use nvml_wrapper::{Device, Nvml};

use super::nvml::instances::Raw;

/// A process that uses a card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    pub pid: u32,
    /// Absent where the process is not visible, as from inside a container.
    pub name: Option<String>,
    pub user: Option<String>,
    pub memory_bytes: Option<u64>,
}

/// Services that keep cards open, and what stops them.
const SERVICES: [(&str, &str); 4] = [
    ("nv-hostengine", "sudo systemctl stop nvidia-dcgm"),
    ("nvsm", "sudo systemctl stop nvsm"),
    ("nvidia-persiste", "sudo systemctl stop nvidia-persistenced"),
    ("Xorg", "sudo systemctl isolate multi-user"),
];

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
    fn of(pid: u32, memory_bytes: Option<u64>) -> Holder {
        Holder { pid, name: crate::launch::tree::name_of(pid), user: user(pid), memory_bytes }
    }

    /// What lets go of the card.
    pub fn hint(&self) -> String {
        let service = SERVICES.iter().find(|(name, _)| self.name.as_deref().is_some_and(|own| own.starts_with(name)));
        match service {
            Some((_, command)) => format!("`{command}` and run again"),
            None => "end it, or take another GPU with `--gpu`".into(),
        }
    }

    /// pid 88121 `python` of bob, 31.2 GiB
    pub fn words(&self) -> String {
        let name = self.name.as_ref().map(|n| format!(" `{n}`")).unwrap_or_default();
        let user = self.user.as_ref().map(|u| format!(" of {u}")).unwrap_or_default();
        let memory = self.memory_bytes.map(|b| format!(", {}", crate::units::gib(b))).unwrap_or_default();
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

/// Processes that compute on the card; none if the driver does not tell.
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

/// Both lists of a card or an instance. The clients of MPS alone would not do: who is no client is not among them. A driver without that
/// list has them in the other.
fn listed(device: &Device<'_>) -> Option<Vec<ProcessInfo>> {
    let mut all = device.running_compute_processes().ok()?;
    all.extend(device.mps_running_compute_processes().unwrap_or_default());
    Some(all)
}

/// In MIG mode the card's own lists are closed to a normal user, those of the instances are open (nvml.h).
fn of_instances(nvml: &Nvml, device: &Device<'_>) -> Option<Vec<ProcessInfo>> {
    let parts = Raw::new(nvml, device).mig_devices().ok().filter(|_| device.mig_mode().is_ok_and(|mode| mode.current == 1))?;
    let mut all = Vec::new();
    for part in parts {
        all.extend(listed(&nvml.device_by_uuid(part.uuid.as_str()).ok()?)?);
    }
    Some(all)
}

/// Whoever computes on the card, then whoever else keeps a device file of the driver open, ourselves left out.
pub fn of_the_card(nvml: &Nvml, uuid: &str) -> Vec<Holder> {
    let mut all = computing(nvml, uuid).unwrap_or_default();
    // A library in the driver's place has no device files.
    if std::env::var_os(super::nvml::LIBRARY).is_none() {
        for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse::<u32>().ok()) else { continue };
            if pid != std::process::id() && has_it_open(&entry.path()) && all.iter().all(|h| h.pid != pid) {
                all.push(Holder::of(pid, None));
            }
        }
    }
    all
}

fn has_it_open(process: &Path) -> bool {
    let files = std::fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
    files.filter_map(|f| std::fs::read_link(f.path()).ok()).any(|target| target.to_string_lossy().starts_with("/dev/nvidia"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_is_named_with_what_lets_go() {
        let engine = Holder { pid: 2140, name: Some("nv-hostengine".into()), user: None, memory_bytes: None };
        assert_eq!(engine.to_string(), "`nv-hostengine` (pid 2140)");
        assert_eq!(engine.hint(), "`sudo systemctl stop nvidia-dcgm` and run again");
        let python = Holder { pid: 9, name: Some("python".into()), user: Some("bob".into()), memory_bytes: Some(1 << 31) };
        assert_eq!(python.words(), "pid 9 `python` of bob, 2.0 GiB");
        assert_eq!(python.hint(), "end it, or take another GPU with `--gpu`");
    }
}
