//! Traces as tables: policies, one row each; the tasks and the attempts of every run. In: an analysis. Out: rows under the names of
//! `report.json`; times are seconds from the first arrival of their run.

use collo_quantity::Key;
use collo_quantity::unit::COUNT;
use serde_json::{Map, Value};

use super::table::{ColumnKind, ExportTable, ExportValue};
use crate::analysis::Analysis;
use crate::analysis::trace::{Arm, TraceMatrix, TraceRun};
use crate::format::words;

use ColumnKind::{Flag, Number, Text, Whole};

type Heads = &'static [(&'static str, ColumnKind)];

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

const TASK: Heads = &[
    ("task", Whole),
    ("solo_cell", Text),
    ("epochs", Whole),
    ("task_cards", Whole),
    ("arrives_s", Number),
    ("end", Text),
    ("wait_s", Number),
    ("execution_s", Number),
    ("completion_s", Number),
    ("stretch", Number),
    ("attempts", Whole),
    ("blocked_s", Number),
    ("estimate_bytes", Whole),
];

const ATTEMPT: Heads = &[
    ("attempt", Whole),
    ("task", Whole),
    ("solo_cell", Text),
    ("on_cards", Text),
    ("launched_s", Number),
    ("settled_s", Number),
    ("ended_s", Number),
    ("lasted_s", Number),
    ("outcome", Text),
    ("why", Text),
    ("came_last", Flag),
    ("alone_at_end", Flag),
    ("attested", Text),
];

const DECISION: Heads = &[("decided", Text), ("why", Text), ("decisions", Whole), ("tasks", Whole), ("waited_s", Number)];

fn owned(heads: &[Heads]) -> Vec<(String, ColumnKind)> {
    heads.iter().flat_map(|heads| heads.iter()).map(|(name, kind)| (name.to_string(), *kind)).collect()
}

fn seconds(ns: u64) -> f64 {
    ns as f64 * 1e-9
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
    of_runs(analysis, TASK, tasks_of)
}

/// A row for each attempt, likewise.
pub fn attempts(analysis: &Analysis) -> ExportTable {
    of_runs(analysis, ATTEMPT, attempts_of)
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

fn tasks_of(run: &TraceRun) -> Vec<Vec<ExportValue>> {
    let first_ns = run.tasks.iter().map(|task| task.arrives_ns).min().unwrap_or(0);
    let row = |((task, times), stretch): ((&collo_store::TaskRecord, &collo_store::TaskTimes), &Option<f64>)| {
        // Who never ran neither waited for so long nor executed.
        let ran = |ns: u64| (times.attempts > 0).then(|| seconds(ns));
        vec![
            task.task.into(),
            task.solo.clone().into(),
            task.epochs.into(),
            task.cards.into(),
            seconds(task.arrives_ns - first_ns).into(),
            task.end.as_str().into(),
            ran(times.wait_ns).into(),
            ran(times.execution_ns).into(),
            times.completion_ns.map(seconds).into(),
            (*stretch).into(),
            times.attempts.into(),
            seconds(task.blocked_ns).into(),
            task.estimate_bytes.into(),
        ]
    };
    run.tasks.iter().zip(&run.numbers.tasks).zip(&run.stretch).map(row).collect()
}

fn attempts_of(run: &TraceRun) -> Vec<Vec<ExportValue>> {
    let row = |a: &collo_store::AttemptRecord| {
        let solo = run.tasks.iter().find(|task| task.task == a.task).map(|task| task.solo.clone());
        vec![
            a.attempt.into(),
            a.task.into(),
            solo.into(),
            ExportValue::list(run.cards_of(a)),
            run.since_s(a.launched_ns).into(),
            a.settled_ns.map(|ns| run.since_s(ns)).into(),
            run.since_s(a.ended_ns).into(),
            seconds(a.ended_ns.saturating_sub(a.launched_ns)).into(),
            a.outcome.as_str().into(),
            Some(words::outcome_in_full(&a.outcome)).filter(|_| a.outcome.as_str() != "completed").into(),
            a.newcomer.into(),
            a.alone.into(),
            a.attested.as_str().into(),
        ]
    };
    run.attempts.iter().map(row).collect()
}

fn decisions_of(run: &TraceRun) -> Vec<Vec<ExportValue>> {
    let row = |d: &crate::analysis::trace::DecisionCount| {
        vec![d.decided.clone().into(), d.why.clone().into(), d.times.into(), d.tasks.into(), d.waited_ns.map(seconds).into()]
    };
    run.decided.iter().map(row).collect()
}

/// A run as JSON: its quantities by name, and its tasks, attempts and decisions as objects of the same columns.
pub fn run_json(run: &TraceRun) -> Value {
    let values: Map<String, Value> = run.values.iter().map(|(key, value)| (key.name.to_string(), (*value).into())).collect();
    let objects = |heads: Heads, rows: Vec<Vec<ExportValue>>| -> Vec<Value> {
        let object =
            |row: Vec<ExportValue>| heads.iter().map(|(name, _)| name.to_string()).zip(row.into_iter().map(json)).collect();
        rows.into_iter().map(|row| Value::Object(object(row))).collect()
    };
    serde_json::json!({
        "repetition": run.repetition,
        "validity": words::verdict(run.validity.verdict),
        "reasons": run.validity.reasons,
        "values": values,
        "tasks": objects(TASK, tasks_of(run)),
        "attempts": objects(ATTEMPT, attempts_of(run)),
        "decisions": objects(DECISION, decisions_of(run)),
    })
}

fn json(value: ExportValue) -> Value {
    match value {
        ExportValue::Absent => Value::Null,
        ExportValue::Text(text) => text.into(),
        ExportValue::Number(number) => number.into(),
        ExportValue::Whole(whole) => whole.into(),
        ExportValue::Flag(flag) => flag.into(),
    }
}
