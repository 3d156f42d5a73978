//! Sections without content, and why.

use crate::analysis::Analysis;
use crate::document::Section;

/// A section without content.
pub fn without(id: &'static str, title: &'static str, why: impl Into<String>) -> Section {
    Section { id, title, chip: None, finding: why.into(), blocks: Vec::new() }
}

/// Why no cell of an analysis has numbers at all, if so.
pub fn nothing(analysis: &Analysis) -> Option<&'static str> {
    if analysis.cells.is_empty() {
        Some("The plan has no cells.")
    } else if analysis.cells.iter().all(|c| c.repetitions.is_empty()) {
        Some("Nothing has run yet.")
    } else if analysis.cells.iter().all(|c| c.counted.is_empty()) {
        Some("No run completed with a usable number; see Feasibility for how each cell ended.")
    } else {
        None
    }
}
