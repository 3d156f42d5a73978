//! The anchors of the page: rows of cells, and reasons for their validity; names in addresses.

use std::collections::BTreeMap;

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_analysis::cell::verdict::CellVerdict;

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

/// A name as part of an address.
pub fn address(name: &str) -> String {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"-._~".contains(b);
    name.bytes().map(|b| if plain(&b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

/// Maximum number of reasons that the page lists; more are in `report.json`.
pub const REASONS: usize = 200;

/// Cells of one verdict for the same reasons.
pub struct ReasonGroup<'a> {
    pub verdict: CellVerdict,
    pub reasons: &'a [String],
    /// In the order of the plan.
    pub cells: Vec<&'a Cell>,
}

/// The cells whose validity needs a reason, those with the same ones together, in the order of the plan.
pub fn with_reasons(analysis: &Analysis) -> Vec<ReasonGroup<'_>> {
    let mut groups: Vec<ReasonGroup> = Vec::new();
    let mut places = BTreeMap::<(CellVerdict, &[String]), usize>::new();
    for cell in analysis.cells.iter().filter(|c| !c.validity.reasons.is_empty()) {
        let (verdict, reasons) = (cell.verdict(), cell.validity.reasons.as_slice());
        let at = *places.entry((verdict, reasons)).or_insert_with(|| {
            groups.push(ReasonGroup { verdict, reasons, cells: Vec::new() });
            groups.len() - 1
        });
        groups[at].cells.push(cell);
    }
    groups
}
