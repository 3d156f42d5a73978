//! A few small workloads, and experiments about them, for the tests of this package and of those above it.

use std::path::Path;

use collo_gpus::mig::Cards;
use collo_plan::experiment::Experiment;
use collo_plan::facts::{DeviceFacts, Gpu};
use collo_plan::observer::Observers;
use collo_plan::plan;
use collo_plan::prior::Prior;
use collo_plan::select::Selection;
use collo_plan::workload::Workloads;
use collo_store::{Outcome, Predicted, PredictedMember, PredictedMemory, PredictorRecord, RunRecord};
use collo_text::{Diagnostic, Diagnostics, Source};

pub const TINY: &str = r#"
command = ["python", "train.py", "--batch-size", "{batch_size}", "--images", "{images}"]
[settings]
batch_size = 32
images = 1024
[forecast.cpu]
set_up_s = 4.0
epoch_s = 1.6
memory_bytes = 800_000_000
"#;

const SMALL: &str = r#"
command = ["python", "train.py", "{batch_size}", "{images}", "{amp}", "{rate}", "{nesterov}"]
[settings]
batch_size = 32
images = 512
amp = "off"
rate = 0.1
nesterov = false
[forecast.cpu]
set_up_s = 5.0
epoch_s = 8.0
memory_bytes = 1_000_000_000
"#;

const SLEEP: &str = r#"
command = ["python", "train.py", "{seconds}"]
environment = "system"
[settings]
seconds = 1.0
"#;

const NET: &str = r#"
command = ["python", "train.py", "{settings}"]
[settings]
batch_size = 10
limit_batches = 0
width = 64
[forecast.cpu]
set_up_s = 4.0
epoch_s = 100.0
items = 1000
memory_bytes = 800_000_000
[presets.net-gpu]
requires = "cuda"
[presets.net-gpu.forecast.gpu]
host_memory_bytes = 3_000_000_000
"#;

/// With recipes, one of which is chosen by a preset.
pub const COOKED: &str = r#"
command = ["python", "train.py", "{settings}"]
[settings]
batch_size = 32
recipe = "own"
precision = "fp32"
workers = 0
rate = 0.5
[recipes.timm]
precision = "tf32"
workers = 4
rate = 0
[recipes.other]
workers = 2
[presets.cooked-large]
settings = { rate = 0.25 }
[presets.cooked-table]
settings = { recipe = "timm", workers = 8 }
"#;

/// The text of an experiment with these lines after the name.
pub fn mine(lines: &str) -> String {
    format!("name = \"mine\"\ndevice = \"cpu\"\n{lines}")
}

/// `tiny`, `small` and `sleep`, which has no forecast and no batch size; `net`, and `net-gpu`, which needs CUDA; `cooked`, which
/// has recipes.
pub fn workloads() -> Workloads {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in [("tiny", TINY), ("small", SMALL), ("sleep", SLEEP), ("net", NET), ("cooked", COOKED)] {
        std::fs::create_dir(folder.path().join(name)).expect("created");
        std::fs::write(folder.path().join(name).join("workload.toml"), text).expect("written");
    }
    Workloads::load(folder.path()).expect("readable")
}

/// The observers of this project.
pub fn observers() -> Observers {
    Observers::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../observers"))
}

pub fn read(text: &str) -> Result<Experiment, Diagnostics> {
    Experiment::parse(Path::new("experiments/mine.toml"), &Source::file("experiments/mine.toml", text), &workloads())
}

/// A valid experiment.
pub fn experiment(lines: &str) -> Experiment {
    read(&mine(lines)).unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

/// The GPU models of this project.
pub fn models() -> Cards {
    Cards::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../mig-profiles")).expect("readable")
}

/// GPUs that are only planned for, and of which nothing but their models is known.
pub fn planned(gpus: Vec<Gpu>) -> DeviceFacts {
    DeviceFacts::on_gpus(gpus, None, DeviceFacts::of_cpu(4, 1 << 34), false)
}

/// An A100 with 40 GB that is only planned for.
pub fn a100() -> DeviceFacts {
    planned(vec![Gpu::planned(models().find("a100-40gb").expect("known"))])
}

/// Expand an experiment and plan its cells, members alone on the slices of their groups among them.
pub fn plan_experiment(
    experiment: &Experiment,
    selection: Option<&Selection>,
    facts: &DeviceFacts,
) -> Result<plan::Plan, Diagnostic> {
    Ok(plan::plan(experiment, &plan::cells_of(experiment, selection, None, facts)?, facts, &Prior::default()))
}

/// `tiny` as predicted: in the middle, and at the least; up to a quarter more.
pub fn claims(estimate_gib: f64, least_gib: f64) -> Predicted {
    let bytes = |gib: f64| (gib * (1u64 << 30) as f64) as u64;
    let claim = |solo: &str, mps: bool| PredictedMember {
        solo: solo.into(),
        mps,
        memory: Some(PredictedMemory {
            estimate_bytes: bytes(estimate_gib),
            training_bytes: bytes(estimate_gib),
            low_bytes: bytes(estimate_gib / 1.25),
            high_bytes: bytes(estimate_gib * 1.25),
            upper_bytes: bytes(estimate_gib * 1.25),
            least_bytes: bytes(least_gib),
            context_bytes: 0,
            context_runs: 0,
            approximate: Vec::new(),
        }),
        alone: None,
        graph: None,
        reason: None,
    };
    let predictor = PredictorRecord {
        name: "mine".into(),
        sha256: String::new(),
        fitted_on: "own".into(),
        device: None,
        widened: 1.0,
        families: 20,
    };
    let members = vec![claim("tiny solo b32", false), claim("tiny solo b32", true)];
    Predicted {
        made_utc: "2026-11-23T00:00:00Z".into(),
        predictor: Some(predictor),
        utilisation_predictor: None,
        company_predictor: None,
        members,
        cells: Vec::new(),
        marked: Vec::new(),
    }
}

/// The errors of an invalid experiment.
pub fn said(text: &str) -> String {
    read(text).expect_err("it is wrong").to_string()
}

/// A run of one member of `tiny` that ended so, before it trained.
pub fn run_record(outcome: Outcome) -> RunRecord {
    let member = serde_json::json!({"workload": "tiny", "batch_size": null, "settings": {}, "solo": ""});
    let text = serde_json::json!({
        "schema": 2, "experiment": "e", "campaign": "c", "repetition": 1, "block": 1, "started_utc": "",
        "cell": {"cell": "a", "slug": "a", "sharing": "naive", "degree": 1, "members": [member], "baseline": false,
                 "against": [], "repetitions": 1, "after_measured": "exit"},
        "device": DeviceFacts::of_cpu(1, 1).record(),
        "timeline": {"launched_ns": 0, "ended_ns": 0}, "outcome": outcome,
        "validity": {"verdict": "valid", "reasons": []}, "attestation": {"verdict": "absent", "checks": []},
        "members": [], "sampling": [], "ingredients": {}, "files": {}
    });
    serde_json::from_value(text).expect("a record")
}
