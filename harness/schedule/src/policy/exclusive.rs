//! A card for each task.

use super::{Decision, Policy};
use crate::queue::Order;
use crate::task::Task;
use crate::view::{CardView, View};

/// Idle cards only, in the order of arrival.
#[derive(Debug, Clone, Copy)]
pub struct Exclusive;

impl Policy for Exclusive {
    fn label(&self) -> String {
        "exclusive".into()
    }

    fn order(&self) -> Order {
        Order::Arrival
    }

    fn place(&mut self, _: &Task, view: &View<'_>) -> Decision {
        view.first(CardView::is_idle).map_or(Decision::Wait, Decision::Place)
    }
}
