//! Whether the files of a stored run are unchanged since they were recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crate::trace::{ATTEMPTS, HAPPENED, TASKS};
use crate::{Outcome, StoredFile, StoredRun, digest, names, tables};

impl StoredRun {
    /// A table of the run; `None` if its record does not name it, whatever its folder contains.
    pub fn table(&self, name: &str) -> Option<PathBuf> {
        self.record.files.contains_key(name).then(|| self.path.join(name))
    }

    /// The tables its numbers come from that differ from what was recorded, each with the reason: `epochs.parquet does not have
    /// its checksum`.
    pub fn damage(&self) -> Vec<String> {
        self.damaged(|name| name.ends_with(".parquet"))
    }

    /// The same for all its files.
    pub(crate) fn damaged(&self, wanted: impl Fn(&str) -> bool) -> Vec<String> {
        let files = self.record.files.iter().filter(|(name, _)| wanted(name));
        files.filter_map(|(name, stored)| Some(format!("{name} {}", self.differs(name, stored)?))).collect()
    }

    /// Where a file of this name is if it is as recorded, and may be read; else what differs.
    pub fn intact(&self, name: &str) -> Result<PathBuf, String> {
        let Some(stored) = self.record.files.get(name) else { return Err(format!("{name} is not in its record")) };
        match (self.differs(name, stored), self.file(name)) {
            (None, Some(path)) => Ok(path),
            (why, _) => Err(format!("{name} {}", why.unwrap_or("is missing"))),
        }
    }

    fn differs(&self, name: &str, stored: &StoredFile) -> Option<&'static str> {
        let Some(path) = self.file(name) else { return Some("is not in the run's folder") };
        // What has another length need not be read, however long it is.
        match std::fs::metadata(&path) {
            Err(_) => Some("is missing"),
            Ok(found) if found.is_file() && found.len() != stored.bytes => Some("does not have its checksum"),
            Ok(_) => match digest::sha256_file(&path) {
                Ok(found) if found == stored.sha256 => None,
                Ok(_) => Some("does not have its checksum"),
                Err(_) => Some("cannot be read"),
            },
        }
    }

    /// The path of a file named in the record.
    fn file(&self, name: &str) -> Option<PathBuf> {
        let path = self.path.join(names::read(name)?);
        // Older records have such names as they were.
        let literal = || self.path.join(name);
        Some(if name.contains('\\') && !path.exists() { literal() } else { path })
    }
}

/// The files of a run with times to the nanosecond, which no two measurements have in common.
const TIMED: [&str; 4] = ["epochs.parquet", TASKS, ATTEMPTS, HAPPENED];

/// Runs that cannot both be measurements: launched and ended at the same nanosecond, or with the same epochs, tasks, attempts or
/// events. Tables without a row are alike in all runs, and prove nothing. Returns the folders of all of them.
pub fn copies(runs: &BTreeMap<String, StoredRun>) -> BTreeSet<String> {
    let mut by_time = BTreeMap::<_, Vec<&String>>::new();
    let mut by_content = BTreeMap::<_, Vec<(&String, &StoredRun)>>::new();
    for (folder, run) in runs {
        let t = &run.record.timeline;
        if t.ended_ns > t.launched_ns {
            by_time.entry((t.launched_ns, t.ended_ns)).or_default().push(folder);
        }
        for name in TIMED.iter().filter(|_| run.record.outcome == Outcome::Completed) {
            if let Some(stored) = run.record.files.get(*name) {
                by_content.entry((name, &stored.sha256)).or_default().push((folder, run));
            }
        }
    }
    let same_content = by_content.into_iter().filter(|((name, _), same)| same.len() > 1 && !is_empty(same[0].1, name));
    let same_content = same_content.flat_map(|(_, same)| same.into_iter().map(|(folder, _)| folder));
    by_time.into_values().filter(|same| same.len() > 1).flatten().chain(same_content).cloned().collect()
}

/// Whether a file says nothing; one that cannot be read is not known to be empty.
fn is_empty(run: &StoredRun, name: &str) -> bool {
    match name.ends_with(".parquet") {
        true => run.table(name).and_then(|path| tables::rows(&path).ok()) == Some(0),
        false => run.record.files.get(name).is_some_and(|stored| stored.bytes == 0),
    }
}
