//! How narrow an experiment wants intervals to be: cells are repeated until they are, up to a limit declared before.

use serde::{Deserialize, Serialize};

/// The width that further repetitions are for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WantedWidth {
    /// As in `report.json`: `throughput_gain`.
    pub quantity: String,
    /// The largest width of the 95 % interval, from end to end, as a share of the estimate.
    pub width_ratio: f64,
    /// Repetitions of a cell at most.
    pub at_most: u32,
}
