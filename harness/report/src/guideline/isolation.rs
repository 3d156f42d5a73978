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

/// Why no group can be judged.
fn none(analysis: &Analysis) -> String {
    let on_slices: Vec<&Cell> = analysis.groups().filter(|c| c.record.degree > 1 && separated(c)).collect();
    let trains: Vec<&Cell> = on_slices.iter().copied().filter(|c| !c.serves()).collect();
    let usable: Vec<&Cell> = trains.iter().copied().filter(|c| !c.counted.is_empty()).collect();
    match () {
        () if on_slices.is_empty() => "No group was measured on slices.".into(),
        () if trains.is_empty() => {
            "Every group on slices has a serving member: it is judged by its latency, and a group with one has no epoch time."
                .into()
        }
        () if usable.is_empty() => "No group on slices has a usable run.".into(),
        () if usable.iter().all(|c| c.absent.contains_key(&Key::SlowdownOnSlice)) => {
            let why = usable.iter().find_map(|c| c.no_baseline.clone().filter(|_| c.record.alone_on_slice.is_empty()));
            why.map_or_else(
                || "No group on slices has a baseline alone on the same slice.".into(),
                |why| format!("No group on slices can be compared with its members alone: {why}."),
            )
        }
        () if usable.iter().all(|c| !c.is_valid()) => "No group on slices is valid.".into(),
        () => super::ONCE.into(),
    }
}

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
        None => none(analysis),
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
