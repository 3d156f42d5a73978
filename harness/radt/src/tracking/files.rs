//! MLflow's file store, as mlflow/store/tracking/file_store.py of MLflow 3.17 writes it: `EXPERIMENT/RUN/meta.yaml`, and beside it
//! `params/NAME` and `tags/NAME` with the text, `metrics/NAME` with lines of milliseconds, value, and perhaps step and data set.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use collo_text::{Diagnostic, Diagnostics, quoted};
use serde_json::Value as Json;

use super::{Leftover, StoredTrack, TrackedExperiment, TrackedRun, leftover, unreadable};

const LARGEST_TEXT: u64 = 1_000_000;
/// A week of readings each second.
const LARGEST_METRIC: u64 = 64_000_000;
/// `RunStatus` of MLflow, as its file store writes it.
const STATUS: [(u64, &str); 5] = [(1, "RUNNING"), (2, "SCHEDULED"), (3, "FINISHED"), (4, "FAILED"), (5, "KILLED")];

/// The experiments of a store, or the one that a folder is.
pub(super) fn experiments(folder: &Path) -> Result<Vec<TrackedExperiment>, Diagnostics> {
    if folder.join("meta.yaml").is_file() {
        return Ok(vec![experiment(folder)?]);
    }
    folders(folder)?.iter().filter(|below| below.join("meta.yaml").is_file()).map(|below| experiment(below)).collect()
}

fn folders(folder: &Path) -> Result<Vec<PathBuf>, Diagnostic> {
    let entries = fs_err::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>).map_err(|e| unreadable(folder, e))?;
    let mut all: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    all.sort();
    Ok(all)
}

fn experiment(folder: &Path) -> Result<TrackedExperiment, Diagnostics> {
    let id = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut leftovers = Vec::new();
    let meta = yaml(&folder.join("meta.yaml")).unwrap_or_else(|why| {
        leftovers.push(Leftover { place: format!("experiment {id}"), reason: format!("its name: {}", in_line(&why)) });
        serde_json::Map::new()
    });
    let name = meta.get("name").map(collo_plan::workload::plain).unwrap_or_else(|| id.clone());
    let mut runs = Vec::new();
    for run in folders(folder)?.into_iter().filter(|run| run.join("meta.yaml").is_file()) {
        // The name of the folder, because YAML may read an id of digits as a number.
        let id = run.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let stored = stored(&run, &id).map_err(|why| leftover(&id, &in_line(&why)));
        match stored.and_then(StoredTrack::judged) {
            Ok(run) => runs.push(run),
            Err(leftover) => leftovers.push(leftover),
        }
    }
    Ok(TrackedExperiment { id, name, runs, leftovers, place: collo_text::shown(folder) })
}

/// An error as the reason of a leftover.
fn in_line(why: &Diagnostic) -> String {
    let cause = why.cause().map(|cause| format!(": {cause}")).unwrap_or_default();
    format!("{}{cause}", why.what())
}

fn stored(folder: &Path, id: &str) -> Result<StoredTrack, Diagnostic> {
    let meta = yaml(&folder.join("meta.yaml"))?;
    let milliseconds = |name: &str| meta.get(name).and_then(Json::as_u64);
    let status = match meta.get("status") {
        Some(Json::Number(n)) => {
            STATUS.iter().find(|(number, _)| Some(*number) == n.as_u64()).map_or("unknown", |(_, word)| word).into()
        }
        Some(other) => collo_plan::workload::plain(other),
        None => "unknown".into(),
    };
    Ok(StoredTrack {
        id: id.into(),
        folder: folder.into(),
        is_deleted: meta.get("lifecycle_stage").and_then(Json::as_str) == Some("deleted"),
        status,
        start_ms: milliseconds("start_time"),
        end_ms: milliseconds("end_time"),
        params: texts(&folder.join("params"))?,
        tags: texts(&folder.join("tags"))?,
    })
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

/// The readings of a metric of a run, and what was left out of them.
pub(super) fn readings(run: &TrackedRun, metric: &str) -> (Vec<(u64, f64)>, Option<Leftover>) {
    let path = run.folder.join("metrics").join(metric);
    if !path.is_file() {
        return (Vec::new(), None);
    }
    let bytes = match collo_text::read_small(&path, LARGEST_METRIC) {
        Ok(bytes) => bytes,
        Err(e) => return (Vec::new(), Some(leftover(&run.id, &format!("`{metric}`: {e}")))),
    };
    let text = String::from_utf8_lossy(&bytes);
    let (mut readings, mut torn) = (Vec::new(), Vec::new());
    for (number, line) in text.split_inclusive('\n').enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        match reading(line) {
            Some(reading) => readings.push(reading),
            None => torn.push((number + 1, line.trim())),
        }
    }
    let left_out = torn.first().map(|(number, line)| {
        let count = if torn.len() == 1 { "a reading".into() } else { format!("{} readings", torn.len()) };
        leftover(&run.id, &format!("{count} of `{metric}`, torn on line {number}: {}", quoted(line)))
    });
    (readings, left_out)
}

/// A line as MLflow writes and reads it (`_log_run_metric`, `_get_metric_from_line`): 2, 3 or 5 fields. Without its line feed it may be a part
/// of what was to be written, even if it can be read.
fn reading(line: &str) -> Option<(u64, f64)> {
    let fields: Vec<&str> = line.strip_suffix('\n')?.split_whitespace().collect();
    let (at_ms, value, rest) = match &fields[..] {
        [at_ms, value, rest @ ..] if matches!(rest.len(), 0 | 1 | 3) => (at_ms, value, rest),
        _ => return None,
    };
    if rest.first().is_some_and(|step| step.parse::<i64>().is_err()) {
        return None;
    }
    Some((at_ms.parse().ok()?, value.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_not_whole_is_no_reading() {
        assert_eq!(reading("1795590030000 1030.5 0\n"), Some((1_795_590_030_000, 1030.5)));
        assert_eq!(reading("1795590030000 1030.5\n"), Some((1_795_590_030_000, 1030.5)));
        assert_eq!(reading("1795590030000 -1 -1 data d1ge5t\r\n"), Some((1_795_590_030_000, -1.0)));
        for torn in [
            "1795590030000 1030.5 0",
            "1795590030000 1",
            "1795590030000\n",
            "1795590030000 1030.51795590031000 1031.5 0\n",
            "1795590030000 1030.5 0.5\n",
            "1795590030000 1030,5 0\n",
            "\u{fffd} 1030.5 0\n",
        ] {
            assert_eq!(reading(torn), None, "{torn}");
        }
    }
}
