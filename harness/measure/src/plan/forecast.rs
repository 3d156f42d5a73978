//! The duration of a plan, from the workloads' own forecasts.

use std::time::Duration;

use super::PlannedCell;
use crate::cell::{AfterMeasured, Cell, Member, Term};
use crate::device::{Cores, DeviceFacts, DeviceKind};
use crate::experiment::Experiment;

/// The time of a plan; absent if a workload has no forecast.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Forecast {
    /// All runs without the pauses; absent if one of them is.
    pub runs_s: Option<f64>,
    /// The pauses between runs.
    pub between_s: f64,
    /// All of it; absent if a run is.
    pub total_s: Option<f64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CellForecast {
    /// One run.
    pub each_s: Option<f64>,
    /// All repetitions.
    pub total_s: Option<f64>,
    /// All members together.
    pub memory_bytes: Option<u64>,
}

impl Forecast {
    /// Of all cells with their repetitions.
    pub fn of(cells: &[PlannedCell], cooldown: Duration) -> Forecast {
        let runs: u32 = cells.iter().map(|c| c.record.repetitions).sum();
        let between_s = cooldown.as_secs_f64() * f64::from(runs.saturating_sub(1));
        let runs_s: Option<f64> = cells.iter().map(|c| c.forecast.total_s).sum();
        Forecast { runs_s, between_s, total_s: runs_s.map(|s| s + between_s) }
    }
}

/// One cell on a device, for a number of repetitions. There are no forecasts for GPUs yet.
pub fn cell(cell: &Cell, experiment: &Experiment, facts: &DeviceFacts, repetitions: u32) -> CellForecast {
    let cores = match &experiment.cores {
        Cores::Listed(cores) => cores.len(),
        Cores::Shared | Cores::Spread | Cores::GpuLocal => facts.cores.len(),
    };
    let each_s = (facts.kind == DeviceKind::Cpu).then(|| each_s(cell, experiment, cores.max(1) as f64)).flatten();
    let memory_bytes = memory_bytes(cell, facts.kind);
    CellForecast { each_s, total_s: each_s.map(|s| s * f64::from(repetitions)), memory_bytes }
}

/// Set-up, then epochs: as long as the slowest alone, or longer with more threads than cores.
fn each_s(cell: &Cell, experiment: &Experiment, cores: f64) -> Option<f64> {
    let threads = f64::from(experiment.threads);
    let (mut set_up_s, mut slowest_s, mut work_s) = (0.0_f64, 0.0_f64, 0.0_f64);
    for term in cell.terms() {
        let epoch_s = epoch_s(&term.member)?;
        set_up_s = set_up_s.max(term.member.workload().forecast.set_up_s?);
        slowest_s = slowest_s.max(epoch_s);
        work_s += epoch_s * f64::from(term.count);
    }
    let epoch_s = match cell.after_measured() {
        // Under hold everybody trains until the slowest is done.
        AfterMeasured::KeepRunning => slowest_s * (f64::from(cell.degree()) * threads / cores).max(1.0),
        // Under release the work only has to be done, by whoever is left.
        AfterMeasured::Exit => slowest_s.max(work_s * threads / cores),
    };
    Some(set_up_s + f64::from(experiment.epochs) * epoch_s)
}

/// The memory of all members together, copies counted; forecasts are for the CPU.
pub fn memory_bytes(cell: &Cell, device: DeviceKind) -> Option<u64> {
    if device != DeviceKind::Cpu {
        return None;
    }
    let term = |t: &Term| Some(forecast_of(&t.member)?.memory_bytes?.saturating_mul(u64::from(t.count)));
    cell.terms().iter().map(term).sum()
}

/// On a GPU, the host memory that the members need; absent if unknown.
pub fn host_memory_bytes(cell: &Cell) -> Option<u64> {
    let term = |t: &Term| Some(forecast_of(&t.member)?.host_memory_bytes?.saturating_mul(u64::from(t.count)));
    // Those that tell nothing need something too, so what the others need is a lower bound.
    cell.terms().iter().filter_map(term).reduce(u64::saturating_add)
}

/// Settings that change neither the work nor the memory of an epoch much, or whose effect is known.
const NEUTRAL: [&str; 9] = ["images", "seconds", "limit_batches", "learning_rate", "seed", "epochs", "window", "rate", "slo"];

/// The forecast in its workload's file, unless a setting makes it another training: another model or precision was not measured.
fn forecast_of(member: &Member) -> Option<&crate::workload::WorkloadForecast> {
    let workload = member.workload();
    let same = |(name, value): (&String, &serde_json::Value)| {
        NEUTRAL.contains(&name.as_str()) || workload.settings.get(name) == Some(value)
    };
    member.settings().iter().all(same).then_some(&workload.forecast)
}

/// Settings that an epoch's length is obviously proportional to.
const LENGTHS: [&str; 2] = ["images", "seconds"];

/// An epoch alone, at the member's settings; absent if a setting says "all" with a zero, of unknown length.
fn epoch_s(member: &Member) -> Option<f64> {
    let mut epoch_s = forecast_of(member)?.epoch_s?;
    // Who serves does so for as long as it is told.
    if let Some(window) = member.settings().get("window").and_then(serde_json::Value::as_str) {
        epoch_s = crate::units::duration(window)?.as_secs_f64();
    }
    for name in LENGTHS {
        let default = member.workload().settings.get(name).and_then(serde_json::Value::as_f64);
        let (Some(default), Some(value)) = (default, member.settings().get(name).and_then(serde_json::Value::as_f64)) else {
            continue;
        };
        if value != default {
            if value <= 0.0 || default <= 0.0 {
                return None;
            }
            epoch_s *= value / default;
        }
    }
    limited(member, epoch_s)
}

/// An epoch cut short by `limit_batches`; absent if the items of a whole one are unknown.
fn limited(member: &Member, epoch_s: f64) -> Option<f64> {
    let limit = member.settings().get("limit_batches").and_then(serde_json::Value::as_f64).filter(|n| *n > 0.0);
    let Some(limit) = limit else { return Some(epoch_s) };
    let items = limit * f64::from(member.batch_size().unwrap_or(1));
    Some(epoch_s * (items / member.workload().forecast.items? as f64).min(1.0))
}
