//! What is known before a plan runs: what was measured earlier, and what is predicted.

use std::collections::BTreeSet;

use collo_store::{CellRecord, MemberSpec, Predicted, PredictedMemory};

use crate::past::PastRuns;

/// Beside an experiment and a device, all that a plan is made from.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prior {
    pub past: PastRuns,
    /// Absent if nothing is predicted.
    pub predicted: Option<Predicted>,
    /// Labels of cells that the campaign to be continued has: no prediction refuses them any more.
    pub begun: BTreeSet<String>,
}

impl Prior {
    /// What is predicted of the memory of a member in a cell.
    pub fn memory_of(&self, cell: &CellRecord, member: &MemberSpec) -> Option<&PredictedMemory> {
        self.predicted.as_ref()?.of(&member.solo, &cell.mode)?.memory.as_ref()
    }
}
