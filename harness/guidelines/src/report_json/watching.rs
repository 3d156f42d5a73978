//! What it costs to be watched, in `report.json`.

use collo_analysis::campaign::Analysis;
use collo_analysis::watching::Watching;
use collo_analysis::watching::{WatchedCost, WatchedGroup};
use collo_quantity::Key;
use collo_quantity::stats::Quantity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The same members under the same mode, under the eyes of several. Their runs are no groups, and `cells` has none of them.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline, deny_unknown_fields)]
pub struct WatchedJson {
    /// The label of its cells without the observer.
    pub group: String,
    pub observers: Vec<WatchedCostJson>,
    /// How the intervals were made; null for one block.
    pub method: Option<String>,
}

/// What one observer costs; null where it was not or cannot be read.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline, deny_unknown_fields)]
pub struct WatchedCostJson {
    /// `none`, `collo:100Hz`, `top`.
    pub observer: String,
    /// `beside`, `around`, `inside`; null for `none` and `collo`.
    pub place: Option<String>,
    /// True for one that instruments, stops or runs the members; null for `none`, and in runs before it was recorded.
    pub profiles: Option<bool>,
    /// Whom else it disturbs, in the words of its file.
    pub disturbs: Option<String>,
    pub cell: String,
    /// Runs that its numbers come from.
    pub repetitions: usize,
    pub epoch_time_s: Option<Quantity>,
    /// Epoch time ÷ that under `none` within the same block.
    pub epoch_time_of_none: Option<Quantity>,
    /// That the two are alike, corrected for all observers.
    pub p_adjusted: Option<f64>,
    /// `better`: slower than under `none`.
    pub verdict: Option<String>,
    /// CPU time of the members ÷ that under `none` within the same block.
    pub members_cpu_of_none: Option<Quantity>,
    /// Cores that it keeps busy itself; of collo its sampling threads.
    pub cpu_ratio: Option<f64>,
    /// Cores that services keep busy that work for it.
    pub services_cpu_ratio: Option<f64>,
    pub services: Vec<String>,
    /// Cores that collo's own process keeps busy meanwhile.
    pub collo_cpu_ratio: Option<f64>,
    pub memory_bytes: Option<f64>,
    /// Written in a run.
    pub written_bytes: Option<f64>,
    /// By the time in which it recorded: beside the members while it watched, inside them in measured epochs, else the whole run.
    pub written_bytes_per_hour: Option<f64>,
    /// Runs that were not watched to their end.
    pub lost: usize,
    pub why_lost: Option<String>,
    /// Runs in which it did not end in time and was killed; what it wrote there is in no number.
    pub killed: usize,
}

impl WatchedJson {
    pub fn all(analysis: &Analysis) -> Vec<WatchedJson> {
        let of = |group: &WatchedGroup| WatchedJson {
            group: group.name.clone(),
            observers: group.rows.iter().map(|row| cost(row, &analysis.watching)).collect(),
            method: group.method.map(String::from),
        };
        analysis.watching.groups.iter().map(of).collect()
    }
}

fn cost(row: &WatchedCost, watching: &Watching) -> WatchedCostJson {
    let cell = &watching.cells[row.cell];
    WatchedCostJson {
        observer: row.observer.clone(),
        place: row.place.clone(),
        profiles: row.profiles,
        disturbs: row.disturbs.clone(),
        cell: cell.name().to_string(),
        repetitions: row.runs,
        epoch_time_s: cell.get(Key::EpochTime).cloned(),
        epoch_time_of_none: row.ratio.clone(),
        p_adjusted: row.test.as_ref().map(|test| test.p_adjusted),
        verdict: row.test.as_ref().map(|test| test.verdict.as_str().to_string()),
        members_cpu_of_none: row.members_cpu_ratio.clone(),
        cpu_ratio: row.cpu_cores,
        services_cpu_ratio: row.daemons_cpu_cores,
        services: row.daemons.clone(),
        collo_cpu_ratio: row.collo_cpu_cores,
        memory_bytes: row.memory_bytes,
        written_bytes: row.bytes,
        written_bytes_per_hour: row.bytes_per_hour,
        lost: row.lost,
        why_lost: row.why_lost.clone(),
        killed: row.killed,
    }
}
