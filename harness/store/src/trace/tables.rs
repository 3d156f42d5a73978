//! `tasks.parquet`, `attempts.parquet`, `decisions.parquet`.

use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt32Type};
use arrow_array::{Array, ArrayRef, BooleanArray, Int64Array, PrimitiveArray, RecordBatch, StringArray, UInt32Array};
use arrow_schema::{DataType, Field, Schema};

use super::{AttemptRecord, DecisionRecord, SeenCard, TaskEnd, TaskRecord};
use crate::tables::{batches, whole, write_table};
use crate::{AttestationVerdict, Error, Result};

pub(crate) const TASKS: &str = "tasks.parquet";
pub(crate) const ATTEMPTS: &str = "attempts.parquet";
const DECISIONS: &str = "decisions.parquet";

/// Write the three tables into the folder of a run.
pub fn write_trace(folder: &Path, tasks: &[TaskRecord], attempts: &[AttemptRecord], decisions: &[DecisionRecord]) -> Result<()> {
    write_table(&folder.join(TASKS), task_schema(), task_columns(tasks))?;
    write_table(&folder.join(ATTEMPTS), attempt_schema(), attempt_columns(attempts)?)?;
    write_table(&folder.join(DECISIONS), decision_schema(), decision_columns(decisions))
}

fn fields(columns: &[(&str, DataType, bool)]) -> Arc<Schema> {
    Arc::new(Schema::new(columns.iter().map(|(name, kind, absent)| Field::new(*name, kind.clone(), *absent)).collect::<Vec<_>>()))
}

fn task_schema() -> Arc<Schema> {
    fields(&[
        ("task", DataType::UInt32, false),
        ("solo", DataType::Utf8, false),
        ("epochs", DataType::UInt32, false),
        ("cards", DataType::UInt32, false),
        ("arrives_ns", DataType::Int64, false),
        ("arrived_ns", DataType::Int64, true),
        ("estimate_bytes", DataType::Int64, true),
        ("end", DataType::Utf8, false),
        ("blocked_ns", DataType::Int64, false),
    ])
}

fn attempt_schema() -> Arc<Schema> {
    fields(&[
        ("attempt", DataType::UInt32, false),
        ("task", DataType::UInt32, false),
        ("cards", DataType::Utf8, false),
        ("launched_ns", DataType::Int64, false),
        ("settled_ns", DataType::Int64, true),
        ("ended_ns", DataType::Int64, false),
        ("outcome", DataType::Utf8, false),
        ("newcomer", DataType::Boolean, true),
        ("alone", DataType::Boolean, false),
        ("attested", DataType::Utf8, false),
    ])
}

fn decision_schema() -> Arc<Schema> {
    fields(&[
        ("at_ns", DataType::Int64, false),
        ("task", DataType::UInt32, false),
        ("attempt", DataType::UInt32, true),
        ("decided", DataType::Utf8, false),
        ("why", DataType::Utf8, false),
        ("card", DataType::UInt32, true),
        ("chosen", DataType::Boolean, true),
        ("candidate", DataType::Boolean, true),
        ("why_not", DataType::Utf8, true),
        ("free_bytes", DataType::Int64, true),
        ("promised_bytes", DataType::Int64, true),
        ("residents", DataType::UInt32, true),
        ("sm_permille", DataType::UInt32, true),
        ("occupancy_permille", DataType::UInt32, true),
        ("dram_permille", DataType::UInt32, true),
        ("read_ns", DataType::Int64, true),
    ])
}

fn whole_numbers<T>(rows: &[T], of: impl Fn(&T) -> u32) -> ArrayRef {
    Arc::new(UInt32Array::from_iter_values(rows.iter().map(of)))
}

fn maybe_whole_numbers<T>(rows: &[T], of: impl Fn(&T) -> Option<u32>) -> ArrayRef {
    Arc::new(UInt32Array::from_iter(rows.iter().map(of)))
}

fn large<T>(rows: &[T], of: impl Fn(&T) -> u64) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| of(row) as i64)))
}

fn maybe_large<T>(rows: &[T], of: impl Fn(&T) -> Option<u64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter(rows.iter().map(|row| of(row).map(|value| value as i64))))
}

fn words<T>(rows: &[T], of: impl Fn(&T) -> Option<String>) -> ArrayRef {
    Arc::new(StringArray::from_iter(rows.iter().map(of)))
}

fn truths<T>(rows: &[T], of: impl Fn(&T) -> Option<bool>) -> ArrayRef {
    Arc::new(BooleanArray::from_iter(rows.iter().map(of)))
}

fn task_columns(rows: &[TaskRecord]) -> Vec<ArrayRef> {
    vec![
        whole_numbers(rows, |t| t.task),
        words(rows, |t| Some(t.solo.clone())),
        whole_numbers(rows, |t| t.epochs),
        whole_numbers(rows, |t| t.cards),
        large(rows, |t| t.arrives_ns),
        maybe_large(rows, |t| t.arrived_ns),
        maybe_large(rows, |t| t.estimate_bytes),
        words(rows, |t| Some(t.end.as_str().into())),
        large(rows, |t| t.blocked_ns),
    ]
}

fn attempt_columns(rows: &[AttemptRecord]) -> Result<Vec<ArrayRef>> {
    let outcomes: Vec<String> =
        rows.iter().map(|a| serde_json::to_string(&a.outcome).map_err(|e| Error::Io(e.into()))).collect::<Result<_>>()?;
    let cards = |a: &AttemptRecord| a.cards.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    Ok(vec![
        whole_numbers(rows, |a| a.attempt),
        whole_numbers(rows, |a| a.task),
        words(rows, |a| Some(cards(a))),
        large(rows, |a| a.launched_ns),
        maybe_large(rows, |a| a.settled_ns),
        large(rows, |a| a.ended_ns),
        Arc::new(StringArray::from(outcomes)),
        truths(rows, |a| a.newcomer),
        truths(rows, |a| Some(a.alone)),
        words(rows, |a| Some(a.attested.as_str().into())),
    ])
}

fn decision_columns(rows: &[DecisionRecord]) -> Vec<ArrayRef> {
    let seen = |d: &DecisionRecord| d.card.clone();
    vec![
        large(rows, |d| d.at_ns),
        whole_numbers(rows, |d| d.task),
        maybe_whole_numbers(rows, |d| d.attempt),
        words(rows, |d| Some(d.decided.clone())),
        words(rows, |d| Some(d.why.clone())),
        maybe_whole_numbers(rows, |d| seen(d).map(|c| c.card)),
        truths(rows, |d| seen(d).map(|c| c.chosen)),
        truths(rows, |d| seen(d).map(|c| c.candidate)),
        words(rows, |d| seen(d)?.why_not),
        maybe_large(rows, |d| seen(d)?.free_bytes),
        maybe_large(rows, |d| seen(d).map(|c| c.promised_bytes)),
        maybe_whole_numbers(rows, |d| seen(d).map(|c| c.residents)),
        maybe_whole_numbers(rows, |d| seen(d)?.sm_permille),
        maybe_whole_numbers(rows, |d| seen(d)?.occupancy_permille),
        maybe_whole_numbers(rows, |d| seen(d)?.dram_permille),
        maybe_large(rows, |d| seen(d)?.read_ns),
    ]
}

/// A row of a table, by the places of its columns.
struct Row<'a> {
    batch: &'a RecordBatch,
    at: usize,
}

impl Row<'_> {
    fn value<T: arrow_array::ArrowPrimitiveType>(&self, column: usize) -> Option<T::Native> {
        let values: &PrimitiveArray<T> = self.batch.column(column).as_primitive();
        values.is_valid(self.at).then(|| values.value(self.at))
    }

    fn maybe_whole(&self, column: usize) -> Option<u32> {
        self.value::<UInt32Type>(column)
    }

    fn whole(&self, column: usize) -> u32 {
        self.maybe_whole(column).unwrap_or_default()
    }

    fn maybe_large(&self, column: usize) -> Option<u64> {
        self.value::<Int64Type>(column).map(|value| value as u64)
    }

    fn large(&self, column: usize) -> u64 {
        self.maybe_large(column).unwrap_or_default()
    }

    fn maybe_text(&self, column: usize) -> Option<String> {
        let values = self.batch.column(column).as_string::<i32>();
        values.is_valid(self.at).then(|| values.value(self.at).to_string())
    }

    fn text(&self, column: usize) -> String {
        self.maybe_text(column).unwrap_or_default()
    }

    fn maybe_truth(&self, column: usize) -> Option<bool> {
        let values = self.batch.column(column).as_boolean();
        values.is_valid(self.at).then(|| values.value(self.at))
    }
}

fn read<T>(path: &Path, schema: &Schema, of: impl Fn(&Row<'_>) -> std::result::Result<T, String>) -> Result<Vec<T>> {
    whole(path, || {
        let mut rows = Vec::new();
        for batch in batches(path, schema)? {
            for at in 0..batch.num_rows() {
                rows.push(of(&Row { batch: &batch, at }).map_err(|why| Error::corrupt(path, why))?);
            }
        }
        Ok(rows)
    })
}

/// Read the tasks of a run, from its folder.
pub fn read_tasks(folder: &Path) -> Result<Vec<TaskRecord>> {
    read(&folder.join(TASKS), &task_schema(), |row| {
        let end = row.text(7);
        Ok(TaskRecord {
            task: row.whole(0),
            solo: row.text(1),
            epochs: row.whole(2),
            cards: row.whole(3),
            arrives_ns: row.large(4),
            arrived_ns: row.maybe_large(5),
            estimate_bytes: row.maybe_large(6),
            end: TaskEnd::parse(&end).ok_or_else(|| format!("a task ended as {end:?}"))?,
            blocked_ns: row.large(8),
        })
    })
}

/// Read the attempts of a run, from its folder.
pub fn read_attempts(folder: &Path) -> Result<Vec<AttemptRecord>> {
    read(&folder.join(ATTEMPTS), &attempt_schema(), |row| {
        let (cards, attested) = (row.text(2), row.text(9));
        let cards = cards.split(',').map(|card| card.parse().map_err(|_| format!("an attempt was on the cards {cards:?}")));
        Ok(AttemptRecord {
            attempt: row.whole(0),
            task: row.whole(1),
            cards: cards.collect::<std::result::Result<_, _>>()?,
            launched_ns: row.large(3),
            settled_ns: row.maybe_large(4),
            ended_ns: row.large(5),
            outcome: serde_json::from_str(&row.text(6)).map_err(|e| format!("an outcome of an attempt: {e}"))?,
            newcomer: row.maybe_truth(7),
            alone: row.maybe_truth(8).unwrap_or_default(),
            attested: AttestationVerdict::parse(&attested).ok_or_else(|| format!("an attempt was attested as {attested:?}"))?,
        })
    })
}

/// Read the decisions of a run, from its folder, in their order.
pub fn read_decisions(folder: &Path) -> Result<Vec<DecisionRecord>> {
    read(&folder.join(DECISIONS), &decision_schema(), |row| {
        let card = row.maybe_whole(5).map(|card| SeenCard {
            card,
            chosen: row.maybe_truth(6).unwrap_or_default(),
            candidate: row.maybe_truth(7).unwrap_or_default(),
            why_not: row.maybe_text(8),
            free_bytes: row.maybe_large(9),
            promised_bytes: row.large(10),
            residents: row.whole(11),
            sm_permille: row.maybe_whole(12),
            occupancy_permille: row.maybe_whole(13),
            dram_permille: row.maybe_whole(14),
            read_ns: row.maybe_large(15),
        });
        Ok(DecisionRecord {
            at_ns: row.large(0),
            task: row.whole(1),
            attempt: row.maybe_whole(2),
            decided: row.text(3),
            why: row.text(4),
            card,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Outcome;

    #[test]
    fn what_was_stored_of_a_trace_comes_back_and_what_was_absent_comes_back_absent() {
        let dir = tempfile::tempdir().unwrap();
        let task = |task, arrived_ns, end| TaskRecord {
            task,
            solo: "tiny solo b32".into(),
            epochs: 2,
            cards: 1,
            arrives_ns: 5,
            arrived_ns,
            estimate_bytes: arrived_ns.map(|_| 7),
            end,
            blocked_ns: 0,
        };
        let tasks = [task(0, Some(9), TaskEnd::Done), task(1, None, TaskEnd::Interrupted)];
        let attempt = AttemptRecord {
            attempt: 0,
            task: 0,
            cards: vec![2, 3],
            launched_ns: 10,
            settled_ns: None,
            ended_ns: 20,
            outcome: Outcome::OutOfMemory { member: 0, message: "no, \"more\"".into() },
            newcomer: None,
            alone: true,
            attested: AttestationVerdict::CountsOnly,
        };
        let seen = SeenCard {
            card: 1,
            chosen: false,
            candidate: false,
            why_not: Some("its reading is 91 s old".into()),
            free_bytes: None,
            promised_bytes: 0,
            residents: 2,
            sm_permille: Some(0),
            occupancy_permille: None,
            dram_permille: None,
            read_ns: None,
        };
        let decision =
            |card| DecisionRecord { at_ns: 3, task: 1, attempt: None, decided: "waits".into(), why: "full".into(), card };
        let decisions = [decision(Some(seen)), decision(None)];
        write_trace(dir.path(), &tasks, std::slice::from_ref(&attempt), &decisions).unwrap();
        assert_eq!(read_tasks(dir.path()).unwrap(), tasks);
        assert_eq!(read_attempts(dir.path()).unwrap(), [attempt]);
        assert_eq!(read_decisions(dir.path()).unwrap(), decisions);
    }
}
