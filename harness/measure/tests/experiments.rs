//! What is published is tested: every experiment of the project reads and plans.

use std::path::Path;

use collo_measure::experiment::{DeviceChoice, DeviceRequest};
use collo_measure::mig::Cards;
use collo_measure::{Expression, Prior, Project, Selection, Workloads, expand, experiment, plan};

fn project() -> Project {
    Project::find(Path::new(env!("CARGO_MANIFEST_DIR"))).expect("the checkout is a project")
}

#[test]
fn every_workload_of_the_project_is_right() {
    let workloads = Workloads::load(&project().workloads()).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    assert_eq!(workloads.broken().values().map(|mistakes| mistakes.to_string()).collect::<String>(), "");
    assert!(workloads.get("tiny").is_some() && workloads.get("small").is_some());
}

#[test]
fn every_experiment_of_the_project_plans_under_its_own_name() {
    let workloads = Workloads::load(&project().workloads()).expect("readable");
    let all = experiment::all(&project(), &workloads, &experiment::Overrides::default()).expect("readable");
    let cards = Cards::load(&project().mig_profiles()).expect("readable");
    assert!(all.len() >= 2);
    for (path, read) in all {
        let experiment = read.unwrap_or_else(|mistakes| panic!("{mistakes}"));
        assert_eq!(experiment.warnings, [""; 0], "{}", path.display());
        // What needs a GPU is planned for the study's.
        let gpu = (experiment.device == DeviceChoice::Gpu).then(|| "a100-40gb".to_string());
        let asked = DeviceRequest { gpu, planning: true, as_found: false };
        let facts = experiment.device_facts(&asked, &cards).unwrap_or_else(|mistake| panic!("{mistake}"));
        let cells = expand(&experiment, None).unwrap_or_else(|mistake| panic!("{mistake}"));
        let plan = plan(&experiment, &cells, &facts, &Prior::default());
        assert_eq!(plan.cells.len() + plan.refusals.len(), cells.len(), "{}", path.display());
    }
}

#[test]
fn the_quickstart_is_twelve_runs_of_three_cells() {
    let workloads = Workloads::load(&project().workloads()).expect("readable");
    let quickstart =
        collo_measure::Experiment::resolve(&project(), "quickstart", &workloads).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let facts = quickstart.device_facts(&Default::default(), &Default::default()).expect("a CPU");
    let plan = plan(&quickstart, &expand(&quickstart, None).expect("few cells"), &facts, &Prior::default());
    let cells: Vec<&str> = plan.cells.iter().map(|cell| cell.record.cell.as_str()).collect();
    assert_eq!(cells, ["tiny solo b32", "tiny×2 naive b32", "tiny×3 naive b32"]);
    assert_eq!(plan.order.len(), 12);
}

#[test]
fn the_quickstart_writes_every_key_that_there_is() {
    let path = project().experiments().join("quickstart.toml");
    let text = std::fs::read_to_string(path).expect("it is there");
    let schema = collo_measure::schema::experiment();
    let names = |of: &serde_json::Value| of["properties"].as_object().expect("properties").keys().cloned().collect::<Vec<_>>();
    for key in names(&schema) {
        let of = &schema["properties"][&key];
        let inner = if of["properties"].is_object() { names(of) } else { Vec::new() };
        for name in inner.iter().chain([&key]) {
            let written = ["# ", ""].iter().any(|c| {
                text.contains(&format!("\n{c}{name} = "))
                    || text.contains(&format!("\n{c}[{name}]"))
                    || text.contains(&format!("\n{c}[[{name}]]"))
            });
            assert!(written, "`{name}` is not in quickstart.toml");
        }
    }
}

#[test]
fn a_selection_of_the_quickstart_keeps_its_baseline() {
    let workloads = Workloads::load(&project().workloads()).expect("readable");
    let quickstart =
        collo_measure::Experiment::resolve(&project(), "quickstart", &workloads).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let condition = Expression::parse("--where", "sharing == \"naive\" && degree <= 2").expect("right");
    let selection = Selection::Where(condition);
    let labels: Vec<String> = expand(&quickstart, Some(&selection)).expect("few").iter().map(|e| e.cell.label()).collect();
    assert_eq!(labels, ["tiny solo b32", "tiny×2 naive b32"]);
}
