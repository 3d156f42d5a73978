//! `report.json`: the types through which it is written and read, and from which its JSON Schema is derived. Every measured
//! quantity is an object with `estimate`, `low`, `high`, `repetitions` and `df`, or null. `collo compare` reads nothing else.
//!
//! Written files are complete. In files that are read, absent fields of the report, of a cell and of a member have their defaults; entries
//! of its other lists are complete. Without its campaign, its device or a cell's label it is not a report: `read` checks this.
//!
//! Types of the store and of the analysis are used where there is one. To add a field: in such a type, or in this file or in `cell.rs`, with
//! its default, filled in `of.rs` and read back in `analysis.rs`; the schema and `collo compare` follow.

mod analysis;
mod cell;
mod comparable;
mod decision;
mod listed;
mod of;
mod ordered;
mod predicted;
mod read;
pub mod run;
pub mod table;
mod trace;

use std::collections::BTreeMap;

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

pub use cell::{CellJson, MemberJson, Quantities};
pub use decision::{Decided, DecisionJson};
pub use listed::ListedReport;
pub use of::cell;
pub use ordered::Ordered;
pub use predicted::{PredictedBy, PredictedJson};
pub use trace::{OrderJson, PolicyJson, PolicyRatioJson, TraceJson};

use collo_analysis::campaign::devices::DeviceDifference;
use collo_analysis::campaign::reference::ReferenceCheck;
use collo_analysis::cell::lent::Lender;
use collo_analysis::reading::data::Shortened;
use collo_analysis::watching::WatchedGroup;
use collo_store::{Comment, RefusalRecord, Surroundings, Thresholds};

use crate::rule::Guideline;

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
    #[serde(deserialize_with = "known")]
    pub device_differences: Vec<DeviceDifference>,
    /// The part of the experiment that it is, `1/4`; null for the whole.
    pub shard: Option<String>,
    /// The campaigns that it was merged from.
    pub merged_from: Vec<String>,
    /// Campaigns on the same GPU that lent baselines to cells without one of their own; empty if none did. Intervals leave out what
    /// changed between the campaigns.
    pub baselines_from: Vec<Lender>,
    pub comments: Vec<Comment>,
    /// How it was started; null in campaigns of earlier versions.
    pub surroundings: Option<Surroundings>,
    /// Data sets that were stand-ins.
    pub synthetic: Vec<String>,
    pub shortened: Vec<Shortened>,
    /// Why every number of the campaign is indicative at best.
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
    pub refusals: Vec<RefusalRecord>,
    /// Who predicted what, and when; null if nothing was predicted.
    pub predicted: Option<PredictedBy>,
    pub cells: Vec<CellJson>,
    /// Policies of traces. Their runs are no groups, and `cells` has none of them.
    pub traces: Vec<TraceJson>,
    /// What it costs to be watched, of an experiment that says who watches.
    #[serde(deserialize_with = "known")]
    pub watching: Vec<WatchedGroup>,
    pub guidelines: Vec<Guideline>,
    /// The answer of the page's first screen, in sentences; empty in reports of earlier versions, and of other programs.
    pub answer: Vec<String>,
    /// What each workload or mix with groups decides for the most throughput, as in its answer.
    #[serde(deserialize_with = "known")]
    pub decisions: Vec<DecisionJson>,
    /// Values that the experiment expects on this device, and whether they were found.
    #[serde(deserialize_with = "known")]
    pub references: Vec<ReferenceCheck>,
    /// Unreadable entries of the campaign's folder.
    pub problems: Vec<String>,
}

/// The entries of a list that are as this collo writes them; of others, as another version may have written them, no verb depends.
fn known<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<Vec<T>, D::Error> {
    let all = Vec::<Value>::deserialize(deserializer)?;
    Ok(all.into_iter().filter_map(|entry| serde_json::from_value(entry).ok()).collect())
}

/// The device of a campaign.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline, deny_unknown_fields)]
pub struct Device {
    pub name: String,
    pub kind: String,
    pub simulated: bool,
    pub memory_bytes: Option<u64>,
    pub cores: Option<u64>,
    /// As many of them as a CPU quota allows at a time; null without one.
    pub quota_cores: Option<f64>,
}

/// Texts by name: why a quantity is absent.
pub type Texts = BTreeMap<String, String>;

/// The JSON Schema of `report.json`: of written files, which have every field.
pub fn schema() -> Value {
    // What a field is read as where it is absent is nothing that a report says.
    let without_defaults = RecursiveTransform(|schema: &mut Schema| drop(schema.remove("default")));
    let settings = SchemaSettings::draft2020_12().for_serialize().with_transform(without_defaults);
    settings.into_generator().into_root_schema_for::<ReportJson>().to_value()
}
