//! All properties of each measured quantity: its name, its words, its unit, which direction is better, who has it, why it may be
//! absent. One table, [`table`], read by everything that computes, prints, exports or compares. It has no numbers.

#[cfg(test)]
mod guide;
mod table;
pub mod unit;

use std::cmp::Ordering;
use std::fmt;
use std::ops::Deref;

pub use table::Key;
use unit::Unit;

/// One quantity, as [`Key`] names it.
#[derive(Debug)]
pub struct Definition {
    /// In `report.json`, in tables, and after `--quantity`.
    pub name: &'static str,
    /// In running text.
    pub label: &'static str,
    /// Over a column, if the context names the subject; if empty, the label.
    pub short: &'static str,
    pub unit: Unit,
    pub better: Better,
    pub subject: Subject,
    pub traits: &'static [Trait],
    /// Why a measured cell lacks it, unless one of its traits is the cause.
    pub absent: &'static str,
    /// How it is computed, and the source: a row of `docs/guide/metrics.md`.
    pub definition: &'static str,
    pub source: &'static str,
}

/// Which direction of a quantity is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    Larger,
    Smaller,
    /// A change is reported, but not judged.
    Neither,
}

/// The subject of a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// A cell or a member that trains.
    Training,
    /// The requests to serving members.
    Requests,
    /// The GPU: a metric from its samples. Metrics without a definition are shown by their name.
    Card,
    /// A run of a trace; of a policy the mean over its orders.
    Trace,
}

/// Properties of some quantities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trait {
    /// A cell has it, a member has it.
    Cell,
    Member,
    /// Others are computed from a solo cell's value of it.
    Baseline,
    /// It is computed from baselines, and absent without them.
    NeedsBaseline,
    /// By definition 1 for a workload alone.
    OneAlone,
    /// It requires several members: a workload alone has none of it.
    Company,
    /// Members of different workloads have it individually, and their cell does not.
    Uniform,
    /// It is based on epochs, and meaningless for a member that has none because it serves.
    PerEpoch,
    /// It grows with the length of an epoch.
    EpochLength,
    /// A time, an energy or a rate that cannot be compared with that of another GPU model.
    OneCard,
    /// A time, or a rate of work: worse on a slower machine.
    Speed,
    /// It cannot exceed 1, nor can its interval.
    AtMostOne,
    /// Its absence is not reported: it is absent together with another, or on every CPU.
    Unmissed,
}

impl Definition {
    /// Its text over a column.
    pub fn head(&self) -> &'static str {
        if self.short.is_empty() { self.label } else { self.short }
    }

    pub fn has(&self, what: Trait) -> bool {
        self.traits.contains(&what)
    }

    /// Its name without the unit, which not every name ends with: `epoch_time`, `energy_above_idle`.
    pub fn stem(&self) -> String {
        let unit = self.unit.suffix;
        self.name.strip_suffix(unit).map_or_else(|| self.name.replacen(unit, "", 1), str::to_string)
    }
}

impl Deref for Key {
    type Target = Definition;

    fn deref(&self) -> &Definition {
        self.definition()
    }
}

/// Its name in `report.json`.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name)
    }
}

impl serde::Serialize for Key {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name)
    }
}

/// By name, which is how `report.json` lists reasons.
impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        self.name.cmp(other.name)
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Key {
    /// Those that share their variance between cells or members. Quantities of requests do not: how much a latency scatters
    /// depends on how near to its capacity a server is, so one cell's says nothing about another's.
    pub fn is_pooled(self) -> bool {
        self.subject != Subject::Requests
    }
}

/// Quantities with a trait, in the order of the table, which is that of `report.json`.
pub fn all(what: Trait) -> impl Iterator<Item = Key> {
    Key::ALL.iter().copied().filter(move |key| key.has(what))
}

/// Quantities of requests, in the same order, those that a cell has.
pub fn of_requests() -> impl Iterator<Item = Key> {
    all(Trait::Cell).filter(|key| key.subject == Subject::Requests)
}

/// Quantities of traces, in the same order.
pub fn of_traces() -> impl Iterator<Item = Key> {
    Key::ALL.iter().copied().filter(|key| key.subject == Subject::Trace)
}

impl Key {
    /// True for shares of a whole, which no interval leaves.
    pub fn is_at_most_one(self) -> bool {
        let may_exceed = [Key::SoloSmActiveSum, Key::SmClockDrift];
        self.has(Trait::AtMostOne) || (self.unit == unit::SHARE && !may_exceed.contains(&self))
    }
}

/// True for metrics that are shares of a whole, those without a definition included: `io_pressure_some_ratio`.
pub fn is_share(metric: &str) -> bool {
    find(metric).map_or(metric.ends_with("_ratio"), Key::is_at_most_one)
}

/// The quantity of a name.
pub fn find(name: &str) -> Option<Key> {
    Key::ALL.iter().copied().find(|key| key.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_a_whole_are_known_with_and_without_a_definition() {
        let shares = ["io_pressure_some_ratio", "sm_active_ratio", "sm_active_p95_ratio", "fairness", "site_memory_ratio"];
        assert!(shares.into_iter().all(is_share));
        let others = ["cpu_ratio", "sm_clock_drift_ratio", "solo_sm_active_sum_ratio", "slowdown", "power_w", "load"];
        assert!(!others.into_iter().any(is_share));
    }
}
