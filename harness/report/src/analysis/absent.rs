//! Why a quantity is absent. In: a cell whose quantities are there, and the baselines. Out: a reason for each that is not. It lowers no verdict.

use std::collections::BTreeMap;

use super::quantities::{Baselines, CELL};
use super::repetition::Repetition;
use super::{Cell, latency};
use crate::stats::Quantity;

/// Why a quantity is absent.
pub fn of_cell(cell: &Cell, baselines: &Baselines) -> BTreeMap<&'static str, String> {
    let mut found = BTreeMap::new();
    let unmeasured: Vec<&str> =
        cell.record.members.iter().map(|m| m.solo.as_str()).filter(|s| baselines.repetitions(s) == 0).collect();
    let requests = of_servers(cell, baselines);
    for name in CELL.into_iter().filter(|n| !cell.quantities.contains_key(n)) {
        let why = match name {
            _ if cell.counted.is_empty() => cell.validity.reasons.first().cloned().unwrap_or_else(|| "no run".into()),
            name if latency::NAMES.contains(&name) => requests.get(name).cloned().unwrap_or_default(),
            name if cell.serves() && PER_EPOCH.contains(&name) => "a member serves".into(),
            "slowdown" | "throughput_gain" | "stp" | "antt" | "memory_of_solo" | "fairness" if !unmeasured.is_empty() => {
                format!("its baseline `{}` has no usable run", unmeasured[0])
            }
            "fairness" | "overlap_ratio" | "start_skew_s" if cell.record.members.len() < 2 => "one member has no company".into(),
            "epoch_time_s" if !cell.record.is_uniform() => "its members train different workloads".into(),
            "epoch_time_s" | "slowdown" | "stp" | "antt" | "fairness" => "no epoch had full company".into(),
            "energy_j_per_epoch" | "cpu_ratio" if cell.counted().all(|r| r.measured.is_none()) => {
                "there was no time in which all members trained past their warm-up".into()
            }
            "energy_j_per_epoch" | "energy_j_per_item" | "energy_of_solo" => "no readable counter".into(),
            "energy_j_per_epoch_above_idle" if cell.quantities.contains_key("energy_j_per_epoch") => {
                "the card's power was not read while nobody was on it".into()
            }
            "energy_j_per_epoch_above_idle" => "no readable counter".into(),
            "slowdown_on_slice" if cell.record.alone_on_slice.is_empty() => "its members are not on slices".into(),
            "slowdown_on_slice" => "its members were not measured alone on such slices".into(),
            "pcie_rx_of_solo" if !cell.record.is_uniform() => "its members train different workloads".into(),
            name if name.starts_with("pcie_") => "the traffic or the items were not recorded".into(),
            "solo_sm_active_sum_ratio" => "the SM activity of its baselines was not read".into(),
            "memory_of_solo" if cell.quantities.contains_key("memory_bytes") => {
                "its baseline's memory was read in another way".into()
            }
            "memory_bytes" | "memory_of_solo" | "cpu_ratio" => "no sample was taken".into(),
            "items_per_s" => "the workload does not tell its items".into(),
            _ => "it was not recorded".into(),
        };
        found.insert(name, why);
    }
    if !cell.metrics.contains_key("sm_active_ratio") {
        // Of several reasons the first is told, as of other quantities.
        found.extend(cell.counted().find_map(|r| r.trust.why_absent.clone()).map(|why| ("sm_active_ratio", why)));
    }
    found
}

/// What is told by epochs, and means nothing where one member has none.
const PER_EPOCH: [&str; 16] = [
    "epoch_time_s",
    "slowdown",
    "slowdown_on_slice",
    "throughput_gain",
    "stp",
    "antt",
    "fairness",
    "makespan_s",
    "items_per_s",
    "energy_j_per_epoch",
    "energy_j_per_epoch_above_idle",
    "energy_j_per_item",
    "energy_of_solo",
    "pcie_rx_bytes_per_item",
    "pcie_tx_bytes_per_item",
    "pcie_rx_of_solo",
];

/// Why a cell lacks quantities of requests.
fn of_servers(cell: &Cell, baselines: &Baselines) -> BTreeMap<&'static str, String> {
    let all = |why: &str| latency::NAMES.into_iter().map(|name| (name, why.to_string())).collect();
    let mut solos: Vec<&str> = cell.members.iter().filter(|m| m.serving.is_some()).map(|m| m.spec.solo.as_str()).collect();
    solos.dedup();
    match solos[..] {
        [] => all(NOBODY_SERVES),
        [solo] => of_requests(cell, None, solo, &cell.quantities, baselines),
        _ => all("its members serve different workloads: each has its own"),
    }
}

/// Said of all that is about requests, where there are none.
pub const NOBODY_SERVES: &str = "no member serves";

/// Why quantities of requests are absent: of one member, or of all that serve.
pub fn of_requests(
    cell: &Cell,
    member: Option<usize>,
    solo: &str,
    known: &BTreeMap<&'static str, Quantity>,
    baselines: &Baselines,
) -> BTreeMap<&'static str, String> {
    let of = |r: &Repetition| match member {
        Some(i) => r.members.get(i).and_then(|m| m.latency.clone()),
        None => r.latency.clone(),
    };
    let why = |name: &'static str| {
        let told = cell.counted().find_map(|r| of(r)?.why_absent(name));
        match name {
            _ if cell.counted.is_empty() => "no usable run".into(),
            "latency_p99_of_solo" if known.contains_key("latency_p99_s") && baselines.repetitions(solo) == 0 => {
                format!("its baseline `{solo}` has no usable run")
            }
            "latency_p99_of_solo" if known.contains_key("latency_p99_s") => format!("its baseline `{solo}` has no p99"),
            _ => told.unwrap_or_else(|| "its requests cannot be read".into()),
        }
    };
    latency::NAMES.into_iter().filter(|n| !known.contains_key(n)).map(|name| (name, why(name))).collect()
}
