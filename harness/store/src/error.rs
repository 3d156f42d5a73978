//! What can go wrong between a run in memory and a run on disk.

use std::io;
use std::path::PathBuf;

use crate::names::last_part;
use collo_text::Diagnostic;

/// Errors of the store; every variant names the file or campaign it is about.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read or written; the message of the source names the path.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A file exists, but is not what its name says.
    #[error("{path} is damaged, or was not written by collo: {reason}")]
    Corrupt { path: PathBuf, reason: String },
    /// The manifest was modified since collo wrote it.
    #[error("`campaign.json` of `{campaign}` was changed after collo wrote it")]
    Changed { campaign: String },
    /// The journal has no digest of its campaign's manifest.
    #[error("the journal of `{campaign}` is missing or damaged: it has no digest of `campaign.json`")]
    NoDigest { campaign: String },
    /// Written by a newer version of collo.
    #[error("campaign `{campaign}` has schema {found}, this collo reads up to {known}")]
    NewerSchema { campaign: String, found: u32, known: u32 },
    /// Another process is measuring this campaign.
    #[error("campaign `{campaign}` is being run by another collo (process {pid}, since {since})")]
    Busy { campaign: String, pid: u32, since: String },
    /// Its file system has no locks, so that nothing would keep another collo away.
    #[error("`{campaign}` cannot be locked, and another collo could measure it at the same time: {source}")]
    NoLocks {
        campaign: String,
        #[source]
        source: io::Error,
    },
    /// No campaign matches the text.
    #[error("no campaign `{asked}`{known}")]
    NotFound { asked: String, known: String },
    /// There is no campaign at all.
    #[error("no campaign `{asked}`: none is stored in {place}")]
    NoneStored { asked: String, place: PathBuf, first: &'static str },
    /// The text is a prefix of several campaigns.
    #[error("`{asked}` begins {} campaigns: {}", candidates.len(), candidates.join(", "))]
    Ambiguous { asked: String, candidates: Vec<String> },
    /// A table could not be written or read.
    #[error("{path}: {source}")]
    Table {
        path: PathBuf,
        #[source]
        source: parquet::errors::ParquetError,
    },
}

/// The result of every fallible call of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// True if the device of `runs/` is full: what is stored is safe, and the campaign can be resumed.
    pub fn is_full_disk(&self) -> bool {
        // A file may also have grown to its own limit, `ulimit -f`.
        let full = |e: &io::Error| {
            matches!(e.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge)
        };
        match self {
            Error::Io(e) => full(e),
            Error::Table { source: parquet::errors::ParquetError::External(inner), .. } => {
                inner.downcast_ref::<io::Error>().is_some_and(full)
            }
            // parquet turns some I/O errors into text; the text of ENOSPC and EDQUOT is the system's own.
            Error::Table { source, .. } => {
                let text = source.to_string();
                ["No space left on device", "quota exceeded", "File too large"].iter().any(|words| text.contains(words))
            }
            _ => false,
        }
    }

    pub(crate) fn corrupt(path: impl Into<PathBuf>, reason: impl ToString) -> Self {
        Error::Corrupt { path: path.into(), reason: reason.to_string() }
    }
}

impl From<Error> for Diagnostic {
    fn from(e: Error) -> Diagnostic {
        let shown = Diagnostic::new(e.to_string());
        match e {
            Error::NotFound { asked, .. } if asked.contains("last-") => {
                shown.hint("another experiment: `NAME/last-1`; all: `collo list`")
            }
            Error::NotFound { .. } => shown.hint("all: `collo list`"),
            Error::NoneStored { first, .. } => shown.hint(format!("{first}; `-C DIR` looks in another project")),
            Error::Ambiguous { candidates, .. } => {
                let last = candidates.first().map_or("", |c| last_part(c));
                let part = match candidates.iter().filter(|c| last_part(c) == last).count() {
                    0 | 1 => format!("the last part, `{last}`"),
                    _ => format!("the whole id, `{}`", candidates[0]),
                };
                shown.hint(format!("give {part}, or `last`"))
            }
            Error::NewerSchema { .. } => shown.of_machine().hint("update collo; nothing was changed"),
            Error::Busy { campaign, .. } => shown.of_machine().hint(format!("watch it with `collo status {campaign}`")),
            Error::NoLocks { .. } => shown
                .of_machine()
                .hint("mount the file system of `runs/` with locks (Lustre: `-o flock`), or measure on a local disk: `collo -C DIR run …`"),
            Error::Changed { .. } | Error::NoDigest { .. } => {
                shown.of_machine().hint("restore the file; for other changes since recording: `collo verify`")
            }
            Error::Corrupt { .. } => {
                shown.of_machine().hint("restore it from a copy, or move its folder out of `runs/`; nothing was changed")
            }
            Error::Io(e) => shown.of_machine().way_out_of(&e),
            Error::Table { .. } => shown.of_machine(),
        }
    }
}
