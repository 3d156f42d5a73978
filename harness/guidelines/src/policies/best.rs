//! Is one policy best? Only if its total is shorter than that of each other one, in every trace.

use collo_analysis::campaign::Analysis;
use collo_analysis::trace::{Arm, TraceMatrix};
use collo_quantity::stats::RatioVerdict;
use collo_quantity::{Key, number};

use super::{Holds, Wording, claim, matrices};
use crate::rule::evidence::Evidence;
use crate::rule::{Guideline, not_judged};
use crate::verdict::{self, Agreement};

/// The order over the cards that was published to be best.
const PUBLISHED_BEST: &str = "magm";

/// The answer of one trace.
struct BestOfTrace<'a> {
    holds: Holds,
    /// The policy that is shown to be best; absent if none is.
    best: Option<&'a Arm>,
    finding: String,
    evidence: Vec<Evidence>,
}

pub fn best(analysis: &Analysis) -> Option<Guideline> {
    let matrices = matrices(analysis)?;
    let several = |m: &&TraceMatrix| m.arms.iter().filter(|a| !a.is_exclusive()).count() > 1;
    let asked: Vec<&TraceMatrix> = matrices.iter().filter(several).collect();
    if asked.is_empty() {
        return None;
    }
    let answers: Vec<BestOfTrace> = asked.into_iter().map(answer).collect();
    let differ = do_differ(&answers);
    let holds = joint(&answers);
    let finding = answers.iter().map(|a| a.finding.as_str()).collect::<Vec<_>>().join(" ");
    let words = Wording {
        id: "trace-best",
        question: "Is one policy best?",
        advice: "One policy is best here: its total is shorter than that of each other one.",
        otherwise: if differ { "which one is best depends on the trace." } else { "several policies are as good." },
        tested: "total of the shortest policy ÷ that of each other one within the same orders, corrected for all pairs; the same policy in \
                 every trace"
            .into(),
    };
    // The published statement names the policy.
    let is_another = answers.iter().filter_map(|a| a.best).any(|arm| arm.picks() != PUBLISHED_BEST);
    let mut found = claim(analysis, words, holds, finding, answers.into_iter().flat_map(|a| a.evidence).collect())?;
    if is_another {
        found.agrees = verdict::where_possible(analysis, Agreement::No);
    }
    Some(found)
}

/// True if one policy is best in one trace, and another one in another.
fn do_differ(answers: &[BestOfTrace]) -> bool {
    let best: Vec<&Arm> = answers.iter().filter_map(|a| a.best).collect();
    let is_other = |a: &Arm, b: &Arm| (&a.policy, &a.estimate, &a.sharing) != (&b.policy, &b.estimate, &b.sharing);
    best.windows(2).any(|pair| is_other(pair[0], pair[1]))
}

/// The answer of all traces.
fn joint(answers: &[BestOfTrace]) -> Holds {
    let is = |holds: Holds| answers.iter().any(|a| a.holds == holds);
    match () {
        () if is(Holds::No) || do_differ(answers) => Holds::No,
        () if is(Holds::Open) => Holds::Open,
        () => Holds::Yes,
    }
}

fn answer(matrix: &TraceMatrix) -> BestOfTrace<'_> {
    let open = |why: String| BestOfTrace { holds: Holds::Open, best: None, finding: why, evidence: Vec::new() };
    if !matrix.has_spread() {
        return open("One order carries no interval, and names no winner: add to `orders` first.".into());
    }
    let Some(best) = matrix.shortest().filter(|i| matrix.arms[*i].is_valid()) else {
        return open("No policy has a valid total.".into());
    };
    let pair = |i: usize| matrix.pair_of(best, i).filter(|(_, verdict, _)| matrix.arms[i].is_valid() && verdict.is_some());
    let others = || (0..matrix.arms.len()).filter(|i| *i != best);
    let pairs: Vec<_> = others().filter_map(|i| Some((i, pair(i)?))).collect();
    // Each of these may be shorter than the shortest.
    let unknown: Vec<String> = others().filter(|i| pair(*i).is_none()).map(|i| matrix.arms[i].name()).collect();
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
    let open_ones = not_judged(unknown.iter().cloned());
    let Some((other, (ratio, _, needed))) = second else { return open(format!("There is one valid policy.{open_ones}")) };
    let beside = format!(
        "Over {} `{}` has {}× the total of `{}`",
        number::count(matrix.orders.len(), "order"),
        matrix.arms[best].name(),
        number::with_interval(ratio),
        matrix.arms[*other].name()
    );
    let is_told = ahead.len() + same.len() == pairs.len();
    let (holds, finding) = match (is_told && unknown.is_empty(), same.len()) {
        (true, 0) => (Holds::Yes, format!("{beside}, the next one.")),
        (true, n) => {
            let (others, within) = (number::count(n, "other"), number::percent_as_written(matrix.threshold));
            (Holds::No, format!("{beside}: {others} within {within} of the shortest."))
        }
        (false, _) if is_told => (Holds::Open, format!("{beside}.{open_ones}")),
        (false, _) => (Holds::Open, format!("{beside}: can't tell; {}.{open_ones}", needed.text())),
    };
    BestOfTrace { holds, best: (holds == Holds::Yes).then(|| &matrix.arms[best]), finding, evidence }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use collo_analysis::trace::{ArmValues, OrdersNeeded, RatioToReference};
    use collo_quantity::stats::Quantity;
    use collo_store::{Validity, Verdict};

    use super::*;

    /// A policy with its total in each order, beside 100 s of the reference.
    fn arm(policy: &str, totals: [f64; 3]) -> Arm {
        let mean = |of: f64| Quantity { estimate: totals[0] / of, low: None, high: None, n: 3, df: None };
        let ratio = RatioToReference { ratio: mean(100.0), test: None, needed: OrdersNeeded::Unknown };
        let in_order =
            |(total, order)| ArmValues { order: (0, order), repetitions: 1, values: BTreeMap::from([(Key::Total, total)]) };
        Arm {
            policy: policy.into(),
            estimate: "none".into(),
            sharing: "mps".into(),
            in_modes: false,
            validity: Validity::valid(),
            by_order: totals.into_iter().zip(1..).map(in_order).collect(),
            quantities: BTreeMap::from([(Key::Total, mean(1.0))]),
            ratios: BTreeMap::from([(Key::Total, ratio)]),
        }
    }

    fn matrix(policies: &[(&str, [f64; 3])]) -> TraceMatrix {
        let reference = arm("exclusive", [100.0, 101.0, 99.0]);
        let arms = [reference].into_iter().chain(policies.iter().map(|(policy, totals)| arm(policy, *totals)));
        let found = TraceMatrix {
            trace: "burst".into(),
            cards: 2,
            scale: 1,
            tasks: 10,
            orders: vec![1, 2, 3],
            arms: arms.collect(),
            reference: 0,
            pairs: Vec::new(),
            noise_ratio: None,
            spread_ratio: None,
            method: Some("pooled t".into()),
            threshold: 0.05,
        };
        found.paired()
    }

    const MAGM: (&str, [f64; 3]) = ("magm", [75.0, 76.0, 74.2]);
    const LUG: (&str, [f64; 3]) = ("lug", [85.0, 85.8, 84.1]);

    #[test]
    fn one_policy_is_best_only_if_no_other_could_still_be() {
        let both = matrix(&[MAGM, LUG]);
        let found = answer(&both);
        assert_eq!((found.holds, found.best.map(Arm::picks)), (Holds::Yes, Some("magm")), "{}", found.finding);
        let mut failed = matrix(&[MAGM, LUG]);
        failed.arms[2].validity.lower(Verdict::Indicative, "1 task not done");
        let failed = failed.paired();
        let found = answer(&failed);
        assert_eq!((found.holds, found.best.is_some()), (Holds::Open, false), "{}", found.finding);
        assert!(found.finding.ends_with(" Not judged: `lug MPS`."), "{}", found.finding);
    }

    #[test]
    fn another_policy_in_another_trace_is_no_best_one() {
        let (one, other) = (matrix(&[MAGM, LUG]), matrix(&[("magm", LUG.1), ("lug", MAGM.1)]));
        assert_eq!(joint(&[answer(&one), answer(&one)]), Holds::Yes);
        let answers = [answer(&one), answer(&other)];
        assert_eq!((joint(&answers), do_differ(&answers)), (Holds::No, true));
    }
}
