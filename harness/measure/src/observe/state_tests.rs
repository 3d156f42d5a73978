//! Endings of groups, as stories without a process.

use std::time::Duration;

use collo_store::{AfterMeasured, Outcome};
use serde_json::json;

use super::limits::{GRACE, Rules};
use super::seat::Traces;
use super::state::{Act, Watch};
use collo_launch::protocol::{Command, Whose, parse};
use collo_launch::{Ended, Live, Signal};
use collo_plan::goal::EpochGoal;

const S: u64 = 1_000_000_000;

struct Story {
    watch: Watch,
    now_ns: u64,
    /// Evidence arrives as soon as it is requested, unless this is set.
    evidence_is_slow: bool,
}

fn rules(after_measured: AfterMeasured) -> Rules {
    Rules {
        goal: EpochGoal { epochs: 2, measure_for_ns: 0 },
        after_measured,
        set_up_timeout: Duration::from_secs(60),
        stall_timeout: Duration::from_secs(20),
        timeout: Duration::from_secs(300),
        grace: GRACE,
        keep_survivors: false,
        on_card: false,
    }
}

impl Story {
    fn of(members: usize, rules: Rules) -> Self {
        let watch = Watch::begin(rules, &vec![true; members], 0);
        let mut story = Story { watch, now_ns: 0, evidence_is_slow: false };
        for member in 0..members {
            story.hears(member, Signal::Started { pid: 100 + member as u32 });
        }
        story
    }

    fn hears(&mut self, member: usize, signal: Signal) -> Vec<Act> {
        self.now_ns += S / 10;
        let mut acts = self.watch.on(member, signal, self.now_ns, Traces::default());
        if acts.contains(&Act::FirstDone) && !self.evidence_is_slow {
            acts.extend(self.watch.evidence_is_in(self.now_ns));
        }
        acts
    }

    fn says(&mut self, member: usize, message: serde_json::Value) -> Vec<Act> {
        let (event, raw) = parse(message.to_string().as_bytes()).unwrap();
        self.hears(member, Signal::Said { event, raw })
    }

    fn hello(&mut self, member: usize) -> Vec<Act> {
        self.says(member, json!({"event": "hello", "protocol": 1, "pid": 100 + member, "device": "cpu"}))
    }

    fn ready(&mut self, member: usize) -> Vec<Act> {
        self.says(member, json!({"event": "ready"}))
    }

    fn all_ready(&mut self) {
        for member in 0..self.watch.seats.len() {
            self.hello(member);
        }
        for member in 0..self.watch.seats.len() {
            self.ready(member);
        }
    }

    fn epoch(&mut self, member: usize, index: u32, measured: bool) -> Vec<Act> {
        let (start, end) = (self.now_ns, self.now_ns + S / 10);
        self.says(
            member,
            json!({"event": "epoch", "index": index, "measured": measured, "items": 8, "start_ns": start, "end_ns": end, "loss": null}),
        )
    }

    fn done(&mut self, member: usize) -> Vec<Act> {
        self.epoch(member, 0, false);
        self.epoch(member, 1, true);
        self.says(member, json!({"event": "done"}))
    }

    fn ends(&mut self, member: usize, live: Live) -> Vec<Act> {
        self.hears(member, ended(live))
    }
}

fn ended(live: Live) -> Signal {
    Signal::Ended(Ended { cpu_time_s: Some(1.0), ..Ended::of(live) })
}

#[test]
fn members_warm_up_one_at_a_time_and_go_waits_for_the_last() {
    let mut s = Story::of(3, rules(AfterMeasured::KeepRunning));
    assert_eq!(s.hello(1), [], "the others are still at their set-up, beside which nothing is to be tuned");
    assert_eq!(s.hello(0), []);
    assert_eq!(s.hello(2), [Act::Send(1, Command::WarmUp)]);
    assert_eq!(s.ready(1), [Act::Send(0, Command::WarmUp)]);
    assert_eq!(s.ready(0), [Act::Send(2, Command::WarmUp)]);
    let go = Command::Go { goal: EpochGoal { epochs: 2, measure_for_ns: 0 }, after_measured: AfterMeasured::KeepRunning };
    assert_eq!(s.ready(2), [Act::Opened, Act::Send(0, go), Act::Send(1, go), Act::Send(2, go)]);
}

#[test]
fn the_first_warm_up_does_not_wait_for_members_that_do_not_speak_the_protocol() {
    let mut w = Watch::begin(rules(AfterMeasured::Exit), &[true, false, true], 0);
    let mut says = |member: usize, message: &str| {
        let (event, raw) = parse(message.as_bytes()).unwrap();
        w.on(member, Signal::Said { event, raw }, S, Traces::default())
    };
    let hello = r#"{"event":"hello","protocol":1,"pid":1,"device":"cpu"}"#;
    assert_eq!(says(0, hello), []);
    assert_eq!(says(2, hello), [Act::Send(0, Command::WarmUp)]);
}

#[test]
fn who_never_says_hello_is_blamed_and_not_who_waits_for_it() {
    let mut s = Story::of(3, rules(AfterMeasured::KeepRunning));
    s.hello(0);
    s.hello(2);
    s.watch.tick(61 * S);
    let silent = Outcome::TimedOut { member: 1, phase: "set-up".into(), message: "sent nothing for 60 s".into() };
    assert_eq!(s.watch.outcome(), silent);
    // So is who hangs in its warm-up, and not who waits for its turn.
    let mut s = Story::of(3, rules(AfterMeasured::KeepRunning));
    for member in [1, 0, 2] {
        s.hello(member);
    }
    s.watch.tick(61 * S);
    let hanging = Outcome::TimedOut { member: 1, phase: "warm-up".into(), message: "was not ready for 60 s".into() };
    assert_eq!(s.watch.outcome(), hanging);
}

#[test]
fn under_hold_nobody_is_stopped_before_the_last_is_done() {
    let mut s = Story::of(2, rules(AfterMeasured::KeepRunning));
    s.all_ready();
    assert_eq!(s.done(1), [Act::FirstDone]);
    assert_eq!(s.epoch(1, 2, false), []);
    assert_eq!(s.done(0), [Act::AllDone]);
    assert_eq!(s.watch.stop(s.now_ns), [Act::Send(0, Command::Stop), Act::Send(1, Command::Stop)]);
    s.ends(0, Live::Exited(0));
    s.ends(1, Live::Exited(0));
    assert!(s.watch.over());
    assert_eq!(s.watch.outcome(), Outcome::Completed);
    assert_eq!(s.watch.epochs().len(), 5);
}

#[test]
fn nobody_is_stopped_while_evidence_about_them_is_gathered() {
    let mut s = Story::of(2, rules(AfterMeasured::KeepRunning));
    s.evidence_is_slow = true;
    s.all_ready();
    assert_eq!(s.done(1), [Act::FirstDone]);
    assert_eq!(s.done(0), [], "everybody is done, and trains on");
    assert_eq!(s.epoch(0, 2, false), []);
    assert_eq!(s.watch.evidence_is_in(s.now_ns), [Act::AllDone]);
    assert_eq!(s.watch.stop(s.now_ns), [Act::Send(0, Command::Stop), Act::Send(1, Command::Stop)]);
    assert_eq!(s.watch.evidence_is_in(s.now_ns), [], "once");
}

#[test]
fn a_stop_while_evidence_is_outstanding_interrupts_a_run_whose_members_are_all_done() {
    let mut s = Story::of(2, rules(AfterMeasured::KeepRunning));
    s.evidence_is_slow = true;
    s.all_ready();
    s.done(1);
    s.done(0);
    s.watch.interrupt(s.now_ns);
    s.watch.evidence_is_in(s.now_ns);
    assert_eq!(s.watch.outcome(), Outcome::Interrupted);
    // With its evidence it is complete, whatever comes then.
    let mut s = Story::of(1, rules(AfterMeasured::KeepRunning));
    s.all_ready();
    s.done(0);
    s.watch.interrupt(s.now_ns);
    assert_eq!(s.watch.outcome(), Outcome::Completed);
}

#[test]
fn a_member_that_reported_out_of_memory_and_hangs_is_out_of_memory() {
    let mut s = Story::of(1, rules(AfterMeasured::KeepRunning));
    s.all_ready();
    s.says(0, json!({"event": "error", "kind": "out_of_memory", "message": "tried 1 GiB"}));
    s.watch.tick(s.now_ns + 21 * S);
    assert_eq!(s.watch.outcome(), Outcome::OutOfMemory { member: 0, message: "tried 1 GiB, in epoch 0".into() });
}

#[test]
fn a_failure_does_not_wait_for_evidence() {
    let mut s = Story::of(2, rules(AfterMeasured::KeepRunning));
    s.evidence_is_slow = true;
    s.all_ready();
    assert_eq!(s.done(1), [Act::FirstDone]);
    assert_eq!(s.ends(0, Live::Exited(1)), [Act::Send(1, Command::Stop)]);
    assert_eq!(s.watch.evidence_is_in(s.now_ns), []);
}

#[test]
fn a_group_is_refused_before_it_trains_where_a_member_is_not_where_it_should_be() {
    let mut s = Story::of(2, rules(AfterMeasured::KeepRunning));
    s.hello(0);
    s.hello(1);
    let refused = s.watch.refuse("it is on the CPU".into(), s.now_ns);
    assert_eq!(refused, [Act::Kill(0), Act::Kill(1)]);
    assert_eq!(s.ready(0), [], "whoever is ready by now is not told to go");
    assert_eq!(s.ready(1), []);
    s.ends(0, Live::Killed(9));
    s.ends(1, Live::Killed(9));
    assert_eq!(s.watch.outcome(), Outcome::ModeLost { reason: "it is on the CPU".into() });
    assert_eq!(s.watch.timeline(s.now_ns).go_ns, None);
}

#[test]
fn under_release_who_is_done_leaves_and_the_others_go_on() {
    let mut s = Story::of(2, rules(AfterMeasured::Exit));
    s.all_ready();
    assert_eq!(s.done(0), [Act::FirstDone]);
    assert_eq!(s.ends(0, Live::Exited(0)), []);
    assert_eq!(s.done(1), [Act::Send(1, Command::Stop)]);
    s.ends(1, Live::Exited(0));
    assert_eq!(s.watch.outcome(), Outcome::Completed);
    let left = s.watch.seats[0].training_end_ns.unwrap();
    assert_eq!(left, s.watch.seats[0].epochs[1].end_ns);
}

#[test]
fn a_member_that_dies_before_go_ends_its_group_and_go_is_never_sent() {
    let mut s = Story::of(2, rules(AfterMeasured::KeepRunning));
    s.hello(0);
    s.ready(0);
    assert_eq!(s.ends(1, Live::Exited(1)), [Act::Kill(0)]);
    s.ends(0, Live::Killed(9));
    let crashed = Outcome::Crashed { member: 1, status: "exited with 1".into(), message: "in start".into(), place_alone: true };
    assert_eq!(s.watch.outcome(), crashed);
}

#[test]
fn a_member_that_dies_in_its_warm_up_does_not_hold_the_turn_for_ever() {
    let mut s = Story::of(2, Rules { keep_survivors: true, ..rules(AfterMeasured::KeepRunning) });
    s.hello(0);
    s.hello(1);
    // Before go there is no survivor to keep: a smaller group would be another cell.
    assert_eq!(s.ends(0, Live::Killed(11)), [Act::Kill(1)]);
}

#[test]
fn exit_zero_before_done_is_a_crash_that_names_what_it_left_behind() {
    let mut s = Story::of(1, rules(AfterMeasured::KeepRunning));
    s.all_ready();
    s.epoch(0, 0, false);
    let orphans = vec![(4722, "sleep".to_string())];
    s.hears(0, Signal::Ended(Ended { orphans, ..Ended::of(Live::Exited(0)) }));
    let Outcome::Crashed { status, message, .. } = s.watch.outcome() else { panic!("{:?}", s.watch.outcome()) };
    assert_eq!((status.as_str(), message.as_str()), ("exited with 0", "before `done`, in epoch 1; its child 4722 was ended"));
}

#[test]
fn survivors_finish_where_the_experiment_says_so() {
    let mut s = Story::of(2, Rules { keep_survivors: true, ..rules(AfterMeasured::KeepRunning) });
    s.all_ready();
    assert_eq!(s.ends(0, Live::Killed(6)), []);
    assert_eq!(s.done(1), [Act::FirstDone, Act::Send(1, Command::Stop)]);
    s.ends(1, Live::Exited(0));
    assert!(matches!(s.watch.outcome(), Outcome::Crashed { member: 0, .. }));
}

#[test]
fn out_of_memory_is_known_by_the_members_word_its_log_or_the_kernel() {
    let ending = |told: bool, traces: Traces, live: Live| {
        let mut s = Story::of(1, rules(AfterMeasured::KeepRunning));
        s.all_ready();
        if told {
            s.says(0, json!({"event": "error", "kind": "out_of_memory", "message": "tried 1 GiB"}));
        }
        s.watch.on(0, ended(live), S, traces);
        s.watch.outcome().as_str()
    };
    let line = Some((Whose::Card, "RuntimeError: CUDA out of memory".to_string()));
    assert_eq!(ending(true, Traces::default(), Live::Exited(1)), "out_of_memory");
    assert_eq!(ending(false, Traces { out_of_memory: line, ..Traces::default() }, Live::Exited(1)), "out_of_memory");
    assert_eq!(ending(false, Traces { kernel_oom_kill: true, ..Traces::default() }, Live::Killed(9)), "out_of_memory");
    assert_eq!(ending(false, Traces { kernel_oom_kill: true, ..Traces::default() }, Live::Exited(1)), "crashed");
    assert_eq!(ending(false, Traces::default(), Live::Killed(9)), "crashed");
}

#[test]
fn memory_of_the_host_is_told_from_memory_of_the_card_where_there_is_a_card() {
    let ending = |on_card: bool, said: serde_json::Value, live: Live, traces: Traces| {
        let mut s = Story::of(1, Rules { on_card, ..rules(AfterMeasured::KeepRunning) });
        s.all_ready();
        if !said.is_null() {
            s.says(0, said);
        }
        s.watch.on(0, ended(live), S, traces);
        s.watch.outcome().as_str()
    };
    let told = |whose: &str| json!({"event": "error", "kind": "out_of_memory", "message": "full", "whose": whose});
    let killed = || Traces { kernel_oom_kill: true, ..Traces::default() };
    let logged = || Traces { out_of_memory: Some((Whose::Host, "std::bad_alloc".into())), ..Traces::default() };
    let nothing = serde_json::Value::Null;
    for (on_card, word) in [(true, "host_out_of_memory"), (false, "out_of_memory")] {
        assert_eq!(ending(on_card, told("host"), Live::Exited(1), Traces::default()), word);
        assert_eq!(ending(on_card, nothing.clone(), Live::Killed(9), killed()), word);
        assert_eq!(ending(on_card, nothing.clone(), Live::Killed(6), logged()), word);
        for whose in ["card", "either", "a word of later"] {
            assert_eq!(ending(on_card, told(whose), Live::Exited(1), Traces::default()), "out_of_memory");
        }
    }
    // One that does not say whose: its message does.
    let old = |message: &str| json!({"event": "error", "kind": "out_of_memory", "message": message});
    assert_eq!(ending(true, old("CUDA out of memory"), Live::Exited(1), Traces::default()), "out_of_memory");
    let host = old("DefaultCPUAllocator: can't allocate memory");
    assert_eq!(ending(true, host, Live::Exited(1), Traces::default()), "host_out_of_memory");
}

#[test]
fn a_symptom_of_exhausted_memory_stays_a_crash_with_what_is_known_of_it() {
    let ending = |said: Option<serde_json::Value>, symptom: Option<&str>| {
        let mut s = Story::of(1, Rules { on_card: true, ..rules(AfterMeasured::KeepRunning) });
        s.all_ready();
        said.map(|said| s.says(0, said));
        s.watch.on(0, ended(Live::Exited(1)), S, Traces { symptom: symptom.map(str::to_string), ..Traces::default() });
        let Outcome::Crashed { message, .. } = s.watch.outcome() else { panic!("{:?}", s.watch.outcome()) };
        message
    };
    let cublas = "CUDA error: CUBLAS_STATUS_ALLOC_FAILED";
    let roomy =
        json!({"event": "error", "kind": "other", "message": cublas, "free_bytes": 4u64 << 30, "total_bytes": 40u64 << 30});
    let often = "it often means out of memory, but 4.0 GiB of 40.0 GiB were free";
    assert_eq!(ending(Some(roomy), Some(cublas)), format!("{cublas}, in epoch 0; {often}"));
    let unknown = json!({"event": "error", "kind": "other", "message": cublas, "free_bytes": null});
    assert!(ending(Some(unknown), None).ends_with("; it often means out of memory; how much was free is unknown"));
    let foreign = ending(None, Some(cublas));
    assert!(
        foreign.starts_with(&format!("in epoch 0; its log reports `{cublas}`, which often means out of memory")),
        "{foreign}"
    );
    let other = json!({"event": "error", "kind": "other", "message": "division by zero"});
    assert_eq!(ending(Some(other), None), "division by zero, in epoch 0");
}

#[test]
fn of_the_allocators_peaks_the_largest_is_kept_and_what_was_not_told_stays_absent() {
    let mut s = Story::of(1, rules(AfterMeasured::KeepRunning));
    s.all_ready();
    assert_eq!(s.watch.seats[0].peaks, None);
    s.says(0, json!({"event": "memory", "allocated_bytes": 5, "reserved_bytes": null}));
    s.says(0, json!({"event": "memory", "allocated_bytes": 3, "reserved_bytes": 8, "warm_up_allocated_bytes": 9}));
    let peaks = s.watch.seats[0].peaks.unwrap();
    assert_eq!((peaks.allocated_bytes, peaks.reserved_bytes), (Some(5), Some(8)));
    assert_eq!((peaks.warm_up_allocated_bytes, peaks.warm_up_reserved_bytes), (Some(9), None));
}

#[test]
fn garbage_ends_the_group_at_once() {
    let mut s = Story::of(2, rules(AfterMeasured::KeepRunning));
    s.all_ready();
    let acts = s.hears(0, Signal::Garbage { reason: "line 3 of member 0 is not JSON".into() });
    assert_eq!(acts, [Act::Kill(0), Act::Kill(1)]);
    s.ends(0, Live::Killed(9));
    s.ends(1, Live::Killed(9));
    assert_eq!(s.watch.outcome().as_str(), "protocol_error");
}

/// A serving member and a training one, both ready, and the moment at which `go` was sent.
fn serving(rules: Rules) -> (Story, u64) {
    let mut s = Story::of(2, rules);
    let asked = json!({"rate_per_s": 20.0, "batch_size": 4, "slo_s": 0.05});
    s.says(0, json!({"event": "hello", "protocol": 1, "pid": 100, "device": "cpu", "serving": asked}));
    s.says(0, json!({"event": "capacity", "requests_per_s": 84.2}));
    s.ready(0);
    s.hello(1);
    s.ready(1);
    let go_ns = s.now_ns;
    (s, go_ns)
}

fn requests(times: &[(u64, Option<u64>, Option<u64>)]) -> serde_json::Value {
    let arrivals: Vec<u64> = times.iter().map(|t| t.0).collect();
    let starts: Vec<Option<u64>> = times.iter().map(|t| t.1).collect();
    let ends: Vec<Option<u64>> = times.iter().map(|t| t.2).collect();
    json!({"event": "requests", "arrival_ns": arrivals, "start_ns": starts, "end_ns": ends})
}

#[test]
fn requests_are_kept_and_what_the_member_can_do_stands_beside_how_it_is_asked() {
    let (mut s, go) = serving(rules(AfterMeasured::KeepRunning));
    assert_eq!(s.says(0, requests(&[(go, Some(go + 1), Some(go + 30)), (go + 9, Some(go + 30), None)])), []);
    assert_eq!(s.says(0, requests(&[(go + 12, None, None)])), []);
    let seat = &s.watch.seats[0];
    let told: Vec<_> = seat.requests.iter().map(|r| (r.arrival_ns - go, r.start_ns.is_some(), r.end_ns.is_some())).collect();
    assert_eq!(told, [(0, true, true), (9, true, false), (12, false, false)]);
    let served = seat.served().unwrap();
    assert_eq!((served.answered, served.p99_s), (1, Some(30e-9)));
    let asked = seat.serving().unwrap();
    assert_eq!((asked.rate_per_s, asked.batch_size, asked.slo_s, asked.capacity_per_s), (20.0, 4, Some(0.05), Some(84.2)));
    assert_eq!((s.watch.seats[1].serving(), s.watch.seats[1].served()), (None, None));
}

#[test]
fn a_member_that_trains_cannot_send_latencies() {
    for (said, words) in [
        (requests(&[]), "member 1 sends latencies, but its hello has no `serving`"),
        (json!({"event": "capacity", "requests_per_s": 84.2}), "member 1 sends a capacity, but its hello has no `serving`"),
    ] {
        let (mut s, _) = serving(rules(AfterMeasured::KeepRunning));
        assert_eq!(s.says(1, said), [Act::Kill(0), Act::Kill(1)]);
        assert_eq!(s.watch.outcome(), Outcome::ProtocolError { member: 1, message: words.into() });
    }
}

#[test]
fn requests_of_another_time_are_no_measurement() {
    let (mut s, go) = serving(rules(AfterMeasured::KeepRunning));
    assert_eq!(s.says(0, requests(&[(go - 1, None, None)])).len(), 2);
    let Outcome::ProtocolError { message, .. } = s.watch.outcome() else { panic!("{:?}", s.watch.outcome()) };
    assert_eq!(message, "member 0 sends latencies of requests that arrived before `go`");

    let (mut s, go) = serving(rules(AfterMeasured::KeepRunning));
    let soon = s.now_ns + S;
    assert_eq!(s.says(0, requests(&[(go, Some(go), Some(soon))])).len(), 2);
    let Outcome::ProtocolError { message, .. } = s.watch.outcome() else { panic!("{:?}", s.watch.outcome()) };
    assert_eq!(message, "member 0 sends latencies from the future: its clock is not CLOCK_MONOTONIC");
}

#[test]
fn no_member_fills_the_memory_with_its_requests() {
    let (mut s, go) = serving(rules(AfterMeasured::KeepRunning));
    let arrivals = vec![go; 100_000];
    let none: Vec<Option<u64>> = vec![None; 100_000];
    let line = json!({"event": "requests", "arrival_ns": arrivals, "start_ns": none, "end_ns": none});
    let (event, _) = parse(line.to_string().as_bytes()).unwrap();
    let raw = serde_json::Value::Null;
    let mut say = || s.hears(0, Signal::Said { event: event.clone(), raw: raw.clone() });
    assert!((0..50).all(|_| say().is_empty()), "5 million are an hour at more than a thousand a second");
    assert_eq!(say().len(), 2);
    let Outcome::ProtocolError { message, .. } = s.watch.outcome() else { panic!("{:?}", s.watch.outcome()) };
    assert_eq!(message, "member 0 sends latencies of more than 5000000 requests: lower its rate");
}

#[test]
fn who_answers_requests_does_not_stall_though_its_epoch_is_long() {
    let (mut s, go) = serving(rules(AfterMeasured::KeepRunning));
    s.now_ns = go + 15 * S;
    s.says(0, requests(&[(go, Some(go), Some(go + 1))]));
    s.epoch(1, 0, false);
    assert_eq!(s.watch.tick(go + 30 * S), []);
    s.says(0, requests(&[(go + S, None, None)]));
    s.epoch(1, 1, true);
    assert_eq!(s.watch.tick(go + 35 * S), []);
    s.watch.tick(go + 36 * S);
    let stalled = Outcome::TimedOut { member: 0, phase: "measure".into(), message: "answered no request for 20 s".into() };
    assert_eq!(s.watch.outcome(), stalled, "requests that wait are no progress");
}

#[test]
fn silence_times_out_in_set_up_and_a_stall_in_measure() {
    let mut s = Story::of(2, rules(AfterMeasured::KeepRunning));
    s.hello(0);
    s.ready(0);
    assert_eq!(s.watch.tick(59 * S), []);
    assert_eq!(s.watch.tick(61 * S), [Act::Kill(0), Act::Kill(1)]);
    let silent = Outcome::TimedOut { member: 1, phase: "set-up".into(), message: "sent nothing for 60 s".into() };
    assert_eq!(s.watch.outcome(), silent);

    let mut s = Story::of(2, rules(AfterMeasured::KeepRunning));
    s.all_ready();
    s.epoch(0, 0, false);
    let acts = s.watch.tick(s.now_ns + 20 * S - S / 20);
    assert_eq!(acts, [Act::Send(0, Command::Stop), Act::Send(1, Command::Stop)]);
    assert!(matches!(s.watch.outcome(), Outcome::TimedOut { member: 1, .. }));
}

#[test]
fn who_does_not_heed_stop_is_killed_and_who_cannot_be_killed_does_not_hold_the_campaign() {
    let mut s = Story::of(1, rules(AfterMeasured::KeepRunning));
    s.all_ready();
    let at = s.now_ns;
    assert_eq!(s.watch.interrupt(at), [Act::Send(0, Command::Stop)]);
    assert_eq!(s.watch.tick(at + 4 * S), []);
    assert_eq!(s.watch.tick(at + 6 * S), [Act::Kill(0)]);
    assert!(!s.watch.over());
    s.watch.tick(at + 40 * S);
    assert!(s.watch.over());
    assert_eq!(s.watch.outcome(), Outcome::Interrupted);
}

#[test]
fn what_runs_around_finished_members_has_the_time_that_it_asks_for_unless_somebody_is_in_a_hurry() {
    let finished = || {
        let mut s = Story::of(1, Rules { grace: GRACE * 10, ..rules(AfterMeasured::KeepRunning) });
        s.all_ready();
        s.done(0);
        s.watch.stop(s.now_ns);
        assert_eq!(s.watch.tick(s.now_ns + 40 * S), [], "it writes its report");
        s
    };
    let mut s = finished();
    assert_eq!(s.watch.tick(s.now_ns + 51 * S), [Act::Kill(0)]);
    let mut s = finished();
    s.watch.interrupt(s.now_ns + 6 * S);
    assert_eq!(s.watch.tick(s.now_ns + 7 * S), [Act::Kill(0)], "Ctrl-C does not wait for it");
    let mut s = finished();
    s.watch.observer_lost("it wrote too much".into(), s.now_ns + S);
    assert_eq!(s.watch.tick(s.now_ns + 7 * S), [Act::Kill(0)]);
    assert_eq!(s.watch.outcome(), Outcome::ObserverLost { reason: "it wrote too much".into() });
}

#[test]
fn an_interrupt_after_a_crash_does_not_hide_the_crash() {
    let mut s = Story::of(2, rules(AfterMeasured::KeepRunning));
    s.all_ready();
    s.ends(0, Live::Exited(3));
    s.watch.kill(s.now_ns);
    assert_eq!(s.watch.outcome().as_str(), "crashed");
}

#[test]
fn a_foreign_script_trains_from_its_start_and_is_ended_when_it_has_shown_enough() {
    let mut w = Watch::begin(rules(AfterMeasured::Exit), &[false], 0);
    assert_eq!(w.on(0, Signal::Started { pid: 7 }, S, Traces::default()), [Act::Opened]);
    for (index, measured) in [(0, false), (1, true)] {
        let (start, end) = (S + index * S / 2, S + (index + 1) * S / 2);
        let raw = json!({"event": "epoch", "index": index, "measured": measured, "start_ns": start, "end_ns": end});
        let (event, raw) = parse(raw.to_string().as_bytes()).unwrap();
        let acts = w.on(0, Signal::Said { event, raw }, 2 * S, Traces::default());
        let evidence: &[Act] = if measured { &[] } else { &[Act::FirstDone] };
        assert_eq!(acts, evidence, "it is gathered once everybody has an epoch behind it");
    }
    let (event, raw) = parse(br#"{"event":"done"}"#).unwrap();
    assert_eq!(w.on(0, Signal::Said { event, raw }, 3 * S, Traces::default()), [], "evidence about it is being gathered");
    assert_eq!(w.evidence_is_in(4 * S), [Act::Kill(0)]);
}

#[test]
fn a_foreign_script_that_ends_with_0_too_early_has_not_crashed() {
    let ends = |messages: &[serde_json::Value], live: Live| {
        let mut w = Watch::begin(rules(AfterMeasured::Exit), &[false], 0);
        w.on(0, Signal::Started { pid: 7 }, S, Traces::default());
        for message in messages {
            let (event, raw) = parse(message.to_string().as_bytes()).unwrap();
            w.on(0, Signal::Said { event, raw }, 2 * S, Traces::default());
        }
        w.on(0, ended(live), 3 * S, Traces::default());
        w.outcome()
    };
    let epoch = json!({"event": "epoch", "index": 0, "measured": false, "start_ns": S, "end_ns": 2 * S});
    let shortfall = json!({"event": "shortfall", "message": "1 of 2 epochs: let it train longer", "newest": []});
    let message = "it ended with 0; 1 of 2 epochs: let it train longer".to_string();
    assert_eq!(ends(&[epoch.clone(), shortfall], Live::Exited(0)), Outcome::EndedEarly { member: 0, message });
    let message = "it ended with 0; in epoch 1".to_string();
    assert_eq!(
        ends(std::slice::from_ref(&epoch), Live::Exited(0)),
        Outcome::EndedEarly { member: 0, message },
        "its supervisor was cut off"
    );
    assert_eq!(ends(&[epoch], Live::Exited(3)).as_str(), "crashed");
}

#[test]
fn the_message_of_an_overdue_foreign_script_has_what_its_output_lacks() {
    let mut w = Watch::begin(rules(AfterMeasured::Exit), &[false], 0);
    w.on(0, Signal::Started { pid: 7 }, S, Traces::default());
    let shortfall = json!({"event": "shortfall", "message": "0 of its 7 lines match the pattern", "newest": ["Epoch 1"]});
    let (event, raw) = parse(shortfall.to_string().as_bytes()).unwrap();
    w.on(0, Signal::Said { event, raw }, 2 * S, Traces::default());
    w.tick(30 * S);
    let Outcome::TimedOut { message, .. } = w.outcome() else { panic!("{:?}", w.outcome()) };
    assert_eq!(message, "finished no epoch for 20 s: 0 of its 7 lines match the pattern");
}

/// The protocol error that a message of member 0 ends a run with, when all members are ready, or none if `early`.
fn refused(early: bool, messages: &[serde_json::Value]) -> String {
    let mut s = Story::of(2, rules(AfterMeasured::KeepRunning));
    if !early {
        s.all_ready();
    }
    let (last, before) = messages.split_last().unwrap();
    for message in before {
        s.says(0, message.clone());
    }
    assert!(s.watch.seats.iter().all(|seat| seat.ended.is_none()) && s.watch.window_open() != early, "{before:?}");
    assert_eq!(s.says(0, last.clone())[..2], [Act::Kill(0), Act::Kill(1)]);
    match s.watch.outcome() {
        Outcome::ProtocolError { member: 0, message } => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn who_speaks_out_of_turn_is_told_whose_turn_it_is() {
    let word = |word: &str| json!({"event": word});
    let hello = json!({"event": "hello", "protocol": 1, "pid": 1, "device": "cpu"});
    let epoch = json!({"event": "epoch", "index": 0, "measured": false, "start_ns": 1, "end_ns": 2});
    insta::assert_snapshot!(refused(true, &[word("ready")]), @"member 0 sends `ready` before its `hello`: call `member.hello(…)` first");
    insta::assert_snapshot!(refused(true, &[word("done")]), @"member 0 sends `done` before its `hello`: call `member.hello(…)` first");
    insta::assert_snapshot!(refused(true, &[json!({"event": "memory"})]), @"member 0 sends `memory` before its `hello`: call `member.hello(…)` first");
    insta::assert_snapshot!(refused(true, &[hello.clone(), epoch.clone()]), @"member 0 sends `epoch` before `go`: call `member.ready()` first, which returns when all are ready");
    insta::assert_snapshot!(refused(true, &[hello.clone(), word("ready"), word("done")]), @"member 0 sends `done` before `go`: call `member.ready()` first, which returns when all are ready");
    insta::assert_snapshot!(refused(true, &[hello.clone(), hello.clone()]), @"member 0 sends `hello` twice");
    insta::assert_snapshot!(refused(false, &[word("ready")]), @"member 0 sends `ready` twice");
    insta::assert_snapshot!(refused(false, &[word("done")]), @"member 0 sends `done` after 0 of 1 measured epoch");
}

#[test]
fn done_is_said_once() {
    let mut s = Story::of(2, rules(AfterMeasured::KeepRunning));
    s.all_ready();
    s.done(0);
    assert_eq!(s.says(0, json!({"event": "done"})), [Act::Kill(0), Act::Kill(1)]);
    let twice = Outcome::ProtocolError { member: 0, message: "member 0 sends `done` twice".into() };
    assert_eq!(s.watch.outcome(), twice);
}

#[test]
fn an_error_of_set_up_and_words_of_a_later_protocol_may_come_at_any_time() {
    let mut s = Story::of(1, rules(AfterMeasured::KeepRunning));
    assert_eq!(s.says(0, json!({"event": "aurora"})), []);
    assert_eq!(s.says(0, json!({"event": "error", "kind": "setting", "message": "`width` is 0"})), []);
    s.ends(0, Live::Exited(1));
    assert!(matches!(s.watch.outcome(), Outcome::Crashed { message, .. } if message == "`width` is 0, in start"));
}

#[test]
fn an_error_that_was_got_over_is_not_why_a_member_ends() {
    let mut s = Story::of(1, rules(AfterMeasured::KeepRunning));
    s.all_ready();
    s.says(0, json!({"event": "error", "kind": "out_of_memory", "message": "tried 1 GiB"}));
    s.epoch(0, 0, false);
    s.ends(0, Live::Killed(11));
    let crashed =
        Outcome::Crashed { member: 0, status: "killed by SIGSEGV".into(), message: "in epoch 1".into(), place_alone: true };
    assert_eq!(s.watch.outcome(), crashed);
}

#[test]
fn a_lie_after_done_is_one_all_the_same() {
    for slow in [true, false] {
        let mut s = Story::of(1, rules(AfterMeasured::KeepRunning));
        s.evidence_is_slow = slow;
        s.all_ready();
        s.done(0);
        s.epoch(0, 2, true);
        assert_eq!(s.watch.seats[0].epochs.len(), 2, "it is not kept");
        let lie = "member 0 reports epoch 2 as measured, but epoch 1 alone is measured".to_string();
        assert_eq!(s.watch.outcome(), Outcome::ProtocolError { member: 0, message: lie });
    }
}

#[test]
fn who_fails_after_done_has_crashed_whether_or_not_it_was_told_to_stop() {
    let crashed =
        |status: &str| Outcome::Crashed { member: 0, status: status.into(), message: "after `done`".into(), place_alone: false };
    for after in [AfterMeasured::KeepRunning, AfterMeasured::Exit] {
        for (slow, stopped) in [(true, false), (false, false), (false, true)] {
            let mut s = Story::of(1, rules(after));
            s.evidence_is_slow = slow;
            s.all_ready();
            s.done(0);
            if stopped {
                s.watch.stop(s.now_ns);
            }
            s.ends(0, Live::Exited(3));
            assert_eq!(s.watch.outcome(), crashed("exited with 3"), "{after:?} {slow} {stopped}");
        }
    }
    // By us it is killed because it does not stop: no failure of what it measured.
    let mut s = Story::of(1, rules(AfterMeasured::KeepRunning));
    s.all_ready();
    s.done(0);
    s.watch.stop(s.now_ns);
    assert_eq!(s.watch.tick(s.now_ns + 6 * S), [Act::Kill(0)]);
    s.ends(0, Live::Killed(9));
    assert_eq!(s.watch.outcome(), Outcome::Completed);
}

#[test]
fn under_hold_who_is_done_stays_until_it_is_told_to_stop() {
    let mut s = Story::of(1, rules(AfterMeasured::KeepRunning));
    s.evidence_is_slow = true;
    s.all_ready();
    s.done(0);
    s.ends(0, Live::Exited(0));
    let message = "after `done`, before it was asked to stop".to_string();
    assert_eq!(s.watch.outcome(), Outcome::Crashed { member: 0, status: "exited with 0".into(), message, place_alone: false });
}

#[test]
fn a_member_that_leaves_behind_done_and_has_not_heard_stop_has_crashed_whichever_was_first() {
    let gone = |at_ns, unheard| Signal::Ended(Ended { at_ns, unheard, ..Ended::of(Live::Exited(0)) });
    let message = "after `done`, before it was asked to stop".to_string();
    let crashed = Outcome::Crashed { member: 0, status: "exited with 0".into(), message, place_alone: false };
    let after_stop = |signal| {
        let mut s = Story::of(1, rules(AfterMeasured::KeepRunning));
        s.all_ready();
        s.done(0);
        s.watch.stop(s.now_ns);
        s.hears(0, signal);
        s.watch.outcome()
    };
    assert_eq!(after_stop(gone(None, true)), crashed, "the order lies unread in its channel");
    assert_eq!(after_stop(gone(Some(1), false)), crashed, "its end was before the order, and was reported after it");
    assert_eq!(after_stop(gone(Some(u64::MAX), false)), Outcome::Completed);
    let mut s = Story::of(1, rules(AfterMeasured::KeepRunning));
    s.all_ready();
    s.done(0);
    s.watch.stop(s.now_ns);
    let after_ns = s.now_ns + S;
    s.watch.excuse(Duration::from_secs(10));
    s.hears(0, gone(Some(after_ns), false));
    assert_eq!(s.watch.outcome(), Outcome::Completed, "that collo was suspended moves limits, and not what was sent");
}

#[test]
fn what_passes_while_collo_itself_stands_still_counts_towards_no_limit() {
    let mut s = Story::of(2, rules(AfterMeasured::KeepRunning));
    s.all_ready();
    s.epoch(0, 0, false);
    let stood_still = 400 * S;
    s.watch.excuse(Duration::from_nanos(stood_still));
    s.now_ns += stood_still;
    assert_eq!(s.watch.tick(s.now_ns), [], "neither the limit of an epoch nor that of the run is over");
    assert_eq!(s.watch.tick(s.now_ns + 19 * S), []);
    assert_eq!(s.watch.tick(s.now_ns + 21 * S), [Act::Send(0, Command::Stop), Act::Send(1, Command::Stop)]);
    s.watch.excuse(Duration::from_nanos(stood_still));
    assert_eq!(s.watch.tick(s.now_ns + 22 * S + stood_still), [], "nor is the time that they have to leave");
    assert_eq!(s.watch.timeline(0).launched_ns, 0);
}

#[test]
fn lines_from_which_no_epoch_can_be_read_are_a_protocol_error() {
    let mut w = Watch::begin(rules(AfterMeasured::Exit), &[false], 0);
    w.on(0, Signal::Started { pid: 7 }, S, Traces::default());
    let said = json!({"event": "error", "kind": "output", "message": "the output says that epoch 2 took 99999 s"}).to_string();
    let (event, raw) = parse(said.as_bytes()).unwrap();
    assert_eq!(w.on(0, Signal::Said { event, raw }, 2 * S, Traces::default()), [Act::Kill(0)]);
    let message = "the output says that epoch 2 took 99999 s".to_string();
    assert_eq!(w.outcome(), Outcome::ProtocolError { member: 0, message });
}

#[test]
fn last_words_count_where_a_program_gave_up_and_not_where_it_was_killed() {
    let ending = |live: Live| {
        let mut s = Story::of(1, rules(AfterMeasured::KeepRunning));
        s.all_ready();
        let traces = Traces { out_of_memory: Some((Whose::Card, "CUDA out of memory".into())), ..Traces::default() };
        s.watch.on(0, ended(live), S, traces);
        s.watch.outcome().as_str()
    };
    for (live, word) in [
        (Live::Exited(1), "out_of_memory"),
        (Live::Exited(7), "out_of_memory"),
        (Live::Killed(6), "out_of_memory"),
        (Live::Killed(11), "crashed"),
        (Live::Killed(9), "crashed"),
        (Live::Exited(0), "crashed"),
    ] {
        assert_eq!(ending(live.clone()), word, "{live}");
    }
}

/// A script without a barrier beside a member with one.
fn beside_a_script(after_measured: AfterMeasured) -> Story {
    let watch = Watch::begin(rules(after_measured), &[true, false], 0);
    let mut s = Story { watch, now_ns: 0, evidence_is_slow: false };
    s.hears(0, Signal::Started { pid: 100 });
    s.hears(1, Signal::Started { pid: 101 });
    s
}

/// An epoch of member 1, without a barrier, that ends now; as its lines have no durations, it begins with the epoch before, the first
/// one with its launch.
fn line(s: &mut Story, index: u32) -> Vec<Act> {
    let start = s.watch.seats[1].epochs.last().map_or(0, |before| before.end_ns);
    let end = s.now_ns + S / 10;
    s.says(1, json!({"event": "epoch", "index": index, "measured": index > 0, "items": 1, "start_ns": start, "end_ns": end}))
}

/// The epochs of a member that count.
fn measured(s: &mut Story, member: u32) -> Vec<u32> {
    s.watch.epochs().iter().filter(|e| e.member == member && e.measured).map(|e| e.index).collect()
}

#[test]
fn a_script_without_a_barrier_is_measured_until_it_has_enough_beside_the_others() {
    let mut s = beside_a_script(AfterMeasured::KeepRunning);
    // It is done before its neighbour is ready.
    line(&mut s, 0);
    line(&mut s, 1);
    assert_eq!(s.says(1, json!({"event": "done"})), [], "it trains on, and its neighbour has not begun");
    s.hello(0);
    s.ready(0);
    line(&mut s, 2);
    s.epoch(0, 0, false);
    s.epoch(0, 1, true);
    assert_eq!(s.says(0, json!({"event": "done"})), [], "all are finished, but the script has no epoch beside its neighbour's");
    assert_eq!(line(&mut s, 3), [Act::AllDone]);
    let all_done_ns = s.now_ns;
    // Proportional memory is read meanwhile.
    line(&mut s, 4);
    assert_eq!(s.watch.stop(s.now_ns), [Act::Send(0, Command::Stop), Act::Kill(1)]);
    assert_eq!(measured(&mut s, 1), [3], "what lies beside the set-up of its neighbour does not count, nor what follows");
    assert_eq!(measured(&mut s, 0), [1]);
    assert_eq!(s.watch.seats[1].training_end_ns, Some(all_done_ns));
    assert_eq!(s.watch.timeline(s.now_ns).done_ns, Some(all_done_ns));
}

#[test]
fn imports_of_a_script_are_no_training_and_go_waits_for_its_first_epoch() {
    let mut s = beside_a_script(AfterMeasured::KeepRunning);
    s.hello(0);
    assert_eq!(s.ready(0), [], "the script still imports its libraries");
    let acts = line(&mut s, 0);
    assert!(acts.contains(&Act::Opened), "{acts:?}");
    assert_eq!(s.watch.seats[1].training_start_ns, Some(s.now_ns), "its first epoch has its imports in it");
    // Where members leave when they are done, it would be gone before the others begin.
    let mut s = beside_a_script(AfterMeasured::Exit);
    s.hello(0);
    assert!(s.ready(0).contains(&Act::Opened));
}

#[test]
fn a_script_that_prints_nothing_is_overdue_and_not_the_member_that_waits_for_it() {
    let mut s = beside_a_script(AfterMeasured::KeepRunning);
    s.hello(0);
    s.ready(0);
    assert_eq!(s.watch.tick(79 * S), [], "its first epoch may take as long as any other");
    s.watch.tick(81 * S);
    let silent = Outcome::TimedOut { member: 1, phase: "set-up".into(), message: "finished no epoch for 80 s".into() };
    assert_eq!(s.watch.outcome(), silent);
}

#[test]
fn a_script_alone_measures_as_much_as_is_asked_for_however_long_evidence_takes() {
    let mut s = beside_a_script(AfterMeasured::KeepRunning);
    s.evidence_is_slow = true;
    s.hello(0);
    s.ready(0);
    for index in 0..2 {
        line(&mut s, index);
        s.epoch(0, index, index > 0);
    }
    s.says(1, json!({"event": "done"}));
    s.says(0, json!({"event": "done"}));
    for index in 2..9 {
        line(&mut s, index);
    }
    assert_eq!(s.watch.evidence_is_in(s.now_ns), [Act::AllDone]);
    s.watch.stop(s.now_ns);
    assert_eq!(measured(&mut s, 1).len(), 1);
}

#[test]
fn epochs_beside_a_script_that_has_ended_do_not_count() {
    let mut s = beside_a_script(AfterMeasured::KeepRunning);
    s.hello(0);
    s.ready(0);
    line(&mut s, 0);
    line(&mut s, 1);
    s.epoch(0, 0, false);
    s.says(1, json!({"event": "done"}));
    s.now_ns += S;
    s.ends(1, Live::Exited(0));
    assert!(s.watch.seats[1].training_end_ns < Some(s.now_ns - S / 2), "what it did after its last epoch is no training");
    s.epoch(0, 1, true);
    s.says(0, json!({"event": "done"}));
    s.ends(0, Live::Exited(0));
    assert_eq!(s.watch.outcome(), Outcome::Completed);
    assert_eq!(measured(&mut s, 0), [0; 0], "its neighbour was gone");
}

#[test]
fn a_script_that_ends_before_go_ends_its_group() {
    let mut s = beside_a_script(AfterMeasured::KeepRunning);
    s.hello(0);
    line(&mut s, 0);
    line(&mut s, 1);
    s.says(1, json!({"event": "done"}));
    s.ends(1, Live::Exited(0));
    let message = "it ended with 0; not all members were ready: let it train longer".to_string();
    assert_eq!(s.watch.outcome(), Outcome::EndedEarly { member: 1, message });
}

#[test]
fn a_script_that_has_shown_enough_may_end_by_itself() {
    for (exit, outcome) in [(0, None), (3, Some("crashed"))] {
        let mut s = beside_a_script(AfterMeasured::KeepRunning);
        s.hello(0);
        s.ready(0);
        line(&mut s, 0);
        line(&mut s, 1);
        s.says(1, json!({"event": "done"}));
        s.ends(1, Live::Exited(exit));
        if outcome.is_none() {
            s.done(0);
        }
        s.ends(0, Live::Exited(0));
        assert_eq!(s.watch.outcome().as_str(), outcome.unwrap_or("completed"));
    }
}

#[test]
fn a_script_that_prints_no_more_is_not_waited_for_without_end() {
    let mut s = beside_a_script(AfterMeasured::KeepRunning);
    line(&mut s, 0);
    line(&mut s, 1);
    s.says(1, json!({"event": "done"}));
    s.hello(0);
    s.ready(0);
    assert_eq!(s.done(0), []);
    s.watch.excuse(Duration::from_secs(30));
    assert_eq!(s.watch.tick(s.now_ns + 30 * S), [], "while collo was suspended it could not be heard");
    assert_eq!(s.watch.tick(s.now_ns + 31 * S), [Act::AllDone]);
}

#[test]
fn when_all_are_done_the_limit_of_the_run_ends_the_wait_and_not_the_run() {
    let mut s = beside_a_script(AfterMeasured::KeepRunning);
    s.now_ns = 299 * S;
    line(&mut s, 0);
    line(&mut s, 1);
    s.says(1, json!({"event": "done"}));
    s.hello(0);
    s.ready(0);
    s.done(0);
    assert_eq!(s.watch.tick(301 * S), [Act::AllDone]);
    s.watch.stop(301 * S);
    s.ends(0, Live::Exited(0));
    s.ends(1, Live::Killed(9));
    assert_eq!(s.watch.outcome(), Outcome::Completed);
}
