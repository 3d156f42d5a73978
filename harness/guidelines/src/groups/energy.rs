//! Which sharing mode needs least energy for the same work?

use std::collections::{BTreeMap, BTreeSet};

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_quantity::stats::RatioVerdict;
use collo_quantity::{Key, number};

use super::collocate::mode_name;
use crate::published::Published;
use crate::rule::evidence::Evidence;
use crate::rule::pairs::{Pairs, corrected_together, matched, members};
use crate::rule::{Claim, Guideline, NO_GROUP, STUDY, compared, decide, names, nothing, on_a_card};
use crate::verdict::{self, Agreement, Groups, Ranking, rank};

const PUBLISHED: Published = Published::new(
    "MPS draws more power and uses less energy than naive sharing; MIG uses the least energy, at lower power, when the instances \
                fit the workload.",
    "MIG least, then MPS, then naive",
    STUDY,
);

/// Groups of the same members, ranked by their energy for the same work.
pub fn rank_by_energy<'a>(cells: &[&'a Cell], threshold: f64) -> Option<Ranking<'a>> {
    rank(cells, threshold, |a, b| b.get(Key::EnergyOfSolo)?.over(a.get(Key::EnergyOfSolo)?))
}

pub fn guideline(analysis: &Analysis) -> Option<Guideline> {
    if !on_a_card(analysis) || crate::rule::training(analysis).next().is_none() && analysis.groups().any(Cell::serves) {
        return None;
    }
    let threshold = analysis.campaign.thresholds.relevant_ratio;
    let groups = Groups::of(analysis, crate::rule::training(analysis), Key::EnergyOfSolo);
    let tests = compared(analysis, &groups.judged, Key::EnergyOfSolo);
    let is = |wanted: RatioVerdict| tests.iter().filter(move |(_, test)| test.verdict == wanted);
    let saving: Vec<&Cell> = is(RatioVerdict::Worse).map(|(cell, _)| *cell).collect();
    let not = is(RatioVerdict::Better).count() + is(RatioVerdict::Same).count();
    let undecided = tests.len() - saving.len() - not;
    let holds = verdict::of_some(saving.len(), not, undecided + groups.missing());
    let best = crate::rule::extreme(&saving, Key::EnergyOfSolo, false);
    let finding = match best.and_then(|c| Some((c, c.get(Key::EnergyOfSolo)?))) {
        Some((c, q)) => format!(
            "{}; `{}` needs {}.",
            crate::rule::tally(
                &number::count(tests.len(), "group"),
                &[(saving.len(), "need less energy than the same work in turn"), (not, "do not"), (undecided, "undecided")]
            ),
            c.name(),
            number::percent(q.estimate)
        ),
        None if tests.is_empty() => nothing(&groups, "its energy", NO_GROUP),
        None => "No group is shown to need less energy than the same work in turn, beyond the threshold.".into(),
    };
    Some(
        Claim {
            id: "least-energy",
            question: "Does sharing save energy?",
            advice: advise(&saving, &groups.judged, threshold),
            otherwise: "do not share for that.".into(),
            finding,
            holds,
            agrees: agreement(analysis, threshold),
            key: best.and_then(|c| Evidence::of(c, Key::EnergyOfSolo)).map(|e| e.picked_from(tests.len())),
            tested: format!(
                "joules ÷ those of the same work in turn, the board's counter: below 1 by more than {0} in some group, Holm-corrected over the \
                 groups; modes by comparison with the best (Hsu) among the same members. Agreement: MIG not above MPS, and MPS not above \
                 naive, by more than {0}, and below somewhere; Holm-corrected over the pairs",
                number::percent_as_written(threshold)
            ),
            evidence: groups.judged.iter().filter_map(|c| Evidence::of(c, Key::EnergyOfSolo)).collect(),
            published: Some(PUBLISHED),
            next: decide(analysis, &groups, tests.iter().map(|(_, test)| test), "workload == \"small\""),
            scope: Some(groups.scope(analysis)),
        }
        .conclude(),
    )
}

/// The instruction: one mode only if it is the best of each set of members, by the test; where other members do not save, only for those
/// that do.
fn advise(saving: &[&Cell], judged: &[&Cell], threshold: f64) -> String {
    let mut subjects = BTreeMap::<Vec<&str>, Vec<&Cell>>::new();
    for cell in saving {
        subjects.entry(members(cell)).or_default().push(cell);
    }
    let rankings: Vec<Ranking> = subjects.values().filter_map(|cells| rank_by_energy(cells, threshold)).collect();
    let leaders: Vec<Vec<&str>> = rankings.iter().map(|r| r.leaders().into_iter().map(Cell::family).collect()).collect();
    let Some(first) = leaders.first() else { return String::new() };
    let asked: BTreeSet<Vec<&str>> = judged.iter().map(|c| members(c)).collect();
    let here = match subjects.len() == asked.len() {
        true => String::new(),
        false => {
            format!(", as was measured for {}", names(rankings.iter().flat_map(|r| r.leaders()).map(|c| c.name().to_string())))
        }
    };
    if leaders.iter().any(|other| other != first) {
        return format!("Share to save energy, and choose the mode per workload{here}.");
    }
    let modes = first.iter().map(|mode| mode_name(mode)).collect::<Vec<_>>().join(" or ");
    match rankings.iter().filter_map(|r| r.tie(threshold)).max() {
        Some(tie) => format!("Share under {modes} to save energy ({tie}){here}."),
        None => format!("Share under {modes} to save energy{here}."),
    }
}

/// Whether the published order of the modes was found.
fn agreement(analysis: &Analysis, threshold: f64) -> Agreement {
    // The work is the same on both sides, so the joules of it are compared, not the watts; more joules on the right are better.
    let joules = |a: &Cell, b: &Cell| b.get(Key::EnergyOfSolo)?.over(a.get(Key::EnergyOfSolo)?);
    let of = |left, right| Pairs::of(analysis, matched(analysis, left, right), |_| Key::EnergyOfSolo, joules);
    let [of_mig, of_mps] = corrected_together([of("mig", "mps"), of("mps", "naive")], threshold);
    // An order of three modes is not found where one of them is not compared.
    let whole = !of_mig.judged.is_empty() && !of_mps.judged.is_empty();
    let pairs = of_mig.with(of_mps);
    let open = pairs.may_be_below(threshold) + pairs.unjudged.len();
    let (less, more) = (pairs.how_many(RatioVerdict::Better), pairs.how_many(RatioVerdict::Worse));
    let found = match (less, more) {
        (0, 0) if pairs.judged.is_empty() => Agreement::NotMeasured,
        (1.., 1..) => Agreement::Partly,
        (_, 1..) => Agreement::No,
        (1.., 0) if whole && open == 0 => Agreement::Yes,
        _ => Agreement::Open,
    };
    verdict::where_possible(analysis, found)
}
