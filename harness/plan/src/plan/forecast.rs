//! The duration of a plan: from stored runs of the same cells here, else of their members alone, with what company is predicted to cost
//! where that is known, else from the workloads' files.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use collo_store::{AfterMeasured, CellRecord, MemberSpec, PlannedRun, PredictedValue};
use serde_json::{Value as Json, json};

use super::{Basis, ForecastSource, GainForecast, MemoryForecast, PlannedCell, Seated, company, memory};
use crate::cell::{Cell, CellTrace, Member, Term};
use crate::experiment::Experiment;
use crate::facts::{Cores, DeviceFacts, DeviceKind};
use crate::past::{AloneTime, PastCell};
use crate::sharing::Seating;
use crate::traces::{least_s, work_of};
use crate::workload::{LIMIT_BATCHES, Limit};

/// The time of a plan; absent if that of a cell is unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Forecast {
    /// All runs without the pauses; absent if one of them is.
    pub runs_s: Option<f64>,
    /// The runs whose time is known, on the GPU that has most of it to do.
    pub known_s: f64,
    /// The pauses between runs.
    pub between_s: f64,
    /// All of it; absent if a run is.
    pub total_s: Option<f64>,
    /// All of it at the least, where only traces are unknown and their least is known; absent if `total_s` is there.
    pub least_s: Option<f64>,
    /// How many stored runs it comes from.
    pub stored_runs: usize,
    /// Of the cells whose energy was measured; absent if there is none.
    pub energy_j: Option<f64>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct CellForecast {
    /// One run.
    pub each_s: Option<f64>,
    /// By the bounds of its members' slowdowns, all low or all high; absent unless it is predicted.
    pub each_bounds_s: Option<(f64, f64)>,
    /// All repetitions.
    pub total_s: Option<f64>,
    pub memory: MemoryForecast,
    /// What a group gains; absent of a single member, and where nothing is known.
    pub gain: Option<GainForecast>,
    /// Why a predicted gain is not in `gain`, and no time is by it.
    pub gain_withheld: Option<String>,
    /// All repetitions; absent unless the cell's power was measured before, or is predicted.
    pub energy_j: Option<f64>,
    /// By the bounds of power and time, both low or both high; absent unless its power is predicted, and where its time is what it takes at
    /// most.
    pub energy_bounds_j: Option<(f64, f64)>,
    /// Where its energy comes from; absent with it.
    pub energy_from: Option<ForecastSource>,
    /// Where its time comes from; absent with it.
    pub basis: Option<ForecastBasis>,
    /// Of a trace whose time is unknown; absent if of one of its tasks is not known what it takes alone.
    pub least: Option<LeastTime>,
}

/// What a trace takes at the least, by what its tasks take alone.
#[derive(Debug, Clone, PartialEq)]
pub struct LeastTime {
    /// One run.
    pub each_s: f64,
    /// All repetitions.
    pub total_s: f64,
    /// Stored runs that it is from, by their folders; of the others the workloads' files tell.
    pub runs: BTreeSet<String>,
}

/// Where the time of a cell comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ForecastBasis {
    /// The file of its workloads.
    Workload,
    /// Stored runs of the same cell, by their folders.
    Runs(BTreeSet<String>),
    /// Stored runs of its members alone, by their folders: on a GPU an upper bound.
    Members(BTreeSet<String>),
    /// The same, with what company is predicted to cost.
    Company(BTreeSet<String>),
}

impl Forecast {
    /// Of all cells with their repetitions; on several cards, which are measured at the same time, of the one that takes longest.
    pub fn of(cells: &[PlannedCell], order: &[PlannedRun], cooldown: Duration) -> Forecast {
        let cards: BTreeSet<Option<u32>> = order.iter().map(|run| run.card).collect();
        let on = |card: Option<u32>| {
            let runs = || order.iter().filter(move |run| run.card == card);
            let between_s = cooldown.as_secs_f64() * (runs().count().saturating_sub(1)) as f64;
            (runs().map(|run| cells[run.cell].forecast.each_s).sum::<Option<f64>>(), between_s)
        };
        let known_on = |card: &Option<u32>| -> f64 {
            order.iter().filter(|run| run.card == *card).filter_map(|run| cells[run.cell].forecast.each_s).sum()
        };
        let known_s = cards.iter().map(known_on).fold(0.0, f64::max);
        let each = cards.into_iter().map(on).collect::<Vec<_>>();
        let longest =
            |a: &(Option<f64>, f64), b: &(Option<f64>, f64)| (a.0, a.1).partial_cmp(&(b.0, b.1)).unwrap_or(Ordering::Equal);
        let known = each.iter().all(|(runs_s, _)| runs_s.is_some());
        let (runs_s, between_s) = each.into_iter().max_by(longest).unwrap_or((Some(0.0), 0.0));
        let runs_s = runs_s.filter(|_| known);
        let of_least = cells.iter().filter_map(|c| c.forecast.least.as_ref()).flat_map(|least| &least.runs);
        let stored: BTreeSet<&String> =
            cells.iter().filter_map(|c| c.forecast.basis.as_ref()).flat_map(|b| b.folders()).chain(of_least).collect();
        // Traces have all cards, so that nothing of their plan is measured at the same time.
        let least = |cell: &PlannedCell| cell.forecast.total_s.or(cell.forecast.least.as_ref().map(|least| least.total_s));
        let least_s = cells.iter().map(least).sum::<Option<f64>>().filter(|_| runs_s.is_none()).map(|s| s + between_s);
        let energy_j = cells.iter().filter_map(|c| c.forecast.energy_j).reduce(|a, b| a + b);
        let total_s = runs_s.map(|s| s + between_s);
        Forecast { runs_s, known_s, between_s, total_s, least_s, stored_runs: stored.len(), energy_j }
    }
}

impl ForecastBasis {
    fn folders(&self) -> impl Iterator<Item = &String> {
        let folders = match self {
            ForecastBasis::Workload => None,
            ForecastBasis::Runs(folders) | ForecastBasis::Members(folders) | ForecastBasis::Company(folders) => Some(folders),
        };
        folders.into_iter().flatten()
    }
}

impl ForecastBasis {
    /// The letter and the word for it.
    pub fn source(&self) -> ForecastSource {
        match self {
            ForecastBasis::Workload => ForecastSource::Workload,
            // Of members alone it is what the group takes at most, and is said to be.
            ForecastBasis::Runs(_) | ForecastBasis::Members(_) => ForecastSource::Measured,
            ForecastBasis::Company(_) => ForecastSource::Predicted,
        }
    }
}

impl CellForecast {
    /// Its time is what it takes at most.
    pub fn is_bound(&self, device: DeviceKind) -> bool {
        device == DeviceKind::Gpu && matches!(self.basis, Some(ForecastBasis::Members(_)))
    }

    /// As `collo plan --json` has it.
    pub fn json(&self) -> Json {
        let basis = self.basis.as_ref().map(|basis| match basis {
            ForecastBasis::Workload => "workload.toml",
            ForecastBasis::Runs(_) => "stored runs",
            ForecastBasis::Members(_) => "stored runs of its members alone",
            ForecastBasis::Company(_) => "stored runs of its members alone, and what company is predicted to cost",
        });
        let gain = self.gain.map(|gain| {
            json!({"estimate": gain.estimate, "low": gain.bounds.map(|b| b.0), "high": gain.bounds.map(|b| b.1),
                "from": gain.source.as_str()})
        });
        let stored = self.basis.as_ref().map_or(0, |basis| basis.folders().count());
        let memory = &self.memory;
        let (each, energy) = (self.each_bounds_s.unzip(), self.energy_bounds_j.unzip());
        json!({"each_s": self.each_s, "each_low_s": each.0, "each_high_s": each.1, "total_s": self.total_s, "memory_bytes": memory.bytes, "memory_upper_bytes": memory.upper_bytes,
            "memory_from": memory.source.map(ForecastSource::as_str), "may_run_out_of_memory": memory.risk.is_some(),
            "out_of_memory_probability": memory.probability(), "gain": gain, "gain_withheld": self.gain_withheld, "energy_j": self.energy_j, "energy_low_j": energy.0, "energy_high_j": energy.1,
            "energy_from": self.energy_from.map(ForecastSource::as_str), "from": basis, "stored_runs": stored})
    }
}

/// A trace, for its repetitions: as long as the same took before; else what it takes at the least.
pub(super) fn trace(trace: &CellTrace, record: &CellRecord, basis: &Basis<'_>) -> CellForecast {
    let past = basis.prior.past.of(record);
    let each_s = past.and_then(PastCell::whole_s);
    CellForecast {
        each_s,
        total_s: each_s.map(|s| s * f64::from(record.repetitions)),
        basis: each_s.and(past).map(|past| ForecastBasis::Runs(past.folders())),
        least: if each_s.is_none() { least(trace, record, basis) } else { None },
        ..CellForecast::default()
    }
}

fn least(trace: &CellTrace, record: &CellRecord, basis: &Basis<'_>) -> Option<LeastTime> {
    let mut runs = BTreeSet::new();
    let mut known: HashMap<&str, Option<AloneTime>> = HashMap::new();
    for task in &trace.tasks {
        known.entry(task.member.key()).or_insert_with(|| {
            let past = basis.prior.past.alone(&task.member.spec());
            let measured = past.and_then(|past| Some((past.alone_time()?, past.folders())));
            runs.extend(measured.iter().flat_map(|(_, folders)| folders.iter().cloned()));
            measured.map(|(time, _)| time).or_else(|| shipped(&task.member, basis.facts.kind))
        });
    }
    let work = work_of(&trace.tasks, |member| known.get(member.key()).copied().flatten())?;
    // Whoever shares a card may gain by it; alone on one nobody does.
    let one_each = trace.record.policy == collo_schedule::policy::exclusive().label();
    let each_s = least_s(&work, one_each.then_some(trace.record.cards));
    Some(LeastTime { each_s, total_s: each_s * f64::from(record.repetitions), runs })
}

/// What a member alone takes by its workload's file, which tells of CPUs.
fn shipped(member: &Member, device: DeviceKind) -> Option<AloneTime> {
    let (set_up_s, epoch_s) = (member.workload().forecast.cpu.set_up_s?, epoch_s(member)?);
    (device == DeviceKind::Cpu).then_some(AloneTime { set_up_s, epoch_s })
}

/// One cell on a device, for its repetitions.
pub(super) fn cell(seated: Seated<'_>, basis: &Basis<'_>) -> CellForecast {
    let (Seated { cell, record, .. }, Basis { experiment, facts, prior, .. }) = (seated, *basis);
    let same = || {
        let past = prior.past.of(record)?;
        Some((past.each_s(experiment.goal(), |epoch_s| experiment.epochs_of(epoch_s))?, ForecastBasis::Runs(past.folders())))
    };
    let in_company = in_company(seated, basis);
    let company = || in_company.clone().map(|company| (company.each_s, ForecastBasis::Company(company.folders)));
    let members = || members_alone(seated, basis);
    let by_file = || {
        let term = |term: &Term| {
            let AloneTime { set_up_s, epoch_s } = shipped(&term.member, facts.kind)?;
            Some(Alone { set_up_s, epoch_s, count: term.count })
        };
        let alone: Vec<Alone> = cell.terms().iter().map(term).collect::<Option<_>>()?;
        Some((on_cores(cell, &alone, experiment, facts), ForecastBasis::Workload))
    };
    let (each_s, source) = same().or_else(company).or_else(members).or_else(by_file).unzip();
    let memory = memory::forecast(seated, basis);
    let total_s = each_s.map(|s| s * f64::from(record.repetitions));
    let measured_w = prior.past.of(record).and_then(PastCell::power_w).map(|w| (w, ForecastSource::Measured));
    let predicted = prior.power_of(record);
    let predicted_w = || Some((predicted?.estimate, ForecastSource::Predicted));
    let (power_w, energy_from) = measured_w.or_else(predicted_w).unzip();
    // What is measured of a run is its power from launch to end; what is predicted is that of training.
    let all = f64::from(record.repetitions);
    let set_up_s = set_up_s(seated, basis).unwrap_or(0.0);
    let training_s = |each_s: f64| (each_s - set_up_s).max(0.0);
    let energy_j = each_s.zip(power_w).map(|(s, w)| match energy_from {
        Some(ForecastSource::Predicted) => all * training_s(s) * w,
        _ => all * s * w,
    });
    let each_bounds_s = match source {
        Some(ForecastBasis::Company(_)) => in_company.map(|company| company.bounds_s),
        _ => None,
    };
    let time_bounds_s = match source {
        Some(ForecastBasis::Runs(_)) => each_s.map(|s| (s, s)),
        _ => each_bounds_s,
    };
    let power = predicted.filter(|_| energy_from == Some(ForecastSource::Predicted));
    // At the least its set-up draws nothing, at the most as much as training.
    let energy_bounds_j =
        power.zip(time_bounds_s).map(|(w, (low_s, high_s))| (all * training_s(low_s) * w.low, all * high_s * w.high));
    let gain = company::gain(seated, basis);
    let withheld = || prior.company_of(record)?.gain_withheld.clone();
    let gain_withheld = if gain.is_none() { withheld() } else { None };
    CellForecast {
        each_s,
        each_bounds_s,
        total_s,
        memory,
        gain,
        gain_withheld,
        energy_j,
        energy_bounds_j,
        energy_from: energy_from.filter(|_| energy_j.is_some()),
        basis: source,
        least: None,
    }
}

/// A member's times alone, and how many there are of it.
struct Alone {
    set_up_s: f64,
    epoch_s: f64,
    count: u32,
}

/// From launch to the first epoch, of stored runs of the cell or of its members alone, or by their files.
fn set_up_s(seated: Seated<'_>, basis: &Basis<'_>) -> Option<f64> {
    let (Seated { record, .. }, Basis { facts, prior, .. }) = (seated, *basis);
    let alone = |(member, spec): (usize, &MemberSpec)| {
        let past = record.alone_on_slice.get(member).and_then(|label| prior.past.alone_on(label, spec));
        past.or_else(|| prior.past.alone(spec)).map(PastCell::set_up_s)
    };
    let stored = || in_all(facts.kind, record.members.iter().enumerate().map(alone).collect::<Option<Vec<_>>>()?);
    let by_file = || {
        in_all(
            facts.kind,
            seated.cell.members().map(|member| Some(shipped(member, facts.kind)?.set_up_s)).collect::<Option<Vec<_>>>()?,
        )
    };
    prior.past.of(record).map(PastCell::set_up_s).or_else(stored).or_else(by_file)
}

/// Members of a GPU are set up one after another, those of a CPU together.
fn in_all(device: DeviceKind, set_up_s: Vec<f64>) -> Option<f64> {
    match device {
        DeviceKind::Cpu => set_up_s.into_iter().reduce(f64::max),
        DeviceKind::Gpu => Some(set_up_s.into_iter().sum()),
    }
}

/// A time by what company is predicted to cost.
#[derive(Clone)]
struct InCompany {
    each_s: f64,
    bounds_s: (f64, f64),
    /// Those of the members alone.
    folders: BTreeSet<String>,
}

/// From stored runs of its members alone, and what company is predicted to cost them.
fn in_company(seated: Seated<'_>, basis: &Basis<'_>) -> Option<InCompany> {
    let (Seated { cell, record, .. }, Basis { experiment, facts, prior, .. }) = (seated, *basis);
    let slowdowns = &prior.useful_company_of(record)?.slowdowns;
    let past: Vec<&PastCell> = record.members.iter().map(|spec| prior.past.alone(spec)).collect::<Option<_>>()?;
    let alone_s: Vec<f64> = past.iter().map(|past| past.epoch_s()).collect::<Option<_>>()?;
    let set_up_s = in_all(facts.kind, past.iter().map(|past| past.set_up_s()).collect())?;
    let epoch_s = |of: fn(&PredictedValue) -> f64| {
        company::in_company_s(cell.after_measured(), &alone_s, &slowdowns.iter().map(of).collect::<Vec<_>>())
    };
    let estimate_s = epoch_s(|slowdown| slowdown.estimate);
    // However long its epochs are, it trains as many as are planned by the estimate.
    let each_s = |epoch_s: f64| set_up_s + experiment.epochs_of(estimate_s) * epoch_s;
    Some(InCompany {
        each_s: each_s(estimate_s),
        bounds_s: (each_s(epoch_s(|slowdown| slowdown.low)), each_s(epoch_s(|slowdown| slowdown.high))),
        folders: past.iter().flat_map(|past| past.folders()).collect(),
    })
}

/// From stored runs of its members alone.
fn members_alone(seated: Seated<'_>, basis: &Basis<'_>) -> Option<(f64, ForecastBasis)> {
    let (Seated { cell, record, seating }, Basis { experiment, facts, prior, .. }) = (seated, *basis);
    let mut folders = BTreeSet::new();
    let mut alone = |past: &PastCell, count: u32| {
        folders.extend(past.folders());
        Some(Alone { set_up_s: past.set_up_s(), epoch_s: past.epoch_s()?, count })
    };
    let each_s = if record.mode.partitioned {
        // On slices of their own the slowest decides. Alone on the whole GPU a member tells nothing of a slice.
        let slices = record.mode.isolated.then_some(&record.alone_on_slice)?;
        let members = slices.iter().zip(&record.members).map(|(label, member)| alone(prior.past.alone_on(label, member)?, 1));
        let members: Vec<Alone> = members.collect::<Option<Vec<_>>>().filter(|all| all.len() == record.members.len())?;
        at_most(&members, members.iter().map(|a| a.epoch_s).fold(0.0, f64::max), experiment)
    } else {
        let members = cell.terms().iter().map(|term| alone(prior.past.alone(&term.member.spec())?, term.count));
        let members: Vec<Alone> = members.collect::<Option<_>>()?;
        match facts.kind {
            DeviceKind::Cpu => on_cores(cell, &members, experiment, facts),
            DeviceKind::Gpu => at_most(&members, in_turn_s(cell, &members, seating), experiment),
        }
    };
    Some((each_s, ForecastBasis::Members(folders)))
}

/// An epoch of members that share a GPU and gain nothing by it: each waits for all others. With a limit of threads one may
/// compute on no more than that part of the GPU.
fn in_turn_s(cell: &Cell, members: &[Alone], seating: &Seating) -> f64 {
    let slowest_s = members.iter().map(|a| a.epoch_s).fold(0.0, f64::max);
    let turns_s = match cell.after_measured() {
        // The slowest competes with all others to its end.
        AfterMeasured::KeepRunning => slowest_s * f64::from(cell.degree()),
        AfterMeasured::Exit => members.iter().map(|a| a.epoch_s * f64::from(a.count)).sum(),
    };
    let least = seating.limits.iter().filter_map(|limits| limits.active_thread_percent).min();
    least.map_or(turns_s, |percent| turns_s.max(slowest_s * 100.0 / f64::from(percent)))
}

/// Members of a GPU are set up one after another.
fn at_most(members: &[Alone], epoch_s: f64, experiment: &Experiment) -> f64 {
    let set_up_s: f64 = members.iter().map(|a| a.set_up_s * f64::from(a.count)).sum();
    set_up_s + experiment.epochs_of(epoch_s) * epoch_s
}

/// Set-up, then epochs: as long as the slowest alone, or longer with more threads than cores.
fn on_cores(cell: &Cell, members: &[Alone], experiment: &Experiment, facts: &DeviceFacts) -> f64 {
    let cores = match &experiment.cores {
        Cores::Listed(cores) => cores.len(),
        Cores::PerMember(lists) => lists.iter().take(cell.degree() as usize).flatten().collect::<BTreeSet<_>>().len(),
        Cores::Shared | Cores::Spread | Cores::GpuLocal | Cores::GpuLocalSpread => facts.cores.len(),
    };
    let (threads, cores) = (f64::from(experiment.threads), (cores.max(1) as f64).min(facts.quota_cores.unwrap_or(f64::INFINITY)));
    let (mut set_up_s, mut slowest_s, mut work_s) = (0.0_f64, 0.0_f64, 0.0_f64);
    for alone in members {
        set_up_s = set_up_s.max(alone.set_up_s);
        slowest_s = slowest_s.max(alone.epoch_s);
        work_s += alone.epoch_s * f64::from(alone.count);
    }
    let epoch_s = match cell.after_measured() {
        // Under hold everybody trains until the slowest is done.
        AfterMeasured::KeepRunning => slowest_s * (f64::from(cell.degree()) * threads / cores).max(1.0),
        // Under release the work only has to be done, by whoever is left.
        AfterMeasured::Exit => slowest_s.max(work_s * threads / cores),
    };
    set_up_s + experiment.epochs_of(epoch_s) * epoch_s
}

/// Settings that change neither the work nor the memory of an epoch much, or whose effect is known.
const NEUTRAL: [&str; 9] = ["images", "seconds", LIMIT_BATCHES, "learning_rate", "seed", "epochs", "window", "rate", "slo"];

/// The forecast in its workload's file, unless a setting makes it another training: another model or precision was not measured.
pub(super) fn forecast_of(member: &Member) -> Option<&crate::workload::WorkloadForecast> {
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
    let mut epoch_s = forecast_of(member)?.cpu.epoch_s?;
    // Who serves does so for as long as it is told.
    if let Some(window) = member.serving_window() {
        epoch_s = collo_text::units::duration(window)?.as_secs_f64();
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
    match member.settings().get(LIMIT_BATCHES).and_then(Limit::of) {
        None | Some(Limit::Whole) => Some(epoch_s),
        Some(Limit::Share(share)) => Some(epoch_s * share),
        Some(Limit::Batches(batches)) => {
            let items = batches as f64 * f64::from(member.batch_size().unwrap_or(1));
            Some(epoch_s * (items / member.workload().forecast.cpu.items? as f64).min(1.0))
        }
    }
}
