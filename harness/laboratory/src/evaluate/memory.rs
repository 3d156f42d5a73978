//! Predicted memory. In: measured rows. Out: scores, on request also by bins, and GPUMemNet's.

use collo_plan::predictors;
use collo_predict::{MemoryCases, MemoryFit, Score, published, score};
use collo_prepare::memnet::MemnetRow;
use collo_text::Diagnostics;
use collo_text::units::{mib, percent};
use serde_json::{Value as Json, json};

use super::binned::Binned;
use super::{Comparison, Scores, memnet, named, note, table};
use crate::caller::Caller;
use crate::memory;

pub fn evaluate(caller: &dyn Caller, asked: &Comparison<'_>, scores: &mut Scores) -> Result<Json, Diagnostics> {
    let described = memory::read(caller, &asked.rows)?;
    let shipped = predictors::find_of(&caller.project()?, &caller.folder()?, predictors::SHIPPED)?;
    for (by, who) in described.all.measurers() {
        let cases = described.cases(by, who)?;
        let fitted = cases.fit(&shipped);
        match &fitted {
            Ok(fit) => memory::doubt(caller, &fit.left_out),
            Err(why) => note(caller, format!("no fit of these rows: {why}")),
        }
        let fitted = fitted.ok();
        let estimates = cases.estimates(fitted.as_ref(), &shipped);
        let scored: Vec<(String, Score)> =
            estimates.iter().filter_map(|(name, rows)| Some((name.clone(), score(rows)?))).collect();
        let measured: Vec<f64> = cases.all.iter().map(|case| case.measured_bytes).collect();
        let binned: Vec<Binned> = asked.bins.iter().filter_map(|width| Binned::of(&measured, &estimates, *width)).collect();
        scores.lines(format!("{} trainings, measured by {}", cases.all.len(), who.name));
        scores.table(of_scores(&scored));
        binned.iter().for_each(|one| scores.table(one.table()));
        let train = |options| memnet::trained(caller, asked.rows.python, options, &memnet_rows(&cases));
        let trained = asked.memnet.map(train).transpose()?;
        let list: Vec<Json> = scored.iter().map(|(name, score)| named(name, serde_json::to_value(score))).collect();
        let trainings = trainings(&cases, fitted.as_ref());
        let mut part = json!({"measured_by": who.name, "rows": cases.all.len(), "estimators": list, "trainings": trainings});
        if !binned.is_empty() {
            part["bins"] = binned.iter().map(Binned::value).collect();
        }
        if let Some(trained) = &trained {
            part["memnet"] = serde_json::to_value(trained).unwrap_or_default();
            memnet::add(scores, trained);
        }
        scores.add(part);
    }
    let left_out: Vec<Json> =
        described.all.left_out.iter().map(|(reason, rows)| json!({"reason": reason, "rows": rows})).collect();
    let about =
        "too low: below the measurement; covered, above: of the two-sided interval and of the upper bound, both meant for 95 %";
    scores.note(about);
    if described.is_published() {
        published::estimators().sources.iter().for_each(|(name, source)| scores.note(format!("{name}: {source}")));
    }
    Ok(json!({"left_out": left_out, "warnings": described.all.warnings}))
}

/// Those that could be described, as GPUMemNet sees them.
fn memnet_rows(cases: &MemoryCases<'_>) -> Vec<MemnetRow> {
    let row = |case: &collo_predict::MemoryCase<'_>| {
        Some(MemnetRow::of(case.family, case.description?, case.batch, case.measured_bytes))
    };
    cases.all.iter().filter_map(row).collect()
}

/// Each row with what the formula takes of it, for a user who wants to fit something else.
fn trainings(cases: &MemoryCases<'_>, fitted: Option<&MemoryFit>) -> Vec<Json> {
    let each = cases.rows().into_iter().enumerate().map(|(at, row)| {
        let predicted = fitted.and_then(|fit| fit.left_out.get(at));
        json!({"training": row.label, "family": row.family, "measured_bytes": row.measured_bytes, "reserved_bytes": row.held_bytes,
            "workspace_bytes": row.workspace_bytes, "estimate_bytes": predicted.and_then(|p| p.estimate_bytes),
            "upper_bytes": predicted.and_then(|p| p.bounds).map(|b| b.upper_bytes)})
    });
    each.collect()
}

fn of_scores(scores: &[(String, Score)]) -> collo_figures::document::Table {
    let lines = scores.iter().map(|(name, score)| {
        let bounded = score.bounded.as_ref();
        vec![
            Some(name.clone()),
            Some(score.rows.to_string()),
            Some(mib(score.median_error_bytes)),
            Some(percent(score.median_relative_error)),
            Some(percent(score.worst_relative_error)),
            Some(score.under.to_string()),
            bounded.map(|b| format!("{} of {}", b.covered, b.rows)),
            bounded.map(|b| b.exceeded.to_string()),
            Some(score.worst_row.clone()),
        ]
    });
    let numbers = ["rows", "median error", "of it", "worst", "too low", "covered", "above"];
    table("estimator", &numbers, Some("worst row"), 4, lines)
}
