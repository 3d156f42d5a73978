//! Naive sharing compared with running in turn: is any workload worse off?

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_quantity::stats::RatioVerdict;
use collo_quantity::{Key, number};

use crate::published::Published;
use crate::rule::evidence::Evidence;
use crate::rule::{Claim, Guideline, STUDY, decide, nothing};
use crate::verdict::{self, Groups};

const PUBLISHED: Published = Published::new(
    "Naive sharing of a large model is about as fast as running in turn; seven small ones gain up to 1.98×.",
    "large: about 1.0×; small: up to 1.98×",
    STUDY,
);

pub fn guideline(analysis: &Analysis) -> Option<Guideline> {
    let threshold = analysis.campaign.thresholds.relevant_ratio;
    let naive = || crate::rule::training(analysis).filter(|c| c.record.sharing == "naive");
    if naive().next().is_none() && analysis.groups().any(Cell::serves) {
        return None;
    }
    let groups = Groups::of(analysis, naive(), Key::ThroughputGain);
    let tests = || groups.judged.iter().filter_map(|c| c.gain_verdict.as_ref());
    let of = |wanted| crate::rule::how_many(tests(), wanted);
    let is_safe = |c: &&&Cell| c.get(Key::ThroughputGain).and_then(|q| q.low).is_some_and(|low| low >= 1.0 / (1.0 + threshold));
    let (safe, lose, gain) = (groups.judged.iter().filter(is_safe).count(), of(RatioVerdict::Worse), of(RatioVerdict::Better));
    let holds = verdict::of_all(safe, lose, groups.judged.len() - safe - lose + groups.missing());
    let worst = crate::rule::extreme(&groups.judged, Key::ThroughputGain, false);
    // A larger estimate that is undecided hides no gain that is certain.
    let better = |c: &&Cell| c.gain_verdict.as_ref().is_some_and(|v| v.verdict == RatioVerdict::Better);
    let gaining: Vec<&Cell> = groups.judged.iter().copied().filter(better).collect();
    let most = crate::rule::extreme(&gaining, Key::ThroughputGain, true);
    let advice = match most.and_then(|c| c.get(Key::ThroughputGain)) {
        Some(q) => format!("Naive sharing costs no throughput, and gains up to {}×.", number::estimate(q)),
        None if of(RatioVerdict::Same) == groups.judged.len() => "Naive sharing costs no throughput, and gains none.".into(),
        None => "Naive sharing costs no throughput.".into(),
    };
    let finding = match worst {
        None => {
            nothing(&groups, "the throughput gain", "This experiment has no group of two or more members under naive sharing.")
        }
        Some(c) => {
            let value = c.get(Key::ThroughputGain).map_or_else(String::new, number::with_interval);
            let (all, same) = (groups.judged.len(), of(RatioVerdict::Same));
            let parts = [
                (gain, "gain"),
                (same, "have the throughput of running in turn"),
                (lose, "lose"),
                (all - gain - lose - same, "undecided"),
            ];
            format!("{}; lowest `{}`, {value}×.", crate::rule::tally(&number::count(all, "group"), &parts), c.name())
        }
    };
    Some(
        Claim {
            id: "naive-in-turn",
            question: "Is naive sharing without cost?",
            advice,
            otherwise: "do not share naively without measuring.".into(),
            finding,
            holds,
            agrees: verdict::of_figures(analysis, |f| ["gain-small-7-naive", "gain-large-2-naive"].contains(&f.id.as_str())),
            key: worst.and_then(|c| Evidence::of(c, Key::ThroughputGain)).map(|e| e.picked_from(groups.judged.len())),
            tested: format!(
                "throughput gain of every naive group not below 1 by more than {}, by the whole interval; a loss is Holm-corrected over all groups",
                number::percent_as_written(threshold)
            ),
            evidence: groups.judged.iter().filter_map(|c| Evidence::of(c, Key::ThroughputGain)).collect(),
            published: Some(PUBLISHED),
            next: decide(analysis, &groups, tests(), "sharing == \"naive\""),
            scope: Some(groups.scope(analysis)),
        }
        .conclude(),
    )
}
