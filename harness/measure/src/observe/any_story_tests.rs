//! Whatever members say, and whenever: a watch does not panic, and no run is complete with an impossible epoch.

use std::cell::Cell;
use std::time::Duration;

use collo_store::{AfterMeasured, Outcome};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use super::limits::{GRACE, Rules};
use super::seat::Traces;
use super::state::{Act, Watch};
use collo_launch::protocol::parse;
use collo_launch::{Ended, Live, Signal};
use collo_plan::goal::EpochGoal;

const LAUNCHED_NS: u64 = 1_000_000_000_000;
const MS: i64 = 1_000_000;

/// The next event of one member.
#[derive(Debug, Clone)]
enum Step {
    /// An honest member's next message.
    Honest,
    /// An epoch that deviates from an honest one: index, measured, begin and end in milliseconds.
    Epoch(i64, bool, i64, i64),
    Says(&'static str),
    Requests(i64),
    Ends(i32),
    Garbage,
    Time(u64),
    Excuse(u64),
    Evidence,
    Stop,
    Interrupt,
    Kill,
}

fn step() -> impl Strategy<Value = Step> {
    let words = ["hello", "ready", "done", "error", "memory", "features", "capacity", "aurora"];
    prop_oneof![
        300 => Just(Step::Honest),
        8 => (-1i64..3, any::<bool>(), -2000i64..2000, -2000i64..2000).prop_map(|(i, m, s, e)| Step::Epoch(i, m, s, e)),
        6 => prop::sample::select(words.to_vec()).prop_map(Step::Says),
        2 => (-2000i64..2000).prop_map(Step::Requests),
        2 => (0i32..3).prop_map(Step::Ends),
        1 => Just(Step::Garbage),
        30 => (0u64..3000).prop_map(Step::Time),
        2 => (0u64..100_000).prop_map(Step::Excuse),
        20 => Just(Step::Evidence),
        2 => Just(Step::Stop),
        1 => Just(Step::Interrupt),
        1 => Just(Step::Kill),
    ]
}

/// A group as its members see it.
struct AnyStory {
    watch: Watch,
    now_ns: u64,
    last_end_ns: Vec<u64>,
    told_to_go: bool,
    keeps_running: bool,
}

impl AnyStory {
    fn acts(&mut self, acts: Vec<Act>) {
        self.told_to_go |= acts.contains(&Act::Opened);
    }

    fn hears(&mut self, member: usize, signal: Signal) {
        let acts = self.watch.on(member, signal, self.now_ns, Traces::default());
        self.acts(acts);
    }

    fn says(&mut self, member: usize, message: Value) {
        self.now_ns += 1000;
        match parse(message.to_string().as_bytes()) {
            Ok((event, raw)) => self.hears(member, Signal::Said { event, raw }),
            Err(reason) => self.hears(member, Signal::Garbage { reason }),
        }
    }

    fn epoch(&mut self, member: usize, off: (i64, bool, i64, i64), wanted: u32) {
        let next = self.watch.seats[member].epochs.len() as i64;
        // A script that keeps running measures on.
        let goes_on = !self.watch.seats[member].barrier && self.keeps_running;
        let measured = (goes_on || next < i64::from(wanted)) && (next > 0 || wanted == 1);
        let begin = self.last_end_ns[member].max(self.watch.timeline(0).go_ns.unwrap_or(LAUNCHED_NS)) as i64;
        self.now_ns = self.now_ns.max(begin as u64) + 10 * MS as u64;
        let (start, end) = (begin + off.2 * MS, self.now_ns as i64 + off.3 * MS);
        self.last_end_ns[member] = self.now_ns;
        self.says(member, json!({"event": "epoch", "index": next + off.0, "measured": measured ^ off.1, "items": 8, "start_ns": start, "end_ns": end, "loss": null}));
    }

    fn honest(&mut self, member: usize, wanted: u32) {
        let seat = &self.watch.seats[member];
        if seat.ended.is_some() {
            return;
        }
        let told = seat.epochs.len() as u32;
        match () {
            () if seat.pid.is_none() => self.hears(member, Signal::Started { pid: 7 }),
            () if !seat.barrier || self.told_to_go => match told == wanted.max(1) && !seat.done {
                true => self.says(member, json!({"event": "done"})),
                false => self.epoch(member, (0, false, 0, 0), wanted),
            },
            () if seat.hello.is_none() => {
                self.says(member, json!({"event": "hello", "protocol": 1, "pid": 7, "device": "cpu"}));
            }
            () if seat.ready_ns.is_none() => self.says(member, json!({"event": "ready"})),
            () => {}
        }
    }

    fn goes_on(&mut self, member: usize, step: &Step, wanted: u32) {
        // The lines of a foreign script are judged by its supervisor, which speaks for it.
        if !self.watch.seats[member].barrier && matches!(step, Step::Epoch(..) | Step::Says("done")) {
            return self.honest(member, wanted);
        }
        let acts = match step {
            Step::Honest => return self.honest(member, wanted),
            Step::Epoch(index, measured, start, end) => return self.epoch(member, (*index, *measured, *start, *end), wanted),
            Step::Says("hello") => return self.says(member, json!({"event": "hello", "protocol": 1, "pid": 7, "device": "cpu"})),
            Step::Says("error") => return self.says(member, json!({"event": "error", "kind": "output", "message": "x"})),
            Step::Says("capacity") => return self.says(member, json!({"event": "capacity", "requests_per_s": 2.0})),
            Step::Says(word) => return self.says(member, json!({"event": word})),
            Step::Requests(off) => {
                let at = self.now_ns as i64 + off * MS;
                return self.says(member, json!({"event": "requests", "arrival_ns": [at], "start_ns": [at], "end_ns": [null]}));
            }
            Step::Garbage => return self.hears(member, Signal::Garbage { reason: "no word".into() }),
            Step::Ends(code) => {
                let ended = Ended::of(Live::Exited(*code));
                return if self.watch.seats[member].ended.is_none() {
                    self.hears(member, Signal::Ended(ended))
                };
            }
            Step::Time(ms) => {
                self.now_ns += ms * MS as u64;
                self.watch.tick(self.now_ns)
            }
            Step::Excuse(ms) => {
                self.watch.excuse(Duration::from_millis(*ms));
                Vec::new()
            }
            Step::Evidence => self.watch.evidence_is_in(self.now_ns),
            Step::Stop => self.watch.stop(self.now_ns),
            Step::Interrupt => self.watch.interrupt(self.now_ns),
            Step::Kill => self.watch.kill(self.now_ns),
        };
        self.acts(acts);
    }
}

/// Every stored epoch is possible.
fn every_epoch_is_possible(story: &AnyStory, barrier: &[bool], wanted: u32) -> Result<(), TestCaseError> {
    let go_ns = story.watch.timeline(0).go_ns;
    for (seat, &barrier) in story.watch.seats.iter().zip(barrier) {
        let since_ns = if barrier { go_ns.unwrap_or(u64::MAX) } else { LAUNCHED_NS };
        for (at, epoch) in seat.epochs.iter().enumerate() {
            prop_assert_eq!(epoch.index as usize, at);
            prop_assert!(
                since_ns <= epoch.start_ns && epoch.start_ns < epoch.end_ns && epoch.end_ns <= story.now_ns,
                "{:?}",
                epoch
            );
            prop_assert!(at == 0 || !barrier || seat.epochs[at - 1].end_ns <= epoch.start_ns, "{:?}", seat.epochs);
        }
        if story.watch.outcome() == Outcome::Completed {
            let measured = seat.epochs.iter().filter(|e| e.measured).count() as u32;
            let asked = if wanted == 1 { 1 } else { wanted - 1 };
            prop_assert!(measured == asked || measured > asked && !barrier && story.keeps_running);
            prop_assert!(wanted == 1 || !seat.epochs[0].measured);
        }
    }
    Ok(())
}

/// At the end, epochs of a group with scripts that keep running count only while all train, and no more of them than are wanted.
fn measured_epochs_are_beside_all_others(story: &mut AnyStory, barrier: &[bool], wanted: u32) -> Result<(), TestCaseError> {
    let stored = story.watch.epochs();
    if story.watch.outcome() != Outcome::Completed || !story.keeps_running || barrier.iter().all(|&barrier| barrier) {
        return Ok(());
    }
    let seats = &story.watch.seats;
    let from_ns = seats.iter().filter_map(|seat| seat.training_start_ns).max().unwrap_or(0);
    let until_ns = seats.iter().filter_map(|seat| seat.training_end_ns).min().unwrap_or(u64::MAX);
    for epoch in stored.iter().filter(|epoch| epoch.measured) {
        let (length_ns, begun_ns, ended_ns) =
            (epoch.end_ns - epoch.start_ns, epoch.start_ns.max(from_ns), epoch.end_ns.min(until_ns));
        prop_assert!(ended_ns.saturating_sub(begun_ns) * 100 >= length_ns * 98, "{:?} of {}..{}", epoch, from_ns, until_ns);
    }
    for member in 0..barrier.len() as u32 {
        let count = stored.iter().filter(|epoch| epoch.member == member && epoch.measured).count() as u32;
        prop_assert!(count <= wanted.saturating_sub(1).max(1), "{} epochs of member {}", count, member);
    }
    Ok(())
}

#[test]
fn whatever_members_say_no_run_is_complete_with_an_epoch_that_cannot_be() {
    let steps = prop::collection::vec((0usize..3, step()), 1..90);
    let told = (prop::collection::vec(prop::bool::weighted(0.8), 1..4), 1u32..4, any::<bool>(), any::<bool>(), steps);
    let (completed, refused) = (Cell::new(0), Cell::new(0));
    let mut runner = TestRunner::new(Config { cases: 800, failure_persistence: None, ..Config::default() });
    let result = runner.run(&told, |(barrier, wanted, keeps_running, keep_survivors, steps)| {
        let rules = Rules {
            goal: EpochGoal { epochs: wanted, measure_for_ns: 0 },
            after_measured: if keeps_running { AfterMeasured::KeepRunning } else { AfterMeasured::Exit },
            set_up_timeout: Duration::from_secs(60),
            stall_timeout: Duration::from_secs(20),
            timeout: Duration::from_secs(300),
            grace: GRACE,
            keep_survivors,
            on_card: false,
        };
        let watch = Watch::begin(rules, &barrier, LAUNCHED_NS);
        let last_end_ns = vec![LAUNCHED_NS; barrier.len()];
        let mut story = AnyStory { watch, now_ns: LAUNCHED_NS, last_end_ns, told_to_go: false, keeps_running };
        for (member, step) in steps {
            story.goes_on(member % barrier.len(), &step, wanted);
            every_epoch_is_possible(&story, &barrier, wanted)?;
        }
        measured_epochs_are_beside_all_others(&mut story, &barrier, wanted)?;
        let count = |of: &Cell<u32>| of.set(of.get() + 1);
        match story.watch.outcome() {
            Outcome::Completed => count(&completed),
            Outcome::ProtocolError { .. } => count(&refused),
            _ => {}
        }
        Ok(())
    });
    result.unwrap_or_else(|e| panic!("{e}"));
    assert!(completed.get() > 50 && refused.get() > 50, "{completed:?} were complete, {refused:?} were refused");
}
