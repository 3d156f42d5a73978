//! One campaign on several cards: measured at the same time, each card with its own baselines, and put back whatever happens.

use std::collections::{BTreeMap, BTreeSet};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use collo_store::Outcome;
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::sim::Machine;
use crate::support::noted::noted;
use crate::support::{Bench, wait_for};

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
    // With four repetitions each card goes the same way: whole, then two blocks of partitions, then whole again. So both are partitioned at once.
    let cut = "repetitions = 4\n[axes]\nworkload = \"small\"\nsharing = \"mig:2×1g.5gb\"\ndegree = 2\n";
    let machine = Machine::new("a100-40gb,gpus=2", cut);
    let found = machine.cards();
    let mut running = machine.start(&["--gpu", "0,1"]);
    let are_partitioned =
        || machine.cards()["cards"].as_array().is_some_and(|cards| cards.iter().all(|card| card["mig"] == true));
    wait_for("a run on each of two partitioned cards", || (measures(&machine, 2) && are_partitioned()).then_some(()));
    running.signal(Signal::SIGKILL);
    drop(running.ends());
    assert_eq!(machine.journals().len(), 2, "both cards are written down");
    machine.collo(&["status"]).exits(4).answers("GPU 0").answers("GPU 1");
    // Its experiment alone does not say on which cards it goes on.
    let resume = format!("resume: collo run {}", machine.bench.campaign().manifest().short_id());
    machine.collo(&["restore"]).exits(0).answers("GPU 0").answers("GPU 1").says(&resume);
    assert_eq!((machine.cards(), machine.journals().len()), (found.clone(), 0));
    let before: BTreeSet<String> = machine.bench.runs().into_keys().collect();
    machine.run(&["--gpu", "0,1"]).exits(0).says("resuming");
    let after: BTreeSet<String> = machine.bench.runs().into_keys().collect();
    let planned = machine.bench.campaign().manifest().plan.order.len();
    assert!(before.is_subset(&after) && after.len() == planned, "{after:?}");
    assert_eq!((machine.cards(), machine.bench.campaigns()), (found, 1));
}

#[test]
fn a_card_that_a_killed_collo_left_partitioned_is_restored_before_two_are_compared() {
    let machine = Machine::new("a100-40gb,gpus=2", "[axes]\nworkload = \"small\"\nsharing = \"mig:2×1g.5gb\"\ndegree = 2\n");
    let found = machine.cards();
    let mut running = machine.start(&["--gpu", "1"]);
    wait_for("a run on the partitioned card", || {
        (measures(&machine, 1) && machine.cards()["cards"][1]["mig"] == true).then_some(())
    });
    running.signal(Signal::SIGKILL);
    drop(running.ends());
    assert_ne!(machine.cards(), found);
    machine.run(&["--gpu", "0,1", "--new"]).exits(0).says("GPU 1 is as it was found").says("GPU 0 small×2");
    assert_eq!((machine.cards(), machine.journals().len()), (found, 0));
}

#[test]
fn a_campaign_on_one_card_goes_on_on_that_card_and_on_no_other() {
    let machine = Machine::new("a100-40gb,gpus=2", GROUPS);
    machine.run(&["--gpu", "1", "--for", "1ms"]).exits(4);
    let own = machine.uuid(1);
    let cards = |machine: &Machine| {
        machine.bench.campaign().manifest().machine.gpus.iter().map(|gpu| gpu.uuid.clone()).collect::<Vec<_>>()
    };
    assert_eq!(cards(&machine), vec![own.clone()]);
    // The first card is free, too: without a word it is not taken for the rest.
    machine.run(&["--for", "1ms"]).exits(4).says("resuming");
    assert_eq!((machine.bench.campaigns(), cards(&machine)), (1, vec![own.clone()]));
    // Neither is that of the machine's `collo.toml`, and the plan is that of the run.
    machine.bench.write("collo.toml", "gpu = \"0\"\n");
    machine.collo(&["plan", "x"]).exits(0).answers("GPU 1");
    machine.run(&["--for", "1ms"]).exits(4).says("resuming");
    assert_eq!((machine.bench.campaigns(), cards(&machine)), (1, vec![own.clone()]));
    machine.bench.write("collo.toml", "");
    let id = machine.bench.campaign().manifest().short_id().to_string();
    let refused = machine.collo(&["run", &id, "--gpu", "0", "--no-report"]).exits(2);
    let there = format!("`{id}` continues only on its own GPU, {own}: there `collo run {id}`, without `--gpu`");
    refused.says("cannot be continued").says(&there);
    let forced = machine.collo(&["run", &id, "--gpu", "0", "--force", "--no-report"]).exits(2);
    forced.says("cannot be continued").says(&there);
    machine.run(&["--gpu", "0", "--for", "1ms"]).exits(4).says("is not continued");
    assert_eq!((machine.bench.campaigns(), cards(&machine)), (2, vec![machine.uuid(0)]));
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

/// Pairs under MPS, twice, with their baselines: three runs for each of two cards.
const PAIRS: &str = "repetitions = 2\n[axes]\nworkload = \"small\"\nsharing = \"mps\"\ndegree = 2\n";

fn pairs(words: &str, epoch_s: &str) -> Machine {
    Machine::new(words, PAIRS).env("COLLO_SIM_EPOCH_S", epoch_s)
}

/// Nothing runs, and both cards are as they were found.
#[track_caller]
fn put_back(machine: &Machine, found: &Value) {
    machine.bench.nothing_is_left(std::time::Duration::from_secs(60));
    assert_eq!((&machine.cards(), machine.journals().len()), (found, 0));
}

/// Whether so many runs are under way.
fn measures(machine: &Machine, runs: usize) -> bool {
    let partials = || machine.bench.runs_folder().find("last").ok()?.partials().ok();
    partials().is_some_and(|partials| partials.len() == runs)
}

/// Wait until a run has begun on each card.
fn both_measure(machine: &Machine) {
    wait_for("a run on each card", || measures(machine, 2).then_some(()));
}

#[test]
fn what_is_lost_with_one_card_is_named_and_measured_once_it_is_back() {
    let machine = pairs("a100-40gb,gpus=2,lost=1@200ms", "0.2");
    let found = machine.cards();
    let said = machine.run(&["--gpu", "0,1"]).exits(4);
    said.says("GPU 1 was lost: 4 of 6 runs stored; no process is left").says("resume: collo run x --gpu 0,1          2 runs");
    let of = cards(&machine);
    let ends: Vec<(u32, Outcome)> = machine.bench.runs().into_iter().map(|(run, r)| (of[&run], r.record.outcome)).collect();
    let completed = |card: u32| ends.iter().filter(|(of, outcome)| *of == card && *outcome == Outcome::Completed).count();
    assert_eq!((completed(0), completed(1), ends.len()), (3, 0, 4), "the other goes on: {ends:?}");

    let machine = machine.under("a100-40gb,gpus=2");
    let id = machine.bench.campaign().manifest().short_id().to_string();
    machine.collo(&["restore"]).exits(0);
    put_back(&machine, &found);
    // Without `--gpu` it goes on on the cards that it was begun on.
    machine.bench.run_named(&id, &[]).says("resuming").says("4 of 6 runs stored, 2 to do");
    machine.bench.run_named(&id, &["--only", "failed"]).exits(0);
    assert!(machine.bench.runs().values().all(|run| run.record.outcome == Outcome::Completed));
    assert_eq!((machine.bench.runs().len(), machine.bench.campaigns()), (6, 1));
    put_back(&machine, &found);
}

#[test]
fn ctrl_c_ends_the_runs_of_both_cards_gently_and_a_second_one_at_once() {
    let machine = pairs("a100-40gb,gpus=2", "2");
    let found = machine.cards();
    let mut running = machine.start(&["--gpu", "0,1"]);
    both_measure(&machine);
    running.signal_group(Signal::SIGINT);
    running.ends().exits(130).says("2 runs are asked to stop").says("0 of 6 runs stored");
    put_back(&machine, &found);
    assert!(machine.bench.runs().values().all(|run| run.record.outcome == Outcome::Interrupted));
    assert_eq!(machine.bench.runs().len(), 2, "both are recorded");
    let mut running = machine.start(&["--gpu", "0,1"]);
    both_measure(&machine);
    running.signal_group(Signal::SIGINT);
    std::thread::sleep(std::time::Duration::from_millis(30));
    running.signal_group(Signal::SIGINT);
    running.ends().exits(130);
    put_back(&machine, &found);
}

#[test]
fn limits_are_those_of_all_cards_together_and_a_campaign_goes_on_on_its_own_cards() {
    let failing = pairs("a100-40gb,gpus=2,crashes", "0.1");
    failing.run(&["--gpu", "0,1", "--max-failures", "1"]).exits(1).says("stopped after ");
    assert!(failing.bench.runs().len() <= 2, "no further run begins on either card: {:?}", failing.bench.runs().keys());
    let machine = pairs("a100-40gb,gpus=3", "0.3");
    machine.run(&["--gpu", "0,2", "--for", "400ms"]).exits(4).says("time limit reached: 2 of 6 runs stored");
    let campaign = machine.bench.campaign();
    let (id, m) = (campaign.manifest().short_id().to_string(), campaign.manifest().id.clone());
    let other = machine.run(&["--gpu", "0,1", "--for", "400ms"]).exits(4);
    let own = format!("its own GPUs, {} and {}", machine.uuid(0), machine.uuid(2));
    other.says(&format!("{m} is not continued")).says("cards").says(&format!("continues only on {own}; there: collo run {id}"));
    machine.bench.run_named(&id, &["--gpu", "0,1"]).exits(2).says(&format!("`collo run {id}`, without `--gpu`"));
    let goes_on = machine.bench.run_named(&id, &["--for", "400ms"]).exits(4);
    goes_on.says("2 of 6 runs stored, 4 to do").says("GPU 0 small").says("GPU 2 small");
}

#[test]
fn a_collo_waits_for_a_card_that_another_uses_and_measures_once_it_is_free() {
    let machine = Machine::new("a100-40gb", "[axes]\nworkload = \"small\"\n");
    let name = |what: &str| format!("collo/card/{what}{}", machine.uuid(0));
    let other = SocketAddr::from_abstract_name(name("")).and_then(|name| UnixListener::bind_addr(&name)).expect("a free card");
    let waiting = machine.start(&["--wait", "10m"]);
    let turn = format!("@{}", name("turn-"));
    wait_for("its turn", || std::fs::read_to_string("/proc/net/unix").expect("names").contains(&turn).then_some(()));
    // What was asked while it planned does not count: it asks again every second.
    other.set_nonblocking(true).expect("a socket");
    while other.accept().is_ok() {}
    other.set_nonblocking(false).expect("a socket");
    other.accept().expect("it asks who uses the card");
    drop(other);
    let this = format!("waiting for another collo to end, 10 min at most: process {}", std::process::id());
    waiting.ends().exits(0).says(&this);
}

#[test]
fn a_campaign_whose_layout_was_edited_is_not_continued_even_with_force() {
    let toml = "repetitions = 2\n[axes]\nworkload = \"small\"\nsharing = \"mig:halves\"\ndegree = 2\n";
    let machine = Machine::new("a100-40gb", toml);
    machine.run(&["--for", "1ms"]).exits(4);
    let file = "mig-profiles/a100-40gb.toml";
    let text = fs_err::read_to_string(machine.bench.at(file)).expect("there");
    let edited = text.replace("halves = [\"3g.20gb\", \"3g.20gb\"]", "halves = [\"2g.10gb\", \"2g.10gb\"]");
    assert_ne!(text, edited);
    machine.bench.write(file, &edited);
    let id = machine.bench.campaign().manifest().short_id().to_string();
    let forced = machine.collo(&["run", &id, "--force", "--no-report"]).exits(2);
    forced.says("cannot be continued").says("2×3g.20gb → 2×2g.10gb");
    machine.run(&[]).exits(0).says("is not continued");
    assert_eq!(machine.bench.campaigns(), 2);
}

#[test]
fn beside_a_gpu_a_campaign_is_continued_on_another_number_of_cores_only_with_force() {
    let machine = Machine::new("a100-40gb", GROUPS);
    machine.run(&["--for", "1ms"]).exits(4);
    edit_manifest(&machine.bench, |manifest| manifest["machine"]["cpu_cores"] = 999.into());
    let id = machine.bench.campaign().manifest().short_id().to_string();
    let said = machine.collo(&["run", &id, "--no-report", "--for", "1ms"]).exits(2).says("cannot be continued");
    said.says("cores   999 →").says("--force");
    machine.collo(&["run", &id, "--no-report", "--for", "1ms", "--force"]).exits(4).says("resuming");
}

#[test]
fn on_another_processor_a_campaign_is_not_continued_even_with_force() {
    let bench = Bench::of("[axes]\nworkload = \"sleep\"\nseconds = 0.1\nitems = 5\ndegree = 2\n");
    bench.run(&["--for", "1ms"]).exits(4);
    edit_manifest(&bench, |manifest| {
        manifest["ingredients"]["processor"] = serde_json::json!({"sha256": "0".repeat(64), "version": "another one"});
    });
    let id = bench.campaign().manifest().short_id().to_string();
    let forced = bench.collo(&["run", &id, "--force", "--no-report"]).exits(2);
    forced.says("cannot be continued").says("processor   another one →");
}

/// As if the newest campaign had begun elsewhere.
fn edit_manifest(bench: &Bench, edit: impl Fn(&mut Value)) {
    let campaign = bench.campaign();
    let file = campaign.path().join("campaign.json");
    let mut manifest: Value = serde_json::from_str(&fs_err::read_to_string(&file).expect("there")).expect("JSON");
    edit(&mut manifest);
    fs_err::write(&file, manifest.to_string()).expect("written");
    noted(campaign.path());
}
