//! Questions to the table: which quantities have a trait, and the one of a name. A key has the fields of its definition.

use std::cmp::Ordering;
use std::fmt;
use std::ops::Deref;

use crate::definition::{Definition, Subject, Trait};
use crate::table::Key;
use crate::unit;

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

impl<'de> serde::Deserialize<'de> for Key {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Key, D::Error> {
        let name = <std::borrow::Cow<'de, str>>::deserialize(from)?;
        Key::find(&name).ok_or_else(|| serde::de::Error::custom(format!("no quantity is called `{name}`")))
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
    /// Quantities with a trait, in the order of the table, which is that of `report.json`.
    pub fn with(what: Trait) -> impl Iterator<Item = Key> {
        Key::ALL.iter().copied().filter(move |key| key.has(what))
    }

    /// Quantities of requests, in the same order, those that a cell has.
    pub fn of_requests() -> impl Iterator<Item = Key> {
        Key::with(Trait::Cell).filter(|key| key.subject == Subject::Requests)
    }

    /// Quantities of traces, in the same order.
    pub fn of_traces() -> impl Iterator<Item = Key> {
        Key::ALL.iter().copied().filter(|key| key.subject == Subject::Trace)
    }

    /// Whether a cell has it, or its device: what an experiment may name.
    pub const fn is_of_a_cell(self) -> bool {
        let definition = self.definition();
        let mut at = 0;
        while at < definition.traits.len() {
            if matches!(definition.traits[at], Trait::Cell) {
                return true;
            }
            at += 1;
        }
        matches!(definition.subject, Subject::Card)
    }

    /// The quantity of a name.
    pub fn find(name: &str) -> Option<Key> {
        Key::ALL.iter().copied().find(|key| key.name == name)
    }

    /// Those that share their variance between cells or members. Quantities of requests do not: how much a latency scatters
    /// depends on how near to its capacity a server is, so one cell's says nothing about another's.
    pub fn is_pooled(self) -> bool {
        self.subject != Subject::Requests
    }

    /// True for shares of a whole, which no interval leaves.
    pub fn is_at_most_one(self) -> bool {
        self.has(Trait::AtMostOne) || (self.unit == unit::SHARE && !self.has(Trait::MayExceedOne))
    }
}

const CELL_QUANTITIES: usize = {
    let (mut at, mut count) = (0, 0);
    while at < Key::ALL.len() {
        count += Key::ALL[at].is_of_a_cell() as usize;
        at += 1;
    }
    count
};

/// The names of the quantities of a cell and of its device, in the order of the table.
pub const NAMES_OF_CELLS: [&str; CELL_QUANTITIES] = {
    let mut names = [""; CELL_QUANTITIES];
    let (mut at, mut next) = (0, 0);
    while at < Key::ALL.len() {
        if Key::ALL[at].is_of_a_cell() {
            names[next] = Key::ALL[at].definition().name;
            next += 1;
        }
        at += 1;
    }
    names
};

/// True for metrics that are shares of a whole, those without a definition included: `io_pressure_some_ratio`.
pub fn is_share(metric: &str) -> bool {
    Key::find(metric).map_or(metric.ends_with("_ratio"), Key::is_at_most_one)
}

/// The head of a quantity's column, its unit and the factor to it. A metric without a definition is printed as it is.
pub fn column(name: &str) -> (&str, &'static str, f64) {
    Key::find(name).map_or((name, "", 1.0), |q| (q.head(), q.unit.symbol, q.unit.factor))
}

/// True for quantities that are meaningless between different GPU models: times, energies, rates.
pub fn is_absolute(name: &str) -> bool {
    has(name, Trait::OneCard)
}

/// True where a quantity of this name has the trait.
pub fn has(name: &str, what: Trait) -> bool {
    Key::find(name).is_some_and(|q| q.has(what))
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
