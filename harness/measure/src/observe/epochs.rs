//! Whether an epoch that a member reports can be true: its times, its index, and its kind. Pure. The lines of foreign scripts are judged
//! where they are read, by `collo_launch::adapter`.
//!
//! Members read the same clock as the harness, `CLOCK_MONOTONIC`, which is one for all processes of a machine and never goes back
//! (clock_gettime(2)). So a time before `go` or after the arrival of its message is wrong without any tolerance.

use collo_launch::protocol::Epoch;
use collo_plan::goal::EpochGoal;

/// Larger numbers of items are not exact in a report.
const MOST_ITEMS: u64 = 1 << 53;
/// The usual mistake, if times are far off.
const CLOCK: &str = "times must be of `time.monotonic_ns()`, not of `time.time_ns()`";

/// The state of a member when it reports an epoch.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    pub member: usize,
    /// How long the experiment wants it to measure.
    pub wanted: EpochGoal,
    /// The earliest possible start: `go`.
    pub since_ns: u64,
    pub now_ns: u64,
    /// Epochs reported before.
    pub before: &'a [Epoch],
}

impl Known<'_> {
    /// Why an epoch cannot be true, if so.
    pub fn impossible(&self, epoch: &Epoch) -> Option<String> {
        let (member, index) = (self.member, epoch.index);
        let next = self.before.len() as u64;
        if u64::from(index) != next {
            return Some(format!("member {member} reports epoch {index}, but epoch {next} comes next"));
        }
        if let Some(said) = self.misnamed(epoch) {
            return Some(said);
        }
        if epoch.start_ns < self.since_ns {
            let early = seconds(self.since_ns - epoch.start_ns);
            return Some(format!("epoch {index} of member {member} begins {early} before `go`: {CLOCK}"));
        }
        if epoch.end_ns > self.now_ns {
            let late = seconds(epoch.end_ns - self.now_ns);
            return Some(format!("epoch {index} of member {member} ends {late} after its report: {CLOCK}"));
        }
        if epoch.end_ns <= epoch.start_ns {
            return Some(format!("epoch {index} of member {member} ends when it begins: nothing was trained in it"));
        }
        if let Some(last) = self.before.last().filter(|last| epoch.start_ns < last.end_ns) {
            let over = seconds(last.end_ns - epoch.start_ns);
            return Some(format!("epoch {index} of member {member} begins {over} before epoch {} ends", last.index));
        }
        if epoch.items == Some(0) {
            return Some(format!("epoch {index} of member {member} has 0 items: nothing was trained in it"));
        }
        if epoch.items.is_some_and(|items| items > MOST_ITEMS) {
            return Some(format!("epoch {index} of member {member} has {} items: an impossible count", epoch.items?));
        }
        None
    }

    /// Why `done` cannot be true, if so.
    pub fn not_done(&self) -> Option<String> {
        let (told, wanted) = (self.measured().count() as u32, self.wanted.measured());
        if self.is_over() {
            return None;
        }
        let member = self.member;
        if told >= wanted {
            let (is, asked) = (seconds(self.measured_ns()), seconds(self.wanted.measure_for_ns));
            return Some(format!("member {member} sends `done` after {is} of measured epochs, at least {asked} are asked for"));
        }
        let epochs = if wanted == 1 { "epoch" } else { "epochs" };
        Some(format!("member {member} sends `done` after {told} of {wanted} measured {epochs}"))
    }

    fn measured(&self) -> impl Iterator<Item = &Epoch> {
        self.before.iter().filter(|e| e.measured)
    }

    /// From the start of its first measured epoch to the end of the last.
    fn measured_ns(&self) -> u64 {
        let ends = self.measured().next().zip(self.measured().last());
        ends.map_or(0, |(first, last)| last.end_ns.saturating_sub(first.start_ns))
    }

    /// True if all of its measured epochs were reported.
    fn is_over(&self) -> bool {
        self.wanted.is_reached(self.measured().count() as u32, 0, self.measured_ns())
    }

    /// What is wrong with its index or kind.
    fn misnamed(&self, epoch: &Epoch) -> Option<String> {
        let first = u32::from(self.wanted.epochs > 1);
        if epoch.measured == (epoch.index >= first && !self.is_over()) {
            return None;
        }
        let called = if epoch.measured { "measured" } else { "unmeasured" };
        let last = first + self.wanted.measured() - 1;
        let asked = match self.wanted.measure_for_ns {
            0 => String::new(),
            ns => format!(", or more of them until {} are measured", seconds(ns)),
        };
        let measured = match first == last {
            true => format!("epoch {first} alone is measured"),
            false => format!("epochs {first} to {last} are measured"),
        };
        Some(format!("member {} reports epoch {} as {called}, but {measured}{asked}", self.member, epoch.index))
    }
}

/// With a useful number of digits.
fn seconds(ns: u64) -> String {
    let s = ns as f64 / 1e9;
    if s < 1e-3 {
        format!("{ns} ns")
    } else if s < 10.0 {
        format!("{s:.3} s")
    } else {
        format!("{s:.0} s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;
    const GO: u64 = 100 * S;

    fn epoch(index: u32, measured: bool, start_ns: u64, end_ns: u64) -> Epoch {
        Epoch { index, measured, items: Some(8), start_ns, end_ns, loss: None }
    }

    fn goal(epochs: u32) -> EpochGoal {
        EpochGoal { epochs, measure_for_ns: 0 }
    }

    /// The error for the last of these, at 110 s, if the first ones are true.
    fn said(epochs: u32, told: &[Epoch]) -> Option<String> {
        said_of(goal(epochs), told)
    }

    fn said_of(wanted: EpochGoal, told: &[Epoch]) -> Option<String> {
        let known = |before| Known { member: 1, wanted, since_ns: GO, now_ns: 110 * S, before };
        let (last, before) = told.split_last().expect("one at least");
        for at in 0..before.len() {
            assert_eq!(known(&before[..at]).impossible(&before[at]), None);
        }
        known(before).impossible(last)
    }

    #[test]
    fn an_epoch_lies_between_go_and_the_moment_at_which_it_is_told() {
        assert_eq!(said(2, &[epoch(0, false, GO, 110 * S)]), None, "at the most");
        let text = |start, end| said(2, &[epoch(0, false, start, end)]).expect("impossible");
        insta::assert_snapshot!(text(0, u64::MAX), @"epoch 0 of member 1 begins 100 s before `go`: times must be of `time.monotonic_ns()`, not of `time.time_ns()`");
        insta::assert_snapshot!(text(GO - 1, GO + S), @"epoch 0 of member 1 begins 1 ns before `go`: times must be of `time.monotonic_ns()`, not of `time.time_ns()`");
        insta::assert_snapshot!(text(1000, 2000), @"epoch 0 of member 1 begins 100 s before `go`: times must be of `time.monotonic_ns()`, not of `time.time_ns()`");
        insta::assert_snapshot!(text(GO, GO + 1_000_000 * S), @"epoch 0 of member 1 ends 999990 s after its report: times must be of `time.monotonic_ns()`, not of `time.time_ns()`");
        insta::assert_snapshot!(text(GO + 10_800 * S, GO + 10_801 * S), @"epoch 0 of member 1 ends 10791 s after its report: times must be of `time.monotonic_ns()`, not of `time.time_ns()`");
        insta::assert_snapshot!(text(GO, GO), @"epoch 0 of member 1 ends when it begins: nothing was trained in it");
        insta::assert_snapshot!(text(GO + 2, GO + 1), @"epoch 0 of member 1 ends when it begins: nothing was trained in it");
    }

    #[test]
    fn epochs_follow_one_another() {
        let warm_up = epoch(0, false, GO, GO + S);
        let then = |next: Epoch| said(3, &[warm_up.clone(), next]);
        assert_eq!(then(epoch(1, true, GO + S, GO + 2 * S)), None, "one may begin where the one before ended");
        insta::assert_snapshot!(then(epoch(1, true, GO + S / 2, GO + 2 * S)).expect("impossible"), @"epoch 1 of member 1 begins 0.500 s before epoch 0 ends");
        insta::assert_snapshot!(then(epoch(0, false, GO + S, GO + 2 * S)).expect("impossible"), @"member 1 reports epoch 0, but epoch 1 comes next");
        insta::assert_snapshot!(then(epoch(2, true, GO + S, GO + 2 * S)).expect("impossible"), @"member 1 reports epoch 2, but epoch 1 comes next");
    }

    #[test]
    fn as_many_epochs_are_measured_as_were_asked_for() {
        let at = |index: u64| (GO + index * S, GO + (index + 1) * S);
        let run = |wanted: u32, measured: &[bool]| {
            let told = |(index, measured): (usize, &bool)| epoch(index as u32, *measured, at(index as u64).0, at(index as u64).1);
            said(wanted, &measured.iter().enumerate().map(told).collect::<Vec<_>>())
        };
        assert_eq!(run(1, &[true]), None);
        assert_eq!(run(3, &[false, true, true, false, false]), None, "those of the tail are not");
        insta::assert_snapshot!(run(1, &[false]).expect("impossible"), @"member 1 reports epoch 0 as unmeasured, but epoch 0 alone is measured");
        insta::assert_snapshot!(run(2, &[true]).expect("impossible"), @"member 1 reports epoch 0 as measured, but epoch 1 alone is measured");
        insta::assert_snapshot!(run(2, &[false, false]).expect("impossible"), @"member 1 reports epoch 1 as unmeasured, but epoch 1 alone is measured");
        insta::assert_snapshot!(run(3, &[false, true, true, true]).expect("impossible"), @"member 1 reports epoch 3 as measured, but epochs 1 to 2 are measured");
    }

    #[test]
    fn done_is_said_when_the_measured_epochs_are_told() {
        let done = |epochs: u32, before: &[Epoch]| {
            let wanted = goal(epochs);
            Known { member: 0, wanted, since_ns: GO, now_ns: 110 * S, before }.not_done()
        };
        let both = [epoch(0, false, GO, GO + S), epoch(1, true, GO + S, GO + 2 * S)];
        assert_eq!(done(2, &both), None);
        assert_eq!(done(1, &[epoch(0, true, GO, GO + S)]), None);
        insta::assert_snapshot!(done(2, &[]).expect("impossible"), @"member 0 sends `done` after 0 of 1 measured epoch");
        insta::assert_snapshot!(done(3, &both).expect("impossible"), @"member 0 sends `done` after 1 of 2 measured epochs");
    }

    #[test]
    fn whole_epochs_are_measured_until_the_time_is_over_and_none_after_it() {
        let wanted = EpochGoal { epochs: 2, measure_for_ns: 2 * S };
        let at = |index: u32, measured| epoch(index, measured, GO + u64::from(index) * S, GO + u64::from(index + 1) * S);
        let all = [at(0, false), at(1, true), at(2, true), at(3, false)];
        assert_eq!(said_of(wanted, &all), None);
        insta::assert_snapshot!(said_of(wanted, &[at(0, false), at(1, true), at(2, false)]).expect("impossible"), @"member 1 reports epoch 2 as unmeasured, but epoch 1 alone is measured, or more of them until 2.000 s are measured");
        assert!(said_of(wanted, &[at(0, false), at(1, true), at(2, true), at(3, true)]).is_some());
        let done = |before: &[Epoch]| Known { member: 0, wanted, since_ns: GO, now_ns: 110 * S, before }.not_done();
        assert_eq!(done(&all), None);
        insta::assert_snapshot!(done(&all[..2]).expect("impossible"), @"member 0 sends `done` after 1.000 s of measured epochs, at least 2.000 s are asked for");
    }

    #[test]
    fn items_are_trained_and_few_enough_to_be_exact() {
        let items = |items| said(1, &[Epoch { items, ..epoch(0, true, GO, GO + S) }]);
        assert_eq!((items(None), items(Some(1)), items(Some(MOST_ITEMS))), (None, None, None));
        insta::assert_snapshot!(items(Some(0)).expect("impossible"), @"epoch 0 of member 1 has 0 items: nothing was trained in it");
        insta::assert_snapshot!(items(Some(u64::MAX)).expect("impossible"), @"epoch 0 of member 1 has 18446744073709551615 items: an impossible count");
    }
}
