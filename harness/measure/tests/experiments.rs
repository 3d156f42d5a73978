//! What is published is tested: every experiment of the project reads and plans.

use std::path::Path;

use collo_device::requested::requested;
use collo_gpus::mig::Cards;
use collo_measure::session::{Request, Session};
use collo_plan::expand::expand;
use collo_plan::experiment;
use collo_plan::experiment::{DeviceChoice, DeviceRequest, Experiment};
use collo_plan::plan::plan;
use collo_plan::prior::Prior;
use collo_plan::project::Project;
use collo_plan::select::{Expression, Selection};
use collo_plan::workload::Workloads;

fn project() -> Project {
    Project::nearest(Path::new(env!("CARGO_MANIFEST_DIR"))).expect("its path is text").expect("the checkout is a project")
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
        let asked = DeviceRequest { gpu, planning: true, ..DeviceRequest::default() };
        let facts = requested(&experiment, &asked, &cards, || None).unwrap_or_else(|mistake| panic!("{mistake}"));
        let cells = expand(&experiment, None).unwrap_or_else(|mistake| panic!("{mistake}"));
        let plan = plan(&experiment, &cells, &facts, &Prior::default());
        assert_eq!(plan.cells.len() + plan.refusals.len(), cells.len(), "{}", path.display());
    }
}

/// An experiment's plan for a GPU model, with a selection.
fn planned(experiment: &Experiment, model: &str, selection: Option<&str>) -> Session {
    let device = DeviceRequest { gpu: Some(model.into()), planning: true, ..DeviceRequest::default() };
    let selection = selection.map(|text| Selection::Where(Expression::parse("--where", text).expect("right")));
    Session::plan(&project(), Request { device, selection, ..Request::of(experiment.clone()) }).unwrap_or_else(|m| panic!("{m}"))
}

fn resolved(name: &str) -> Experiment {
    let workloads = Workloads::load(&project().workloads()).expect("readable");
    Experiment::resolve(&project(), name, &workloads).unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

#[test]
fn no_gpu_model_refuses_a_cell_of_a_shipped_experiment_for_the_name_of_a_profile() {
    let workloads = Workloads::load(&project().workloads()).expect("readable");
    let all = experiment::all(&project(), &workloads, &experiment::Overrides::default()).expect("readable");
    let experiments: Vec<Experiment> = all.into_iter().map(|(_, read)| read.expect("right")).collect();
    for model in Cards::load(&project().mig_profiles()).expect("readable").iter() {
        for experiment in experiments.iter().filter(|e| e.device != DeviceChoice::Cpu) {
            let session = planned(experiment, &model.name, None);
            // Refusals of other modes depend on this machine's programs.
            for refused in session.planned().refusals.iter().filter(|r| r.record.sharing.starts_with("mig")) {
                let reason = &refused.record.reason;
                let place = format!("{} on {}: {}: {reason}", experiment.name, model.name, refused.record.cell);
                assert!(!reason.contains("unknown"), "{place}");
                // What has no places in its file is not called impossible; what is impossible has the reason.
                let whys = [
                    "cannot be partitioned: it has no MIG",
                    "is not known",
                    "equal instances",
                    "compute slices",
                    "GiB",
                    "at most",
                    "members",
                ];
                assert!(whys.iter().any(|why| reason.contains(why)), "{place}");
            }
        }
    }
}

#[test]
fn the_studies_lose_no_cell_on_a_gpu_of_seven_slices() {
    for name in ["study-uniform", "study-mixed", "recommender-vision", "training-beside-serving"] {
        let experiment = resolved(name);
        // Three groups of the study take eight or nine of seven slices, on whatever GPU.
        let impossible = if name == "study-mixed" { 3 } else { 0 };
        for model in ["a100-40gb", "a100-80gb", "h100-80gb", "h200-141gb", "b200"] {
            let session = planned(&experiment, model, None);
            let reasons: Vec<&str> = session.planned().refusals.iter().map(|r| r.record.reason.as_str()).collect();
            assert_eq!(reasons.len(), impossible, "{name} on {model}: {reasons:#?}");
            assert!(
                reasons.iter().all(|reason| reason.ends_with("compute slices, ") || reason.contains("has 7")),
                "{reasons:#?}"
            );
        }
    }
}

#[test]
fn a_share_is_planned_and_stored_as_the_profile_of_the_gpu_at_hand() {
    let experiment = resolved("study-uniform");
    let labels = |model: &str, selection: &str| {
        let session = planned(&experiment, model, Some(selection));
        let of = |c: &collo_plan::plan::PlannedCell| format!("{}: {}", c.record.cell, c.record.slots.clone().unwrap_or_default());
        let asked = session.planned().cells.iter().filter(|c| c.asked && c.record.axis("batch_size") == Some(32.into()));
        asked.map(of).filter(|label| label.starts_with("small ")).collect::<Vec<_>>()
    };
    // Asked for by the share, by the size, or by the profile: one cell, which says what was measured.
    for asked in ["mig:4/7", "mig:4g", "mig:4g.40gb"] {
        assert_eq!(
            labels("h100-80gb", &format!("sharing == '{asked}'")),
            ["small mig:4g.40gb b32 recipe=timm: 4g.40gb"],
            "{asked}"
        );
    }
    assert_eq!(
        labels("a100-40gb", "sharing in ['mig:4/7']"),
        ["small mig:4g.20gb b32 recipe=timm: 4g.20gb"],
        "as in earlier campaigns"
    );
    assert_eq!(labels("b200", "cell == 'small mig:4/7 b32 recipe=timm'"), ["small mig:4g.90gb b32 recipe=timm: 4g.90gb"]);
    assert_eq!(labels("b200", "sharing == 'mig:4g.20gb'"), [""; 0], "which it has not");
}

#[test]
fn the_quickstart_is_twelve_runs_of_three_cells() {
    let workloads = Workloads::load(&project().workloads()).expect("readable");
    let quickstart = collo_plan::experiment::Experiment::resolve(&project(), "quickstart", &workloads)
        .unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let facts = requested(&quickstart, &Default::default(), &Default::default(), || None).expect("a CPU");
    let plan = plan(&quickstart, &expand(&quickstart, None).expect("few cells"), &facts, &Prior::default());
    let cells: Vec<&str> = plan.cells.iter().map(|cell| cell.record.cell.as_str()).collect();
    assert_eq!(cells, ["tiny solo b32", "tiny×2 naive b32", "tiny×3 naive b32"]);
    assert_eq!(plan.order.len(), 12);
}

#[test]
fn the_quickstart_writes_every_key_that_there_is() {
    let path = project().experiments().join("quickstart.toml");
    let text = std::fs::read_to_string(path).expect("it is there");
    let schema = collo_plan::schema::experiment();
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
    let quickstart = collo_plan::experiment::Experiment::resolve(&project(), "quickstart", &workloads)
        .unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let condition = Expression::parse("--where", "sharing == \"naive\" && degree <= 2").expect("right");
    let selection = Selection::Where(condition);
    let labels: Vec<String> = expand(&quickstart, Some(&selection)).expect("few").iter().map(|e| e.cell.label()).collect();
    assert_eq!(labels, ["tiny solo b32", "tiny×2 naive b32"]);
}
