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
    /// How many of the last lines are those of a manifest: each collo may have been killed, or have found the disk full, before its
    /// own was in place.
    last_manifests: usize,
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
            let is_manifest = matches!(entry, JournalEntry::Manifest { .. });
            digests.last_manifests = if is_manifest { digests.last_manifests + 1 } else { 0 };
            match entry {
                JournalEntry::Manifest { sha256, .. } => digests.manifests.push(sha256),
                JournalEntry::Recorded { folder, sha256, .. } => digests.runs.entry(folder).or_default().push(sha256),
                _ => {}
            }
        }
        digests
    }

    pub fn manifest(&self, sha256: &str) -> Recorded {
        if self.manifests.is_empty() {
            return Recorded::Never;
        }
        let mut may_be_there = self.manifests.iter().rev().take(1 + self.last_manifests);
        if may_be_there.any(|digest| digest == sha256) { Recorded::Same } else { Recorded::Changed }
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
