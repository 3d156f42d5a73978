//! Which number of a cell is compared. In: what was asked for, and both sides. Out: its name for each pair, in which unit it is
//! printed, and which way is good.

use super::Side;
use super::matching::Pair;
use super::ratio::Good;
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

use Good::{Larger, Neither, Smaller};

/// Name in JSON, words, unit, the factor to it, which way is good, whether two cards can be held against each other by it.
type Known = (&'static str, &'static str, &'static str, f64, Good, bool);

const GIB: f64 = 1.0 / (1u64 << 30) as f64;

const QUANTITIES: [Known; 42] = [
    ("epoch_time_s", "epoch", "s", 1.0, Smaller, false),
    ("makespan_s", "makespan", "s", 1.0, Smaller, false),
    ("items_per_s", "items", "per s", 1.0, Larger, false),
    ("energy_j_per_epoch", "energy per epoch", "J", 1.0, Smaller, false),
    ("energy_j_per_epoch_above_idle", "energy above idle per epoch", "J", 1.0, Smaller, false),
    ("energy_j_per_item", "energy per item", "J", 1.0, Smaller, false),
    ("power_w", "power", "W", 1.0, Neither, false),
    ("slowdown", "slowdown", "", 1.0, Smaller, true),
    ("slowdown_on_slice", "slowdown on the slice", "", 1.0, Smaller, true),
    ("antt", "ANTT", "", 1.0, Smaller, true),
    ("throughput_gain", "gain", "", 1.0, Larger, true),
    ("stp", "STP", "", 1.0, Larger, true),
    ("fairness", "fairness", "", 1.0, Larger, true),
    ("energy_of_solo", "energy ÷ in turn", "", 1.0, Smaller, true),
    ("memory_bytes", "memory", "GiB", GIB, Smaller, true),
    ("memory_of_solo", "memory ÷ solo", "", 1.0, Smaller, true),
    ("memory_headroom_bytes", "headroom", "GiB", GIB, Larger, true),
    ("overlap_ratio", "overlap", "", 1.0, Neither, true),
    ("start_skew_s", "start skew", "s", 1.0, Smaller, true),
    ("throttled_ratio", "throttled", "", 1.0, Smaller, true),
    ("cpu_ratio", "CPU", "cores", 1.0, Neither, true),
    ("solo_sm_active_sum_ratio", "sum of solo SMACT", "", 1.0, Neither, true),
    ("sm_active_ratio", "SMACT", "", 1.0, Neither, true),
    ("sm_active_p95_ratio", "SMACT p95", "", 1.0, Neither, true),
    ("sm_occupancy_ratio", "SMOCC", "", 1.0, Neither, true),
    ("dram_active_ratio", "DRAMA", "", 1.0, Neither, true),
    ("pcie_rx_bytes_per_item", "PCIe in per item", "B", 1.0, Neither, true),
    ("pcie_tx_bytes_per_item", "PCIe out per item", "B", 1.0, Neither, true),
    ("pcie_rx_of_solo", "PCIe in ÷ solo", "", 1.0, Neither, true),
    ("pcie_rx_bytes_per_s", "PCIe in", "B/s", 1.0, Neither, true),
    ("pcie_tx_bytes_per_s", "PCIe out", "B/s", 1.0, Neither, true),
    ("sm_clock_mhz", "SM clock", "MHz", 1.0, Neither, true),
    ("temperature_c", "temperature", "°C", 1.0, Neither, true),
    ("read_bytes_per_s", "read", "B/s", 1.0, Neither, true),
    ("latency_p50_s", "p50", "s", 1.0, Smaller, false),
    ("latency_p95_s", "p95", "s", 1.0, Smaller, false),
    ("latency_p99_s", "p99", "s", 1.0, Smaller, false),
    ("latency_p99_of_solo", "p99 ÷ alone", "", 1.0, Smaller, true),
    ("within_slo_ratio", "in time", "", 1.0, Larger, false),
    ("goodput_per_s", "goodput", "per s", 1.0, Larger, false),
    ("offered_per_s", "offered", "per s", 1.0, Neither, false),
    ("answered_per_s", "answered", "per s", 1.0, Larger, false),
];

fn entry(name: &str) -> Option<&'static Known> {
    QUANTITIES.iter().find(|q| q.0 == name)
}

/// What an epoch or a makespan is, between different cards.
const ACROSS: &str = "throughput_gain";

impl Asked {
    /// What was asked for, if both sides have it and may be compared by it.
    pub fn of(left: &Side, right: &Side, name: Option<&str>, different_devices: bool) -> Result<Asked> {
        let Some(name) = name else {
            return Ok(if different_devices { Asked::Across } else { Asked::Time });
        };
        if different_devices && entry(name).is_some_and(|q| !q.5) {
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
            Asked::Across if pair.left.serves() || pair.right.serves() => "latency_p99_of_solo".into(),
            Asked::Across => ACROSS.into(),
            Asked::Time => {
                let release = pair.right.tail == "release" || pair.left.tail == "release";
                let uniform = pair.right.members.windows(2).all(|w| w[0].is_like(&w[1]));
                if pair.left.serves() || pair.right.serves() {
                    return "latency_p99_s".into();
                }
                if release || !uniform { "makespan_s".into() } else { "epoch_time_s".into() }
            }
        }
    }

    /// True for a baseline's quantity that is 1 because it is held against itself.
    pub fn is_by_definition(&self, pair: &Pair<'_>) -> bool {
        if *self == Asked::Time {
            return false;
        }
        let name = self.of_pair(pair);
        let one = |cell: &super::Cell| cell.is_solo() && cell.get(&name).is_none_or(|q| q.estimate == 1.0 && q.df.is_none());
        matches!(
            name.as_str(),
            "slowdown"
                | "antt"
                | "stp"
                | "throughput_gain"
                | "memory_of_solo"
                | "fairness"
                | "energy_of_solo"
                | "latency_p99_of_solo"
        ) && one(pair.left)
            && one(pair.right)
    }

    /// Which way is good.
    pub fn good(&self, name: &str) -> Good {
        entry(name).map_or(Neither, |q| q.4)
    }

    /// What is compared, in words: `time per epoch`.
    pub fn said(&self) -> String {
        match self {
            Asked::Time => "time".into(),
            Asked::Across => unit(ACROSS).0.into(),
            Asked::Named(name) => entry(name).map_or_else(|| name.clone(), |q| q.1.to_string()),
        }
    }
}

/// The words of a quantity, its unit and the factor to it.
pub fn unit(name: &str) -> (&str, &'static str, f64) {
    entry(name).map_or((name, "", 1.0), |q| (q.1, q.2, q.3))
}

/// True for what means nothing between different cards: times, energies, rates.
pub fn is_absolute(name: &str) -> bool {
    entry(name).is_some_and(|q| !q.5)
}
