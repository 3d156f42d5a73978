//! A cell of `report.json`, and its members. A quantity is among a cell's fields under its own name, so that it can be looked up
//! without knowing which ones exist.

use std::collections::BTreeMap;

use collo_analysis::cell::Regime;
use collo_analysis::cell::second_look::SecondLook;
use collo_analysis::cell::verdict::CellVerdict;
use collo_quantity::stats::{Quantity, RatioTest};
use collo_quantity::{Key, Trait};
use collo_store::{AfterMeasured, Features, PredictedCell, Serving};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::{Ordered, PredictedJson, Texts};

/// Quantities by name; null if nothing was measured.
pub type Quantities = Ordered<Option<Quantity>>;

/// A cell over its repetitions.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, expecting = "a cell")]
#[schemars(inline, deny_unknown_fields)]
pub struct CellJson {
    #[serde(rename = "cell")]
    pub label: String,
    pub sharing: String,
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    pub degree: u64,
    pub baseline: bool,
    /// The campaign whose baselines its ratios are relative to; null if they are of its own.
    pub baseline_campaign: Option<String>,
    #[schemars(with = "String", extend("enum" = AfterMeasured::WORDS))]
    pub after_measured: AfterMeasured,
    pub slots: Option<String>,
    pub members: Vec<MemberJson>,
    /// Runs that its numbers come from.
    pub repetitions: usize,
    #[serde(default = "missing")]
    pub outcome: String,
    /// Planned runs by outcome.
    pub outcomes: Ordered<usize>,
    /// `out_of_memory` if none of its runs fitted, which is a result.
    #[serde(default = "discarded")]
    #[schemars(with = "String", extend("enum" = CellVerdict::ALL.map(CellVerdict::as_str)))]
    pub validity: String,
    /// Why it is not valid.
    pub reasons: Vec<String>,
    /// Unusual but not left out.
    pub suspicious: Vec<String>,
    /// Its main quantities without the runs far from the others; null if no run is far.
    #[serde(deserialize_with = "known")]
    pub second_look: Option<SecondLook>,
    #[serde(flatten, deserialize_with = "quantities")]
    #[schemars(schema_with = "of_cells")]
    pub quantities: Quantities,
    #[schemars(with = "String", extend("enum" = ["epoch_time", "makespan", "progress"]))]
    pub throughput_gain_by: Option<String>,
    pub throughput_gain_verdict: Option<GainVerdict>,
    pub memory_kind: Option<String>,
    /// Means of metrics that are not a member's.
    #[serde(deserialize_with = "quantities")]
    pub metrics: Quantities,
    /// Why a quantity is absent.
    pub absent: Texts,
    /// What was predicted of the group before it ran: `company` with its slowdowns, STP, fairness, or the `reason` why not; null if
    /// nothing was.
    #[schemars(with = "Option<Map<String, Value>>")]
    pub predicted: Option<PredictedCell>,
}

/// The throughput gain compared with 1, corrected for the number of groups.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline, deny_unknown_fields)]
pub struct GainVerdict {
    pub p: Option<f64>,
    pub p_adjusted: Option<f64>,
    pub verdict: String,
    pub text: String,
}

impl From<&RatioTest> for GainVerdict {
    fn from(g: &RatioTest) -> Self {
        let finite = |p: f64| Some(p).filter(|p| p.is_finite());
        GainVerdict {
            p: finite(g.p),
            p_adjusted: finite(g.p_adjusted),
            verdict: g.verdict.as_str().into(),
            text: g.verdict.text(),
        }
    }
}

/// One member of a cell.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline, deny_unknown_fields)]
pub struct MemberJson {
    pub workload: String,
    pub batch_size: Option<u64>,
    pub settings: BTreeMap<String, Value>,
    /// The regime that it reported.
    pub regime: Option<Regime>,
    /// The label of its own solo cell.
    pub solo: String,
    /// Its load, if it serves instead of training.
    #[schemars(with = "Option<Map<String, Value>>")]
    pub serving: Option<Serving>,
    #[serde(flatten, deserialize_with = "quantities")]
    #[schemars(schema_with = "of_members")]
    pub quantities: Quantities,
    /// Why a quantity is absent: of its requests, or of what the process used that it shares with the others.
    pub absent: Texts,
    pub loss: Option<f64>,
    /// Its computation graph in numbers.
    #[schemars(with = "Option<Map<String, Value>>")]
    pub features: Option<Features>,
    /// What was predicted of it before it ran; null if nothing was.
    pub predicted: Option<PredictedJson>,
}

impl MemberJson {
    /// The same workload with the same settings, trained or served in the same way.
    pub fn is_like(&self, other: &MemberJson) -> bool {
        (&self.workload, self.batch_size, &self.settings, &self.solo, &self.regime)
            == (&other.workload, other.batch_size, &other.settings, &other.solo, &other.regime)
    }
}

/// What is as this collo writes it, else nothing: no verb but a page depends on it.
fn known<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SecondLook>, D::Error> {
    let value = Option::<Value>::deserialize(deserializer)?;
    Ok(value.and_then(|value| serde_json::from_value(value).ok()))
}

fn one() -> u64 {
    1
}

// A cell of which a report says nothing was not run.
fn missing() -> String {
    "missing".into()
}

fn discarded() -> String {
    CellVerdict::Discarded.as_str().into()
}

/// Whatever is a quantity; another collo's field that is none is passed over, one of ours is refused.
pub(super) fn quantities<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Quantities, D::Error> {
    let all = Ordered::<Value>::deserialize(deserializer)?;
    let read = |(name, value)| match Option::<Quantity>::deserialize(value) {
        Err(why) if Key::find(name).is_some() => Some(Err(D::Error::custom(format!("{name}: {why}")))),
        read => Some(Ok((name, read.ok()?))),
    };
    all.iter().filter_map(read).collect()
}

fn of_cells(generator: &mut SchemaGenerator) -> Schema {
    properties(Key::with(Trait::Cell), generator)
}

fn of_members(generator: &mut SchemaGenerator) -> Schema {
    properties(Key::with(Trait::Member), generator)
}

/// An object with these quantities.
pub(super) fn properties(keys: impl Iterator<Item = Key>, generator: &mut SchemaGenerator) -> Schema {
    let names: Vec<&str> = keys.map(|key| key.name).collect();
    let quantity = generator.subschema_for::<Option<Quantity>>();
    let properties: Map<String, Value> = names.iter().map(|name| (name.to_string(), quantity.clone().to_value())).collect();
    json_schema!({ "type": "object", "properties": properties, "required": names })
}
