//! Traces as tables: policies, one row each; the tasks and the attempts of every run. In: an analysis. Out: rows under the names of
//! `report.json`; times are seconds from the first arrival of their run.

use collo_analysis::campaign::Analysis;
use collo_analysis::trace::{Arm, TraceMatrix, TraceRun};
use collo_analysis::words;
use collo_guidelines::report_json::run;
use collo_guidelines::report_json::table::{ColumnKind, ExportColumn, ExportTable, ExportValue};
use collo_quantity::Key;
use collo_quantity::unit::COUNT;

use ColumnKind::{Flag, Number, Text, Whole};

/// A trace with its cards and scale, in a campaign.
type TracePlace<'a> = (&'a Analysis, (&'a String, u32, u32));

/// The columns of the campaign, and of the trace with its cards and scale, for each row.
fn of_traces<'a>(analysis: &'a Analysis, traces: impl Iterator<Item = (&'a String, u32, u32)>) -> ExportTable {
    let columns: &[ExportColumn<TracePlace<'_>>] = &[
        ("experiment", Text, |(a, _)| ExportValue::text(&a.campaign.experiment)),
        ("campaign", Text, |(a, _)| ExportValue::text(&a.campaign.id)),
        ("device", Text, |(a, _)| ExportValue::text(&a.campaign.device.name)),
        ("simulated", Flag, |(a, _)| a.campaign.device.simulated.into()),
        ("trace", Text, |(_, (trace, ..))| ExportValue::text(*trace)),
        ("cards", Whole, |(_, (_, cards, _))| (*cards).into()),
        ("scale", Whole, |(_, (.., scale))| (*scale).into()),
    ];
    ExportTable::of(columns, traces.map(|trace| (analysis, trace)))
}

/// A row for each policy of each trace: its means, and its ratios to the reference within orders.
pub fn policies(analysis: &Analysis) -> ExportTable {
    let columns: &[ExportColumn<(&TraceMatrix, &Arm)>] = &[
        ("label", Text, |(_, arm)| arm.name().into()),
        ("policy", Text, |(_, arm)| arm.policy.clone().into()),
        ("estimate", Text, |(_, arm)| arm.estimate.clone().into()),
        ("sharing", Text, |(_, arm)| arm.sharing.clone().into()),
        ("orders", Whole, |(_, arm)| arm.by_order.len().into()),
        ("runs", Whole, |(_, arm)| arm.by_order.iter().map(|at| at.repetitions).sum::<usize>().into()),
        ("validity", Text, |(_, arm)| words::verdict(arm.validity.verdict).into()),
        ("reasons", Text, |(_, arm)| ExportValue::list(&arm.validity.reasons)),
        ("reference", Text, |(matrix, _)| matrix.reference().name().into()),
    ];
    let arms = || analysis.traces.matrices.iter().flat_map(|matrix| matrix.arms.iter().map(move |arm| (matrix, arm)));
    let mut quantities = ExportTable::default();
    for key in Key::of_traces() {
        quantities.heads.extend(["", "_low", "_high"].map(|end| (format!("{}{end}", key.name), Number)));
        if has_ratio(key) {
            let of_ratio = [("", Number), ("_low", Number), ("_high", Number), ("_p_adjusted", Number), ("_verdict", Text)];
            quantities.heads.extend(of_ratio.map(|(end, kind)| (format!("{}_to_reference{end}", key.name), kind)));
        }
    }
    quantities.rows = arms().map(|(_, arm)| numbers(arm)).collect();
    let traces = of_traces(analysis, arms().map(|(matrix, _)| (&matrix.trace, matrix.cards, matrix.scale)));
    traces.beside(ExportTable::of(columns, arms())).beside(quantities)
}

/// Counts are compared by differences, not by ratios.
fn has_ratio(key: Key) -> bool {
    key.unit != COUNT
}

fn numbers(arm: &Arm) -> Vec<ExportValue> {
    let mut row = Vec::new();
    for key in Key::of_traces() {
        row.extend(ExportValue::with_ends(arm.get(key)));
        if has_ratio(key) {
            let ratio = arm.ratios.get(&key);
            let test = ratio.and_then(|r| r.test.as_ref());
            row.extend(ExportValue::with_ends(ratio.map(|r| &r.ratio)));
            row.extend([test.map(|t| t.p_adjusted).into(), test.map(|t| t.verdict.as_str()).into()]);
        }
    }
    row
}

/// A row for each task of each run that completed; a discarded run has none.
pub fn tasks(analysis: &Analysis) -> ExportTable {
    let tasks = || analysis.traces.runs.iter().flat_map(run::tasks);
    of_runs(analysis, tasks().map(|row| row.run).collect()).beside(ExportTable::of(&run::task_columns(), tasks()))
}

/// A row for each attempt, likewise.
pub fn attempts(analysis: &Analysis) -> ExportTable {
    let attempts = || analysis.traces.runs.iter().flat_map(run::attempts);
    of_runs(analysis, attempts().map(|row| row.run).collect()).beside(ExportTable::of(&run::attempt_columns(), attempts()))
}

/// The columns of the run, for each row.
fn of_runs(analysis: &Analysis, runs: Vec<&TraceRun>) -> ExportTable {
    let columns: &[ExportColumn<&TraceRun>] = &[
        ("order", Whole, |run| run.of.order.into()),
        ("policy", Text, |run| run.of.policy.clone().into()),
        ("estimate", Text, |run| run.of.estimate.clone().into()),
        ("sharing", Text, |run| run.sharing.clone().into()),
        ("cell", Text, |run| run.cell.clone().into()),
        ("repetition", Whole, |run| run.repetition.into()),
        ("validity", Text, |run| words::verdict(run.validity.verdict).into()),
    ];
    let traces = of_traces(analysis, runs.iter().map(|run| (&run.of.trace, run.of.cards, run.of.scale)));
    traces.beside(ExportTable::of(columns, runs))
}
