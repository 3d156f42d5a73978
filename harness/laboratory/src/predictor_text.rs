//! A predictor in lines: what its file has, for people.

use collo_predict::{
    AnyLaw, AnyPredictor, CompanyLeftOut, CompanyModes, Factors, Law, MemoryLaw, ModeFit, TargetDevice, UtilisationLaw, Width,
    WidthFrom, Widths,
};
use collo_text::quoting;
use collo_text::units::{mib, percent};

/// What a line is about, and its text.
type Line = (String, String);

pub fn predictor_text(p: &AnyPredictor) -> String {
    let (wide, formula, of_law) = match &p.law {
        AnyLaw::Memory(law) => {
            (12, "context + a · what the allocator reserves + w · the largest convolution's input and output", of_memory(law))
        }
        AnyLaw::Utilisation(law) => (16, "ln(1 + percent) is linear in the logarithms of shares of a card", of_utilisation(law)),
        AnyLaw::Company(modes) => (
            12,
            "ln slowdown = Σ β₁ · SMACT of another · ln(1 + its step ÷ own) + β₂ · SMs over 0.95 + β₃ · utilisation over 1",
            of_company(modes),
        ),
    };
    let mut lines = vec![line("formula", format!("{}: {formula}", p.formula))];
    lines.extend(of_law);
    let from = if matches!(p.law, AnyLaw::Company(_)) { "its device, torch and mode" } else { "its device and torch" };
    let elsewhere = format!("intervals × {} with each step away from {from}, as logarithms: chosen", p.widening);
    lines.push(line("elsewhere", elsewhere));
    let c = &p.conditions;
    let cpu = (c.device == TargetDevice::Cpu).then(|| "cpu".to_string());
    let conditions = [
        ("device", &cpu),
        ("GPU", &c.gpu),
        ("architecture", &c.architecture),
        ("driver", &c.driver),
        ("torch", &c.torch),
        ("sharing", &c.sharing),
        ("precision", &c.precision),
        ("allocator", &c.allocator),
    ];
    lines.extend(conditions.into_iter().filter_map(|(what, text)| Some(line(what, text.clone()?))));
    lines.push(line("source", p.source.clone()));
    let head = format!("{}: {}, fitted on {} measurements", p.name, p.quantity, p.mark.as_str());
    let head = quoting::line(&head).into_owned();
    let rest = lines.into_iter().map(|(what, text)| format!("\n  {}", quoting::line(&format!("{what:<wide$} {text}"))));
    head + &rest.collect::<String>()
}

fn line(what: &str, text: String) -> Line {
    (what.into(), text)
}

fn of_memory(law: &MemoryLaw) -> Vec<Line> {
    let c = &law.coefficients;
    let errors = law.covariance.map(|covariance| covariance.standard_errors());
    let give_or_take = |error: Option<String>| error.map(|error| format!(", standard error {error}")).unwrap_or_default();
    let factors = match law.factors {
        Factors::Fitted => give_or_take(errors.map(|e| format!("{:.4}, {:.4}", e[1], e[2]))),
        Factors::Published => ", as published: of too few architectures to be fitted".into(),
        Factors::One => ", a byte for each byte: not fitted".into(),
    };
    let score = &law.left_out;
    let left_out = format!(
        "{} rows, {} families: median error {} ({}), worst {}, {} too low, {} above the upper bound",
        score.rows,
        score.families,
        mib(score.median_error_bytes),
        percent(score.median_relative_error),
        percent(score.worst_relative_error),
        score.under,
        score.exceeded
    );
    vec![
        line("context", format!("{}{}", mib(c.context_bytes), give_or_take(errors.map(|e| mib(e[0]))))),
        line("a, w", format!("{:.4}, {:.4}{factors}", c.per_reserved_byte, c.per_workspace_byte)),
        line("upper bound", format!("× {:.3}, {}", law.width.upper_log.exp(), from(&law.width))),
        line("95 % between", format!("÷ {:.3} and × {:.3}", law.width.below_log.exp(), law.width.above_log.exp())),
        line("left out", left_out),
    ]
}

fn of_utilisation(law: &UtilisationLaw) -> Vec<Line> {
    let mut lines = Vec::new();
    for (activity, law) in &law.targets {
        let score = &law.left_out;
        let (rows, families, rmsle, constant) = (score.rows, score.families, score.rmsle, score.constant_rmsle);
        let text = format!("{rows} rows, {families} families: RMSLE {rmsle:.3} left out, {constant:.3} of a constant");
        lines.push(line(activity.as_str(), format!("{text}; {}", within(&law.width))));
    }
    let time = law.time.as_ref().map(|law| {
        format!(
            "{:.2} × the roofline + {:.1} µs an operation; {} rows, {} families: median error {} left out, worst {}; {}",
            law.times,
            law.launch_s * 1e6,
            law.left_out.rows,
            law.left_out.families,
            percent(law.left_out.median_relative_error),
            percent(law.left_out.worst_relative_error),
            within(&law.width)
        )
    });
    lines.push(line("step time", time.unwrap_or_else(|| "not fitted: no step was timed, or of too few families".into())));
    let power = law.power.as_ref().map(|law| {
        format!(
            "{:.0} W + {:.0} W · SM active + {:.0} W · DRAM active, of {}; {} rows, {} families; {}",
            law.idle_w,
            law.sm_active_w,
            law.dram_active_w,
            law.card,
            law.left_out.rows,
            law.left_out.families,
            within(&law.width)
        )
    });
    lines.push(line("power", power.unwrap_or_else(|| "not fitted: power was not read, or of too few families".into())));
    lines
}

fn of_company(modes: &CompanyModes) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut add = |mode: &str, text: String, score: &CompanyLeftOut, widths: &Widths| {
        lines.extend([line(mode, text), line("left out", left_out(score)), line("95 % between", between(widths))]);
    };
    for (mode, fit) in modes.shared() {
        let Law { per_longer_step, per_full_compute, per_full_time } = fit.law;
        let text = format!("β {per_longer_step:.3}, {per_full_compute:.3}, {per_full_time:.3}; {}", groups(fit));
        add(mode.as_str(), text, &fit.left_out, &fit.widths);
    }
    if let Some(fit) = &modes.mig {
        let power = fit.law.per_smaller_slice;
        let law = format!("slowdown = (1 ÷ share of the SMs)^{power:.3} where a slice's own solo cell is not known");
        let text = format!("{law}; {}", groups(fit));
        add("mig", text, &fit.left_out, &fit.widths);
    }
    lines
}

fn groups<L>(fit: &ModeFit<L>) -> String {
    format!("{} families, groups of up to {}", fit.families, fit.most_members)
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
    let [slowdown, gain, antt, fairness] = widths.each().map(|width| ends(&width));
    format!("slowdown {slowdown}, gain {gain}, ANTT {antt}, fairness {fairness}; {}", from(&widths.gain))
}

fn within(width: &Width) -> String {
    format!("95 % within {}, {}", ends(width), from(width))
}

/// Both ends of an interval, as factors of its estimate.
fn ends(width: &Width) -> String {
    let (below, above) = (format!("{:.2}", width.below_log.exp()), format!("{:.2}", width.above_log.exp()));
    if below == above { format!("÷ and × {above}") } else { format!("÷ {below} and × {above}") }
}

fn from(width: &Width) -> &'static str {
    match width.from {
        WidthFrom::Families => "of its own left-out families",
        WidthFrom::Published => "as published: too few families for one of its own",
        WidthFrom::Spread => "by the spread of few families",
    }
}
