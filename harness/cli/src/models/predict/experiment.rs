//! What each cell of an experiment will need and give. In: an experiment, a device. Out: a row for each cell.

use collo_figures::document::{Align, Table};
use collo_guidelines::report_json::table::{ColumnKind, ExportTable, ExportValue};
use collo_measure::session::{NotPredicted, PythonToPredict, Request, Session};
use collo_plan::experiment::{DeviceRequest, Experiment, Overrides};
use collo_plan::facts::DeviceKind;
use collo_plan::plan::{CellForecast, ForecastSource, Plan, PlannedCell};
use collo_plan::project::Project;
use collo_plan::workload::Workloads;
use collo_prepare::consent::DescribeConsent;
use collo_quantity::number;
use collo_report::export::csv;
use collo_store::PredictedMember;
use collo_text::{Diagnostic, units};
use serde_json::{Value as Json, json};

use crate::answer::{Answer, Answered};
use crate::args::{self, PredictFormat};
use crate::context::Context;
use crate::measuring::steps;
use crate::{forecast_text, output, plan_text};

pub fn run(context: &Context<'_>, a: &args::Predict, project: &Project, workloads: &Workloads) -> Answered {
    for (is_given, option) in [(a.batch.is_some(), "--batch"), (a.peers, "--peers"), (a.predictor.is_some(), "--predictor")] {
        if is_given {
            let what = format!("`{option}` is for a workload, and `{}` is an experiment", a.target());
            return Err(Diagnostic::new(what).hint("`collo predict WORKLOAD`").into());
        }
    }
    let experiment = Experiment::resolve_with(project, a.target(), workloads, &Overrides::of(project, &a.settings)?)?;
    experiment.warnings.iter().for_each(output::warning);
    let device = DeviceRequest { gpu: a.gpu.clone(), planning: true, ..DeviceRequest::default() };
    let python = a.python.clone().or_else(|| experiment.layers.host().python.clone());
    let mut session = Session::plan(
        project,
        Request { device, python, describe: DescribeConsent::of(project, a.describe), ..Request::of(experiment) },
    )?;
    let why_not = steps::predicted(context, &mut session, PythonToPredict::Provided)?;
    if let Some(why_not) = why_not {
        let why_not = match why_not {
            NotPredicted::NotDescribed => steps::undescribed(format!("`{}`", a.target())),
            other => unpredicted(&session, &other),
        };
        return Err(why_not.into());
    }
    let plan = session.planned();
    let mut answer = Answer::default();
    match a.format.unwrap_or(if context.arguments.json { PredictFormat::Json } else { PredictFormat::Text }) {
        PredictFormat::Json => return Ok(Answer::json(value(plan))),
        PredictFormat::Csv => answer.lines(csv::text(&rows(plan)).trim_end()),
        PredictFormat::Text => {
            let device = plan_text::device(plan, session.facts());
            answer.lines(format!("{} on {device}: predicted, not measured\n", plan.experiment));
            answer.table(&table(plan));
            if !plan.refusals.is_empty() {
                answer.lines(format!("\n{}", plan_text::refused(plan, output::width()).trim_end()));
            }
            let notes = [forecast_text::memory(plan), forecast_text::gains(plan)];
            notes.iter().flatten().flat_map(|text| text.split("; ")).for_each(|note| answer.note(note));
        }
    }
    Ok(answer)
}

fn unpredicted(session: &Session, why_not: &NotPredicted) -> Diagnostic {
    let device = session.planned().device.name_said();
    match why_not {
        NotPredicted::NoPredictor => Diagnostic::new(format!("no predictor serves this device, {device}"))
            .note("one that was fitted on real GPUs serves no simulated one and no CPU, and the reverse")
            .hint("`collo predict fit CAMPAIGN --to predictors/NAME.json` makes one of your own runs; `--gpu a100-40gb` predicts for a GPU")
            .of_machine(),
        NotPredicted::NoPython | NotPredicted::NotAsked | NotPredicted::NotDescribed => Diagnostic::new("nothing could be predicted").of_machine(),
    }
}

/// Whether a cell will fit, in words.
fn verdict(planned: &PlannedCell) -> String {
    let memory = &planned.forecast.memory;
    match (memory.risk, memory.probability(), memory.fits) {
        (Some(_), Some(probability), _) => format!("may run out, {}", forecast_text::chance(probability)),
        (Some(_), None, _) => "may run out, by its members alone".into(),
        (None, _, Some(true)) => "fits".into(),
        (None, _, _) => "unknown".into(),
    }
}

/// Whether the time of a run is only the most that it may take.
fn is_bound(plan: &Plan, forecast: &CellForecast) -> bool {
    forecast.is_bound(if plan.device.kind == "cpu" { DeviceKind::Cpu } else { DeviceKind::Gpu })
}

fn table(plan: &Plan) -> Table {
    let columns = [
        ("cell", Align::Left),
        ("memory", Align::Right),
        ("", Align::Left),
        ("at most", Align::Right),
        ("", Align::Left),
        ("run", Align::Right),
        ("", Align::Left),
        ("gain", Align::Right),
        ("95 % interval", Align::Left),
    ];
    let mut table = Table::new(&columns, 4);
    for planned in &plan.cells {
        let forecast = &planned.forecast;
        let memory = &forecast.memory;
        table.values([
            Some(planned.record.cell.clone()),
            memory.bytes.map(units::gib),
            memory.source.map(|source| source.letter().to_string()),
            memory.upper_bytes.map(units::gib),
            Some(verdict(planned)),
            forecast.each_s.map(|s| format!("{}{}", if is_bound(plan, forecast) { "≤ " } else { "" }, units::clock(s))),
            forecast.basis.as_ref().map(|basis| basis.source().letter().to_string()),
            forecast_text::gain_of(forecast),
            forecast
                .gain
                .and_then(|gain| gain.bounds)
                .map(|(low, high)| format!("{} to {}", number::three(low), number::three(high))),
        ]);
    }
    table
}

fn rows(plan: &Plan) -> ExportTable {
    use ColumnKind::{Number, Text, Whole};
    let heads = [
        ("cell", Text),
        ("sharing", Text),
        ("degree", Whole),
        ("memory_bytes", Whole),
        ("memory_upper_bytes", Whole),
        ("memory_from", Text),
        ("device_memory_bytes", Whole),
        ("out_of_memory_probability", Number),
        ("verdict", Text),
        ("run_s", Number),
        ("run_low_s", Number),
        ("run_high_s", Number),
        ("run_from", Text),
        ("gain", Number),
        ("gain_low", Number),
        ("gain_high", Number),
        ("gain_from", Text),
        ("energy_j", Number),
        ("energy_low_j", Number),
        ("energy_high_j", Number),
        ("energy_from", Text),
    ];
    let absent = |value: Option<ExportValue>| value.unwrap_or(ExportValue::Absent);
    let planned = plan.cells.iter().map(|planned| {
        let (record, forecast) = (&planned.record, &planned.forecast);
        let (memory, gain) = (&forecast.memory, forecast.gain);
        vec![
            record.cell.as_str().into(),
            record.sharing.as_str().into(),
            record.degree.into(),
            absent(memory.bytes.map(ExportValue::from)),
            absent(memory.upper_bytes.map(ExportValue::from)),
            absent(memory.source.map(|source| source.as_str().into())),
            absent(plan.device.memory_bytes.map(ExportValue::from)),
            absent(memory.probability().map(ExportValue::from)),
            verdict(planned).into(),
            absent(forecast.each_s.filter(|_| !is_bound(plan, forecast)).map(ExportValue::from)),
            absent(forecast.each_bounds_s.map(|bounds| bounds.0.into())),
            absent(
                forecast
                    .each_bounds_s
                    .map(|bounds| bounds.1)
                    .or(forecast.each_s.filter(|_| is_bound(plan, forecast)))
                    .map(ExportValue::from),
            ),
            absent(forecast.basis.as_ref().map(|basis| basis.source().as_str().into())),
            absent(gain.map(|gain| gain.estimate.into())),
            absent(gain.and_then(|gain| gain.bounds).map(|bounds| bounds.0.into())),
            absent(gain.and_then(|gain| gain.bounds).map(|bounds| bounds.1.into())),
            absent(gain.map(|gain| gain.source.as_str().into())),
            absent(forecast.energy_j.map(ExportValue::from)),
            absent(forecast.energy_bounds_j.map(|bounds| bounds.0.into())),
            absent(forecast.energy_bounds_j.map(|bounds| bounds.1.into())),
            absent(forecast.energy_from.map(|source| source.as_str().into())),
        ]
    });
    let refused = plan.refusals.iter().map(|refused| {
        let nothing = || ExportValue::Absent;
        let (cell, sharing) = (refused.record.cell.as_str().into(), refused.record.sharing.as_str().into());
        let degree = refused.cell.degree().into();
        let there = absent(plan.device.memory_bytes.map(ExportValue::from));
        let why = format!("refused: {}", refused.record.reason).into();
        let mut row = vec![cell, sharing, degree, nothing(), nothing(), nothing(), there, nothing(), why];
        row.resize_with(heads.len(), nothing);
        row
    });
    ExportTable { heads: heads.map(|(name, kind)| (name.to_string(), kind)).into(), rows: planned.chain(refused).collect() }
}

fn value(plan: &Plan) -> Json {
    let predicted = plan.predicted.as_ref();
    let members = |planned: &PlannedCell| -> Vec<Json> {
        let of = |solo: &str| -> Option<&PredictedMember> { predicted?.of(solo, &planned.record.mode) };
        planned.record.members.iter().map(|member| json!(of(&member.solo))).collect()
    };
    let cells: Vec<Json> = plan
        .cells
        .iter()
        .map(|planned| {
            let (record, memory) = (&planned.record, &planned.forecast.memory);
            json!({"cell": record.cell, "sharing": record.sharing, "degree": record.degree, "memory_bytes": memory.bytes,
                "memory_upper_bytes": memory.upper_bytes, "memory_from": memory.source.map(ForecastSource::as_str),
                "fits": memory.fits, "out_of_memory_probability": memory.probability(), "forecast": planned.forecast.json(),
                "predicted": predicted.and_then(|claims| claims.of_cell(&record.cell)), "members": members(planned)})
        })
        .collect();
    json!({"schema": 1, "predicted": true, "experiment": plan.experiment, "device": plan.device,
        "made_utc": predicted.map(|p| &p.made_utc), "predictors": predicted.map(|p| p.predictors().collect::<Vec<_>>()), "cells": cells,
        "refusals": plan.record().refusals})
}
