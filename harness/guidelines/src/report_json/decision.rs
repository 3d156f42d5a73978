//! A decision of `report.json`: what to run for the most throughput.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the groups of a workload or mix decide for the most throughput.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub struct DecisionJson {
    /// The workload, or the mix.
    pub subject: String,
    /// The solo cell of a workload, or those of all members of a mix: by them it is found in other reports.
    pub members: Vec<String>,
    pub throughput: Decided,
    /// The cells to run, any of which is as good as the others; the simplest mode first. Empty if none is.
    pub cells: Vec<String>,
    /// Why none of several is preferred, or why nothing is decided.
    pub reason: Option<String>,
    /// The energy of the first of these cells, or of the baseline that is run in turn, rests on too few steps of the counter.
    pub few_energy_steps: bool,
}

/// What is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Decided {
    /// A group that is certainly better than running in turn.
    Run,
    /// Every group was shown not to be better.
    InTurn,
    Open,
}
