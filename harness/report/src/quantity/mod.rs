//! What there is to know of each quantity that is measured: its name, its words, its unit, which way is better, who has it, why it may be
//! absent. One table, [`table`], that everything which computes, prints, exports or compares reads. It holds no numbers.

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
    /// Over a column, where the text around it says what it is about; the label where it is empty.
    pub short: &'static str,
    pub unit: Unit,
    pub better: Better,
    pub subject: Subject,
    pub traits: &'static [Trait],
    /// Why a cell that was measured lacks it, where nothing that its traits tell is the cause.
    pub absent: &'static str,
    /// How it is computed, and where that comes from: a row of `docs/guide/metrics.md`.
    pub definition: &'static str,
    pub source: &'static str,
}

/// Which way a quantity is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    Larger,
    Smaller,
    /// A change is told, and judged by nobody.
    Neither,
}

/// What a quantity is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// A cell or a member that trains.
    Training,
    /// The requests to members that serve.
    Requests,
    /// The card: a metric that its samples add up to. Metrics that no definition knows are shown by their name.
    Card,
}

/// What holds of some quantities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trait {
    /// A cell has it, a member has it.
    Cell,
    Member,
    /// Others are computed from what a solo cell has of it.
    Baseline,
    /// It is computed from baselines, and absent without them.
    NeedsBaseline,
    /// A workload alone has it as 1, whatever was measured.
    OneAlone,
    /// It takes company: a workload alone has none of it.
    Company,
    /// Members of different workloads have it one by one, and their cell does not.
    Uniform,
    /// It is told by epochs, and means nothing where a member has none because it serves.
    PerEpoch,
    /// It grows with the length of an epoch.
    EpochLength,
    /// A time, an energy or a rate that means nothing beside that of another card.
    OneCard,
    /// A time, or a rate of work: what a slower machine makes worse.
    Speed,
    /// It cannot exceed 1, nor can its interval.
    AtMostOne,
    /// Nobody misses it: it is absent with another, or on every CPU.
    Unmissed,
}

impl Definition {
    /// Its word over a column.
    pub fn head(&self) -> &'static str {
        if self.short.is_empty() { self.label } else { self.short }
    }

    pub fn has(&self, what: Trait) -> bool {
        self.traits.contains(&what)
    }

    /// Its name without the unit, which does not end every name: `epoch_time`, `energy_above_idle`.
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
    /// Those that share their variance between cells or members. Quantities of requests do not: how much a latency scatters depends on
    /// how near to its capacity a server is, so one cell's says nothing of another's.
    pub fn is_pooled(self) -> bool {
        self.subject != Subject::Requests
    }
}

/// Quantities with a trait, in the order of the table, which is that of `report.json`.
pub fn all(what: Trait) -> impl Iterator<Item = Key> {
    Key::ALL.iter().copied().filter(move |key| key.has(what))
}

/// Of requests, in the same order, those that a cell has.
pub fn of_requests() -> impl Iterator<Item = Key> {
    all(Trait::Cell).filter(|key| key.subject == Subject::Requests)
}

/// The quantity of a name.
pub fn find(name: &str) -> Option<Key> {
    Key::ALL.iter().copied().find(|key| key.name == name)
}
