//! The properties of a device that a plan needs. They are read by `collo-device`, or made up for a GPU that is only planned for.

mod card_share;
mod company;
mod cores;
mod fixed;
mod gpu;
mod numa;
mod processor;
mod python_seen;

pub use card_share::CardShare;
pub use company::{Company, Holder, Unlisted};
pub use cores::{Cores, core_list, core_sets, usable as usable_cores};
pub use fixed::Fixed;
pub use gpu::{Address, Driver, Gpu, Settings, SilentGpu};
pub use numa::NumaMemory;
pub use processor::{CPU_MODEL, cpu_line, cpu_model};
pub use python_seen::PythonSeen;

use std::fmt;

use collo_store::DeviceRecord;

/// The facts of a device that decide which cells can run on it.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceFacts {
    pub kind: DeviceKind,
    pub name: String,
    /// Logical cores that collo may use, by number.
    pub cores: Vec<u32>,
    /// As many of them as the CPU quota of a control group allows at a time: a container's `--cpus`, 0.15 or 2. Absent without one.
    pub quota_cores: Option<f64>,
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
    pub fixed: Fixed,
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
    /// GPUs, all alike, of this machine, whose cores their members may use.
    pub fn on_gpus(gpus: Vec<Gpu>, driver: Option<&Driver>, machine: DeviceFacts, machine_has_mps: bool) -> DeviceFacts {
        let first = gpus.first();
        // A card that is only planned for is in another machine, and what runs on a simulated one takes next to nothing.
        let is_here = driver.is_some() && gpus.iter().all(|g| !g.simulated);
        DeviceFacts {
            kind: DeviceKind::Gpu,
            name: first.map(|g| g.name.clone()).unwrap_or_default(),
            memory_bytes: first.and_then(|g| g.memory_bytes),
            driver: driver.map(|d| d.version.clone()),
            cuda: driver.and_then(|d| d.cuda),
            has_mps: driver.is_none() || machine_has_mps,
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

    /// How many of its cores can be busy at a time: those of the affinity, as far as a CPU quota allows.
    pub fn cores_at_a_time(&self) -> f64 {
        self.record().set_at_a_time(self.cores.len(), 1)
    }

    /// The device as it is stored with a campaign.
    pub fn record(&self) -> DeviceRecord {
        DeviceRecord {
            name: self.name.clone(),
            kind: self.kind.to_string(),
            simulated: self.gpus.iter().any(|g| g.simulated),
            memory_bytes: self.memory_bytes,
            cores: u32::try_from(self.cores.len()).ok().filter(|n| *n > 0),
            quota_cores: self.quota_cores.filter(|quota| *quota < self.cores.len() as f64),
            persistence: self.gpu().and_then(|g| g.persistence),
        }
    }

    /// A CPU of so many cores and so much memory, about which nothing else is known.
    pub fn of_cpu(cores: u32, memory_bytes: u64) -> DeviceFacts {
        DeviceFacts {
            kind: DeviceKind::Cpu,
            name: "cpu".into(),
            cores: (0..cores).collect(),
            quota_cores: None,
            memory_bytes: Some(memory_bytes),
            host_memory_bytes: Some(memory_bytes),
            gpus: Vec::new(),
            driver: None,
            cuda: None,
            has_mps: false,
            as_found: false,
            fixed: Fixed::default(),
            python: PythonSeen::default(),
        }
    }
}
