//! An experiment: one TOML file, read into plain values.
//!
//! In: a file of `experiments/` and the available workloads. Out: an [`Experiment`] whose every value was checked, or all
//! mistakes of the file with their places. It spans no matrix and knows no device.

mod changed;
mod explain;
mod explain_settings;
mod keys;
mod layers;
mod locate;
mod matrix;
mod name;
mod read;
mod source_choice;
mod tags;
mod thermal_gate;

use std::sync::Arc;
use std::time::Duration;

use collo_store::{AfterMeasured, Expectation};
use serde_json::Value as Json;

use crate::cell::{CellTask, ManagerRules, Member};
use crate::facts::{Cores, DeviceFacts, DeviceKind, core_sets};
use crate::goal::EpochGoal;
use crate::observer::Observe;
use crate::select::Expression;
use crate::sharing::SharingMode;
use crate::workload::Workload;
use collo_gpus::mig::GpuModel;

pub use changed::ChangedKey;
pub use explain::Origin;
pub use keys::{DeviceChoice, Experiment, FailureRule, SamplingRates};
pub use layers::{INCLUDE, Layers, Overrides, SET, part};
pub use locate::{ExperimentFile, all, is_script, locate, tags_of};
pub use name::wrong as wrong_name;
pub use source_choice::{MetricSource, SourceChoice};
pub use tags::TagFilter;
pub use thermal_gate::ThermalGate;

/// The schema of experiments that this build reads.
pub const SCHEMA: u64 = 1;

/// How often failed runs are measured again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetryBudget {
    /// Further attempts at one run.
    pub each: u32,
    /// Further attempts in the whole campaign.
    pub total: u32,
}

/// Cells that are expected to fail.
#[derive(Debug, Clone)]
pub struct ExpectedFailure {
    pub condition: Expression,
    pub expectation: Expectation,
}

/// The axes of the matrix, in the order of nesting: the last varies fastest.
#[derive(Debug, Clone, Default)]
pub struct Axes {
    pub workload: Vec<Arc<Workload>>,
    /// If empty, each workload's default.
    pub batch_size: Vec<u32>,
    /// Other settings by name.
    pub settings: Vec<(String, Vec<Json>)>,
    pub sharing: Vec<Sharing>,
    pub degree: Vec<u32>,
    /// Who watches; if empty, collo samples.
    pub observe: Vec<Observe>,
    /// Of a trace: the labels of policies.
    pub policy: Vec<String>,
    /// Of a trace: who estimates the memory of tasks.
    pub estimate: Vec<String>,
    /// Axes that step together: each list is as long as the others of its zip, or empty.
    pub zips: Vec<Axes>,
}

impl Axes {
    /// The workloads of the matrix, those of the zips included.
    pub fn workloads(&self) -> impl Iterator<Item = &Arc<Workload>> {
        self.workload.iter().chain(self.zips.iter().flat_map(|zip| &zip.workload))
    }

    /// Who watches mixed groups: those of the axes, each once; without any nobody in particular.
    pub fn observed(&self) -> Vec<Option<Observe>> {
        let mut all: Vec<Option<Observe>> = Vec::new();
        for by in self.observe.iter().chain(self.zips.iter().flat_map(|zip| &zip.observe)) {
            if !all.contains(&Some(by.clone())) {
                all.push(Some(by.clone()));
            }
        }
        if all.is_empty() { vec![None] } else { all }
    }

    /// The sharing modes of the matrix, those of the zips included, each once.
    pub fn sharing_modes(&self) -> Vec<Sharing> {
        let mut modes: Vec<Sharing> = Vec::new();
        for mode in self.sharing.iter().chain(self.zips.iter().flat_map(|zip| &zip.sharing)) {
            if modes.iter().all(|known| (known.mode.label(), known.solo) != (mode.mode.label(), mode.solo)) {
                modes.push(mode.clone());
            }
        }
        modes
    }
}

/// A sharing mode as requested in an experiment.
#[derive(Debug, Clone)]
pub struct Sharing {
    pub mode: Arc<dyn SharingMode>,
    /// Written as `solo`: one member, whatever the degree axis says.
    pub solo: bool,
}

/// A trace, and how it is played.
#[derive(Debug, Clone)]
pub struct TracePlan {
    /// Name of its file in `traces/`, without the ending.
    pub name: String,
    /// By the seed of each order, its tasks in the order of their arrivals; times and epochs divided by the scale.
    pub orders: Vec<(u64, Vec<CellTask>)>,
    /// Arrivals, epochs and the manager's times are divided by this.
    pub scale: u32,
    /// Cards of the site; `None`: those of the device.
    pub cards: Option<u32>,
    pub manager: ManagerRules,
}

impl TracePlan {
    /// The workloads of its tasks, each as often as it has tasks.
    pub fn workloads(&self) -> impl Iterator<Item = &Arc<Workload>> {
        self.orders.iter().flat_map(|(_, tasks)| tasks.iter().map(|task| task.member.workload()))
    }
}

/// A mixed group.
#[derive(Debug, Clone)]
pub struct MixedGroup {
    pub members: Vec<(Arc<Member>, u32)>,
    pub sharing: Vec<Sharing>,
    pub after_measured: Option<AfterMeasured>,
}

/// The device, as given on the command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceRequest {
    /// `--gpu`: GPUs of this machine; for a plan also a model of `mig-profiles/`.
    pub gpu: Option<String>,
    /// A model is enough, because nothing will run.
    pub planning: bool,
    /// The partition must not be changed.
    pub as_found: bool,
}

/// Sets of CPU cores of a trace that does not say how many.
pub const CORE_SETS: u32 = 2;

impl Experiment {
    /// How long each member measures.
    pub fn goal(&self) -> EpochGoal {
        EpochGoal { epochs: self.epochs, measure_for_ns: self.measure_for.map_or(0, |d| d.as_nanos() as u64) }
    }

    /// Epochs of a member whose epochs take so long, warm-up included.
    pub fn epochs_of(&self, epoch_s: f64) -> f64 {
        match self.measure_for {
            Some(least) if epoch_s > 0.0 => {
                let warm_up = self.epochs - self.goal().measured();
                let measured = (least.as_secs_f64() / epoch_s).ceil().max(f64::from(self.goal().measured()));
                f64::from(warm_up) + measured
            }
            _ => f64::from(self.epochs),
        }
    }

    /// Time limit for this many members to be ready: as in the file; by default longer the more of them take turns.
    pub fn set_up_timeout_of(&self, members: u32, in_turn: bool) -> Duration {
        let further = if in_turn { members.saturating_sub(1) } else { 0 };
        self.set_up_timeout + self.set_up_turn * further
    }

    /// Replace shares of a GPU by the profiles of this model, wherever a mode or a cell is named. Slices of workloads are found when members
    /// are seated: they are in no label.
    pub fn resolve_shares(&mut self, gpu: &GpuModel) {
        let of_axes = self.axes.sharing.iter_mut().chain(self.axes.zips.iter_mut().flat_map(|zip| &mut zip.sharing));
        for sharing in of_axes.chain(self.groups.iter_mut().flat_map(|group| &mut group.sharing)) {
            if let Some(resolved) = sharing.mode.on(gpu) {
                sharing.mode = resolved;
            }
        }
        self.exclude.iter_mut().for_each(|condition| condition.resolve_shares(gpu));
        self.expect.iter_mut().for_each(|expected| expected.condition.resolve_shares(gpu));
        self.references.iter_mut().for_each(|r| r.cell = crate::sharing::resolve_shares(&r.cell, gpu));
    }

    /// Know how many cards a trace is played on. Its members are alone on what is one of them: on a CPU one set of cores.
    pub fn place_its_trace(&mut self, facts: &DeviceFacts) {
        let Some(trace) = &mut self.trace else { return };
        let there = match facts.kind {
            DeviceKind::Cpu => CORE_SETS.min(facts.cores.len() as u32).min(facts.cores_at_a_time().max(1.0) as u32),
            DeviceKind::Gpu => facts.gpus.len() as u32,
        };
        let cards = *trace.cards.get_or_insert(there.max(1));
        let first = core_sets(&facts.cores, cards as usize).into_iter().next().filter(|cores| !cores.is_empty());
        if let Some(first) = first.filter(|_| facts.kind == DeviceKind::Cpu) {
            self.cores = Cores::Listed(first);
        }
    }
}

#[cfg(test)]
mod layers_tests;
#[cfg(test)]
mod matrix_tests;
#[cfg(test)]
mod tests;
