//! What a cell's repetitions add up to. In: repetitions and baselines. Out: each quantity per repetition, with how much it leans on
//! each baseline; then estimates with intervals. The definitions, with their sources, are in `docs/guide/metrics.md`.

use std::collections::BTreeMap;

use collo_store::CellRecord;

use super::repetition::Repetition;
use crate::stats::{self, Pool, Quantity, Term, Variance};

/// Quantities of a cell, in the order in which JSON lists them.
pub const CELL: [&str; 14] = [
    "epoch_time_s",
    "slowdown",
    "throughput_gain",
    "stp",
    "antt",
    "fairness",
    "overlap_ratio",
    "start_skew_s",
    "makespan_s",
    "memory_bytes",
    "memory_of_solo",
    "cpu_ratio",
    "items_per_s",
    "energy_j_per_epoch",
];

/// Quantities of one member.
pub const MEMBER: [&str; 7] =
    ["epoch_time_s", "slowdown", "memory_bytes", "cpu_ratio", "items_per_s", "read_bytes_per_s", "involuntary_switches_per_s"];

/// A quantity of one repetition: its value with the baselines at their estimates, and the change of its logarithm with the
/// logarithm of each baseline's epoch time (or makespan, or footprint).
#[derive(Debug, Clone)]
pub struct Value {
    pub value: f64,
    pub leans_on: Vec<(Source, f64)>,
}

/// A baseline's own quantity: cell label and name.
pub type Source = (String, &'static str);

/// The quantities of one repetition.
pub type Values = BTreeMap<&'static str, Value>;

/// A solo cell's logarithmic means, which others are held against.
#[derive(Debug, Clone, Default)]
pub struct Baselines {
    /// Mean logarithm and variance over so many repetitions, by cell and quantity.
    known: BTreeMap<Source, (f64, Option<Variance>, usize)>,
}

impl Baselines {
    /// From the counting repetitions of each solo cell.
    pub fn of<'a>(solos: impl Iterator<Item = (&'a CellRecord, Vec<&'a Repetition>)>) -> Self {
        let mut known = BTreeMap::new();
        for (cell, repetitions) in solos {
            let own: Vec<Values> = repetitions.iter().map(|r| absolute(r)).collect();
            for name in ["epoch_time_s", "makespan_s", "memory_bytes"] {
                let values: Vec<f64> = own.iter().filter_map(|v| v.get(name).map(|x| x.value)).collect();
                if let Some((mean, variance)) = stats::log_moments(&values) {
                    known.insert((cell.cell.clone(), name), (mean, variance, values.len()));
                }
            }
        }
        Baselines { known }
    }

    fn get(&self, cell: &str, name: &'static str) -> Option<f64> {
        self.known.get(&(cell.to_string(), name)).map(|k| k.0.exp())
    }

    /// Repetitions behind a baseline.
    pub fn repetitions(&self, cell: &str) -> usize {
        self.known.get(&(cell.to_string(), "epoch_time_s")).map_or(0, |k| k.2)
    }
}

fn plain(value: f64) -> Value {
    Value { value, leans_on: Vec::new() }
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
    put("energy_j_per_epoch", r.energy_j_per_epoch);
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
        let antt = Value { value: slowdowns.iter().sum::<f64>() / n, leans_on: lean(&slowdowns, "epoch_time_s", -1.0) };
        let stp = Value { value: progress.iter().sum(), leans_on: lean(&progress, "epoch_time_s", 1.0) };
        values.insert("slowdown", antt.clone());
        values.insert("antt", antt);
        values.insert("stp", stp);
    }
    if let Some((gain, _)) = gain(r, &epochs, &solos, &lean, &values) {
        values.insert("throughput_gain", gain);
    }
    if let (Some(sum), Some(alone)) = (values.get("memory_bytes").map(|v| v.value), solos("memory_bytes")) {
        let leans_on = lean(&alone, "memory_bytes", -1.0);
        values.insert("memory_of_solo", Value { value: sum / alone.iter().sum::<f64>(), leans_on });
    }
    if let Some(fairness) = fairness(cell, &epochs, solos("epoch_time_s")) {
        values.insert("fairness", fairness);
    }
    values
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
        match (cell.tail.as_str(), cell.is_uniform()) {
            ("release", _) => GainBy::Makespan,
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
            Value { value: serial.iter().sum::<f64>() / r.makespan_s?, leans_on: lean(&serial, "makespan_s", 1.0) }
        }
        GainBy::EpochTime => {
            let (e, b) = (epochs.as_ref()?, solos("epoch_time_s")?);
            let mean = e.iter().sum::<f64>() / e.len() as f64;
            Value { value: b.iter().sum::<f64>() / mean, leans_on: lean(&b, "epoch_time_s", 1.0) }
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
    Some(Value { value: progress[least] / progress[most], leans_on })
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
    if let (Some(e), Some(b)) = (member.epoch_s, baselines.get(&spec.solo, "epoch_time_s")) {
        let leans_on = vec![((spec.solo.clone(), "epoch_time_s"), -1.0)];
        values.insert("slowdown", Value { value: e / b, leans_on });
    }
    values
}

/// The pools of every quantity: cells (or members) of a campaign lend each other their variance.
#[derive(Debug, Default)]
pub struct Pools {
    known: BTreeMap<&'static str, Pool>,
}

impl Pools {
    /// Fit one pool per quantity from groups of repetitions.
    pub fn fit<'a>(groups: impl Iterator<Item = &'a [Values]>, names: &[&'static str]) -> Self {
        let mut variances = BTreeMap::<&'static str, Vec<Variance>>::new();
        for group in groups {
            for name in names {
                let values: Vec<f64> = group.iter().filter_map(|v| v.get(name).map(|x| x.value)).collect();
                if let Some((_, Some(variance))) = stats::log_moments(&values) {
                    variances.entry(name).or_default().push(variance);
                }
            }
        }
        Pools { known: variances.into_iter().filter_map(|(name, v)| Some((name, Pool::fit(&v)?))).collect() }
    }

    /// The method behind a quantity's interval.
    pub fn method(&self, name: &str) -> Option<&'static str> {
        self.known.get(name).map(Pool::name)
    }

    /// A quantity over repetitions.
    pub fn quantity(&self, name: &str, group: &[Values], baselines: &Baselines, baseline_pools: &Pools) -> Option<Quantity> {
        let values: Vec<&Value> = group.iter().filter_map(|v| v.get(name)).collect();
        let plain: Vec<f64> = values.iter().map(|v| v.value).collect();
        let Some((mean, own)) = stats::log_moments(&plain) else {
            // Zeros have no logarithm: their mean is still a reading, without an interval.
            let finite = !plain.is_empty() && plain.iter().all(|v| v.is_finite() && *v >= 0.0);
            let estimate = plain.iter().sum::<f64>() / plain.len() as f64;
            return finite.then_some(Quantity { estimate, low: None, high: None, n: plain.len(), df: None });
        };
        let n = plain.len();
        let Some(own) = own else { return Some(stats::quantity(mean, n, &[])) };
        let shrunk = self.known.get(name).map_or(own, |p| p.shrink(own));
        let mut terms = vec![Term { weight: 1.0, variance: shrunk, n }];
        let mut leans = BTreeMap::<&Source, f64>::new();
        for (source, weight) in values.iter().flat_map(|v| &v.leans_on) {
            *leans.entry(source).or_default() += weight / n as f64;
        }
        for (source, weight) in leans {
            let (_, variance, n) = baselines.known.get(source)?;
            let variance = match (variance, baseline_pools.known.get(source.1)) {
                (Some(v), Some(pool)) => pool.shrink(*v),
                (Some(v), None) => *v,
                // One repetition of a baseline: the term's n of 1 already forbids an interval.
                (None, _) => Variance { s2: 0.0, df: f64::INFINITY },
            };
            terms.push(Term { weight, variance, n: *n });
        }
        Some(stats::quantity(mean, n, &terms))
    }
}
