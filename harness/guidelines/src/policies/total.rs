//! Does collocating shorten the total: under MPS, and under naive sharing?

use collo_analysis::campaign::Analysis;
use collo_analysis::trace::Arm;
use collo_quantity::stats::RatioVerdict;
use collo_quantity::{Key, number};

use super::{Holds, Judged, Wording, all_smaller, beside_exclusive, claim, judge, matrices, ratios_text, wanting};
use crate::rule::Guideline;

fn collocates(arm: &Arm, family: &str) -> bool {
    !arm.is_exclusive() && collo_store::Sharing::of_label(&arm.sharing).family == family
}

pub fn mps_total(analysis: &Analysis) -> Option<Guideline> {
    let matrices = matrices(analysis)?;
    if !matrices.iter().flat_map(|m| &m.arms).any(|arm| collocates(arm, "mps")) {
        return None;
    }
    let judged = judge(beside_exclusive(matrices, |arm| collocates(arm, "mps")), Key::Total);
    let finding = match judged.is_empty() {
        true => wanting(matrices, "a total under MPS beside `exclusive`"),
        false => ratios_text(&judged, "The total"),
    };
    let words = Wording {
        id: "trace-mps-total",
        question: "Does collocating under MPS shorten the total?",
        advice: "Collocate under MPS: the same tasks are done sooner.",
        otherwise: "not every policy under MPS shortens the total.",
        tested: "total of each policy under MPS ÷ that of `exclusive` within the same orders".into(),
    };
    let evidence = judged.iter().map(|j| j.evidence(Key::Total)).collect();
    claim(analysis, words, if judged.is_empty() { Holds::Open } else { all_smaller(&judged) }, finding, evidence)
}

pub fn naive_waits(analysis: &Analysis) -> Option<Guideline> {
    let matrices = matrices(analysis)?;
    if !matrices.iter().flat_map(|m| &m.arms).any(|arm| collocates(arm, "naive")) {
        return None;
    }
    let pairs = || beside_exclusive(matrices, |arm| collocates(arm, "naive"));
    let (totals, waits) = (judge(pairs(), Key::Total), judge(pairs(), Key::WaitMean));
    let is = |all: &[Judged], said: RatioVerdict| all.iter().filter(|j| j.said == said).count();
    let decided = |j: &&Judged| matches!(j.said, RatioVerdict::Better | RatioVerdict::Worse);
    let not_hardly = totals.iter().filter(decided).count();
    let shorter = all_smaller(&waits);
    let holds = match (totals.is_empty() || waits.is_empty(), shorter) {
        (true, _) => Holds::Open,
        _ if not_hardly > 0 => Holds::No,
        (_, Holds::No) => Holds::No,
        (_, Holds::Yes) if is(&totals, RatioVerdict::Same) == totals.len() => Holds::Yes,
        _ => Holds::Open,
    };
    let finding = match totals.is_empty() || waits.is_empty() {
        true => wanting(matrices, "a total under naive sharing beside `exclusive`"),
        false => format!("{} {}", ratios_text(&totals, "The total"), ratios_text(&waits, "The mean wait")),
    };
    let words = Wording {
        id: "trace-naive-waits",
        question: "Does naive sharing shorten waits, and the total hardly?",
        advice: "Collocate naively for shorter waits, not for a shorter total.",
        otherwise: "naive sharing does not leave the total as it is while waits become shorter.",
        tested: format!(
            "totals of policies under naive sharing the same as that of `exclusive` within {}, mean waits shorter",
            number::percent_as_written(matrices.first().map_or(0.05, |m| m.threshold))
        ),
    };
    let evidence = totals.iter().map(|j| j.evidence(Key::Total)).chain(waits.iter().map(|j| j.evidence(Key::WaitMean)));
    claim(analysis, words, holds, finding, evidence.collect())
}
