//! `report.json`: the types through which it is written and read, and from which its JSON Schema is derived. Every measured
//! quantity is an object with `estimate`, `low`, `high`, `repetitions` and `df`, or null. `collo compare` reads nothing else.
//!
//! Written files are complete; files read may come from an earlier version, so absent fields have their defaults. Without its
//! campaign, its device or a cell's label it is not a report: `read` checks this.
//!
//! To add a field: in this file or in `cell.rs`, with its default, filled in `of.rs`; the schema and `collo compare` follow.

mod cell;
mod comparable;
mod of;
mod ordered;
mod predicted;
mod read;
pub mod run;
pub mod table;
mod trace;
mod watching;

use std::collections::BTreeMap;

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use cell::{CellJson, MemberJson, Quantities};
pub use of::cell;
pub use ordered::Ordered;
pub use predicted::{PredictedBy, PredictedJson, PredictedMemoryJson, PredictorJson};
pub use trace::{OrderJson, PolicyJson, PolicyRatioJson, TraceJson};
pub use watching::{WatchedCostJson, WatchedJson};

use collo_analysis::campaign::reference::ReferenceVerdict;
use collo_quantity::stats::Quantity;

use crate::verdict::{Agreement, Holds};

/// The version of `report.json`.
pub const SCHEMA: u32 = 2;

/// A report.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(title = "collo report", deny_unknown_fields)]
pub struct ReportJson {
    #[schemars(extend("const" = SCHEMA))]
    pub schema: u32,
    pub experiment: String,
    pub campaign: String,
    pub created_utc: String,
    /// The program that measured it, if not collo: what that does not record is unknown.
    pub measured_by: Option<String>,
    pub device: Device,
    /// The devices of a campaign on several, `GPU 1`; empty for one.
    pub devices: Vec<String>,
    /// What differs between them by more than the noise.
    pub device_differences: Vec<DeviceDifferenceJson>,
    /// The part of the experiment that it is, `1/4`; null for the whole.
    pub shard: Option<String>,
    /// The campaigns that it was merged from.
    pub merged_from: Vec<String>,
    /// Campaigns on the same GPU that lent baselines to cells without one of their own; empty if none did. Intervals leave out what
    /// changed between the campaigns.
    pub baselines_from: Vec<LenderJson>,
    pub comments: Vec<CommentJson>,
    /// How it was started; null in campaigns of earlier versions.
    pub surroundings: Option<SurroundingsJson>,
    /// Data sets that were stand-ins.
    pub synthetic: Vec<String>,
    pub shortened: Vec<Shortened>,
    /// Why every number of the campaign is indicative at best.
    #[serde(alias = "informative")]
    pub indicative: Vec<String>,
    /// Possible explanations of differences to another campaign.
    pub environment: Ordered<String>,
    pub thresholds: Thresholds,
    /// How the intervals were made.
    pub method: Option<String>,
    /// Runs of the plan.
    pub planned: usize,
    /// Runs by outcome; they sum to `planned`.
    pub accounted: Ordered<usize>,
    pub refusals: Vec<Refusal>,
    /// Who predicted what, and when; null if nothing was predicted.
    pub predicted: Option<PredictedBy>,
    pub cells: Vec<CellJson>,
    /// Policies of traces. Their runs are no groups, and `cells` has none of them.
    pub traces: Vec<TraceJson>,
    /// What it costs to be watched, of an experiment that says who watches.
    pub watching: Vec<WatchedJson>,
    pub guidelines: Vec<AdviceJson>,
    /// Values that the experiment expects on this device, and whether they were found.
    pub references: Vec<ReferenceJson>,
    /// Unreadable entries of the campaign's folder.
    pub problems: Vec<String>,
}

/// A campaign that lent baselines.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline, deny_unknown_fields)]
pub struct LenderJson {
    pub campaign: String,
    /// Null for a part of a merged campaign.
    pub experiment: Option<String>,
    pub created_utc: String,
}

/// A comment on a campaign.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline, deny_unknown_fields)]
pub struct CommentJson {
    pub at_utc: String,
    pub text: String,
}

/// How a campaign was started.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline, deny_unknown_fields)]
pub struct SurroundingsJson {
    /// The command line of collo.
    pub command: Vec<String>,
    /// Variables that can influence a measurement; values that may be secrets are left out.
    pub variables: BTreeMap<String, String>,
    /// By interpreter: its packages, name → version.
    pub packages: BTreeMap<String, BTreeMap<String, String>>,
}

/// The device of a campaign.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline, deny_unknown_fields)]
pub struct Device {
    pub name: String,
    pub kind: String,
    pub simulated: bool,
    pub memory_bytes: Option<u64>,
    pub cores: Option<u64>,
}

/// A quantity of which one of several devices has more or less than the others.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub struct DeviceDifferenceJson {
    /// One of `devices`.
    pub device: String,
    /// A quantity of cells, or a metric.
    pub quantity: String,
    /// How many times it is that of the others, in the cells that they have in common; `repetitions` are blocks of the device.
    pub ratio: Quantity,
    /// That all devices are alike, corrected for all quantities and devices.
    pub p_adjusted: f64,
}

/// A workload whose epochs were cut short, with the remaining batches.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline, deny_unknown_fields)]
pub struct Shortened {
    pub workload: String,
    #[schemars(range(min = 1))]
    pub limit_batches: u64,
}

/// Thresholds of relevance; absent ones have their defaults.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline, deny_unknown_fields)]
pub struct Thresholds {
    pub relevant_ratio: f64,
    pub slowdown: f64,
    pub overlap_ratio: f64,
    pub start_skew_s: f64,
    pub baseline_drift_ratio: f64,
}

/// A cell that could not run there, with the reason.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline, deny_unknown_fields)]
pub struct Refusal {
    pub cell: String,
    pub sharing: String,
    pub reason: String,
    pub hint: Option<String>,
}

/// A guideline.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline, deny_unknown_fields)]
pub struct AdviceJson {
    pub id: String,
    pub statement: String,
    pub finding: String,
    /// Called `verdict` by earlier reports, with other words.
    #[serde(alias = "verdict")]
    #[schemars(with = "Holds")]
    pub holds: Option<Holds>,
    /// Whether the published statement agrees.
    pub agrees: Agreement,
    pub tested: String,
    pub evidence: Vec<EvidenceJson>,
    pub published: Option<PublishedJson>,
    /// What it is based on; null for rules that are not about groups.
    pub scope: Option<ScopeJson>,
    pub command: Option<String>,
    pub summary: bool,
}

/// What a guideline is based on.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline, deny_unknown_fields)]
pub struct ScopeJson {
    /// Groups that were judged.
    pub judged: usize,
    /// Groups that could not be judged, by cause.
    pub unjudged: BTreeMap<String, usize>,
    pub out_of_memory: usize,
    pub workloads: Vec<String>,
    pub degrees: Vec<u32>,
    /// GPUs or machines.
    pub devices: usize,
    /// Fewest and most repetitions of a judged group.
    pub repetitions_min: Option<usize>,
    pub repetitions_max: Option<usize>,
    /// The same as a sentence.
    pub text: Option<String>,
}

/// A number behind a guideline: a quantity of a cell, or its ratio to that of another one, or to what was `predicted`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline, deny_unknown_fields)]
pub struct EvidenceJson {
    pub cell: String,
    pub against: Option<String>,
    pub quantity: String,
    pub value: Option<Quantity>,
    #[schemars(range(min = 1))]
    pub repetitions: usize,
}

/// Results from the literature, never ours.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline, deny_unknown_fields)]
pub struct PublishedJson {
    pub statement: String,
    pub source: String,
}

/// A value that the experiment expects of a cell.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline, deny_unknown_fields)]
pub struct ReferenceJson {
    pub cell: String,
    pub quantity: String,
    /// In the unit of the quantity's name.
    pub value: f64,
    /// The largest relative distance from it, to either side.
    pub tolerance_ratio: f64,
    pub measured: Option<Quantity>,
    /// `unmeasured` if the cell has no usable value, or the campaign no such cell.
    #[schemars(with = "String", extend("enum" = ReferenceVerdict::ALL.map(ReferenceVerdict::as_str)))]
    pub verdict: String,
}

/// Texts by name: why a quantity is absent.
pub type Texts = BTreeMap<String, String>;

impl Default for Thresholds {
    fn default() -> Self {
        (&collo_store::Thresholds::default()).into()
    }
}

/// The JSON Schema of `report.json`: of written files, which have every field.
pub fn schema() -> Value {
    // What a field is read as where it is absent is nothing that a report says.
    let without_defaults = RecursiveTransform(|schema: &mut Schema| drop(schema.remove("default")));
    let settings = SchemaSettings::draft2020_12().for_serialize().with_transform(without_defaults);
    settings.into_generator().into_root_schema_for::<ReportJson>().to_value()
}
