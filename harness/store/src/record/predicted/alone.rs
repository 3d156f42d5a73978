//! What was predicted of a member alone on its device: how busy it keeps it, and how fast it is.

use serde::{Deserialize, Serialize};

/// A number that was predicted, in the unit of its field.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PredictedValue {
    pub estimate: f64,
    /// 95 % of measurements are meant to be between these.
    pub low: f64,
    pub high: f64,
}

/// What a member does alone on the whole device, as means over its measured window; what could not be predicted is absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PredictedAlone {
    pub sm_active_ratio: Option<PredictedValue>,
    pub gpu_utilization_ratio: Option<PredictedValue>,
    pub dram_active_ratio: Option<PredictedValue>,
    pub power_w: Option<PredictedValue>,
    pub items_per_s: Option<PredictedValue>,
}
