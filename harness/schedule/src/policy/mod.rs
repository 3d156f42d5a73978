//! Policies: an order over the cards that pass admission, by a label such as `magm:sm=80%,free=5GB`.
//!
//! In: a task, and cards as they are seen. Out: whether a card will do, and which is preferred. What holds for every policy (an idle card
//! always will do, a lost or kept one never, several cards are of one node) is the ledger's.

mod admission;
mod label;
mod orders;

pub use admission::Admission;
pub use label::parse;
pub use orders::{ORDERS, Order};

use self::admission::Mapping;
use crate::decided::WhyNot;
use crate::task::{CardId, Task};
use crate::view::CardView;

/// Decides which cards the first task of the queue gets.
pub trait Policy: Send {
    /// `parse(label)` gives the same policy.
    fn label(&self) -> String;
    fn needs(&self) -> Needs;
    /// Why a card with somebody on it will not do; `None`: it is a candidate. Of an idle card nobody asks: there is no better one.
    fn refuses(&self, task: &Task, card: &CardView) -> Option<WhyNot>;
    /// Among candidates the least comes first; between equals the one with fewer residents, then the lower number.
    fn preference(&self, card: &CardView) -> u64;
    /// These were chosen.
    fn placed(&mut self, _cards: &[CardId]) {}
    /// The task runs alone on an idle card for so long first, to see its utilisation; then it is placed by what was seen.
    fn profile_ns(&self, _task: &Task) -> Option<u64> {
        None
    }
    /// In a few words: `most free memory`.
    fn picks(&self) -> &'static str;
    /// The caps on means over the window, for whoever asks when they could be crossed.
    fn caps(&self) -> Caps {
        Caps::default()
    }
}

/// A card for each task.
pub fn exclusive() -> Box<dyn Policy> {
    Box::new(Mapping { order: &orders::EXCLUSIVE, admission: Admission::default(), next: 0 })
}

/// The first card on which believed utilisations add up to at most `sum_permille`, with at most so many residents. Of whom nothing is
/// believed runs in isolation for `profile_ns` first; without that, it has a card for itself.
pub fn packed(sum_permille: u32, most: u32, profile_ns: Option<u64>) -> Box<dyn Policy> {
    let admission = Admission { sum_permille: Some(sum_permille), most: Some(most), profile_ns, ..Admission::default() };
    Box::new(Mapping { order: &orders::PACKED, admission, next: 0 })
}

/// The most that a card's readings may be for a newcomer, in per mille.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Caps {
    pub sm: Option<u32>,
    pub occupancy: Option<u32>,
    pub dram: Option<u32>,
}

/// What a policy has to be given; a plan without it is refused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Needs {
    pub sm: bool,
    pub occupancy: bool,
    pub dram: bool,
    /// How busy a task is believed to keep a card.
    pub belief: bool,
    pub estimate: Estimate,
}

/// What estimates of memory are to a policy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Estimate {
    /// It decides the same whatever is believed.
    #[default]
    Ignored,
    /// It decides better with one.
    Used,
    /// Without one it makes no sense.
    Required,
}

impl Needs {
    /// False if two estimates make the same policy twice.
    pub fn uses_estimate(&self) -> bool {
        self.estimate != Estimate::Ignored
    }
}
