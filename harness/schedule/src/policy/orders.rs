//! The orders: the one list of their names. What a person reads of them, what a label may say, and what they prefer.
//!
//! To add a policy: a line in [`ORDERS`], which puts it into every property test; what it prefers, in `named` of
//! `tests/ledger/policies.rs`.

use super::admission::Memory;
use crate::WHOLE_PERMILLE;
use crate::view::CardView;

/// What a policy picks among the cards that pass admission.
#[derive(Debug)]
pub struct Order {
    pub name: &'static str,
    /// In a line, for lists.
    pub about: &'static str,
    /// The parameters that its label may have.
    pub parameters: &'static [&'static str],
    /// It has a number of its own: `slots:3`.
    pub numbered: bool,
    /// How the study calls it, where it has it.
    pub study: Option<&'static str>,
    pub(super) picks: &'static str,
    pub(super) memory: Memory,
    pub(super) reads_sm: bool,
    pub(super) idle_only: bool,
    /// The least comes first; with where the circle goes on.
    pub(super) preference: fn(&CardView, u32) -> u64,
}

const NONE: &[&str] = &[];
const ALL: &[&str] = &["sm", "occupancy", "dram", "free", "margin"];

pub(super) const EXCLUSIVE: Order = Order {
    name: "exclusive",
    about: "a card for each task: idle cards only",
    parameters: NONE,
    numbered: false,
    study: Some("Exclusive"),
    picks: "an idle card",
    memory: Memory::Ignored,
    reads_sm: false,
    idle_only: true,
    preference: in_order,
};

pub(super) const PACKED: Order = Order {
    name: "packed",
    about: "the first card on which believed utilisations add up to at most `sum`: HotCloud'20's packing",
    parameters: &["sum", "most", "profile"],
    numbered: false,
    study: None,
    picks: "the first whose sum stays within the cap",
    memory: Memory::Ignored,
    reads_sm: false,
    idle_only: false,
    preference: in_order,
};

/// Every order there is.
pub const ORDERS: &[Order] = &[
    EXCLUSIVE,
    Order {
        name: "rr",
        about: "round robin: the next card in the circle, on no condition",
        parameters: NONE,
        numbered: false,
        study: Some("RR"),
        picks: "the next in the circle",
        memory: Memory::Ignored,
        reads_sm: false,
        idle_only: false,
        preference: circle,
    },
    Order {
        name: "ff",
        about: "first fit: the first card that passes",
        parameters: ALL,
        numbered: false,
        study: Some("OFF"),
        picks: "the first that fits",
        memory: Memory::Asked,
        reads_sm: false,
        idle_only: false,
        preference: in_order,
    },
    Order {
        name: "bf",
        about: "best fit: the least free memory",
        parameters: ALL,
        numbered: false,
        study: Some("OBF"),
        picks: "the least free memory",
        memory: Memory::Asked,
        reads_sm: false,
        idle_only: false,
        preference: least_free,
    },
    Order {
        name: "magm",
        about: "the most free memory",
        parameters: ALL,
        numbered: false,
        study: Some("MAGM, OWF"),
        picks: "the most free memory",
        memory: Memory::Asked,
        reads_sm: false,
        idle_only: false,
        preference: most_free,
    },
    Order {
        name: "lug",
        about: "the least SM activity",
        parameters: ALL,
        numbered: false,
        study: Some("LUG, OLUG"),
        picks: "the least SM activity",
        memory: Memory::Asked,
        reads_sm: true,
        idle_only: false,
        preference: least_sm,
    },
    Order {
        name: "mug",
        about: "the most SM activity",
        parameters: ALL,
        numbered: false,
        study: Some("MUG"),
        picks: "the most SM activity",
        memory: Memory::Asked,
        reads_sm: true,
        idle_only: false,
        preference: most_sm,
    },
    Order {
        name: "slots",
        about: "so many tasks on a card, the fewest first: what people do by hand",
        parameters: ALL,
        numbered: true,
        study: None,
        picks: "the fewest residents",
        memory: Memory::AsSaid,
        reads_sm: false,
        idle_only: false,
        preference: fewest,
    },
    PACKED,
];

fn in_order(card: &CardView, _: u32) -> u64 {
    u64::from(card.card.0)
}

fn circle(card: &CardView, next: u32) -> u64 {
    // Those before the place where it goes on come a whole round later.
    u64::from(card.card.0) + if card.card.0 < next { 1 << 32 } else { 0 }
}

fn least_free(card: &CardView, _: u32) -> u64 {
    card.unpromised_bytes()
}

fn most_free(card: &CardView, _: u32) -> u64 {
    u64::MAX - card.unpromised_bytes()
}

fn least_sm(card: &CardView, _: u32) -> u64 {
    u64::from(card.sm_permille.unwrap_or(WHOLE_PERMILLE))
}

fn most_sm(card: &CardView, _: u32) -> u64 {
    u64::from(u32::MAX - card.sm_permille.unwrap_or(0))
}

fn fewest(card: &CardView, _: u32) -> u64 {
    u64::from(card.residents)
}
