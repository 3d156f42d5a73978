//! Do instances isolate? The slowdown of a member on a slice is the cost of the smaller slice times the cost of its neighbours;
//! the second factor alone is the interference.

use collo_analysis::campaign::Analysis;
use collo_quantity::stats::{self, Quantity};
use collo_quantity::{Key, number};

use crate::published::Published;
use crate::rule::evidence::Evidence;
use crate::rule::{Claim, Guideline, STUDY, all_one, decide, nothing, on_a_card};
use crate::verdict::{self, Groups};

const PUBLISHED: Published = Published::new(
    "Use MIG when strict separation is required; its throughput is sub-optimal compared with MPS.",
    "MIG isolates",
    STUDY,
);

pub fn guideline(analysis: &Analysis) -> Option<Guideline> {
    let on_slices = || crate::rule::training(analysis).filter(|c| c.is_separated());
    // Where all groups on slices serve, their latency is the subject of another rule.
    if !on_a_card(analysis) || on_slices().next().is_none() && analysis.groups().any(|c| c.serves()) {
        return None;
    }
    let groups = Groups::of(analysis, on_slices(), Key::SlowdownOnSlice);
    // A mean over members would hide one that is disturbed among many that are not.
    let mut members: Vec<Evidence> = Vec::new();
    for cell in &groups.judged {
        members.extend((0..cell.members.len()).filter_map(|index| Evidence::of_member(cell, index, Key::SlowdownOnSlice)));
    }
    let ratios: Vec<Option<Quantity>> = members.iter().map(|e| Some(e.value.clone())).collect();
    let compared = stats::compare(&ratios, analysis.campaign.thresholds.relevant_ratio);
    let tests = compared.iter().flatten();
    let without_interval = members.len() - tests.clone().count();
    let holds = all_one(tests.clone(), without_interval + groups.missing());
    let most = members.iter().max_by(|a, b| a.value.estimate.total_cmp(&b.value.estimate));
    let finding = match most {
        None => nothing(&groups, "the slowdown on its slice", "No group has a GPU instance for each of its training members."),
        Some(one) => format!(
            "Most disturbed of {} in {}: `{}`, relative to itself alone on the same slice.",
            number::count(members.len(), "member"),
            number::count(groups.judged.len(), "group"),
            one.name()
        ),
    };
    let evidence = groups.judged.iter().flat_map(|c| [Evidence::of(c, Key::SlowdownOnSlice), Evidence::of(c, Key::Slowdown)]);
    Some(
        Claim {
            id: "isolation",
            question: "Do MIG instances isolate members?",
            advice: "Use MIG where members must not disturb each other.".into(),
            otherwise: "do not rely on MIG for that.".into(),
            finding,
            holds,
            agrees: verdict::of_statement(analysis, holds),
            key: most.cloned().map(|e| e.picked_from(members.len())),
            tested: format!(
                "epoch time in the group ÷ epoch time alone on the same slice, within {} of 1 by the whole interval, of every member",
                number::percent_as_written(analysis.campaign.thresholds.relevant_ratio)
            ),
            evidence: evidence.flatten().collect(),
            published: Some(PUBLISHED),
            next: decide(analysis, &groups, tests, "workload == \"small\" && sharing =~ \"mig\""),
            scope: Some(groups.scope(analysis)),
        }
        .conclude(),
    )
}
