//! A run of a trace: its tasks, attempts and decisions, each a row of named columns, and the same as JSON. Times are seconds from the first
//! arrival of the run.

use collo_analysis::trace::TraceRun;
use collo_analysis::words;
use serde_json::{Map, Value};

use super::table::{ColumnKind, ExportValue};

use ColumnKind::{Flag, Number, Text, Whole};

/// Columns with their types.
pub type Heads = &'static [(&'static str, ColumnKind)];

/// Of a task.
pub const TASK: Heads = &[
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

/// Of an attempt.
pub const ATTEMPT: Heads = &[
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

fn seconds(ns: u64) -> f64 {
    ns as f64 * 1e-9
}

/// The rows of its tasks.
pub fn tasks(run: &TraceRun) -> Vec<Vec<ExportValue>> {
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

/// The rows of its attempts.
pub fn attempts(run: &TraceRun) -> Vec<Vec<ExportValue>> {
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

fn decisions(run: &TraceRun) -> Vec<Vec<ExportValue>> {
    let row = |d: &collo_analysis::trace::DecisionCount| {
        vec![d.decided.clone().into(), d.why.clone().into(), d.times.into(), d.tasks.into(), d.waited_ns.map(seconds).into()]
    };
    run.decided.iter().map(row).collect()
}

/// The run as JSON: its quantities by name, and its tasks, attempts and decisions as objects of the same columns.
pub fn json(run: &TraceRun) -> Value {
    let values: Map<String, Value> = run.values.iter().map(|(key, value)| (key.name.to_string(), (*value).into())).collect();
    let objects = |heads: Heads, rows: Vec<Vec<ExportValue>>| -> Vec<Value> {
        let object =
            |row: Vec<ExportValue>| heads.iter().map(|(name, _)| name.to_string()).zip(row.into_iter().map(field)).collect();
        rows.into_iter().map(|row| Value::Object(object(row))).collect()
    };
    serde_json::json!({
        "repetition": run.repetition,
        "validity": words::verdict(run.validity.verdict),
        "reasons": run.validity.reasons,
        "values": values,
        "tasks": objects(TASK, tasks(run)),
        "attempts": objects(ATTEMPT, attempts(run)),
        "decisions": objects(DECISION, decisions(run)),
    })
}

fn field(value: ExportValue) -> Value {
    match value {
        ExportValue::Absent => Value::Null,
        ExportValue::Text(text) => text.into(),
        ExportValue::Number(number) => number.into(),
        ExportValue::Whole(whole) => whole.into(),
        ExportValue::Flag(flag) => flag.into(),
    }
}
