//! Epochs of scripts without a barrier that count where members keep running. Pure.
//!
//! Such a script starts when it likes and measures until it is ended, so some of its epochs lie beside the set-up of its neighbours.
//! In: the states of all members. Out: whether a member has measured enough while all trained, and which of its epochs are measured.

use collo_launch::protocol::Epoch;
use collo_plan::goal::EpochGoal;

use super::seat::MemberState;

/// The start of training of the last member that began; `None` until each has an epoch.
fn all_train_from_ns(seats: &[MemberState]) -> Option<u64> {
    let starts: Option<Vec<u64>> = seats.iter().map(|seat| seat.training_start_ns).collect();
    starts?.into_iter().max()
}

fn inside(seat: &MemberState, from_ns: u64, until_ns: u64) -> impl Iterator<Item = &Epoch> {
    seat.epochs.iter().filter(move |e| e.measured && e.start_ns >= from_ns && e.end_ns <= until_ns)
}

/// Whether every member that has no barrier, and lives, has measured as much as is asked for while all trained.
pub fn is_enough(seats: &[MemberState], goal: EpochGoal) -> bool {
    let Some(from_ns) = all_train_from_ns(seats) else { return true };
    let of = |seat: &MemberState| {
        let count = inside(seat, from_ns, u64::MAX).count() as u32;
        let ends = inside(seat, from_ns, u64::MAX).next().zip(inside(seat, from_ns, u64::MAX).last());
        ends.is_some_and(|(first, last)| goal.is_reached(count, first.start_ns, last.end_ns))
    };
    seats.iter().filter(|seat| !seat.barrier && seat.ended.is_none()).all(of)
}

/// How long is waited for that after all are finished, nanoseconds: twice the longest epoch, and the time that is to be measured.
pub fn patience_ns(seats: &[MemberState], goal: EpochGoal) -> u64 {
    let lengths = seats.iter().flat_map(|seat| &seat.epochs).map(|e| e.end_ns.saturating_sub(e.start_ns));
    goal.measure_for_ns.saturating_add(lengths.max().unwrap_or(0).saturating_mul(2))
}

/// Leave out, as not measured, the epochs of members without a barrier in which not all trained, unless none is left.
pub fn leave_out_others(seats: &mut [MemberState]) {
    let Some(from_ns) = all_train_from_ns(seats) else { return };
    let until_ns = seats.iter().filter_map(|seat| seat.training_end_ns).min().unwrap_or(u64::MAX);
    for seat in seats.iter_mut().filter(|seat| !seat.barrier) {
        if inside(seat, from_ns, until_ns).next().is_none() {
            continue;
        }
        for epoch in &mut seat.epochs {
            epoch.measured &= epoch.start_ns >= from_ns && epoch.end_ns <= until_ns;
        }
    }
}
