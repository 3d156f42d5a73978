//! One campaign on several cards: measured at the same time, each card with its own baselines, and put back whatever happens.

use std::collections::{BTreeMap, BTreeSet};

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::sim::Machine;
use crate::support::wait_for;

/// Groups on the whole card, whose second card is slower.
const SLOW: &str = "a100-40gb,gpus=2,slow-card=1:10,noise=0.004,seed=7";
const GROUPS: &str = "repetitions = 4\n[axes]\nworkload = \"small\"\nsharing = [\"naive\", \"mps\"]\ndegree = 2\n";

/// The card of each planned run of the newest campaign, by folder.
fn cards(machine: &Machine) -> BTreeMap<String, u32> {
    let campaign = machine.bench.campaign();
    let plan = &campaign.manifest().plan;
    plan.order.iter().map(|run| (plan.folder(run), run.card.expect("there are two"))).collect()
}

fn estimate(report: &Value, cell: &str, name: &str) -> [f64; 3] {
    let cell = report["cells"].as_array().expect("cells").iter().find(|c| c["cell"] == cell).expect(cell);
    ["estimate", "low", "high"].map(|part| cell[name][part].as_f64().unwrap_or_else(|| panic!("{name} of {cell:#}")))
}

#[test]
fn two_cards_are_measured_at_the_same_time_and_the_report_names_the_slower() {
    let machine = Machine::new(SLOW, GROUPS);
    let said = machine.run(&["--gpu", "1,0"]).exits(0);
    said.says("GPU 0 small×2 mps b32").says("GPU 1 small×2 mps b32");
    let cards = cards(&machine);
    let runs = machine.bench.runs();
    let spans = |card: u32| {
        let of_card = runs.iter().filter(|(folder, _)| cards[*folder] == card);
        of_card.map(|(_, run)| (run.record.timeline.launched_ns, run.record.timeline.ended_ns)).collect::<Vec<_>>()
    };
    let (first, second) = (spans(0), spans(1));
    assert_eq!((first.len(), second.len()), (8, 8), "each has half of every cell");
    let beside = first.iter().filter(|a| second.iter().any(|b| a.0 < b.1 && b.0 < a.1)).count();
    assert!(beside >= 6, "{beside} of 8 runs had one on the other card beside them");

    let report = machine.collo(&["--json", "report", "last"]).exits(0).json();
    assert_eq!(report["devices"], serde_json::json!(["GPU 0", "GPU 1"]));
    let differences = report["device_differences"].as_array().expect("a list");
    let slower = differences.iter().find(|d| d["device"] == "GPU 1" && d["quantity"] == "epoch_time_s").expect("it is told");
    let [ratio, low, high] = ["estimate", "low", "high"].map(|part| slower["ratio"][part].as_f64().expect("a number"));
    assert!((ratio - 1.1).abs() < 0.04 && low < 1.1 && 1.1 < high, "{slower:#}");
    // Alone an epoch takes as long as the simulation was told, and a tenth longer on the second card: both are in the interval.
    let alone: f64 = crate::sim::EPOCH_S.parse().expect("seconds");
    let [time, low, high] = estimate(&report, "small solo b32", "epoch_time_s");
    assert!(low < alone && 1.1 * alone < high, "{time} ({low} to {high}) s");
    // A ratio is made on one card, whose pace it does not have.
    let [slowdown, ..] = estimate(&report, "small×2 mps b32", "slowdown");
    assert!((0.97..1.08).contains(&slowdown), "{slowdown}");
    machine.collo(&["show", "last"]).exits(0).answers("GPU 1 is slower than GPU 0: epoch time +");
    machine.collo(&["verify", "last"]).exits(0);
}

#[test]
fn both_cards_are_put_back_after_a_kill_and_the_campaign_goes_on_on_the_same() {
    let cut = "repetitions = 2\n[axes]\nworkload = \"small\"\nsharing = [\"mig:2×1g.5gb\", \"mps\"]\ndegree = 2\n";
    let machine = Machine::new("a100-40gb,gpus=2", cut);
    let found = machine.cards();
    let mut running = machine.start(&["--gpu", "0,1"]);
    let is_cut = || machine.cards()["cards"].as_array().is_some_and(|cards| cards.iter().all(|card| card["mig"] == true));
    wait_for("a second card that is cut", || is_cut().then_some(()));
    running.signal(Signal::SIGKILL);
    drop(running.ends());
    assert_eq!(machine.journals().len(), 2, "both cards are written down");
    machine.collo(&["status"]).exits(4).answers("GPU 0").answers("GPU 1");
    machine.collo(&["restore"]).exits(0).answers("GPU 0").answers("GPU 1");
    assert_eq!((machine.cards(), machine.journals().len()), (found.clone(), 0));
    let before: BTreeSet<String> = machine.bench.runs().into_keys().collect();
    machine.run(&["--gpu", "0,1"]).exits(0).says("resuming");
    let after: BTreeSet<String> = machine.bench.runs().into_keys().collect();
    let planned = machine.bench.campaign().manifest().plan.order.len();
    assert!(before.is_subset(&after) && after.len() == planned, "{after:?}");
    assert_eq!((machine.cards(), machine.bench.campaigns()), (found, 1));
}

#[test]
fn what_one_card_refuses_is_said_before_anything_is_measured() {
    let unlike = Machine::new("a100-40gb,gpus=1,display", GROUPS);
    unlike.run(&["--gpu", "0,1"]).exits(2).says("GPU 1 is NVIDIA A100").says("`collo compare` the two");
    let machine = Machine::new("a100-40gb,gpus=2", GROUPS);
    let mut other = machine.start(&["--gpu", "1"]);
    let is_measured = || machine.bench.runs_folder().find("last").is_ok_and(|c| c.runs().is_ok_and(|(runs, _)| !runs.is_empty()));
    wait_for("a run on the second card", || is_measured().then_some(()));
    machine.run(&["--gpu", "0,1", "--new"]).exits(3).says("GPU 1 is in use by another collo");
    assert_eq!(machine.bench.campaigns(), 1, "nothing was begun on the first card either");
    other.signal(Signal::SIGINT);
    drop(other.ends());
    let search = "search = \"largest-degree\"\n[axes]\nworkload = \"small\"\nsharing = \"mps\"\ndegree = [2, 3]\n";
    machine.bench.write("experiments/x.toml", &crate::sim::short(search));
    machine.run(&["--gpu", "0,1"]).exits(2).says("is a search, which runs on one GPU");
}
