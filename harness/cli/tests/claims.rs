//! What a plan predicts is kept with the campaign, decides what it may, and is compared with what was measured: on a simulated card,
//! by a predictor that was fitted on simulated runs.

use collo_store::{MarkedCell, Outcome};
use serde_json::Value;

use crate::sim::{Machine, short};

/// Three networks alone, on which the predictor is fitted.
const SOLO: &str = "[axes]\nworkload = [\"small\", \"medium\", \"large\"]\nbatch_size = [32]\ndegree = 1\n";
/// At another batch size: nothing of it was measured.
const GROUPS: &str = "[axes]\nbatch_size = 128\nsharing = \"naive\"\nworkload = [\"medium\", \"large\"]\ndegree = [2, 8, 9]\n\
    [[exclude]]\nwhere = \"workload == \\\"large\\\" && degree > 2\"\n[[exclude]]\nwhere = \"workload == \\\"medium\\\" && degree == 2\"\n";

/// A machine on which those were measured, and predicted by.
fn fitted() -> Machine {
    let machine = Machine::new("a100-40gb,noise=0,seed=1", SOLO);
    let cache = machine.bench.at("cache").display().to_string();
    let machine = machine.env("COLLO_CACHE", &cache).env("COLLO_SIM_EPOCH_S", "0.8");
    machine.run(&[]).exits(0);
    machine.collo(&["predict", "fit", "x", "--to", "predictors/simulated.json"]).exits(0);
    machine
}

fn cells(plan: &Value) -> Vec<(String, Option<String>, Option<f64>)> {
    let cells = plan["cells"].as_array().expect("a list").iter();
    let one = |c: &Value| {
        let forecast = &c["forecast"];
        let text = |value: &Value| value.as_str().map(str::to_string);
        (text(&c["cell"]).expect("named"), text(&forecast["memory_from"]), forecast["out_of_memory_probability"].as_f64())
    };
    cells.map(one).collect()
}

#[test]
fn a_campaign_refuses_what_cannot_fit_marks_what_may_not_and_keeps_what_was_said() {
    let machine = fitted();
    machine.bench.write("experiments/y.toml", &short(GROUPS));
    let plan = machine.collo(&["plan", "y", "--json"]).exits(0).json();
    assert!(cells(&plan).iter().all(|(_, from, _)| from.as_deref() == Some("predicted")), "{plan}");
    let refused: Vec<&str> = plan["refusals"].as_array().expect("a list").iter().filter_map(|r| r["cell"].as_str()).collect();
    assert_eq!(refused, ["large×2 naive b128"]);
    let text = machine.collo(&["plan", "y"]).exits(0);
    let text = text.answers("p: predicted by simulated, fitted on simulated measurements").answers("may run out of memory");
    text.answers("`degree` up to 1 fits; `--no-predict` runs it anyway");

    machine.collo(&["run", "y", "--no-report"]).exits(0).says("large×2 naive b128 is refused");
    let campaign = machine.bench.runs_folder().find("y").expect("stored");
    let predicted = campaign.manifest().predicted.clone().expect("kept");
    let by = predicted.predictor.as_ref().expect("predicted");
    assert_eq!((by.name.as_str(), by.fitted_on.as_str()), ("simulated", "simulated"));
    let (runs, _) = campaign.runs().expect("readable");
    for run in runs.values().filter(|run| run.record.cell.degree > 1) {
        let cell = &run.record.cell.cell;
        let said = |(label, _, chance): (String, _, Option<f64>)| (label == *cell).then_some(chance.is_some());
        assert_eq!(predicted.may_run_out(&run.record.cell), cells(&plan).into_iter().find_map(said), "{cell}");
        let (_, _, chance) = cells(&plan).into_iter().find(|(label, _, _)| label == cell).expect("planned");
        match &run.record.outcome {
            Outcome::Completed => assert!(chance.is_none_or(|chance| chance < 0.99), "{cell} completed at {chance:?}"),
            Outcome::OutOfMemory { .. } => assert!(chance.is_some(), "{cell} ran out of memory and was not marked"),
            other => panic!("{cell}: {other:?}"),
        }
    }
    let failed = runs.values().filter(|run| matches!(run.record.outcome, Outcome::OutOfMemory { .. })).count();
    assert_eq!((runs.values().filter(|r| r.record.cell.degree > 1).count(), failed), (2, 1), "of 8 and 9 the last does not fit");

    // Continued with more repetitions, whatever would be predicted by now.
    fs_err::remove_file(machine.bench.at("predictors/simulated.json")).expect("there");
    machine.collo(&["run", "y", "--more", "1", "--no-report"]).exits(0);
    let later = machine.bench.runs_folder().find("y").expect("stored");
    assert_eq!(
        (later.manifest().id.clone(), later.manifest().predicted.clone()),
        (campaign.manifest().id.clone(), Some(predicted))
    );

    // Without predictions it is run, and the result is that it does not fit.
    machine.collo(&["run", "y", "--new", "--no-report", "--no-predict", "--where", "workload == \"large\""]).exits(0);
    let all = machine.bench.runs_folder().find("y").expect("stored");
    assert_eq!(all.manifest().predicted, None);
    let (runs, _) = all.runs().expect("readable");
    assert!(runs.values().any(|run| matches!(run.record.outcome, Outcome::OutOfMemory { .. })));
}

#[test]
fn a_mark_by_what_its_members_held_alone_is_kept_and_told_too() {
    let machine = fitted();
    machine.bench.write("experiments/z.toml", &short("[axes]\nworkload = \"medium\"\nbatch_size = 128\ndegree = 1\n"));
    machine.collo(&["run", "z", "--no-report", "--no-predict"]).exits(0);
    // The context of this GPU is known, however many newer campaigns there are on another model.
    machine.bench.add_newer("z", 25, &[("NVIDIA A100-SXM4-40GB", "NVIDIA H100 80GB HBM3")]);
    machine.bench.write("experiments/y.toml", &short(GROUPS));
    let medium = ["--where", "workload == \"medium\""];
    let plan = machine.collo(&[&["plan", "y", "--json"][..], &medium].concat()).exits(0).json();
    assert!(cells(&plan).iter().all(|(_, from, chance)| from.as_deref() == Some("measured") && chance.is_none()), "{plan}");
    machine.collo(&[&["run", "y", "--no-report"][..], &medium].concat()).exits(0);
    let campaign = machine.bench.runs_folder().find("y").expect("stored");
    let predicted = campaign.manifest().predicted.clone().expect("kept");
    let nine = MarkedCell { cell: "medium×9 naive b128".into(), probability: None };
    assert_eq!(predicted.marked, [nine], "by readings, so without a probability");
    let memory = predicted.members[0].memory.as_ref().expect("predicted");
    assert_eq!(memory.context_bytes >> 20, 400, "what each held outside its allocator");
    assert!(memory.context_runs >= 2, "{memory:?}");
    machine.collo(&["show", "mediumx9"]).exits(0).answers("may run out of memory, as the plan said");
    assert!(!machine.collo(&["show", "mediumx8"]).exits(0).stdout.contains("as the plan said"));
}

#[test]
fn an_experiment_is_predicted_cell_by_cell_and_a_device_without_a_predictor_says_so() {
    let machine = fitted();
    machine.bench.write("experiments/y.toml", &short(GROUPS));
    machine.collo(&["predict", "y"]).exits(0).answers("predicted, not measured").answers("fits").answers("may run out, ");
    let value = machine.collo(&["predict", "y", "--json"]).exits(0).json();
    assert_eq!((value["predicted"].as_bool(), value["predictors"][0]["name"].as_str()), (Some(true), Some("simulated")));
    assert!(value["cells"][0]["members"][0]["memory"]["estimate_bytes"].as_u64() > Some(1 << 30), "{value}");
    let csv = machine.collo(&["predict", "y", "--format", "csv"]).exits(0);
    csv.answers("cell,sharing,degree,memory_bytes").answers("large×2 naive b128,naive,2,,,,").answers("refused: 2 members need");
    machine.collo(&["predict", "y", "--batch", "8"]).exits(2).says("`--batch` is for a workload");
    // What was fitted on simulated runs serves no real GPU, and what was published no simulated one.
    fs_err::remove_file(machine.bench.at("predictors/simulated.json")).expect("there");
    machine.collo(&["predict", "y"]).exits(3).says("no predictor serves this device").says("collo predict fit");
    machine.collo(&["plan", "y"]).exits(0);
}

#[test]
fn a_search_begins_where_the_largest_degree_should_be() {
    let search =
        "search = \"largest-degree\"\n[axes]\nworkload = \"medium\"\nbatch_size = 128\nsharing = \"naive\"\ndegree = [1, 48]\n";
    let tried = |machine: &Machine| -> Vec<u32> {
        machine.bench.write("experiments/z.toml", &short(search));
        machine.collo(&["run", "z", "--no-report"]).exits(0).answers("8 fit, 9 do not");
        let campaign = machine.bench.runs_folder().find("z").expect("stored");
        let (runs, _) = campaign.runs().expect("readable");
        let manifest = campaign.manifest();
        let ran_out = runs.values().filter(|run| matches!(run.record.outcome, Outcome::OutOfMemory { .. }));
        let marked = ran_out.map(|run| manifest.predicted.as_ref().and_then(|claims| claims.may_run_out(&run.record.cell)));
        let as_said = manifest.predicted.as_ref().map(|_| true);
        assert_eq!(marked.collect::<Vec<_>>(), [as_said], "nine are of a later round");
        let plan = &manifest.plan;
        plan.order.iter().map(|run| plan.cells[run.cell].degree).filter(|d| *d > 1 || runs.len() < 3).collect()
    };
    let machine = fitted();
    let predicted = tried(&machine);
    assert!(predicted.len() <= 3, "{predicted:?}");
    // With nothing predicted the first round shows what one needs, and the second begins there.
    let unknown = Machine::new("a100-40gb,noise=0,seed=1", SOLO);
    let measured = tried(&unknown);
    assert!(measured.len() <= 3, "{measured:?}");
}
