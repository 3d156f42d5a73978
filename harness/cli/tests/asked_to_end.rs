//! Every signal by which a batch system, a limit or a timer asks collo to end has an answer, at any time: an exit code, and the GPU as
//! it was found.

use std::path::PathBuf;

use collo_store::Outcome;
use nix::sys::signal::Signal;

use crate::gpu_faults::{MIG, MPS};
use crate::hostile::signals_to::{has_read_it, long_to_plan};
use crate::sim::Machine;
use crate::support::{Bench, wait_for};

const ASKING: [Signal; 5] = [Signal::SIGUSR1, Signal::SIGUSR2, Signal::SIGALRM, Signal::SIGXCPU, Signal::SIGVTALRM];

/// Whether a member of the run in progress is ready or trains.
fn trains(bench: &Bench) -> bool {
    let drafts = || bench.runs_folder().campaigns().ok()?.0.first()?.partials().ok();
    let ready = |draft: &PathBuf| fs_err::read_to_string(draft.join("events.jsonl")).is_ok_and(|text| text.contains("\"ready\""));
    drafts().is_some_and(|drafts| drafts.iter().any(ready))
}

#[test]
fn a_signal_of_a_batch_system_stores_the_run_and_restores_the_gpu() {
    for (signal, words) in [(Signal::SIGUSR1, MIG), (Signal::SIGXCPU, MPS)] {
        let machine = Machine::new("a100-40gb", &format!("epochs = 20\n{words}"));
        let found = machine.cards();
        let mut running = machine.start(&[]);
        // Before it there is a baseline, which changes nothing.
        wait_for("a member on the changed card", || {
            let is_changed = machine.cards() != found || !machine.pipes().is_empty();
            (is_changed && trains(&machine.bench)).then_some(())
        });
        running.signal(signal);
        running.ends().exits(4).says("stopped");
        assert_eq!(machine.cards(), found, "{signal}");
        assert!(machine.journals().is_empty() && machine.pipes().is_empty(), "{signal}");
        let outcomes: Vec<Outcome> = machine.bench.runs().into_values().map(|run| run.record.outcome).collect();
        assert!(outcomes.contains(&Outcome::Interrupted), "{signal}: {outcomes:?}");
    }
}

#[test]
fn each_of_them_is_answered_as_sigterm_is() {
    for signal in ASKING {
        let bench = Bench::of("epochs = 400\n[axes]\nworkload = \"sleep\"\nseconds = 0.1\nsharing = [\"solo\"]\n");
        let mut running = bench.start(&["run", "x", "--no-report"]);
        wait_for("a member that trains", || trains(&bench).then_some(()));
        running.signal_group(signal);
        assert_eq!(running.ends().code, Some(4), "{signal}");
        assert_eq!(bench.runs().len(), 1, "{signal}: the run is stored");
    }
}

#[test]
fn a_signal_while_a_plan_tries_the_gpu_leaves_it_as_it_was() {
    // The only way to find out is to try, where a process has the GPU open.
    let machine = Machine::new("a100-40gb,services,services-pending,slow-init=1s", MIG);
    let found = machine.cards();
    let mut running = machine.start(&[]);
    wait_for("a change that is tried", || (machine.cards()["cards"][0]["pending"] == true).then_some(()));
    running.signal(Signal::SIGTERM);
    running.ends().exits(4).says("planning was stopped; every GPU is as it was found");
    assert_eq!(machine.cards(), found);
    assert!(machine.journals().is_empty());
}

#[test]
fn a_signal_while_an_administrator_changes_a_gpu_comes_after_the_change() {
    let machine = Machine::new("a100-40gb,services", MIG);
    let found = machine.cards()["services"].clone();
    let mut running = machine.bench.start(&["mig", "apply", "sevenths", "--services", "stop"]);
    wait_for("a service that is stopped", || (machine.cards()["services"] != found).then_some(()));
    running.signal(Signal::SIGTERM);
    running.ends().exits(0);
    assert_eq!(machine.cards()["services"], found, "all services run again");
    machine.collo(&["mig", "assert", "sevenths"]).exits(0);
}

#[test]
fn a_signal_while_it_plans_has_an_exit_code() {
    for (signal, code) in [(Signal::SIGTERM, 4), (Signal::SIGUSR1, 4), (Signal::SIGINT, 130)] {
        let bench = Bench::of(&long_to_plan());
        let mut running = bench.start(&["plan", "x"]);
        let pid = running.pid();
        wait_for("the experiment was read", || has_read_it(pid).then_some(()));
        running.signal(signal);
        running.ends().exits(code).says("asked to end");
    }
}
