//! Do instances isolate? The slowdown of a member on a slice is the cost of the smaller slice times the cost of its neighbours;
//! the second factor alone is the interference.

use super::{Evidence, Guideline, Holds, Published, STUDY, agreement, all_one, command, on_a_card, separated, study, worded};
use crate::analysis::{Analysis, Cell};
use crate::number;
use crate::quantity::Key;

const PUBLISHED: Published = Published {
    statement: "Use MIG when strict separation is required; its throughput is sub-optimal compared with MPS.",
    short: "MIG isolates",
    source: STUDY,
};

pub(super) fn guideline(analysis: &Analysis) -> Option<Guideline> {
    if !on_a_card(analysis) {
        return None;
    }
    let usable = |c: &&Cell| {
        c.is_valid() && c.record.degree > 1 && separated(c) && c.get(Key::SlowdownOnSlice).is_some_and(|q| q.low.is_some())
    };
    let cells: Vec<&Cell> = analysis.groups().filter(usable).collect();
    let holds = all_one(analysis, &cells, Key::SlowdownOnSlice);
    let slowdown = |c: &&&Cell| c.get(Key::SlowdownOnSlice).map_or(0.0, |q| q.estimate);
    let most = cells.iter().max_by(|a, b| slowdown(a).total_cmp(&slowdown(b)));
    let finding = match most {
        None => "No group on slices has a baseline alone on the same slice.".into(),
        Some(c) => format!(
            "Most disturbed of {}: `{}`, relative to itself alone on the same slice.",
            number::count(cells.len(), "group"),
            c.name()
        ),
    };
    let evidence = cells.iter().flat_map(|c| [Evidence::of(c, Key::SlowdownOnSlice), Evidence::of(c, Key::Slowdown)]);
    let (statement, finding) = worded(
        holds,
        "Do MIG instances isolate members?",
        "Use MIG where members must not disturb each other.",
        "do not rely on MIG for that.",
        finding,
    );
    Some(Guideline {
        id: "isolation",
        statement,
        finding,
        agrees: agreement(analysis, holds),
        key: most.and_then(|c| Evidence::of(c, Key::SlowdownOnSlice)),
        tested: format!(
            "epoch time in the group ÷ epoch time alone on the same slice, within {} of 1 by the whole interval, in every group",
            number::percent(analysis.campaign.thresholds.relevant_ratio)
        ),
        holds,
        evidence: evidence.flatten().collect(),
        published: Some(PUBLISHED),
        command: (holds == Holds::Open)
            .then(
                || if cells.is_empty() { Some(study("workload == \"small\" && sharing =~ \"mig\"")) } else { command(analysis) },
            )
            .flatten(),
        summary: false,
    })
}
