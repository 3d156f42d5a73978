//! Do equal members progress equally?

use super::{Evidence, Guideline, Verdict, command, without};
use crate::analysis::{Analysis, Cell};
use crate::number;
use crate::quantity::Key;

/// Equal members count as treated equally if the slowest makes at least nine tenths of the fastest's progress.
const FAIR: f64 = 0.9;

pub(super) fn guideline(analysis: &Analysis) -> Option<Guideline> {
    if super::only_mixed(analysis) {
        return None;
    }
    let has_interval = |c: &&Cell| c.record.is_uniform() && c.get(Key::Fairness).is_some_and(|q| q.low.is_some());
    let cells: Vec<&Cell> = analysis.groups().filter(|c| c.is_valid()).filter(has_interval).collect();
    let fairness = |c: &&Cell| c.get(Key::Fairness).map_or(f64::INFINITY, |q| q.estimate);
    let worst = cells.iter().min_by(|a, b| fairness(a).total_cmp(&fairness(b)));
    let bound = |c: &&Cell, high: bool| c.get(Key::Fairness).and_then(|q| if high { q.high } else { q.low });
    let verdict = if cells.iter().any(|c| bound(c, true).is_some_and(|h| h < FAIR)) {
        Verdict::Contradicted
    } else if !cells.is_empty() && cells.iter().all(|c| bound(c, false).is_some_and(|l| l >= FAIR)) {
        Verdict::Supported
    } else {
        Verdict::NotEnoughEvidence
    };
    let statement = match verdict {
        Verdict::Supported => "Expect equal members to progress equally.",
        Verdict::Contradicted => "Do not expect equal members to progress equally.",
        Verdict::NotEnoughEvidence => "Whether equal members progress equally is open.",
    };
    let finding = match worst {
        None => without(analysis, "a fairness"),
        Some(c) => {
            let value = c.get(Key::Fairness).map_or_else(String::new, number::with_interval);
            format!("The slowest member of `{}` makes {value} of the fastest's progress.", c.name())
        }
    };
    Some(Guideline {
        id: "fairness",
        statement: statement.into(),
        finding,
        key: worst.and_then(|c| Evidence::of(c, Key::Fairness)),
        tested: format!("least ÷ largest progress of every uniform group at least {FAIR}, by the whole interval"),
        verdict,
        evidence: cells.iter().filter_map(|c| Evidence::of(c, Key::Fairness)).collect(),
        published: None,
        command: (verdict == Verdict::NotEnoughEvidence).then(|| command(analysis)).flatten(),
        summary: false,
    })
}
