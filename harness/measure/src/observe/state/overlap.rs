//! Groups with scripts without a barrier whose members keep running: their epochs count while all of them train.

use std::time::Duration;

use collo_store::{AfterMeasured, EpochRecord};

use super::Watch;
use crate::observe::overlapping;
use crate::observe::seat::MemberState;

impl Watch {
    /// Whether the members' measured epochs are those in which all trained: some have no barrier, and none leaves when it is done.
    pub(super) fn overlaps(&self) -> bool {
        self.rules.after_measured == AfterMeasured::KeepRunning && self.seats.iter().any(|seat| !seat.barrier)
    }

    /// Whether scripts without a barrier train on until they have measured enough beside all others.
    pub(super) fn waits_for_overlap(&self, now_ns: u64, at_ns: u64) -> bool {
        self.overlaps()
            && self.stop_ns.is_none()
            && self.kill_ns.is_none()
            && self.seats.iter().all(|s| s.ended.is_none())
            && !overlapping::is_enough(&self.seats, self.rules.goal)
            && now_ns.saturating_sub(at_ns) < overlapping::patience_ns(&self.seats, self.rules.goal)
            && Duration::from_nanos(now_ns.saturating_sub(self.counted_from_ns)) < self.rules.timeout
    }

    /// Every epoch of every member, as stored. From now on those of others count as not measured.
    pub fn epochs(&mut self) -> Vec<EpochRecord> {
        if self.overlaps() {
            overlapping::leave_out_others(&mut self.seats, self.rules.goal);
            let measured = self.seats.iter().flat_map(|seat| &seat.epochs).filter(|epoch| epoch.measured);
            self.done_ns = measured.map(|epoch| epoch.end_ns).max().filter(|_| self.done_ns.is_some());
        }
        let of = |(member, seat): (usize, &MemberState)| seat.epochs.iter().map(|e| e.record(member)).collect::<Vec<_>>();
        self.seats.iter().enumerate().flat_map(of).collect()
    }
}
