//! The report as a database and as an MLflow store, read back by their own readers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::exports::export;
use collo_quantity::Key;
use collo_report::Report;
use collo_report::export::mlflow;
use collo_store::Outcome;
use rusqlite::Connection;

use crate::support::Fixture;

const HOSTILE: &str = "x'); DROP TABLE cells; -- \"q\" \u{1b}\n../..";

fn analysed(fixture: &Fixture) -> Report {
    let folder = tempfile::tempdir().unwrap();
    Report::of(&fixture.write(folder.path())).unwrap()
}

/// One workload, a group that crashed, and a name that is not meant well; simulated.
fn fixture() -> Fixture {
    let crash = Outcome::Crashed { member: 1, status: "exited with 1".into(), message: HOSTILE.into(), place_alone: false };
    let mut f = Fixture::quickstart().group("tiny", 32, 4, "naive", 3.3).ends(crash);
    f.cells[2].record.cell = HOSTILE.into();
    f.device.simulated = true;
    f
}

#[test]
fn a_database_has_every_number_and_every_epoch() {
    let report = analysed(&fixture());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.sqlite");
    std::fs::write(&path, export(&report, "sqlite").unwrap()).unwrap();
    let db = Connection::open(&path).unwrap();
    let count = |sql: &str| db.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(db.query_row("PRAGMA integrity_check", [], |r| r.get::<_, String>(0)).unwrap(), "ok");
    assert_eq!((count("SELECT count(*) FROM campaign"), count("SELECT count(*) FROM cells")), (1, 4));

    let mut read = db
        .prepare("SELECT estimate, low, high, n, unit FROM quantities WHERE cell = ? AND member IS NULL AND quantity = ?")
        .unwrap();
    let mut of = |cell: &str, name: &str| {
        let row = |r: &rusqlite::Row| Ok((r.get(0)?, r.get(1)?, r.get(2)?, r.get(3)?, r.get(4)?));
        read.query_row([cell, name], row).ok()
    };
    for cell in &report.analysis.cells {
        for key in Key::ALL.iter().filter(|k| cell.get(**k).is_some()) {
            let q = cell.get(*key).unwrap();
            let found: (f64, Option<f64>, Option<f64>, i64, Option<String>) = of(cell.name(), key.name).unwrap();
            assert_eq!((found.0, found.1, found.2, found.3), (q.estimate, q.low, q.high, q.n as i64), "{key}");
        }
        // What was not measured has no row.
        assert!(of(cell.name(), "energy_j_per_epoch").is_none());
    }
    let unit: String =
        db.query_row("SELECT DISTINCT unit FROM quantities WHERE quantity = 'memory_bytes'", [], |r| r.get(0)).unwrap();
    assert_eq!(unit, "bytes");

    let runs: usize = report.analysis.cells.iter().map(|c| c.repetitions.len()).sum();
    assert_eq!(count("SELECT count(*) FROM runs"), runs as i64);
    assert_eq!(
        count("SELECT count(*) FROM runs WHERE outcome = 'crashed' AND why LIKE 'crashed, member 1%' AND makespan_s IS NULL"),
        3
    );
    let epochs: usize = report.analysis.cells.iter().flat_map(|c| &c.repetitions).map(|r| r.epochs.len()).sum();
    assert_eq!(count("SELECT count(*) FROM epochs"), epochs as i64);
    // The epoch times of the report follow from the stored epochs.
    let sql =
        "SELECT avg((end_ns - start_ns) * 1e-9) FROM epochs WHERE measured AND cell = 'tiny×2 naive b32' GROUP BY repetition";
    let mut means = db.prepare(sql).unwrap();
    let means: Vec<f64> = means.query_map([], |r| r.get(0)).unwrap().map(|mean| mean.unwrap()).collect();
    let by_hand = (means.iter().map(|mean| mean.ln()).sum::<f64>() / means.len() as f64).exp();
    let told = report.analysis.cells[1].get(Key::EpochTime).unwrap().estimate;
    assert!((by_hand / told - 1.0).abs() < 1e-3, "{by_hand} {told}");
    for table in ["campaign", "cells", "quantities", "runs", "epochs"] {
        assert_eq!(count(&format!("SELECT count(*) FROM {table} WHERE simulated IS NOT 1")), 0, "{table}");
    }
}

/// Files below a folder by their relative path.
fn files(root: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(root).unwrap().display().to_string();
                found.insert(name, std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    found
}

/// A line of a meta.yaml: its values are JSON.
fn meta(text: &str, name: &str) -> serde_json::Value {
    let line = text.lines().find_map(|l| l.strip_prefix(&format!("{name}: "))).unwrap_or_else(|| panic!("no {name} in {text}"));
    serde_json::from_str(line).unwrap()
}

#[test]
fn an_mlflow_store_has_the_layout_of_a_file_store() {
    let report = analysed(&fixture());
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("ml runs");
    let repetitions: usize = report.analysis.cells.iter().map(|c| c.repetitions.len()).sum();
    assert_eq!(mlflow::write(&report, &root).unwrap(), 4 + repetitions);
    let written = files(&root);
    let experiments: Vec<PathBuf> = std::fs::read_dir(&root).unwrap().map(|e| e.unwrap().path()).collect();
    let [experiment] = &experiments[..] else { panic!("{experiments:?}") };
    let id = experiment.file_name().unwrap().to_str().unwrap();
    let own = &written[&format!("{id}/meta.yaml")];
    assert_eq!((meta(own, "experiment_id"), meta(own, "name")), (id.into(), "collo quickstart".into()));
    assert!(meta(own, "artifact_location").as_str().unwrap().contains("/ml%20runs/"), "{own}");
    let mut children = 0;
    for run in std::fs::read_dir(experiment).unwrap().map(|e| e.unwrap().path()).filter(|p| p.is_dir()) {
        let run_id = run.file_name().unwrap().to_str().unwrap();
        let at = |part: &str| written.get(&format!("{id}/{run_id}/{part}"));
        let text = at("meta.yaml").unwrap();
        assert_eq!((meta(text, "run_id"), meta(text, "experiment_id")), (run_id.into(), id.into()));
        assert!(meta(text, "start_time").as_u64() <= meta(text, "end_time").as_u64());
        assert_eq!(at("tags/collo.simulated").unwrap(), "true");
        if let Some(parent) = at("tags/mlflow.parentRunId") {
            assert!(written.contains_key(&format!("{id}/{parent}/meta.yaml")));
            children += 1;
        }
        let crashed = at("tags/collo.outcome").unwrap().starts_with("crashed");
        assert_eq!(meta(text, "status"), if crashed { 4 } else { 3 });
        assert_eq!(at("metrics/slowdown").or(at("metrics/member_0.epoch_time_s")).is_none(), crashed, "{run_id}");
    }
    assert_eq!(children, repetitions);
    for (name, text) in written.iter().filter(|(name, _)| name.contains("/metrics/")) {
        for line in text.lines() {
            let [at_ms, value, step] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{name}: {line}") };
            assert!(
                at_ms.parse::<u64>().unwrap() > 1_700_000_000_000
                    && step.parse::<u64>().is_ok()
                    && value.parse::<f64>().unwrap().is_finite()
            );
        }
    }
    // Written again, it is the same store.
    mlflow::write(&report, &root).unwrap();
    assert_eq!(files(&root), written);
}

#[test]
fn a_report_written_again_leaves_nothing_that_it_no_longer_says() {
    let mut f = fixture();
    f.indicative = vec!["--force".into()];
    let folder = tempfile::tempdir().unwrap();
    mlflow::write(&analysed(&f), folder.path()).unwrap();
    let before = files(folder.path());
    let reasons = before.keys().filter(|name| name.ends_with("tags/collo.reasons")).count();
    // What the user attached to a run.
    let own = before.keys().find(|name| name.ends_with("tags/collo.outcome")).unwrap();
    let artifact = own.replace("tags/collo.outcome", "artifacts/note.txt");
    std::fs::write(folder.path().join(&artifact), "mine").unwrap();

    f.indicative.clear();
    mlflow::write(&analysed(&f), folder.path()).unwrap();
    let mut after = files(folder.path());
    assert!(after.keys().filter(|name| name.ends_with("tags/collo.reasons")).count() < reasons);
    assert_eq!(after.remove(&artifact).as_deref(), Some("mine"));
    let fresh = tempfile::tempdir().unwrap();
    mlflow::write(&analysed(&f), fresh.path()).unwrap();
    let names = |all: &BTreeMap<String, String>| all.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&after), names(&files(fresh.path())));
}

#[test]
fn a_run_s_name_is_the_same_in_both_places_where_mlflow_has_it() {
    let folder = tempfile::tempdir().unwrap();
    mlflow::write(&analysed(&fixture()), folder.path()).unwrap();
    let written = files(folder.path());
    let mut numbered = 0;
    for (name, tag) in written.iter().filter(|(name, _)| name.ends_with("/tags/mlflow.runName")) {
        let run = meta(&written[&name.replace("tags/mlflow.runName", "meta.yaml")], "run_name");
        assert_eq!(run, tag.as_str());
        numbered += usize::from(tag.ends_with(" #2"));
    }
    assert_eq!(numbered, 4);
}

/// What MLflow itself says of a store: a line for each run.
const READER: &str = r#"
import sys
from mlflow.tracking import MlflowClient
client = MlflowClient("file://" + sys.argv[1])
[experiment] = [e for e in client.search_experiments() if e.name != "Default"]
print("experiment", experiment.name)
for run in client.search_runs([experiment.experiment_id], max_results=1000):
    data = run.data
    child = "mlflow.parentRunId" in data.tags
    history = client.get_metric_history(run.info.run_id, "member_0.epoch_time_s") if child else []
    gain = data.metrics.get("throughput_gain")
    print("run", run.info.status, "child" if child else "cell", data.params["degree"], gain, len(history), repr(run.info.run_name))
"#;

#[test]
fn mlflow_itself_reads_the_store() {
    let python = std::env::var("COLLO_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
    let has = Command::new(&python).args(["-c", "import mlflow"]).output();
    if !has.is_ok_and(|o| o.status.success()) {
        return crate::skip::skip(
            "mlflow",
            "python3 cannot import it; `pip install mlflow-skinny`, COLLO_TEST_PYTHON names another Python",
        );
    }
    let report = analysed(&fixture());
    let folder = tempfile::tempdir().unwrap();
    mlflow::write(&report, folder.path()).unwrap();
    let read =
        Command::new(&python).args(["-c", READER]).arg(folder.path()).env("MLFLOW_ALLOW_FILE_STORE", "true").output().unwrap();
    let (said, wrong) = (String::from_utf8_lossy(&read.stdout), String::from_utf8_lossy(&read.stderr));
    assert!(read.status.success(), "{wrong}");
    assert!(!wrong.contains("Malformed"), "{wrong}");
    let gain = report.analysis.cells[1].get(Key::ThroughputGain).unwrap().estimate;
    let repetitions: usize = report.analysis.cells.iter().map(|c| c.repetitions.len()).sum();
    assert_eq!(said.lines().filter(|l| l.starts_with("run ")).count(), 4 + repetitions, "{said}");
    assert!(said.starts_with("experiment collo quickstart\n"), "{said}");
    assert!(said.contains(&format!("run FINISHED cell 2 {gain} 0 'tiny×2 naive b32'")), "{said}");
    assert_eq!(said.matches("run FINISHED child 2 None 1 ").count(), 3, "{said}");
    assert_eq!(said.matches("run FAILED child 4 None 0 ").count(), 3, "{said}");
}

#[test]
fn the_load_of_the_host_has_another_name_than_the_cpu_of_the_members() {
    let report = analysed(&Fixture::quickstart());
    let cell = &report.analysis.cells[1];
    let (own, host) = (cell.get(Key::Cpu).unwrap().estimate, cell.metrics["cpu_ratio"].estimate);
    assert_ne!(own, host);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.sqlite");
    std::fs::write(&path, export(&report, "sqlite").unwrap()).unwrap();
    let db = Connection::open(&path).unwrap();
    let mut read = db.prepare("SELECT estimate FROM quantities WHERE cell = ? AND member IS NULL AND quantity = ?").unwrap();
    let mut all =
        |name: &str| -> Vec<f64> { read.query_map([cell.name(), name], |r| r.get(0)).unwrap().map(|x| x.unwrap()).collect() };
    assert_eq!((all("cpu_ratio"), all("metrics.cpu_ratio")), (vec![own], vec![host]));
    let root = folder.path().join("mlruns");
    mlflow::write(&report, &root).unwrap();
    let written = files(&root);
    let tag = written.iter().find(|(name, tag)| name.ends_with("/tags/mlflow.runName") && *tag == cell.name()).unwrap().0;
    let value = |name: &str| -> f64 {
        written[&tag.replace("tags/mlflow.runName", &format!("metrics/{name}"))].split(' ').nth(1).unwrap().parse().unwrap()
    };
    assert_eq!((value("cpu_ratio"), value("metrics.cpu_ratio")), (own, host));
}
