//! The life of a group, as a state machine over ordinary values: signals and times go in, acts come out.
//!
//! It knows the protocol and the experiment's rules; it does not know processes, files or clocks, so every ending can be tested
//! without one.

mod outside;
mod overlap;

use std::time::Duration;

use collo_store::{AfterMeasured, Outcome, Timeline};
use serde_json::Value;

use super::ending;
use super::epochs::Known;
use super::limits::{GRACE, Rules, Standing};
use super::seat::{MemberState, Phase, Traces};
use super::turns::{self, WarmUps};
use collo_launch::protocol::{self, Command, MemberEvent};
use collo_launch::{Ended, Live, Signal};

/// How long to wait after `kill` for a process stuck in the kernel (a dead disk, a dead driver).
const TIMEOUT: Duration = Duration::from_secs(30);

/// What to do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    Send(usize, Command),
    Kill(usize),
    /// All members are ready and `go` was sent: the window opens.
    Opened,
    /// The moment to gather evidence: when the first member has finished while the others keep training, or, if finished members
    /// exit, when all have completed one epoch.
    FirstDone,
    /// Every member has finished and is still alive: the moment to read what would have disturbed them, and then to
    /// [`Watch::stop`].
    AllDone,
}

/// A group from launch to end.
pub struct Watch {
    rules: Rules,
    pub seats: Vec<MemberState>,
    launched_ns: u64,
    /// The start of the limits of set-up and of the whole run: the launch, shifted by the time that collo itself was suspended.
    counted_from_ns: u64,
    ready_ns: Option<u64>,
    go_ns: Option<u64>,
    done_ns: Option<u64>,
    /// When the last member had finished.
    all_done_at_ns: Option<u64>,
    warm_ups: WarmUps,
    outcome: Option<Outcome>,
    /// The start of the limit of leaving: the order to stop, shifted by the time that collo itself was suspended.
    stop_ns: Option<u64>,
    /// When the order to stop was sent.
    stop_sent_ns: Option<u64>,
    kill_ns: Option<u64>,
    evidence_asked: bool,
    /// The evidence was requested and has not arrived: until it has, no member it covers is ended.
    evidence_pending: bool,
    /// Foreign members that finished meanwhile.
    to_end: Vec<usize>,
}

impl Watch {
    /// `barrier` says for each member whether it speaks the protocol.
    pub fn begin(rules: Rules, barrier: &[bool], launched_ns: u64) -> Self {
        Watch {
            rules,
            seats: barrier.iter().map(|&barrier| MemberState::empty(barrier)).collect(),
            launched_ns,
            counted_from_ns: launched_ns,
            ready_ns: None,
            go_ns: None,
            done_ns: None,
            all_done_at_ns: None,
            warm_ups: WarmUps::default(),
            outcome: None,
            stop_ns: None,
            stop_sent_ns: None,
            kill_ns: None,
            evidence_asked: false,
            evidence_pending: false,
            to_end: Vec::new(),
        }
    }

    /// True when no member is alive.
    pub fn over(&self) -> bool {
        self.seats.iter().all(|s| s.ended.is_some())
    }

    /// True between `go` and the order to stop.
    pub fn window_open(&self) -> bool {
        self.go_ns.is_some() && self.stop_ns.is_none() && self.outcome.is_none()
    }

    /// From launch until all members were ready.
    pub fn ready_after_s(&self) -> Option<f64> {
        self.ready_ns.map(|ns| ns.saturating_sub(self.launched_ns) as f64 / 1e9)
    }

    /// Spread of the members' starts so far, nanoseconds; `None` before all have started, and where one has no barrier: when a script
    /// begins to train is not known, and its epochs count only while all train.
    pub fn skew_ns(&self) -> Option<u64> {
        if self.seats.iter().any(|seat| !seat.barrier) {
            return None;
        }
        let starts: Option<Vec<u64>> = self.seats.iter().map(|s| s.training_start_ns).collect();
        let starts = starts?;
        Some(starts.iter().max()? - starts.iter().min()?)
    }

    /// Handle an event of a member.
    pub fn on(&mut self, member: usize, signal: Signal, now_ns: u64, traces: Traces) -> Vec<Act> {
        let mut acts = Vec::new();
        match signal {
            Signal::Started { pid } => {
                self.seats[member].pid = Some(pid);
                if !self.seats[member].barrier {
                    // A foreign script trains from the moment it was started, as far as anybody can tell.
                    self.seats[member].phase = Phase::Measure;
                    self.seats[member].last_progress_ns = Some(now_ns);
                }
                self.go_if_ready(now_ns, &mut acts);
            }
            Signal::Said { event, raw } => match turns::out_of_turn(member, &self.seats[member], &event, self.go_ns.is_some()) {
                None => self.said(member, event, raw, now_ns, &mut acts),
                Some(message) => self.impossible(member, message, now_ns, &mut acts),
            },
            Signal::Garbage { reason } => self.impossible(member, reason, now_ns, &mut acts),
            Signal::Ended(ended) => self.ended(member, ended, now_ns, traces, &mut acts),
        }
        acts
    }

    fn said(&mut self, member: usize, event: MemberEvent, raw: Value, now_ns: u64, acts: &mut Vec<Act>) {
        let seat = &mut self.seats[member];
        match event {
            MemberEvent::Hello(hello) => {
                seat.hello = Some(*hello);
                seat.hello_raw = Some(raw);
                seat.phase = seat.phase.max(Phase::SetUp);
                self.warm_ups.wait(member);
                self.next_warm_up(acts);
            }
            MemberEvent::Ready => {
                seat.ready_ns = Some(now_ns);
                seat.phase = seat.phase.max(Phase::Ready);
                self.warm_ups.leave(member);
                self.next_warm_up(acts);
                self.go_if_ready(now_ns, acts);
            }
            MemberEvent::Epoch(epoch) => {
                // Lines are judged where they are read.
                if self.seats[member].barrier
                    && let Some(message) = self.known(member, now_ns).impossible(&epoch)
                {
                    self.impossible(member, message, now_ns, acts);
                    return;
                }
                let seat = &mut self.seats[member];
                seat.shortfall = None;
                // Whatever it said of an error, it got over it.
                seat.told_error = None;
                seat.phase = seat.phase.max(Phase::Measure);
                seat.last_progress_ns = Some(now_ns);
                // The first epoch of a script may begin with its launch: its imports are no training.
                let begun_ns = if seat.barrier || epoch.measured { epoch.start_ns } else { epoch.end_ns };
                seat.training_start_ns.get_or_insert(begun_ns);
                seat.epochs.push(epoch);
                self.go_if_ready(now_ns, acts);
                let seat = &self.seats[member];
                if seat.done {
                    self.stop_if_all_done(now_ns, acts);
                }
                // The evidence is gathered while all are there.
                let trains = |s: &MemberState| !s.epochs.is_empty() && s.ended.is_none();
                if self.may_leave()
                    && self.rules.goal.epochs > 1
                    && self.seats.iter().all(trains)
                    && self.stop_ns.is_none()
                    && !self.evidence_asked
                {
                    self.ask_for_evidence(acts);
                }
            }
            MemberEvent::Memory(peaks) => seat.keep(peaks),
            MemberEvent::Features(features) => seat.features = Some(*features),
            MemberEvent::Capacity { requests_per_s } => {
                let kept = seat.keep_capacity(member, requests_per_s);
                self.unless_impossible(member, kept, now_ns, acts);
            }
            MemberEvent::Requests(requests) => {
                let kept = seat.keep_requests(member, &requests, self.go_ns, now_ns).map(|answered| {
                    if answered {
                        // An epoch of it is as long as its settings say, however well it gets on.
                        seat.last_progress_ns = Some(now_ns);
                    }
                });
                self.unless_impossible(member, kept, now_ns, acts);
            }
            MemberEvent::Error(told) if !seat.barrier && told.kind == protocol::OUTPUT => {
                self.impossible(member, told.message, now_ns, acts);
            }
            MemberEvent::Error(told) => seat.told_error = Some(told),
            MemberEvent::Shortfall(shortfall) => seat.shortfall = Some(shortfall).filter(|_| !seat.barrier),
            MemberEvent::Done => match self.known(member, now_ns).not_done().filter(|_| self.seats[member].barrier) {
                None => self.done(member, now_ns, acts),
                Some(message) => self.impossible(member, message, now_ns, acts),
            },
            // A process of its own has an exit status instead.
            MemberEvent::Left { .. } | MemberEvent::Unknown => {}
        }
    }

    /// What a member's epochs are checked against; it sends none before `go`.
    fn known(&self, member: usize, now_ns: u64) -> Known<'_> {
        let since_ns = self.go_ns.unwrap_or(self.launched_ns);
        Known { member, wanted: self.rules.goal, since_ns, now_ns, before: &self.seats[member].epochs }
    }

    fn unless_impossible(&mut self, member: usize, kept: Result<(), String>, now_ns: u64, acts: &mut Vec<Act>) {
        if let Err(message) = kept {
            self.impossible(member, message, now_ns, acts);
        }
    }

    /// A member reported something impossible: none of its further messages can be trusted.
    fn impossible(&mut self, member: usize, message: String, now_ns: u64, acts: &mut Vec<Act>) {
        self.blame(Outcome::ProtocolError { member: member as u32, message });
        self.kill_all(now_ns, acts);
    }

    fn next_warm_up(&mut self, acts: &mut Vec<Act>) {
        // Whoever is about to be ended need not warm up.
        if self.outcome.is_none()
            && let Some(member) = self.warm_ups.next(&self.seats)
        {
            self.seats[member].phase = self.seats[member].phase.max(Phase::WarmUp);
            acts.push(Act::Send(member, Command::WarmUp));
        }
    }

    fn go_if_ready(&mut self, now_ns: u64, acts: &mut Vec<Act>) {
        let waits_for_scripts = self.rules.waits_for_scripts(&self.seats);
        if self.go_ns.is_some() || self.outcome.is_some() || !self.seats.iter().all(|s| s.is_ready(waits_for_scripts)) {
            return;
        }
        self.ready_ns = Some(now_ns);
        self.go_ns = Some(now_ns);
        // First: what is read as the members begin is read before they do.
        acts.push(Act::Opened);
        for (member, seat) in self.seats.iter_mut().enumerate() {
            seat.last_progress_ns = Some(now_ns);
            if seat.barrier {
                seat.phase = Phase::Measure;
                acts.push(Act::Send(member, Command::Go { goal: self.rules.goal, after_measured: self.rules.after_measured }));
            }
        }
    }

    fn done(&mut self, member: usize, now_ns: u64, acts: &mut Vec<Act>) {
        let seat = &mut self.seats[member];
        seat.done = true;
        seat.phase = seat.phase.max(Phase::Tail);
        let last_end_ns = seat.epochs.iter().filter(|e| e.measured).map(|e| e.end_ns).max();
        self.done_ns = self.done_ns.max(last_end_ns);
        // While a neighbour of a script still imports its libraries there is nothing to see of it.
        let is_there = |s: &MemberState| s.ended.is_some() || !s.epochs.is_empty();
        let all_there = !self.overlaps() || self.seats.iter().all(is_there);
        if !self.evidence_asked && self.stop_ns.is_none() && all_there {
            self.ask_for_evidence(acts);
        }
        let seat = &mut self.seats[member];
        if self.rules.after_measured == AfterMeasured::Exit {
            seat.training_end_ns = last_end_ns.or(Some(now_ns));
            if !seat.barrier {
                // It would train on, and cannot be asked to leave.
                self.to_end.push(member);
                self.end_the_done(acts);
            }
        }
        self.stop_if_all_done(now_ns, acts);
    }

    /// Whether a member that has finished may leave while others measure: as `exit` asks for, or a script without a barrier by itself.
    pub fn may_leave(&self) -> bool {
        self.rules.after_measured == AfterMeasured::Exit || self.seats.iter().any(|seat| !seat.barrier)
    }

    fn ask_for_evidence(&mut self, acts: &mut Vec<Act>) {
        (self.evidence_asked, self.evidence_pending) = (true, true);
        acts.push(Act::FirstDone);
    }

    /// The evidence has arrived, or will not: the members it covers may be ended from now on.
    pub fn evidence_is_in(&mut self, now_ns: u64) -> Vec<Act> {
        let mut acts = Vec::new();
        self.evidence_pending = false;
        self.end_the_done(&mut acts);
        if self.stop_ns.is_none() && self.kill_ns.is_none() {
            self.stop_if_all_done(now_ns, &mut acts);
        }
        acts
    }

    fn end_the_done(&mut self, acts: &mut Vec<Act>) {
        if self.evidence_pending {
            return;
        }
        for member in std::mem::take(&mut self.to_end) {
            let seat = &mut self.seats[member];
            if seat.ended.is_none() && !std::mem::replace(&mut seat.stopped_by_us, true) {
                acts.push(Act::Kill(member));
            }
        }
    }

    fn stop_if_all_done(&mut self, now_ns: u64, acts: &mut Vec<Act>) {
        // A member that ended before it was done is out of the count only where survivors may finish.
        let finished = |s: &MemberState| s.done || s.ended.is_some();
        if self.seats.iter().all(finished) {
            let at_ns = *self.all_done_at_ns.get_or_insert(now_ns);
            if self.waits_for_overlap(now_ns, at_ns) {
                return;
            }
            // Who was ended before it was done completes nothing.
            if self.seats.iter().all(|s| s.done) {
                self.outcome.get_or_insert(Outcome::Completed);
            }
            if self.evidence_pending && self.seats.iter().any(|s| s.ended.is_none()) {
                return;
            }
            if self.rules.after_measured == AfterMeasured::KeepRunning
                && self.stop_ns.is_none()
                && self.seats.iter().all(|s| s.ended.is_none())
            {
                // What disturbs them now, disturbs no epoch that counts.
                for seat in self.seats.iter_mut().filter(|seat| !seat.barrier) {
                    seat.training_end_ns.get_or_insert(now_ns);
                }
                acts.push(Act::AllDone);
                return;
            }
            self.stop_all(now_ns, acts);
        }
    }

    fn ended(&mut self, member: usize, ended: Ended, now_ns: u64, traces: Traces, acts: &mut Vec<Act>) {
        let stopping = self.stop_ns.is_some() || self.kill_ns.is_some();
        let seat = &mut self.seats[member];
        // A script may write its model for long after its last epoch.
        let until_ns = if seat.barrier { Some(now_ns) } else { seat.epochs.last().map(|epoch| epoch.end_ns) };
        seat.training_end_ns = seat.training_end_ns.or(until_ns.filter(|_| seat.training_start_ns.is_some()));
        let phase = std::mem::replace(&mut seat.phase, Phase::Ended);
        // A script without a barrier may end by itself once it is done.
        let leaves = self.rules.after_measured == AfterMeasured::Exit || !seat.barrier && ended.live == Live::Exited(0);
        let asked = seat.stopped_by_us || stopping || seat.done && leaves;
        // Whether it fails before or after it is told to stop is a matter of chance, once it is done: a failure it is.
        let by_itself = seat.barrier && seat.done && ended.live != Live::Exited(0) && self.kill_ns.is_none();
        // Nobody knows what went on below a supervisor that did not watch, and whoever stopped it may have touched more.
        let unwatched = ended.live == Live::SupervisorHung;
        // It stays until it has received `stop`: whether its end or that order is first is a matter of chance, too.
        let unasked = ended.unheard || ended.at_ns.zip(self.stop_sent_ns).is_some_and(|(at_ns, sent_ns)| at_ns < sent_ns);
        let stays = self.rules.after_measured == AfterMeasured::KeepRunning;
        let early = stays && seat.barrier && seat.done && unasked && ended.live == Live::Exited(0) && self.kill_ns.is_none();
        // The others would train without it.
        let before_go = !seat.barrier && !stopping && self.go_ns.is_none();
        let failed = by_itself || unwatched || early || before_go;
        let expected = asked && !failed;
        seat.log_tail = traces.log_tail.clone();
        seat.ended = Some(ended.clone());
        self.warm_ups.leave(member);
        if !expected {
            let outcome = ending::why(&self.seats[member], member, phase, &ended, traces, self.rules.on_card);
            self.blame(outcome);
            if self.rules.keep_survivors && self.go_ns.is_some() && !unwatched {
                self.stop_if_all_done(now_ns, acts);
            } else {
                self.stop_all(now_ns, acts);
            }
        } else {
            self.stop_if_all_done(now_ns, acts);
        }
    }

    /// The first failure decides.
    fn fail(&mut self, outcome: Outcome) {
        self.outcome.get_or_insert(outcome);
    }

    /// A failure that is a member's own: it counts even if all have finished.
    fn blame(&mut self, outcome: Outcome) {
        self.outcome.take_if(|known| *known == Outcome::Completed);
        self.fail(outcome);
    }

    fn stop_all(&mut self, now_ns: u64, acts: &mut Vec<Act>) {
        if self.stop_ns.is_some() || self.kill_ns.is_some() {
            return;
        }
        (self.stop_ns, self.stop_sent_ns) = (Some(now_ns), Some(now_ns));
        let trained = self.go_ns.is_some();
        for (member, seat) in self.seats.iter_mut().enumerate() {
            if seat.ended.is_some() || std::mem::replace(&mut seat.stopped_by_us, true) {
                continue;
            }
            if seat.training_end_ns.is_none() && trained {
                seat.training_end_ns = Some(now_ns);
            }
            // Before `go` a member waits or computes and does not listen.
            acts.push(if trained && seat.barrier { Act::Send(member, Command::Stop) } else { Act::Kill(member) });
        }
    }

    fn kill_all(&mut self, now_ns: u64, acts: &mut Vec<Act>) {
        self.kill_ns.get_or_insert(now_ns);
        for (member, seat) in self.seats.iter_mut().enumerate().filter(|(_, s)| s.ended.is_none()) {
            seat.stopped_by_us = true;
            acts.push(Act::Kill(member));
        }
    }

    /// All have finished, and the final readings were taken.
    pub fn stop(&mut self, now_ns: u64) -> Vec<Act> {
        let mut acts = Vec::new();
        self.stop_all(now_ns, &mut acts);
        acts
    }

    /// Time has passed.
    pub fn tick(&mut self, now_ns: u64) -> Vec<Act> {
        let mut acts = Vec::new();
        let since = |then: u64| Duration::from_nanos(now_ns.saturating_sub(then));
        if let Some(kill_ns) = self.kill_ns {
            if since(kill_ns) > TIMEOUT {
                // The kernel does not let go of it; the run must still come to an end.
                for seat in self.seats.iter_mut().filter(|s| s.ended.is_none()) {
                    let live = Live::NotStarted("it could not be killed: stuck in the kernel".into());
                    seat.ended = Some(Ended::of(live));
                }
            }
        } else if let Some(stop_ns) = self.stop_ns {
            let finished = matches!(self.outcome, None | Some(Outcome::Completed));
            let grace = if finished { self.rules.grace } else { GRACE };
            if since(stop_ns) > grace {
                self.kill_all(now_ns, &mut acts);
            }
        } else {
            let standing = Standing {
                seats: &self.seats,
                warming: self.warm_ups.whose(),
                went: self.go_ns.is_some(),
                from_ns: self.counted_from_ns,
            };
            if self.all_done_at_ns.is_some() {
                self.stop_if_all_done(now_ns, &mut acts);
            } else if let Some(outcome) = standing.overdue(&self.rules, now_ns) {
                self.fail(outcome);
                self.stop_all(now_ns, &mut acts);
            }
        }
        acts
    }

    /// The outcome, once it is over.
    pub fn outcome(&self) -> Outcome {
        self.outcome.clone().unwrap_or(Outcome::Interrupted)
    }

    /// The moments of the run; `ended_ns` is when nothing was left.
    pub fn timeline(&self, ended_ns: u64) -> Timeline {
        Timeline { launched_ns: self.launched_ns, ready_ns: self.ready_ns, go_ns: self.go_ns, done_ns: self.done_ns, ended_ns }
    }
}
