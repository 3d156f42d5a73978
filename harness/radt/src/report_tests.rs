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

fn imported(runs: &[Tracked<'_>]) -> Result<(ReportJson, Vec<Leftover>), Diagnostics> {
    of(&tracking::read(store(runs).path())?, None, Some("NVIDIA A100-SXM4-40GB"))
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
    let nothing = tracking::read(store(&[]).path()).unwrap_err().to_string();
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
        let tracked = tracking::read(store(&[("a", "0", None, params, &[])]).path()).unwrap();
        super::of(&tracked, Some(&workloads), None).unwrap().0.cells[0].label.clone()
    };
    assert_eq!(of(&[("batch-size", "128"), ("lr", "0.1"), ("amp", "")]), "net solo b128", "0.1 is its default");
    assert_eq!(of(&[("batch-size", "128"), ("lr", "0.2"), ("amp", "")]), "net solo b128 lr=0.2");
    assert_eq!(of(&[("batch-size", "128"), ("lr", "0.1")]), "net-radt solo b128 lr=0.1", "it has --amp");
    assert_eq!(of(&[("batch-size", "128"), ("amp", "")]), "net-radt solo b128 amp=true", "its default is not the script's");
}

#[test]
fn groups_on_several_gpus_are_pooled_only_with_a_word_about_it() {
    let (report, _) = imported(&[("a", "0", None, B, &[]), ("b", "2", None, B, &[])]).unwrap();
    assert_eq!((report.cells.len(), report.cells[0].repetitions), (1, 2));
    assert_eq!(report.indicative[1], "its groups ran on the GPUs 0, 2, which are taken to be alike");
}
