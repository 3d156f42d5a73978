//! Naive sharing compared with running in turn: is any workload worse off?

use super::{Evidence, Guideline, Holds, Published, STUDY, agreement, command, without, worded};
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
    let is = |c: &Cell, said: VariableContent| c.gain_verdict.as_ref().is_some_and(|g| g.verdict == said);
    let safe = |c: &&Cell| c.get(Key::ThroughputGain).and_then(|q| q.low).is_some_and(|low| low >= 1.0 / (1.0 + threshold));
    let losers = cells.iter().filter(|c| is(c, VariableContent::Worse)).count();
    let holds = if losers > 0 {
        Holds::No
    } else if !cells.is_empty() && cells.iter().all(safe) {
        Holds::Yes
    } else {
        Holds::Open
    };
    // A larger estimate that is undecided hides no gain that is certain.
    let most = cells.iter().filter(|c| is(c, VariableContent::Better)).max_by(|a, b| gain(a).total_cmp(&gain(b)));
    let advice = match most.and_then(|c| c.get(Key::ThroughputGain)) {
        Some(q) => format!("Naive sharing costs no throughput, and gains up to {}×.", number::estimate(q)),
        None if cells.iter().all(|c| is(c, VariableContent::Same)) => "Naive sharing costs no throughput, and gains none.".into(),
        None => "Naive sharing costs no throughput.".into(),
    };
    let finding = match worst {
        None => without(analysis, "a throughput gain under naive sharing"),
        Some(c) => {
            let gain = c.get(Key::ThroughputGain).map_or_else(String::new, number::with_interval);
            let groups = number::count(cells.len(), "group");
            match losers {
                0 => format!("Lowest of {groups}: `{}` has {gain}× the throughput of running in turn.", c.name()),
                n => format!("{n} of {groups} lost, most `{}`: {gain}× the throughput of running in turn.", c.name()),
            }
        }
    };
    let question = "Is naive sharing without cost?";
    let (statement, finding) = worded(holds, question, advice, "do not share naively without measuring.", finding);
    Some(Guideline {
        id: "naive-in-turn",
        statement,
        finding,
        agrees: agreement(analysis, holds),
        key: worst.and_then(|c| Evidence::of(c, Key::ThroughputGain)),
        tested: format!("throughput gain of every naive group not below 1 by more than {}", number::percent(threshold)),
        holds,
        evidence: cells.iter().filter_map(|c| Evidence::of(c, Key::ThroughputGain)).collect(),
        published: Some(PUBLISHED),
        command: (holds == Holds::Open).then(|| command(analysis)).flatten(),
        summary: false,
    })
}
