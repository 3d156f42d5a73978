//! Starvation: in a mixed group, which workload makes least progress, and beside which others?

use super::{Agreement, Evidence, Guideline, Holds, command, worded};
use crate::analysis::{Analysis, Cell, Member};
use crate::number;
use crate::quantity::Key;

/// Different members count as treated alike if the slowest makes at least four fifths of the fastest's progress.
const ALIKE: f64 = 0.8;

pub(super) fn guideline(analysis: &Analysis) -> Option<Guideline> {
    let mixed = |c: &&Cell| !c.record.is_uniform() && c.record.degree > 1 && !c.serves();
    analysis.groups().find(mixed)?;
    let usable = |c: &&Cell| c.is_valid() && c.get(Key::Fairness).is_some_and(|q| q.low.is_some());
    let cells: Vec<&Cell> = analysis.groups().filter(mixed).filter(usable).collect();
    let starved = cells.iter().filter(|c| c.get(Key::Fairness).and_then(|q| q.high).is_some_and(|h| h < ALIKE)).count();
    let alike = cells.iter().all(|c| c.get(Key::Fairness).and_then(|q| q.low).is_some_and(|l| l >= ALIKE));
    let holds = if starved > 0 {
        Holds::No
    } else if !cells.is_empty() && alike {
        Holds::Yes
    } else {
        Holds::Open
    };
    let fairness = |c: &Cell| c.get(Key::Fairness).map_or(f64::INFINITY, |q| q.estimate);
    let worst = cells.iter().min_by(|a, b| fairness(a).total_cmp(&fairness(b)));
    let who = worst.and_then(|c| ends(c));
    let otherwise = who
        .as_ref()
        .map_or_else(String::new, |(slow, fast)| format!("`{}` starves beside `{}`.", slow.spec.workload, fast.spec.workload));
    let finding = match (worst, who) {
        (Some(c), Some((slow, fast))) => {
            let slowdown = |m: &Member| m.get(Key::Slowdown).map_or_else(String::new, number::with_interval);
            let (s, f) = (slowdown(slow), slowdown(fast));
            let (slow, fast) = (&slow.spec.workload, &fast.spec.workload);
            let pays = if starved == 0 { "none".to_string() } else { starved.to_string() };
            let groups = number::count(cells.len(), "mixed group");
            format!(
                "In `{}` `{slow}` takes {s} times as long as alone, `{fast}` {f}; one starves in {pays} of {groups}.",
                c.name()
            )
        }
        _ => "No valid mixed group has a fairness with an interval.".into(),
    };
    let (statement, finding) = worded(
        holds,
        "Do the members of a mixed group slow down about equally?",
        "In a mixed group all members slow down about equally.",
        &otherwise,
        finding,
    );
    Some(Guideline {
        id: "starvation",
        statement,
        finding,
        agrees: Agreement::NotStudied,
        key: worst.and_then(|c| Evidence::of(c, Key::Fairness)),
        tested: format!("least ÷ largest progress of every mixed group at least {ALIKE}, by the whole interval"),
        holds,
        evidence: cells.iter().filter_map(|c| Evidence::of(c, Key::Fairness)).collect(),
        published: None,
        command: (holds == Holds::Open).then(|| command(analysis)).flatten(),
        summary: false,
    })
}

/// The most and the least slowed-down member.
fn ends(cell: &Cell) -> Option<(&Member, &Member)> {
    let slowdown = |m: &&Member| m.get(Key::Slowdown).map(|q| q.estimate);
    let known = || cell.members.iter().filter(|m| slowdown(m).is_some());
    let most = known().max_by(|a, b| slowdown(a).unwrap_or(0.0).total_cmp(&slowdown(b).unwrap_or(0.0)))?;
    let least = known().min_by(|a, b| slowdown(a).unwrap_or(0.0).total_cmp(&slowdown(b).unwrap_or(0.0)))?;
    Some((most, least))
}
