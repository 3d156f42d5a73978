//! Whether the numbers of a cell may be used. A cell that does not fit into memory has none, and yet it is a result: it is neither
//! valid nor discarded.

use collo_store::{Outcome, Verdict};

use super::Cell;

/// The verdict on a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CellVerdict {
    Valid,
    /// Kept and shown, never carried into a guideline.
    Indicative,
    /// None of its numbers may be used.
    Discarded,
    /// None of its runs fitted into the device's memory.
    OutOfMemory,
}

impl CellVerdict {
    /// In the order of presentation.
    pub const ALL: [CellVerdict; 4] =
        [CellVerdict::Valid, CellVerdict::Indicative, CellVerdict::Discarded, CellVerdict::OutOfMemory];

    /// Its keyword, as in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            CellVerdict::Valid => "valid",
            CellVerdict::Indicative => "indicative",
            CellVerdict::Discarded => "discarded",
            CellVerdict::OutOfMemory => "out_of_memory",
        }
    }

    /// The keyword as people read it.
    pub fn text(self) -> &'static str {
        if self == CellVerdict::OutOfMemory { "out of memory" } else { self.as_str() }
    }
}

impl Cell {
    /// Its verdict: that of its validity, unless all runs that ended by themselves ran out of memory.
    pub fn verdict(&self) -> CellVerdict {
        if let Some(reported) = &self.reported {
            return reported.verdict;
        }
        let ended = || self.repetitions.iter().map(|r| &r.record().outcome).filter(|o| o.is_final());
        if ended().next().is_some() && ended().all(|o| matches!(o, Outcome::OutOfMemory { .. })) {
            return CellVerdict::OutOfMemory;
        }
        match self.validity.verdict {
            Verdict::Valid => CellVerdict::Valid,
            Verdict::Indicative => CellVerdict::Indicative,
            Verdict::Discarded => CellVerdict::Discarded,
        }
    }
}
