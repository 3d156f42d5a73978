//! A task, and an attempt at it.

/// A task of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u32);

/// A card of the site, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CardId(pub u32);

/// One execution of a task on one card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttemptId(pub u32);

/// Work that arrives, as far as a policy may know it: nothing of its true need, nothing of its future.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    pub id: TaskId,
    pub arrives_ns: u64,
    /// The utilisation of a card that it is believed to have alone; `None` if nobody has said or seen any.
    pub believed_permille: Option<u32>,
}

/// Who runs where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt {
    pub id: AttemptId,
    pub task: TaskId,
    pub card: CardId,
}

/// How an attempt ended by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HowEnded {
    Completed,
    OutOfMemory,
}
