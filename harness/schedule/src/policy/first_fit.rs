//! First fit, decreasing, by believed utilisation: the packing of HotCloud'20.

use super::{Decision, Policy};
use crate::queue::Order;
use crate::task::Task;
use crate::view::{CardView, View};

/// The first card on which the sum of believed utilisations stays within a cap.
#[derive(Debug, Clone, Copy)]
pub struct FirstFit {
    /// The most that residents may be believed to need together.
    pub cap_permille: u32,
    /// The most residents of a card.
    pub most: usize,
    /// For so long a task of which nothing is believed runs in isolation first; `None`: it gets a card for itself.
    pub profile_ns: Option<u64>,
}

impl Policy for FirstFit {
    fn label(&self) -> String {
        let profile = self.profile_ns.map(|ns| format!(",profile={}s", ns / 1_000_000_000)).unwrap_or_default();
        format!("ff:sum={}%,most={}{profile}", self.cap_permille / 10, self.most)
    }

    fn order(&self) -> Order {
        Order::Decreasing
    }

    fn place(&mut self, task: &Task, view: &View<'_>) -> Decision {
        let found = match (task.believed_permille, self.profile_ns) {
            (None, Some(ns)) => return view.first(CardView::is_idle).map_or(Decision::Wait, |card| Decision::Profile(card, ns)),
            (None, None) => view.first(CardView::is_idle),
            // Who needs more than the cap alone still has to run somewhere.
            (Some(believed), _) => view.first(|card| {
                card.is_idle() || (card.residents.len() < self.most && card.promised_permille() + believed <= self.cap_permille)
            }),
        };
        found.map_or(Decision::Wait, Decision::Place)
    }
}
