//! What a device is, as far as a plan needs it: facts that were read, never changed.

mod cpu;
pub mod mig;
pub mod nvml;

pub use cpu::core_list;

use std::fmt;

use collo_store::DeviceRecord;

/// Whether this machine has an NVIDIA GPU with its driver loaded.
pub fn has_gpu() -> bool {
    std::path::Path::new("/dev/nvidiactl").exists()
}

/// The facts of a device that decide what can run on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceFacts {
    pub kind: DeviceKind,
    pub name: String,
    /// Logical cores that collo may use, by number.
    pub cores: Vec<u32>,
    /// Memory that members can use; absent where nobody tells.
    pub memory_bytes: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceKind {
    Cpu,
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceKind::Cpu => f.write_str("cpu"),
        }
    }
}

impl DeviceFacts {
    /// The CPU of this machine, as this process may use it.
    pub fn cpu() -> DeviceFacts {
        cpu::facts()
    }

    /// The same, as it is stored with a campaign.
    pub fn record(&self) -> DeviceRecord {
        DeviceRecord {
            name: self.name.clone(),
            kind: self.kind.to_string(),
            simulated: false,
            memory_bytes: self.memory_bytes,
            cores: u32::try_from(self.cores.len()).ok().filter(|n| *n > 0),
        }
    }

    #[cfg(test)]
    pub fn test_cpu(cores: u32, memory_bytes: u64) -> DeviceFacts {
        DeviceFacts { kind: DeviceKind::Cpu, name: "cpu".into(), cores: (0..cores).collect(), memory_bytes: Some(memory_bytes) }
    }
}
