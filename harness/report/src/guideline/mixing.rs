//! Mixed groups: which workloads to combine, and does it pay compared with running in turn?

use super::{Evidence, Guideline, Holds, Published, agreement, command, worded};
use crate::analysis::{Analysis, Cell};
use crate::number;
use crate::quantity::Key;
use crate::stats::RatioVerdict as VariableContent;

const PUBLISHED: Published = Published {
    statement: "A recommender (DLRM) and a vision model (ResNet152) together need less time than in turn: 5 % less naively, 13 % \
                less under MPS, and 13 % less on two compute instances.",
    short: "DLRM + ResNet152: 5 to 13 % less time",
    source: "collocation study on an A100-40GB, thesis, table 4.2",
};

pub(super) fn guideline(analysis: &Analysis) -> Option<Guideline> {
    let mixed: Vec<&Cell> =
        analysis.groups().filter(|c| !c.record.is_uniform() && c.is_valid() && c.gain_verdict.is_some()).collect();
    if !analysis.groups().any(|c| !c.record.is_uniform() && !c.serves()) {
        return None;
    }
    let said = |c: &&&Cell, v: VariableContent| c.gain_verdict.as_ref().is_some_and(|g| g.verdict == v);
    let (pays, costs) = (
        mixed.iter().filter(|c| said(c, VariableContent::Better)).count(),
        mixed.iter().filter(|c| said(c, VariableContent::Worse)).count(),
    );
    let decided = mixed
        .iter()
        .filter(|c| !matches!(c.gain_verdict.as_ref().map(|g| g.verdict), Some(VariableContent::CannotTell { .. })))
        .count();
    let holds = match (pays, costs) {
        (1.., 0) => Holds::Yes,
        (_, 1..) => Holds::No,
        _ if !mixed.is_empty() && decided == mixed.len() => Holds::No,
        _ => Holds::Open,
    };
    let gain = |c: &Cell| c.get(Key::ThroughputGain).map_or(0.0, |q| q.estimate);
    let best = mixed.iter().max_by(|a, b| gain(a).total_cmp(&gain(b)));
    let worst = mixed.iter().min_by(|a, b| gain(a).total_cmp(&gain(b)));
    let advice = best.map_or_else(String::new, |c| format!("Mix different workloads, starting with `{}`.", c.name()));
    let otherwise = match best {
        Some(c) if pays > 0 => format!("mix only those measured to gain, starting with `{}`.", c.name()),
        _ => "run these in turn.".into(),
    };
    let said = |c: &Cell| c.get(Key::ThroughputGain).map_or_else(String::new, number::with_interval);
    let finding = match (best, worst) {
        (Some(b), Some(w)) if mixed.len() > 1 => format!(
            "{pays} of {} gain; most `{}`, {}× the throughput of running in turn, least `{}`, {}×.",
            number::count(mixed.len(), "mixed group"),
            b.name(),
            said(b),
            w.name(),
            said(w)
        ),
        (Some(b), _) => format!("`{}` has {}× the throughput of running in turn.", b.name(), said(b)),
        _ => "No valid mixed group has a throughput gain with an interval.".into(),
    };
    let (statement, finding) = worded(holds, "Does mixing workloads pay off?", advice, &otherwise, finding);
    Some(Guideline {
        id: "mixing",
        statement,
        finding,
        agrees: if pays > 0 && costs > 0 { agreement(analysis, holds).partly() } else { agreement(analysis, holds) },
        key: best.and_then(|c| Evidence::of(c, Key::ThroughputGain)),
        tested: format!(
            "throughput gain of mixed groups over running in turn above 1 by more than {} in some and below it in none, Holm-corrected over all groups",
            number::percent(analysis.campaign.thresholds.relevant_ratio)
        ),
        holds,
        evidence: mixed.iter().filter_map(|c| Evidence::of(c, Key::ThroughputGain)).collect(),
        published: Some(PUBLISHED),
        command: (holds == Holds::Open).then(|| command(analysis)).flatten(),
        summary: false,
    })
}
