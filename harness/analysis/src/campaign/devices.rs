//! How the devices of a campaign on several differ. In: the values of its cells and the metrics of its runs. Out: which quantities
//! differ between devices by more than the noise, by how much, and on which.

use std::collections::{BTreeMap, BTreeSet};

use collo_quantity::stats::Quantity;
use collo_quantity::stats::devices::{self, DeviceRatio, DeviceValue};
use collo_quantity::{Key, Trait};
use collo_store::Campaign;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cell::Cell;
use crate::cell::quantities::Values;
use crate::reading::repetition::Repetition;

/// A quantity of which one device has more or less than the others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub struct DeviceDifference {
    /// One of the report's `devices`.
    pub device: String,
    /// Its index, as runs have it.
    #[serde(skip)]
    pub index: usize,
    /// A quantity of cells, or a metric.
    #[schemars(with = "String")]
    pub quantity: Key,
    /// How many times it is that of the others, in the cells that they have in common; `repetitions` are blocks of the device.
    pub ratio: Quantity,
    /// That all devices are alike, corrected for all quantities and devices.
    pub p_adjusted: f64,
}

/// A smaller part of a relevant difference is not told, however certain it is.
const TOLD_PART: f64 = 0.1;

/// What differs, and what that means for intervals.
#[derive(Debug, Default)]
pub(super) struct Differing {
    pub keys: BTreeSet<Key>,
    pub metrics: BTreeSet<&'static str>,
    /// A device has blocks enough to be told from its hour.
    pub can_be_told: bool,
    pub differences: Vec<DeviceDifference>,
}

/// Metrics of a card that are compared, beside what its cells take of time, energy and memory.
const METRICS: [Key; 3] = [Key::Power, Key::SmActive, Key::SmClock];

/// Compare the devices of a campaign, by the counted runs of its cells. How fast they are is one question, in however many quantities it
/// shows; all others are corrected for their number.
pub(super) fn compare(cells: &[Cell], of_cells: &[Vec<Values>], campaign: &Campaign) -> Differing {
    let mut found: Vec<(Quantities, Vec<DeviceRatio>)> = Vec::new();
    let is_compared = |key: &Key| key.is_pooled() && (key.has(Trait::OneCard) || *key == Key::Memory);
    for key in Key::with(Trait::Cell).filter(is_compared) {
        let values = |(cell, runs): (&Cell, &Vec<Values>)| {
            let of = |(r, v): (&Repetition, &Values)| Some(value(r, v.get(&key)?.value));
            cell.counted().zip(runs).filter_map(of).collect()
        };
        let all: Vec<Vec<DeviceValue>> = cells.iter().zip(of_cells).map(values).collect();
        found.push((Quantities::Key(key), devices::ratios(&all)));
    }
    for metric in METRICS {
        let values = |cell: &Cell| cell.counted().filter_map(|r| Some(value(r, *r.metrics.get(metric.name)?))).collect();
        found.push((Quantities::Metric(metric), devices::ratios(&cells.iter().map(values).collect::<Vec<_>>())));
    }
    let (speed, others): (Vec<_>, Vec<_>) = found.into_iter().partition(|(name, _)| name.key().has(Trait::Speed));
    let told = |found: &[(Quantities, Vec<DeviceRatio>)]| {
        devices::differing(&found.iter().map(|(_, ratios)| ratios.clone()).collect::<Vec<_>>())
    };
    let of_speed = speed.iter().flat_map(|one| told(std::slice::from_ref(one)));
    let ratios: Vec<Vec<DeviceRatio>> = of_speed.chain(told(&others)).collect();
    let can_be_told = speed.iter().chain(&others).any(|(_, ratios)| !ratios.is_empty());
    let mut differing = Differing { can_be_told, ..Differing::default() };
    let labels = campaign.devices();
    let least = TOLD_PART * campaign.thresholds.relevant_ratio;
    for ((name, _), ratios) in speed.into_iter().chain(others).zip(ratios) {
        let large = |r: &DeviceRatio| r.ratio.estimate.max(1.0 / r.ratio.estimate) > 1.0 + least;
        let ratios: Vec<DeviceRatio> = ratios.into_iter().filter(large).collect();
        if ratios.is_empty() {
            continue;
        }
        let key = name.key();
        let told = |r: DeviceRatio| {
            let device = labels.all()[r.device].label.clone();
            DeviceDifference { device, index: r.device, quantity: key, ratio: r.ratio, p_adjusted: r.p }
        };
        differing.differences.extend(ratios.into_iter().map(told));
        match name {
            Quantities::Key(key) => _ = differing.keys.insert(key),
            Quantities::Metric(key) => _ = differing.metrics.insert(key.name),
        }
    }
    differing
}

/// What is compared: of a cell, or a metric of its runs.
#[derive(Clone, Copy)]
enum Quantities {
    Key(Key),
    Metric(Key),
}

impl Quantities {
    fn key(self) -> Key {
        match self {
            Quantities::Key(key) | Quantities::Metric(key) => key,
        }
    }
}

fn value(r: &Repetition, value: f64) -> DeviceValue {
    DeviceValue { device: r.device, block: r.record().block, value }
}

impl super::Analysis {
    /// The devices that differ from the others, each with how; of two devices only the one that is slower, or has more of what differs.
    pub fn device_differences(&self) -> BTreeMap<usize, Vec<&DeviceDifference>> {
        let mut found: BTreeMap<usize, Vec<&DeviceDifference>> = BTreeMap::new();
        self.differences.iter().for_each(|d| found.entry(d.index).or_default().push(d));
        if self.devices.all().len() == 2 && found.len() == 2 {
            let is_slow = |all: &Vec<&DeviceDifference>| {
                let time = all.iter().find(|d| d.quantity == Key::EpochTime).or(all.first());
                time.is_some_and(|d| d.ratio.estimate > 1.0)
            };
            found.retain(|_, all| is_slow(all));
        }
        found
    }
}
