//! How many epochs a member measures.

use serde::{Deserialize, Serialize};

/// How long a member measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpochGoal {
    /// Epochs at least; with two or more the first is warm-up, and not measured.
    pub epochs: u32,
    /// Nanoseconds from the start of the first measured epoch: measured epochs follow until the end of one lies at least so late.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub measure_for_ns: u64,
}

fn is_zero(ns: &u64) -> bool {
    *ns == 0
}

impl EpochGoal {
    /// Measured epochs at least: all but the warm-up, or the only one.
    pub fn measured(&self) -> u32 {
        self.epochs.saturating_sub(1).max(1)
    }

    /// True if a member with so many measured epochs, which began and ended then, has measured enough.
    pub fn is_reached(&self, measured: u32, first_start_ns: u64, last_end_ns: u64) -> bool {
        measured >= self.measured() && last_end_ns.saturating_sub(first_start_ns) >= self.measure_for_ns
    }
}
