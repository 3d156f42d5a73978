//! Do equal members progress equally?

use super::{Agreement, Evidence, Guideline, Holds, command, without, worded};
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
    let holds = if cells.iter().any(|c| bound(c, true).is_some_and(|h| h < FAIR)) {
        Holds::No
    } else if !cells.is_empty() && cells.iter().all(|c| bound(c, false).is_some_and(|l| l >= FAIR)) {
        Holds::Yes
    } else {
        Holds::Open
    };
    let finding = match worst {
        None => without(analysis, "a fairness"),
        Some(c) => {
            let value = c.get(Key::Fairness).map_or_else(String::new, number::with_interval);
            format!("The slowest member of `{}` makes {value} of the fastest's progress.", c.name())
        }
    };
    let (statement, finding) = worded(
        holds,
        "Do equal members progress equally?",
        "Expect equal members to progress equally.",
        "plan for the slowest.",
        finding,
    );
    Some(Guideline {
        id: "fairness",
        statement,
        finding,
        agrees: Agreement::NotStudied,
        key: worst.and_then(|c| Evidence::of(c, Key::Fairness)),
        tested: format!("least ÷ largest progress of every uniform group at least {FAIR}, by the whole interval"),
        holds,
        evidence: cells.iter().filter_map(|c| Evidence::of(c, Key::Fairness)).collect(),
        published: None,
        command: (holds == Holds::Open).then(|| command(analysis)).flatten(),
        summary: false,
    })
}
