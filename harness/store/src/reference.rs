//! A value that an experiment expects of a cell, and how far a measured one may be from it.

use serde::{Deserialize, Serialize};

/// A reference value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reference {
    /// The label of the cell.
    pub cell: String,
    /// As in `report.json`: `throughput_gain`.
    pub quantity: String,
    /// In the unit of the quantity's name.
    pub value: f64,
    /// The largest relative distance from it, to either side.
    pub tolerance_ratio: f64,
    /// The GPU model that it was measured on: elsewhere it says nothing. Any part of the driver's name; absent for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
}

impl Reference {
    /// True for a device that it is about.
    pub fn is_about(&self, device: &str) -> bool {
        self.device.as_ref().is_none_or(|part| device.to_lowercase().contains(&part.to_lowercase()))
    }

    /// The least and the largest value within its tolerance.
    pub fn bounds(&self) -> (f64, f64) {
        let half = (self.value * self.tolerance_ratio).abs();
        (self.value - half, self.value + half)
    }
}
