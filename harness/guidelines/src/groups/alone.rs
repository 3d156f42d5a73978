//! The cost of a mode without sharing: one member under an MPS daemon, or on the instance that is the whole GPU.

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_gpus::notation::Size;
use collo_quantity::{Key, number};

use crate::published::Published;
use crate::rule::evidence::Evidence;
use crate::rule::{Claim, Guideline, STUDY, all_one, compared, decide, nothing, on_a_card};
use crate::verdict::{self, Groups};

const PUBLISHED: Published =
    Published::new("MPS and MIG have negligible overhead when one model has the whole GPU.", "negligible", STUDY);

/// Compute slices of the whole instance that its only member has, or was to have; `None` if it has a part of one, or no instance.
fn slices(cell: &Cell) -> Option<u32> {
    let ran = || cell.counted().next()?.record().members.first()?.slice.as_deref().and_then(Size::parse);
    let size = cell.record.slots.as_deref().and_then(Size::parse).or_else(ran)?;
    size.compute.is_none().then_some(size.slices)
}

pub fn guideline(analysis: &Analysis) -> Option<Guideline> {
    if !on_a_card(analysis) {
        return None;
    }
    // A GPU that no file describes is taken to be partitioned like most.
    let model = collo_gpus::of_product(&analysis.campaign.device.name);
    let whole = model.and_then(|model| model.compute_slices).unwrap_or(collo_gpus::USUAL_COMPUTE_SLICES);
    let mps = |c: &Cell| c.record.mode.mps && !c.record.mode.limited && !c.record.mode.partitioned;
    let single = |c: &&Cell| c.record.degree == 1 && !c.is_solo() && !c.serves() && (mps(c) || slices(c) == Some(whole));
    let groups = Groups::of(analysis, analysis.groups().filter(single), Key::Slowdown);
    if groups.judged.is_empty() && groups.unjudged.is_empty() {
        return None;
    }
    let tests = compared(analysis, &groups.judged, Key::Slowdown);
    let holds = all_one(tests.iter().map(|(_, test)| test), groups.missing());
    let (shared, divided): (Vec<&Cell>, Vec<&Cell>) = groups.judged.iter().copied().partition(|c| mps(c));
    let what = match (shared.is_empty(), divided.is_empty()) {
        (false, false) => "MPS or a whole-GPU instance",
        (false, true) => "MPS",
        (true, _) => "a whole-GPU instance",
    };
    let most = crate::rule::extreme(&groups.judged, Key::Slowdown, true);
    let finding = match most {
        None => nothing(&groups, "the slowdown", crate::rule::NO_GROUP),
        Some(c) => format!(
            "Slowest of {} relative to the plain GPU: `{}`.",
            number::count(groups.judged.len(), "single member"),
            c.name()
        ),
    };
    Some(
        Claim {
            id: "alone-overhead",
            question: "Is a mode without cost when one member trains alone?",
            advice: format!("Leave {what} on when one member trains alone."),
            otherwise: "turn sharing off then.".into(),
            finding,
            holds,
            agrees: verdict::of_statement(analysis, holds),
            key: most.and_then(|c| Evidence::of(c, Key::Slowdown)).map(|e| e.picked_from(groups.judged.len())),
            tested: format!(
                "slowdown of one member under MPS, or on the instance of all {whole} slices, within {} of 1 by the whole interval",
                number::percent_as_written(analysis.campaign.thresholds.relevant_ratio)
            ),
            evidence: groups.judged.iter().filter_map(|c| Evidence::of(c, Key::Slowdown)).collect(),
            published: Some(PUBLISHED),
            next: decide(analysis, &groups, tests.iter().map(|(_, test)| test), "workload == \"small\""),
            scope: Some(groups.scope(analysis)),
        }
        .conclude(),
    )
}
