//! What is measured: one TOML file, read into plain values.
//!
//! In: a file of `experiments/` and the workloads that it may name. Out: an [`Experiment`] whose every value was checked, or all
//! mistakes of the file with their places. It spans no matrix and knows no device.

mod explain;
pub mod keys;
mod locate;
mod read;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use collo_store::Thresholds;
use serde_json::Value as Json;

use crate::cell::{Member, Tail};
use crate::device::{self, DeviceFacts};
use crate::mistake::Mistake;
use crate::select::Expression;
use crate::sharing::SharingMode;
use crate::workload::Workload;

pub use explain::Origin;
pub use keys::MOST_MEMBERS;
pub use locate::{Listed, all, locate};

/// The schema of experiments that this build reads.
pub const SCHEMA: u64 = 1;

/// One experiment, as read.
#[derive(Debug, Clone)]
pub struct Experiment {
    pub path: PathBuf,
    /// The file, word for word.
    pub source: String,
    pub name: String,
    pub description: Option<String>,
    pub tags: Vec<String>,
    pub device: DeviceChoice,
    pub repetitions: u32,
    pub epochs: u32,
    pub seed: u64,
    /// For all cells; absent is `hold` for uniform and `release` for mixed groups.
    pub tail: Option<Tail>,
    pub timeout: Duration,
    pub set_up_timeout: Duration,
    pub stall_timeout: Duration,
    pub cooldown: Duration,
    pub member_failure: FailureRule,
    pub threads: u32,
    pub cores: Cores,
    pub axes: Axes,
    pub exclude: Vec<Expression>,
    pub groups: Vec<Group>,
    pub sampling: Sampling,
    pub thresholds: Thresholds,
    /// What is odd but not wrong, for whoever runs it.
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceChoice {
    Auto,
    Cpu,
    Gpu,
}

/// What becomes of the others when a member dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureRule {
    EndGroup,
    KeepSurvivors,
}

/// Which cores the members run on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cores {
    /// All of them; the system decides.
    Shared,
    /// Each member has its own.
    Spread,
    /// All members share these.
    Listed(Vec<u32>),
}

/// What the matrix spans, in the order of nesting: the last varies fastest.
#[derive(Debug, Clone, Default)]
pub struct Axes {
    pub workload: Vec<Arc<Workload>>,
    /// Empty is each workload's default.
    pub batch_size: Vec<u32>,
    /// Other settings by name.
    pub settings: Vec<(String, Vec<Json>)>,
    pub sharing: Vec<Sharing>,
    pub degree: Vec<u32>,
}

/// A sharing mode as an experiment asks for it.
#[derive(Debug, Clone)]
pub struct Sharing {
    pub mode: Arc<dyn SharingMode>,
    /// Written as `solo`: one member, whatever the degree axis says.
    pub solo: bool,
}

/// A mixed group.
#[derive(Debug, Clone)]
pub struct Group {
    pub members: Vec<(Arc<Member>, u32)>,
    pub sharing: Vec<Sharing>,
    pub tail: Option<Tail>,
}

/// How often readings are taken.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampling {
    pub rate_hz: f64,
    pub slow_rate_hz: f64,
    pub pss_every: Duration,
}

impl Experiment {
    /// The facts of the device that this experiment asks for.
    pub fn device_facts(&self) -> Result<DeviceFacts, Mistake> {
        let asked = match self.device {
            DeviceChoice::Cpu => return self.with_its_cores(DeviceFacts::cpu()),
            DeviceChoice::Auto if !device::has_gpu() => return self.with_its_cores(DeviceFacts::cpu()),
            DeviceChoice::Auto => "auto",
            DeviceChoice::Gpu => "gpu",
        };
        Err(Mistake::new(format!("`{}` asks for `device = \"{asked}\"`, and this collo measures on the CPU only", self.name))
            .hint("`device = \"cpu\"` in the experiment measures it on the CPU, as `collo run quickstart` does")
            .of_machine())
    }

    fn with_its_cores(&self, facts: DeviceFacts) -> Result<DeviceFacts, Mistake> {
        if let Cores::Listed(cores) = &self.cores
            && let Some(missing) = cores.iter().find(|core| !facts.cores.contains(core))
        {
            let have: Vec<String> = facts.cores.iter().map(u32::to_string).collect();
            return Err(Mistake::new(format!("`{}` asks for core {missing}, which collo may not use here", self.name))
                .hint(format!("cores here are {}; `cores = \"shared\"` takes them all", have.join(",")))
                .of_machine());
        }
        Ok(facts)
    }

    pub fn has_tag(&self, tag: &str) -> bool {
        self.tags.iter().any(|t| t == tag)
    }
}

#[cfg(test)]
mod tests;
