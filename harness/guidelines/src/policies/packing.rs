//! Does packing tasks onto the fullest card that fits lengthen their execution?

use collo_analysis::campaign::Analysis;
use collo_analysis::trace::{Arm, TraceMatrix};
use collo_quantity::Key;
use collo_quantity::stats::RatioVerdict;

use super::{Wording, all_are, claim, judge, listed, matrices, wanting};
use crate::rule::{Guideline, not_judged};

/// The order that takes the card with the least free memory.
const PACKS: &str = "bf";

/// True if only the order over the cards differs.
fn differs_in_order_alone(a: &Arm, b: &Arm) -> bool {
    let rest = |arm: &Arm| arm.policy.split_once(':').map_or_else(String::new, |(_, parameters)| parameters.to_string());
    rest(a) == rest(b) && a.estimate == b.estimate && a.sharing == b.sharing
}

fn pairs(matrices: &[TraceMatrix]) -> Vec<(&TraceMatrix, usize, usize)> {
    let mut found = Vec::new();
    for matrix in matrices {
        let arms = &matrix.arms;
        for (packed, arm) in arms.iter().enumerate().filter(|(_, a)| a.picks() == PACKS) {
            let others = (0..arms.len()).filter(|i| arms[*i].picks() != PACKS && !arms[*i].is_exclusive());
            found.extend(others.filter(|i| differs_in_order_alone(arm, &arms[*i])).map(|i| (matrix, packed, i)));
        }
    }
    found
}

pub fn packing(analysis: &Analysis) -> Option<Guideline> {
    let matrices = matrices(analysis)?;
    if !matrices.iter().flat_map(|m| &m.arms).any(|arm| arm.picks() == PACKS) {
        return None;
    }
    let pairs = judge(pairs(matrices), Key::ExecutionMean);
    let holds = all_are(RatioVerdict::Worse, &pairs);
    let finding = match pairs.judged.is_empty() {
        true => wanting(matrices, "an execution under `bf` beside another order of the same conditions"),
        false => format!(
            "Mean execution beside the same conditions: {}{}",
            listed(pairs.judged.iter().map(|j| format!("{} of `{}` ({})", j.text(), j.right.name(), j.matrix.trace))),
            not_judged(pairs.open.iter().cloned())
        ),
    };
    let words = Wording {
        id: "trace-packing",
        question: "Does packing lengthen execution?",
        advice: "Do not pack tasks onto the fullest card: they execute longer.",
        otherwise: "packing does not lengthen execution everywhere.",
        tested: "mean execution under `bf` ÷ that under another order with the same conditions, estimate and mode, within the same orders of tasks".into(),
    };
    let evidence = pairs.judged.iter().map(|j| j.evidence(Key::ExecutionMean)).collect();
    claim(analysis, words, holds, finding, evidence)
}
