//! Mixed groups: which workloads to combine, and does it pay compared with running in turn?

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_quantity::stats::RatioVerdict;
use collo_quantity::{Key, number};

use crate::published::Published;
use crate::rule::evidence::Evidence;
use crate::rule::{Claim, Guideline, decide, nothing};
use crate::verdict::{self, Groups, Holds};

const PUBLISHED: Published = Published::new(
    "A recommender (DLRM) and a vision model (ResNet152) together need less time than in turn: 5 % less naively, 13 % \
                less under MPS, and 13 % less on two compute instances.",
    "DLRM + ResNet152: 5 to 13 % less time",
    "collocation study on an A100-40GB, thesis, table 4.2",
);

pub fn guideline(analysis: &Analysis) -> Option<Guideline> {
    let mixed = || crate::rule::training(analysis).filter(|c| !c.record.is_uniform());
    mixed().next()?;
    let groups = Groups::of(analysis, mixed(), Key::ThroughputGain);
    let tests = || groups.judged.iter().filter_map(|c| c.gain_verdict.as_ref());
    let of = |wanted| crate::rule::how_many(tests(), wanted);
    let (gain, same, lose) = (of(RatioVerdict::Better), of(RatioVerdict::Same), of(RatioVerdict::Worse));
    let undecided = groups.judged.len() - gain - same - lose;
    let open = undecided + groups.missing();
    // A rule for mixes in general needs most of them to gain, and none to lose.
    let holds = match () {
        () if lose > 0 => Holds::No,
        () if open == 0 && gain > same => Holds::Yes,
        () if open == 0 && same > 0 => Holds::No,
        () => Holds::Open,
    };
    let gains = |wanted: RatioVerdict| {
        let with: Vec<&Cell> =
            groups.judged.iter().copied().filter(|c| c.gain_verdict.as_ref().is_some_and(|v| v.verdict == wanted)).collect();
        with
    };
    let best = crate::rule::extreme(&gains(RatioVerdict::Better), Key::ThroughputGain, true);
    let shown = best.or_else(|| crate::rule::extreme(&groups.judged, Key::ThroughputGain, true));
    let worst = crate::rule::extreme(&groups.judged, Key::ThroughputGain, false);
    let otherwise = match best {
        Some(c) => format!("mix only those measured to gain, starting with `{}`.", c.name()),
        None => "run these in turn.".into(),
    };
    let said = |c: &Cell| c.get(Key::ThroughputGain).map_or_else(String::new, number::with_interval);
    let finding = match (shown, worst) {
        (Some(b), Some(w)) if groups.judged.len() > 1 => format!(
            "{}; most `{}`, {}×, least `{}`, {}×.",
            crate::rule::tally(
                &number::count(groups.judged.len(), "mixed group"),
                &[(gain, "gain"), (same, "have the throughput of running in turn"), (lose, "lose"), (undecided, "undecided")]
            ),
            b.name(),
            said(b),
            w.name(),
            said(w)
        ),
        (Some(b), _) => format!("`{}` has {}× the throughput of running in turn.", b.name(), said(b)),
        _ => nothing(&groups, "the throughput gain", crate::rule::NO_GROUP),
    };
    Some(
        Claim {
            id: "mixing",
            question: "Does mixing workloads pay off?",
            advice: best.map_or_else(String::new, |c| format!("Mix different workloads, starting with `{}`.", c.name())),
            otherwise,
            finding,
            holds,
            agrees: verdict::of_figures(analysis, |f| f.id.starts_with("recommender-vision-gain")),
            key: shown.and_then(|c| Evidence::of(c, Key::ThroughputGain)).map(|e| e.picked_from(groups.judged.len())),
            tested: format!(
                "throughput gain of mixed groups over running in turn above 1 by more than {} in most of them, and below it in none, Holm-corrected \
                 over all groups",
                number::percent_as_written(analysis.campaign.thresholds.relevant_ratio)
            ),
            evidence: groups.judged.iter().filter_map(|c| Evidence::of(c, Key::ThroughputGain)).collect(),
            published: Some(PUBLISHED),
            next: decide(analysis, &groups, tests(), "sharing == \"mps\""),
            scope: Some(groups.scope(analysis)),
        }
        .conclude(),
    )
}
