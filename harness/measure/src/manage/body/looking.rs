//! What is looked at every so often: time limits, lost cards, readings that stopped; and the display.

use std::time::Duration;

use collo_schedule::State;

use super::Body;
use crate::manage::CutShort;
use crate::manage::readings::CardReadings;
use crate::observe::{ManagedView, View};
use collo_store::member_scope;

impl Body<'_, '_> {
    /// Time limits, lost cards, the display.
    pub(super) fn look(&mut self, now_ns: u64, suspended: Option<Duration>) {
        for index in 0..self.attempts.len() {
            if !self.attempts[index].lives() {
                continue;
            }
            if let Some(stood_still) = suspended {
                self.attempts[index].watch.excuse(stood_still);
            }
            if self.attempts[index].launch.is_some() {
                let acts = self.attempts[index].watch.tick(now_ns);
                self.act(index, acts);
            }
        }
        for (uuid, reason) in self.sampling.lost_boards() {
            for card in 0..self.readings.len() {
                if self.spec.site.board_of(card) == Some(&uuid) {
                    self.gpu_lost(card, reason.clone());
                }
            }
        }
        for card in 0..self.readings.len() {
            self.settle(card);
            let silent_ns = self.readings[card].read_ns().map_or(0, |ns| now_ns.saturating_sub(ns));
            let is_expected = self.lost[card].is_none() && suspended.is_none() && self.cut_short.is_none();
            if is_expected && silent_ns > self.spec.stall_timeout.as_nanos() as u64 {
                let why = format!("{} gave no reading for {} s", self.name(card), silent_ns / 1_000_000_000);
                self.cut(CutShort::DeviceLost(why));
            }
        }
        self.show();
    }

    pub(super) fn show(&mut self) {
        let latest = self.sampling.latest();
        for (index, attempt) in self.attempts.iter_mut().enumerate().filter(|(_, attempt)| attempt.lives()) {
            let sampled = latest.get(&member_scope(index)).and_then(|w| w.peak_rss_bytes).map(|bytes| bytes as u64);
            attempt.peak_rss_bytes = attempt.peak_rss_bytes.max(sampled);
        }
        let count = |states: &[State]| states.iter().map(|state| self.ledger.count(*state)).sum::<usize>();
        let card = |(number, readings): (usize, &CardReadings)| {
            let reading = readings.reading(self.began_ns);
            let residents = self.on_card[number].len();
            (residents, reading.and_then(|r| r.sm_permille).map(|sm| f64::from(sm) / 1000.0), reading.and_then(|r| r.free_bytes))
        };
        let managed = ManagedView {
            tasks: self.spec.tasks.len(),
            arrived: self.ledger.arrived_tasks(),
            waiting: count(&[State::Waiting, State::Recovering]),
            running: count(&[State::Starting, State::Settling, State::Running]),
            done: count(&[State::Done]),
            failed: count(&[State::Failed, State::Never]),
            elapsed_s: self.now_ns() as f64 / 1e9,
            cards: self.readings.iter().enumerate().map(card).collect(),
        };
        (self.spec.show)(View::of_trace(managed));
    }
}
