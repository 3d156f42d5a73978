//! `journal.jsonl`: the history of a campaign, one entry per line, appended and flushed. A line truncated by a crash is skipped.
//!
//! It contains the digest of `campaign.json` and of every `run.json`, and those contain the digests of everything else. A digest
//! is written before the file is renamed into place, so that no file can exist without one, at whatever instant collo is killed.

use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use fs_err as fs;
use fs_err::os::unix::fs::OpenOptionsExt;
use nix::fcntl::OFlag;
use serde::{Deserialize, Serialize};

use crate::{Result, clock};

const NAME: &str = "journal.jsonl";
/// A line for each of a million runs takes a quarter of that.
const LIMIT_BYTES: u64 = 1 << 30;

/// One line of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum JournalEntry {
    /// `campaign.json` is about to be renamed into place, with this digest.
    Manifest { at_utc: String, sha256: String },
    /// A collo started or resumed the campaign.
    Opened { at_utc: String, pid: u32, todo: u32 },
    /// A run began.
    Began { at_utc: String, folder: String },
    /// A run is about to be renamed into place; `sha256` is the digest of its `run.json`.
    Recorded { at_utc: String, folder: String, outcome: String, sha256: String },
    /// Files that runs wrote beside the scripts; a folder ends in `/`. They are not ingredients, here and in later campaigns.
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
        let path = campaign.join(NAME);
        if path.exists() {
            // Neither a pipe nor a device is written to.
            drop(collo_text::open_regular(&path)?);
        }
        let mut options = fs::OpenOptions::new();
        options.create(true).append(true).read(true).custom_flags((OFlag::O_NONBLOCK | OFlag::O_NOCTTY).bits());
        let mut file = options.open(&path)?;
        if file.metadata()?.len() > 0 {
            let mut last = [0];
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
            if last != *b"\n" {
                // A crash left half a line: end it, so that the next entry stands on its own.
                file.write_all(b"\n")?;
            }
        }
        Ok(Journal { file })
    }

    /// A collo started or resumed the campaign, with `todo` runs left.
    pub fn opened(&mut self, todo: u32) -> Result<()> {
        self.append(&JournalEntry::Opened { at_utc: clock::utc_now(), pid: std::process::id(), todo })
    }

    /// A run began.
    pub fn began(&mut self, folder: &str) -> Result<()> {
        self.append(&JournalEntry::Began { at_utc: clock::utc_now(), folder: folder.into() })
    }

    /// Runs wrote these files beside the scripts.
    pub fn wrote(&mut self, files: &[String]) -> Result<()> {
        self.append(&JournalEntry::Wrote { at_utc: clock::utc_now(), files: files.to_vec() })
    }

    /// This collo stops.
    pub fn closed(&mut self, reason: &str) -> Result<()> {
        self.append(&JournalEntry::Closed { at_utc: clock::utc_now(), reason: reason.into() })
    }

    pub(crate) fn manifest(&mut self, sha256: &str) -> Result<()> {
        self.append(&JournalEntry::Manifest { at_utc: clock::utc_now(), sha256: sha256.into() })
    }

    pub(crate) fn recorded(&mut self, folder: &str, outcome: &str, sha256: &str) -> Result<()> {
        let (folder, outcome, sha256) = (folder.into(), outcome.into(), sha256.into());
        self.append(&JournalEntry::Recorded { at_utc: clock::utc_now(), folder, outcome, sha256 })
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
    let path = campaign.join(NAME);
    if std::fs::symlink_metadata(&path).is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound) {
        return Ok(Vec::new());
    }
    let bytes = collo_text::read_small(&path, LIMIT_BYTES)?;
    Ok(bytes.split(|b| *b == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect())
}
