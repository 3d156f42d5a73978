//! A predictor of utilisation for people. In: the predictor. Out: lines.

use collo_predict::utilisation::UtilisationPredictor;
use collo_predict::{Width, WidthFrom};

use super::super::percent;

/// The error of its first law, for a list of predictors.
pub fn left_out(p: &UtilisationPredictor) -> Option<String> {
    let (activity, law) = p.targets.iter().next()?;
    Some(format!("RMSLE {:.3} of {}", law.left_out.rmsle, activity.as_str()))
}

/// A predictor in lines.
pub fn in_full(p: &UtilisationPredictor) -> String {
    let mut lines = vec![format!("{}: {}, fitted on {} measurements", p.name, p.quantity, p.mark.as_str())];
    let mut add = |what: &str, text: String| lines.push(format!("  {what:<16} {text}"));
    add("formula", format!("{}: ln(1 + percent) is linear in the logarithms of shares of a card", p.formula));
    for (activity, law) in &p.targets {
        let score = &law.left_out;
        let (rows, families, rmsle, constant) = (score.rows, score.families, score.rmsle, score.constant_rmsle);
        add(
            activity.as_str(),
            format!(
                "{rows} rows, {families} families: RMSLE {rmsle:.3} left out, {constant:.3} of a constant; {}",
                width(&law.width)
            ),
        );
    }
    match &p.time {
        Some(law) => {
            let score = &law.left_out;
            add(
                "step time",
                format!(
                    "{:.2} × the roofline + {:.1} µs an operation; {} rows, {} families: median error {} left out, worst {}; {}",
                    law.times,
                    law.launch_s * 1e6,
                    score.rows,
                    score.families,
                    percent(score.median_relative_error),
                    percent(score.worst_relative_error),
                    width(&law.width)
                ),
            );
        }
        None => add("step time", "not fitted: no step was timed, or of too few families".into()),
    }
    match &p.power {
        Some(law) => add(
            "power",
            format!(
                "{:.0} W + {:.0} W · SM active + {:.0} W · DRAM active, of {}; {} rows, {} families; {}",
                law.idle_w,
                law.sm_active_w,
                law.dram_active_w,
                law.card,
                law.left_out.rows,
                law.left_out.families,
                width(&law.width)
            ),
        ),
        None => add("power", "not fitted: power was not read, or of too few families".into()),
    }
    add("elsewhere", format!("intervals × {} with each step away from its device and torch, as logarithms: chosen", p.widening));
    let conditions = [
        ("GPU", &p.conditions.gpu),
        ("architecture", &p.conditions.architecture),
        ("driver", &p.conditions.driver),
        ("torch", &p.conditions.torch),
        ("precision", &p.conditions.precision),
    ];
    for (what, text) in conditions {
        text.iter().for_each(|text| add(what, text.clone()));
    }
    add("source", p.source.clone());
    lines.join("\n")
}

fn width(width: &Width) -> String {
    let from = match width.from {
        WidthFrom::Families => "of left-out families",
        WidthFrom::Spread => "by the spread of few families",
        WidthFrom::Published => "as published",
    };
    format!("95 % within ÷ and × {:.2}, {from}", width.two_sided_log.exp())
}
