//! The MLflow store that radT tracks to: its runs with their parameters and readings.
//!
//! In: a folder, or a database. Out: the one experiment of radT's in it. What is damaged is left out, with a word about it: a writer may
//! have been killed in the middle of a line. [`files`] and [`database`] read what MLflow writes, here is judged whether it is radT's.

mod database;
mod files;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use collo_quantity::number;
use collo_text::{Diagnostic, Diagnostics, quoted};

use super::{Leftover, all_of};
use database::Database;
pub use database::is_database;

/// An MLflow experiment.
#[derive(Debug)]
pub struct TrackedExperiment {
    pub id: String,
    pub name: String,
    /// Runs that radT started, in order of their start.
    pub runs: Vec<TrackedRun>,
    pub leftovers: Vec<Leftover>,
    /// Where it is, to be named.
    place: String,
}

/// A run of radT's.
#[derive(Debug)]
pub struct TrackedRun {
    pub id: String,
    /// Its folder, or that of the database.
    pub folder: PathBuf,
    /// `FINISHED`, or in whatever other way it ended.
    pub status: String,
    pub start_ms: u64,
    pub end_ms: Option<u64>,
    pub params: BTreeMap<String, String>,
    /// The first run of its group; `None` if it is that itself.
    pub parent: Option<String>,
    /// By the names of their metrics, in the order of their times: milliseconds and value.
    readings: BTreeMap<String, Vec<(u64, f64)>>,
}

impl TrackedRun {
    /// The readings of a metric; empty if it was not tracked.
    pub fn readings(&self, metric: &str) -> &[(u64, f64)] {
        self.readings.get(metric).map_or(&[], Vec::as_slice)
    }

    /// Keep the readings that can be of this run. A time far outside of it is that of a line which was written into a torn one.
    fn keep(&mut self, metric: &str, mut readings: Vec<(u64, f64)>) -> Option<Leftover> {
        let from_ms = self.start_ms.saturating_sub(CLOCK_SLACK_MS);
        let to_ms = self.end_ms.map_or(u64::MAX, |end_ms| end_ms.saturating_add(CLOCK_SLACK_MS));
        let all = readings.len();
        readings.retain(|(at_ms, _)| (from_ms..=to_ms).contains(at_ms));
        readings.sort_by_key(|(at_ms, _)| *at_ms);
        let others = all - readings.len();
        self.readings.insert(metric.to_string(), readings);
        let (all, are) = (number::count(all, "reading"), if others == 1 { "is" } else { "are" });
        (others > 0).then(|| leftover(&self.id, &format!("{others} of {all} of `{metric}` {are} not of its time")))
    }
}

/// Clocks of a run and of its listeners may differ, and a run may be waited for.
const CLOCK_SLACK_MS: u64 = 3_600_000;

fn leftover(run: &str, reason: &str) -> Leftover {
    Leftover { place: format!("run {run}"), reason: reason.into() }
}

/// What MLflow keeps of a run, from a store of either kind.
#[derive(Debug, Default)]
struct StoredTrack {
    id: String,
    folder: PathBuf,
    is_deleted: bool,
    status: String,
    start_ms: Option<u64>,
    end_ms: Option<u64>,
    params: BTreeMap<String, String>,
    tags: BTreeMap<String, String>,
}

impl StoredTrack {
    /// A run of radT's, or why it is none.
    fn judged(mut self) -> Result<TrackedRun, Leftover> {
        if self.is_deleted {
            return Err(leftover(&self.id, "it was deleted"));
        }
        // radT passes them to `mlflow run`: `COMMAND` in radt/constants.py.
        if ["letter", "workload", "file"].iter().any(|name| !self.params.contains_key(*name)) {
            let others = "radT's parameters `letter`, `workload` and `file` are absent: it is another program's";
            return Err(leftover(&self.id, others));
        }
        let Some(start_ms) = self.start_ms else { return Err(leftover(&self.id, "it has no start")) };
        let parent = self.tags.remove("mlflow.parentRunId").filter(|parent| *parent != self.id);
        Ok(TrackedRun {
            id: self.id,
            folder: self.folder,
            status: self.status,
            start_ms,
            end_ms: self.end_ms,
            params: self.params,
            parent,
            readings: BTreeMap::new(),
        })
    }
}

/// The experiment of this id or name that radT tracked to a store, or its only one. `metrics` are read of its runs.
pub fn read<'a>(
    place: &Path,
    wanted: Option<&str>,
    metrics: impl Iterator<Item = &'a str> + Clone,
) -> Result<TrackedExperiment, Diagnostics> {
    let database = if is_database(place) { Some(Database::open(place)?) } else { None };
    let all = match &database {
        Some(database) => database.experiments()?,
        None => files::experiments(place)?,
    };
    let mut found = only(place, all, wanted)?;
    for run in &mut found.runs {
        for metric in metrics.clone() {
            let (readings, torn) = match &database {
                Some(database) => (database.readings(&run.id, metric)?, None),
                None => files::readings(run, metric),
            };
            found.leftovers.extend(torn);
            found.leftovers.extend(run.keep(metric, readings));
        }
    }
    if let Some(database) = database {
        database.expect_unchanged()?;
    }
    Ok(found)
}

/// The experiment that is wanted, or the only one with runs of radT's.
fn only(place: &Path, all: Vec<TrackedExperiment>, wanted: Option<&str>) -> Result<TrackedExperiment, Diagnostics> {
    let is_wanted = |e: &TrackedExperiment| wanted.is_none_or(|wanted| e.id == wanted || e.name == wanted);
    if let Some(wanted) = wanted.filter(|_| !all.iter().any(is_wanted)) {
        let what = format!("no experiment of {} is named {}", named(place), quoted(wanted));
        let names: Vec<&str> = all.iter().map(|e| e.name.as_str()).collect();
        return Err(Diagnostic::new(what).hint(format!("its experiments are {}", collo_text::fields::listed(&names))).into());
    }
    let (mut with_runs, others): (Vec<_>, Vec<_>) = all.into_iter().filter(is_wanted).partition(|e| !e.runs.is_empty());
    match with_runs.len() {
        0 => Err(nothing(place, &others.into_iter().flat_map(|e| e.leftovers).collect::<Vec<_>>())),
        1 => {
            let mut found = with_runs.remove(0);
            found.runs.sort_by(|a, b| (a.start_ms, &a.id).cmp(&(b.start_ms, &b.id)));
            Ok(found)
        }
        _ => {
            let named_one = |e: &TrackedExperiment| format!("{} ({}, {})", e.place, e.name, number::count(e.runs.len(), "run"));
            let what = format!("{} has {} experiments of radT's, and a report is of one", named(place), with_runs.len());
            let list = with_runs.iter().map(named_one).collect::<Vec<_>>().join("; ");
            Err(Diagnostic::new(what).caused_by(list).hint("name one: `--experiment NAME`").into())
        }
    }
}

fn named(place: &Path) -> String {
    Some(collo_text::shown(place)).filter(|shown| !shown.is_empty()).unwrap_or_else(|| "this folder".into())
}

/// What MLflow 3.17 names its database, in the folder where a client was started (`DEFAULT_TRACKING_URI` in mlflow/tracking/_tracking_service/utils.py).
const DEFAULT_DATABASE: &str = "mlflow.db";

fn nothing(place: &Path, leftovers: &[Leftover]) -> Diagnostics {
    let beside = place.parent().map(|folder| folder.join(DEFAULT_DATABASE));
    let databases = [Some(place.join(DEFAULT_DATABASE)), beside];
    let hint = match databases.into_iter().flatten().find(|path| path.is_file() && path.as_path() != place) {
        Some(database) => format!("MLflow keeps runs in a database by default: name {}", collo_text::shown(&database)),
        None => {
            "name the folder `mlruns` of a local MLflow file store, one experiment in it, or the database `mlflow.db`; runs on a \
                 tracking server are not read"
                .into()
        }
    };
    let found = Diagnostic::new(format!("no run of radT's is in {}", named(place))).hint(hint);
    if leftovers.is_empty() { found } else { found.caused_by(all_of(leftovers)) }.into()
}

fn unreadable(path: &Path, why: impl std::fmt::Display) -> Diagnostic {
    Diagnostic::new(format!("{} cannot be read", collo_text::shown(path))).caused_by(why)
}
