//! Which MPS thread limits are worth setting? Compares groups with a limit with the same members without one.

use super::{Evidence, Guideline, Verdict, advantage, command, held, matched, on_a_card};
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
    let verdict = if pairs.iter().any(|h| h.said == VariableContent::Better) {
        Verdict::Supported
    } else if pairs.iter().all(|h| matches!(h.said, VariableContent::Same | VariableContent::Worse)) {
        Verdict::Contradicted
    } else {
        Verdict::NotEnoughEvidence
    };
    let key = if verdict == Verdict::Contradicted { worst } else { best };
    let statement = match verdict {
        Verdict::Supported => format!("Set `{}` where it was measured to help.", best.left.record.sharing),
        Verdict::Contradicted => "Leave MPS threads unlimited.".into(),
        Verdict::NotEnoughEvidence => "Whether an MPS thread limit helps is open.".into(),
    };
    let limit = |h: &super::Held| {
        format!("`{}` does {} times the work of `{}`", h.left.name(), number::with_interval(&h.ratio), h.right.name())
    };
    Some(Guideline {
        id: "thread-limits",
        statement,
        finding: format!("{}.", limit(key)),
        key: Some(Evidence::between(key.left, key.right, Key::ThroughputGain, key.ratio.clone())),
        tested: format!(
            "some thread limit does more work per second than none, by more than {}; Holm-corrected over {}",
            number::percent(analysis.campaign.thresholds.relevant_ratio),
            number::count(pairs.len(), "pair")
        ),
        verdict,
        evidence: pairs.iter().map(|h| Evidence::between(h.left, h.right, Key::ThroughputGain, h.ratio.clone())).collect(),
        published: None,
        command: (verdict == Verdict::NotEnoughEvidence).then(|| command(analysis)).flatten(),
        summary: false,
    })
}
