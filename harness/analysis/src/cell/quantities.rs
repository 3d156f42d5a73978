//! The quantities of a cell's repetitions. In: repetitions and baselines. Out: each quantity per repetition, with its dependence
//! on each baseline; then estimates with intervals. The definitions, with their sources, are in `docs/guide/metrics.md`.

use std::collections::BTreeMap;

use collo_quantity::stats::devices::DeviceValue;
use collo_quantity::stats::{self, Quantity, Variance};
use collo_quantity::{Key, Trait};
use collo_store::{AfterMeasured, CellRecord};

use super::Cell;
use super::pace::Paces;
use crate::reading::headroom;
use crate::reading::latency::{Latency, is_quantile};
use crate::reading::repetition::{MeasuredBlock, Repetition};

/// A share of a whole ends at 1, and so does its interval.
pub fn capped(key: Key, found: Quantity) -> Quantity {
    if key.is_at_most_one() { found.capped_at_one() } else { found }
}

/// A quantity of one repetition: its value, and the change of its logarithm with the logarithm of each baseline (its epoch time, or
/// makespan, or footprint) whose own uncertainty is not in the spread of the values yet.
#[derive(Debug, Clone)]
pub struct RepetitionValue {
    pub value: f64,
    pub leans_on: Vec<(Lean, f64)>,
    /// Relative standard deviation that the instrument's own resolution adds.
    pub resolution: f64,
    /// Where it was measured.
    pub device: usize,
    pub block: u32,
}

impl RepetitionValue {
    pub fn on_device(&self) -> DeviceValue {
        DeviceValue { device: self.device, block: self.block, value: self.value }
    }
}

/// A baseline's own quantity: the device that it was measured on, its label, and key. Baselines of one device never count for groups
/// of another.
pub type BaselineQuantity = (usize, String, Key);

/// What a value leans on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lean {
    /// A baseline's mean over all its runs.
    Mean(BaselineQuantity),
    /// A baseline's time at the pace of the runs of a cell, by its label.
    Pace(String, BaselineQuantity),
}

/// The quantities of one repetition.
pub type Values = BTreeMap<Key, RepetitionValue>;

/// A quantity of a baseline over its repetitions.
#[derive(Debug, Clone)]
pub struct BaselineMean {
    /// Of logarithms.
    mean: f64,
    pub(super) variance: Option<Variance>,
    pub(super) repetitions: usize,
    /// What the steps of a counter leave of variance between repetitions at the least.
    pub(super) resolution_s2: f64,
}

/// A solo cell's logarithmic means, which others are compared with.
///
/// A time is compared with that of the baseline's runs in the same block, before and after it: what makes a machine slower for
/// hours cancels, and what changes inside a block is in the spread of the ratios over the blocks. Where a block has no such run
/// (those of MIG instances have none) it is what the baseline would have taken at the pace of that run, by all runs before and after it;
/// where there are too few of them, and for what is no time, the mean over all runs of the baseline. Both have their own uncertainty.
#[derive(Debug, Clone, Default)]
pub struct Baselines {
    pub(super) known: BTreeMap<BaselineQuantity, BaselineMean>,
    /// Mean logarithm of a time in one block, as far as it was measured in one sitting.
    of_blocks: BTreeMap<(BaselineQuantity, MeasuredBlock), f64>,
    pub(super) paces: Paces,
    /// Repetitions of each cell that give its speed, by device.
    repetitions: BTreeMap<(usize, String), usize>,
    /// By device: others of the same GPU, whose baselines stand in where it has none.
    stand_ins: BTreeMap<usize, Vec<usize>>,
}

/// What a slow hour makes longer for a baseline and for its groups alike.
pub(super) const TIMES: [Key; 2] = [Key::EpochTime, Key::Makespan];

impl Baselines {
    /// From the counted repetitions of each solo cell.
    pub fn of<'a>(
        solos: impl Iterator<Item = (&'a CellRecord, Vec<&'a Repetition>)>,
        stand_ins: &BTreeMap<usize, Vec<usize>>,
    ) -> Self {
        let mut found = Baselines { stand_ins: stand_ins.clone(), ..Baselines::default() };
        for (cell, repetitions) in solos {
            let mut by_device = BTreeMap::<usize, Vec<(MeasuredBlock, Values)>>::new();
            for r in repetitions {
                by_device.entry(r.device).or_default().push((r.block(), absolute(r)));
            }
            for (device, own) in by_device {
                found.keep(device, cell, &own);
            }
        }
        found
    }

    /// Find the pace of each device, for the groups whose block has no run of their baseline.
    pub fn paced(mut self, cells: &[Cell]) -> Self {
        let lacks = |r: &Repetition, cell: &str, key: Key| {
            let source = (r.device, cell.to_string(), key);
            self.known.contains_key(&source) && !self.of_blocks.contains_key(&(source, r.block()))
        };
        self.paces = Paces::of(cells, lacks);
        self
    }

    /// Keep what the runs of a baseline on one device are, each with its block.
    fn keep(&mut self, device: usize, cell: &CellRecord, own: &[(MeasuredBlock, Values)]) {
        let fast = |(_, v): &&(MeasuredBlock, Values)| v.contains_key(&Key::EpochTime) || v.contains_key(&Key::Offered);
        self.repetitions.insert((device, cell.cell.clone()), own.iter().filter(fast).count());
        for name in Key::with(Trait::Baseline) {
            let source = (device, cell.cell.clone(), name);
            let values: Vec<(MeasuredBlock, f64)> =
                own.iter().filter_map(|(block, v)| Some((*block, v.get(&name)?.value))).collect();
            if is_of_all(name) && values.len() < own.len() {
                continue;
            }
            let all: Vec<f64> = values.iter().map(|(_, value)| *value).collect();
            let Some((mean, variance)) = stats::log_moments(&all) else { continue };
            let steps = own.iter().filter_map(|(_, v)| Some(v.get(&name)?.resolution.powi(2)));
            let resolution_s2 = steps.sum::<f64>() / all.len() as f64;
            let known = BaselineMean { mean, variance, repetitions: all.len(), resolution_s2 };
            self.known.insert(source.clone(), known);
            for (block, _) in values.iter().filter(|_| TIMES.contains(&name)) {
                let here: Vec<f64> = values.iter().filter(|(b, _)| b == block).map(|(_, value)| *value).collect();
                let mean = stats::log_moments(&here).map(|m| m.0);
                self.of_blocks.extend(mean.map(|mean| ((source.clone(), *block), mean)));
            }
        }
    }

    /// The device whose runs of a baseline count on this one: itself, or where it has none the first other of the same GPU that has some.
    pub fn home(&self, device: usize, cell: &str) -> usize {
        let measured = |d: &usize| self.repetitions.get(&(*d, cell.to_string())).is_some_and(|n| *n > 0);
        let others = self.stand_ins.get(&device).into_iter().flatten().copied();
        std::iter::once(device).chain(others).find(measured).unwrap_or(device)
    }

    /// A baseline's value where and when a run was measured.
    fn get(&self, beside: &Repetition, cell: &str, name: Key) -> Option<f64> {
        let home = self.home(beside.device, cell);
        let source = (home, cell.to_string(), name);
        if home == beside.device {
            let of_block = self.of_blocks.get(&(source.clone(), beside.block())).copied();
            if let Some(log) = of_block.or_else(|| self.paces.log_at(beside, cell, name)) {
                return Some(log.exp());
            }
        }
        self.known.get(&source).map(|known| known.mean.exp())
    }

    /// What a value computed from [`Baselines::get`] leans on; nothing where the baseline is of the same block.
    fn lean(&self, beside: &Repetition, cell: &str, name: Key, weight: f64) -> Option<(Lean, f64)> {
        let home = self.home(beside.device, cell);
        let source = (home, cell.to_string(), name);
        if home != beside.device {
            return Some((Lean::Mean(source), weight));
        }
        if self.of_blocks.contains_key(&(source.clone(), beside.block())) {
            return None;
        }
        let lean = match self.paces.log_at(beside, cell, name) {
            Some(_) => Lean::Pace(beside.record().cell.cell.clone(), source),
            None => Lean::Mean(source),
        };
        Some((lean, weight))
    }

    /// Whether a baseline has this quantity, where one of these runs was measured.
    pub fn knows<'a>(&self, mut beside: impl Iterator<Item = &'a Repetition>, cell: &str, name: Key) -> bool {
        beside.any(|r| self.known.contains_key(&(self.home(r.device, cell), cell.to_string(), name)))
    }

    /// Whether a baseline has a usable repetition where one of these runs was measured.
    pub fn is_measured<'a>(&self, mut beside: impl Iterator<Item = &'a Repetition>, cell: &str) -> bool {
        beside.any(|r| {
            let home = self.home(r.device, cell);
            self.repetitions.get(&(home, cell.to_string())).is_some_and(|n| *n > 0)
        })
    }
}

/// Whether a quantity is that of a cell only if all repetitions have it: those without it are on one side of the others.
pub(super) fn is_of_all(name: Key) -> bool {
    name == Key::MemoryHeadroom || is_quantile(name)
}

fn plain(value: f64) -> RepetitionValue {
    RepetitionValue { value, leans_on: Vec::new(), resolution: 0.0, device: 0, block: 0 }
}

/// Quantities of the requests of a run that need no baseline.
fn of_requests(latency: &Latency) -> impl Iterator<Item = (Key, RepetitionValue)> + '_ {
    let of = |name: Key| Some((name, RepetitionValue { resolution: latency.resolution(name), ..plain(latency.get(name)?) }));
    Key::of_requests().filter_map(of)
}

/// The p99 relative to that of the workload alone.
fn of_solo(values: &Values, r: &Repetition, solo: &str, baselines: &Baselines) -> Option<RepetitionValue> {
    let (own, alone) = (values.get(&Key::LatencyP99)?.value, baselines.get(r, solo, Key::LatencyP99)?);
    Some(RepetitionValue { leans_on: baselines.lean(r, solo, Key::LatencyP99, -1.0).into_iter().collect(), ..plain(own / alone) })
}

/// Quantities that need no baseline.
fn absolute(r: &Repetition) -> Values {
    let mut values = Values::new();
    let cell = &r.record().cell;
    let mut put = |name, value: Option<f64>| {
        if let Some(v) = value {
            values.insert(name, plain(v));
        }
    };
    let sum = |of: fn(&crate::reading::repetition::MemberNumbers) -> Option<f64>| r.members.iter().map(of).sum::<Option<f64>>();
    // The mean over members of different workloads would mean nothing.
    let epochs = sum(|m| m.epoch_s).filter(|_| cell.is_uniform() && !r.members.is_empty());
    put(Key::EpochTime, epochs.map(|s| s / r.members.len() as f64));
    put(Key::Overlap, r.overlap_ratio.filter(|_| r.members.len() > 1));
    put(Key::StartSkew, r.start_skew_s);
    put(Key::Makespan, r.makespan_s);
    let held = r.used(|u| u.memory.map(|x| x.bytes));
    put(Key::Memory, held);
    put(Key::Cpu, r.used(|u| u.cpu_ratio));
    put(Key::Items, sum(|m| m.items_per_s));
    put(Key::SmActive, r.metrics.get(Key::SmActive.name).copied());
    put(Key::Throttled, r.throttled_ratio);
    put(Key::MemoryHeadroom, held.and_then(|held| headroom::left_bytes(r, held)));
    let items_per_s = sum(|m| m.items_per_s).filter(|i| *i > 0.0);
    for (name, metric) in [(Key::PcieRxPerItem, Key::PcieRx), (Key::PcieTxPerItem, Key::PcieTx)] {
        put(name, r.metrics.get(metric.name).zip(items_per_s).map(|(bytes, items)| bytes / items));
    }
    if let (Some(energy), Some(epochs_per_s)) = (r.energy, r.epochs_per_s()) {
        let counted = |value: f64| RepetitionValue { resolution: energy.quantisation(), ..plain(value) };
        values.insert(Key::EnergyPerEpoch, counted(energy.power_w / epochs_per_s));
        if let Some(items) = items_per_s {
            values.insert(Key::EnergyPerItem, counted(energy.power_w / items));
        }
        if let Some(above_w) = r.idle_w.map(|idle| energy.power_w - idle).filter(|w| *w > 0.0) {
            values.insert(Key::EnergyPerEpochAboveIdle, counted(above_w / epochs_per_s));
        }
    }
    values.extend(r.latency.iter().flat_map(of_requests));
    values
}

/// All quantities of one repetition of a cell.
pub fn of_cell(r: &Repetition, baselines: &Baselines) -> Values {
    let mut values = absolute(r);
    let cell = &r.record().cell;
    let epochs: Option<Vec<f64>> = r.members.iter().map(|m| m.epoch_s).collect();
    let solos = |name: Key| -> Option<Vec<f64>> { cell.members.iter().map(|m| baselines.get(r, &m.solo, name)).collect() };
    // How much each baseline weighs, from each member's share of the whole.
    let lean = |shares: &[f64], name: Key, sign: f64| {
        let whole: f64 = shares.iter().sum();
        let mut by_solo = BTreeMap::<&str, f64>::new();
        for (member, share) in cell.members.iter().zip(shares) {
            *by_solo.entry(&member.solo).or_default() += sign * share / whole;
        }
        by_solo.into_iter().filter_map(|(solo, weight)| baselines.lean(r, solo, name, weight)).collect::<Vec<_>>()
    };
    if let (Some(e), Some(b)) = (&epochs, solos(Key::EpochTime)) {
        let progress: Vec<f64> = b.iter().zip(e).map(|(b, e)| b / e).collect();
        let slowdowns: Vec<f64> = progress.iter().map(|p| 1.0 / p).collect();
        let n = e.len() as f64;
        let antt =
            RepetitionValue { leans_on: lean(&slowdowns, Key::EpochTime, -1.0), ..plain(slowdowns.iter().sum::<f64>() / n) };
        let stp = RepetitionValue { leans_on: lean(&progress, Key::EpochTime, 1.0), ..plain(progress.iter().sum()) };
        values.insert(Key::Slowdown, antt.clone());
        values.insert(Key::Antt, antt);
        values.insert(Key::Stp, stp);
    }
    if let Some((gain, _)) = gain(r, &epochs, &solos, &lean, &values) {
        values.insert(Key::ThroughputGain, gain);
    }
    if let (Some(sum), Some(alone)) = (values.get(&Key::Memory).map(|v| v.value), solos(Key::Memory)) {
        let leans_on = lean(&alone, Key::Memory, -1.0);
        values.insert(Key::MemoryOfSolo, RepetitionValue { leans_on, ..plain(sum / alone.iter().sum::<f64>()) });
    }
    if let Some(alone) = solos(Key::SmActive) {
        let leans_on = lean(&alone, Key::SmActive, 1.0);
        values.insert(Key::SoloSmActiveSum, RepetitionValue { leans_on, ..plain(alone.iter().sum()) });
    }
    if let Some(q) = of_work_in_turn(r, &epochs, &solos, &lean, &values) {
        values.insert(Key::EnergyOfSolo, q);
    }
    // Traffic per item is of the whole group: equal members alone need as much each.
    if let (Some(traffic), Some(alone), true) =
        (values.get(&Key::PcieRxPerItem).map(|v| v.value), solos(Key::PcieRxPerItem), cell.is_uniform())
    {
        let (leans_on, one) = (lean(&alone, Key::PcieRxPerItem, -1.0), alone[0]);
        values.insert(Key::PcieRxOfSolo, RepetitionValue { leans_on, ..plain(traffic / one) });
    }
    if let Some(q) = on_slice(r, baselines) {
        values.insert(Key::SlowdownOnSlice, q);
    }
    if let Some(fairness) =
        fairness(cell, &epochs, solos(Key::EpochTime), |solo, weight| baselines.lean(r, solo, Key::EpochTime, weight))
    {
        values.insert(Key::Fairness, fairness);
    }
    // Where requests were pooled, all who serve do so alike.
    let server = r.record().members.iter().find(|m| m.serving.is_some());
    if let Some(q) = server.and_then(|m| of_solo(&values, r, &m.spec.solo, baselines)) {
        values.insert(Key::LatencyP99OfSolo, q);
    }
    measured_on(r, values)
}

/// The values of a run, each with where it was measured.
fn measured_on(r: &Repetition, mut values: Values) -> Values {
    values.values_mut().for_each(|v| (v.device, v.block) = (r.device, r.record().block));
    values
}

/// Joules of the group ÷ joules that its members need for the same work one after another, each alone on the whole GPU.
fn of_work_in_turn(
    r: &Repetition,
    epochs: &Option<Vec<f64>>,
    solos: Solos,
    lean: LeanOf,
    values: &Values,
) -> Option<RepetitionValue> {
    let (e, alone_j) = (epochs.as_ref()?, solos(Key::EnergyPerEpoch)?);
    let in_turn_w: Vec<f64> = alone_j.iter().zip(e).map(|(joules, seconds)| joules / seconds).collect();
    let per_epoch = values.get(&Key::EnergyPerEpoch)?;
    Some(RepetitionValue {
        leans_on: lean(&in_turn_w, Key::EnergyPerEpoch, -1.0),
        resolution: per_epoch.resolution,
        ..plain(per_epoch.value * r.epochs_per_s()? / in_turn_w.iter().sum::<f64>())
    })
}

/// Mean slowdown relative to the same workloads alone on slices of the same size: the slowdown without the effect of the slice.
fn on_slice(r: &Repetition, baselines: &Baselines) -> Option<RepetitionValue> {
    let cell = &r.record().cell;
    if cell.alone_on_slice.is_empty() {
        return None;
    }
    let slowdowns: Vec<f64> =
        (0..cell.members.len()).map(|index| Some(member_on_slice(r, index, baselines)?.value)).collect::<Option<_>>()?;
    let whole: f64 = slowdowns.iter().sum();
    let lean = |(label, s): (&String, &f64)| baselines.lean(r, label, Key::EpochTime, -s / whole);
    let leans_on = cell.alone_on_slice.iter().zip(&slowdowns).filter_map(lean).collect();
    Some(RepetitionValue { leans_on, ..plain(whole / slowdowns.len() as f64) })
}

/// Slowdown of one member relative to its workload alone on a slice of the same size.
fn member_on_slice(r: &Repetition, index: usize, baselines: &Baselines) -> Option<RepetitionValue> {
    let (epoch_s, label) = (r.members.get(index)?.epoch_s?, r.record().cell.alone_on_slice.get(index)?);
    let alone_s = baselines.get(r, label, Key::EpochTime)?;
    let leans_on = baselines.lean(r, label, Key::EpochTime, -1.0).into_iter().collect();
    Some(RepetitionValue { leans_on, ..plain(epoch_s / alone_s) })
}

type Solos<'a> = &'a dyn Fn(Key) -> Option<Vec<f64>>;
type LeanOf<'a> = &'a dyn Fn(&[f64], Key, f64) -> Vec<(Lean, f64)>;

/// How the throughput gain of a cell is defined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GainBy {
    /// Uniform members that all keep training: Σ solo epoch times ÷ mean epoch time.
    EpochTime,
    /// Members exit when finished: Σ solo makespans ÷ makespan.
    Makespan,
    /// Different members that all keep training: Σ solo ÷ actual, which is STP.
    Progress,
}

impl GainBy {
    /// The definition that fits a cell.
    pub fn of(cell: &CellRecord) -> Self {
        match (cell.after_measured, cell.is_uniform()) {
            (AfterMeasured::Exit, _) => GainBy::Makespan,
            (_, true) => GainBy::EpochTime,
            (_, false) => GainBy::Progress,
        }
    }

    /// For JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            GainBy::EpochTime => "epoch_time",
            GainBy::Makespan => "makespan",
            GainBy::Progress => "progress",
        }
    }
}

fn gain(
    r: &Repetition,
    epochs: &Option<Vec<f64>>,
    solos: Solos,
    lean: LeanOf,
    values: &Values,
) -> Option<(RepetitionValue, GainBy)> {
    let by = GainBy::of(&r.record().cell);
    let value = match by {
        GainBy::Makespan => {
            let serial = solos(Key::Makespan)?;
            let leans_on = lean(&serial, Key::Makespan, 1.0);
            RepetitionValue { leans_on, ..plain(serial.iter().sum::<f64>() / r.makespan_s?) }
        }
        GainBy::EpochTime => {
            let (e, b) = (epochs.as_ref()?, solos(Key::EpochTime)?);
            let mean = e.iter().sum::<f64>() / e.len() as f64;
            let leans_on = lean(&b, Key::EpochTime, 1.0);
            RepetitionValue { leans_on, ..plain(b.iter().sum::<f64>() / mean) }
        }
        GainBy::Progress => values.get(&Key::Stp)?.clone(),
    };
    Some((value, by))
}

/// Least over largest normalised progress. Equal members need no baseline: it cancels.
fn fairness(
    cell: &CellRecord,
    epochs: &Option<Vec<f64>>,
    solos: Option<Vec<f64>>,
    lean: impl Fn(&str, f64) -> Option<(Lean, f64)>,
) -> Option<RepetitionValue> {
    let epochs = epochs.as_ref().filter(|e| e.len() > 1)?;
    let alone = if cell.is_uniform() { vec![1.0; epochs.len()] } else { solos? };
    let progress: Vec<f64> = alone.iter().zip(epochs).map(|(b, e)| b / e).collect();
    let least = (0..progress.len()).min_by(|&a, &b| progress[a].total_cmp(&progress[b]))?;
    let most = (0..progress.len()).max_by(|&a, &b| progress[a].total_cmp(&progress[b]))?;
    let (slow, fast) = (&cell.members[least].solo, &cell.members[most].solo);
    let leans_on = if slow == fast { Vec::new() } else { [lean(slow, 1.0), lean(fast, -1.0)].into_iter().flatten().collect() };
    Some(RepetitionValue { leans_on, ..plain(progress[least] / progress[most]) })
}

/// The quantities of one member of one repetition.
pub fn of_member(r: &Repetition, index: usize, baselines: &Baselines) -> Values {
    let (member, spec) = (&r.members[index], &r.record().cell.members[index]);
    let mut values = Values::new();
    let mut put = |name, value: Option<f64>| {
        if let Some(v) = value {
            values.insert(name, plain(v));
        }
    };
    put(Key::EpochTime, member.epoch_s);
    put(Key::Memory, member.usage.memory.map(|m| m.bytes));
    put(Key::Cpu, member.usage.cpu_ratio);
    put(Key::Items, member.items_per_s);
    put(Key::ReadRate, member.usage.read_bytes_per_s);
    put(Key::InvoluntarySwitches, member.usage.involuntary_switches_per_s);
    let serving = r.record().members.get(index).and_then(|m| m.serving.as_ref());
    put(Key::Capacity, serving.and_then(|s| s.capacity_per_s));
    values.extend(member.latency.iter().flat_map(of_requests));
    if let Some(q) = of_solo(&values, r, &spec.solo, baselines) {
        values.insert(Key::LatencyP99OfSolo, q);
    }
    if let (Some(e), Some(b)) = (member.epoch_s, baselines.get(r, &spec.solo, Key::EpochTime)) {
        let leans_on = baselines.lean(r, &spec.solo, Key::EpochTime, -1.0).into_iter().collect();
        values.insert(Key::Slowdown, RepetitionValue { leans_on, ..plain(e / b) });
    }
    if let Some(q) = member_on_slice(r, index, baselines) {
        values.insert(Key::SlowdownOnSlice, q);
    }
    measured_on(r, values)
}
