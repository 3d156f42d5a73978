//! From cells and a device to an order of runs, and the reason for each cell that cannot run.
//!
//! In: cells, the facts of a device, the experiment's repetitions and seed. Out: the plan as it is stored, and a forecast. Pure: the
//! same input gives the same plan on every machine and in every year, and nothing is touched.
//!
//! Each repetition is one pass over all cells. Cells of one device state make a block: on a CPU there is one, on a GPU one for
//! each partition. If the whole device is available, solo baselines open and close the block, so that drift inside it shows; the
//! cells between, and the order of the blocks, are shuffled by the recorded seed. Blocks with MIG off and blocks with MIG on are
//! not mixed: MIG off comes first, unless MIG is found on, so that a campaign switches the mode once.

mod forecast;
mod rights;
mod shuffle;
mod slices;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use collo_store::{BlockEdge, CellRecord, DeviceRecord, Diagnostic, PlanRecord, PlannedRun, RefusalRecord};
use serde_json::{Value as Json, json};

use crate::cell::{Cell, Member};
use crate::device::{Cores, DeviceFacts, DeviceKind, Partition, mps};
use crate::expand::{Expanded, expand};
use crate::experiment::Experiment;
use crate::select::Selection;
use crate::sharing::{Refusal, Seating};
use crate::units;
use crate::workload::Requirement;
use shuffle::Shuffle;

pub use forecast::{CellForecast, Forecast};
use slices::alone_on_slices;

/// The cells that fit, their order, the refusals and the forecast.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    pub experiment: String,
    pub device: DeviceRecord,
    /// The seed that shuffled the order.
    pub seed: u64,
    /// Epochs per member.
    pub epochs: u32,
    pub cells: Vec<PlannedCell>,
    /// Every repetition in the order of execution.
    pub order: Vec<PlannedRun>,
    pub refusals: Vec<RefusedCell>,
    pub forecast: Forecast,
}

/// A cell that can run on the device, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedCell {
    pub cell: Cell,
    /// False for a baseline that is included only because others are compared with it.
    pub asked: bool,
    /// The cell as it is stored.
    pub record: CellRecord,
    pub seating: Seating,
    pub forecast: CellForecast,
}

/// A cell that cannot run on the device, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct RefusedCell {
    pub cell: Cell,
    pub record: RefusalRecord,
}

/// Plan the cells of an experiment on a device.
pub fn plan(experiment: &Experiment, cells: &[Expanded], facts: &DeviceFacts) -> Plan {
    let mut refusals = Vec::new();
    let mut fitting: Vec<PlannedCell> = Vec::new();
    for Expanded { cell, asked } in cells {
        let repetitions = if cell.is_baseline() { 2 * experiment.repetitions } else { experiment.repetitions };
        let mut record = cell.record(repetitions);
        match seat(cell, &record, experiment, facts) {
            Err(Refusal { reason, hint }) => {
                let record = RefusalRecord { cell: record.cell, sharing: record.sharing, reason, hint };
                refusals.push(RefusedCell { cell: cell.clone(), record });
            }
            Ok(seating) => {
                record.slots = Some(match facts.kind {
                    DeviceKind::Cpu => slots(cell, experiment),
                    DeviceKind::Gpu => seating.to_string(),
                });
                record.mode = seating.sharing(cell.mode().family());
                record.alone_on_slice = slices::labels(cell, &seating);
                let forecast = forecast::cell(cell, experiment, facts, repetitions);
                fitting.push(PlannedCell { cell: cell.clone(), asked: *asked, record, seating, forecast });
            }
        }
    }
    // A baseline that nobody asked for goes with the last cell that needed it.
    let needed: HashSet<String> =
        fitting.iter().flat_map(|f| f.record.against.iter().chain(&f.record.alone_on_slice).cloned()).collect();
    fitting.retain(|f| f.asked || needed.contains(&f.record.cell));
    distinct_slugs(&mut fitting);
    slices::join(&mut fitting);

    let order = order(&fitting, experiment, facts.gpu().and_then(|g| g.partition.as_ref()).is_some_and(|p| p.mig));
    Plan {
        experiment: experiment.name.clone(),
        device: facts.record(),
        seed: experiment.seed,
        epochs: experiment.epochs,
        forecast: Forecast::of(&fitting, experiment.cooldown),
        cells: fitting,
        order,
        refusals,
    }
}

/// Expand an experiment and plan its cells, members alone on the slices of their groups among them.
pub fn plan_experiment(experiment: &Experiment, selection: Option<&Selection>, facts: &DeviceFacts) -> Result<Plan, Diagnostic> {
    let cells = alone_on_slices(experiment, expand(experiment, selection)?, facts);
    Ok(plan(experiment, &cells, facts))
}

/// The seating of a cell's members; or why it cannot run here: a workload's needs, its mode, its memory, or its cores.
fn seat(cell: &Cell, record: &CellRecord, experiment: &Experiment, facts: &DeviceFacts) -> Result<Seating, Refusal> {
    let refuse = |refusal: Option<Refusal>| refusal.map_or(Ok(()), Err);
    refuse(lacking(cell, facts))?;
    let seating = cell.mode().seat(facts, &record.members, &experiment.each)?;
    refuse(without_mps(&seating, facts))?;
    refuse(too_large(cell, facts))?;
    refuse(too_large_for_the_host(cell, facts))?;
    refuse(too_wide(cell, experiment, facts))?;
    refuse(far(experiment, facts))?;
    match facts.gpu().and_then(|g| g.partition.as_ref()) {
        None => Ok(seating),
        Some(found) if !facts.as_found => movable(seating, found, experiment, facts),
        Some(found) => seating.inside(found).ok_or_else(|| {
            let asked = seating.partition.map(|p| p.to_string()).unwrap_or_default();
            let reason = format!("the GPU is used as found, {found}, and this needs {asked}");
            Refusal { reason, hint: Some("`collo mig apply LAYOUT` partitions it; without `--as-found` collo does".into()) }
        }),
    }
}

/// Refuses a cell that needs an impossible change of the GPU, unless it also runs in the current layout.
fn movable(seating: Seating, found: &Partition, experiment: &Experiment, facts: &DeviceFacts) -> Result<Seating, Refusal> {
    let Some(gpu) = facts.gpu() else { return Ok(seating) };
    let Some(reason) = rights::against(gpu, found, &seating, &facts.fixed) else { return Ok(seating) };
    match seating.inside(found) {
        Some(inside) => Ok(inside),
        None => Err(Refusal { reason, hint: Some(rights::way_out(gpu, found, &seating, &facts.fixed, &experiment.name)) }),
    }
}

/// A requirement of a workload that this device lacks.
fn lacking(cell: &Cell, facts: &DeviceFacts) -> Option<Refusal> {
    let needy = cell.terms().iter().map(|t| t.member.workload()).find(|w| match w.requires {
        Some(Requirement::Cuda) => facts.kind == DeviceKind::Cpu,
        None => false,
    })?;
    let reason = format!("`{}` needs an NVIDIA GPU with CUDA, this device is a CPU", needy.name);
    Some(Refusal { reason, hint: None })
}

/// MPS daemons are needed, but their program is not installed.
fn without_mps(seating: &Seating, facts: &DeviceFacts) -> Option<Refusal> {
    (seating.daemons && !facts.has_mps).then(|| Refusal {
        reason: format!("`{}` is not on the PATH", mps::PROGRAM),
        hint: Some("it comes with the driver, in a package such as `nvidia-utils` or `nvidia-compute-utils`".into()),
    })
}

fn too_large(cell: &Cell, facts: &DeviceFacts) -> Option<Refusal> {
    let (needed, there) = (forecast::memory_bytes(cell, facts.kind)?, facts.memory_bytes?);
    if needed <= there {
        return None;
    }
    let here = if facts.kind == DeviceKind::Cpu { "machine" } else { "card" };
    let reason = format!("{} need about {}, this {here} has {}", members(cell.degree()), units::gib(needed), units::gib(there));
    Some(Refusal { reason, hint: fewer(cell, there / (needed / u64::from(cell.degree())).max(1)) })
}

/// Members on a GPU use host memory as well, and the host's OOM killer ignores the GPU.
fn too_large_for_the_host(cell: &Cell, facts: &DeviceFacts) -> Option<Refusal> {
    if facts.kind != DeviceKind::Gpu {
        return None;
    }
    let (needed, there) = (forecast::host_memory_bytes(cell)?, facts.host_memory_bytes?);
    if needed <= there {
        return None;
    }
    let reason = format!(
        "{} need about {} of host memory, besides the GPU's; this machine has {}",
        members(cell.degree()),
        units::gib(needed),
        units::gib(there)
    );
    Some(Refusal { reason, hint: fewer(cell, there / (needed / u64::from(cell.degree())).max(1)) })
}

/// True if host memory is too small for this many members on a GPU: that says nothing about the GPU.
pub fn beyond_the_host(cell: &Cell, facts: &DeviceFacts) -> bool {
    too_large_for_the_host(cell, facts).is_some()
}

fn too_wide(cell: &Cell, experiment: &Experiment, facts: &DeviceFacts) -> Option<Refusal> {
    let threads = u64::from(experiment.threads);
    let (needed, there) = (u64::from(cell.degree()) * threads, facts.cores.len() as u64);
    if experiment.cores != Cores::Spread || needed <= there {
        return None;
    }
    let each = if threads == 1 { String::new() } else { format!(" of {threads} threads") };
    let reason = format!("{}{each} need {needed} cores of their own, this machine has {there}", members(cell.degree()));
    Some(Refusal { reason, hint: Some("`cores = \"shared\"` lets them share".into()) })
}

/// Cores near the GPU are requested, but unknown.
fn far(experiment: &Experiment, facts: &DeviceFacts) -> Option<Refusal> {
    if experiment.cores != Cores::GpuLocal {
        return None;
    }
    let hint = Some("`cores = \"shared\"`, or a list such as `0-15`".into());
    match facts.gpu() {
        None => Some(Refusal { reason: "`cores = \"gpu-local\"` requires a GPU".into(), hint }),
        Some(gpu) if gpu.at.is_some() && gpu.near_cores().is_none() => {
            Some(Refusal { reason: format!("the kernel does not report the cores near {}", gpu.label()), hint })
        }
        Some(_) => None,
    }
}

/// The members' shares of a CPU, in words.
fn slots(cell: &Cell, experiment: &Experiment) -> String {
    match &experiment.cores {
        Cores::Shared if cell.degree() == 1 => "whole CPU".into(),
        Cores::Shared => "whole CPU, shared".into(),
        Cores::Spread => "cores of their own".into(),
        Cores::GpuLocal => "whole CPU".into(),
        Cores::Listed(cores) => format!("cores {}", ranges(cores)),
    }
}

/// `0-3,8`, from ascending numbers.
fn ranges(cores: &[u32]) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for core in cores {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == *core => *last = *core,
            _ => parts.push((*core, *core)),
        }
    }
    let text = |(first, last): &(u32, u32)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    parts.iter().map(text).collect::<Vec<_>>().join(",")
}

fn members(degree: u32) -> String {
    if degree == 1 { "1 member".into() } else { format!("{degree} members") }
}

/// The largest degree that fits, if all members are alike and at least one fits.
fn fewer(cell: &Cell, fit: u64) -> Option<String> {
    (cell.terms().len() == 1 && fit > 0).then(|| format!("`degree` up to {fit} fits"))
}

/// Two cells never share a folder: if four digits of the hash are not enough, the later one has more.
fn distinct_slugs(cells: &mut [PlannedCell]) {
    let mut taken = HashSet::new();
    for PlannedCell { cell, record, .. } in cells {
        for digits in (8..=64).step_by(4) {
            if taken.insert(record.slug.clone()) {
                break;
            }
            record.slug = cell.slug_of(digits);
        }
    }
}

fn order(cells: &[PlannedCell], experiment: &Experiment, found_on: bool) -> Vec<PlannedRun> {
    // In the order of their first cells.
    let mut states: Vec<Option<&Partition>> = Vec::new();
    for fitting in cells {
        let state = fitting.seating.partition.as_ref();
        if !states.contains(&state) {
            states.push(state);
        }
    }
    let mut shuffle = Shuffle::seeded(experiment.seed);
    let mut done = vec![0u32; cells.len()];
    let mut order = Vec::new();
    let mut block = 0;
    // A change of the mode is the dearest step: it may reset the card, and services must let go of it. As found comes first, so that
    // what is measured before the change needs none.
    let is_on = |state: &Option<&Partition>| state.is_some_and(|p| p.mig);
    let (found, other): (Vec<_>, Vec<_>) = states.into_iter().partition(|state| is_on(state) == found_on);
    for states in [found, other] {
        for _ in 0..experiment.repetitions {
            let mut states = states.clone();
            if states.len() > 1 {
                shuffle.shuffle(&mut states);
            }
            for state in states {
                block += 1;
                let here = (0..cells.len()).filter(|c| cells[*c].seating.partition.as_ref() == state);
                let (baselines, others): (Vec<usize>, Vec<usize>) = here.partition(|cell| cells[*cell].record.baseline);
                let parts = [(&baselines, Some(BlockEdge::Opens)), (&others, None), (&baselines, Some(BlockEdge::Closes))];
                for (part, edge) in parts {
                    let mut part = part.clone();
                    shuffle.shuffle(&mut part);
                    order.extend(part.into_iter().map(|cell| {
                        done[cell] += 1;
                        PlannedRun { block, cell, repetition: done[cell], edge }
                    }));
                }
            }
        }
    }
    order
}

impl Plan {
    /// The schema of [`Plan::json`].
    pub const SCHEMA: u32 = 1;

    /// The plan as it is stored.
    pub fn record(&self) -> PlanRecord {
        PlanRecord {
            seed: self.seed,
            epochs: self.epochs,
            cells: self.cells.iter().map(|c| c.record.clone()).collect(),
            order: self.order.clone(),
            refusals: self.refusals.iter().map(|r| r.record.clone()).collect(),
        }
    }

    /// Keep only these runs of the order, by index and cell; each cell then has as many repetitions as are left.
    pub fn keep(&mut self, keep: impl Fn(usize, &PlannedCell) -> bool) {
        let mut place = 0..;
        self.order.retain(|run| place.next().is_some_and(|place| keep(place, &self.cells[run.cell])));
        for (index, cell) in self.cells.iter_mut().enumerate() {
            cell.record.repetitions = self.order.iter().filter(|run| run.cell == index).count() as u32;
        }
    }

    /// The members of all cells, including refused ones: they may be possible if another user continues the campaign.
    pub fn members(&self) -> impl Iterator<Item = &Arc<Member>> {
        let refused = self.refusals.iter().map(|r| &r.cell);
        self.cells.iter().map(|c| &c.cell).chain(refused).flat_map(Cell::members)
    }

    /// The cells by the names of their folders, which are the same in every plan.
    pub fn by_slug(&self) -> HashMap<&str, &PlannedCell> {
        self.cells.iter().map(|c| (c.record.slug.as_str(), c)).collect()
    }

    /// The plan as `collo plan --json` prints it.
    pub fn json(&self) -> Json {
        let order: Vec<Json> =
            self.order.iter().map(|run| json!([run.block, self.cells[run.cell].record.cell, run.repetition])).collect();
        let refusal = |r: &RefusalRecord| json!({"cell": r.cell, "sharing": r.sharing, "reason": r.reason, "hint": r.hint});
        json!({
            "schema": Plan::SCHEMA,
            "experiment": self.experiment,
            "cells": self.cells.iter().map(|c| cell_json(&c.record)).collect::<Vec<Json>>(),
            "order": order,
            "refusals": self.refusals.iter().map(|r| refusal(&r.record)).collect::<Vec<Json>>(),
            "forecast_s": self.forecast.total_s,
        })
    }
}

fn cell_json(cell: &CellRecord) -> Json {
    let members: Vec<Json> = cell
        .members
        .iter()
        .map(|member| {
            let mut json = json!({"workload": member.workload, "batch_size": member.batch_size});
            for (name, value) in &member.settings {
                json[name] = value.clone();
            }
            json
        })
        .collect();
    json!({"cell": cell.cell, "sharing": cell.sharing, "degree": cell.degree, "members": members, "baseline": cell.baseline, "repetitions": cell.repetitions, "slots": cell.slots})
}

#[cfg(test)]
mod tests;
