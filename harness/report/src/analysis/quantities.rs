//! What a cell's repetitions add up to. In: repetitions and baselines. Out: each quantity per repetition, with how much it leans on
//! each baseline; then estimates with intervals. The definitions, with their sources, are in `docs/guide/metrics.md`.

use std::collections::BTreeMap;

use collo_store::{CellRecord, Tail};

use super::latency::{self, Latency};
use super::repetition::Repetition;
use crate::stats::{self, Variance};

/// Quantities of a cell, in the order in which JSON lists them.
pub const CELL: [&str; 32] = joined(OF_TRAINING, latency::NAMES);

/// Those of members that train, and of the device.
const OF_TRAINING: [&str; 24] = [
    "epoch_time_s",
    "slowdown",
    "slowdown_on_slice",
    "throughput_gain",
    "stp",
    "antt",
    "fairness",
    "overlap_ratio",
    "start_skew_s",
    "makespan_s",
    "memory_bytes",
    "memory_of_solo",
    "memory_headroom_bytes",
    "cpu_ratio",
    "items_per_s",
    "energy_j_per_epoch",
    "energy_j_per_epoch_above_idle",
    "energy_j_per_item",
    "energy_of_solo",
    "solo_sm_active_sum_ratio",
    "pcie_rx_bytes_per_item",
    "pcie_tx_bytes_per_item",
    "pcie_rx_of_solo",
    "throttled_ratio",
];

/// What a baseline is asked for.
const OF_BASELINES: [&str; 7] = [
    "epoch_time_s",
    "makespan_s",
    "memory_bytes",
    "energy_j_per_epoch",
    "pcie_rx_bytes_per_item",
    "sm_active_ratio",
    "latency_p99_s",
];

/// Quantities that share their variance between cells: those of a cell, and what only others lean on. Those of requests do not: how much
/// a latency scatters depends on how near to its capacity a server is, so one cell's says nothing of another's.
pub const POOLED: [&str; 25] = joined(OF_TRAINING, ["sm_active_ratio"]);

/// Quantities of one member that share their variance.
pub const MEMBER_POOLED: [&str; 7] =
    ["epoch_time_s", "slowdown", "memory_bytes", "cpu_ratio", "items_per_s", "read_bytes_per_s", "involuntary_switches_per_s"];

/// Quantities of one member.
pub const MEMBER: [&str; 16] = joined::<7, 9, 16>(MEMBER_POOLED, joined(latency::NAMES, ["capacity_per_s"]));

/// One list after the other.
const fn joined<const A: usize, const B: usize, const N: usize>(a: [&'static str; A], b: [&'static str; B]) -> [&'static str; N] {
    let mut all = [""; N];
    let mut i = 0;
    while i < N {
        all[i] = if i < A { a[i] } else { b[i - A] };
        i += 1;
    }
    all
}

/// A quantity of one repetition: its value with the baselines at their estimates, and the change of its logarithm with the
/// logarithm of each baseline's epoch time (or makespan, or footprint).
#[derive(Debug, Clone)]
pub struct Value {
    pub value: f64,
    pub leans_on: Vec<(Source, f64)>,
    /// Relative standard deviation that the instrument's own resolution adds.
    pub resolution: f64,
}

/// A baseline's own quantity: cell label and name.
pub type Source = (String, &'static str);

/// The quantities of one repetition.
pub type Values = BTreeMap<&'static str, Value>;

/// A solo cell's logarithmic means, which others are held against.
#[derive(Debug, Clone, Default)]
pub struct Baselines {
    /// Mean logarithm and variance over so many repetitions, by cell and quantity.
    pub(super) known: BTreeMap<Source, (f64, Option<Variance>, usize)>,
    /// Repetitions of each cell that say how fast it was.
    repetitions: BTreeMap<String, usize>,
}

impl Baselines {
    /// From the counting repetitions of each solo cell.
    pub fn of<'a>(solos: impl Iterator<Item = (&'a CellRecord, Vec<&'a Repetition>)>) -> Self {
        let (mut known, mut counted) = (BTreeMap::new(), BTreeMap::new());
        for (cell, repetitions) in solos {
            let own: Vec<Values> = repetitions.iter().map(|r| absolute(r)).collect();
            let fast = |v: &&Values| v.contains_key("epoch_time_s") || v.contains_key("offered_per_s");
            counted.insert(cell.cell.clone(), own.iter().filter(fast).count());
            for name in OF_BASELINES {
                let values: Vec<f64> = own.iter().filter_map(|v| v.get(name).map(|x| x.value)).collect();
                if let Some((mean, variance)) = stats::log_moments(&values) {
                    known.insert((cell.cell.clone(), name), (mean, variance, values.len()));
                }
            }
        }
        Baselines { known, repetitions: counted }
    }

    fn get(&self, cell: &str, name: &'static str) -> Option<f64> {
        self.known.get(&(cell.to_string(), name)).map(|k| k.0.exp())
    }

    /// Repetitions behind a baseline.
    pub fn repetitions(&self, cell: &str) -> usize {
        self.repetitions.get(cell).copied().unwrap_or(0)
    }
}

fn plain(value: f64) -> Value {
    Value { value, leans_on: Vec::new(), resolution: 0.0 }
}

/// What the requests of a run say by themselves.
fn of_requests(latency: &Latency) -> impl Iterator<Item = (&'static str, Value)> + '_ {
    let of = |name| Some((name, Value { resolution: latency.resolution(name), ..plain(latency.get(name)?) }));
    latency::NAMES.into_iter().filter_map(of)
}

/// The p99 against that of the workload alone.
fn of_solo(values: &Values, solo: &str, baselines: &Baselines) -> Option<Value> {
    let (own, alone) = (values.get("latency_p99_s")?.value, baselines.get(solo, "latency_p99_s")?);
    Some(Value { leans_on: vec![((solo.to_string(), "latency_p99_s"), -1.0)], ..plain(own / alone) })
}

/// What needs no baseline.
fn absolute(r: &Repetition) -> Values {
    let mut values = Values::new();
    let cell = &r.record().cell;
    let mut put = |name, value: Option<f64>| {
        if let Some(v) = value {
            values.insert(name, plain(v));
        }
    };
    let sum = |of: fn(&super::MemberNumbers) -> Option<f64>| r.members.iter().map(of).sum::<Option<f64>>();
    // The mean over members of different workloads would mean nothing.
    let epochs = sum(|m| m.epoch_s).filter(|_| cell.is_uniform() && !r.members.is_empty());
    put("epoch_time_s", epochs.map(|s| s / r.members.len() as f64));
    put("overlap_ratio", r.overlap_ratio.filter(|_| r.members.len() > 1));
    put("start_skew_s", r.start_skew_s);
    put("makespan_s", r.makespan_s);
    put("memory_bytes", sum(|m| m.memory.map(|x| x.bytes)));
    put("cpu_ratio", sum(|m| m.cpu_ratio));
    put("items_per_s", sum(|m| m.items_per_s));
    put("sm_active_ratio", r.metrics.get("sm_active_ratio").copied());
    put("throttled_ratio", r.throttled_ratio);
    let device = &r.record().device;
    let held = sum(|m| m.memory.map(|x| x.bytes));
    put("memory_headroom_bytes", device.memory_bytes.zip(held).map(|(all, held)| all as f64 - held).filter(|free| *free > 0.0));
    let items_per_s = sum(|m| m.items_per_s).filter(|i| *i > 0.0);
    for (name, metric) in [("pcie_rx_bytes_per_item", "pcie_rx_bytes_per_s"), ("pcie_tx_bytes_per_item", "pcie_tx_bytes_per_s")] {
        put(name, r.metrics.get(metric).zip(items_per_s).map(|(bytes, items)| bytes / items));
    }
    if let (Some(energy), Some(epochs_per_s)) = (r.energy, r.epochs_per_s()) {
        let counted = |value: f64| Value { resolution: energy.quantisation(), ..plain(value) };
        values.insert("energy_j_per_epoch", counted(energy.power_w / epochs_per_s));
        if let Some(items) = items_per_s {
            values.insert("energy_j_per_item", counted(energy.power_w / items));
        }
        if let Some(above_w) = r.idle_w.map(|idle| energy.power_w - idle).filter(|w| *w > 0.0) {
            values.insert("energy_j_per_epoch_above_idle", counted(above_w / epochs_per_s));
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
    let solos = |name: &'static str| -> Option<Vec<f64>> { cell.members.iter().map(|m| baselines.get(&m.solo, name)).collect() };
    // How much each baseline weighs, from each member's share of the whole.
    let lean = |shares: &[f64], name: &'static str, sign: f64| {
        let whole: f64 = shares.iter().sum();
        let mut by_solo = BTreeMap::<&str, f64>::new();
        for (member, share) in cell.members.iter().zip(shares) {
            *by_solo.entry(&member.solo).or_default() += sign * share / whole;
        }
        by_solo.into_iter().map(|(solo, weight)| ((solo.to_string(), name), weight)).collect::<Vec<_>>()
    };
    if let (Some(e), Some(b)) = (&epochs, solos("epoch_time_s")) {
        let progress: Vec<f64> = b.iter().zip(e).map(|(b, e)| b / e).collect();
        let slowdowns: Vec<f64> = progress.iter().map(|p| 1.0 / p).collect();
        let n = e.len() as f64;
        let antt = Value { leans_on: lean(&slowdowns, "epoch_time_s", -1.0), ..plain(slowdowns.iter().sum::<f64>() / n) };
        let stp = Value { leans_on: lean(&progress, "epoch_time_s", 1.0), ..plain(progress.iter().sum()) };
        values.insert("slowdown", antt.clone());
        values.insert("antt", antt);
        values.insert("stp", stp);
    }
    if let Some((gain, _)) = gain(r, &epochs, &solos, &lean, &values) {
        values.insert("throughput_gain", gain);
    }
    if let (Some(sum), Some(alone)) = (values.get("memory_bytes").map(|v| v.value), solos("memory_bytes")) {
        let leans_on = lean(&alone, "memory_bytes", -1.0);
        values.insert("memory_of_solo", Value { leans_on, ..plain(sum / alone.iter().sum::<f64>()) });
    }
    if let Some(alone) = solos("sm_active_ratio") {
        let leans_on = lean(&alone, "sm_active_ratio", 1.0);
        values.insert("solo_sm_active_sum_ratio", Value { leans_on, ..plain(alone.iter().sum()) });
    }
    if let Some(q) = of_work_in_turn(r, &epochs, &solos, &lean, &values) {
        values.insert("energy_of_solo", q);
    }
    // Traffic per item is of the whole group: equal members alone need as much each.
    if let (Some(traffic), Some(alone), true) =
        (values.get("pcie_rx_bytes_per_item").map(|v| v.value), solos("pcie_rx_bytes_per_item"), cell.is_uniform())
    {
        let (leans_on, one) = (lean(&alone, "pcie_rx_bytes_per_item", -1.0), alone[0]);
        values.insert("pcie_rx_of_solo", Value { leans_on, ..plain(traffic / one) });
    }
    if let Some(q) = on_slice(r, &epochs, baselines) {
        values.insert("slowdown_on_slice", q);
    }
    if let Some(fairness) = fairness(cell, &epochs, solos("epoch_time_s")) {
        values.insert("fairness", fairness);
    }
    // Where requests were pooled, all who serve do so alike.
    let server = r.record().members.iter().find(|m| m.serving.is_some());
    if let Some(q) = server.and_then(|m| of_solo(&values, &m.spec.solo, baselines)) {
        values.insert("latency_p99_of_solo", q);
    }
    values
}

/// Joules of the group ÷ joules that its members need for the same work one after another, each alone on the whole card.
fn of_work_in_turn(r: &Repetition, epochs: &Option<Vec<f64>>, solos: Solos, lean: Lean, values: &Values) -> Option<Value> {
    let (e, alone_j) = (epochs.as_ref()?, solos("energy_j_per_epoch")?);
    let in_turn_w: Vec<f64> = alone_j.iter().zip(e).map(|(joules, seconds)| joules / seconds).collect();
    let per_epoch = values.get("energy_j_per_epoch")?;
    Some(Value {
        value: per_epoch.value * r.epochs_per_s()? / in_turn_w.iter().sum::<f64>(),
        leans_on: lean(&in_turn_w, "energy_j_per_epoch", -1.0),
        resolution: per_epoch.resolution,
    })
}

/// Mean slowdown against the same workloads alone on slices of the same size: what is left of a slowdown when the slice is taken out of it.
fn on_slice(r: &Repetition, epochs: &Option<Vec<f64>>, baselines: &Baselines) -> Option<Value> {
    let (e, labels) = (epochs.as_ref()?, &r.record().cell.alone_on_slice);
    if labels.is_empty() || labels.len() != e.len() {
        return None;
    }
    let slowdowns: Vec<f64> =
        labels.iter().zip(e).map(|(label, e)| Some(e / baselines.get(label, "epoch_time_s")?)).collect::<Option<_>>()?;
    let whole: f64 = slowdowns.iter().sum();
    let leans_on = labels.iter().zip(&slowdowns).map(|(label, s)| ((label.clone(), "epoch_time_s"), -s / whole)).collect();
    Some(Value { leans_on, ..plain(whole / e.len() as f64) })
}

type Solos<'a> = &'a dyn Fn(&'static str) -> Option<Vec<f64>>;
type Lean<'a> = &'a dyn Fn(&[f64], &'static str, f64) -> Vec<(Source, f64)>;

/// How the throughput gain of a cell is defined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GainBy {
    /// Uniform members with full company: Σ solo epoch times ÷ mean epoch time.
    EpochTime,
    /// Members leave when they are done: Σ solo makespans ÷ makespan.
    Makespan,
    /// Different members with full company: Σ solo ÷ actual, which is STP.
    Progress,
}

impl GainBy {
    /// The definition that fits a cell.
    pub fn of(cell: &CellRecord) -> Self {
        match (cell.tail, cell.is_uniform()) {
            (Tail::Release, _) => GainBy::Makespan,
            (_, true) => GainBy::EpochTime,
            (_, false) => GainBy::Progress,
        }
    }

    /// For JSON.
    pub fn word(self) -> &'static str {
        match self {
            GainBy::EpochTime => "epoch_time",
            GainBy::Makespan => "makespan",
            GainBy::Progress => "progress",
        }
    }
}

fn gain(r: &Repetition, epochs: &Option<Vec<f64>>, solos: Solos, lean: Lean, values: &Values) -> Option<(Value, GainBy)> {
    let by = GainBy::of(&r.record().cell);
    let value = match by {
        GainBy::Makespan => {
            let serial = solos("makespan_s")?;
            Value { leans_on: lean(&serial, "makespan_s", 1.0), ..plain(serial.iter().sum::<f64>() / r.makespan_s?) }
        }
        GainBy::EpochTime => {
            let (e, b) = (epochs.as_ref()?, solos("epoch_time_s")?);
            let mean = e.iter().sum::<f64>() / e.len() as f64;
            Value { leans_on: lean(&b, "epoch_time_s", 1.0), ..plain(b.iter().sum::<f64>() / mean) }
        }
        GainBy::Progress => values.get("stp")?.clone(),
    };
    Some((value, by))
}

/// Least over largest normalised progress. Equal members need no baseline: it cancels.
fn fairness(cell: &CellRecord, epochs: &Option<Vec<f64>>, solos: Option<Vec<f64>>) -> Option<Value> {
    let epochs = epochs.as_ref().filter(|e| e.len() > 1)?;
    let alone = if cell.is_uniform() { vec![1.0; epochs.len()] } else { solos? };
    let progress: Vec<f64> = alone.iter().zip(epochs).map(|(b, e)| b / e).collect();
    let least = (0..progress.len()).min_by(|&a, &b| progress[a].total_cmp(&progress[b]))?;
    let most = (0..progress.len()).max_by(|&a, &b| progress[a].total_cmp(&progress[b]))?;
    let (slow, fast) = (&cell.members[least].solo, &cell.members[most].solo);
    let leans_on = if slow == fast {
        Vec::new()
    } else {
        vec![((slow.clone(), "epoch_time_s"), 1.0), ((fast.clone(), "epoch_time_s"), -1.0)]
    };
    Some(Value { leans_on, ..plain(progress[least] / progress[most]) })
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
    put("epoch_time_s", member.epoch_s);
    put("memory_bytes", member.memory.map(|m| m.bytes));
    put("cpu_ratio", member.cpu_ratio);
    put("items_per_s", member.items_per_s);
    put("read_bytes_per_s", member.read_bytes_per_s);
    put("involuntary_switches_per_s", member.involuntary_switches_per_s);
    let serving = r.record().members.get(index).and_then(|m| m.serving.as_ref());
    put("capacity_per_s", serving.and_then(|s| s.capacity_per_s));
    values.extend(member.latency.iter().flat_map(of_requests));
    if let Some(q) = of_solo(&values, &spec.solo, baselines) {
        values.insert("latency_p99_of_solo", q);
    }
    if let (Some(e), Some(b)) = (member.epoch_s, baselines.get(&spec.solo, "epoch_time_s")) {
        let leans_on = vec![((spec.solo.clone(), "epoch_time_s"), -1.0)];
        values.insert("slowdown", Value { leans_on, ..plain(e / b) });
    }
    values
}
