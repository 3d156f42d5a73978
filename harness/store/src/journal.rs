//! `journal.jsonl`: what happened to a campaign, a line each, appended and flushed. A line that a crash cut off is skipped.

use std::io::Write;
use std::path::Path;

use fs_err as fs;
use serde::{Deserialize, Serialize};

use crate::{Result, clock};

/// One line of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum JournalEntry {
    /// A collo took the campaign up.
    Opened { at_utc: String, pid: u32, todo: u32 },
    /// A run began.
    Began { at_utc: String, folder: String },
    /// A run is in place; `sha256` is the digest of its `run.json`.
    Recorded { at_utc: String, folder: String, outcome: String, sha256: String },
    /// Files beside the scripts that runs wrote; a folder ends in `/`. They are no ingredients, here and in campaigns to come.
    Wrote { at_utc: String, files: Vec<String> },
    /// The collo that had opened it stopped: `complete`, `interrupted`, `no room` …
    Closed { at_utc: String, reason: String },
}

/// The journal of one campaign, open for appending.
pub struct Journal {
    file: fs::File,
}

impl Journal {
    pub(crate) fn open(campaign: &Path) -> Result<Self> {
        let path = campaign.join("journal.jsonl");
        let cut_off = fs::read(&path).is_ok_and(|old| old.last().is_some_and(|&b| b != b'\n'));
        let mut file = fs::OpenOptions::new().create(true).append(true).open(path)?;
        if cut_off {
            // A crash left half a line: end it, so that the next entry stands on its own.
            file.write_all(b"\n")?;
        }
        Ok(Journal { file })
    }

    /// A collo took the campaign up, with so many runs to do.
    pub fn opened(&mut self, todo: u32) -> Result<()> {
        self.append(&JournalEntry::Opened { at_utc: clock::utc_now(), pid: std::process::id(), todo })
    }

    /// A run began.
    pub fn began(&mut self, folder: &str) -> Result<()> {
        self.append(&JournalEntry::Began { at_utc: clock::utc_now(), folder: folder.into() })
    }

    /// A run is in place.
    pub fn recorded(&mut self, run: &Path, outcome: &str) -> Result<()> {
        let folder = run.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let sha256 = crate::sha256_file(&run.join("run.json"))?;
        self.append(&JournalEntry::Recorded { at_utc: clock::utc_now(), folder, outcome: outcome.into(), sha256 })
    }

    /// Runs wrote these files beside the scripts.
    pub fn wrote(&mut self, files: &[String]) -> Result<()> {
        self.append(&JournalEntry::Wrote { at_utc: clock::utc_now(), files: files.to_vec() })
    }

    /// This collo stops.
    pub fn closed(&mut self, reason: &str) -> Result<()> {
        self.append(&JournalEntry::Closed { at_utc: clock::utc_now(), reason: reason.into() })
    }

    fn append(&mut self, entry: &JournalEntry) -> Result<()> {
        let mut line = serde_json::to_string(entry).map_err(|e| crate::Error::Io(e.into()))?;
        line.push('\n');
        self.file.write_all(line.as_bytes())?;
        self.file.sync_data()?;
        Ok(())
    }
}

pub(crate) fn read(campaign: &Path) -> Result<Vec<JournalEntry>> {
    let path = campaign.join("journal.jsonl");
    if !path.exists() {
        return Ok(Vec::new());
    }
    let bytes = fs::read(path)?;
    Ok(String::from_utf8_lossy(&bytes).lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}
