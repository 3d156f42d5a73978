//! A predictor of company in lines.

use collo_predict::{CompanyLeftOut, CompanyPredictor, Law, WidthFrom, Widths};

use super::super::percent;

pub fn in_full(p: &CompanyPredictor) -> String {
    let mut lines = vec![format!("{}: {}, fitted on {} measurements", p.name, p.quantity, p.mark.as_str())];
    let mut add = |what: &str, text: String| lines.push(format!("  {what:<12} {text}"));
    add(
        "formula",
        format!(
            "{}: ln slowdown = Σ β₁ · SMACT of another · ln(1 + its step ÷ own) + β₂ · SMs over 0.95 + β₃ · utilisation over 1",
            p.formula
        ),
    );
    for (mode, fit) in p.modes.shared() {
        let Law { per_longer_step, per_full_compute, per_full_time } = fit.law;
        let degree = format!("{} families, groups of up to {}", fit.families, fit.most_members);
        add(mode.as_str(), format!("β {per_longer_step:.3}, {per_full_compute:.3}, {per_full_time:.3}; {degree}"));
        add("left out", left_out(&fit.left_out));
        add("95 % between", between(&fit.widths));
    }
    if let Some(mig) = &p.modes.mig {
        add(
            "mig",
            format!(
                "slowdown = (1 ÷ share of the SMs)^{:.3} where a slice's own solo cell is not known",
                mig.law.per_smaller_slice
            ),
        );
        add("left out", left_out(&mig.left_out));
        add("95 % between", between(&mig.widths));
    }
    add(
        "elsewhere",
        format!("intervals × {} with each step away from its device, torch and mode, as logarithms: chosen", p.widening),
    );
    let conditions = [("GPU", &p.conditions.gpu), ("architecture", &p.conditions.architecture), ("torch", &p.conditions.torch)];
    for (what, text) in conditions {
        text.iter().for_each(|text| add(what, text.clone()));
    }
    add("source", p.source.clone());
    lines.join("\n")
}

fn left_out(score: &CompanyLeftOut) -> String {
    format!(
        "{} groups, {}: member median {}, gain median {}, p90 {}, worst {}, {} gains between their bounds",
        score.groups,
        score.unseen,
        percent(score.member_median_error),
        percent(score.gain_median_error),
        percent(score.gain_p90_error),
        percent(score.gain_worst_error),
        score.gain_covered
    )
}

fn between(widths: &Widths) -> String {
    let times = |log: f64| format!("÷ and × {:.2}", log.exp());
    let from = match widths.gain.from {
        WidthFrom::Families => "of its own left-out groups",
        WidthFrom::Published => "at least as published: too few sets of families for some of its own",
        WidthFrom::Spread => "of the spread of few families",
    };
    format!(
        "slowdown {}, gain {}, ANTT {}, fairness {}; {from}",
        times(widths.slowdown.two_sided_log),
        times(widths.gain.two_sided_log),
        times(widths.antt.two_sided_log),
        times(widths.fairness.two_sided_log)
    )
}
