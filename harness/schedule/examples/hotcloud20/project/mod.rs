//! The body of events: a trace played on paper. Everything here is *projected*: no process ran.
//!
//! In: what each task truly needs, cards, a ledger, paces. Out: every attempt with its times, and what the cards did. Times are whole
//! nanoseconds and work is counted in whole parts of them, so that integrals are exact and nothing is sampled.

mod card;
mod engine;
mod paces;
mod projection;

#[cfg(test)]
mod by_hand;
#[cfg(test)]
mod projections;

pub use engine::project;
pub use paces::{ALONE_PPM, OverAllocation, Paces, Straight};
#[cfg(test)]
pub use projection::{Attempted, Ending};
pub use projection::{CardTotals, Projection};

/// What a task truly needs. No policy sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// How long it takes alone on a card.
    pub solo_ns: u64,
    /// The utilisation of a card that it has alone.
    pub utilisation_permille: u32,
    pub memory_bytes: u64,
}
