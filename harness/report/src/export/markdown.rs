//! `report.md` without its figures, complete in itself. Each figure's values are in its table.

use collo_figures::document::markdown;

use crate::report::Report;
use crate::sections;

/// The report's text.
pub fn report(report: &Report) -> String {
    markdown::document(&sections::document(report, None))
}
