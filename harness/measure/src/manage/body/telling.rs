//! Readings are taken, and told to the ledger: cards', and who has settled by them.

use std::time::Duration;

use collo_schedule::{CardId, Happened, State};
use collo_store::{Sample, member_of_scope, monotonic_ns};
use tokio::sync::mpsc;

use super::Body;
use crate::manage::attempt::LiveAttempt;
use crate::manage::readings::CardReadings;
use crate::manage::{CutShort, ManageSpec};
use collo_launch::interrupt::Stop;
use collo_plan::cell::Settle;

/// How long the first readings may take.
const FIRST_READINGS: Duration = Duration::from_secs(20);
/// The most seldom that a reading is told while somebody waits.
const TELL_AT_LEAST_NS: u64 = 1_000_000_000;
/// The most often.
const TELL_AT_MOST_NS: u64 = 20_000_000;

pub(super) fn readings_of(spec: &ManageSpec<'_, '_>, card: usize) -> CardReadings {
    let (capacity_bytes, window_ns) = (spec.rules.cards[card].capacity_bytes, spec.rules.window_ns);
    let needs = collo_schedule::policy::parse(&spec.rules.policy).map(|policy| policy.needs()).unwrap_or_default();
    let scope = spec.site.scope(card);
    let readings = match spec.site.set_at_a_time(card) {
        None => CardReadings::of_gpu(scope, capacity_bytes, window_ns),
        Some(cores) => CardReadings::of_cores(scope, cores, capacity_bytes, window_ns),
    };
    readings.needing(needs)
}

impl Body<'_, '_> {
    /// Nothing is placed by guess: wait until every card was read, and that of it which the policy needs.
    pub(super) async fn first_readings(&mut self, samples: &mut mpsc::UnboundedReceiver<Vec<Sample>>) {
        let until = tokio::time::Instant::now() + FIRST_READINGS;
        while let Some(missing) = self.readings.iter().find_map(CardReadings::missing) {
            match tokio::time::timeout_at(until, samples.recv()).await {
                Ok(Some(batch)) => self.take(&batch),
                _ => {
                    let policy = &self.spec.rules.policy;
                    let why =
                        format!("`{policy}` decides by {missing}, and no source tells it within {} s", FIRST_READINGS.as_secs());
                    self.cut_short = Some(CutShort::NotStaged(why));
                    return;
                }
            }
            if *self.spec.stop.borrow() != Stop::No {
                return;
            }
        }
    }

    pub(super) fn begin(&mut self) {
        for card in 0..self.readings.len() {
            self.tell_reading(card);
        }
        self.settle_what_happened();
    }

    pub(super) fn take(&mut self, batch: &[Sample]) {
        for sample in batch {
            if sample.metric == "rss_bytes"
                && let Some(index) = member_of_scope(&sample.scope)
            {
                let lives = self.attempts.get(index).is_some_and(LiveAttempt::lives);
                if let (true, Some(bytes)) = (lives, sample.value) {
                    self.rss_bytes[index] = bytes as u64;
                }
            }
            for card in 0..self.readings.len() {
                self.readings[card].take(sample);
                if sample.metric == "cpu_ratio" && sample.scope == *self.readings[card].scope() {
                    let held = self.on_card[card].iter().map(|index| self.rss_bytes[*index]).sum();
                    self.readings[card].held(sample.at_ns, held);
                }
            }
        }
    }

    pub(super) fn sampled(&mut self, batch: &[Sample]) {
        self.take(batch);
        let now_ns = monotonic_ns();
        let every_ns = (self.spec.rules.window_ns / 16).clamp(TELL_AT_MOST_NS, TELL_AT_LEAST_NS);
        let waits = self.ledger.count(State::Waiting) + self.ledger.count(State::Recovering) > 0;
        for card in 0..self.readings.len() {
            self.settle(card);
            if waits && now_ns.saturating_sub(self.told_ns[card]) >= every_ns {
                self.tell_reading(card);
            }
        }
    }

    pub(super) fn tell_reading(&mut self, card: usize) {
        if let Some(reading) = self.readings[card].reading(self.began_ns).filter(|_| self.lost[card].is_none()) {
            self.told_ns[card] = monotonic_ns();
            self.queue.push_back(Happened::Read(CardId(card as u32), reading));
        }
    }

    /// Tell who has settled on a card: whoever was ready before its memory was last read, on all of its cards.
    pub(super) fn settle(&mut self, card: usize) {
        for index in self.on_card[card].clone() {
            let attempt = &self.attempts[index];
            if attempt.settled_ns.is_some() || !attempt.lives() {
                continue;
            }
            let since_ns = match self.spec.settle {
                Settle::Ready => attempt.ready_ns,
                Settle::After(ns) => Some(attempt.launched_ns + ns).filter(|at| *at <= monotonic_ns()),
            };
            let Some(since_ns) = since_ns else { continue };
            let cards = attempt.cards();
            let is_read = |card: &usize| self.readings[*card].memory_read_ns().is_some_and(|ns| ns >= since_ns);
            if !cards.iter().all(is_read) {
                continue;
            }
            let id = attempt.attempt.id;
            self.attempts[index].settled_ns = Some(monotonic_ns());
            for card in cards {
                self.tell_reading(card);
            }
            self.queue.push_back(Happened::Settled(id, None));
        }
    }
}
