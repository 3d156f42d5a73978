//! The properties of a device that a plan needs: read, never changed.

pub mod allocation;
pub mod apply;
mod blame;
mod card_share;
pub mod company;
mod cores;
mod cpu;
pub mod fixed;
mod gpu;
pub mod holders;
pub mod journal;
pub mod layout;
pub mod lease;
pub mod lock;
pub mod mig;
pub mod mps;
pub mod namespace;
pub mod numa;
pub mod nvml;
pub mod partition;
pub mod repartition;
mod seen;
mod select_gpu;
pub mod services;
mod settings;
pub(crate) mod state_folder;
pub mod temperature;
pub mod trust;

pub use card_share::CardShare;
pub use cores::{Cores, core_sets, usable as usable_cores};
pub use cpu::core_list;
pub use gpu::{Address, Driver, Gpu, SilentGpu};
pub use numa::NumaMemory;
pub use partition::Partition;
pub use select_gpu::GpuSelector;

use std::fmt;
use std::path::Path;

use collo_store::DeviceRecord;

use crate::python::PythonSeen;

/// Whether this machine has an NVIDIA GPU with its driver loaded, or a library is set in the driver's place.
pub fn has_gpu() -> bool {
    std::env::var_os(nvml::LIBRARY).is_some_and(|path| !path.is_empty()) || has_driver(Path::new("/dev/nvidiactl"))
}

/// Whether a driver is behind a device file. The file alone is no evidence: NVIDIA's libcuda, run by root, creates it where no driver is
/// loaded (that of 535.309.01, 550.163.01 and 555.58.02 was seen to), and then it cannot be opened.
fn has_driver(file: &Path) -> bool {
    use nix::errno::Errno;
    let absent = [Errno::ENOENT, Errno::ENXIO, Errno::ENODEV].map(|errno| errno as i32);
    std::fs::File::open(file).err().and_then(|e| e.raw_os_error()).is_none_or(|code| !absent.contains(&code))
}

/// The facts of a device that decide which cells can run on it.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceFacts {
    pub kind: DeviceKind,
    pub name: String,
    /// Logical cores that collo may use, by number.
    pub cores: Vec<u32>,
    /// Memory that members can use; absent if unknown.
    pub memory_bytes: Option<u64>,
    /// Host memory for one group, on a CPU the same as above; absent if unknown.
    pub host_memory_bytes: Option<u64>,
    /// The GPUs to measure on, all alike; empty on a CPU.
    pub gpus: Vec<Gpu>,
    /// Of the driver, for the record; absent if no GPU was queried.
    pub driver: Option<String>,
    pub cuda: Option<i32>,
    /// Whether the MPS program is installed, if GPUs of this machine are meant.
    pub has_mps: bool,
    /// The partition must not be changed: the administrator's is used.
    pub as_found: bool,
    /// What cannot be changed on the GPU, if checked.
    pub fixed: fixed::Fixed,
    /// The Python that members will run under.
    pub python: PythonSeen,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceKind {
    Cpu,
    Gpu,
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceKind::Cpu => f.write_str("cpu"),
            DeviceKind::Gpu => f.write_str("gpu"),
        }
    }
}

impl DeviceFacts {
    /// The CPU of this machine, as this process may use it.
    pub fn cpu() -> DeviceFacts {
        cpu::facts()
    }

    /// GPUs, all alike, and the cores that their members may use.
    pub fn on_gpus(gpus: Vec<Gpu>, driver: Option<&Driver>) -> DeviceFacts {
        let first = gpus.first();
        let machine = cpu::facts();
        // A card that is only planned for is in another machine, and what runs on a simulated one takes next to nothing.
        let is_here = driver.is_some() && gpus.iter().all(|g| !g.simulated);
        DeviceFacts {
            kind: DeviceKind::Gpu,
            name: first.map(|g| g.name.clone()).unwrap_or_default(),
            memory_bytes: first.and_then(|g| g.memory_bytes),
            driver: driver.map(|d| d.version.clone()),
            cuda: driver.and_then(|d| d.cuda),
            has_mps: driver.is_none() || mps::program().is_some(),
            // Groups on several cards run at the same time.
            host_memory_bytes: machine.memory_bytes.filter(|_| is_here).map(|bytes| bytes / gpus.len().max(1) as u64),
            gpus,
            ..machine
        }
    }

    /// False for a card that is only planned for: it is in another machine.
    pub fn is_here(&self) -> bool {
        self.kind == DeviceKind::Cpu || self.driver.is_some()
    }

    /// The GPU of the cells, if there is one: the first of several, which are alike.
    pub fn gpu(&self) -> Option<&Gpu> {
        self.gpus.first()
    }

    /// `GPU 0 and GPU 1`; empty on a CPU.
    pub fn labels(&self) -> String {
        let labels: Vec<String> = self.gpus.iter().map(Gpu::label).collect();
        match labels.split_last() {
            Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
            _ => labels.concat(),
        }
    }

    /// The device as it is stored with a campaign.
    pub fn record(&self) -> DeviceRecord {
        DeviceRecord {
            name: self.name.clone(),
            kind: self.kind.to_string(),
            simulated: self.gpus.iter().any(|g| g.simulated),
            memory_bytes: self.memory_bytes,
            cores: u32::try_from(self.cores.len()).ok().filter(|n| *n > 0),
            persistence: self.gpu().and_then(|g| g.persistence),
        }
    }

    #[cfg(test)]
    pub fn test_cpu(cores: u32, memory_bytes: u64) -> DeviceFacts {
        DeviceFacts {
            kind: DeviceKind::Cpu,
            name: "cpu".into(),
            cores: (0..cores).collect(),
            memory_bytes: Some(memory_bytes),
            host_memory_bytes: Some(memory_bytes),
            gpus: Vec::new(),
            driver: None,
            cuda: None,
            has_mps: false,
            as_found: false,
            fixed: fixed::Fixed::default(),
            python: PythonSeen::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_file_without_a_driver_behind_it_is_no_gpu() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(!has_driver(&folder.path().join("nvidiactl")), "there is none");
        // To open a socket fails as to open a device file without its driver does: ENXIO, open(2).
        let bare = folder.path().join("bare");
        let _socket = std::os::unix::net::UnixListener::bind(&bare).expect("a socket");
        assert!(!has_driver(&bare));
        assert!(has_driver(Path::new("/dev/null")));
    }
}
