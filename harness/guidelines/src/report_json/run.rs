//! A run of a trace: its tasks, attempts and decisions, each a row of named columns, and the same as JSON. Times are seconds from the first
//! arrival of the run.

use collo_analysis::trace::{DecisionCount, TraceRun};
use collo_analysis::words;
use collo_store::{AttemptRecord, TaskRecord, TaskTimes};
use serde_json::{Map, Value};

use super::table::{ColumnKind, ExportColumn, ExportTable, ExportValue};

use ColumnKind::{Flag, Number, Text, Whole};

/// A task of a run.
pub struct TaskRow<'a> {
    pub run: &'a TraceRun,
    task: &'a TaskRecord,
    times: &'a TaskTimes,
    stretch: Option<f64>,
    first_ns: u64,
}

/// An attempt of a run.
pub struct AttemptRow<'a> {
    pub run: &'a TraceRun,
    attempt: &'a AttemptRecord,
}

/// The columns of tasks.
pub fn task_columns<'a>() -> [ExportColumn<TaskRow<'a>>; 13] {
    [
        ("task", Whole, |row| row.task.task.into()),
        ("solo_cell", Text, |row| row.task.solo.clone().into()),
        ("epochs", Whole, |row| row.task.epochs.into()),
        ("task_cards", Whole, |row| row.task.cards.into()),
        ("arrives_s", Number, |row| seconds(row.task.arrives_ns - row.first_ns).into()),
        ("end", Text, |row| row.task.end.as_str().into()),
        ("wait_s", Number, |row| row.ran(row.times.wait_ns)),
        ("execution_s", Number, |row| row.ran(row.times.execution_ns)),
        ("completion_s", Number, |row| row.times.completion_ns.map(seconds).into()),
        ("stretch", Number, |row| row.stretch.into()),
        ("attempts", Whole, |row| row.times.attempts.into()),
        ("blocked_s", Number, |row| seconds(row.task.blocked_ns).into()),
        ("estimate_bytes", Whole, |row| row.task.estimate_bytes.into()),
    ]
}

/// The columns of attempts.
pub fn attempt_columns<'a>() -> [ExportColumn<AttemptRow<'a>>; 13] {
    [
        ("attempt", Whole, |row| row.attempt.attempt.into()),
        ("task", Whole, |row| row.attempt.task.into()),
        ("solo_cell", Text, |row| row.run.tasks.iter().find(|t| t.task == row.attempt.task).map(|t| t.solo.clone()).into()),
        ("on_cards", Text, |row| ExportValue::list(row.run.cards_of(row.attempt))),
        ("launched_s", Number, |row| row.run.since_s(row.attempt.launched_ns).into()),
        ("settled_s", Number, |row| row.attempt.settled_ns.map(|ns| row.run.since_s(ns)).into()),
        ("ended_s", Number, |row| row.run.since_s(row.attempt.ended_ns).into()),
        ("lasted_s", Number, |row| seconds(row.attempt.ended_ns.saturating_sub(row.attempt.launched_ns)).into()),
        ("outcome", Text, |row| row.attempt.outcome.as_str().into()),
        ("why", Text, |row| {
            let outcome = &row.attempt.outcome;
            Some(words::outcome_in_full(outcome)).filter(|_| outcome.as_str() != "completed").into()
        }),
        ("came_last", Flag, |row| row.attempt.newcomer.into()),
        ("alone_at_end", Flag, |row| row.attempt.alone.into()),
        ("attested", Text, |row| row.attempt.attested.as_str().into()),
    ]
}

fn decision_columns<'a>() -> [ExportColumn<&'a DecisionCount>; 5] {
    [
        ("decided", Text, |d| d.decided.clone().into()),
        ("why", Text, |d| d.why.clone().into()),
        ("decisions", Whole, |d| d.times.into()),
        ("tasks", Whole, |d| d.tasks.into()),
        ("waited_s", Number, |d| d.waited_ns.map(seconds).into()),
    ]
}

fn seconds(ns: u64) -> f64 {
    ns as f64 * 1e-9
}

impl TaskRow<'_> {
    /// A time of a task that ran; one that never did neither waited for so long nor executed.
    fn ran(&self, ns: u64) -> ExportValue {
        (self.times.attempts > 0).then(|| seconds(ns)).into()
    }
}

/// The tasks of a run.
pub fn tasks(run: &TraceRun) -> impl Iterator<Item = TaskRow<'_>> {
    let first_ns = run.tasks.iter().map(|task| task.arrives_ns).min().unwrap_or(0);
    let each = run.tasks.iter().zip(&run.numbers.tasks).zip(&run.stretch);
    each.map(move |((task, times), stretch)| TaskRow { run, task, times, stretch: *stretch, first_ns })
}

/// The attempts of a run.
pub fn attempts(run: &TraceRun) -> impl Iterator<Item = AttemptRow<'_>> {
    run.attempts.iter().map(move |attempt| AttemptRow { run, attempt })
}

/// The run as JSON: its quantities by name, and its tasks, attempts and decisions as objects of the same columns.
pub fn json(run: &TraceRun) -> Value {
    let values: Map<String, Value> = run.values.iter().map(|(key, value)| (key.name.to_string(), (*value).into())).collect();
    serde_json::json!({
        "repetition": run.repetition,
        "validity": words::verdict(run.validity.verdict),
        "reasons": run.validity.reasons,
        "values": values,
        "tasks": objects(ExportTable::of(&task_columns(), tasks(run))),
        "attempts": objects(ExportTable::of(&attempt_columns(), attempts(run))),
        "decisions": objects(ExportTable::of(&decision_columns(), &run.decided)),
    })
}

fn objects(table: ExportTable) -> Vec<Value> {
    let names: Vec<String> = table.heads.into_iter().map(|(name, _)| name).collect();
    let object = |row: Vec<ExportValue>| names.iter().cloned().zip(row.into_iter().map(field)).collect();
    table.rows.into_iter().map(|row| Value::Object(object(row))).collect()
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
