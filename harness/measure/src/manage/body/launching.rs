//! Attempts are booked and launched.

use collo_launch::NOT_STARTED;
use collo_schedule::{Attempt, Happened};
use collo_store::{Outcome, monotonic_ns};

use super::Body;
use crate::manage::attempt::LiveAttempt;
use crate::observe::Watch;

impl Body<'_, '_> {
    /// Book an attempt, and launch it unless the daemon of its card is just being replaced.
    pub(super) fn start(&mut self, attempt: Attempt) {
        let index = self.group.reserve();
        let now_ns = monotonic_ns();
        let task = attempt.task.0 as usize;
        let cards: Vec<usize> = attempt.cards.iter().map(|card| card.0 as usize).collect();
        self.transcript.add();
        self.supervisors.push(0);
        self.rss_bytes.push(0);
        let barrier = self.spec.tasks[task].member.workload().epochs.is_none();
        self.attempts.push(LiveAttempt {
            watch: Watch::begin((self.spec.of_task)(task), &[barrier], now_ns),
            attempt,
            launch: None,
            launched_ns: now_ns,
            ready_ns: None,
            settled_ns: None,
            go: None,
            attested: None,
            checks: Vec::new(),
            ended: None,
            peak_rss_bytes: None,
            blamed: None,
        });
        for card in &cards {
            self.on_card[*card].push(index);
            self.company_changed(*card);
        }
        if self.cut_short.is_some() {
            // It was asked for before the end was told.
            self.end(index, Some(Outcome::Interrupted));
        } else if let Some(reason) = cards.iter().find_map(|card| self.lost[*card].clone()) {
            self.end(index, Some(Outcome::DeviceLost { reason }));
        } else if !self.broken[cards[0]] {
            self.launch(index);
        }
    }

    /// Somebody came to a card or left it: the lists of its whole GPU are others now.
    pub(super) fn company_changed(&mut self, card: usize) {
        self.spec.site.on_board(card).into_iter().for_each(|card| self.company[card] += 1);
    }

    pub(super) fn launch(&mut self, index: usize) {
        let task = self.attempts[index].attempt.task.0 as usize;
        let slot = self.spec.site.slot(&self.attempts[index].cards());
        let launched = (self.spec.launch)(index, task, &slot).and_then(|launch| {
            let supervisor = self.group.start(index, &launch, &self.signals)?;
            Ok((launch, supervisor))
        });
        self.queue.push_back(Happened::Started(self.attempts[index].attempt.id));
        match launched {
            Ok((launch, supervisor)) => {
                self.attempts[index].launch = Some(launch);
                self.supervisors[index] = supervisor;
                self.sampling.add(index, supervisor);
            }
            Err(why) => {
                let (status, message) = (NOT_STARTED.to_string(), why.to_string());
                let outcome = Outcome::Crashed { member: index as u32, status, message, place_alone: false };
                self.attempts[index].blamed = Some(outcome);
                self.ended(index);
            }
        }
    }
}
