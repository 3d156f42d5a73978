//! What `report.json` has of predictions: who made them, and what was claimed of each member before it ran. None of it is measured.

use collo_store::{GraphNumbers, Predicted, PredictedAlone, PredictedMember, PredictedMemory, PredictorRecord};
use schemars::JsonSchema;
use serde::ser::Error;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value, json};

/// When a campaign was predicted, and by whom: null where no predictor served.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline, deny_unknown_fields)]
pub struct PredictedBy {
    pub made_utc: String,
    pub memory: Option<PredictorRecord>,
    /// What members do alone.
    pub utilisation: Option<PredictorRecord>,
    /// What company costs.
    pub company: Option<PredictorRecord>,
}

/// What was predicted of a member.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline, deny_unknown_fields)]
pub struct PredictedJson {
    #[serde(serialize_with = "complete")]
    pub memory: Option<PredictedMemory>,
    /// What it does alone on the whole device, each with `estimate`, `low` and `high`.
    #[schemars(with = "Option<Map<String, Value>>")]
    pub alone: Option<PredictedAlone>,
    /// Its training step in numbers.
    #[schemars(with = "Option<Map<String, Value>>")]
    pub graph: Option<GraphNumbers>,
    /// Why something is absent.
    pub reason: Option<String>,
}

impl From<&Predicted> for PredictedBy {
    fn from(of: &Predicted) -> Self {
        PredictedBy {
            made_utc: of.made_utc.clone(),
            memory: of.predictor.clone(),
            utilisation: of.utilisation_predictor.clone(),
            company: of.company_predictor.clone(),
        }
    }
}

impl From<&PredictedMember> for PredictedJson {
    fn from(of: &PredictedMember) -> Self {
        PredictedJson { memory: of.memory.clone(), alone: of.alone.clone(), graph: of.graph.clone(), reason: of.reason.clone() }
    }
}

/// A store leaves out an empty list of what makes a claim approximate; a report has every field.
fn complete<S: Serializer>(memory: &Option<PredictedMemory>, to: S) -> Result<S::Ok, S::Error> {
    let mut value = serde_json::to_value(memory).map_err(S::Error::custom)?;
    if let Some(fields) = value.as_object_mut() {
        fields.entry("approximate").or_insert_with(|| json!([]));
    }
    value.serialize(to)
}
