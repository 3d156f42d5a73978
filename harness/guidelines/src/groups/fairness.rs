//! Do equal members progress equally?
//!
//! The least ÷ the largest progress of a run is below 1 by noise alone, and the more so the more members there are. So the rule is judged by
//! each member's mean over the repetitions, and the value that equal members would show by their scatter stands beside the measured one.

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_quantity::stats::seats::Seats;
use collo_quantity::{Key, number};

use crate::rule::evidence::Evidence;
use crate::rule::{Claim, Guideline, decide_by_interval, nothing};
use crate::verdict::{self, Agreement, Groups};

/// Equal members count as treated equally if the slowest makes at least nine tenths of the fastest's progress.
const FAIR: f64 = 0.9;

pub fn guideline(analysis: &Analysis) -> Option<Guideline> {
    if crate::rule::only_mixed(analysis) {
        return None;
    }
    // Equal members on unequal instances are not treated equally, and should not be.
    let has_equal_slices = |c: &&Cell| c.record.alone_on_slice.windows(2).all(|two| two[0] == two[1]);
    let alike = crate::rule::training(analysis).filter(|c| c.record.is_uniform()).filter(has_equal_slices);
    let groups = Groups::of(analysis, alike, Key::Fairness);
    let seats: Vec<Option<Seats>> = groups.judged.iter().map(|c| c.seats()).collect();
    // All pairs of members of all groups are compared together.
    let pairs = seats.iter().flatten().map(Seats::pairs).sum::<usize>();
    let spread: Vec<Option<(f64, f64)>> = seats.iter().map(|s| s.as_ref().map(|s| s.least_ratio(pairs))).collect();
    let count = |is: &dyn Fn(&(f64, f64)) -> bool| spread.iter().flatten().filter(|ends| is(ends)).count();
    let (fair, unfair) = (count(&|(low, _)| *low >= FAIR), count(&|(_, high)| *high < FAIR));
    let holds = verdict::of_all(fair, unfair, groups.judged.len() - fair - unfair + groups.missing());
    let worst = crate::rule::extreme(&groups.judged, Key::Fairness, false);
    let finding = match worst {
        None => nothing(&groups, "the progress of all members", crate::rule::NO_GROUP),
        Some(c) => {
            let value = c.get(Key::Fairness).map_or_else(String::new, number::with_interval);
            let alone = c.seats().map_or_else(String::new, |s| {
                format!("; members that differ by their scatter alone would show {}", number::three(s.by_chance()))
            });
            format!("In a run of `{}` the slowest member makes {value} of the fastest's progress{alone}.", c.name())
        }
    };
    Some(
        Claim {
            id: "fairness",
            question: "Do equal members progress equally?",
            advice: "Expect equal members to progress equally.".into(),
            otherwise: "plan for the slowest.".into(),
            finding,
            holds,
            agrees: Agreement::NotStudied,
            key: worst.and_then(|c| Evidence::of(c, Key::Fairness)).map(|e| e.picked_from(groups.judged.len())),
            tested: format!(
                "mean progress of each member over the repetitions, least ÷ largest of every uniform group at least {FAIR}, by the whole interval \
                 over all pairs of members (Bonferroni)"
            ),
            evidence: groups.judged.iter().filter_map(|c| Evidence::of(c, Key::Fairness)).collect(),
            published: None,
            next: decide_by_interval(analysis, &groups, "sharing == \"mps\""),
            scope: Some(groups.scope(analysis)),
        }
        .conclude(),
    )
}
