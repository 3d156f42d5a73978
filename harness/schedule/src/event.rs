//! What a body tells the ledger, and what the ledger asks of it.

use serde::{Deserialize, Serialize};

use crate::task::{Attempt, AttemptId, CardId, Task};

/// What happened. A run's list of these, each with its time, replays every decision of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Happened {
    Arrived(Task),
    /// Its process, or its first one, was launched.
    Started(AttemptId),
    /// It has all its memory: from now on readings count it. With what it holds of each card by its own reading, if that is known.
    Settled(AttemptId, Option<u64>),
    Ended(AttemptId, HowEnded),
    Read(CardId, Reading),
    /// The card is gone; what ran on it is to be stopped, and ends `CardLost`.
    CardLost(CardId),
    /// Its time in isolation is over, and this utilisation was seen, in per mille.
    Profiled(AttemptId, u32),
    /// A moment that `Act::LookAt` named.
    Look,
    /// The disk is full: nothing further is placed, what runs goes on.
    Full,
    /// Interrupted: what waits and what runs is over.
    Stopped,
}

/// A card as it was read: means over the window, except for memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    pub free_bytes: Option<u64>,
    pub sm_permille: Option<u32>,
    pub occupancy_permille: Option<u32>,
    pub dram_permille: Option<u32>,
    /// When its last sample was taken.
    pub read_ns: u64,
}

/// How an attempt ended, as its body saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HowEnded {
    Completed,
    OutOfMemory,
    /// A crash, a stall, a breach of protocol: never tried again.
    Failed,
    /// Its sharing mode broke under it: tried once more, at no cost to its attempts.
    ModeLost,
    /// Its card was lost: tried again elsewhere.
    CardLost,
    Interrupted,
}

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    Start(Attempt),
    /// Watch this attempt, just started, in isolation for so many nanoseconds; then say `Profiled`.
    Profile(AttemptId, u64),
    /// End it. Unless it has moved, its end is still to be told.
    Stop(AttemptId, Why),
    /// Say `Look` at this time, or earlier: something may have become possible.
    LookAt(u64),
    /// Everything that was promised has ended. Said once.
    Over,
}

/// Why an attempt is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// It goes on elsewhere, with what it has done. The ledger has booked its end.
    Moved,
    CardLost,
    Interrupted,
}
