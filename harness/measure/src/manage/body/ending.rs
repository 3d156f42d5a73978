//! Attempts end, and so does the run, for whatever reason.

use collo_schedule::Happened;
use collo_store::{Outcome, monotonic_ns};

use super::Body;
use crate::manage::CutShort;
use crate::manage::attempt::{EndedAttempt, how_ended, of_member};
use collo_launch::interrupt::Stop;

impl Body<'_, '_> {
    /// End an attempt by force; what it ends as, if that is known better.
    pub(super) fn end(&mut self, index: usize, blamed: Option<Outcome>) {
        let attempt = &mut self.attempts[index];
        if !attempt.lives() {
            return;
        }
        attempt.blamed = attempt.blamed.take().or(blamed);
        if attempt.launch.is_none() {
            attempt.blamed.get_or_insert(Outcome::Interrupted);
            self.ended(index);
            return;
        }
        let acts = attempt.watch.kill(monotonic_ns());
        self.act(index, acts);
    }

    /// Nothing is left of an attempt.
    pub(super) fn ended(&mut self, index: usize) {
        if !self.attempts[index].lives() {
            return;
        }
        let at_ns = monotonic_ns();
        self.sampling.remove(index);
        self.group.forget(index);
        self.rss_bytes[index] = 0;
        let cards = self.attempts[index].cards();
        let own = self.attempts[index].watch.outcome();
        let mut outcome = self.attempts[index].blamed.clone().unwrap_or_else(|| of_member(own, index as u32));
        // A member that the host's memory failed may take the MPS server along: that is not the cause.
        let is_told = self.attempts[index].blamed.is_some() || matches!(outcome, Outcome::HostOutOfMemory { .. });
        let (mut lost, mut broken) = (None, None);
        if outcome.is_failure() && !is_told {
            // Members fail when their card or their server does; it is not they who are to blame.
            lost = cards.iter().find_map(|card| Some((*card, self.gone(*card)?)));
            broken = if lost.is_none() { self.spec.site.trouble(cards[0]) } else { None };
        }
        if let Some((_, reason)) = &lost {
            outcome = Outcome::DeviceLost { reason: reason.clone() };
        } else if let Some(reason) = &broken {
            outcome = Outcome::ModeLost { reason: reason.clone() };
        }
        let attempt = &mut self.attempts[index];
        let id = attempt.attempt.id;
        let how = how_ended(&outcome);
        attempt.ended = Some(EndedAttempt { at_ns, outcome });
        for card in &cards {
            self.on_card[*card].retain(|other| *other != index);
            self.company_changed(*card);
            if !self.on_card[*card].is_empty() {
                self.gather(*card);
            }
        }
        if let Some((card, reason)) = lost {
            self.gpu_lost(card, reason);
        }
        self.queue.push_back(Happened::Ended(id, how));
        if let Some(reason) = broken {
            self.daemon_broke(cards[0], reason);
        } else if self.broken[cards[0]] {
            self.renew_if_empty(cards[0]);
        }
    }

    /// The run ends before its tasks do, and whoever is there is leaving.
    pub(super) fn is_cut(&self) -> bool {
        !matches!(self.cut_short, None | Some(CutShort::DiskFull(_)))
    }

    /// Without evidence no number of the run may be used: it need not go on.
    pub(super) fn void(&mut self, reason: String) {
        self.cut(CutShort::ModeLost(reason));
    }

    pub(super) fn disk_full(&mut self, why: &str) {
        if self.cut_short.is_none() {
            self.queue.push_back(Happened::Full);
            // What runs goes on; nothing else comes.
            self.cut_short = Some(CutShort::DiskFull(why.to_string()));
        }
    }

    pub(super) fn cut(&mut self, why: CutShort) {
        if self.cut_short.is_none() {
            self.cut_short = Some(why);
        }
        // Nothing further is placed, and whoever is left is asked to leave.
        self.queue.push_back(Happened::Full);
        for index in 0..self.attempts.len() {
            match (self.attempts[index].lives(), self.attempts[index].launch.is_some()) {
                (false, _) => {}
                (true, false) => self.end(index, Some(Outcome::Interrupted)),
                (true, true) => {
                    let acts = self.attempts[index].watch.interrupt(monotonic_ns());
                    self.act(index, acts);
                }
            }
        }
    }

    pub(super) fn stopped(&mut self, asked: Stop) {
        match asked {
            Stop::No => {}
            Stop::Gently => self.cut(CutShort::Interrupted(false)),
            Stop::Now => {
                self.cut_short = Some(CutShort::Interrupted(true));
                self.queue.push_back(Happened::Full);
                for index in 0..self.attempts.len() {
                    self.end(index, Some(Outcome::Interrupted));
                }
            }
        }
    }
}
