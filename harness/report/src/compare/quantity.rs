//! Which number of a cell is compared. In: what was asked for, and both sides. Out: its name for each pair, in which unit it is
//! printed, and which way is better.

use super::Side;
use super::matching::Pair;
use crate::quantity::{Better, Key, Trait, find};
use crate::{Error, Result};

/// What is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// The epoch time; the makespan where members leave when they are done, or differ; the p99 where one serves.
    Time,
    /// Between different cards: what each gains over its own baseline; the p99 against that alone where one serves.
    Across,
    /// One quantity by its name in JSON.
    Named(String),
}

/// What an epoch or a makespan is, between different cards.
pub const ACROSS: Key = Key::ThroughputGain;

impl Asked {
    /// What was asked for, if both sides have it and may be compared by it.
    pub fn of(left: &Side, right: &Side, name: Option<&str>, different_devices: bool) -> Result<Asked> {
        let Some(name) = name else {
            return Ok(if different_devices { Asked::Across } else { Asked::Time });
        };
        if different_devices && is_absolute(name) {
            let (left, right) = (left.device_said(), right.device_said());
            return Err(Error::AcrossDevices { quantity: name.into(), left, right });
        }
        let has = |side: &Side| side.cells.iter().any(|c| c.get(name).is_some());
        if has(left) || has(right) {
            return Ok(Asked::Named(name.into()));
        }
        let mut names: Vec<&str> = left.cells.iter().chain(&right.cells).take(64).flat_map(|c| c.names()).collect();
        names.sort_unstable();
        names.dedup();
        Err(Error::NoQuantity { asked: name.into(), known: names.into_iter().map(str::to_string).collect() })
    }

    /// The quantity by which a pair is compared.
    pub fn of_pair(&self, pair: &Pair<'_>) -> String {
        match self {
            Asked::Named(name) => name.clone(),
            Asked::Across if pair.left.serves() || pair.right.serves() => Key::LatencyP99OfSolo.name.into(),
            Asked::Across => ACROSS.name.into(),
            Asked::Time => {
                let release = pair.right.tail == "release" || pair.left.tail == "release";
                let uniform = pair.right.members.windows(2).all(|w| w[0].is_like(&w[1]));
                if pair.left.serves() || pair.right.serves() {
                    return Key::LatencyP99.name.into();
                }
                if release || !uniform { Key::Makespan.name.into() } else { Key::EpochTime.name.into() }
            }
        }
    }

    /// True for what a baseline has as 1 because it is held against itself, or has not because nobody is beside it.
    pub fn is_by_definition(&self, pair: &Pair<'_>) -> bool {
        if *self == Asked::Time {
            return false;
        }
        let name = self.of_pair(pair);
        let one = |cell: &super::Cell| cell.is_solo() && cell.get(&name).is_none_or(|q| q.estimate == 1.0 && q.df.is_none());
        find(&name).is_some_and(|q| q.has(Trait::OneAlone) || q.has(Trait::Company)) && one(pair.left) && one(pair.right)
    }

    /// Which way is better.
    pub fn better(&self, name: &str) -> Better {
        find(name).map_or(Better::Neither, |q| q.better)
    }

    /// What is compared, in words: `throughput gain`.
    pub fn said(&self) -> &str {
        match self {
            Asked::Time => "time",
            Asked::Across => ACROSS.label,
            Asked::Named(name) => find(name).map_or(name, |q| q.label),
        }
    }
}

/// What stands over a quantity's column, its unit and the factor to it. A metric without a definition is printed as it is.
pub fn unit(name: &str) -> (&str, &'static str, f64) {
    find(name).map_or((name, "", 1.0), |q| (q.head(), q.unit.symbol, q.unit.factor))
}

/// True for what means nothing between different cards: times, energies, rates.
pub fn is_absolute(name: &str) -> bool {
    has(name, Trait::OneCard)
}

/// True where a quantity of this name has the trait.
pub fn has(name: &str, what: Trait) -> bool {
    find(name).is_some_and(|q| q.has(what))
}
