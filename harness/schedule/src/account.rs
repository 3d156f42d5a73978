//! What the books know of a task: its state, and every attempt with its times.

use serde::{Deserialize, Serialize};

use crate::event::HowEnded;
use crate::task::{Attempt, Task};

/// The one state that a task is in.
///
/// `Waiting → Starting → Settling → Running → Done`, from the middle three `→ Recovering → Starting`, and the other ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Waiting,
    /// Placed; no process yet.
    Starting,
    /// Launched; it does not hold all its memory yet.
    Settling,
    Running,
    /// Waits for another attempt.
    Recovering,
    Done,
    Failed,
    /// No card of the site can ever take it.
    Never,
    Interrupted,
}

impl State {
    pub const ALL: [State; 9] = [
        State::Waiting,
        State::Starting,
        State::Settling,
        State::Running,
        State::Recovering,
        State::Done,
        State::Failed,
        State::Never,
        State::Interrupted,
    ];

    /// An attempt of it lives.
    pub fn is_live(self) -> bool {
        matches!(self, State::Starting | State::Settling | State::Running)
    }

    pub fn is_waiting(self) -> bool {
        matches!(self, State::Waiting | State::Recovering)
    }

    pub fn is_over(self) -> bool {
        !self.is_live() && !self.is_waiting()
    }
}

/// A task with its history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskAccount {
    pub task: Task,
    pub state: State,
    pub arrived_ns: u64,
    /// When it came into a state that it never leaves.
    pub over_ns: Option<u64>,
    /// In the order of their starts.
    pub attempts: Vec<AttemptAccount>,
    /// The time in which it waited, first in the queue, while a later task would have fit.
    pub blocked_ns: u64,
}

/// An attempt with its times.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptAccount {
    pub attempt: Attempt,
    /// When the ledger asked for it.
    pub placed_ns: u64,
    /// When it was launched; `None` if it ended before.
    pub started_ns: Option<u64>,
    pub settled_ns: Option<u64>,
    pub ended_ns: Option<u64>,
    /// What it held of each card by its own reading.
    pub held_bytes: Option<u64>,
    pub ended: Option<Ended>,
}

/// How an attempt ended, with what only the books know of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// `None` if it moved, with what it had done.
    pub how: Option<HowEnded>,
    /// It came last of all on each of its cards, or had nobody beside it for a window, or never had all its memory; if not, it is a
    /// resident that somebody joined.
    pub newcomer: bool,
    /// It had its cards for itself, for at least a window or from its beginning.
    pub alone: bool,
}

impl TaskAccount {
    pub(crate) fn live_mut(&mut self) -> Option<&mut AttemptAccount> {
        self.attempts.last_mut().filter(|last| last.ended_ns.is_none())
    }

    /// The attempt that lives.
    pub fn live(&self) -> Option<&AttemptAccount> {
        self.attempts.last().filter(|last| last.ended_ns.is_none())
    }
}
