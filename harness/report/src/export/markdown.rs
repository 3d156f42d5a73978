//! `report.md` without its figures: what is printed stands alone. Each figure's values stand in their table.

use crate::Report;
use crate::document::markdown;
use crate::section;

/// The report's text.
pub fn report(report: &Report) -> String {
    markdown::document(&section::document(report, None))
}
