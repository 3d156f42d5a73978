//! Cards that are lost, and MPS daemons that no longer work.

use std::collections::BTreeSet;

use collo_schedule::{CardId, Happened};
use collo_store::Outcome;

use super::Body;
use crate::manage::CutShort;

impl Body<'_, '_> {
    /// Whether something is wrong with a card itself, so that nobody on it is to blame; what follows from it has been done then.
    pub(super) fn is_broken(&mut self, card: usize) -> bool {
        if let Some(reason) = self.gone(card) {
            self.gpu_lost(card, reason);
            return true;
        }
        if !self.broken[card]
            && let Some(reason) = self.spec.site.trouble(card)
        {
            self.daemon_broke(card, reason);
        }
        self.broken[card]
    }

    /// Why a card is lost, if it is.
    pub(super) fn gone(&self, card: usize) -> Option<String> {
        self.lost[card].clone().or_else(|| self.spec.site.lost(card))
    }

    /// The MPS daemon of a card no longer works: everybody whom it serves is ended, and then it is started anew.
    pub(super) fn daemon_broke(&mut self, card: usize, reason: String) {
        let served = self.spec.site.served_with(card);
        let members: BTreeSet<usize> = served.iter().flat_map(|card| self.on_card[*card].clone()).collect();
        self.remarks.push(format!("{} lost its mode: {reason}", self.name(card)));
        for card in served {
            self.broken[card] = true;
        }
        for member in members {
            self.end(member, Some(Outcome::ModeLost { reason: reason.clone() }));
        }
        self.renew_if_empty(card);
    }

    /// Once no process of those whom it served is left, the daemon is replaced, and whoever waited for that is launched.
    pub(super) fn renew_if_empty(&mut self, card: usize) {
        let mut served = self.spec.site.served_with(card);
        // Who has several cards is on the list of each.
        let on_them: BTreeSet<usize> = served.iter().flat_map(|card| self.on_card[*card].clone()).collect();
        if on_them.iter().any(|index| self.attempts[*index].launch.is_some()) || !self.broken[card] || self.is_cut() {
            return;
        }
        for card in &served {
            self.broken[*card] = false;
        }
        served.retain(|card| self.lost[*card].is_none());
        match self.spec.site.renew(&served, self.spec.leases) {
            Ok(()) => on_them.into_iter().for_each(|index| self.launch(index)),
            Err(why) => served.into_iter().for_each(|card| {
                let what = format!("{} has no working daemon any more: {}", self.name(card), why.reason);
                self.leaves(card, &why.reason, what, CutShort::ModeLost);
            }),
        }
    }

    /// The GPU of a card has disappeared, and every card on it.
    pub(super) fn gpu_lost(&mut self, card: usize, reason: String) {
        for card in self.spec.site.on_board(card) {
            let what = format!("{} was lost: {reason}", self.name(card));
            self.leaves(card, &reason, what, CutShort::DeviceLost);
        }
    }

    /// A card leaves the site, which is told before the ends of those on it, so that nobody is placed there again. With the last one the
    /// run ends, as what is said here.
    fn leaves(&mut self, card: usize, reason: &str, remark: String, ends: fn(String) -> CutShort) {
        if self.lost[card].is_some() {
            return;
        }
        self.lost[card] = Some(reason.to_string());
        self.remarks.push(remark);
        self.queue.push_back(Happened::CardLost(CardId(card as u32)));
        for member in self.on_card[card].clone() {
            self.end(member, Some(Outcome::DeviceLost { reason: reason.to_string() }));
        }
        if self.lost.iter().all(Option::is_some) {
            self.cut(ends(reason.to_string()));
        }
    }

    pub(super) fn name(&self, card: usize) -> String {
        format!("card {card} ({})", self.spec.site.label(card))
    }
}
