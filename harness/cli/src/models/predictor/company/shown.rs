//! A predictor of company in lines.

use collo_predict::{CompanyLeftOut, CompanyPredictor, Law, ModeFit, Serves, WidthFrom, Widths};

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
        add(mode.as_str(), format!("β {per_longer_step:.3}, {per_full_compute:.3}, {per_full_time:.3}; {}", serves(fit)));
        add("left out", left_out(&fit.law_left_out, "law"));
        if let Some(forest) = &fit.forest {
            add("", left_out(&forest.left_out, "forest"));
        }
        let widths = fit.forest.as_ref().filter(|_| fit.serves == Serves::Forest).map_or(fit.law_widths, |f| f.widths);
        add("95 % between", between(&widths));
    }
    if let Some(mig) = &p.modes.mig {
        add(
            "mig",
            format!(
                "slowdown = (1 ÷ share of the SMs)^{:.3} where a slice's own solo cell is not known",
                mig.law.per_smaller_slice
            ),
        );
        add("left out", left_out(&mig.left_out, "law"));
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

fn serves(fit: &ModeFit) -> String {
    let degree = format!("{} families, groups of up to {}", fit.families, fit.most_members);
    match fit.serves {
        Serves::Law => format!("the law serves; {degree}"),
        Serves::Forest => format!("a forest on what the law leaves serves; {degree}"),
    }
}

fn left_out(score: &CompanyLeftOut, of: &str) -> String {
    format!(
        "{of}: {} groups, {}: member median {}, gain median {}, p90 {}, worst {}, {} gains between their bounds",
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
