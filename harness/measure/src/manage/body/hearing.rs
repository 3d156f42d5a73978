//! What members and their supervisors say, and what follows from it for their attempt.

use collo_store::{AttestationVerdict, monotonic_ns};

use super::Body;
use crate::observe::{Act, Traces, failure_log};
use crate::stage::words;
use collo_launch::Signal;
use collo_launch::protocol::{Command, MemberEvent};
use collo_sample::peak_rss_bytes;

impl Body<'_, '_> {
    pub(super) fn hear(&mut self, index: usize, signal: Signal) {
        let now_ns = monotonic_ns();
        let main = self.attempts[index].main_card();
        let mut misplaced = None;
        match &signal {
            Signal::Said { event: MemberEvent::Hello(hello), .. } => {
                misplaced = self.spec.site.misplaced(main, index, hello);
            }
            Signal::Said { event: MemberEvent::Done, .. } => self.read_peak(index),
            _ => {}
        }
        let is_started = matches!(signal, Signal::Started { .. });
        let traces = match &signal {
            Signal::Ended(_) => {
                let log = self.attempts[index].launch.as_ref().map(|launch| launch.log.clone()).unwrap_or_default();
                failure_log::find(&log, None, self.oom_kills)
            }
            _ => Traces::default(),
        };
        let attempt = &mut self.attempts[index];
        let mut acts = attempt.watch.on(0, signal, now_ns, traces);
        if let Some(check) = misplaced {
            let reason = words(&check);
            attempt.checks.push(check);
            attempt.attested = Some(AttestationVerdict::Absent);
            acts.retain(|act| !matches!(act, Act::Send(..)));
            acts.extend(attempt.watch.refuse(reason.clone(), now_ns));
            self.act(index, acts);
            self.void(reason);
            return;
        }
        let is_ready = self.attempts[index].watch.seats[0].ready_ns.is_some();
        if is_ready && self.attempts[index].ready_ns.is_none() {
            self.attempts[index].ready_ns = Some(now_ns);
        }
        let foreign = !self.attempts[index].watch.seats[0].barrier;
        self.act(index, acts);
        if is_started && foreign {
            self.attempts[index].ready_ns = Some(now_ns);
            self.gather(main);
        }
    }

    pub(super) fn act(&mut self, index: usize, acts: Vec<Act>) {
        for act in acts {
            match act {
                // It trains once there is evidence for it.
                Act::Send(_, command @ Command::Go { .. }) => {
                    self.attempts[index].go = Some(command);
                    self.gather_of(index);
                }
                Act::Send(_, command) => self.group.send(index, command),
                Act::Kill(_) => self.group.kill(index),
                Act::FirstDone => {
                    self.gather_of(index);
                    let acts = self.attempts[index].watch.evidence_is_in(monotonic_ns());
                    self.act(index, acts);
                }
                Act::AllDone => {
                    let acts = self.attempts[index].watch.stop(monotonic_ns());
                    self.act(index, acts);
                }
                Act::Opened => {}
            }
        }
        if self.attempts[index].watch.over() {
            self.ended(index);
        }
    }

    pub(super) fn read_peak(&mut self, index: usize) {
        if let Some(pid) = self.attempts[index].watch.seats[0].pid {
            let known = self.attempts[index].peak_rss_bytes;
            self.attempts[index].peak_rss_bytes = known.max(peak_rss_bytes(pid));
        }
    }
}
