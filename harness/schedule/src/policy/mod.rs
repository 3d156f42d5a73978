//! Policies: a file each.

mod exclusive;
mod first_fit;

pub use exclusive::Exclusive;
pub use first_fit::FirstFit;

use crate::queue::Order;
use crate::task::{CardId, Task};
use crate::view::View;

/// What a policy says of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    Place(CardId),
    /// Run it alone on an idle card for so long, to see its utilisation; then ask again.
    Profile(CardId, u64),
    Wait,
}

/// Decides which card a waiting task gets. It is asked for every waiting task, in its order, whenever anything has changed.
pub trait Policy: Send {
    fn label(&self) -> String;
    /// The order in which it wants to be asked.
    fn order(&self) -> Order;
    fn place(&mut self, task: &Task, view: &View<'_>) -> Decision;
}
