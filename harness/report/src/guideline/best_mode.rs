//! Which sharing mode gives most throughput? Compares groups of the same members under two modes.

use super::{
    Agreement, Evidence, Guideline, Held, Holds, Published, STUDY, advantage, agreement, command, held, how_many, matched,
    never_below, on_a_card, study, worded,
};
use crate::analysis::Analysis;
use crate::number;
use crate::quantity::Key;
use crate::stats::RatioVerdict as VariableContent;

const PUBLISHED: Published = Published {
    statement: "MPS performs best across the board; MIG is sub-optimal compared with it. Seven small models gain 5.35× under MPS, 2.9× under MIG, \
                1.98× naively.",
    short: "MPS best; small ×7: 5.35 / 2.9 / 1.98×",
    source: STUDY,
};

pub(super) fn guideline(analysis: &Analysis) -> Option<Guideline> {
    if !on_a_card(analysis) {
        return None;
    }
    let against = |other: &str| held(analysis, matched(analysis, "mps", other), advantage);
    let (naive, mig, threads) = (against("naive"), against("mig"), against("threads"));
    let all = || naive.iter().chain(&mig).chain(&threads);
    let studied = |said: VariableContent| how_many(&naive, said) + how_many(&mig, said);
    let of_all = |said: VariableContent| studied(said) + how_many(&threads, said);
    let (ahead, behind) = (of_all(VariableContent::Better), of_all(VariableContent::Worse));
    let holds = match (ahead, behind) {
        (_, 1..) => Holds::No,
        (1.., 0) if never_below(analysis, all()) => Holds::Yes,
        _ => Holds::Open,
    };
    let key = if behind > 0 {
        all().filter(|h| h.said == VariableContent::Worse).min_by(|a, b| a.ratio.estimate.total_cmp(&b.ratio.estimate))
    } else {
        all().max_by(|a, b| a.ratio.estimate.total_cmp(&b.ratio.estimate))
    };
    let finding = match key {
        None => "No group was measured under MPS and in another mode with the same members.".to_string(),
        Some(h) => {
            let what = format!("`{}` against `{}`", h.left.name(), h.right.name());
            let sides = [side(&naive, "naive"), side(&mig, "MIG"), side(&threads, "threads of one process")]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join(" and ");
            if behind > 0 {
                format!("It is {sides}: furthest behind {what}.")
            } else {
                format!("It is {sides}; furthest {what}.")
            }
        }
    };
    let missing = if all().next().is_none() { Some(study("workload == \"small\"")) } else { None };
    let (statement, finding) = worded(
        holds,
        "Does MPS give the most throughput?",
        "Choose MPS for throughput.",
        "choose the mode per workload.",
        finding,
    );
    Some(Guideline {
        id: "best-mode",
        statement,
        finding,
        agrees: match (studied(VariableContent::Better), studied(VariableContent::Worse)) {
            (1.., 1..) => Agreement::Partly,
            (_, 1..) => agreement(analysis, Holds::No),
            (1.., 0) => agreement(analysis, Holds::Yes),
            (0, 0) => agreement(analysis, Holds::Open),
        },
        key: key.map(|h| Evidence::between(h.left, h.right, Key::ThroughputGain, h.ratio.clone())),
        tested: format!(
            "work per second under MPS ÷ under the other mode, same members: never below 1 by more than {}, and above it somewhere; Holm-corrected \
             over the groups of each mode",
            number::percent(analysis.campaign.thresholds.relevant_ratio)
        ),
        holds,
        evidence: all().map(|h| Evidence::between(h.left, h.right, Key::ThroughputGain, h.ratio.clone())).collect(),
        published: Some(PUBLISHED),
        command: (holds == Holds::Open).then(|| missing.or_else(|| command(analysis))).flatten(),
        summary: false,
    })
}

/// `ahead of naive in 5 of 6 groups`.
fn side(pairs: &[Held], other: &str) -> Option<String> {
    let (ahead, behind) = (how_many(pairs, VariableContent::Better), how_many(pairs, VariableContent::Worse));
    let groups = number::count(pairs.len(), "group");
    match (pairs.len(), behind) {
        (0, _) => None,
        (_, 0) => Some(format!("ahead of {other} in {ahead} of {groups}")),
        _ => Some(format!("ahead of {other} in {ahead} and behind in {behind} of {groups}")),
    }
}
