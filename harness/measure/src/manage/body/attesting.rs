//! When evidence of a card is gathered, and what is made of it.

use collo_store::{Attestation, AttestationVerdict, Check, monotonic_ns};

use super::Body;
use crate::manage::evidence::{self, Found, Gathering};
use crate::stage::{NOBODY, OTHERS, words};

impl Body<'_, '_> {
    /// Gather the evidence of a card, or once more if it is being gathered.
    pub(super) fn gather(&mut self, card: usize) {
        if self.gathering[card].runs {
            self.gathering[card].again = true;
            return;
        }
        let runs = |index: &usize| self.attempts[*index].lives() && self.attempts[*index].launch.is_some();
        let there: Vec<usize> = self.on_card[card].iter().copied().filter(runs).collect();
        let is_own = |index: &usize| self.attempts[*index].main_card() == card && self.attempts[*index].is_there();
        let (own, mut besides): (Vec<usize>, Vec<usize>) = there.into_iter().partition(is_own);
        if own.is_empty() && !besides.iter().any(|index| self.spreads_to(*index, card)) {
            // Nobody waits for it any more: whoever comes next begins anew.
            self.gathering[card] = Gathering::default();
            return;
        }
        // The lists of a GPU have those on its other instances as well.
        let elsewhere = self.spec.site.on_board(card).into_iter().filter(|other| *other != card);
        besides.extend(elsewhere.flat_map(|other| self.on_card[other].iter().copied()).filter(runs));
        let in_force = |list: &[usize]| {
            let of = |(number, index): (usize, &usize)| {
                self.attempts[*index].in_force(number, self.supervisors[*index], self.spec.threads, &self.spec.all_cores)
            };
            list.iter().enumerate().map(of).collect::<Vec<_>>()
        };
        let main_device = |index: &usize| {
            let staged = self.spec.site.card(self.attempts[*index].main_card())?;
            Some(staged.devices[0].uuid.clone())
        };
        let with_main = in_force(&besides).into_iter().zip(besides.iter().map(main_device)).collect();
        evidence::gather(card, self.spec.site.card(card), in_force(&own), with_main, &self.found);
        let before = &mut self.gathering[card];
        let (tries, idle_before) = (before.tries, std::mem::take(&mut before.idle_before));
        let (began_ns, company) = (monotonic_ns(), self.company[card]);
        self.gathering[card] = Gathering { own, besides, runs: true, began_ns, company, again: false, tries, idle_before };
    }

    /// Gather the evidence of every card of an attempt.
    pub(super) fn gather_of(&mut self, index: usize) {
        self.attempts[index].cards().into_iter().for_each(|card| self.gather(card));
    }

    /// Whether it is one of an attempt's further cards, on which it should compute by now.
    fn spreads_to(&self, index: usize, card: usize) -> bool {
        let attempt = &self.attempts[index];
        let is_ready = attempt.watch.seats[0].ready_ns.is_some();
        is_ready && attempt.is_there() && attempt.main_card() != card && attempt.cards().contains(&card)
    }

    pub(super) fn gather_again(&mut self, card: usize) {
        self.gathering[card].runs = false;
        self.gather(card);
    }

    pub(super) fn found(&mut self, Found { card, attestation, besides }: Found) {
        let gathered = std::mem::take(&mut self.gathering[card]);
        if self.is_cut() {
            // Everybody is leaving, and what is found of that is no evidence.
            return;
        }
        let changed = self.company[card] != gathered.company;
        let holds = attestation.as_ref().is_none_or(evidence::holds);
        // A process that ended in between is no longer listed; what holds although others came or went, holds.
        if !holds && evidence::may_try_again(gathered.tries, changed) {
            let (tries, idle_before) = (gathered.tries + 1, gathered.idle_before);
            self.gathering[card] = Gathering { runs: true, tries, idle_before, ..Gathering::default() };
            evidence::again(card, gathered.tries, &self.found);
            return;
        }
        if !holds && self.is_broken(card) {
            return;
        }
        if let Some(attestation) = &attestation {
            self.attested(&gathered.own, attestation);
        }
        let idle = self.idle_on(card, &gathered, &besides);
        if !holds {
            let checks = attestation.map(|attestation| attestation.checks).unwrap_or_default();
            let failed = checks.iter().find(|check| !check.holds);
            self.void(failed.map_or("no evidence that the mode was in force".into(), words));
            return;
        }
        for index in gathered.own {
            if let Some(go) = self.attempts[index].go.take() {
                self.group.send(index, go);
            }
        }
        // An attempt that has just ended is gone from the lists before it is known to have ended: the second look decides.
        if idle.iter().any(|index| !gathered.idle_before.contains(index)) {
            self.gathering[card] = Gathering { runs: true, idle_before: idle, ..Gathering::default() };
            evidence::again(card, 0, &self.found);
            return;
        }
        idle.into_iter().for_each(|index| self.note_idle_card(index, card));
        if gathered.again {
            self.gather(card);
        }
    }

    /// Note what was found of these attempts.
    fn attested(&mut self, own: &[usize], attestation: &Attestation) {
        for (place, index) in own.iter().enumerate() {
            let attempt = &mut self.attempts[*index];
            let of_it = |check: &&Check| check.member.is_none_or(|member| member as usize == place);
            let renamed = attestation.checks.iter().filter(of_it).map(|check| {
                let member = check.member.map(|_| *index as u32);
                Check { member, ..check.clone() }
            });
            let mut checks: Vec<Check> = renamed.collect();
            keep_strangers(&attempt.checks, &mut checks);
            attempt.checks = checks;
            // The worst of what was found of it counts.
            attempt.attested = Some(attempt.attested.map_or(attestation.verdict, |known| worse(known, attestation.verdict)));
        }
    }

    /// Attempts that were ready before the lists of a card were read, have that card, and are not on its lists.
    fn idle_on(&self, card: usize, gathered: &Gathering, computes: &[Option<bool>]) -> Vec<usize> {
        let is_idle = |(index, computes): (&usize, &Option<bool>)| {
            let was_ready = self.attempts[*index].ready_ns.is_some_and(|ns| ns < gathered.began_ns);
            (was_ready && self.spreads_to(*index, card) && *computes == Some(false)).then_some(*index)
        };
        gathered.besides.iter().zip(computes).filter_map(is_idle).collect()
    }

    fn note_idle_card(&mut self, index: usize, card: usize) {
        let asked = self.attempts[index].attempt.cards.len();
        let said = format!("attempt {index} asked for {asked} cards and does not compute on {}", self.name(card));
        if !self.remarks.contains(&said) {
            self.remarks.push(said);
        }
    }
}

/// Who else computed on its card when it was looked before did so, though it may be gone now.
fn keep_strangers(before: &[Check], now: &mut [Check]) {
    let is_nobody = |check: &Check| check.found.as_deref().is_none_or(|who| who == NOBODY);
    let Some(seen) = before.iter().find(|check| check.what == OTHERS && !is_nobody(check)) else { return };
    for check in now.iter_mut().filter(|check| check.what == OTHERS && is_nobody(check)) {
        check.found.clone_from(&seen.found);
    }
}

/// The lesser of two verdicts.
fn worse(a: AttestationVerdict, b: AttestationVerdict) -> AttestationVerdict {
    use AttestationVerdict::{Absent, Attested, CountsOnly};
    match (a, b) {
        (Absent, _) | (_, Absent) => Absent,
        (CountsOnly, _) | (_, CountsOnly) => CountsOnly,
        (Attested, Attested) => Attested,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn others(found: &str) -> Check {
        Check { what: OTHERS.into(), member: None, asked: "allowed".into(), found: Some(found.into()), holds: true }
    }

    #[test]
    fn a_stranger_that_was_seen_once_is_not_forgotten_when_it_is_gone() {
        let mut now = [others(NOBODY)];
        keep_strangers(&[others("`python` (pid 7)")], &mut now);
        assert_eq!(now[0].found.as_deref(), Some("`python` (pid 7)"));
        keep_strangers(&[others(NOBODY)], &mut now);
        assert_eq!(now[0].found.as_deref(), Some("`python` (pid 7)"), "nobody before takes nobody away");
    }
}
