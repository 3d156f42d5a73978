//! Traces as tables: policies, one row each; the tasks and the attempts of every run. In: an analysis. Out: rows under the names of
//! `report.json`; times are seconds from the first arrival of their run.

use collo_analysis::campaign::Analysis;
use collo_analysis::trace::{Arm, TraceMatrix, TraceRun};
use collo_analysis::words;
use collo_guidelines::report_json::run::{self, Heads};
use collo_guidelines::report_json::table::{ColumnKind, ExportTable, ExportValue};
use collo_quantity::Key;
use collo_quantity::unit::COUNT;

use ColumnKind::{Flag, Number, Text, Whole};

const CAMPAIGN: Heads = &[
    ("experiment", Text),
    ("campaign", Text),
    ("device", Text),
    ("simulated", Flag),
    ("trace", Text),
    ("cards", Whole),
    ("scale", Whole),
];

const POLICY: Heads = &[
    ("label", Text),
    ("policy", Text),
    ("estimate", Text),
    ("sharing", Text),
    ("orders", Whole),
    ("runs", Whole),
    ("validity", Text),
    ("reasons", Text),
    ("reference", Text),
];

const RUN: Heads = &[
    ("order", Whole),
    ("policy", Text),
    ("estimate", Text),
    ("sharing", Text),
    ("cell", Text),
    ("repetition", Whole),
    ("validity", Text),
];

fn owned(heads: &[Heads]) -> Vec<(String, ColumnKind)> {
    heads.iter().flat_map(|heads| heads.iter()).map(|(name, kind)| (name.to_string(), *kind)).collect()
}

/// A row for each policy of each trace: its means, and its ratios to the reference within orders.
pub fn policies(analysis: &Analysis) -> ExportTable {
    let mut heads = owned(&[CAMPAIGN, POLICY]);
    for key in Key::of_traces() {
        heads.extend(["", "_low", "_high"].map(|end| (format!("{}{end}", key.name), Number)));
        if has_ratio(key) {
            let of_ratio = [("", Number), ("_low", Number), ("_high", Number), ("_p_adjusted", Number), ("_verdict", Text)];
            heads.extend(of_ratio.map(|(end, kind)| (format!("{}_to_reference{end}", key.name), kind)));
        }
    }
    let rows = analysis.traces.matrices.iter().flat_map(|m| m.arms.iter().map(|arm| policy(analysis, m, arm))).collect();
    ExportTable { heads, rows }
}

/// Counts are compared by differences, not by ratios.
fn has_ratio(key: Key) -> bool {
    key.unit != COUNT
}

fn policy(analysis: &Analysis, matrix: &TraceMatrix, arm: &Arm) -> Vec<ExportValue> {
    let mut row = campaign(analysis, (&matrix.trace, matrix.cards, matrix.scale));
    row.extend([
        arm.name().into(),
        arm.policy.clone().into(),
        arm.estimate.clone().into(),
        arm.sharing.clone().into(),
        arm.by_order.len().into(),
        arm.by_order.iter().map(|at| at.repetitions).sum::<usize>().into(),
        words::verdict(arm.validity.verdict).into(),
        ExportValue::list(&arm.validity.reasons),
        matrix.reference().name().into(),
    ]);
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

fn campaign(analysis: &Analysis, (trace, cards, scale): (&str, u32, u32)) -> Vec<ExportValue> {
    let c = &analysis.campaign;
    vec![
        ExportValue::text(&c.experiment),
        ExportValue::text(&c.id),
        ExportValue::text(&c.device.name),
        c.device.simulated.into(),
        trace.into(),
        cards.into(),
        scale.into(),
    ]
}

/// A row for each task of each run that completed; a discarded run has none.
pub fn tasks(analysis: &Analysis) -> ExportTable {
    of_runs(analysis, run::TASK, run::tasks)
}

/// A row for each attempt, likewise.
pub fn attempts(analysis: &Analysis) -> ExportTable {
    of_runs(analysis, run::ATTEMPT, run::attempts)
}

fn of_runs(analysis: &Analysis, heads: Heads, rows: fn(&TraceRun) -> Vec<Vec<ExportValue>>) -> ExportTable {
    let of_run = |run: &TraceRun| -> Vec<Vec<ExportValue>> {
        let mut common = campaign(analysis, (&run.of.trace, run.of.cards, run.of.scale));
        common.extend([
            run.of.order.into(),
            run.of.policy.clone().into(),
            run.of.estimate.clone().into(),
            run.sharing.clone().into(),
            run.cell.clone().into(),
            run.repetition.into(),
            words::verdict(run.validity.verdict).into(),
        ]);
        rows(run).into_iter().map(|row| common.iter().cloned().chain(row).collect()).collect()
    };
    ExportTable { heads: owned(&[CAMPAIGN, RUN, heads]), rows: analysis.traces.runs.iter().flat_map(of_run).collect() }
}
