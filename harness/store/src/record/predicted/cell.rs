//! What was predicted of a group that shares a device: what its members cost one another.

use serde::{Deserialize, Serialize};

use super::PredictedValue;

/// What was predicted of a cell with several members.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PredictedCell {
    /// Its label.
    pub cell: String,
    /// Absent if it could not be predicted.
    pub company: Option<PredictedCompany>,
    /// Why it is absent.
    pub reason: Option<String>,
}

/// What company was predicted to cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PredictedCompany {
    /// Of each member, in the order of the cell: epoch time in company ÷ alone.
    pub slowdowns: Vec<PredictedValue>,
    /// Σ of the members' progress while all of them train.
    pub stp: PredictedValue,
    /// Work per second relative to running in turn, as the report defines it for the cell: STP where finished members keep running, else
    /// from the lengths of their epochs; absent where these are not known.
    #[serde(default)]
    pub throughput_gain: Option<PredictedValue>,
    /// Least ÷ largest progress.
    pub fairness: PredictedValue,
    /// Board power while all of them train; absent where power is not predicted.
    pub power_w: Option<PredictedValue>,
    /// `measured`: from members that had been measured alone; `predicted`: of some the profile was predicted itself.
    pub from: AloneFrom,
    /// What stands in for something that was not known, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assumed: Vec<String>,
    /// Why it is beyond what the predictor was fitted on, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extrapolated: Vec<String>,
    /// Why a plan shows neither this gain nor a time derived from it; absent where it shows them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gain_withheld: Option<String>,
}

/// Where the members' profiles come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AloneFrom {
    Measured,
    Predicted,
}

impl AloneFrom {
    pub fn as_str(self) -> &'static str {
        match self {
            AloneFrom::Measured => "measured",
            AloneFrom::Predicted => "predicted",
        }
    }
}
