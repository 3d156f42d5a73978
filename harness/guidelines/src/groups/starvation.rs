//! Starvation: in a mixed group, which workload makes least progress, and beside which others?

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::{Cell, Member};
use collo_quantity::{Key, number};

use crate::rule::evidence::Evidence;
use crate::rule::{Claim, Guideline, decide_by_interval, nothing};
use crate::verdict::{self, Agreement, Groups};

/// Different members count as treated alike if the slowest makes at least four fifths of the fastest's progress.
const ALIKE: f64 = 0.8;

pub fn guideline(analysis: &Analysis) -> Option<Guideline> {
    let mixed = || crate::rule::training(analysis).filter(|c| !c.record.is_uniform());
    mixed().next()?;
    // Groups in which only members that finish together have a slowdown cannot be judged, and these are the equal ones: they must not
    // stand for the others.
    let groups = Groups::of(analysis, mixed(), Key::Fairness);
    let bound = |c: &Cell, high: bool| c.get(Key::Fairness).and_then(|q| if high { q.high } else { q.low });
    let starving: Vec<&Cell> =
        groups.judged.iter().copied().filter(|c| bound(c, true).is_some_and(|high| high < ALIKE)).collect();
    let starved = starving.len();
    let alike = groups.judged.iter().filter(|c| bound(c, false).is_some_and(|low| low >= ALIKE)).count();
    let undecided = groups.judged.len() - starved - alike;
    let holds = verdict::of_all(alike, starved, undecided + groups.missing());
    // What follows from a no is about a group in which a member certainly starves, not about a smaller estimate that is undecided.
    let shown = if starving.is_empty() { &groups.judged } else { &starving };
    let worst = crate::rule::extreme(shown, Key::Fairness, false);
    let who = worst.and_then(ends);
    let otherwise = who
        .as_ref()
        .map_or_else(String::new, |(slow, fast)| format!("`{}` starves beside `{}`.", slow.spec.workload, fast.spec.workload));
    let finding = match (worst, who) {
        (Some(c), Some((slow, fast))) => {
            let slowdown = |m: &Member| m.get(Key::Slowdown).map_or_else(String::new, number::with_interval);
            let (s, f) = (slowdown(slow), slowdown(fast));
            let (slow, fast) = (&slow.spec.workload, &fast.spec.workload);
            let all = groups.judged.len() + groups.missing();
            let judged = if groups.missing() > 0 {
                format!(" {} of {} could be judged.", groups.judged.len(), number::count(all, "mixed group"))
            } else {
                String::new()
            };
            format!(
                "In `{}` `{slow}` takes {s} times as long as alone, `{fast}` {f}; one member starves in {starved} of {}.{judged}",
                c.name(),
                number::count(groups.judged.len(), "judged group")
            )
        }
        _ => nothing(&groups, "the progress of all members", crate::rule::NO_GROUP),
    };
    Some(
        Claim {
            id: "starvation",
            question: "Do the members of a mixed group slow down about equally?",
            advice: "In a mixed group all members slow down about equally.".into(),
            otherwise,
            finding,
            holds,
            agrees: Agreement::NotStudied,
            key: worst.and_then(|c| Evidence::of(c, Key::Fairness)).map(|e| e.picked_from(groups.judged.len())),
            tested: format!(
                "least ÷ largest progress of every mixed group at least {ALIKE}, by the whole interval; open while a group cannot be judged"
            ),
            evidence: groups.judged.iter().filter_map(|c| Evidence::of(c, Key::Fairness)).collect(),
            published: None,
            next: decide_by_interval(analysis, &groups, "sharing == \"mps\""),
            scope: Some(groups.scope(analysis)),
        }
        .conclude(),
    )
}

/// The most and the least slowed-down member.
fn ends(cell: &Cell) -> Option<(&Member, &Member)> {
    let slowdown = |m: &&Member| m.get(Key::Slowdown).map(|q| q.estimate);
    let known = || cell.members.iter().filter(|m| slowdown(m).is_some());
    let most = known().max_by(|a, b| slowdown(a).unwrap_or(0.0).total_cmp(&slowdown(b).unwrap_or(0.0)))?;
    let least = known().min_by(|a, b| slowdown(a).unwrap_or(0.0).total_cmp(&slowdown(b).unwrap_or(0.0)))?;
    Some((most, least))
}
