//! Is one policy best? Only if its total is shorter than that of each other one.

use collo_analysis::campaign::Analysis;
use collo_analysis::trace::TraceMatrix;
use collo_quantity::stats::RatioVerdict;
use collo_quantity::{Key, number};

use super::{Holds, Wording, claim, matrices};
use crate::rule::Guideline;
use crate::rule::evidence::Evidence;

pub fn best(analysis: &Analysis) -> Option<Guideline> {
    let matrices = matrices(analysis)?;
    let several = |m: &&TraceMatrix| m.arms.iter().filter(|a| !a.is_exclusive()).count() > 1;
    let asked: Vec<&TraceMatrix> = matrices.iter().filter(several).collect();
    if asked.is_empty() {
        return None;
    }
    let answers: Vec<(Holds, String, Vec<Evidence>)> = asked.iter().map(|matrix| answer(matrix)).collect();
    let is = |holds: Holds| answers.iter().any(|(h, ..)| *h == holds);
    let holds = if is(Holds::No) {
        Holds::No
    } else if is(Holds::Open) {
        Holds::Open
    } else {
        Holds::Yes
    };
    let finding = answers.iter().map(|(_, text, _)| text.as_str()).collect::<Vec<_>>().join(" ");
    let words = Wording {
        id: "trace-best",
        question: "Is one policy best?",
        advice: "One policy is best here: its total is shorter than that of each other one.",
        otherwise: "several policies are as good.",
        tested: "total of the shortest policy ÷ that of each other one within the same orders, corrected for all pairs".into(),
    };
    claim(analysis, words, holds, finding, answers.into_iter().flat_map(|(_, _, evidence)| evidence).collect())
}

fn answer(matrix: &TraceMatrix) -> (Holds, String, Vec<Evidence>) {
    let open = |why: &str| (Holds::Open, why.to_string(), Vec::new());
    if !matrix.has_spread() {
        return open("One order carries no interval, and names no winner: add to `orders` first.");
    }
    let Some(best) = matrix.shortest().filter(|i| matrix.arms[*i].is_valid()) else {
        return open("No policy has a valid total.");
    };
    let rivals = (0..matrix.arms.len()).filter(|i| *i != best && matrix.arms[*i].is_valid());
    let pairs: Vec<_> = rivals.filter_map(|i| Some((i, matrix.pair_of(best, i)?))).collect();
    let evidence: Vec<Evidence> = pairs
        .iter()
        .map(|(i, (ratio, ..))| Evidence::new(matrix.arms[best].name(), Some(matrix.arms[*i].name()), Key::Total, ratio.clone()))
        .collect();
    let of = |said: fn(&RatioVerdict) -> bool| -> Vec<usize> {
        let all = pairs.iter().filter(|(_, (_, verdict, _))| verdict.as_ref().is_some_and(said));
        all.map(|(i, _)| *i).collect()
    };
    let (ahead, same) = (of(|v| *v == RatioVerdict::Better), of(|v| *v == RatioVerdict::Same));
    let next = pairs.iter().filter(|(i, _)| !ahead.contains(i)).max_by(|a, b| a.1.0.estimate.total_cmp(&b.1.0.estimate));
    let second = next.or_else(|| pairs.iter().max_by(|a, b| a.1.0.estimate.total_cmp(&b.1.0.estimate)));
    let Some((other, (ratio, _, needed))) = second else { return open("There is one valid policy.") };
    let beside = format!(
        "`{}` has {}× the total of `{}`",
        matrix.arms[best].name(),
        number::with_interval(ratio),
        matrix.arms[*other].name()
    );
    let orders = number::count(matrix.orders.len(), "order");
    if ahead.len() == pairs.len() {
        return (Holds::Yes, format!("Over {orders} {beside}, the next one."), evidence);
    }
    if !same.is_empty() {
        let within = number::percent_as_written(matrix.threshold);
        return (
            Holds::No,
            format!("Over {orders} {beside}: {} within {within} of the shortest.", number::count(same.len(), "other")),
            evidence,
        );
    }
    (Holds::Open, format!("Over {orders} {beside}: can't tell; {}.", needed.text()), evidence)
}
