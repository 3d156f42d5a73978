//! Compares files with the journal: is a file still the one that collo recorded?

use std::collections::BTreeMap;
use std::path::Path;

use crate::{JournalEntry, journal};

/// How a file compares with its digest in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// Unchanged.
    Same,
    /// There is no digest of it.
    Never,
    /// Changed since.
    Changed,
}

/// The digests of a journal.
#[derive(Debug, Default)]
pub(crate) struct Digests {
    /// Of `campaign.json`, in the order of writing.
    manifests: Vec<String>,
    /// True if the last line is that of a manifest: collo may have been killed before it was in place.
    ends_with_manifest: bool,
    /// Of `run.json`, by folder: several if a run was measured again.
    pub runs: BTreeMap<String, Vec<String>>,
    /// Why the journal cannot be read.
    pub unreadable: Option<String>,
}

impl Digests {
    pub fn read(campaign: &Path) -> Digests {
        let mut digests = Digests::default();
        let entries = journal::read(campaign).unwrap_or_else(|e| {
            digests.unreadable = Some(e.to_string());
            Vec::new()
        });
        for entry in entries {
            digests.ends_with_manifest = matches!(entry, JournalEntry::Manifest { .. });
            match entry {
                JournalEntry::Manifest { sha256, .. } => digests.manifests.push(sha256),
                JournalEntry::Recorded { folder, sha256, .. } => digests.runs.entry(folder).or_default().push(sha256),
                _ => {}
            }
        }
        digests
    }

    pub fn manifest(&self, sha256: &str) -> Recorded {
        let [before @ .., last] = &self.manifests[..] else { return Recorded::Never };
        let is_next_missing = || self.ends_with_manifest && before.last().is_some_and(|d| d == sha256);
        if last == sha256 || is_next_missing() { Recorded::Same } else { Recorded::Changed }
    }

    /// Whether the manifest recorded last was never renamed into place.
    pub fn is_ahead_of(&self, sha256: &str) -> bool {
        self.manifests.last().is_some_and(|last| last != sha256) && self.manifest(sha256) == Recorded::Same
    }

    /// Only interrupted and failed runs are measured again, so an earlier digest of the folder is valid too: collo may have been
    /// killed before the later run was in place.
    pub fn run(&self, folder: &str, sha256: &str) -> Recorded {
        match self.runs.get(folder) {
            None => Recorded::Never,
            Some(known) if known.iter().any(|d| d == sha256) => Recorded::Same,
            Some(_) => Recorded::Changed,
        }
    }
}
