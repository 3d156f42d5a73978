//! A cell that is a trace: tasks that arrive one after another, and who decides where each goes.

use std::sync::Arc;

use collo_store::TraceCell;
use serde_json::{Value as Json, json};

use super::Member;

/// The tasks of a cell, and the rules by which they are placed.
#[derive(Debug, Clone, PartialEq)]
pub struct CellTrace {
    /// As it is stored.
    pub record: TraceCell,
    /// In the order of their arrivals.
    pub tasks: Vec<CellTask>,
    pub manager: ManagerRules,
}

/// A task: a member, when it arrives, and what it is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellTask {
    pub member: Arc<Member>,
    /// Nanoseconds after the first moment of the trace.
    pub arrives_ns: u64,
    pub epochs: u32,
    pub cards: u32,
}

/// How the manager works, times divided by the scale of the trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManagerRules {
    /// Readings are means over so long.
    pub window_ns: u64,
    pub settle: Settle,
    pub queue: String,
    pub recovery: String,
    /// `card` or `all`.
    pub recovery_keeps: String,
    /// Attempts at a task that runs out of memory.
    pub attempts: u32,
    pub idle_first: bool,
    /// Decide at most so often; `None`: whenever something happens.
    pub decide_every_ns: Option<u64>,
}

/// When the readings of a card contain a newcomer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settle {
    /// When it says that it is ready: then its memory is allocated.
    Ready,
    /// So long after its launch, nanoseconds: for scripts that say nothing.
    After(u64),
}

impl CellTrace {
    /// `philly-90/2 magm:sm=80%,free=5GB measured mps ×4`.
    pub fn label(&self, mode: &str) -> String {
        let TraceCell { trace, order, policy, estimate, cards, .. } = &self.record;
        let estimate = if estimate == NO_ESTIMATE { String::new() } else { format!(" {estimate}") };
        format!("{trace}/{order} {policy}{estimate} {mode} ×{cards}")
    }

    /// Everything that makes it another cell, in one text.
    pub fn identity(&self) -> String {
        let task = |task: &CellTask| json!([task.member.key(), task.arrives_ns, task.epochs, task.cards]);
        let tasks: Vec<Json> = self.tasks.iter().map(task).collect();
        format!("{} {} {:?}", self.record.scale, Json::from(tasks), self.manager)
    }
}

/// The word for no estimate of memory.
pub const NO_ESTIMATE: &str = "none";
