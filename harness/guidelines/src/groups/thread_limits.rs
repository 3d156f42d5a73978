//! Which MPS thread limits are worth setting? Compares groups with a limit with the same members without one.

use collo_analysis::campaign::Analysis;
use collo_quantity::stats::RatioVerdict;
use collo_quantity::{Key, number};

use crate::rule::pairs::{Pair, Pairs};
use crate::rule::{Claim, Guideline, decide, nothing, on_a_card};
use crate::verdict::{self, Agreement, Holds};

pub fn guideline(analysis: &Analysis) -> Option<Guideline> {
    if !on_a_card(analysis) {
        return None;
    }
    // A limit of memory alone leaves the threads as they are.
    let limited = analysis.groups().filter(|c| c.record.mode.limited && !c.record.sharing.starts_with("mps:mem="));
    let mut limits: Vec<&str> = limited.map(|c| c.record.sharing.as_str()).collect();
    limits.sort_unstable();
    limits.dedup();
    let matches = limits.iter().flat_map(|limit| crate::rule::pairs::matched(analysis, limit, "mps")).collect();
    let pairs = Pairs::of(analysis, matches, crate::rule::pairs::work, crate::rule::pairs::advantage);
    if pairs.is_unasked() {
        return None;
    }
    let of = |wanted| pairs.how_many(wanted);
    let (better, not) = (of(RatioVerdict::Better), of(RatioVerdict::Same) + of(RatioVerdict::Worse));
    let all = pairs.judged.len();
    let holds = verdict::of_some(better, not, all - better - not + pairs.unjudged.len());
    let helps = pairs.judged.iter().filter(|p| p.test.verdict == RatioVerdict::Better);
    let best = helps.max_by(|a, b| a.ratio.estimate.total_cmp(&b.ratio.estimate));
    let key = best.or_else(|| pairs.extreme(holds != Holds::No));
    let said = |pair: &Pair| {
        format!("`{}` does {} times the work of `{}`", pair.left.name(), number::with_interval(&pair.ratio), pair.right.name())
    };
    let groups = pairs.groups();
    let finding = match key {
        None => nothing(&groups, "the work per second", crate::rule::NO_GROUP),
        Some(pair) => format!("{}; better in {better}, not in {not} of {}.", said(pair), number::count(all, "pair")),
    };
    Some(
        Claim {
            id: "thread-limits",
            question: "Does an MPS thread limit help?",
            advice: best.map_or_else(String::new, |p| {
                format!("Set `{}` where it was measured to help: `{}`.", p.left.record.sharing, p.left.name())
            }),
            otherwise: "leave MPS threads unlimited.".into(),
            finding,
            holds,
            agrees: Agreement::NotStudied,
            key: key.map(|pair| pair.evidence(Key::ThroughputGain).picked_from(all)),
            tested: format!(
                "some thread limit does more work per second than none, by more than {}; Holm-corrected over {}",
                number::percent_as_written(analysis.campaign.thresholds.relevant_ratio),
                number::count(all, "pair")
            ),
            evidence: pairs.evidence(Key::ThroughputGain),
            published: None,
            next: decide(analysis, &groups, pairs.tests(), "sharing == \"mps\""),
            scope: Some(groups.scope(analysis)),
        }
        .conclude(),
    )
}
