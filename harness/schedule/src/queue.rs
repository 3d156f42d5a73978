//! Who waits, and who is asked for first.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::task::{Task, TaskId};

/// The order in which waiting tasks are offered to a policy. Those behind may pass those for which there is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// First come, first asked for.
    Arrival,
    /// By believed utilisation, the greatest first; of whom nothing is believed comes before all, by arrival.
    Decreasing,
}

/// What decides between two waiting tasks; the least comes first.
type Rank = (Reverse<bool>, Reverse<u32>, u64, TaskId);

/// The waiting tasks. Who ran out of memory comes first in any order.
#[derive(Debug)]
pub(crate) struct Queue {
    order: Order,
    waiting: BTreeSet<Rank>,
}

impl Queue {
    pub fn new(order: Order) -> Queue {
        Queue { order, waiting: BTreeSet::new() }
    }

    fn rank(&self, task: &Task, recovers: bool) -> Rank {
        let greatest = match self.order {
            Order::Arrival => 0,
            Order::Decreasing => task.believed_permille.unwrap_or(u32::MAX),
        };
        (Reverse(recovers), Reverse(greatest), task.arrives_ns, task.id)
    }

    pub fn add(&mut self, task: &Task, recovers: bool) {
        self.waiting.insert(self.rank(task, recovers));
    }

    pub fn remove(&mut self, task: &Task, recovers: bool) {
        self.waiting.remove(&self.rank(task, recovers));
    }

    /// All of them, in order.
    pub fn in_order(&self) -> Vec<TaskId> {
        self.waiting.iter().map(|rank| rank.3).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(id: u32, arrives_ns: u64, believed_permille: Option<u32>) -> Task {
        Task { id: TaskId(id), arrives_ns, believed_permille }
    }

    fn order_of(order: Order, tasks: &[(Task, bool)]) -> Vec<u32> {
        let mut queue = Queue::new(order);
        tasks.iter().for_each(|(task, recovers)| queue.add(task, *recovers));
        queue.in_order().into_iter().map(|id| id.0).collect()
    }

    #[test]
    fn who_comes_first_depends_on_the_order_and_who_recovers_precedes_all() {
        let tasks = [
            (task(1, 30, Some(200)), false),
            (task(2, 20, Some(900)), false),
            (task(3, 10, None), false),
            (task(4, 40, Some(100)), true),
        ];
        assert_eq!(order_of(Order::Arrival, &tasks), [4, 3, 2, 1]);
        assert_eq!(order_of(Order::Decreasing, &tasks), [4, 3, 2, 1]);
        let tasks = [(task(1, 10, Some(200)), false), (task(2, 20, Some(900)), false), (task(3, 20, Some(900)), false)];
        assert_eq!(order_of(Order::Arrival, &tasks), [1, 2, 3]);
        assert_eq!(order_of(Order::Decreasing, &tasks), [2, 3, 1]);
    }

    #[test]
    fn who_was_placed_waits_no_longer() {
        let mut queue = Queue::new(Order::Decreasing);
        let [one, two] = [task(1, 0, Some(300)), task(2, 0, Some(600))];
        queue.add(&one, false);
        queue.add(&two, true);
        queue.remove(&two, true);
        assert_eq!(queue.in_order(), [TaskId(1)]);
    }
}
