//! What goes wrong while a trace is played: each ends typed, everything else completes, and the cards are as they were found.

use collo_store::{
    AttemptRecord, AttestationVerdict, Outcome, StoredRun, TaskEnd, TaskRecord, Verdict, read_attempts, read_tasks,
};
use serde_json::Value;

use crate::sim::Machine;
use crate::support::{Answer, wait_for};

/// How long what collo had started may take to be gone.
const TIMEOUT: std::time::Duration = std::time::Duration::from_secs(5);

/// A trace that was played, once.
struct Played {
    machine: Machine,
    found: Value,
    answer: Answer,
    run: StoredRun,
    tasks: Vec<TaskRecord>,
    attempts: Vec<AttemptRecord>,
}

/// An experiment with the trace `t`.
fn experiment(cards: u32, policy: &str, sharing: &str, more: &str) -> String {
    format!(
        "{more}\n[trace]\nname = \"t\"\ncards = {cards}\n[axes]\npolicy = \"{policy}\"\nsharing = \"{sharing}\"\n\
         [manager]\nwindow = \"1s\"\n"
    )
}

/// A trace of tasks: when each arrives, and what it is.
fn trace(tasks: &[(f64, &str)]) -> String {
    let listed = |(at_s, what): &(f64, &str)| format!("[[task]]\nat = \"{at_s}s\"\n{what}\n");
    format!("description = \"some tasks\"\n{}", tasks.iter().map(listed).collect::<String>())
}

/// A machine with the experiment and the trace.
fn machine(words: &str, epoch_s: &str, experiment: &str, trace: &str) -> Machine {
    let machine = Machine::new(words, experiment).env("COLLO_SIM_EPOCH_S", epoch_s);
    machine.bench.write("traces/t.toml", trace);
    machine
}

/// The same with so many baselines measured, under other words from now on: their times count from the first training of the trace.
fn opened(machine: Machine, baselines: usize, words: &str) -> Machine {
    for number in 1..=baselines {
        // So little time is over after one run, and none is begun after it.
        machine.run(&["--no-predict", "--for", "50ms"]).exits(4);
        assert_eq!(machine.bench.runs().len(), number);
    }
    machine.anew(words)
}

fn play(machine: Machine) -> Played {
    let found = machine.cards();
    let answer = machine.run(&["--no-predict"]);
    judged(machine, found, answer)
}

/// What came of it.
fn judged(machine: Machine, found: Value, answer: Answer) -> Played {
    machine.bench.nothing_is_left(TIMEOUT);
    let run = machine.bench.runs().into_values().find(|run| run.record.trace.is_some());
    let run = run.unwrap_or_else(|| panic!("no trace was played: {answer:?}"));
    let (tasks, attempts) = (read_tasks(&run.path).expect("read"), read_attempts(&run.path).expect("read"));
    machine.collo(&["verify", "last"]).answers("a fresh ledger decides the same in 1 run,");
    Played { machine, found, answer, run, tasks, attempts }
}

impl Played {
    /// How each task ended.
    fn ends(&self) -> Vec<TaskEnd> {
        self.tasks.iter().map(|task| task.end).collect()
    }

    /// The tasks of this workload: an order shuffles them.
    fn tasks_of(&self, workload: &str) -> Vec<&TaskRecord> {
        self.tasks.iter().filter(|task| task.solo.starts_with(workload)).collect()
    }

    /// The attempts at a task.
    fn of(&self, task: u32) -> Vec<&AttemptRecord> {
        self.attempts.iter().filter(|attempt| attempt.task == task).collect()
    }

    /// It was played to its end, and every attempt that trained is attested.
    #[track_caller]
    fn completed(&self) -> &Played {
        let record = &self.run.record;
        assert_eq!(record.outcome, Outcome::Completed, "{:?}", record.validity);
        assert_eq!(record.attestation.verdict, AttestationVerdict::Attested, "{:?}", record.attestation);
        self
    }

    #[track_caller]
    fn all_done(&self) -> &Played {
        assert!(self.ends().iter().all(|end| *end == TaskEnd::Done), "{:?}\n{:?}", self.ends(), self.attempts);
        self
    }

    /// The run is indicative, and says why.
    #[track_caller]
    fn remarks(&self, what: &str) -> &Played {
        let validity = &self.run.record.validity;
        assert_eq!(validity.verdict, Verdict::Indicative, "{validity:?}");
        assert!(validity.reasons.iter().any(|reason| reason.contains(what)), "`{what}` is not in {validity:?}");
        self
    }

    /// Every card is as it was found, and nothing is written down as changed.
    #[track_caller]
    fn put_back(&self) {
        assert_eq!(self.machine.cards(), self.found);
        assert!(self.machine.journals().is_empty(), "{:?}", self.machine.journals());
    }
}

const SMALL: &str = "workload = \"small\"\nepochs = 3";

#[test]
fn a_task_that_never_fits_fails_alone_and_everything_else_completes() {
    let tasks = trace(&[(0.0, SMALL), (0.0, SMALL), (0.2, "workload = \"medium\""), (0.3, SMALL), (0.3, SMALL)]);
    let words = "a100-40gb,gpus=2,never-fits=resnet50";
    let played = play(machine(words, "0.15", &experiment(2, "magm:free=2GB", "mps", ""), &tasks));
    played.completed().put_back();
    let [big] = played.tasks_of("medium")[..] else { panic!("{:?}", played.tasks) };
    for task in &played.tasks {
        assert_eq!(task.end, if task.task == big.task { TaskEnd::Failed } else { TaskEnd::Done }, "{task:?}");
    }
    let of_it = played.of(big.task);
    assert!(of_it.iter().all(|attempt| matches!(attempt.outcome, Outcome::OutOfMemory { .. })), "{of_it:?}");
    let told: Vec<_> = of_it.iter().map(|attempt| (attempt.newcomer, attempt.alone)).collect();
    assert_eq!(told, [(Some(true), false), (Some(true), true)], "in company it is tried again, alone it is not");
    assert_eq!(played.attempts.len(), 6, "nobody else is tried again");
}

#[test]
fn a_resident_that_grows_runs_out_of_memory_and_completes_alone() {
    let tasks = trace(&[(0.0, "workload = \"medium\"\nepochs = 10"), (0.05, "workload = \"small\"\nepochs = 12")]);
    let words = "a100-40gb,grows=resnet50@700ms,grows-mib=37000";
    let played = play(machine(words, "0.1", &experiment(1, "slots:2", "mps", ""), &tasks));
    played.completed().all_done().put_back();
    let big = played.tasks_of("medium")[0].task;
    let [first, again] = played.of(big)[..] else { panic!("{:?}", played.attempts) };
    assert!(matches!(first.outcome, Outcome::OutOfMemory { .. }), "{first:?}");
    assert_eq!((first.newcomer, first.alone), (Some(false), false), "the other came after it");
    assert_eq!((&again.outcome, again.alone), (&Outcome::Completed, true));
    let beside = played.of(played.tasks_of("small")[0].task);
    assert!(beside.len() == 1 && beside[0].ended_ns < again.launched_ns, "the newcomer is not disturbed: {beside:?}");
}

#[test]
fn a_task_that_leaves_its_second_card_idle_is_a_finding() {
    // Long enough to be seen on one card and not on the other twice, on a busy machine too.
    let pair = "workload = \"xlnet-base\"\ncards = 2\nepochs = 20";
    let tasks = trace(&[(0.0, pair), (0.1, pair), (0.1, SMALL)]);
    let words = "a100-40gb,gpus=2,idle-cards=xlnet-base";
    let played = play(machine(words, "0.15", &experiment(2, "exclusive", "naive", ""), &tasks));
    played.completed().all_done().put_back();
    let wide: Vec<u32> = played.attempts.iter().filter(|a| a.cards.len() == 2).map(|a| a.attempt).collect();
    assert_eq!(wide.len(), 2);
    for attempt in wide {
        played.remarks(&format!("attempt {attempt} asked for 2 cards and does not compute on card "));
    }
}

#[test]
fn a_burst_of_100_tasks_is_placed_in_order_and_completes() {
    let burst = "description = \"a burst\"\narrivals = { burst = 100 }\n[[tasks]]\ncount = 100\none_of = [\"small 1e\"]\n";
    let played = play(machine("a100-40gb,gpus=2", "0.02", &experiment(2, "slots:20", "mps", ""), burst));
    played.completed().all_done().put_back();
    assert_eq!((played.tasks.len(), played.attempts.len()), (100, 100));
    assert!(played.attempts.windows(2).all(|pair| pair[0].task < pair[1].task), "first come, first placed");
    for attempt in &played.attempts {
        let is_beside = |other: &&AttemptRecord| {
            other.cards == attempt.cards && other.launched_ns <= attempt.launched_ns && attempt.launched_ns < other.ended_ns
        };
        assert!(played.attempts.iter().filter(is_beside).count() <= 20, "{attempt:?}");
    }
}

/// Four tasks of which each card has two.
fn four() -> String {
    trace(&[(0.0, "workload = \"small\"\nepochs = 4"); 4])
}

#[test]
fn the_attempts_on_a_card_that_is_lost_go_elsewhere() {
    for sharing in ["mps", "naive"] {
        let healthy = machine("a100-40gb,gpus=2", "0.2", &experiment(2, "slots:4", sharing, ""), &four());
        let played = play(opened(healthy, 1, "a100-40gb,gpus=2,lost=1@300ms"));
        played.completed().all_done().remarks("card 1 (GPU 1) was lost: ");
        let lost: Vec<_> = played.attempts.iter().filter(|a| matches!(a.outcome, Outcome::DeviceLost { .. })).collect();
        assert!(!lost.is_empty() && lost.iter().all(|attempt| attempt.cards == [1]), "{:?}", played.attempts);
        assert_eq!(played.attempts.len(), 4 + lost.len(), "nobody fails because of a card");
        for attempt in lost {
            let last = *played.of(attempt.task).last().expect("there is one");
            assert_eq!((&last.outcome, &last.cards[..]), (&Outcome::Completed, &[0][..]), "{:?}", played.attempts);
        }
        // What stands open is put back once the card is there again.
        let open = played.machine.journals().len();
        assert!(open <= 1, "{:?}", played.machine.journals());
        let machine = played.machine.under("a100-40gb,gpus=2");
        machine.collo(&["restore"]).exits(0);
        assert_eq!((machine.cards(), machine.journals().len()), (played.found, 0));
    }
}

#[test]
fn when_an_mps_server_breaks_everybody_whom_it_served_is_tried_once_more() {
    let healthy = machine("a100-40gb,gpus=2", "0.2", &experiment(2, "slots:4", "mps", ""), &four());
    let played = play(opened(healthy, 1, "a100-40gb,gpus=2,mps-fault=1@300ms"));
    played.completed().all_done().remarks("card 1 (GPU 1) lost its mode: the MPS server is in FAULT").put_back();
    let lost: Vec<_> = played.attempts.iter().filter(|a| matches!(a.outcome, Outcome::ModeLost { .. })).collect();
    assert!(!lost.is_empty() && lost.iter().all(|attempt| attempt.cards == [1]), "{:?}", played.attempts);
    for attempt in &lost {
        assert_eq!(played.of(attempt.task).len(), 2, "once more, and that completes");
    }
    assert_eq!(played.attempts.len(), 4 + lost.len());
    assert!(played.machine.pipes().is_empty());
}

#[test]
fn readings_that_stop_end_the_run_and_nobody_is_placed_by_old_ones() {
    let silent = "nvml:nvmlDeviceGetMemoryInfo@300ms=999,nvml:nvmlDeviceGetMemoryInfo_v2@300ms=999";
    let late = trace(&[
        (0.0, "workload = \"small\"\nepochs = 20"),
        (0.0, "workload = \"small\"\nepochs = 20"),
        (1.6, "workload = \"small\"\nepochs = 20"),
    ]);
    let toml = experiment(2, "magm:free=2GB", "mps", "stall_timeout = \"2s\"").replace("\"1s\"", "\"500ms\"");
    let played = play(opened(machine("a100-40gb,gpus=2", "0.2", &toml, &late), 1, &format!("a100-40gb,gpus=2,{silent}")));
    let Outcome::DeviceLost { reason } = &played.run.record.outcome else { panic!("{:?}", played.run.record.outcome) };
    // It is found out when the loop looks, which is later on a busy machine.
    let silent_s = reason.split("gave no reading for ").nth(1).and_then(|rest| rest.split(' ').next()?.parse::<u64>().ok());
    assert!(silent_s.is_some_and(|s| s >= 2), "{reason}");
    assert_eq!(played.run.record.validity.verdict, Verdict::Discarded);
    assert_eq!(played.ends(), [TaskEnd::Interrupted; 3]);
    assert_eq!(played.attempts.len(), 2, "a card whose reading is older than the window gets nobody");
    assert!(played.attempts.iter().all(|attempt| attempt.outcome == Outcome::Interrupted), "{:?}", played.attempts);
    assert_eq!(played.answer.code, Some(4), "{:?}", played.answer);
    played.put_back();
}

#[test]
fn a_trace_is_played_on_mig_instances_as_they_are_laid_out() {
    let tasks = trace(&[(0.0, "workload = \"small\"\nepochs = 2"); 6]);
    let toml = experiment(4, "slots:2", "mig", "");
    let played =
        play(opened(machine("a100-40gb,gpus=2,mig=2×3g.20gb", "0.1", &toml, &tasks), 1, "a100-40gb,gpus=2,mig=2×3g.20gb"));
    played.completed().all_done().put_back();
    assert_eq!(played.run.record.validity.verdict, Verdict::Valid, "{:?}", played.run.record.validity);
    let mut used: Vec<u32> = played.attempts.iter().flat_map(|attempt| attempt.cards.clone()).collect();
    used.sort_unstable();
    assert_eq!(used, [0, 0, 1, 1, 2, 3], "each instance is a card");
    let record = played.run.record.trace.as_ref().expect("it is one");
    assert!(record.cards.iter().all(|card| card.scope.starts_with("mig:")), "{:?}", record.cards);
    let wide = machine(
        "a100-40gb,mig=2×3g.20gb",
        "0.1",
        &experiment(2, "rr", "mig", ""),
        &trace(&[(0.0, "workload = \"xlnet-base\"\ncards = 2")]),
    );
    wide.run(&["--no-predict"]).exits(3).says("a process computes on one instance only");
}

#[test]
fn tasks_of_two_cards_and_of_one_share_one_daemon() {
    let pair = "workload = \"xlnet-base\"\ncards = 2\nepochs = 2";
    let tasks = trace(&[(0.0, SMALL), (0.0, pair), (0.1, SMALL), (0.1, pair), (0.1, SMALL)]);
    let machine = machine("a100-40gb,gpus=2", "0.15", &experiment(2, "slots:2", "mps", ""), &tasks);
    let found = machine.cards();
    let (most, answer) = std::thread::scope(|scope| {
        let machine = &machine;
        let running = machine.start(&["--no-predict"]);
        let watching = scope.spawn(move || {
            let mut most = 0;
            wait_for("the end", || {
                most = most.max(machine.pipes().len());
                machine.bench.left().is_empty().then_some(())
            });
            most
        });
        let answer = running.ends().exits(0);
        (watching.join().expect("it watches"), answer)
    });
    assert_eq!(most, 1, "a client has one daemon");
    let played = judged(machine, found, answer);
    played.completed().all_done().put_back();
    let wide: Vec<_> = played.attempts.iter().filter(|attempt| attempt.cards.len() == 2).collect();
    assert_eq!((wide.len(), played.attempts.len()), (2, 5));
    assert_eq!(played.run.record.validity.verdict, Verdict::Valid, "{:?}", played.run.record.validity);
    let is_beside = |other: &&AttemptRecord| {
        other.attempt != wide[0].attempt && wide[0].launched_ns < other.ended_ns && other.launched_ns < wide[0].ended_ns
    };
    assert!(played.attempts.iter().any(|other| is_beside(&other)), "they have company");
}
