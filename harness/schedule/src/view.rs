//! What a policy sees of the cards.

use crate::task::{AttemptId, CardId, TaskId};

/// Who is on a card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resident {
    pub attempt: AttemptId,
    pub task: TaskId,
    pub believed_permille: Option<u32>,
    /// What it holds of the memory, once it has settled; until then it is in no reading.
    pub held_bytes: Option<u64>,
    /// It is being watched in isolation.
    pub profiled: bool,
}

/// A card: readings and promises, nothing of the future.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CardView {
    pub card: CardId,
    pub capacity_bytes: u64,
    pub residents: Vec<Resident>,
}

impl CardView {
    /// Free memory as it is read: who has not settled holds none yet.
    pub fn free_bytes(&self) -> u64 {
        let held: u64 = self.residents.iter().filter_map(|r| r.held_bytes).sum();
        self.capacity_bytes.saturating_sub(held)
    }

    /// The utilisation that its residents are believed to have, added up. One of whom nothing is believed counts as a whole card.
    pub fn promised_permille(&self) -> u32 {
        self.residents.iter().map(|r| r.believed_permille.unwrap_or(crate::WHOLE_PERMILLE)).sum()
    }

    pub fn is_idle(&self) -> bool {
        self.residents.is_empty()
    }

    /// True if its readings are final until somebody comes or goes.
    pub fn is_settled(&self) -> bool {
        self.residents.iter().all(|r| r.held_bytes.is_some())
    }
}

/// The cards that a task may go to, in the order of their numbers. Cards kept for a profile are not among them, nor those on which a task
/// that ran out of memory would run out again.
#[derive(Debug)]
pub struct View<'a> {
    pub cards: &'a [&'a CardView],
}

impl View<'_> {
    /// The first card of which something holds.
    pub fn first(&self, holds: impl Fn(&CardView) -> bool) -> Option<CardId> {
        self.cards.iter().find(|card| holds(card)).map(|card| card.card)
    }
}
