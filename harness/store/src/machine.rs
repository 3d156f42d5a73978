//! The machine of a campaign, as found: provenance, never a conclusion.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The device that a campaign was measured on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeviceRecord {
    /// `cpu`, or the driver's name for it.
    pub name: String,
    /// `cpu` or `gpu`.
    pub kind: String,
    /// True if every number comes from a model.
    pub simulated: bool,
    /// Memory that members can use, bytes.
    pub memory_bytes: Option<u64>,
    /// Logical cores that members can use.
    pub cores: Option<u32>,
    /// As many of them as a CPU quota allows at a time; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_cores: Option<f64>,
    /// For a GPU: whether its driver stays loaded between processes, and so its energy counter.
    #[serde(default)]
    pub persistence: Option<bool>,
}

impl DeviceRecord {
    /// Its name, always with the word `simulated` if its numbers come from a model.
    pub fn name_said(&self) -> String {
        if self.simulated { format!("simulated {}", self.name) } else { self.name.clone() }
    }

    /// Whether it is of the same model, simulated or not as this one: what was measured on it can hold here. All CPUs have one name.
    pub fn is_of_model(&self, other: &DeviceRecord) -> bool {
        self.kind == other.kind && self.name == other.name && self.simulated == other.simulated
    }

    /// Whether it is such a device as this one: of the same model, and a CPU with as many cores that may be busy at a time.
    pub fn is_like(&self, other: &DeviceRecord) -> bool {
        self.is_of_model(other) && (self.kind == "gpu" || (self.cores, self.quota_cores) == (other.cores, other.quota_cores))
    }

    /// How many of its cores can be busy at a time.
    pub fn cores_at_a_time(&self) -> Option<f64> {
        self.cores.map(|cores| self.set_at_a_time(cores as usize, 1))
    }

    /// How many cores of one of so many sets of its cores can be busy at a time, if the sets share a CPU quota evenly.
    pub fn set_at_a_time(&self, cores: usize, sets: usize) -> f64 {
        let part = self.quota_cores.map_or(f64::INFINITY, |quota| quota / sets.max(1) as f64);
        part.min(cores as f64)
    }

    /// The cores of its members: `2 cores`, or `0.15 of 2 cores (CPU quota)`.
    pub fn cores_text(&self) -> Option<String> {
        let cores = match self.cores? {
            1 => "1 core".to_string(),
            n => format!("{n} cores"),
        };
        Some(match self.quota_cores {
            Some(quota) => format!("{} of {cores} (CPU quota)", collo_text::units::hundredths(quota)),
            None => cores,
        })
    }

    /// One short phrase: `cpu (2 cores, 24 GiB)`.
    pub fn text(&self) -> String {
        let mut parts = Vec::new();
        if let Some(cores) = self.cores_text().filter(|_| self.kind == "cpu") {
            parts.push(cores);
        }
        if let Some(b) = self.memory_bytes {
            parts.push(format!("{:.0} GiB", b as f64 / (1u64 << 30) as f64));
        }
        let name = self.name_said();
        if parts.is_empty() { name } else { format!("{name} ({})", parts.join(", ")) }
    }
}

/// Everything about a machine that may change a number; an unknown value is absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    pub hostname: Option<String>,
    pub kernel: Option<String>,
    pub os: Option<String>,
    pub cpu_model: Option<String>,
    /// Logical processors in the affinity of collo.
    pub cpu_cores: u32,
    pub cpu_threads_per_core: Option<u32>,
    pub numa_nodes: Option<u32>,
    pub memory_bytes: u64,
    pub governor: Option<String>,
    pub virtualization: Option<String>,
    /// Load average over one minute when the campaign began.
    pub load_1min: Option<f64>,
    /// Commit of the checkout, with `-dirty` if it had changes; absent outside a checkout.
    pub git: Option<String>,
    pub collo: String,
    /// `release` or `dev`.
    pub build: String,
    /// Version of the NVIDIA driver, and the CUDA version it supports: `580.95.05`, `13.0`.
    #[serde(default)]
    pub driver: Option<String>,
    #[serde(default)]
    pub cuda: Option<String>,
    /// The GPUs of the campaign, as found.
    #[serde(default)]
    pub gpus: Vec<GpuRecord>,
    /// Python and its packages that matter: `python`, `torch`, `requirements` (digest of the pins) …
    pub python: BTreeMap<String, String>,
    /// Environment variables that change how a library computes, withheld from members: `NVIDIA_TF32_OVERRIDE` …
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withheld: Vec<String>,
}

impl Machine {
    /// The GPU that a device is, if there is no doubt which.
    pub fn gpu_of(&self, device: &DeviceRecord) -> Option<&GpuRecord> {
        let mut named = self.gpus.iter().filter(|gpu| gpu.name == device.name);
        named.next().filter(|_| named.next().is_none() && device.kind == "gpu")
    }
}

/// One NVIDIA GPU, as found; what its driver does not report is absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GpuRecord {
    pub index: u32,
    pub uuid: String,
    pub pci: String,
    pub name: String,
    pub architecture: Option<String>,
    pub sms: Option<u32>,
    pub memory_bytes: Option<u64>,
    pub vbios: Option<String>,
    pub ecc: Option<bool>,
    pub persistence: Option<bool>,
    pub compute_mode: Option<String>,
    pub power_limit_w: Option<f64>,
    pub power_limit_default_w: Option<f64>,
    pub max_sm_clock_mhz: Option<u32>,
    /// Its partition: `MIG off`, `7×1g.5gb`.
    pub partition: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_cores_has_its_even_part_of_a_quota_at_most_its_cores() {
        let with = |quota_cores| DeviceRecord {
            name: "cpu".into(),
            kind: "cpu".into(),
            simulated: false,
            memory_bytes: None,
            cores: Some(8),
            quota_cores,
            persistence: None,
        };
        let of = |quota, cores, sets| with(quota).set_at_a_time(cores, sets);
        assert_eq!([of(None, 4, 2), of(Some(3.0), 4, 2), of(Some(7.5), 2, 3)], [4.0, 1.5, 2.0]);
        assert_eq!(with(Some(3.0)).cores_at_a_time(), Some(2.0 * of(Some(3.0), 4, 2)));
    }

    #[test]
    fn another_card_of_the_model_serves_and_a_simulated_one_serves_no_real_one() {
        let card = DeviceRecord {
            name: "NVIDIA A30".into(),
            kind: "gpu".into(),
            simulated: false,
            memory_bytes: Some(24 << 30),
            cores: None,
            quota_cores: None,
            persistence: Some(true),
        };
        let other = DeviceRecord { memory_bytes: None, persistence: None, ..card.clone() };
        assert!(card.is_of_model(&other) && other.is_of_model(&card));
        for unlike in [
            DeviceRecord { simulated: true, ..card.clone() },
            DeviceRecord { name: "NVIDIA A100-SXM4-40GB".into(), ..card.clone() },
            DeviceRecord { kind: "cpu".into(), ..card.clone() },
        ] {
            assert!(!card.is_of_model(&unlike) && !unlike.is_of_model(&card), "{unlike:?}");
        }
    }
}
