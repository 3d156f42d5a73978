//! Errors of reports that are read.

use std::io;

use collo_text::Diagnostic;

/// Errors of this package; every variant names what it is about.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read; the message names the path.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A file or value given as a report is not one, or has a version that this collo does not read.
    #[error("`{what}` is not a collo report: {reason}")]
    NotAReport { what: String, reason: String },
}

impl From<Error> for Diagnostic {
    fn from(e: Error) -> Diagnostic {
        let shown = Diagnostic::new(e.to_string()).of_machine();
        match e {
            Error::NotAReport { .. } => shown.hint("`collo report CAMPAIGN` rewrites it"),
            Error::Io(e) => shown.way_out_of(&e),
        }
    }
}

/// The result of every fallible call of this package.
pub type Result<T, E = Error> = std::result::Result<T, E>;
