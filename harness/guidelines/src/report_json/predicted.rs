//! What `report.json` has of predictions: who made them, and what was claimed of each member before it ran. None of it is measured.

use collo_store::{GraphNumbers, Predicted, PredictedAlone, PredictedMember, PredictedMemory, PredictorRecord};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// When a campaign was predicted, and by whom: null where no predictor served.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline, deny_unknown_fields)]
pub struct PredictedBy {
    pub made_utc: String,
    pub memory: Option<PredictorJson>,
    /// What members do alone.
    pub utilisation: Option<PredictorJson>,
    /// What company costs.
    pub company: Option<PredictorJson>,
}

/// A predictor, as it was then.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline, deny_unknown_fields)]
pub struct PredictorJson {
    pub name: String,
    /// Of its file.
    pub sha256: String,
    /// Whose measurements it was fitted on: `published`, `own`, `simulated`.
    pub fitted_on: String,
    pub device: Option<String>,
    /// Its intervals are this many times as wide, as logarithms, because it was fitted under other conditions.
    pub widened: f64,
    /// Of how many architectures the width of its intervals is.
    pub families: usize,
}

/// What was predicted of a member.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline, deny_unknown_fields)]
pub struct PredictedJson {
    pub memory: Option<PredictedMemoryJson>,
    /// What it does alone on the whole device, each with `estimate`, `low` and `high`.
    #[schemars(with = "Option<Map<String, Value>>")]
    pub alone: Option<PredictedAlone>,
    /// Its training step in numbers.
    #[schemars(with = "Option<Map<String, Value>>")]
    pub graph: Option<GraphNumbers>,
    /// Why something is absent.
    pub reason: Option<String>,
}

/// Its memory on the device, warm-up included.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline, deny_unknown_fields)]
pub struct PredictedMemoryJson {
    pub estimate_bytes: u64,
    /// While it trains, once the cache of the warm-up was given back: what readings are compared with, with bounds in proportion.
    pub training_bytes: u64,
    /// 95 % of measurements are meant to be between `low_bytes` and `high_bytes`.
    pub low_bytes: u64,
    pub high_bytes: u64,
    /// 95 % are meant to be below.
    pub upper_bytes: u64,
    /// It cannot run in less.
    pub least_bytes: u64,
    /// Of the estimate: what the process holds outside its allocator.
    pub context_bytes: u64,
    /// How many stored runs that is from; 0: it is the predictor's.
    pub context_runs: usize,
    /// Why it is no exact replay.
    pub approximate: Vec<String>,
}

impl From<&Predicted> for PredictedBy {
    fn from(of: &Predicted) -> Self {
        PredictedBy {
            made_utc: of.made_utc.clone(),
            memory: of.predictor.as_ref().map(Into::into),
            utilisation: of.utilisation_predictor.as_ref().map(Into::into),
            company: of.company_predictor.as_ref().map(Into::into),
        }
    }
}

impl From<&PredictorRecord> for PredictorJson {
    fn from(by: &PredictorRecord) -> Self {
        PredictorJson {
            name: by.name.clone(),
            sha256: by.sha256.clone(),
            fitted_on: by.fitted_on.clone(),
            device: by.device.clone(),
            widened: by.widened,
            families: by.families,
        }
    }
}

impl From<&PredictedMember> for PredictedJson {
    fn from(of: &PredictedMember) -> Self {
        PredictedJson {
            memory: of.memory.as_ref().map(Into::into),
            alone: of.alone.clone(),
            graph: of.graph.clone(),
            reason: of.reason.clone(),
        }
    }
}

impl From<&PredictedMemory> for PredictedMemoryJson {
    fn from(of: &PredictedMemory) -> Self {
        PredictedMemoryJson {
            estimate_bytes: of.estimate_bytes,
            training_bytes: of.training_bytes,
            low_bytes: of.low_bytes,
            high_bytes: of.high_bytes,
            upper_bytes: of.upper_bytes,
            least_bytes: of.least_bytes,
            context_bytes: of.context_bytes,
            context_runs: of.context_runs,
            approximate: of.approximate.clone(),
        }
    }
}
