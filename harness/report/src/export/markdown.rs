//! `report.md` without its figures: what is printed stands alone. Each figure's values stand in their table.

use crate::analysis::Analysis;
use crate::document::markdown;
use crate::section;

/// The report's text.
pub fn report(analysis: &Analysis) -> String {
    markdown::document(&section::document(analysis, None))
}
