//! Traces through the command: tasks that arrive one after another, and a policy that decides where each goes.

use collo_store::{AttestationVerdict, Outcome, StoredRun, TaskEnd, read_attempts, read_decisions, read_tasks};

use crate::sim::Machine;
use crate::support::Bench;

const SIX: &str = "description = \"six\"\nsource = \"made up\"\narrivals_s = [0, 0, 0.1, 0.2, 0.3, 0.4]\n\n[[tasks]]\ncount = 6\none_of = [\"sleep 1e\"]\n";
const ON_CORES: &str = "[trace]\nname = \"six\"\norders = [1, 2]\ncards = 2\n[axes]\npolicy = [\"exclusive\", \"slots:3\"]\n[manager]\nwindow = \"1s\"\n";

fn on_cores(experiment: &str) -> Bench {
    Bench::of(experiment).file("traces/six.toml", SIX)
}

/// The runs that are traces.
fn traces(bench: &Bench) -> Vec<StoredRun> {
    bench.runs().into_values().filter(|run| run.record.trace.is_some()).collect()
}

#[test]
fn a_trace_is_planned_played_verified_and_reported_by_policy() {
    let bench = on_cores(ON_CORES);
    let plan = bench.collo(&["plan", "x", "--no-predict"]).exits(0);
    plan.answers("six/1 exclusive naive ×2").answers("six/2 slots:3 naive ×2").answers("2 sets of");
    bench.collo(&["run", "x", "--no-predict"]).exits(0).answers("5 of 5 runs completed");
    let runs = traces(&bench);
    assert_eq!(runs.len(), 4);
    for run in &runs {
        let (tasks, attempts) = (read_tasks(&run.path).expect("read"), read_attempts(&run.path).expect("read"));
        assert_eq!((tasks.len(), attempts.len(), run.record.members.len()), (6, 6, 6));
        assert!(tasks.iter().all(|task| task.end == TaskEnd::Done), "{tasks:?}");
        assert!(attempts.iter().all(|a| a.attested == AttestationVerdict::Attested && a.settled_ns.is_some()), "{attempts:?}");
        let placed =
            read_decisions(&run.path).expect("read").iter().filter(|d| d.card.as_ref().is_some_and(|c| c.chosen)).count();
        assert_eq!(placed, 6, "each placement is stored with the card that it chose");
        let together = attempts.iter().any(|a| {
            attempts
                .iter()
                .any(|b| a.attempt != b.attempt && a.cards == b.cards && a.launched_ns < b.ended_ns && b.launched_ns < a.ended_ns)
        });
        assert_eq!(together, run.record.cell.cell.contains("slots:3"), "{}", run.record.cell.cell);
    }
    bench.collo(&["verify", "last"]).answers("a fresh ledger decides the same in 4 runs, 24 placements");
    let page = fs_err::read_to_string(bench.at("reports/x/report.md")).expect("written");
    assert!(page.contains("slots:3") && page.contains("exclusive") && page.contains("retch"), "{page}");
    bench.nothing_is_left(std::time::Duration::from_secs(5));
}

#[test]
fn a_record_of_events_that_was_changed_is_noticed() {
    let bench = on_cores(&ON_CORES.replace("[1, 2]", "[1]").replace("\"exclusive\", ", ""));
    bench.run(&["--no-predict"]).exits(0);
    let path = traces(&bench)[0].path.join("happened.jsonl");
    let text = fs_err::read_to_string(&path).expect("read");
    let without: Vec<&str> = text.lines().filter(|line| !line.contains("\"ended\"")).collect();
    fs_err::write(&path, without.join("\n")).expect("written");
    bench.collo(&["verify", "last"]).exits(1).answers("happened.jsonl");
}

const TWO_CARDS: &str = "device = \"gpu\"\n[trace]\nname = \"eight\"\ncards = 2\n[axes]\npolicy = \"magm:free=2GB\"\nsharing = \"mps\"\n[manager]\nwindow = \"1s\"\n";
const EIGHT: &str = "description = \"eight\"\narrivals_s = [0, 0, 0.1, 0.1, 0.2, 0.3, 0.4, 0.5]\n[[tasks]]\ncount = 7\none_of = [\"small 1e\"]\n[[tasks]]\ncount = 1\none_of = [\"medium 1e\"]\n";

#[test]
fn a_task_that_always_crashes_fails_once_and_everything_else_completes_under_mps_on_two_cards() {
    let machine = Machine::new("a100-40gb,gpus=2,crashes=resnet50", TWO_CARDS);
    machine.bench.write("traces/eight.toml", EIGHT);
    // The baseline of the task that crashes fails, too.
    machine.run(&["--no-predict"]).exits(1);
    let runs = traces(&machine.bench);
    let [run] = &runs[..] else { panic!("{} runs", runs.len()) };
    assert_eq!(run.record.outcome, Outcome::Completed, "{:?}", run.record.validity);
    assert_eq!(run.record.attestation.verdict, AttestationVerdict::Attested);
    let ends: Vec<TaskEnd> = read_tasks(&run.path).expect("read").into_iter().map(|task| task.end).collect();
    assert_eq!(ends.iter().filter(|end| **end == TaskEnd::Done).count(), 7, "{ends:?}");
    let attempts = read_attempts(&run.path).expect("read");
    assert_eq!(attempts.len(), 8, "a crash is never tried again");
    let crashed: Vec<_> = attempts.iter().filter(|a| matches!(a.outcome, Outcome::Crashed { .. })).collect();
    assert_eq!(crashed.len(), 1, "{attempts:?}");
    assert!(attempts.iter().any(|a| a.cards == [0]) && attempts.iter().any(|a| a.cards == [1]), "both cards are used");
    machine.bench.collo(&["verify", "last"]).answers("a fresh ledger decides the same in 1 runs, 8 placements");
}

#[test]
fn what_is_wrong_with_a_trace_is_said_with_the_way_out() {
    let said = |experiment: &str| on_cores(experiment).collo(&["plan", "x", "--no-predict"]).exits(2);
    said(&ON_CORES.replace("slots:3", "magn:sm=80%")).says("magn").says("magm");
    said(&ON_CORES.replace("\"six\"", "\"sic\"")).says("unknown trace").says("did you mean `six`?");
    said(&ON_CORES.replace("[axes]", "[axes]\ndegree = 2")).says("axis `degree` has no meaning beside `[trace]`");
    said("[axes]\nworkload = \"sleep\"\npolicy = \"rr\"\n").says("`policy` is of traces, and this experiment has none");
    let many = on_cores(&ON_CORES.replace("cards = 2", "cards = 4096")).collo(&["plan", "x", "--no-predict"]);
    many.answers("4096 sets of cores need 4096 cores").answers("--set trace.cards=");
    let blind = on_cores(&ON_CORES.replace("slots:3", "magm:dram=40%")).collo(&["plan", "x", "--no-predict"]);
    blind.answers("decides by DRAM activity, which a CPU does not have");
    let oracle = on_cores(&ON_CORES.replace("[axes]", "[axes]\nestimate = \"measured\"").replace("slots:3", "magm"));
    oracle.collo(&["plan", "x", "--no-predict"]).answers("`measured` has no estimate for `sleep solo");
}

#[test]
fn policies_and_traces_are_listed() {
    let bench = on_cores(ON_CORES);
    bench.collo(&["list", "policies"]).exits(0).answers("magm").answers("slots:3");
    bench.collo(&["list", "traces"]).exits(0).answers("six").answers("0:00");
}
