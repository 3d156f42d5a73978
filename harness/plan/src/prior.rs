//! What is known before a plan runs: what was measured earlier, and what is predicted.

use std::collections::BTreeSet;

use collo_store::{CellRecord, MemberSpec, Predicted, PredictedCompany, PredictedMemory, PredictedValue};

use crate::earlier::Measured;
use crate::past::PastRuns;

/// Beside an experiment and a device, all that a plan is made from.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prior {
    pub past: PastRuns,
    /// What reports say of cells on this device.
    pub measured: Measured,
    /// Absent if nothing is predicted.
    pub predicted: Option<Predicted>,
    /// The prediction is still to come.
    pub is_to_predict: bool,
    /// Labels of cells that the campaign to be continued has: no prediction refuses them any more.
    pub begun: BTreeSet<String>,
}

impl Prior {
    /// What is predicted of the memory of a member in a cell.
    pub fn memory_of(&self, cell: &CellRecord, member: &MemberSpec) -> Option<&PredictedMemory> {
        self.predicted.as_ref()?.of(&member.solo, &cell.mode)?.memory.as_ref()
    }

    /// The board power that is predicted of a cell, in watts.
    pub fn power_of(&self, cell: &CellRecord) -> Option<PredictedValue> {
        let alone = |only: &MemberSpec| self.predicted.as_ref()?.of(&only.solo, &cell.mode)?.alone.as_ref()?.power_w;
        match &cell.members[..] {
            [only] if only.solo == cell.cell => alone(only),
            _ => self.useful_company_of(cell)?.power_w,
        }
    }

    /// What is predicted of a group, unless it is too uncertain to plan with.
    pub fn useful_company_of(&self, cell: &CellRecord) -> Option<&PredictedCompany> {
        self.company_of(cell).filter(|company| company.gain_withheld.is_none())
    }

    /// What is predicted of a group.
    pub fn company_of(&self, cell: &CellRecord) -> Option<&PredictedCompany> {
        self.predicted.as_ref()?.of_cell(&cell.cell)?.company.as_ref()
    }
}
