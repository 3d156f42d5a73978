//! Does collocating shorten the total: under MPS, and under naive sharing?

use collo_analysis::campaign::Analysis;
use collo_analysis::trace::Arm;
use collo_quantity::stats::RatioVerdict;
use collo_quantity::{Key, number};

use super::{Holds, JudgedPairs, Wording, all_are, all_smaller, beside_exclusive, claim, judge, matrices, ratios_text, wanting};
use crate::rule::{Guideline, not_judged};

fn collocates(arm: &Arm, family: &str) -> bool {
    !arm.is_exclusive() && collo_store::Sharing::of_label(&arm.sharing).family == family
}

pub fn mps_total(analysis: &Analysis) -> Option<Guideline> {
    let matrices = matrices(analysis)?;
    if !matrices.iter().flat_map(|m| &m.arms).any(|arm| collocates(arm, "mps")) {
        return None;
    }
    let pairs = judge(beside_exclusive(matrices, |arm| collocates(arm, "mps")), Key::Total);
    let finding = match pairs.judged.is_empty() {
        true => wanting(matrices, "a total under MPS beside `exclusive`"),
        false => format!("{}{}", ratios_text(&pairs.judged, "The total"), not_judged(pairs.open.iter().cloned())),
    };
    let words = Wording {
        id: "trace-mps-total",
        question: "Does collocating under MPS shorten the total?",
        advice: "Collocate under MPS: the same tasks are done sooner.",
        otherwise: "not every policy under MPS shortens the total.",
        tested: "total of each policy under MPS ÷ that of `exclusive` within the same orders".into(),
    };
    let evidence = pairs.judged.iter().map(|j| j.evidence(Key::Total)).collect();
    claim(analysis, words, all_smaller(&pairs), finding, evidence)
}

pub fn naive_waits(analysis: &Analysis) -> Option<Guideline> {
    let matrices = matrices(analysis)?;
    if !matrices.iter().flat_map(|m| &m.arms).any(|arm| collocates(arm, "naive")) {
        return None;
    }
    let pairs = || beside_exclusive(matrices, |arm| collocates(arm, "naive"));
    let (totals, waits) = (judge(pairs(), Key::Total), judge(pairs(), Key::WaitMean));
    let is_unread = |pairs: &JudgedPairs| pairs.judged.is_empty();
    let holds = match (is_unread(&totals) || is_unread(&waits), all_are(RatioVerdict::Same, &totals), all_smaller(&waits)) {
        (true, ..) => Holds::Open,
        (_, Holds::No, _) | (_, _, Holds::No) => Holds::No,
        (_, Holds::Yes, Holds::Yes) => Holds::Yes,
        _ => Holds::Open,
    };
    let finding = match is_unread(&totals) || is_unread(&waits) {
        true => wanting(matrices, "a total under naive sharing beside `exclusive`"),
        false => format!(
            "{} {}{}",
            ratios_text(&totals.judged, "The total"),
            ratios_text(&waits.judged, "The mean wait"),
            not_judged(totals.open.iter().chain(&waits.open).cloned())
        ),
    };
    let words = Wording {
        id: "trace-naive-waits",
        question: "Does naive sharing shorten waits, but not the total?",
        advice: "Collocate naively for shorter waits, not for a shorter total.",
        otherwise: "naive sharing does not leave the total as it is while waits become shorter.",
        tested: format!(
            "totals of policies under naive sharing the same as that of `exclusive` within {}, mean waits shorter",
            number::percent_as_written(matrices.first().map_or(0.05, |m| m.threshold))
        ),
    };
    let evidence = totals.judged.iter().map(|j| j.evidence(Key::Total));
    let evidence = evidence.chain(waits.judged.iter().map(|j| j.evidence(Key::WaitMean)));
    claim(analysis, words, holds, finding, evidence.collect())
}
