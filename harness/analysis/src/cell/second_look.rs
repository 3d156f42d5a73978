//! Numbers once more without the runs that are far from the others of their cell. In: cells with their repetitions. Out: which runs
//! are far, and for each cell that they touch its main quantities without them. The runs stay in all other numbers: nothing shows that
//! they are wrong. Their scatter stays in their own cells, and widens no interval of the others.

use std::collections::{BTreeMap, BTreeSet};

use collo_quantity::stats::{Quantity, outliers};
use collo_quantity::{Key, number};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::Cell;
use super::quantities::Values;
use crate::cell::quantities::GainBy;
use crate::reading::repetition::Repetition;

/// A smaller deviation is never worth reporting.
const LEAST: f64 = 0.01;

/// The quantities that are given twice.
pub const TWICE: [Key; 4] = [Key::ThroughputGain, Key::Slowdown, Key::EpochTime, Key::Makespan];

/// A run far from the others of its cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub struct FarRun {
    pub cell: String,
    pub repetition: u32,
    #[serde(skip)]
    pub device: usize,
    /// Its time ÷ the mean of the others, less 1.
    pub deviation_ratio: f64,
}

/// A cell's main quantities without the far runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub struct SecondLook {
    /// Runs that were left out: of the cell, or of a baseline that it is compared with.
    pub left_out: Vec<FarRun>,
    /// Those that differ, each with those runs, and without them; by name and without them in `report.json`, which has the same names
    /// beside `second_look` with all runs.
    #[serde(serialize_with = "without", deserialize_with = "only_without")]
    #[schemars(with = "BTreeMap<String, Option<Quantity>>")]
    pub quantities: Vec<(Key, Quantity, Quantity)>,
}

fn without<S: Serializer>(quantities: &[(Key, Quantity, Quantity)], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(quantities.iter().map(|(key, _, without)| (key, without)))
}

/// A report has them without those runs; with them they are beside, among the quantities of the cell, whose reader fills them in.
fn only_without<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(Key, Quantity, Quantity)>, D::Error> {
    let all = Map::<String, Value>::deserialize(from)?;
    let read = |(name, q): (String, Value)| {
        let q: Quantity = serde_json::from_value(q).ok()?;
        Some((Key::find(&name)?, q.clone(), q))
    };
    Ok(all.into_iter().filter_map(read).collect())
}

/// The time by which repetitions of a cell are compared. Members that exit when finished train their last epochs in less company:
/// which of them count for the epoch time differs between repetitions, so only the makespan compares like with like.
fn compared_s(by: GainBy, training_s: Option<f64>, makespan_s: Option<f64>) -> Option<f64> {
    match by {
        GainBy::Makespan => makespan_s,
        GainBy::EpochTime | GainBy::Progress => training_s.or(makespan_s),
    }
}

/// The far runs of a campaign. Devices of several are as different as they are: a run is compared with those of its own.
pub fn far_runs(cells: &[Cell]) -> Vec<FarRun> {
    let mut runs: Vec<Vec<(&Cell, &Repetition)>> = Vec::new();
    let mut logs: Vec<Vec<f64>> = Vec::new();
    for cell in cells {
        let by = GainBy::of(&cell.record);
        let devices: BTreeSet<usize> = cell.counted().map(|r| r.device).collect();
        for device in devices {
            let time = |r: &Repetition| compared_s(by, r.training_s(), r.makespan_s).map(f64::ln).filter(|log| log.is_finite());
            let own = cell.counted().filter(|r| r.device == device).filter_map(|r| Some(((cell, r), time(r)?)));
            let (own, times) = own.unzip();
            runs.push(own);
            logs.push(times);
        }
    }
    let far = outliers(&logs).into_iter().filter(|o| o.distance.exp_m1().abs() > LEAST);
    far.map(|o| {
        let (cell, run) = runs[o.group][o.index];
        FarRun {
            cell: cell.name().into(),
            repetition: run.record().repetition,
            device: run.device,
            deviation_ratio: o.distance.exp_m1(),
        }
    })
    .collect()
}

impl FarRun {
    /// True for this run.
    pub fn is(&self, cell: &Cell, run: &Repetition) -> bool {
        self.repetition == run.record().repetition && self.device == run.device && self.cell == cell.name()
    }
}

/// Whether a quantity's values differ without the far runs: one of them is left out, or was compared with one.
pub fn differs(key: Key, with: &[Values], without: &[Values]) -> bool {
    let of = |group: &[Values]| group.iter().filter_map(|v| v.get(&key).map(|v| v.value)).collect::<Vec<f64>>();
    of(with) != of(without)
}

impl SecondLook {
    /// Of a cell that has far runs, or is compared with some and has quantities that differ without them.
    pub fn of(cell: &Cell, far: &[FarRun], quantities: Vec<(Key, Quantity, Quantity)>) -> Option<SecondLook> {
        let record = &cell.record;
        let compared = |label: &String| record.members.iter().any(|m| m.solo == *label) || record.alone_on_slice.contains(label);
        // A cell of the same name on another device, from which a baseline was borrowed, is another cell.
        let own = |run: &FarRun| run.cell == cell.name() && cell.counted().any(|own| own.device == run.device);
        let touches = |run: &&FarRun| own(run) || !quantities.is_empty() && compared(&run.cell);
        let left_out: Vec<FarRun> = far.iter().filter(touches).cloned().collect();
        (!left_out.is_empty()).then_some(SecondLook { left_out, quantities })
    }

    /// `repetition 2 deviates +31.0 % from the others: gain 5.5 [3.1, 9.8], without it 5.6 ±0.2`, for `cell`.
    pub fn to_text(&self, cell: &str) -> String {
        let run = |far: &FarRun| {
            let of = if far.cell == cell { String::new() } else { format!(" of `{}`", far.cell) };
            format!("repetition {}{of} deviates {:+.1} % from the others", far.repetition, far.deviation_ratio * 100.0)
        };
        let runs: Vec<String> = self.left_out.iter().map(run).collect();
        let it = if runs.len() == 1 { "it" } else { "them" };
        let quantity = |(key, with, without): &(Key, Quantity, Quantity)| {
            let unit = key.unit.symbol;
            let (with, without) = (number::scaled(with, key.unit.factor), number::scaled(without, key.unit.factor));
            format!("{} {with}, without {it} {without} {unit}", key.label).trim_end().to_string()
        };
        let quantities: Vec<String> = self.quantities.iter().map(quantity).collect();
        let quantities = if quantities.is_empty() { String::new() } else { format!(": {}", quantities.join("; ")) };
        format!("{}{quantities}", runs.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_left_out_for_its_overlap_makes_no_outlier() {
        // In the second repetition the epoch of the slower member beside nobody was left out: a shorter mean of the same run.
        let runs = [(3.0, 10.0), (2.0, 10.1), (3.02, 9.95)];
        let by = |by| -> Vec<f64> {
            let times = runs.iter().map(|&(training, makespan)| compared_s(by, Some(training), Some(makespan)));
            times.map(|t| t.unwrap().ln()).collect()
        };
        let calm = || vec![-0.01, 0.0, 0.012];
        let beside = |odd| outliers(&[calm(), calm(), calm(), odd]);
        assert!(beside(by(GainBy::Makespan)).is_empty());
        assert_eq!(beside(by(GainBy::Progress)).len(), 1, "the epoch time alone would call it one");
        assert_eq!(compared_s(GainBy::Makespan, Some(3.0), None), None, "no makespan is not replaced by another time");
    }
}
