//! Naive sharing compared with running in turn: is any workload worse off?

use super::{Evidence, Guideline, Published, STUDY, Verdict, command, without};
use crate::analysis::{Analysis, Cell};
use crate::number;
use crate::quantity::Key;
use crate::stats::RatioVerdict as VariableContent;

const PUBLISHED: Published = Published {
    statement: "Naive sharing of a large model is about as fast as running in turn; seven small ones gain up to 1.98×.",
    short: "large: about 1.0×; small: up to 1.98×",
    source: STUDY,
};

pub(super) fn guideline(analysis: &Analysis) -> Option<Guideline> {
    let threshold = analysis.campaign.thresholds.relevant_ratio;
    // Groups that serve have no gain, and more repetitions would bring none.
    let naive = |c: &Cell| c.record.sharing == "naive" && !c.serves();
    if analysis.groups().any(Cell::serves) && !analysis.groups().any(naive) {
        return None;
    }
    let usable = |c: &&Cell| c.record.sharing == "naive" && c.is_valid() && c.gain_verdict.is_some();
    let cells: Vec<&Cell> = analysis.groups().filter(usable).collect();
    let gain = |c: &&Cell| c.get(Key::ThroughputGain).map_or(f64::INFINITY, |q| q.estimate);
    let worst = cells.iter().min_by(|a, b| gain(a).total_cmp(&gain(b)));
    let loses = |c: &&Cell| c.gain_verdict.as_ref().is_some_and(|g| g.verdict == VariableContent::Worse);
    let safe = |c: &&Cell| c.get(Key::ThroughputGain).and_then(|q| q.low).is_some_and(|low| low >= 1.0 / (1.0 + threshold));
    let losers = cells.iter().filter(|c| loses(c)).count();
    let verdict = if losers > 0 {
        Verdict::Contradicted
    } else if !cells.is_empty() && cells.iter().all(safe) {
        Verdict::Supported
    } else {
        Verdict::NotEnoughEvidence
    };
    let statement = match verdict {
        Verdict::Supported => "Share naively rather than run in turn.".to_string(),
        Verdict::Contradicted => "Do not share naively without measuring.".into(),
        Verdict::NotEnoughEvidence => "Whether naive sharing ever costs throughput is open.".into(),
    };
    let finding = match worst {
        None => without(analysis, "a throughput gain under naive sharing"),
        Some(c) => {
            let gain = c.get(Key::ThroughputGain).map_or_else(String::new, number::with_interval);
            let groups = number::count(cells.len(), "group");
            match losers {
                0 => format!("Lowest of {groups}: `{}` does {gain} times the work of running in turn.", c.name()),
                n => format!("{n} of {groups} lost, most `{}`: {gain} times the work of running in turn.", c.name()),
            }
        }
    };
    Some(Guideline {
        id: "naive-in-turn",
        statement,
        finding,
        key: worst.and_then(|c| Evidence::of(c, Key::ThroughputGain)),
        tested: format!("throughput gain of every naive group not below 1 by more than {}", number::percent(threshold)),
        verdict,
        evidence: cells.iter().filter_map(|c| Evidence::of(c, Key::ThroughputGain)).collect(),
        published: Some(PUBLISHED),
        command: (verdict == Verdict::NotEnoughEvidence).then(|| command(analysis)).flatten(),
        summary: false,
    })
}
