//! Whether a card with somebody on it takes a newcomer.
//!
//! To add a parameter: a field of [`Admission`], its reading and its text in `label.rs`, its values in `tests/ledger/case.rs`.

use super::{Caps, Policy};
use crate::WHOLE_PERMILLE;
use crate::decided::WhyNot;
use crate::policy::orders::Order;
use crate::policy::{Estimate, Needs};
use crate::task::{CardId, Task};
use crate::view::CardView;

/// The conditions of a policy, as its label gives them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Admission {
    pub caps: Caps,
    /// At least so much has to be free.
    pub free_bytes: Option<u64>,
    /// On top of the estimate.
    pub margin_bytes: Option<u64>,
    /// With the newcomer a card has at most so many.
    pub most: Option<u32>,
    /// The most that believed utilisations may add up to.
    pub sum_permille: Option<u32>,
    /// For so long a task of which nothing is believed runs in isolation first; `None`: it gets a card for itself.
    pub profile_ns: Option<u64>,
}

/// What an order does about memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// A newcomer has to fit; without an estimate everybody on the card has to have settled.
    Asked,
    /// Only what is said counts: an estimate if there is one, `free` if it is given.
    AsSaid,
    /// Nothing is asked.
    Ignored,
}

/// An order with its conditions.
#[derive(Debug, Clone)]
pub(super) struct Mapping {
    pub order: &'static Order,
    pub admission: Admission,
    /// After the last card that was given: where the circle goes on.
    pub next: u32,
}

impl Admission {
    fn memory(&self, asked: Memory, task: &Task, card: &CardView) -> Option<WhyNot> {
        if asked == Memory::Ignored {
            return None;
        }
        if asked == Memory::Asked && task.estimate_bytes.is_none() && card.unsettled > 0 {
            return Some(WhyNot::Unsettled);
        }
        let with_margin = task.estimate_bytes.map(|bytes| bytes.saturating_add(self.margin_bytes.unwrap_or_default()));
        let least = with_margin.unwrap_or_default().max(self.free_bytes.unwrap_or_default());
        (card.unpromised_bytes() < least).then_some(WhyNot::TooLittleFree)
    }

    fn sum(&self, task: &Task, card: &CardView) -> Option<WhyNot> {
        let cap = self.sum_permille?;
        let believed = task.believed_permille.unwrap_or(WHOLE_PERMILLE);
        let alone = task.believed_permille.is_none();
        (alone || card.believed_permille.saturating_add(believed) > cap).then_some(WhyNot::SumTooHigh)
    }
}

fn over(cap: Option<u32>, read: Option<u32>, why: WhyNot) -> Option<WhyNot> {
    match (cap, read) {
        (None, _) => None,
        (Some(_), None) => Some(WhyNot::NoReading),
        (Some(cap), Some(read)) => (read > cap).then_some(why),
    }
}

impl Policy for Mapping {
    fn label(&self) -> String {
        super::label::text(self)
    }

    fn needs(&self) -> Needs {
        let Caps { sm, occupancy, dram } = self.admission.caps;
        let estimate = match self.order.memory {
            Memory::Ignored => Estimate::Ignored,
            _ if self.admission.margin_bytes.is_some() => Estimate::Required,
            Memory::Asked | Memory::AsSaid => Estimate::Used,
        };
        Needs {
            sm: sm.is_some() || self.order.reads_sm,
            occupancy: occupancy.is_some(),
            dram: dram.is_some(),
            belief: self.admission.sum_permille.is_some(),
            estimate,
        }
    }

    fn refuses(&self, task: &Task, card: &CardView) -> Option<WhyNot> {
        let Admission { caps, most, .. } = self.admission;
        if self.order.idle_only {
            return Some(WhyNot::NotIdle);
        }
        if most.is_some_and(|most| card.residents >= most) {
            return Some(WhyNot::TooManyResidents);
        }
        if self.order.reads_sm && card.sm_permille.is_none() {
            return Some(WhyNot::NoReading);
        }
        over(caps.sm, card.sm_permille, WhyNot::SmTooHigh)
            .or_else(|| over(caps.occupancy, card.occupancy_permille, WhyNot::OccupancyTooHigh))
            .or_else(|| over(caps.dram, card.dram_permille, WhyNot::DramTooHigh))
            .or_else(|| self.admission.sum(task, card))
            .or_else(|| self.admission.memory(self.order.memory, task, card))
    }

    fn preference(&self, card: &CardView) -> u64 {
        (self.order.preference)(card, self.next)
    }

    fn placed(&mut self, cards: &[CardId]) {
        if let Some(last) = cards.last() {
            self.next = last.0 + 1;
        }
    }

    fn profile_ns(&self, task: &Task) -> Option<u64> {
        self.admission.profile_ns.filter(|_| task.believed_permille.is_none())
    }

    fn picks(&self) -> &'static str {
        self.order.picks
    }

    fn caps(&self) -> Caps {
        self.admission.caps
    }
}
