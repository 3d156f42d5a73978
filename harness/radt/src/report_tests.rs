use std::fmt::Write;

use super::*;
use crate::tracking;

/// A run for the store of a test: id, letter, parent, parameters of its script, and metrics with their readings, one each second.
type Tracked<'a> = (&'a str, &'a str, Option<&'a str>, &'a [(&'a str, &'a str)], &'a [(&'a str, &'a [f64])]);

const START_MS: u64 = 1_700_000_000_000;

fn store(runs: &[Tracked<'_>]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let write = |path: String, text: &str| {
        let place = dir.path().join(path);
        fs_err::create_dir_all(place.parent().unwrap()).unwrap();
        fs_err::write(place, text).unwrap();
    };
    write("7/meta.yaml".into(), "experiment_id: '7'\nlifecycle_stage: active\nname: nets\n");
    write("0/meta.yaml".into(), "experiment_id: '0'\nlifecycle_stage: active\nname: Default\n");
    for (at, (id, letter, parent, params, metrics)) in runs.iter().enumerate() {
        let start_ms = START_MS + at as u64 * 3000;
        let status = if *id == "failed" { 4 } else { 3 };
        let end_ms = START_MS + 20_000;
        write(
            format!("7/{id}/meta.yaml"),
            &format!("end_time: {end_ms}\nlifecycle_stage: active\nrun_id: {id}\nstart_time: {start_ms}\nstatus: {status}\n"),
        );
        let own =
            [("letter", *letter), ("workload", "1"), ("file", "nets/net.py"), ("listeners", "smi+dcgmi"), ("max_epoch", "5")];
        for (name, value) in own.iter().chain(params.iter()) {
            write(format!("7/{id}/params/{name}"), value);
        }
        if let Some(parent) = parent {
            write(format!("7/{id}/tags/mlflow.parentRunId"), parent);
        }
        for (name, values) in *metrics {
            let mut text = String::new();
            for (second, value) in values.iter().enumerate() {
                let _ = writeln!(text, "{} {value} 0", START_MS + second as u64 * 1000);
            }
            write(format!("7/{id}/metrics/{name}"), &text);
        }
    }
    dir
}

fn tracked(place: &Path) -> Result<TrackedExperiment, Diagnostics> {
    tracking::read(place, None, crate::metrics::names())
}

fn imported(runs: &[Tracked<'_>]) -> Result<(ReportJson, Vec<Leftover>), Diagnostics> {
    of(&tracked(store(runs).path())?, None, Some("NVIDIA A100-SXM4-40GB"))
}

const B: &[(&str, &str)] = &[("batch-size", "128")];

#[test]
fn groups_of_equal_runs_are_the_repetitions_of_a_cell() {
    let power: &[(&str, &[f64])] = &[("SMI - Power Draw", &[100.0, 200.0])];
    let more: &[(&str, &[f64])] = &[("SMI - Power Draw", &[100.0, 200.0, 300.0])];
    let runs = [
        ("a", "0_A_MPS", None, B, power),
        ("b", "0_B_MPS", Some("a"), B, more),
        ("c", "0_A_MPS", None, B, power),
        ("d", "0_B_MPS", Some("c"), B, power),
        ("e", "0", None, B, power),
    ];
    let (report, leftovers) = imported(&runs).unwrap();
    assert!(leftovers.is_empty(), "{leftovers:?}");
    let labels: Vec<(&str, usize, u64)> = report.cells.iter().map(|c| (c.label.as_str(), c.repetitions, c.degree)).collect();
    assert_eq!(labels, [("net×2 mps b128", 2, 2), ("net solo b128", 1, 1)]);
    let power = report.cells[0].get("power_w").unwrap();
    // 200 W by the run that read longest, and 150 W.
    assert!((power.estimate - (200.0f64 * 150.0).sqrt()).abs() < 1e-9 && power.df == Some(1.0), "{power:?}");
    assert!(report.cells[1].get("power_w").unwrap().low.is_none());
    assert!((report.cells[1].get("duration_s").unwrap().estimate - 8.0).abs() < 1e-9);
}

#[test]
fn nothing_that_radt_does_not_measure_has_a_number_and_all_says_where_it_is_from() {
    let metrics: &[(&str, &[f64])] =
        &[("SMI - Power Draw", &[100.0]), ("DCGMI - SN Active", &[0.0, 0.0]), ("SMI - Mem Used", &[1024.0])];
    let (report, _) = imported(&[("a", "0", None, B, metrics)]).unwrap();
    let cell = &report.cells[0];
    assert!(cell.quantities.iter().all(|(_, q)| q.is_none()) && cell.members[0].quantities.iter().all(|(_, q)| q.is_none()));
    assert_eq!(cell.absent["epoch_time_s"], NOT_MEASURED);
    assert!(cell.metrics.get("sm_active_ratio").is_none() && cell.absent["sm_active_ratio"].contains("N/A"));
    assert!((cell.get("memory_used_bytes").unwrap().estimate - 1_073_741_824.0).abs() < 1.0);
    assert_eq!((cell.validity.as_str(), report.indicative[0].as_str()), ("indicative", IMPORTED));
    assert!(cell.reasons.iter().any(|reason| reason.contains("no evidence of its mode")));
}

#[test]
fn under_mig_only_what_is_read_of_the_whole_gpu_is_the_groups() {
    let metrics: &[(&str, &[f64])] = &[("SMI - Power Draw", &[100.0]), ("DCGMI - SN Active", &[0.5])];
    let (report, _) = imported(&[("a", "2_A_1g.5gb", None, B, metrics), ("b", "2_B_3g.20gb", Some("a"), B, metrics)]).unwrap();
    let cell = &report.cells[0];
    assert_eq!(cell.label, "net-1g-5gb+net-3g-20gb mig b128");
    assert!(cell.get("power_w").is_some() && cell.get("sm_active_ratio").is_none());
    assert!(cell.absent["sm_active_ratio"].contains("instance"));
}

#[test]
fn names_that_are_one_field_off_are_not_believed() {
    let off: &[(&str, &[f64])] =
        &[("DCGMI - PCIE TX Bytes", &[5.0]), ("DCGMI - NVlink TX Bytes", &[0.0]), ("DCGMI - DRAM Active", &[0.5])];
    let cell = &imported(&[("a", "0", None, B, off)]).unwrap().0.cells[0];
    assert!(cell.absent["pcie_tx_bytes_per_s"].contains("one field off") && cell.get("dram_active_ratio").is_some());
}

#[test]
fn what_cannot_be_imported_is_named_and_if_all_of_it_that_is_an_error() {
    let wrong = imported(&[("failed", "0", None, B, &[]), ("b", "0_B", Some("gone"), B, &[])]).unwrap_err().to_string();
    assert!(wrong.contains("run failed: it is FAILED") && wrong.contains("others of its group are not here"), "{wrong}");
    let (report, leftovers) = imported(&[("a", "0", None, B, &[]), ("failed", "0", None, B, &[])]).unwrap();
    assert_eq!((report.cells.len(), leftovers.len(), report.problems.len()), (1, 1, 1));
    let nothing = tracked(store(&[]).path()).unwrap_err().to_string();
    assert!(nothing.contains("no run of radT's is in"), "{nothing}");
}

#[test]
fn options_with_names_that_radt_uses_itself_keep_runs_apart() {
    let of = |params: &[(&str, &str)]| imported(&[("a", "0", None, params, &[])]).unwrap().0.cells[0].label.clone();
    assert_eq!(of(&[("model", "net.py"), ("dataset", "x"), ("data", "x")]), "net solo dataset=x");
    assert_eq!(of(&[("model", "resnet"), ("data", "x"), ("amp", "")]), "net solo amp=true data=x model=resnet");
}

#[test]
fn a_run_is_of_the_projects_workload_only_if_that_calls_the_script_in_the_same_way() {
    let dir = tempfile::tempdir().unwrap();
    fs_err::create_dir_all(dir.path().join("net")).unwrap();
    let own = "command = [\"python\", \"net.py\", \"--batch-size\", \"{batch_size}\", \"--lr={lr}\", \"--amp\"]\n\
               [settings]\nbatch_size = 64\nlr = 0.1\n";
    fs_err::write(dir.path().join("net/workload.toml"), own).unwrap();
    let workloads = Workloads::load(dir.path()).unwrap();
    let of = |params: &[(&str, &str)]| {
        let read = tracked(store(&[("a", "0", None, params, &[])]).path()).unwrap();
        super::of(&read, Some(&workloads), None).unwrap().0.cells[0].label.clone()
    };
    assert_eq!(of(&[("batch-size", "128"), ("lr", "0.1"), ("amp", "")]), "net solo b128", "0.1 is its default");
    assert_eq!(of(&[("batch-size", "128"), ("lr", "0.2"), ("amp", "")]), "net solo b128 lr=0.2");
    assert_eq!(of(&[("batch-size", "128"), ("lr", "0.1")]), "net-radt solo b128 lr=0.1", "it has --amp");
    assert_eq!(of(&[("batch-size", "128"), ("amp", "")]), "net-radt solo b128 amp=true", "its default is not the script's");
}

#[test]
fn a_torn_line_costs_its_reading_and_torn_files_their_run() {
    let power: &[(&str, &[f64])] = &[("SMI - Power Draw", &[100.0, 120.0])];
    let ids = ["a", "b", "glued", "cut"];
    let runs: Vec<Tracked<'_>> = ids.iter().map(|id| (*id, "0", None, B, power)).collect();
    let store = store(&runs);
    let metric = |id: &str| store.path().join(format!("7/{id}/metrics/SMI - Power Draw"));
    let append = |id: &str, text: &str| {
        let before = fs_err::read_to_string(metric(id)).unwrap();
        fs_err::write(metric(id), before + text).unwrap();
    };
    append("a", &format!("{} 1", START_MS + 2000));
    append("glued", &format!("17{} 900 0\n{} 140 0\n", START_MS + 2000, START_MS + 3000));
    fs_err::write(store.path().join("7/cut/meta.yaml"), "end_time: 17\nlifecy").unwrap();
    let read = tracked(store.path()).unwrap();
    let power = |id: &str| read.runs.iter().find(|run| run.id == id).map(|run| run.readings("SMI - Power Draw").len());
    assert_eq!(ids.map(power), [Some(2), Some(2), Some(3), None]);
    let (report, leftovers) = super::of(&read, None, None).unwrap();
    assert_eq!((report.cells.len(), report.cells[0].repetitions), (1, 3));
    let all: Vec<String> = leftovers.iter().map(Leftover::text).collect();
    assert!(all.iter().any(|l| l == "run a: a reading of `SMI - Power Draw`, torn on line 3: `1700000002000 1`"), "{all:?}");
    assert!(all.iter().any(|l| l == "run glued: 1 of 4 readings of `SMI - Power Draw` is not of its time"), "{all:?}");
    assert!(all.iter().any(|l| l.starts_with("run cut: ") && l.contains("meta.yaml cannot be read")), "{all:?}");
    fs_err::write(store.path().join("7/meta.yaml"), "experiment_id: '7'\nname: [").unwrap();
    let unnamed = tracked(store.path()).unwrap();
    assert_eq!((unnamed.name.as_str(), unnamed.runs.len()), ("7", 3));
    assert!(unnamed.leftovers[0].text().starts_with("experiment 7: its name: "), "{:?}", unnamed.leftovers);
}

#[test]
fn groups_on_several_gpus_are_pooled_only_with_a_word_about_it() {
    let (report, _) = imported(&[("a", "0", None, B, &[]), ("b", "2", None, B, &[])]).unwrap();
    assert_eq!((report.cells.len(), report.cells[0].repetitions), (1, 2));
    assert_eq!(report.indicative[1], "its groups ran on the GPUs 0, 2, which are taken to be alike");
}

/// Runs as radT has MLflow keep them: two groups, a value that is none, and a run that has not ended.
const WRITER: &str = r#"
import sys
from mlflow.entities import Metric, Param
from mlflow.tracking import MlflowClient
client, start = MlflowClient(tracking_uri=sys.argv[1]), 1_700_000_000_000
experiment = client.create_experiment("nets")
parent = None
for at, letter in enumerate(["0_A_MPS", "0_B_MPS", "0"]):
    run = client.create_run(experiment, start_time=start + at, tags={"mlflow.parentRunId": parent} if letter == "0_B_MPS" else {})
    parent = parent or run.info.run_id
    power = [Metric("SMI - Power Draw", value, start + 1000 * at, 0) for at, value in enumerate([100.0, float("nan"), 120.0])]
    params = {"letter": letter, "workload": "1", "file": "nets/net.py", "batch-size": "64"}
    client.log_batch(run.info.run_id, metrics=power, params=[Param(name, value) for name, value in params.items()])
    client.set_terminated(run.info.run_id, end_time=start + 20_000)
client.create_run(experiment, start_time=start)
"#;

#[test]
fn what_mlflow_itself_wrote_is_read_from_files_and_from_a_database() {
    let python = std::env::var("COLLO_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
    let mut can = std::process::Command::new(&python);
    if !can.args(["-c", "import mlflow, sqlalchemy, alembic"]).output().is_ok_and(|o| o.status.success()) {
        return crate::skip::skip(
            "mlflow",
            "python3 cannot import it; `pip install mlflow`, COLLO_TEST_PYTHON names another Python",
        );
    }
    let folder = tempfile::tempdir().unwrap();
    for (uri, place) in [("file://", "files"), ("sqlite:///", "tracked.db")] {
        let place = folder.path().join(place);
        let mut writer = std::process::Command::new(&python);
        writer.args(["-c", WRITER]).arg(format!("{uri}{}", place.display())).env("MLFLOW_ALLOW_FILE_STORE", "true");
        let output = writer.current_dir(folder.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let (report, leftovers) = super::of(&tracked(&place).unwrap(), None, None).unwrap();
        let labels: Vec<(&str, usize)> = report.cells.iter().map(|cell| (cell.label.as_str(), cell.repetitions)).collect();
        assert_eq!(labels, [("net×2 mps b64", 1), ("net solo b64", 1)], "{uri}");
        assert!((report.cells[0].get("power_w").unwrap().estimate - 110.0).abs() < 1e-9, "{uri}");
        let [other] = &leftovers[..] else { panic!("{leftovers:?}") };
        assert!(other.reason.contains("another program's"), "{other:?}");
    }
}

#[test]
fn scripts_of_one_name_in_two_folders_are_two_workloads() {
    let (resnet, vgg) = ([("batch-size", "128"), ("file", "resnet/net.py")], [("batch-size", "128"), ("file", "vgg/net.py")]);
    let low: &[(&str, &[f64])] = &[("SMI - Power Draw", &[100.0])];
    let high: &[(&str, &[f64])] = &[("SMI - Power Draw", &[300.0])];
    let (report, _) = imported(&[("a", "0", None, &resnet, low), ("b", "0", None, &vgg, high)]).unwrap();
    let of = |c: &CellJson| (c.label.clone(), c.get("power_w").unwrap().estimate.round());
    let found: Vec<(String, f64)> = report.cells.iter().map(of).collect();
    assert_eq!(found, [("net solo b128".to_string(), 100.0), ("net-2 solo b128".to_string(), 300.0)]);
}

#[test]
fn groups_of_different_lengths_have_no_common_duration_and_no_common_energy() {
    let long = [("batch-size", "128"), ("max_epoch", "50")];
    let read: &[(&str, &[f64])] = &[("DCGMI - Total Energy Consumption", &[1000.0, 3000.0]), ("SMI - Power Draw", &[100.0])];
    let cell = &imported(&[("a", "0", None, B, read), ("b", "0", None, &long, read)]).unwrap().0.cells[0];
    assert!(cell.repetitions == 2 && cell.get("power_w").is_some());
    for name in OF_WHOLE_RUNS {
        assert!(cell.get(name).is_none() && cell.absent[name].contains("max_epoch"), "{name}");
    }
}
