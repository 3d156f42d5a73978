//! Epochs that count in a group with scripts without a barrier whose members keep running. Pure.
//!
//! Such a script starts when it likes and measures until it is ended, or ends by itself, so some epochs lie beside the set-up of a
//! neighbour, or beside nothing. In: the states of all members. Out: whether all have measured enough while all trained, and which
//! of their epochs are measured.

use collo_launch::protocol::Epoch;
use collo_plan::goal::EpochGoal;

use super::seat::MemberState;

/// An epoch counts if at most this part of it, one in so many, lies outside the time in which all trained.
const OUTSIDE: u64 = 50;

/// The start of training of the last member that began; `None` until each has an epoch.
fn all_train_from_ns(seats: &[MemberState]) -> Option<u64> {
    let starts: Option<Vec<u64>> = seats.iter().map(|seat| seat.training_start_ns).collect();
    starts?.into_iter().max()
}

fn is_inside(epoch: &Epoch, from_ns: u64, until_ns: u64) -> bool {
    let outside_ns = from_ns.saturating_sub(epoch.start_ns) + epoch.end_ns.saturating_sub(until_ns);
    epoch.measured && outside_ns.saturating_mul(OUTSIDE) <= epoch.end_ns.saturating_sub(epoch.start_ns)
}

/// Whether every member that has no barrier, and lives, has measured as much as is asked for while all trained.
pub fn is_enough(seats: &[MemberState], goal: EpochGoal) -> bool {
    let Some(from_ns) = all_train_from_ns(seats) else { return true };
    let has_enough = |seat: &MemberState| {
        let inside: Vec<&Epoch> = seat.epochs.iter().filter(|epoch| is_inside(epoch, from_ns, u64::MAX)).collect();
        let ends = inside.first().zip(inside.last());
        ends.is_some_and(|(first, last)| goal.is_reached(inside.len() as u32, first.start_ns, last.end_ns))
    };
    seats.iter().filter(|seat| !seat.barrier && seat.ended.is_none()).all(has_enough)
}

/// How long is waited for that after all are finished, nanoseconds: the longest epoch as often as epochs are measured and once
/// more, and the time that is to be measured.
pub fn patience_ns(seats: &[MemberState], goal: EpochGoal) -> u64 {
    let lengths = seats.iter().flat_map(|seat| &seat.epochs).map(|e| e.end_ns.saturating_sub(e.start_ns));
    let epochs_ns = lengths.max().unwrap_or(0).saturating_mul(u64::from(goal.measured()) + 1);
    goal.measure_for_ns.saturating_add(epochs_ns)
}

/// Leave out, as not measured, epochs in which not all trained, and those beyond what is asked for.
pub fn leave_out_others(seats: &mut [MemberState], goal: EpochGoal) {
    let Some(from_ns) = all_train_from_ns(seats) else { return };
    let until_ns = seats.iter().filter_map(|seat| seat.training_end_ns).min().unwrap_or(u64::MAX);
    for seat in seats {
        let (mut count, mut first_ns) = (0, None);
        let mut is_over = false;
        for epoch in &mut seat.epochs {
            epoch.measured = is_inside(epoch, from_ns, until_ns) && !is_over;
            if epoch.measured {
                count += 1;
                is_over = goal.is_reached(count, *first_ns.get_or_insert(epoch.start_ns), epoch.end_ns);
            }
        }
    }
}
