//! The record of a decision: what was seen, and why.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::task::{AttemptId, CardId, TaskId};

/// A decision about a task. Written when it is placed or refused for ever, and when the reason changes for which it waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    pub at_ns: u64,
    pub task: TaskId,
    /// If it was placed.
    pub attempt: Option<AttemptId>,
    pub cards: Vec<CardId>,
    pub outcome: Decision,
    /// In a few plain words.
    pub why: String,
    /// Every card, as it was seen for this task.
    pub seen: Vec<Seen>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    Placed,
    Waits,
    Never,
}

/// A card, as it was seen for a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    pub card: CardId,
    pub free_bytes: u64,
    pub promised_bytes: u64,
    pub residents: u32,
    pub sm_permille: Option<u32>,
    pub occupancy_permille: Option<u32>,
    pub dram_permille: Option<u32>,
    /// When it was read; `None` if it never was.
    pub read_ns: Option<u64>,
    pub candidate: bool,
    pub why_not: Option<WhyNot>,
}

/// Why a card is no candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhyNot {
    Lost,
    /// Its reading is older than the window.
    StaleReading,
    /// Kept for a task that ran out of memory.
    Kept,
    /// Somebody on it is being watched in isolation.
    Profiled,
    NotIdle,
    /// Somebody on it has not settled, and nobody knows what the newcomer needs.
    Unsettled,
    TooLittleFree,
    TooManyResidents,
    SmTooHigh,
    OccupancyTooHigh,
    DramTooHigh,
    /// The policy asks for a reading that the card does not give.
    NoReading,
    /// The utilisations believed of its residents and of the newcomer add up to too much.
    SumTooHigh,
    /// It has no more free than where the task ran out of memory.
    NoBetter,
}

impl WhyNot {
    pub fn words(self) -> &'static str {
        match self {
            WhyNot::Lost => "lost",
            WhyNot::StaleReading => "its reading is older than the window",
            WhyNot::Kept => "kept for a task that ran out of memory",
            WhyNot::Profiled => "somebody is being watched in isolation",
            WhyNot::NotIdle => "not idle",
            WhyNot::Unsettled => "somebody has not settled",
            WhyNot::TooLittleFree => "too little free memory",
            WhyNot::TooManyResidents => "too many residents",
            WhyNot::SmTooHigh => "SM activity above the cap",
            WhyNot::OccupancyTooHigh => "SM occupancy above the cap",
            WhyNot::DramTooHigh => "memory traffic above the cap",
            WhyNot::NoReading => "a reading is missing",
            WhyNot::SumTooHigh => "believed utilisations add up to too much",
            WhyNot::NoBetter => "no more free than where it ran out",
        }
    }

    /// Distinct reasons as one number, to notice a change of them.
    pub(crate) fn bit(self) -> u32 {
        1 << self as u32
    }

    pub(crate) const ALL: [WhyNot; 14] = [
        WhyNot::Lost,
        WhyNot::StaleReading,
        WhyNot::Kept,
        WhyNot::Profiled,
        WhyNot::NotIdle,
        WhyNot::Unsettled,
        WhyNot::TooLittleFree,
        WhyNot::TooManyResidents,
        WhyNot::SmTooHigh,
        WhyNot::OccupancyTooHigh,
        WhyNot::DramTooHigh,
        WhyNot::NoReading,
        WhyNot::SumTooHigh,
        WhyNot::NoBetter,
    ];
}

impl fmt::Display for WhyNot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}
