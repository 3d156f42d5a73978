//! A task, and an attempt at it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A task of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TaskId(pub u32);

/// A card of the site, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CardId(pub u32);

/// One execution of a task, counted from 0 in the order of their starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AttemptId(pub u32);

/// Work that arrives, as far as a policy may know it: nothing of its true need, nothing of its future.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    pub id: TaskId,
    pub arrives_ns: u64,
    /// How many cards it runs on at once, all of one node.
    pub cards: u32,
    /// What it is believed to need of each of its cards; `None` if nobody has said or measured any.
    pub estimate_bytes: Option<u64>,
    /// The utilisation of a card that it is believed to have alone; `None` if nobody has said or seen any.
    pub believed_permille: Option<u32>,
}

/// Who runs where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    pub id: AttemptId,
    pub task: TaskId,
    /// In the order in which the policy chose them.
    pub cards: Vec<CardId>,
}

impl fmt::Display for CardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "card {}", self.0)
    }
}
