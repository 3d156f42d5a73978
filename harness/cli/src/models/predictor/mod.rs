//! `collo predictor`: what predicts, on what it was fitted, and how right it is.

mod binned;
mod caller;
mod company;
mod fit;
mod memnet;
mod scores;
mod utilisation;

use std::path::Path;

use collo_figures::document::{Align, Table};
use collo_plan::predictors;
use collo_predict::{AnyPredictor, CompanyPredictor, Factors, Predictor, Quantity, TargetDevice, WidthFrom};
use collo_text::Diagnostic;
use collo_text::units::gib;
use serde_json::{Value as Json, json};

use crate::args::{self, Evaluate, PredictedQuantity, PredictorVerb};
use crate::context::{Context, Ended};
use crate::{exit, output};

pub fn run(context: &Context<'_>, a: &args::Predictor) -> Ended {
    match &a.what {
        PredictorVerb::List => list(context),
        PredictorVerb::Show { name } => show(context, name),
        PredictorVerb::Evaluate { rows, classify, predictor, like } => match quantity(context, rows)? {
            Quantity::Memory => scores::evaluate(context, rows, classify),
            Quantity::Utilisation => utilisation::evaluate(context, rows, like),
            Quantity::Company => company::evaluate(context, rows, predictor.as_deref()),
        },
        PredictorVerb::Fit { rows, to } => match quantity(context, rows)? {
            Quantity::Memory => fit::fit(context, rows, to),
            Quantity::Utilisation => utilisation::fit(context, rows, to),
            Quantity::Company => company::fit(context, rows, to),
        },
    }
}

/// As asked for, else as the columns of the tables tell.
fn quantity(context: &Context<'_>, asked: &Evaluate) -> Result<Quantity, Diagnostic> {
    match asked.quantity {
        Some(PredictedQuantity::Memory) => Ok(Quantity::Memory),
        Some(PredictedQuantity::Utilisation) => Ok(Quantity::Utilisation),
        Some(PredictedQuantity::Company) => Ok(Quantity::Company),
        None => collo_laboratory::quantity::of(context, &asked.rows),
    }
}

fn list(context: &Context<'_>) -> Ended {
    let all = predictors::all(&context.project()?)?;
    let columns = [
        ("predictor", Align::Left),
        ("predicts", Align::Left),
        ("fitted on", Align::Left),
        ("rows", Align::Right),
        ("median error", Align::Right),
        ("worst", Align::Right),
        ("for", Align::Left),
    ];
    let mut table = Table::new(&columns, 3);
    let mut values = Vec::new();
    for (name, predictor) in all.iter().filter_map(|(name, p)| Some((name, p.as_ref().ok()?))) {
        let fitted = predictor.fitted();
        let (median, worst) = match predictor {
            AnyPredictor::Memory(memory) => {
                let score = &memory.left_out;
                (Some(percent(score.median_relative_error)), Some(percent(score.worst_relative_error)))
            }
            AnyPredictor::Utilisation(of_one) => (utilisation::left_out(of_one), None),
            AnyPredictor::Company(company) => of_company(company),
        };
        table.values([
            Some(name.clone()),
            Some(fitted.quantity().to_string()),
            Some(format!("{} measurements", fitted.mark().as_str())),
            Some(fitted.rows().to_string()),
            median,
            worst,
            fitted.conditions().gpu.clone(),
        ]);
        let mut value = value(predictor);
        value["predictor"] = json!(name);
        values.push(value);
    }
    if context.arguments.json {
        output::json(&json!({"schema": 1, "predictors": values}));
    } else {
        output::result(table.render(output::width()).trim_end());
        output::note("errors are those on architectures that the fit had not seen; next: collo predictor show NAME");
    }
    for wrong in all.into_values().filter_map(Result::err) {
        output::failure(&wrong.into());
    }
    Ok(exit::DONE)
}

fn show(context: &Context<'_>, name: &str) -> Ended {
    let predictor = predictors::find(&context.project()?, &context.folder()?, name)?;
    if context.arguments.json {
        let mut answer = json!({"schema": 1});
        for (key, value) in value(&predictor).as_object().into_iter().flatten().filter(|(key, _)| *key != "schema") {
            answer[key] = value.clone();
        }
        output::json(&answer);
    } else {
        output::result(match &predictor {
            AnyPredictor::Memory(memory) => in_full(memory),
            AnyPredictor::Company(predictor) => company::in_full(predictor),
            AnyPredictor::Utilisation(of_one) => utilisation::in_full(of_one),
        });
    }
    Ok(exit::DONE)
}

/// Of the gain, in the mode of the most groups.
fn of_company(predictor: &CompanyPredictor) -> (Option<String>, Option<String>) {
    let most = predictor.modes.left_out().into_iter().max_by_key(|(_, left_out)| left_out.groups);
    most.map(|(_, left_out)| (percent(left_out.gain_median_error), percent(left_out.gain_worst_error))).unzip()
}

/// As it stands in its file.
fn value(predictor: &AnyPredictor) -> Json {
    serde_json::from_str(&predictor.fitted().to_text()).unwrap_or_default()
}

/// A predictor in lines.
fn in_full(p: &Predictor) -> String {
    let mut lines = vec![format!("{}: {}, fitted on {} measurements", p.name, p.quantity, p.mark.as_str())];
    let mut add = |what: &str, text: String| lines.push(format!("  {what:<12} {text}"));
    let c = &p.coefficients;
    add(
        "formula",
        format!("{}: context + a · what the allocator reserves + w · the largest convolution's input and output", p.formula),
    );
    let errors = p.covariance.map(|covariance| covariance.standard_errors());
    let give_or_take = |error: Option<String>| error.map(|error| format!(", standard error {error}")).unwrap_or_default();
    add("context", format!("{}{}", mib(c.context_bytes), give_or_take(errors.map(|e| mib(e[0])))));
    let factors = match p.factors {
        Factors::Fitted => give_or_take(errors.map(|e| format!("{:.4}, {:.4}", e[1], e[2]))),
        Factors::Published => ", as published: of too few architectures to be fitted".into(),
        Factors::One => ", a byte for each byte: not fitted".into(),
    };
    add("a, w", format!("{:.4}, {:.4}{factors}", c.per_reserved_byte, c.per_workspace_byte));
    let from = match p.width.from {
        WidthFrom::Families => "of its own left-out families",
        WidthFrom::Published => "as published: too few families for one of its own",
        WidthFrom::Spread => "by the spread of too few families for one of its own",
    };
    add("upper bound", format!("× {:.3}, {from}", p.width.upper_log.exp()));
    add("95 % between", format!("÷ and × {:.3}", p.width.two_sided_log.exp()));
    add("elsewhere", format!("intervals × {} with each step away from its device and torch, as logarithms: chosen", p.widening));
    let score = &p.left_out;
    add(
        "left out",
        format!(
            "{} rows, {} families: median error {} ({}), worst {}, {} too low, {} above the upper bound",
            score.rows,
            score.families,
            mib(score.median_error_bytes),
            percent(score.median_relative_error),
            percent(score.worst_relative_error),
            score.under,
            score.exceeded
        ),
    );
    if p.conditions.device == TargetDevice::Cpu {
        add("device", "cpu: resident memory of a process".into());
    }
    let conditions = [
        ("GPU", &p.conditions.gpu),
        ("architecture", &p.conditions.architecture),
        ("driver", &p.conditions.driver),
        ("torch", &p.conditions.torch),
        ("sharing", &p.conditions.sharing),
        ("precision", &p.conditions.precision),
        ("allocator", &p.conditions.allocator),
    ];
    for (what, text) in conditions {
        text.iter().for_each(|text| add(what, text.clone()));
    }
    add("source", p.source.clone());
    lines.join("\n")
}

/// The name of a predictor that is to be written to a file.
pub fn name_of(to: &Path) -> Result<String, Diagnostic> {
    let name = to.file_stem().and_then(|stem| stem.to_str()).filter(|_| to.extension().is_some_and(|e| e == "json"));
    let wrong = || Diagnostic::new(format!("`--to {}` is not a file NAME.json", to.display()));
    name.map(String::from).ok_or_else(wrong)
}

/// MiB, in which footprints of single trainings are compared; KiB for next to nothing, GiB above 10.
pub fn mib(bytes: f64) -> String {
    let mib = bytes / collo_predict::published::MIB;
    if mib > 0.0 && mib < 0.095 {
        format!("{:.0} KiB", (mib * 1024.0).max(1.0))
    } else if mib > 0.0 && mib < 9.95 {
        format!("{mib:.1} MiB")
    } else if mib.abs() < 10_240.0 {
        format!("{mib:.0} MiB")
    } else {
        gib(bytes as u64)
    }
}

pub fn percent(share: f64) -> String {
    if share < 0.0995 { format!("{:.1} %", share * 100.0) } else { format!("{:.0} %", share * 100.0) }
}
