//! The rules of a run, and its time limits: which member is overdue, and in which phase. Pure.

use std::time::Duration;

use collo_store::{AfterMeasured, Outcome};

use super::ending::as_it_reported;
use super::seat::{MemberState, Phase};
use collo_plan::goal::EpochGoal;

/// Members that are asked to end have this long before they are killed.
pub const GRACE: Duration = Duration::from_secs(5);

/// The experiment's settings for one run.
#[derive(Debug, Clone, PartialEq)]
pub struct Rules {
    pub goal: EpochGoal,
    pub after_measured: AfterMeasured,
    pub set_up_timeout: Duration,
    /// The longest that an epoch may take.
    pub stall_timeout: Duration,
    /// For the whole run.
    pub timeout: Duration,
    /// For members that did all they were to do, and for what runs around them, to end before they are killed;
    /// less once somebody wants it to end at once.
    pub grace: Duration,
    pub keep_survivors: bool,
    /// The members compute on a GPU, which has memory of its own.
    pub on_card: bool,
}

impl Rules {
    /// Whether `go` waits until each member without a barrier trains: members with one would measure beside its imports.
    pub fn waits_for_scripts(&self, seats: &[MemberState]) -> bool {
        self.after_measured == AfterMeasured::KeepRunning && seats.iter().any(|seat| seat.barrier)
    }
}

/// The state of a group.
pub struct Standing<'a> {
    pub seats: &'a [MemberState],
    /// The member whose turn it is to warm up.
    pub warming: Option<usize>,
    /// `go` was sent.
    pub went: bool,
    /// The limits of set-up and of the whole run count from here.
    pub from_ns: u64,
}

impl Standing<'_> {
    /// What is overdue by now, if anything.
    pub fn overdue(&self, rules: &Rules, now_ns: u64) -> Option<Outcome> {
        let since = |then: u64| Duration::from_nanos(now_ns.saturating_sub(then));
        let timed_out = |member: usize, phase: &str, limit: Duration, what: &str| Outcome::TimedOut {
            member: member as u32,
            phase: phase.into(),
            message: format!("{what} for {} s", limit.as_secs_f64()) + &self.seats[member].lacks(),
        };
        if !self.went {
            let waits_for_scripts = rules.waits_for_scripts(self.seats);
            // A script is ready when its first epoch is over.
            let limit = |s: &MemberState| rules.set_up_timeout + if s.barrier { Duration::ZERO } else { rules.stall_timeout };
            let waits = |s: &MemberState| !s.is_ready(waits_for_scripts) && s.ended.is_none() && since(self.from_ns) > limit(s);
            // The others may only be waiting: for the hello of whoever says nothing, or for their turn.
            let holds_up = |(member, s): &(usize, &MemberState)| match s.phase {
                Phase::Start => 0,
                _ if self.warming == Some(*member) => 1,
                _ => 2,
            };
            let waiting = self.seats.iter().enumerate().filter(|(_, s)| waits(s));
            if let Some((member, seat)) = waiting.min_by_key(holds_up) {
                if let Some(outcome) = as_it_reported(seat, member, seat.phase, rules.on_card) {
                    return Some(outcome);
                }
                let limit = limit(seat);
                // One that never said hello may be in set-up or may not speak the protocol at all: nobody can tell.
                return Some(match seat.phase {
                    _ if !seat.barrier => timed_out(member, "set-up", limit, "finished no epoch"),
                    Phase::Start => timed_out(member, "set-up", limit, "sent nothing"),
                    phase => timed_out(member, phase.as_str(), limit, "was not ready"),
                });
            }
        }
        for (member, seat) in self.seats.iter().enumerate().filter(|(_, s)| !s.done && s.ended.is_none()) {
            if self.went && seat.last_progress_ns.is_some_and(|t| since(t) > rules.stall_timeout) {
                if let Some(outcome) = as_it_reported(seat, member, seat.phase, rules.on_card) {
                    return Some(outcome);
                }
                let what = if seat.serving().is_some() { "answered no request" } else { "finished no epoch" };
                return Some(timed_out(member, "measure", rules.stall_timeout, what));
            }
        }
        if since(self.from_ns) > rules.timeout {
            let slowest = |(_, s): &(usize, &MemberState)| (s.ended.is_some(), s.done, s.epochs.len());
            let (member, _) = self.seats.iter().enumerate().min_by_key(slowest)?;
            return Some(timed_out(member, "total", rules.timeout, "was not finished"));
        }
        None
    }
}
