//! Words that the terminal, the page, Markdown and exports share. In: a word of the store or of JSON. Out: what people read.

use collo_store::Verdict;

use crate::stats::Quantity;

/// An outcome as people read it.
pub fn outcome(word: &str) -> String {
    if word == "missing" { "not run".into() } else { word.replace('_', " ") }
}

/// A validity as people read it, and as JSON has it.
pub fn verdict(v: Verdict) -> &'static str {
    match v {
        Verdict::Valid => "valid",
        Verdict::Informative => "informative",
        Verdict::Void => "void",
    }
}

/// A quantity's name in running text.
pub fn quantity(name: &str) -> &str {
    match name {
        "epoch_time_s" => "epoch time",
        "slowdown" => "slowdown",
        "throughput_gain" => "throughput gain",
        "stp" => "STP",
        "antt" => "ANTT",
        "fairness" => "fairness",
        "overlap_ratio" => "overlap",
        "start_skew_s" => "start skew",
        "makespan_s" => "makespan",
        "memory_bytes" => "memory",
        "slowdown_on_slice" => "slowdown on its slice",
        "memory_of_solo" => "memory ÷ sum of solo",
        "memory_headroom_bytes" => "free memory",
        "cpu_ratio" => "CPU",
        "items_per_s" => "items per second",
        "energy_j_per_epoch" => "energy",
        "energy_j_per_epoch_above_idle" => "energy above idle",
        "energy_j_per_item" => "energy per item",
        "energy_of_solo" => "energy ÷ in turn",
        "solo_sm_active_sum_ratio" => "sum of solo SMACT",
        "sm_active_ratio" => "SMACT",
        "pcie_rx_bytes_per_item" => "bytes in per item",
        "pcie_tx_bytes_per_item" => "bytes out per item",
        "pcie_rx_of_solo" => "bytes in per item ÷ solo",
        "pcie_rx_bytes_per_s" => "bytes in per second",
        "throttled_ratio" => "throttled share",
        "latency_p50_s" => "p50 latency",
        "latency_p95_s" => "p95 latency",
        "latency_p99_s" => "p99 latency",
        "latency_p99_of_solo" => "p99 ÷ alone",
        "within_slo_ratio" => "share within the SLO",
        "goodput_per_s" => "goodput",
        "offered_per_s" => "requests due per second",
        "answered_per_s" => "answers per second",
        "capacity_per_s" => "capacity",
        other => other,
    }
}

/// A workload with its settings, from the label of its solo cell: `tiny b32`.
pub fn workload(solo: &str) -> String {
    collo_store::without_mode(solo)
}

/// A p-value: three decimals, `<0.001` below.
pub fn p(p: f64) -> String {
    if p < 0.001 { "<0.001".into() } else { format!("{p:.3}") }
}

/// Seconds, or milliseconds where every estimate is below one: the factor and the unit.
pub fn time_unit<'a>(quantities: impl Iterator<Item = &'a Quantity>) -> (f64, &'static str) {
    match quantities.map(|q| q.estimate).reduce(f64::max) {
        Some(largest) if largest < 1.0 => (1e3, "ms"),
        _ => (1.0, "s"),
    }
}
