//! The MLflow file store that radT tracks to: its runs with their parameters and metrics.
//!
//! The layout is that of mlflow/store/tracking/file_store.py of MLflow 3.17: `EXPERIMENT/RUN/meta.yaml`, and beside it `params/NAME`
//! and `tags/NAME` with the text, `metrics/NAME` with lines of milliseconds, value, and perhaps step and data set.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use collo_text::quoted;
use collo_text::{Diagnostic, Diagnostics};
use serde_json::Value as Json;

use super::{Leftover, all_of};

const LARGEST_TEXT: u64 = 1_000_000;
/// A week of readings each second.
const LARGEST_METRIC: u64 = 64_000_000;
/// `RunStatus` of MLflow, as its file store writes it.
const STATUS: [(u64, &str); 5] = [(1, "RUNNING"), (2, "SCHEDULED"), (3, "FINISHED"), (4, "FAILED"), (5, "KILLED")];

/// An MLflow experiment.
#[derive(Debug)]
pub struct TrackedExperiment {
    pub id: String,
    pub name: String,
    /// Runs that radT started, in order of their start.
    pub runs: Vec<TrackedRun>,
    pub leftovers: Vec<Leftover>,
}

/// A run of radT's.
#[derive(Debug, Clone)]
pub struct TrackedRun {
    pub id: String,
    pub folder: PathBuf,
    /// `FINISHED`, or in whatever other way it ended.
    pub status: String,
    pub start_ms: u64,
    pub end_ms: Option<u64>,
    pub params: BTreeMap<String, String>,
    /// The first run of its group; `None` if it is that itself.
    pub parent: Option<String>,
}

impl TrackedRun {
    /// The readings of a metric in the order of their times: milliseconds and value. Empty if it was not tracked.
    pub fn readings(&self, metric: &str) -> Result<Vec<(u64, f64)>, Diagnostic> {
        let path = self.folder.join("metrics").join(metric);
        if !path.is_file() {
            return Ok(Vec::new());
        }
        let text = collo_text::read_small_text(&path, LARGEST_METRIC).map_err(|e| unreadable(&path, e))?;
        let mut readings = Vec::new();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let mut fields = line.split_whitespace();
            let at_ms = fields.next().and_then(|field| field.parse::<u64>().ok());
            let value = fields.next().and_then(|field| field.parse::<f64>().ok());
            let Some(reading) = at_ms.zip(value) else {
                let why = format!("line {} is {}, not milliseconds and a value", number + 1, quoted(line));
                return Err(unreadable(&path, why));
            };
            readings.push(reading);
        }
        readings.sort_by_key(|(at_ms, _)| *at_ms);
        Ok(readings)
    }
}

/// The one experiment of a store that radT tracked to, or a folder that is one.
pub fn read(folder: &Path) -> Result<TrackedExperiment, Diagnostics> {
    if folder.join("meta.yaml").is_file() {
        let found = experiment(folder)?;
        return if found.runs.is_empty() { Err(nothing(folder, &found.leftovers)) } else { Ok(found) };
    }
    let mut with_runs = Vec::new();
    let mut leftovers = Vec::new();
    for below in folders(folder)?.into_iter().filter(|f| f.join("meta.yaml").is_file()) {
        let found = experiment(&below)?;
        match found.runs.is_empty() {
            true => leftovers.extend(found.leftovers),
            false => with_runs.push((below, found)),
        }
    }
    match with_runs.len() {
        0 => Err(nothing(folder, &leftovers)),
        1 => Ok(with_runs.remove(0).1),
        _ => {
            let named = |(path, e): &(PathBuf, TrackedExperiment)| {
                format!("{} ({}, {} runs)", collo_text::shown(path), e.name, e.runs.len())
            };
            let all: Vec<String> = with_runs.iter().map(named).collect();
            let what = format!("{} has {} experiments of radT's, and a report is of one", place(folder), all.len());
            Err(Diagnostic::new(what).caused_by(all.join("; ")).hint("name the folder of one").into())
        }
    }
}

fn place(folder: &Path) -> String {
    Some(collo_text::shown(folder)).filter(|shown| !shown.is_empty()).unwrap_or_else(|| "this folder".into())
}

fn nothing(folder: &Path, leftovers: &[Leftover]) -> Diagnostics {
    let what = format!("no run of radT's is in {}", place(folder));
    let hint =
        "name the folder `mlruns` of a local MLflow file store, or one experiment in it; runs on a tracking server are not read";
    let found = Diagnostic::new(what).hint(hint);
    if leftovers.is_empty() { found } else { found.caused_by(all_of(leftovers)) }.into()
}

fn unreadable(path: &Path, why: impl std::fmt::Display) -> Diagnostic {
    Diagnostic::new(format!("{} cannot be read", collo_text::shown(path))).caused_by(why)
}

fn folders(folder: &Path) -> Result<Vec<PathBuf>, Diagnostic> {
    let entries = fs_err::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>).map_err(|e| unreadable(folder, e))?;
    let mut all: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    all.sort();
    Ok(all)
}

fn experiment(folder: &Path) -> Result<TrackedExperiment, Diagnostics> {
    let id = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let meta = yaml(&folder.join("meta.yaml"))?;
    let name = meta.get("name").map(collo_plan::workload::plain).unwrap_or_else(|| id.clone());
    let mut found = TrackedExperiment { id, name, runs: Vec::new(), leftovers: Vec::new() };
    for run in folders(folder)?.into_iter().filter(|run| run.join("meta.yaml").is_file()) {
        match tracked(&run)? {
            Ok(run) => found.runs.push(run),
            Err(leftover) => found.leftovers.push(leftover),
        }
    }
    found.runs.sort_by(|a, b| (a.start_ms, &a.id).cmp(&(b.start_ms, &b.id)));
    Ok(found)
}

/// A run, or why it is none of radT's.
fn tracked(folder: &Path) -> Result<Result<TrackedRun, Leftover>, Diagnostics> {
    // The name of the folder, because YAML may read an id of digits as a number.
    let id = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let leftover = |reason: &str| Ok(Err(Leftover { place: format!("run {id}"), reason: reason.into() }));
    let meta = yaml(&folder.join("meta.yaml"))?;
    if meta.get("lifecycle_stage").and_then(Json::as_str) == Some("deleted") {
        return leftover("it was deleted");
    }
    let (params, tags) = (texts(&folder.join("params"))?, texts(&folder.join("tags"))?);
    // radT passes them to `mlflow run`: `COMMAND` in radt/constants.py.
    if ["letter", "workload", "file"].iter().any(|name| !params.contains_key(*name)) {
        return leftover("radT's parameters `letter`, `workload` and `file` are absent: it is another program's");
    }
    let milliseconds = |name: &str| meta.get(name).and_then(Json::as_u64);
    let Some(start_ms) = milliseconds("start_time") else { return leftover("it has no start") };
    let status = match meta.get("status") {
        Some(Json::Number(n)) => {
            STATUS.iter().find(|(number, _)| Some(*number) == n.as_u64()).map_or("unknown", |(_, word)| word).into()
        }
        Some(other) => collo_plan::workload::plain(other),
        None => "unknown".into(),
    };
    let parent = tags.get("mlflow.parentRunId").filter(|parent| **parent != id).cloned();
    Ok(Ok(TrackedRun { id, folder: folder.into(), status, start_ms, end_ms: milliseconds("end_time"), params, parent }))
}

fn yaml(path: &Path) -> Result<serde_json::Map<String, Json>, Diagnostic> {
    let text = collo_text::read_small_text(path, LARGEST_TEXT).map_err(|e| unreadable(path, e))?;
    // A snippet of the file is printed with the error otherwise.
    serde_saphyr::from_str(&text).map_err(|e| unreadable(path, e.to_string().lines().next().unwrap_or_default()))
}

/// The small files of a folder by name.
fn texts(folder: &Path) -> Result<BTreeMap<String, String>, Diagnostic> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten().filter(|entry| entry.path().is_file()) {
        let text = collo_text::read_small_text(&entry.path(), LARGEST_TEXT).map_err(|e| unreadable(&entry.path(), e))?;
        found.insert(entry.file_name().to_string_lossy().into_owned(), text.trim().to_string());
    }
    Ok(found)
}
