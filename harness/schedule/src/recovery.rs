//! What happens to a task that ran out of memory: it is submitted again, and asks for more.

use crate::view::CardView;

/// The rule for further attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recovery {
    /// How much more free memory than on the card where it failed.
    pub step_bytes: u64,
    /// The last of so many attempts asks for an idle card; whoever runs out of memory there has failed.
    pub attempts: u32,
}

/// What a task that ran out of memory asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Asks {
    free_bytes: u64,
    idle: bool,
}

impl Recovery {
    /// What the next attempt asks for, after `failed` that ran out of memory, the last of them with so much free.
    pub(crate) fn after(&self, failed: u32, free_bytes: u64) -> Asks {
        Asks { free_bytes: free_bytes.saturating_add(self.step_bytes), idle: failed + 1 >= self.attempts }
    }
}

impl Asks {
    /// An idle card always will do: there is no better one. Of the others only those whose reading is final.
    pub fn allow(&self, card: &CardView) -> bool {
        card.is_idle() || (!self.idle && card.is_settled() && card.free_bytes() >= self.free_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::{AttemptId, CardId, TaskId};
    use crate::view::Resident;

    fn card(held: &[Option<u64>]) -> CardView {
        let resident = |held_bytes: &Option<u64>| Resident {
            attempt: AttemptId(1),
            task: TaskId(1),
            believed_permille: None,
            held_bytes: *held_bytes,
            profiled: false,
        };
        CardView { card: CardId(0), capacity_bytes: 8, residents: held.iter().map(resident).collect() }
    }

    #[test]
    fn a_further_attempt_asks_for_more_and_the_last_for_an_idle_card() {
        let recovery = Recovery { step_bytes: 2, attempts: 3 };
        let second = recovery.after(1, 3);
        assert!(second.allow(&card(&[Some(3)])) && !second.allow(&card(&[Some(4)])));
        assert!(!second.allow(&card(&[None])), "what has not settled is in no reading");
        let third = recovery.after(2, 3);
        assert!(!third.allow(&card(&[Some(1)])) && third.allow(&card(&[])));
    }

    #[test]
    fn an_idle_card_will_do_whatever_was_asked_for() {
        assert!(Recovery { step_bytes: 5, attempts: 9 }.after(1, 7).allow(&card(&[])));
    }
}
