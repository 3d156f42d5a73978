//! Which MPS thread limits are worth setting? Compares groups with a limit with the same members without one.

use super::{Agreement, Evidence, Guideline, Holds, advantage, command, held, matched, on_a_card, worded};
use crate::analysis::Analysis;
use crate::number;
use crate::quantity::Key;
use crate::stats::RatioVerdict as VariableContent;

pub(super) fn guideline(analysis: &Analysis) -> Option<Guideline> {
    if !on_a_card(analysis) {
        return None;
    }
    let limited = analysis.groups().filter(|c| c.record.mode.limited);
    let mut limits: Vec<&str> = limited.map(|c| c.record.sharing.as_str()).collect();
    limits.sort_unstable();
    limits.dedup();
    let pairs: Vec<_> = limits.iter().flat_map(|limit| matched(analysis, limit, "mps")).collect();
    let pairs = held(analysis, pairs, advantage);
    if pairs.is_empty() {
        return None;
    }
    let best = pairs.iter().max_by(|a, b| a.ratio.estimate.total_cmp(&b.ratio.estimate))?;
    let worst = pairs.iter().min_by(|a, b| a.ratio.estimate.total_cmp(&b.ratio.estimate))?;
    let holds = if pairs.iter().any(|h| h.said == VariableContent::Better) {
        Holds::Yes
    } else if pairs.iter().all(|h| matches!(h.said, VariableContent::Same | VariableContent::Worse)) {
        Holds::No
    } else {
        Holds::Open
    };
    let key = if holds == Holds::No { worst } else { best };
    let advice = format!("Set `{}` where it was measured to help.", best.left.record.sharing);
    let limit = |h: &super::Held| {
        format!("`{}` does {} times the work of `{}`", h.left.name(), number::with_interval(&h.ratio), h.right.name())
    };
    let finding = format!("{}.", limit(key));
    let (statement, finding) = worded(holds, "Does an MPS thread limit help?", advice, "leave MPS threads unlimited.", finding);
    Some(Guideline {
        id: "thread-limits",
        statement,
        finding,
        agrees: Agreement::NotStudied,
        key: Some(Evidence::between(key.left, key.right, Key::ThroughputGain, key.ratio.clone())),
        tested: format!(
            "some thread limit does more work per second than none, by more than {}; Holm-corrected over {}",
            number::percent(analysis.campaign.thresholds.relevant_ratio),
            number::count(pairs.len(), "pair")
        ),
        holds,
        evidence: pairs.iter().map(|h| Evidence::between(h.left, h.right, Key::ThroughputGain, h.ratio.clone())).collect(),
        published: None,
        command: (holds == Holds::Open).then(|| command(analysis)).flatten(),
        summary: false,
    })
}
