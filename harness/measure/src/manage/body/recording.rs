//! What is recorded of a trace that is over.

use collo_store::{AttemptRecord, AttestationVerdict, EpochRecord, Outcome, monotonic_ns};

use super::Body;
use crate::error::RunError;
use crate::manage::Played;
use crate::manage::attempt::EndedAttempt;

impl Body<'_, '_> {
    pub(super) fn finish(self, launched_ns: u64) -> Result<Played, RunError> {
        let Body { group, sampling, mut ledger, attempts, .. } = self;
        let sampled = sampling.stop()?;
        group.sweep();
        let ended_ns = monotonic_ns();
        let accounts: Vec<_> = ledger.accounts().cloned().collect();
        let books = |index: usize| {
            accounts.iter().flat_map(|account| &account.attempts).find(|own| own.attempt.id.0 as usize == index)?.ended
        };
        let mut played = Played {
            began_ns: self.began_ns,
            launched_ns,
            ended_ns,
            decided: ledger.take_decided(),
            attempts: Vec::new(),
            members: Vec::new(),
            checks: Vec::new(),
            epochs: Vec::new(),
            requests: Vec::new(),
            sampling: sampled,
            remarks: self.remarks,
            cut_short: self.cut_short,
            accounts: Vec::new(),
        };
        for (index, mut live) in attempts.into_iter().enumerate() {
            let ended = live.ended.clone().unwrap_or(EndedAttempt { at_ns: ended_ns, outcome: Outcome::Interrupted });
            let known = books(index);
            let cards: Vec<u32> = live.attempt.cards.iter().map(|card| card.0).collect();
            played.attempts.push(AttemptRecord {
                attempt: index as u32,
                task: live.attempt.task.0,
                cards,
                launched_ns: live.launched_ns,
                settled_ns: live.settled_ns,
                ended_ns: ended.at_ns,
                newcomer: known.map(|ended| ended.newcomer),
                alone: known.is_some_and(|ended| ended.alone),
                attested: live.attested.unwrap_or(AttestationVerdict::Absent),
                outcome: ended.outcome.clone(),
            });
            let spec = self.spec.tasks[live.attempt.task.0 as usize].member.spec();
            let is_complete = ended.outcome == Outcome::Completed;
            let mut member = live.watch.seats[0].record(&spec, live.peak_rss_bytes, is_complete);
            member.command = live.launch.as_ref().map(|launch| launch.command.clone()).unwrap_or_default();
            played.members.push(member);
            played.epochs.extend(live.watch.epochs().into_iter().map(|epoch| EpochRecord { member: index as u32, ..epoch }));
            played.requests.extend(std::mem::take(&mut live.watch.seats[0].requests));
            played.checks.append(&mut live.checks);
        }
        played.checks.sort_by_key(|check| check.holds);
        played.accounts = accounts;
        Ok(played)
    }
}
