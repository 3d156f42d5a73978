//! The anchors of the page: rows of cells, and reasons for their validity.

use crate::analysis::{Analysis, Cell};

/// With more cells the page has only the most informative rows.
pub const TOO_MANY: usize = 2000;

/// The anchor of a cell's row. Its label may contain anything, its index cannot. Empty if the page has no such row.
pub fn cell_id(analysis: &Analysis, label: &str) -> String {
    if analysis.cells.len() > TOO_MANY {
        // The table has only the most telling rows, and a link must lead somewhere.
        return String::new();
    }
    analysis.cells.iter().position(|c| c.name() == label).map_or_else(String::new, |i| format!("c-{i}"))
}

/// Maximum number of reasons that the page lists; more are in `report.json`.
pub const REASONS: usize = 200;

/// The cells whose validity needs a reason, in the order of the plan, as many as the page lists.
pub fn with_reasons(analysis: &Analysis) -> impl Iterator<Item = &Cell> {
    analysis.cells.iter().filter(|c| !c.validity.reasons.is_empty()).take(REASONS)
}
