//! The quantity compared. In: the request, and both sides. Out: its name for each pair, its printed unit, and which direction is
//! better.

use collo_guidelines::report_json::CellJson;
use collo_quantity::{Better, Key, Trait, key};
use collo_store::AfterMeasured;

use super::ComparedReport;
use super::matching::Pair;
use crate::{Error, Result};

/// What is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuantityChoice {
    /// The epoch time; the makespan if members exit when finished, or differ; the p99 if one serves.
    Time,
    /// Between different GPU models: the gain over each one's own baseline; the p99 relative to that alone if one serves.
    Across,
    /// One quantity by its name in JSON.
    Named(String),
}

/// The replacement for an epoch time or a makespan, between different GPU models.
pub const ACROSS: Key = Key::ThroughputGain;

impl QuantityChoice {
    /// The requested quantity, if both sides have it and it can be compared.
    pub fn of(
        left: &ComparedReport,
        right: &ComparedReport,
        name: Option<&str>,
        different_devices: bool,
    ) -> Result<QuantityChoice> {
        let Some(name) = name else {
            return Ok(if different_devices { QuantityChoice::Across } else { QuantityChoice::Time });
        };
        if different_devices && key::is_absolute(name) {
            let (left, right) = (left.device_said(), right.device_said());
            return Err(Error::AcrossDevices { quantity: name.into(), left, right });
        }
        // Of traces alone; no cell has it.
        if of_traces(name).is_some() && !left.traces.is_empty() && !right.traces.is_empty() {
            return Ok(QuantityChoice::Named(name.into()));
        }
        let has = |side: &ComparedReport| side.cells.iter().any(|c| c.get(name).is_some());
        if has(left) || has(right) {
            return Ok(QuantityChoice::Named(name.into()));
        }
        let mut names: Vec<&str> = left.cells.iter().chain(&right.cells).take(64).flat_map(|c| c.names()).collect();
        if !left.traces.is_empty() && !right.traces.is_empty() {
            names.extend(Key::of_traces().map(|key| key.name));
        }
        names.sort_unstable();
        names.dedup();
        Err(Error::NoQuantity { asked: name.into(), known: names.into_iter().map(str::to_string).collect() })
    }

    /// The quantity by which a pair is compared.
    pub fn of_pair(&self, pair: &Pair<'_>) -> String {
        match self {
            QuantityChoice::Named(name) => name.clone(),
            QuantityChoice::Across if pair.left.serves() || pair.right.serves() => Key::LatencyP99OfSolo.name.into(),
            QuantityChoice::Across => ACROSS.name.into(),
            QuantityChoice::Time => {
                let exits = [&pair.left, &pair.right].iter().any(|c| c.after_measured == AfterMeasured::Exit);
                let uniform = pair.right.members.windows(2).all(|w| w[0].is_like(&w[1]));
                if pair.left.serves() || pair.right.serves() {
                    return Key::LatencyP99.name.into();
                }
                let usual = if exits || !uniform { Key::Makespan } else { Key::EpochTime };
                // Runs that are measured for a time have no makespan: then the other time, if both sides have it.
                let has = |key: &Key| pair.left.get(key.name).is_some() && pair.right.get(key.name).is_some();
                [usual, Key::EpochTime, Key::Makespan].into_iter().find(has).unwrap_or(usual).name.into()
            }
        }
    }

    /// True for quantities that a baseline has as 1 because it is compared with itself, or lacks because it is alone.
    pub fn is_by_definition(&self, pair: &Pair<'_>) -> bool {
        if *self == QuantityChoice::Time {
            return false;
        }
        let name = self.of_pair(pair);
        let one = |cell: &CellJson| cell.is_solo() && cell.get(&name).is_none_or(|q| q.estimate == 1.0 && q.df.is_none());
        Key::find(&name).is_some_and(|q| q.has(Trait::OneAlone) || q.has(Trait::Company)) && one(pair.left) && one(pair.right)
    }

    /// Which way is better.
    pub fn better(&self, name: &str) -> Better {
        Key::find(name).map_or(Better::Neither, |q| q.better)
    }

    /// The quantity in words: `throughput gain`.
    pub fn to_text(&self) -> &str {
        match self {
            QuantityChoice::Time => "time",
            QuantityChoice::Across => ACROSS.label,
            QuantityChoice::Named(name) => Key::find(name).map_or(name, |q| q.label),
        }
    }
}

/// The quantity of traces of this name.
pub fn of_traces(name: &str) -> Option<Key> {
    Key::of_traces().find(|key| key.name == name)
}
