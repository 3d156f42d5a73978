//! The predictors: which there are, on what each was fitted, and how right it is.

use collo_figures::document::{Align, Table};
use collo_laboratory::predictor_text;
use collo_plan::predictors;
use collo_predict::{AnyLaw, AnyPredictor};
use collo_text::Diagnostics;
use collo_text::units::percent;
use serde_json::{Value as Json, json};

use crate::answer::{Answer, Answered};
use crate::context::Context;

pub fn list(context: &Context<'_>) -> Answered {
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
        let (median, worst) = errors(&predictor.law);
        table.values([
            Some(name.clone()),
            Some(predictor.quantity.to_string()),
            Some(format!("{} measurements", predictor.mark.as_str())),
            Some(predictor.law.rows().to_string()),
            median,
            worst,
            predictor.conditions.gpu.clone(),
        ]);
        let mut value = value(predictor);
        value["predictor"] = json!(name);
        values.push(value);
    }
    let mut answer = Answer::list("predictors", &values, &table, None);
    answer.note("errors are those on architectures that the fit had not seen; next: collo predict show NAME");
    let wrong: Vec<Diagnostics> = all.into_values().filter_map(|found| found.err().map(Diagnostics::from)).collect();
    answer.failed(&wrong);
    Ok(answer)
}

pub fn show(context: &Context<'_>, name: &str) -> Answered {
    let predictor = predictors::find(&context.project()?, &context.folder()?, name)?;
    let mut answer = Answer::default();
    answer.object(value(&predictor));
    answer.lines(predictor_text(&predictor));
    Ok(answer)
}

/// The median error and the worst: of utilisation that of its first law, of groups those of the gain in the mode of the most.
fn errors(law: &AnyLaw) -> (Option<String>, Option<String>) {
    let of_first = |score: f64, what: &str| format!("RMSLE {score:.3} of {what}");
    match law {
        AnyLaw::Memory(law) => {
            (Some(percent(law.left_out.median_relative_error)), Some(percent(law.left_out.worst_relative_error)))
        }
        AnyLaw::Utilisation(law) => {
            (law.targets.iter().next().map(|(activity, law)| of_first(law.left_out.rmsle, activity.as_str())), None)
        }
        AnyLaw::Company(modes) => {
            let most = modes.left_out().into_iter().max_by_key(|(_, left_out)| left_out.groups);
            most.map(|(_, left_out)| (percent(left_out.gain_median_error), percent(left_out.gain_worst_error))).unzip()
        }
    }
}

/// As it stands in its file.
fn value(predictor: &AnyPredictor) -> Json {
    serde_json::to_value(predictor).unwrap_or_default()
}
