//! What avoids out of memory: conditions, estimates, a stricter cap?

use collo_analysis::campaign::Analysis;
use collo_analysis::trace::{Arm, TraceMatrix};
use collo_quantity::Key;

use super::{Counted, Holds, Judged, Wording, all_fewer, all_smaller, claim, judge, listed, matrices, unknown, wanting};
use crate::rule::{Guideline, not_judged};

/// Pairs of arms with the same order over the cards and the same mode, that differ as asked: the first is the safer one.
fn pairs(matrices: &[TraceMatrix], differ: impl Fn(&Arm, &Arm) -> bool) -> Vec<(&TraceMatrix, usize, usize)> {
    let mut found = Vec::new();
    for matrix in matrices {
        let arms = &matrix.arms;
        for safer in 0..arms.len() {
            let alike = |i: &usize| arms[*i].picks() == arms[safer].picks() && arms[*i].sharing == arms[safer].sharing;
            found.extend((0..arms.len()).filter(alike).filter(|i| differ(&arms[safer], &arms[*i])).map(|i| (matrix, safer, i)));
        }
    }
    found
}

/// What was counted of pairs, and the arms for which nothing was.
fn counted<'a>(pairs: &[(&'a TraceMatrix, usize, usize)]) -> (Vec<Counted<'a>>, Vec<String>) {
    let (mut found, mut open) = (Vec::new(), Vec::new());
    for &(matrix, a, b) in pairs {
        match Counted::of(matrix, a, b, Key::OutOfMemory) {
            Some(counted) => found.push(counted),
            None => open.push(unknown(&matrix.arms[a], &matrix.arms[b])),
        }
    }
    (found, open)
}

fn fewer(analysis: &Analysis, words: Wording, pairs: Vec<(&TraceMatrix, usize, usize)>, what: &str) -> Option<Guideline> {
    let matrices = matrices(analysis)?;
    if pairs.is_empty() {
        return None;
    }
    let (counted, open) = counted(&pairs);
    let holds = all_fewer(&counted, open.len());
    let finding = match counted.is_empty() {
        true => wanting(matrices, what),
        false => format!("Out of memory: {}{}", listed(counted.iter().map(Counted::text)), not_judged(open)),
    };
    claim(analysis, words, holds, finding, counted.iter().flat_map(Counted::evidence).collect())
}

pub fn conditions(analysis: &Analysis) -> Option<Guideline> {
    let differ = |safer: &Arm, other: &Arm| safer.is_conditional() && !other.is_conditional() && safer.estimate == other.estimate;
    let words = Wording {
        id: "trace-conditions",
        question: "Do conditions avoid out of memory?",
        advice: "Set conditions on free memory and SM activity: fewer attempts run out of memory.",
        otherwise: "conditions do not avoid out of memory everywhere.",
        tested: "attempts out of memory per run, with conditions − without them, of the same order, estimate and mode".into(),
    };
    fewer(analysis, words, pairs(matrices(analysis)?, differ), "a count of out of memory with and without conditions")
}

pub fn estimates(analysis: &Analysis) -> Option<Guideline> {
    let differ = |safer: &Arm, other: &Arm| {
        safer.is_estimated() && !other.is_estimated() && safer.parameter("sm") == other.parameter("sm")
    };
    let words = Wording {
        id: "trace-estimates",
        question: "Do estimates of memory avoid out of memory further?",
        advice: "Estimate memory before tasks run: fewer attempts run out of it.",
        otherwise: "estimates do not avoid out of memory everywhere.",
        tested: "attempts out of memory per run, with an estimate − without one, of the same order, cap and mode".into(),
    };
    fewer(analysis, words, pairs(matrices(analysis)?, differ), "a count of out of memory with and without an estimate")
}

/// The cap on SM activity, percent.
fn cap_of(arm: &Arm) -> Option<f64> {
    arm.parameter("sm")?.trim_end_matches('%').parse().ok()
}

pub fn cap(analysis: &Analysis) -> Option<Guideline> {
    let matrices = matrices(analysis)?;
    let others = |arm: &Arm| {
        let parameters = arm.policy.split_once(':').map_or("", |(_, parameters)| parameters).to_string();
        parameters.split(',').filter(|p| !p.starts_with("sm=")).map(str::to_string).collect::<Vec<_>>()
    };
    let differ = |safer: &Arm, other: &Arm| {
        let stricter = cap_of(safer).zip(cap_of(other)).is_some_and(|(a, b)| a < b);
        stricter && others(safer) == others(other) && safer.estimate == other.estimate
    };
    let pairs = pairs(matrices, differ);
    if pairs.is_empty() {
        return None;
    }
    let (counted, open) = counted(&pairs);
    // The other way round: that the laxer one waits less.
    let waits = judge(pairs.iter().map(|(matrix, strict, lax)| (*matrix, *lax, *strict)).collect(), Key::WaitMean);
    let is_unread = counted.is_empty() || waits.judged.is_empty();
    let holds = match (is_unread, all_fewer(&counted, open.len()), all_smaller(&waits)) {
        (true, ..) => Holds::Open,
        (_, Holds::No, _) | (_, _, Holds::No) => Holds::No,
        (_, Holds::Yes, Holds::Yes) => Holds::Yes,
        _ => Holds::Open,
    };
    let finding = match is_unread {
        true => wanting(matrices, "two caps"),
        false => format!(
            "Out of memory: {} Mean wait under the laxer cap ÷ the stricter: {}{}",
            listed(counted.iter().map(Counted::text)),
            listed(waits.judged.iter().map(Judged::text)),
            not_judged(open.iter().chain(&waits.open).cloned())
        ),
    };
    let words = Wording {
        id: "trace-cap",
        question: "Does a stricter cap on SM activity trade out of memory against waiting?",
        advice: "Choose the cap on SM activity by what matters more: a stricter one has fewer out of memory and longer waits.",
        otherwise: "a stricter cap does not trade the one against the other.",
        tested: "attempts out of memory per run and mean wait under two caps of the same policy".into(),
    };
    let evidence = counted.iter().flat_map(Counted::evidence).chain(waits.judged.iter().map(|j| j.evidence(Key::WaitMean)));
    claim(analysis, words, holds, finding, evidence.collect())
}
