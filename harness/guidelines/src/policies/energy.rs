//! Does MPS spend less energy than `exclusive`, while round-robin on naive sharing does not?

use collo_analysis::campaign::Analysis;
use collo_analysis::trace::Arm;
use collo_quantity::Key;
use collo_quantity::stats::RatioVerdict;

use super::{Holds, Wording, all_smaller, beside_exclusive, claim, judge, matrices, ratios_text, wanting};
use crate::rule::{Guideline, not_judged};

fn under(arm: &Arm, family: &str) -> bool {
    !arm.is_exclusive() && collo_store::Sharing::of_label(&arm.sharing).family == family
}

pub fn energy(analysis: &Analysis) -> Option<Guideline> {
    let matrices = matrices(analysis)?;
    if !matrices.iter().flat_map(|m| &m.arms).any(|arm| under(arm, "mps")) {
        return None;
    }
    let mps = judge(beside_exclusive(matrices, |arm| under(arm, "mps")), Key::SiteEnergy);
    let circle = judge(beside_exclusive(matrices, |arm| under(arm, "naive") && arm.picks() == "rr"), Key::SiteEnergy);
    let saves = circle.judged.iter().any(|j| j.said == RatioVerdict::Better);
    let may_save = !circle.open.is_empty() || circle.judged.iter().any(|j| matches!(j.said, RatioVerdict::CannotTell { .. }));
    let holds = match all_smaller(&mps) {
        _ if mps.judged.is_empty() => Holds::Open,
        Holds::No => Holds::No,
        _ if saves => Holds::No,
        Holds::Yes if may_save => Holds::Open,
        other => other,
    };
    let finding = match mps.judged.is_empty() {
        true => wanting(matrices, "the energy of all cards under MPS beside `exclusive`"),
        false => {
            let naive = if circle.judged.is_empty() {
                String::new()
            } else {
                format!(" {}", ratios_text(&circle.judged, "Round-robin on naive sharing: the energy"))
            };
            let open = not_judged(mps.open.iter().chain(&circle.open).cloned());
            format!("{}{naive}{open}", ratios_text(&mps.judged, "The energy")).replace("is shorter under", "is less under")
        }
    };
    let words = Wording {
        id: "trace-energy",
        question: "Does collocating under MPS spend less energy?",
        advice: "Collocate under MPS to spend less energy on the same tasks.",
        otherwise: "not every policy under MPS spends less energy, or round-robin on naive sharing does too.",
        tested: "energy of all cards under MPS ÷ that under `exclusive` within the same orders; that of `rr` on naive sharing not less".into(),
    };
    let evidence = mps.judged.iter().chain(&circle.judged).map(|j| j.evidence(Key::SiteEnergy)).collect();
    claim(analysis, words, holds, finding, evidence)
}
