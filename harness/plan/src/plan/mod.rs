//! From cells and a device to an order of runs, and the reason for each cell that cannot run.
//!
//! In: cells, the facts of a device, the experiment's repetitions and seed. Out: the plan as it is stored. Pure: the same input gives
//! the same plan on every machine and in every year, and nothing is touched. Earlier runs give the forecast beside it, and decide
//! nothing; a prediction refuses what cannot fit, and puts what is likely to run out of memory behind the other groups of its baseline.
//!
//! Each repetition is one pass over all cells. Cells of one device state make a block: on a CPU there is one, on a GPU one for
//! each partition. If the whole device is available, each workload's groups stand between two runs of its solo baseline, so that
//! drift shows, and changes little between them; the groups, the workloads, and the order of the blocks are shuffled by the
//! recorded seed. Blocks with MIG off and blocks with MIG on are not mixed: half of those in the mode as found come first and half
//! last, with all others between them, so that a campaign switches the mode once and back, and MIG cells stand between runs of
//! their baselines.

mod company;
mod forecast;
mod memory;
mod order;
pub mod published;
mod rights;
mod shards;
mod slices;
mod source;
mod trace;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use collo_store::{CellRecord, DeviceRecord, PlanRecord, PlannedRun, Predicted, RefusalRecord, Shard};
use collo_text::{Diagnostic, shown};
use serde_json::{Value as Json, json};

use crate::cell::{Cell, Member};
use crate::expand::{Expanded, expand};
use crate::experiment::Experiment;
use crate::facts::{CardShare, Cores, DeviceFacts, DeviceKind, PythonSeen, usable_cores};
use crate::hosting;
use crate::prior::Prior;
use crate::select::Selection;
use crate::sharing::{MPS_PROGRAM, Refusal, Seating};
use crate::workload::{Requirement, WorkloadPython};
use collo_gpus::partition::Partition;
use collo_text::units::{hundredths, ranges};
use memory::members;

pub use company::{GainForecast, in_company_s};
pub use forecast::{CellForecast, Forecast, ForecastBasis, LeastTime};
pub use memory::{MemoryForecast, OutOfMemoryRisk, beyond_the_host};
pub use shards::most_shards;
use slices::alone_on_slices;
pub use source::ForecastSource;

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
    /// What was predicted of its members; absent if nothing was.
    pub predicted: Option<Predicted>,
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
    /// Of a trace, by task: what it is believed to need of each of its cards. Empty for a group.
    pub estimates: Vec<Option<u64>>,
}

/// What a plan is made from.
#[derive(Clone, Copy)]
struct Basis<'a> {
    experiment: &'a Experiment,
    /// What a cell has: of several cards the share of one.
    facts: &'a DeviceFacts,
    /// All of the device, which a trace has.
    whole: &'a DeviceFacts,
    prior: &'a Prior,
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

/// Plan the cells of an experiment on a device, with what is known before they run.
///
/// On several cards a cell runs only if it does on each, with the share of the machine that a card has.
pub fn plan(experiment: &Experiment, cells: &[Expanded], whole: &DeviceFacts, prior: &Prior) -> Plan {
    let CardShare { facts, .. } = &whole.least_share(&experiment.cores);
    let basis = Basis { experiment, facts, whole, prior };
    let mut refusals = Vec::new();
    let mut refuse = |cell: &Cell, record: CellRecord, Refusal { reason, hint }| {
        let record = RefusalRecord { cell: record.cell, sharing: record.sharing, reason, hint };
        refusals.push(RefusedCell { cell: cell.clone(), record });
    };
    let mut fitting: Vec<PlannedCell> = Vec::new();
    for Expanded { cell, asked } in cells {
        // Around a trace, which takes hours, two runs of each member alone would tell of no drift.
        let twice = cell.is_reference() && experiment.trace.is_none();
        let repetitions = if twice { 2 * experiment.repetitions } else { experiment.repetitions };
        let mut record = cell.record(repetitions);
        let seating = match seat(cell, &record, &basis) {
            Ok(seating) => seating,
            Err(refusal) => {
                refuse(cell, record, refusal);
                continue;
            }
        };
        record.mode = seating.sharing(cell.mode().family());
        let (forecast, estimates) = if let Some(trace) = cell.trace() {
            record.slots = Some(trace::slots(trace, &seating, whole));
            (forecast::trace(trace, &record, &basis), trace::estimates(trace, &record.mode, prior))
        } else {
            record.slots = Some(match facts.kind {
                DeviceKind::Cpu => slots(cell, experiment),
                DeviceKind::Gpu => seating.to_string(),
            });
            record.alone_on_slice = slices::labels(cell, &seating);
            let expected = experiment.expect.iter().find(|expected| expected.condition.holds(&|axis| cell.axis(axis)));
            record.expect = expected.map(|expected| expected.expectation.clone());
            let seated = Seated { cell, record: &record, seating: &seating };
            if let Some(refusal) = memory::never_fits(seated, &basis) {
                refuse(cell, record, refusal);
                continue;
            }
            (forecast::cell(seated, &basis), Vec::new())
        };
        fitting.push(PlannedCell { cell: cell.clone(), asked: *asked, record, seating, forecast, estimates });
    }
    // A baseline that nobody asked for goes with the last cell that needed it.
    let needed: HashSet<String> =
        fitting.iter().flat_map(|f| f.record.against.iter().chain(&f.record.alone_on_slice).cloned()).collect();
    fitting.retain(|f| f.asked || needed.contains(&f.record.cell));
    distinct_slugs(&mut fitting);
    slices::join(&mut fitting);

    let found_on = facts.gpu().and_then(|g| g.partition.as_ref()).is_some_and(|p| p.mig);
    let order = order::order(&fitting, experiment, found_on, whole.gpus.len());
    if whole.gpus.len() > 1 {
        // Each part of the cells has baselines of its own.
        count(&mut fitting, &order);
    }
    Plan {
        experiment: experiment.name.clone(),
        device: whole.record(),
        seed: experiment.seed,
        epochs: experiment.epochs,
        measure_for_s: experiment.measure_for.map(|d| d.as_secs_f64()),
        forecast: Forecast::of(&fitting, &order, experiment.cooldown),
        predicted: prior.predicted.clone().map(|claims| Predicted { marked: memory::marked(&fitting), ..claims }),
        cells: fitting,
        order,
        refusals,
    }
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
    refuse(cell.terms().iter().find_map(|term| not_startable(&facts.python, &term.member)))?;
    refuse(cell.observe().and_then(|by| by.lacking(facts, cell.terms().iter().map(|term| term.member.workload()))))?;
    refuse(cell.unobservable())?;
    if let Some(trace) = cell.trace() {
        return trace::seat(cell, trace, record, basis);
    }
    let seating = cell.mode().seat(facts, &record.members, &experiment.each)?;
    refuse(seating.hosting.and_then(|how| hosting::refusal(cell, how, &experiment.cores, &facts.python)))?;
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

/// The first of several reasons, if there is one.
fn refuse_first<const N: usize>(reasons: [Option<Refusal>; N]) -> Result<(), Refusal> {
    reasons.into_iter().flatten().next().map_or(Ok(()), Err)
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

/// Why the processes of a member cannot be started, if that is known.
fn not_startable(python: &PythonSeen, member: &Member) -> Option<Refusal> {
    let (workload, spec) = (member.workload(), member.spec());
    let words = workload.prepare_for(&spec).ok().flatten().or_else(|| workload.command_for(&spec).ok());
    let program = words?.into_iter().next()?;
    if !python.missing.contains(&(workload.name.clone(), program.clone())) {
        return None;
    }
    let file = shown(&workload.folder.join("workload.toml"));
    let (why, hint) = match (program.contains('/'), &workload.environment) {
        (true, _) => (
            "no such program",
            format!("a relative path in {file} starts at the folder of that file; `chmod +x` makes a file executable"),
        ),
        (false, WorkloadPython::System) => ("it is not on the PATH", format!("install it, or write its path in {file}")),
        (false, _) => (
            "it is neither in `bin` of its Python nor on the PATH",
            format!("install it, or write its path in {file}; `environment` there names another Python"),
        ),
    };
    Some(Refusal { reason: format!("`{program}` of workload `{}` does not start: {why}", workload.name), hint: Some(hint) })
}

/// MPS daemons are needed, but their program is not installed.
fn without_mps(seating: &Seating, facts: &DeviceFacts) -> Option<Refusal> {
    (seating.daemons && !facts.has_mps).then(|| Refusal {
        reason: format!("`{}` is not on the PATH", MPS_PROGRAM),
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
    if let Some(quota) = facts.quota_cores.filter(|quota| needed as f64 > *quota && needed <= there) {
        let reason = format!(
            "{} need {needed} cores of their own, and the CPU quota here allows {} at a time",
            members(cell.degree()),
            hundredths(quota)
        );
        return Some(Refusal {
            reason,
            hint: Some("`cores = \"shared\"` lets them share; `collo doctor` shows the quota".into()),
        });
    }
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

/// Set the repetitions of each cell to those of the order, and what is forecast for them all.
fn count(cells: &mut [PlannedCell], order: &[PlannedRun]) {
    let runs = runs_by_cell(cells.len(), order);
    for (cell, runs) in cells.iter_mut().zip(runs) {
        let ratio = f64::from(runs) / f64::from(cell.record.repetitions.max(1));
        let forecast = &mut cell.forecast;
        let least = forecast.least.as_mut().map(|least| &mut least.total_s);
        let bounds = forecast.energy_bounds_j.as_mut().map(|(low, high)| [low, high]).into_iter().flatten();
        let sums = [forecast.total_s.as_mut(), forecast.energy_j.as_mut(), least].into_iter().flatten().chain(bounds);
        sums.for_each(|sum| *sum *= ratio);
        cell.record.repetitions = runs;
    }
}

/// How many runs each of so many cells has in an order.
fn runs_by_cell(cells: usize, order: &[PlannedRun]) -> Vec<u32> {
    let mut runs = vec![0; cells];
    order.iter().for_each(|run| runs[run.cell] += 1);
    runs
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

    /// How often the MIG mode of a card changes from one run to the next, without the change that restores it.
    pub fn mode_changes(&self) -> usize {
        let mut modes: HashMap<Option<u32>, bool> = HashMap::new();
        let changes = |run: &&PlannedRun| -> bool {
            let Some(partition) = &self.cells[run.cell].seating.partition else { return false };
            modes.insert(run.card, partition.mig).is_some_and(|before| before != partition.mig)
        };
        self.order.iter().filter(changes).count()
    }

    /// Keep only these runs of the order, by index and cell; each cell then has as many repetitions as are left.
    pub fn keep(&mut self, keep: impl Fn(usize, &PlannedCell) -> bool) {
        let mut place = 0..;
        self.order.retain(|run| place.next().is_some_and(|place| keep(place, &self.cells[run.cell])));
        let runs = runs_by_cell(self.cells.len(), &self.order);
        self.cells.iter_mut().zip(runs).for_each(|(cell, runs)| cell.record.repetitions = runs);
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
        let cards: Option<Vec<u32>> = self.order.iter().map(|run| run.card).collect();
        let refusal = |r: &RefusalRecord| json!({"cell": r.cell, "sharing": r.sharing, "reason": r.reason, "hint": r.hint});
        let mut json = json!({
            "schema": Plan::SCHEMA,
            "experiment": self.experiment,
            "cells": self.cells.iter().map(|c| cell_json(&c.record, &c.forecast)).collect::<Vec<Json>>(),
            "order": order,
            "refusals": self.refusals.iter().map(|r| refusal(&r.record)).collect::<Vec<Json>>(),
            "forecast_s": self.forecast.total_s,
            "energy_j": self.forecast.energy_j,
            "predictors": self.predicted.as_ref().map(|predicted| predicted.predictors().collect::<Vec<_>>()),
        });
        if self.cells.iter().any(|cell| cell.record.trace.is_some()) {
            json["forecast_at_least_s"] = self.forecast.least_s.into();
        }
        if let Some(cards) = cards.filter(|cards| !cards.is_empty()) {
            // By run, in that order.
            json["cards"] = cards.into();
        }
        json
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
    let mut json = json!({"cell": cell.cell, "sharing": cell.sharing, "degree": cell.degree, "members": members, "baseline": cell.baseline, "repetitions": cell.repetitions, "slots": cell.slots, "forecast": forecast.json()});
    if let Some(trace) = &cell.trace {
        json["trace"] = json!(trace);
        json["forecast"]["each_at_least_s"] = forecast.least.as_ref().map(|least| least.each_s).into();
    }
    json
}

#[cfg(test)]
mod tests;
