//! Was memory, and what company gives, what had been predicted? Compares each claim, made before the campaign ran, with what was
//! measured.

use collo_analysis::campaign::Analysis;
use collo_analysis::campaign::predicted::{MemoryWarnings, PredictedPoint, PredictionScore};
use collo_analysis::words::capital;
use collo_quantity::stats::Quantity;
use collo_quantity::{Key, number};
use statrs::distribution::{Binomial, DiscreteCDF};

use crate::rule::evidence::Evidence;
use crate::rule::{Claim, Guideline, PREDICTED};
use crate::verdict::{Agreement, Groups, Holds, next};

/// The share of measurements that an interval is meant to hold.
const NOMINAL: f64 = 0.95;
/// With fewer, one more could be the one of twenty that is outside.
const FEWEST: usize = 20;
/// A share of misses that chance leaves so rarely contradicts the intervals.
const RARE: f64 = 0.05;

/// What a guideline says of a predicted quantity.
struct Wording {
    id: &'static str,
    key: Key,
    question: &'static str,
    advice: &'static str,
    /// What to do if more was measured than predicted, and if less.
    more: &'static str,
    less: &'static str,
}

const MEMORY: Wording = Wording {
    id: "prediction",
    key: Key::Memory,
    question: "Do predictions of memory hold?",
    advice: "Plan with the predicted memory and its bounds.",
    more: "leave more room than the bounds do.",
    less: "less was needed than the bounds say.",
};
const COMPANY: Wording = Wording {
    id: "prediction-company",
    key: Key::ThroughputGain,
    question: "Do predictions of what company gives hold?",
    advice: "Choose groups by their predicted gain.",
    more: "groups gave more than predicted.",
    less: "groups gave less than predicted.",
};

/// Of memory, with what the marks of the plan were worth.
pub fn memory(analysis: &Analysis) -> Option<Guideline> {
    let warnings = analysis.memory_warnings();
    guideline(analysis, &MEMORY, &said(warnings), warnings.ran_out_unmarked)
}

/// Of groups.
pub fn company(analysis: &Analysis) -> Option<Guideline> {
    guideline(analysis, &COMPANY, "", 0)
}

/// `unseen` are cells without a reading, because they needed more than was foreseen.
fn guideline(analysis: &Analysis, wording: &Wording, warned: &str, unseen: usize) -> Option<Guideline> {
    let found = analysis.predicted().into_iter().find(|quantity| quantity.key == wording.key)?;
    let points: Vec<PredictedPoint> = found.points.into_iter().filter(|point| point.cell.is_valid()).collect();
    let score = PredictionScore::of(points.iter());
    let holds = score.map_or(Holds::Open, |score| judged_beside(score.points, score.points - score.covered, unseen));
    let furthest = points.iter().max_by(|a, b| a.error_log().total_cmp(&b.error_log()));
    let label = wording.key.label;
    let finding = match (sentence(analysis, wording.key, &points), furthest) {
        (Some(sentence), Some(furthest)) => {
            let few = if holds == Holds::Open && points.len() < FEWEST {
                format!(" Fewer than {FEWEST} are too few to judge {} intervals.", number::percent(NOMINAL))
            } else if holds == Holds::Open {
                " Cells that ran out of memory without a mark have no reading, and may have been outside their intervals.".into()
            } else {
                String::new()
            };
            let ratio = number::three(furthest.ratio());
            format!("{}; `{}` is furthest, {ratio} times its prediction.{warned}{few}", capital(&sentence), furthest.name())
        }
        _ => format!("Of no valid cell {label} was both predicted and read.{warned}"),
    };
    let more = furthest.is_some_and(|point| point.ratio() > 1.0);
    let evidence = |point: &PredictedPoint| evidence(wording.key, point);
    let groups = Groups::of(analysis, analysis.groups(), wording.key);
    let name = &analysis.campaign.experiment;
    let next = if score.is_none() { next(analysis, &groups, None, || format!("collo run {name}")) } else { Default::default() };
    Some(
        Claim {
            id: wording.id,
            question: wording.question,
            advice: wording.advice.into(),
            otherwise: if more { wording.more } else { wording.less }.into(),
            finding,
            agrees: Agreement::NotStudied,
            key: furthest.map(evidence),
            tested: format!(
                "no more intervals missed than chance leaves to {} ones (binomial, at 5 %), of at least {FEWEST}, even if all that ran out of memory \
                 unmarked were missed; cells of one workload err alike, which this ignores",
                number::percent(NOMINAL)
            ),
            holds,
            evidence: points.iter().map(evidence).collect(),
            published: None,
            scope: None,
            next,
        }
        .conclude(),
    )
}

/// `memory was within 5 % of its prediction in 41 of 44 cells, 2 intervals missed`; `None` for no points.
pub fn sentence(analysis: &Analysis, key: Key, points: &[PredictedPoint]) -> Option<String> {
    let score = PredictionScore::of(points.iter())?;
    let near = analysis.campaign.thresholds.relevant_ratio;
    let close = points.iter().filter(|point| point.error_log() <= near.ln_1p()).count();
    let of_cells = points.iter().all(|point| point.spec.is_none() || point.cell.record.is_uniform());
    let noun = if of_cells { "cell" } else { "member" };
    let missed = match score.points - score.covered {
        0 => "no interval".into(),
        missed => number::count(missed, "interval"),
    };
    let (near, all) = (number::percent(near), number::count(score.points, noun));
    Some(format!("{} was within {near} of its prediction in {close} of {all}, {missed} missed", key.label))
}

/// Whether so many misses are what is meant to happen.
fn judged(points: usize, missed: usize) -> Holds {
    if is_beyond_chance(points, missed) {
        Holds::No
    } else if points >= FEWEST {
        Holds::Yes
    } else {
        Holds::Open
    }
}

/// The same beside what has no reading: where these would be too many if they were missed, a yes is open.
fn judged_beside(points: usize, missed: usize, unseen: usize) -> Holds {
    match judged(points, missed) {
        Holds::Yes if judged(points + unseen, missed + unseen) == Holds::No => Holds::Open,
        holds => holds,
    }
}

fn is_beyond_chance(points: usize, missed: usize) -> bool {
    let Some(fewer) = missed.checked_sub(1) else { return false };
    Binomial::new(1.0 - NOMINAL, points as u64).is_ok_and(|by_chance| by_chance.sf(fewer as u64) < RARE)
}

/// What the marks of the plan were worth: nothing is said where none was set and none was missing.
fn said(warnings: MemoryWarnings) -> String {
    let MemoryWarnings { ran_out, ran_out_unmarked, ran_out_unsaid, marked_completed } = warnings;
    let marked = ran_out - ran_out_unmarked - ran_out_unsaid;
    let completed = |noun: &str| {
        format!(
            "{} that completed",
            if noun.is_empty() { marked_completed.to_string() } else { number::count(marked_completed, noun) }
        )
    };
    let what = match (ran_out, marked_completed) {
        (0, 0) => return String::new(),
        (0, _) => completed("cell"),
        (_, 0) => format!("{marked} of {} that ran out of memory", number::count(ran_out, "cell")),
        _ => format!("{marked} of {} that ran out of memory, and {}", number::count(ran_out, "cell"), completed("")),
    };
    let unsaid = if ran_out_unsaid > 0 { format!("; of {ran_out_unsaid} there was no prediction") } else { String::new() };
    format!(" The plan had marked {what}{unsaid}.")
}

fn evidence(key: Key, point: &PredictedPoint) -> Evidence {
    let value = Quantity { estimate: point.ratio(), low: None, high: None, n: point.repetitions, df: None };
    Evidence::new(point.cell.name(), Some(PREDICTED.into()), key, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misses_contradict_the_intervals_only_if_chance_does_not_leave_so_many() {
        let held = |points, missed| judged(points, missed).as_str();
        assert_eq!([held(1, 0), held(1, 1), held(10, 2)], ["open"; 3], "few intervals decide nothing");
        // By hand: 1 − 0.95² of two is 0.0975 for at least one, 0.05² for both.
        assert_eq!([held(2, 2), held(10, 3), held(44, 6)], ["no"; 3]);
        assert_eq!([held(20, 0), held(20, 3), held(44, 2), held(44, 5)], ["yes"; 4]);
    }

    #[test]
    fn what_ran_out_unmarked_leaves_a_yes_open_where_so_many_could_be_missed() {
        let held = |points, missed, unseen| judged_beside(points, missed, unseen).as_str();
        // By hand: of 25 at least five with a probability of 0.0072, of 21 at least one with 0.66.
        assert_eq!([held(20, 0, 0), held(20, 0, 1), held(20, 0, 5)], ["yes", "yes", "open"]);
        assert_eq!([held(10, 3, 5), held(10, 0, 5)], ["no", "open"], "they are no evidence of their own");
    }

    #[test]
    fn what_was_marked_and_what_ran_out_are_counted_apart() {
        let none = MemoryWarnings::default();
        let all = MemoryWarnings { ran_out: 4, ran_out_unmarked: 1, ran_out_unsaid: 1, marked_completed: 2 };
        insta::assert_snapshot!(said(all), @" The plan had marked 2 of 4 cells that ran out of memory, and 2 that completed; of 1 there was no prediction.");
        let missed = MemoryWarnings { ran_out: 1, ran_out_unmarked: 1, ..none };
        insta::assert_snapshot!(said(missed), @" The plan had marked 0 of 1 cell that ran out of memory.");
        insta::assert_snapshot!(said(MemoryWarnings { marked_completed: 1, ..none }), @" The plan had marked 1 cell that completed.");
        assert_eq!(said(none), "");
    }
}
