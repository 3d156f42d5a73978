//! Where a cell stands in a figure by mode and degree, and the mode that it is drawn as. In: the cells of a workload. Out: groups
//! with the modes in one order, and the cells in which a member is alone on a slice.

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_figures::modes::{in_order, mode_order, slices};

/// Cells of a workload by degree, modes in their order.
pub fn by_degree<'a>(analysis: &'a Analysis, workload: &'a str) -> Vec<&'a Cell> {
    let mut cells: Vec<&Cell> = analysis.of_workload(workload).collect();
    cells.sort_by(|a, b| (a.record.degree, mode_order(&a.record.sharing)).cmp(&(b.record.degree, mode_order(&b.record.sharing))));
    cells
}

/// One member alone on a slice: what a slice is worth is another question than what sharing costs.
pub fn alone_on_slice(cell: &Cell) -> bool {
    cell.record.degree == 1 && cell.record.mode.partitioned
}

/// The name of the instances of a cell on a partitioned GPU: `3g.20gb` of `2×3g.20gb`; `None` if they differ or are unknown.
fn instance(cell: &Cell) -> Option<&str> {
    let slots = cell.record.slots.as_deref().filter(|_| cell.record.mode.partitioned)?;
    let size = slots.rsplit('×').next()?;
    (!size.contains(',') && size.contains('g')).then_some(size)
}

/// The mode that a cell is drawn as: alone on a slice, that slice.
pub fn drawn_as(cell: &Cell) -> String {
    match instance(cell).filter(|_| alone_on_slice(cell) && slices(&cell.record.sharing).is_none()) {
        Some(size) => format!("mig:{size}"),
        None => cell.record.sharing.clone(),
    }
}

/// `2g` of members on `2g.10gb`.
pub fn compute_slices(cell: &Cell) -> Option<String> {
    slices(&cell.record.sharing).or_else(|| slices(&format!("mig:{}", instance(cell)?))).map(|n| format!("{n}g"))
}

/// A workload's cells as groups by degree, each mode at the same place of every group, and its cells alone on slices by size.
pub struct Places<'a> {
    pub groups: Vec<(u32, Vec<Option<&'a Cell>>)>,
    pub slices: Vec<&'a Cell>,
}

impl<'a> Places<'a> {
    /// With solo at the place of the first mode of its degree, or without it where a line stands for it.
    pub fn of(analysis: &'a Analysis, workload: &'a str, with_solo: bool) -> Self {
        let mut slices: Vec<&Cell> = by_degree(analysis, workload).into_iter().filter(|c| alone_on_slice(c)).collect();
        slices.sort_by_cached_key(|c| {
            let mode = drawn_as(c);
            let (rank, size, name) = mode_order(&mode);
            (rank, size, name.to_string())
        });
        let cells = by_degree(analysis, workload).into_iter().filter(|c| !alone_on_slice(c));
        let cells: Vec<&Cell> = cells.filter(|c| with_solo || !c.is_solo()).collect();
        let modes = in_order(cells.iter().map(|c| c.record.sharing.as_str()).filter(|m| *m != "solo"));
        let mut groups: Vec<(u32, Vec<Option<&Cell>>)> = Vec::new();
        for here in cells.chunk_by(|a, b| a.record.degree == b.record.degree) {
            let at = |mode: &&str| here.iter().find(|c| c.record.sharing == *mode).copied();
            let mut places: Vec<Option<&Cell>> = modes.iter().map(at).collect();
            if let Some(solo) = here.iter().find(|c| c.record.sharing == "solo") {
                // One naive member is the solo one; without that place it has its own.
                match modes.iter().position(|m| *m == "naive").filter(|i| places[*i].is_none()) {
                    Some(naive) => places[naive] = Some(solo),
                    None => places.insert(0, Some(solo)),
                }
            }
            groups.push((here[0].record.degree, places));
        }
        Places { groups, slices }
    }
}

/// The sentence of a caption about what stands where.
pub fn places_note(analysis: &Analysis, slices_drawn: bool) -> &'static str {
    if analysis.groups().all(|c| !c.record.is_uniform()) {
        ""
    } else if slices_drawn {
        " At each degree (×N, the number of members) the modes stand in one order, marked below; the line with its band is solo, one member on the whole GPU. Under MIG the instance of a member is named below its mark. “Alone on a slice”: one member on one instance, the rest of the GPU idle."
    } else {
        " At each degree (×N, the number of members) the modes stand in one order, marked below; the line with its band is solo."
    }
}
