//! A run of a trace, as stored: which policy decided, over which cards, and what became of every task.
//!
//! `run.json` has a [`TraceRecord`] then; its members are the attempts, in the order in which they were started. Beside it are
//! `tasks.parquet`, `attempts.parquet`, `decisions.parquet` (one row for every card that a decision saw) and `happened.jsonl`: what the
//! policy was told, a line each, so that `verify` can ask it again.

mod numbers;
mod tables;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use numbers::{TaskTimes, TraceNumbers};
pub(crate) use tables::{ATTEMPTS, TASKS};
pub use tables::{read_attempts, read_decisions, read_tasks, write_trace};

use crate::{AttestationVerdict, Outcome};

/// The file of what a policy was told, in the folder of a run.
pub const HAPPENED: &str = "happened.jsonl";

/// What makes a cell one of a trace: which tasks in which order, and who decides over how many cards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceCell {
    /// Name of the trace, its file in `traces/`.
    pub trace: String,
    /// The seed that draws the tasks and shuffles them over the arrivals.
    pub order: u64,
    /// The policy's label: `magm:sm=80%,free=5GB`.
    pub policy: String,
    /// Who estimates the memory of tasks before they run: `none`, `measured`, `horus` …
    pub estimate: String,
    /// Arrivals, epochs and the manager's times are divided by this; 1 where nothing was.
    pub scale: u32,
    /// Cards of the site.
    pub cards: u32,
    /// Tasks of the trace.
    pub tasks: u32,
}

impl TraceCell {
    /// The names of its axes, as `--where` has them.
    pub const AXES: &'static [&'static str] = &["trace", "order", "policy", "estimate", "scale", "cards"];

    /// An axis by name; `None` if it is no axis of traces.
    pub fn axis(&self, name: &str) -> Option<Value> {
        match name {
            "trace" => Some(self.trace.as_str().into()),
            "order" => Some(self.order.into()),
            "policy" => Some(self.policy.as_str().into()),
            "estimate" => Some(self.estimate.as_str().into()),
            "scale" => Some(self.scale.into()),
            "cards" => Some(self.cards.into()),
            _ => None,
        }
    }
}

/// What a run of a trace has besides other runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TraceRecord {
    /// The rules by which tasks were placed, as the package `schedule` reads them.
    pub rules: Value,
    /// By card number.
    pub cards: Vec<TraceCard>,
    /// Arrivals are counted from here, nanoseconds of `CLOCK_MONOTONIC`.
    pub began_ns: u64,
    /// What makes the run indicative at best, in words: foreign processes, late arrivals, a lost card.
    #[serde(default)]
    pub remarks: Vec<String>,
}

/// A card of the site: a GPU, a GPU instance, or a set of CPU cores.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceCard {
    /// As in samples: `gpu:UUID`, `mig:UUID`; of a set of cores `cores:0-3`.
    pub scope: String,
    /// For people: `GPU 0`, `cores 0-3`.
    pub name: String,
    /// Of a set of CPU cores; empty for a GPU.
    #[serde(default)]
    pub cores: Vec<u32>,
    pub capacity_bytes: u64,
}

/// A task of a trace, and what became of it.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskRecord {
    /// Its number in the trace, from 0.
    pub task: u32,
    /// The label of the cell in which it trains alone.
    pub solo: String,
    pub epochs: u32,
    pub cards: u32,
    /// When it was due, nanoseconds after `began_ns`.
    pub arrives_ns: u64,
    /// When the policy was told of it, nanoseconds of `CLOCK_MONOTONIC`; absent if the run ended before.
    pub arrived_ns: Option<u64>,
    /// Memory on each of its cards that it was believed to need; absent without an estimate.
    pub estimate_bytes: Option<u64>,
    pub end: TaskEnd,
    /// Time in which it was the first to wait and a later task would have fit.
    pub blocked_ns: u64,
}

/// What became of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskEnd {
    Done,
    /// Its last attempt failed, and there was to be no other.
    Failed,
    /// No card of the site can hold it.
    Never,
    /// The run ended before it did.
    Interrupted,
}

impl TaskEnd {
    pub const ALL: [TaskEnd; 4] = [TaskEnd::Done, TaskEnd::Failed, TaskEnd::Never, TaskEnd::Interrupted];

    /// Its keyword, as stored.
    pub fn as_str(self) -> &'static str {
        match self {
            TaskEnd::Done => "done",
            TaskEnd::Failed => "failed",
            TaskEnd::Never => "never",
            TaskEnd::Interrupted => "interrupted",
        }
    }

    pub fn parse(word: &str) -> Option<TaskEnd> {
        TaskEnd::ALL.into_iter().find(|end| end.as_str() == word)
    }
}

/// One execution of a task: a member of the run.
#[derive(Debug, Clone, PartialEq)]
pub struct AttemptRecord {
    /// Index of the member.
    pub attempt: u32,
    pub task: u32,
    /// Numbers of the cards it was given.
    pub cards: Vec<u32>,
    /// When it was started, nanoseconds of `CLOCK_MONOTONIC`.
    pub launched_ns: u64,
    /// When it was ready, so that the readings contain it; absent if it ended before.
    pub settled_ns: Option<u64>,
    /// When nothing was left of it.
    pub ended_ns: u64,
    pub outcome: Outcome,
    /// True if nobody came to its cards after it; absent if nobody was there besides it.
    pub newcomer: Option<bool>,
    /// True if nobody else was on its cards when it ended.
    pub alone: bool,
    /// The evidence that the mode was in force for it.
    pub attested: AttestationVerdict,
}

/// A card as a decision saw it; one decision is as many rows as it saw cards, or one without.
#[derive(Debug, Clone, PartialEq)]
pub struct DecisionRecord {
    pub at_ns: u64,
    pub task: u32,
    /// The attempt that it started; absent if it started none.
    pub attempt: Option<u32>,
    /// `placed`, `waits`, `never`.
    pub decided: String,
    /// In words.
    pub why: String,
    /// Absent if it saw none.
    pub card: Option<SeenCard>,
}

/// What was known of a card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenCard {
    pub card: u32,
    /// True if the decision gave it to the task.
    pub chosen: bool,
    pub candidate: bool,
    /// Why it was no candidate, in words.
    pub why_not: Option<String>,
    pub free_bytes: Option<u64>,
    pub promised_bytes: u64,
    pub residents: u32,
    pub sm_permille: Option<u32>,
    pub occupancy_permille: Option<u32>,
    pub dram_permille: Option<u32>,
    /// When it was read; absent if it never was.
    pub read_ns: Option<u64>,
}
