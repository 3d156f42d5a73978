//! What ends a group from outside its members: a mode that is not in force, a signal, a lost device or observer.

use std::time::Duration;

use collo_store::Outcome;

use super::{Act, Watch};
use crate::observe::limits::GRACE;

impl Watch {
    /// A member differs from what was requested: its group is not measured.
    pub fn refuse(&mut self, reason: String, now_ns: u64) -> Vec<Act> {
        let mut acts = Vec::new();
        self.fail(Outcome::ModeLost { reason });
        self.stop_all(now_ns, &mut acts);
        acts
    }

    /// A stop was requested: members are first told to stop, then killed.
    pub fn interrupt(&mut self, now_ns: u64) -> Vec<Act> {
        let mut acts = Vec::new();
        if self.evidence_pending {
            // All are done, but without evidence the run is not complete, and the members leave before it could be gathered.
            self.blame(Outcome::Interrupted);
        }
        self.fail(Outcome::Interrupted);
        self.rules.grace = GRACE;
        self.stop_all(now_ns, &mut acts);
        acts
    }

    /// The GPU disappeared: no further message of its members is waited for.
    pub fn device_lost(&mut self, reason: String, now_ns: u64) -> Vec<Act> {
        let mut acts = Vec::new();
        self.rules.grace = GRACE;
        if self.outcome.is_none() {
            self.fail(Outcome::DeviceLost { reason });
            self.kill_all(now_ns, &mut acts);
        }
        acts.extend(self.tick(now_ns));
        acts
    }

    /// Nobody watches the members any more, as their cell requires: the run has no number, so it ends. The first failure decides.
    pub fn observer_lost(&mut self, reason: String, now_ns: u64) -> Vec<Act> {
        let mut acts = Vec::new();
        match self.outcome {
            None => {
                self.fail(Outcome::ObserverLost { reason });
                self.stop_all(now_ns, &mut acts);
            }
            // What runs around the members still writes.
            Some(Outcome::Completed) => self.was_unwatched(reason),
            Some(_) => {}
        }
        acts.extend(self.tick(now_ns));
        acts
    }

    /// It turned out afterwards that a complete run was not watched to its end.
    pub fn was_unwatched(&mut self, reason: String) {
        self.blame(Outcome::ObserverLost { reason });
    }

    /// Kill everything immediately.
    pub fn kill(&mut self, now_ns: u64) -> Vec<Act> {
        let mut acts = Vec::new();
        self.fail(Outcome::Interrupted);
        self.kill_all(now_ns, &mut acts);
        acts
    }

    /// Collo itself was suspended for this long and received nothing: it counts towards no limit.
    pub fn excuse(&mut self, stood_still: Duration) {
        let later = |ns: &mut u64| *ns = ns.saturating_add(stood_still.as_nanos() as u64);
        later(&mut self.counted_from_ns);
        [&mut self.stop_ns, &mut self.kill_ns, &mut self.all_done_at_ns].into_iter().flatten().for_each(later);
        self.seats.iter_mut().filter_map(|seat| seat.last_progress_ns.as_mut()).for_each(later);
    }
}
