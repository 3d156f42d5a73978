//! From cells and a device to an order of runs, and the reason for each cell that cannot run.
//!
//! In: cells, the facts of a device, the experiment's repetitions and seed. Out: the plan as it is stored. Pure: the same input gives
//! the same plan on every machine and in every year, and nothing is touched. Earlier runs give the forecast beside it, and decide
//! nothing.
//!
//! Each repetition is one pass over all cells. Cells of one device state make a block: on a CPU there is one, on a GPU one for
//! each partition. If the whole device is available, each workload's groups stand between two runs of its solo baseline, so that
//! drift shows, and changes little between them; the groups, the workloads, and the order of the blocks are shuffled by the
//! recorded seed. Blocks with MIG off and blocks with MIG on are
//! not mixed: MIG off comes first, unless MIG is found on, so that a campaign switches the mode once.

mod forecast;
mod memory;
mod rights;
mod shards;
mod shuffle;
mod slices;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use collo_store::{BlockEdge, CellRecord, DeviceRecord, Diagnostic, PlanRecord, PlannedRun, RefusalRecord, Shard};
use serde_json::{Value as Json, json};

use crate::cell::{Cell, Member};
use crate::device::{Cores, DeviceFacts, DeviceKind, Partition, mps, usable_cores};
use crate::expand::{Expanded, expand};
use crate::experiment::Experiment;
use crate::past::PastRuns;
use crate::select::Selection;
use crate::sharing::{Refusal, Seating};
use crate::units::ranges;
use crate::workload::Requirement;
use memory::members;
use shuffle::Shuffle;

pub use forecast::{CellForecast, Forecast, ForecastBasis};
pub use memory::beyond_the_host;
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
    /// Seconds of whole epochs at least.
    pub measure_for_s: Option<f64>,
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

/// What a plan is made from.
#[derive(Clone, Copy)]
struct Basis<'a> {
    experiment: &'a Experiment,
    facts: &'a DeviceFacts,
    past: &'a PastRuns,
}

/// A cell whose members have their seats.
#[derive(Clone, Copy)]
struct Seated<'a> {
    cell: &'a Cell,
    record: &'a CellRecord,
    seating: &'a Seating,
}

/// A cell that cannot run on the device, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct RefusedCell {
    pub cell: Cell,
    pub record: RefusalRecord,
}

/// Plan the cells of an experiment on a device, with what earlier runs there tell of them.
pub fn plan(experiment: &Experiment, cells: &[Expanded], facts: &DeviceFacts, past: &PastRuns) -> Plan {
    let basis = Basis { experiment, facts, past };
    let mut refusals = Vec::new();
    let mut fitting: Vec<PlannedCell> = Vec::new();
    for Expanded { cell, asked } in cells {
        let repetitions = if cell.is_baseline() { 2 * experiment.repetitions } else { experiment.repetitions };
        let mut record = cell.record(repetitions);
        match seat(cell, &record, &basis) {
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
                let expected = experiment.expect.iter().find(|expected| expected.condition.holds(&|axis| cell.axis(axis)));
                record.expect = expected.map(|expected| expected.expectation.clone());
                let forecast = forecast::cell(Seated { cell, record: &record, seating: &seating }, &basis);
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
        measure_for_s: experiment.measure_for.map(|d| d.as_secs_f64()),
        forecast: Forecast::of(&fitting, experiment.cooldown),
        cells: fitting,
        order,
        refusals,
    }
}

/// Expand an experiment and plan its cells, members alone on the slices of their groups among them.
#[cfg(test)]
pub fn plan_experiment(experiment: &Experiment, selection: Option<&Selection>, facts: &DeviceFacts) -> Result<Plan, Diagnostic> {
    Ok(plan(experiment, &cells_of(experiment, selection, None, facts)?, facts, &PastRuns::default()))
}

/// The cells of an experiment, or of one shard of it, members alone on the slices of their groups among them.
pub fn cells_of(
    experiment: &Experiment,
    selection: Option<&Selection>,
    shard: Option<Shard>,
    facts: &DeviceFacts,
) -> Result<Vec<Expanded>, Diagnostic> {
    let cells = expand(experiment, selection)?;
    let cells = match shard {
        Some(shard) => shards::of(cells, shard),
        None => cells,
    };
    Ok(alone_on_slices(experiment, cells, facts))
}

/// The seating of a cell's members; or why it cannot run here: a workload's needs, its mode, its memory, or its cores.
fn seat(cell: &Cell, record: &CellRecord, basis: &Basis<'_>) -> Result<Seating, Refusal> {
    let Basis { experiment, facts, .. } = *basis;
    let refuse = |refusal: Option<Refusal>| refusal.map_or(Ok(()), Err);
    refuse(lacking(cell, facts))?;
    let seating = cell.mode().seat(facts, &record.members, &experiment.each)?;
    refuse(without_mps(&seating, facts))?;
    refuse(memory::too_large(cell, facts))?;
    refuse(memory::too_large_for_the_host(cell, facts))?;
    refuse(too_wide(cell, experiment, facts))?;
    refuse(far(experiment, facts))?;
    refuse(without_temperature(experiment, facts))?;
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

fn too_wide(cell: &Cell, experiment: &Experiment, facts: &DeviceFacts) -> Option<Refusal> {
    let threads = u64::from(experiment.threads);
    if let Some(lists) = experiment.cores.most_members().filter(|lists| *lists < cell.degree() as usize) {
        let named = if lists == 1 { "1 member".into() } else { format!("{lists} members") };
        let reason = format!("`cores` lists those of {named}, and this cell has {}", cell.degree());
        return Some(Refusal { reason, hint: Some("add a list for each, or use `cores = \"spread\"`".into()) });
    }
    let near = || facts.gpu().and_then(|gpu| gpu.near_cores()).map(|near| usable_cores(&near, &facts.cores).len() as u64);
    let (there, where_) = match experiment.cores {
        Cores::Spread => (facts.cores.len() as u64, "this machine has"),
        // Unknown cores are refused elsewhere.
        Cores::GpuLocalSpread => (near()?, "near the GPU there are"),
        _ => return None,
    };
    let needed = u64::from(cell.degree()) * threads;
    if needed <= there {
        return None;
    }
    let each = if threads == 1 { String::new() } else { format!(" of {threads} threads") };
    let reason = format!("{}{each} need {needed} cores of their own, {where_} {there}", members(cell.degree()));
    Some(Refusal { reason, hint: Some("`cores = \"shared\"` lets them share".into()) })
}

/// Cores near the GPU are requested, but unknown.
fn far(experiment: &Experiment, facts: &DeviceFacts) -> Option<Refusal> {
    let asked = match experiment.cores {
        Cores::GpuLocal => "gpu-local",
        Cores::GpuLocalSpread => "gpu-local-spread",
        _ => return None,
    };
    let hint = Some("`cores = \"shared\"`, or a list such as `0-15`".into());
    match facts.gpu() {
        None => Some(Refusal { reason: format!("`cores = \"{asked}\"` requires a GPU"), hint }),
        Some(gpu) if gpu.at.is_some() && gpu.near_cores().is_none() => {
            Some(Refusal { reason: format!("the kernel does not report the cores near {}", gpu.label()), hint })
        }
        Some(_) => None,
    }
}

/// A thermal gate is requested, but there is no temperature to wait for.
fn without_temperature(experiment: &Experiment, facts: &DeviceFacts) -> Option<Refusal> {
    experiment.thermal_gate?;
    let reason = match facts.gpu().filter(|_| facts.kind == DeviceKind::Gpu) {
        None => "`cooldown = \"until … above idle\"` waits for a GPU's temperature, and this device is a CPU".into(),
        Some(gpu) if gpu.tells_temperature == Some(false) => {
            format!("`cooldown = \"until … above idle\"` waits for a temperature, which {} does not report", gpu.label())
        }
        Some(_) => return None,
    };
    Some(Refusal { reason, hint: Some("`cooldown = \"30s\"` waits for a fixed time".into()) })
}

/// The members' shares of a CPU, in words.
fn slots(cell: &Cell, experiment: &Experiment) -> String {
    match &experiment.cores {
        Cores::Shared if cell.degree() == 1 => "whole CPU".into(),
        Cores::Shared => "whole CPU, shared".into(),
        Cores::Spread | Cores::GpuLocalSpread => "cores of their own".into(),
        Cores::GpuLocal => "whole CPU".into(),
        Cores::PerMember(lists) => {
            let lists: Vec<String> = lists.iter().take(cell.degree() as usize).map(|cores| ranges(cores)).collect();
            format!("cores {}", lists.join(" | "))
        }
        Cores::Listed(cores) => format!("cores {}", ranges(cores)),
    }
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
                for (cell, edge) in families(cells, here.collect(), &mut shuffle) {
                    done[cell] += 1;
                    order.push(PlannedRun { block, cell, repetition: done[cell], edge });
                }
            }
        }
    }
    order
}

/// The cells of a block in an order in which each baseline stands close around its groups, so that what changes meanwhile changes
/// little between them: families in a shuffled order, in each the baseline, its groups shuffled, the baseline. A mixed group stands
/// in the family of one of its members, chosen by chance.
fn families(cells: &[PlannedCell], here: Vec<usize>, shuffle: &mut Shuffle) -> Vec<(usize, Option<BlockEdge>)> {
    let (mut baselines, others): (Vec<usize>, Vec<usize>) = here.into_iter().partition(|cell| cells[*cell].record.baseline);
    shuffle.shuffle(&mut baselines);
    let mut groups: Vec<Vec<usize>> = vec![Vec::new(); baselines.len().max(1)];
    for cell in others {
        let of = |place: &usize| cells[cell].record.members.iter().any(|m| m.solo == cells[baselines[*place]].record.cell);
        let mut possible: Vec<usize> = (0..baselines.len()).filter(of).collect();
        if possible.len() > 1 {
            shuffle.shuffle(&mut possible);
        }
        groups[possible.first().copied().unwrap_or(0)].push(cell);
    }
    let mut order = Vec::new();
    for (place, mut groups) in groups.into_iter().enumerate() {
        let edge = |edge| baselines.get(place).map(|cell| (*cell, Some(edge)));
        shuffle.shuffle(&mut groups);
        order.extend(edge(BlockEdge::Opens));
        order.extend(groups.into_iter().map(|cell| (cell, None)));
        order.extend(edge(BlockEdge::Closes));
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
            measure_for_s: self.measure_for_s,
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
            "cells": self.cells.iter().map(|c| cell_json(&c.record, &c.forecast)).collect::<Vec<Json>>(),
            "order": order,
            "refusals": self.refusals.iter().map(|r| refusal(&r.record)).collect::<Vec<Json>>(),
            "forecast_s": self.forecast.total_s,
            "energy_j": self.forecast.energy_j,
        })
    }
}

fn cell_json(cell: &CellRecord, forecast: &CellForecast) -> Json {
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
    json!({"cell": cell.cell, "sharing": cell.sharing, "degree": cell.degree, "members": members, "baseline": cell.baseline, "repetitions": cell.repetitions, "slots": cell.slots, "forecast": forecast.json()})
}

#[cfg(test)]
mod tests;
