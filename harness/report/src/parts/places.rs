//! Where a cell stands in a figure by mode and degree, and the mode that it is drawn as. In: the cells of a workload. Out: by degree,
//! beginning with what is alone, the cells with the modes in one order.

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_figures::modes::{in_order, mode_order, slices};

/// Cells of a workload by degree, modes in their order.
pub fn by_degree<'a>(analysis: &'a Analysis, workload: &'a str) -> Vec<&'a Cell> {
    let mut cells: Vec<&Cell> = analysis.of_workload(workload).collect();
    cells.sort_by(|a, b| (a.record.degree, mode_order(&a.record.sharing)).cmp(&(b.record.degree, mode_order(&b.record.sharing))));
    cells
}

/// One member alone on a slice, the rest of the GPU idle.
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

/// A workload's cells by degree: each mode of groups at the same place, and before them, at ×1, what one member does alone.
pub struct Places<'a> {
    pub groups: Vec<(u32, Vec<Option<&'a Cell>>)>,
}

impl<'a> Places<'a> {
    /// With solo as one of the cells at ×1; without it where a line stands for it and nothing else ran alone.
    pub fn of(analysis: &'a Analysis, workload: &'a str, with_solo: bool) -> Self {
        let cells = by_degree(analysis, workload);
        let mut alone: Vec<&Cell> = cells.iter().copied().filter(|c| c.record.degree == 1).collect();
        alone.sort_by_cached_key(|c| {
            let mode = drawn_as(c);
            let (rank, size, name) = mode_order(&mode);
            (rank, size, name.to_string())
        });
        if alone.iter().all(|c| c.is_solo()) && !with_solo {
            alone.clear();
        }
        let shared: Vec<&Cell> = cells.into_iter().filter(|c| c.record.degree > 1).collect();
        let modes = in_order(shared.iter().map(|c| c.record.sharing.as_str()));
        let mut groups: Vec<(u32, Vec<Option<&Cell>>)> = Vec::new();
        if !alone.is_empty() {
            groups.push((1, alone.into_iter().map(Some).collect()));
        }
        for here in shared.chunk_by(|a, b| a.record.degree == b.record.degree) {
            let at = |mode: &&str| here.iter().find(|c| c.record.sharing == *mode).copied();
            groups.push((here[0].record.degree, modes.iter().map(at).collect()));
        }
        Places { groups }
    }
}

/// The sentence of a caption about what stands where.
pub fn places_note(analysis: &Analysis) -> &'static str {
    let uniform = || analysis.groups().filter(|c| c.record.is_uniform());
    if uniform().next().is_none() {
        ""
    } else if uniform().any(alone_on_slice) {
        " At each degree (×N, the number of members) the modes stand in one order, marked below; the line with its band is solo, one member on the whole GPU. At ×1 stands what one member does alone; on an instance, named below its mark, the rest of the GPU is idle."
    } else {
        " At each degree (×N, the number of members) the modes stand in one order, marked below; the line with its band is solo."
    }
}
