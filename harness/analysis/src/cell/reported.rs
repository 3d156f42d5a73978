//! A cell whose runs are not here, because it was read from a report. In: a cell. Out: what is known of its runs in both cases. To count
//! runs, ask here: the list of stored runs of such a cell is empty, which is no statement about what ran.

use std::collections::BTreeMap;

use collo_store::{CellRecord, Validity};

use super::verdict::CellVerdict;
use super::{Cell, Regime};

/// What a report has of the runs of a cell.
#[derive(Debug, Clone)]
pub struct ReportedRuns {
    /// Runs that its numbers come from.
    pub counted: usize,
    pub outcome: &'static str,
    pub verdict: CellVerdict,
    /// By member.
    pub regimes: Vec<Option<Regime>>,
    /// All were measured on the same device.
    pub on_one_device: bool,
}

impl Cell {
    /// A cell with nothing but what a report has of its runs.
    pub fn of_report(record: CellRecord, reported: ReportedRuns) -> Cell {
        Cell {
            record,
            reported: Some(reported),
            outcomes: BTreeMap::new(),
            validity: Validity::valid(),
            suspicious: Vec::new(),
            second_look: None,
            repetitions: Vec::new(),
            counted: Vec::new(),
            quantities: BTreeMap::new(),
            by_run: BTreeMap::new(),
            metrics: BTreeMap::new(),
            members: Vec::new(),
            absent: BTreeMap::new(),
            memory_kind: None,
            gain_verdict: None,
            lender: None,
            no_baseline: None,
        }
    }

    /// The number of runs that its numbers come from.
    pub fn count(&self) -> usize {
        self.reported.as_ref().map_or(self.counted.len(), |reported| reported.counted)
    }

    /// True if some run gives it numbers.
    pub fn counts(&self) -> bool {
        self.count() > 0
    }

    /// True if some run of it was made, however that ended.
    pub fn ran(&self) -> bool {
        match &self.reported {
            Some(reported) => reported.counted > 0 || self.outcomes.iter().any(|(word, n)| *word != MISSING && *n > 0),
            None => !self.repetitions.is_empty(),
        }
    }
}

/// For a planned run that is not stored.
pub const MISSING: &str = "missing";
