//! What a mode costs when nobody shares: one member under an MPS daemon, or on the instance that is the whole card.

use super::{Evidence, Guideline, Published, STUDY, Verdict, all_one, command, on_a_card};
use crate::analysis::{Analysis, Cell};
use crate::number;
use crate::quantity::Key;

const PUBLISHED: Published = Published {
    statement: "MPS and MIG have negligible overhead when one model has the whole card.",
    short: "negligible",
    source: STUDY,
};

/// Compute slices of an instance: the number before `g.` in its slot.
pub(super) fn slices(cell: &Cell) -> Option<u32> {
    let slots = cell.record.slots.as_deref()?;
    let profile = slots.split('×').next_back()?;
    profile.split('g').next()?.trim().parse().ok()
}

pub(super) fn guideline(analysis: &Analysis) -> Option<Guideline> {
    if !on_a_card(analysis) {
        return None;
    }
    let single = |c: &&Cell| c.record.degree == 1 && !c.is_solo() && c.is_valid() && c.get(Key::Slowdown).is_some();
    // The largest instance there is: seven slices on most cards, four on an A30.
    let whole = if analysis.campaign.device.name.contains("A30") { 4 } else { 7 };
    let is_whole = |c: &&Cell| c.record.sharing == "mps" || slices(c) == Some(whole);
    let cells: Vec<&Cell> = analysis.groups().filter(single).filter(is_whole).collect();
    if cells.is_empty() {
        return None;
    }
    let verdict = all_one(analysis, &cells, Key::Slowdown);
    let slowdown = |c: &&&Cell| c.get(Key::Slowdown).map_or(0.0, |q| q.estimate);
    let most = cells.iter().max_by(|a, b| slowdown(a).total_cmp(&slowdown(b)));
    let statement = match verdict {
        Verdict::Supported => "Leave MPS or a whole-card instance on when one trains alone.",
        Verdict::Contradicted => "Turn sharing off when one trains alone.",
        Verdict::NotEnoughEvidence => "Whether a mode costs something when one trains alone is open.",
    };
    let finding = most.map_or_else(String::new, |c| {
        format!("Slowest of {} against the plain card: `{}`.", number::count(cells.len(), "single member"), c.name())
    });
    Some(Guideline {
        id: "alone-overhead",
        statement: statement.into(),
        finding,
        key: most.and_then(|c| Evidence::of(c, Key::Slowdown)),
        tested: format!(
            "slowdown of one member under MPS, or on the instance of all {whole} slices, within {} of 1 by the whole interval",
            number::percent(analysis.campaign.thresholds.relevant_ratio)
        ),
        verdict,
        evidence: cells.iter().filter_map(|c| Evidence::of(c, Key::Slowdown)).collect(),
        published: Some(PUBLISHED),
        command: (verdict == Verdict::NotEnoughEvidence).then(|| command(analysis)).flatten(),
        summary: false,
    })
}
