//! Cells that earlier campaigns measured, the newest first, with what is known of each: from stored runs (`past.rs`), or from a report.
//!
//! In: cells, handed over by those who may read them. Out: what is known of a cell, of a member alone, or of one on a slice.
//!
//! To add to what makes two cells the same: `CellRecord::is_same` of the store, which is the only place.

use std::collections::HashSet;

use collo_quantity::stats::Quantity;
use collo_store::{CellRecord, MemberSpec};

/// Cells of one device.
#[derive(Debug, Clone, PartialEq)]
pub struct Earlier<T> {
    cells: Vec<(CellRecord, T)>,
}

impl<T> Default for Earlier<T> {
    fn default() -> Self {
        Earlier { cells: Vec::new() }
    }
}

impl<T> FromIterator<(CellRecord, T)> for Earlier<T> {
    /// The newest first.
    fn from_iter<I: IntoIterator<Item = (CellRecord, T)>>(cells: I) -> Self {
        Earlier { cells: cells.into_iter().collect() }
    }
}

impl<T> Earlier<T> {
    /// Add a cell that is older than all others.
    pub(crate) fn add(&mut self, cell: CellRecord, known: T) {
        self.cells.push((cell, known));
    }

    /// The same cell, on the same part of the device; where none was measured on that, one of which the part is not known.
    pub fn of(&self, cell: &CellRecord) -> Option<&T> {
        let same = || self.cells.iter().filter(|(record, _)| record.is_same(cell));
        same().find(|(record, _)| record.slots == cell.slots).or_else(|| same().next()).map(|(_, known)| known)
    }

    fn solos(&self) -> impl Iterator<Item = (&MemberSpec, &T)> {
        self.cells.iter().filter_map(|(record, known)| Some((solo(record)?, known)))
    }

    /// A member alone on the whole device, not one that an observer may slow down.
    pub fn alone(&self, member: &MemberSpec) -> Option<&T> {
        self.solos().find(|(own, _)| own.is_same(member)).map(|(_, known)| known)
    }

    /// A member alone on a slice, by the label of that cell.
    pub fn alone_on(&self, label: &str, member: &MemberSpec) -> Option<&T> {
        let is_it = |record: &CellRecord| record.cell == label && matches!(&record.members[..], [own] if own.is_same(member));
        self.cells.iter().find(|(record, _)| is_it(record)).map(|(_, known)| known)
    }
}

/// The member of a cell of one on the whole device, without an observer.
pub(crate) fn solo(record: &CellRecord) -> Option<&MemberSpec> {
    match &record.members[..] {
        [only] if record.sharing == "solo" && record.trace.is_none() && record.observe.is_none() => Some(only),
        _ => None,
    }
}

/// What reports have of cells, valid or indicative.
pub type Measured = Earlier<MeasuredCell>;

/// What a report has of one cell, without what it does not trust; what was not measured is absent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MeasuredCell {
    /// The campaign whose report it is from.
    pub campaign: String,
    /// Work per second relative to running in turn.
    pub throughput_gain: Option<f64>,
    pub sm_active_ratio: Option<f64>,
    pub gpu_utilization_ratio: Option<f64>,
    pub dram_active_ratio: Option<f64>,
    /// How many times as long each member takes as alone, in their order.
    pub slowdowns: Vec<Option<Quantity>>,
    /// Of a member alone; absent of a group.
    pub alone: MeasuredMember,
}

/// What a report has of a member alone.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MeasuredMember {
    /// The seconds of one training step; absent if items were not reported.
    pub step_s: Option<f64>,
    pub epoch_time_s: Option<f64>,
    pub memory_bytes: Option<f64>,
    /// The CPU that it takes, in cores.
    pub cpu_ratio: Option<f64>,
}

impl Measured {
    /// Seconds of a step of the same training alone, by batch size, the newest of each.
    pub fn steps_s(&self, spec: &MemberSpec) -> Vec<(u64, f64)> {
        let mut seen = HashSet::new();
        let same = self.solos().filter(|(own, _)| own.is_same_but_for_batch(spec));
        let steps = same.filter_map(|(own, known)| Some((u64::from(own.batch_size?), known.alone.step_s?)));
        steps.filter(|(batch, _)| seen.insert(*batch)).collect()
    }
}
