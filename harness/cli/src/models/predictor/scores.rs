//! Predictions compared with measurements. In: measured rows. Out: a table of scores for each who measured. Where rows are fitted, each is
//! predicted by a fit that has not seen its architecture.

use collo_figures::document::{Align, Table};
use collo_laboratory::measurements::{Measurement, Measurer};
use collo_laboratory::memory::Described;
use collo_plan::predictors;
use collo_predict::{Predictor, Score, published, score};
use serde_json::{Value as Json, json};

use super::binned::Binned;
use super::memnet;
use super::{mib, percent};
use crate::args::{Classify, Evaluate};
use crate::context::{Context, Ended};
use crate::{exit, output};

pub fn evaluate(context: &Context<'_>, asked: &Evaluate, classify: &Classify) -> Ended {
    let described = Described::of(context, &asked.request())?;
    let shipped = predictors::find_of_memory(&context.project()?, &context.folder()?, predictors::SHIPPED)?;
    let mut parts = Vec::new();
    for (by, who) in described.all.measurers() {
        let rows = described.rows(by);
        let estimates = described.estimates(context, &rows, who, &shipped);
        let scores: Vec<(String, Score)> =
            estimates.iter().filter_map(|(name, rows)| Some((name.clone(), score(rows)?))).collect();
        let measured: Vec<f64> = rows.iter().map(|row| row.reading).collect();
        let binned: Vec<Binned> = classify.bins.iter().filter_map(|width| Binned::of(&measured, &estimates, *width)).collect();
        if !context.arguments.json {
            output::result(format!("{} trainings, measured by {}", rows.len(), who.name));
            output::result(format!("{}\n", table(&scores).render(output::width()).trim_end()));
            for one in &binned {
                output::result(format!("{}\n", one.table().render(output::width()).trim_end()));
            }
        }
        let trained = classify
            .memnet
            .then(|| memnet::trained(context, asked.python.as_deref(), classify, &described.memnet_rows(&rows)))
            .transpose()?;
        if context.arguments.json {
            let list: Vec<Json> = scores.iter().map(|(name, score)| value(name, score)).collect();
            let trainings = trainings(&described, &rows, who, &shipped);
            let mut part = json!({"measured_by": who.name, "rows": rows.len(), "estimators": list, "trainings": trainings});
            if !binned.is_empty() {
                part["bins"] = binned.iter().map(Binned::value).collect();
            }
            if let Some(answer) = &trained {
                part["memnet"] = serde_json::to_value(answer).unwrap_or_default();
            }
            parts.push(part);
        } else if let Some(answer) = &trained {
            memnet::print(answer);
        }
    }
    if context.arguments.json {
        let left_out: Vec<Json> =
            described.all.left_out.iter().map(|(reason, rows)| json!({"reason": reason, "rows": rows})).collect();
        output::json(&json!({"schema": 1, "measured": parts, "left_out": left_out, "warnings": described.all.warnings}));
    } else {
        output::note(
            "too low: below the measurement; covered, above: of the two-sided interval and of the upper bound, both meant for 95 %",
        );
        if described.is_published {
            let sources = &published::estimators().sources;
            sources.iter().for_each(|(name, source)| output::note(format!("{name}: {source}")));
        }
    }
    Ok(exit::DONE)
}

/// Each row with what the formula takes of it: for who wants to fit something else.
fn trainings(described: &Described, rows: &[&Measurement], who: &Measurer, shipped: &Predictor) -> Vec<Json> {
    let measured = described.measured(rows);
    let left_out = described.fitted(rows, who, shipped).map(|(fitted, _)| fitted.left_out).unwrap_or_default();
    let each = measured.iter().enumerate().map(|(at, row)| {
        let predicted = left_out.get(at);
        json!({"training": row.label, "family": row.family, "measured_bytes": row.measured_bytes, "reserved_bytes": row.held_bytes,
            "workspace_bytes": row.workspace_bytes, "estimate_bytes": predicted.and_then(|p| p.estimate_bytes),
            "upper_bytes": predicted.and_then(|p| p.bounds).map(|b| b.upper_bytes)})
    });
    each.collect()
}

fn table(scores: &[(String, Score)]) -> Table {
    let columns = [
        ("estimator", Align::Left),
        ("rows", Align::Right),
        ("median error", Align::Right),
        ("of it", Align::Right),
        ("worst", Align::Right),
        ("too low", Align::Right),
        ("covered", Align::Right),
        ("above", Align::Right),
        ("worst row", Align::Left),
    ];
    let mut table = Table::new(&columns, 4);
    for (name, score) in scores {
        let bounded = score.bounded.as_ref();
        table.values([
            Some(name.clone()),
            Some(score.rows.to_string()),
            Some(mib(score.median_error_bytes)),
            Some(percent(score.median_relative_error)),
            Some(percent(score.worst_relative_error)),
            Some(score.under.to_string()),
            bounded.map(|b| format!("{} of {}", b.covered, b.rows)),
            bounded.map(|b| b.exceeded.to_string()),
            Some(score.worst_row.clone()),
        ]);
    }
    table
}

fn value(name: &str, score: &Score) -> Json {
    let bounded = score.bounded.as_ref().map(|b| {
        json!({"rows": b.rows, "covered": b.covered, "exceeded": b.exceeded, "worst_excess_bytes": b.worst_excess_bytes,
            "median_over_reservation": b.median_over_reservation})
    });
    json!({"estimator": name, "rows": score.rows, "without": score.without, "median_error_bytes": score.median_error_bytes,
        "median_relative_error": score.median_relative_error, "p90_relative_error": score.p90_relative_error,
        "worst_relative_error": score.worst_relative_error, "worst_row": score.worst_row, "under": score.under,
        "spikes": score.spikes, "bounded": bounded})
}
