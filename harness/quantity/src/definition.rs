//! What is known of a quantity, besides its numbers: its name, its words, its unit, which direction is better, who has it, why it may
//! be absent. Read by everything that computes, prints, exports or compares.

use crate::unit::Unit;

/// One quantity, as [`crate::Key`] names it.
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
    /// Its unit is that of shares, and yet it can exceed 1.
    MayExceedOne,
    /// It comes from time series of samples, and is absent without sampling. All metrics of the GPU do; they do not list it.
    Sampled,
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
