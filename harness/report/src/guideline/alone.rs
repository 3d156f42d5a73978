//! The cost of a mode without sharing: one member under an MPS daemon, or on the instance that is the whole GPU.

use super::{Evidence, Guideline, Holds, Published, STUDY, agreement, all_one, command, on_a_card, worded};
use collo_gpus::notation::Size;

use crate::analysis::{Analysis, Cell};
use crate::number;
use crate::quantity::Key;

const PUBLISHED: Published = Published {
    statement: "MPS and MIG have negligible overhead when one model has the whole GPU.",
    short: "negligible",
    source: STUDY,
};

/// Compute slices of the whole instance that its only member has; `None` if it has a part of one, or no instance.
fn slices(cell: &Cell) -> Option<u32> {
    let slice = cell.counted().next()?.record().members.first()?.slice.as_deref()?;
    Size::parse(slice).filter(|size| size.compute.is_none()).map(|size| size.slices)
}

pub(super) fn guideline(analysis: &Analysis) -> Option<Guideline> {
    if !on_a_card(analysis) {
        return None;
    }
    let single = |c: &&Cell| c.record.degree == 1 && !c.is_solo() && c.is_valid() && c.get(Key::Slowdown).is_some();
    // A card that no file describes is taken to be cut like most.
    let whole = collo_gpus::of_product(&analysis.campaign.device.name).and_then(|model| model.compute_slices).unwrap_or(7);
    let mps = |c: &Cell| c.record.mode.mps && !c.record.mode.limited && !c.record.mode.partitioned;
    let is_whole = |c: &&Cell| mps(c) || slices(c) == Some(whole);
    let cells: Vec<&Cell> = analysis.groups().filter(single).filter(is_whole).collect();
    if cells.is_empty() {
        return None;
    }
    let holds = all_one(analysis, &cells, Key::Slowdown);
    let slowdown = |c: &&&Cell| c.get(Key::Slowdown).map_or(0.0, |q| q.estimate);
    let most = cells.iter().max_by(|a, b| slowdown(a).total_cmp(&slowdown(b)));
    let finding = most.map_or_else(String::new, |c| {
        format!("Slowest of {} relative to the plain GPU: `{}`.", number::count(cells.len(), "single member"), c.name())
    });
    let (statement, finding) = worded(
        holds,
        "Is a mode without cost when one member trains alone?",
        "Leave MPS or a whole-GPU instance on when one member trains alone.",
        "turn sharing off then.",
        finding,
    );
    Some(Guideline {
        id: "alone-overhead",
        statement,
        finding,
        agrees: agreement(analysis, holds),
        key: most.and_then(|c| Evidence::of(c, Key::Slowdown)),
        tested: format!(
            "slowdown of one member under MPS, or on the instance of all {whole} slices, within {} of 1 by the whole interval",
            number::percent(analysis.campaign.thresholds.relevant_ratio)
        ),
        holds,
        evidence: cells.iter().filter_map(|c| Evidence::of(c, Key::Slowdown)).collect(),
        published: Some(PUBLISHED),
        command: (holds == Holds::Open).then(|| command(analysis)).flatten(),
        summary: false,
    })
}
