//! Errors between stored runs and a report.

use std::io;

use collo_text::Diagnostic;

/// Errors of this crate; every variant names what it is about.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The campaign could not be read.
    #[error(transparent)]
    Store(#[from] collo_store::Error),
    /// A file is no report.
    #[error(transparent)]
    Guidelines(#[from] collo_guidelines::Error),
    /// A report that was read has no runs, and this needs them.
    #[error("{what} needs the stored runs, and `{path}` has none")]
    NoRuns { what: String, path: String },
    /// A file of the report could not be written; the message names the path.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// SQLite refused to build the database.
    #[error("the database could not be written: {0}")]
    Database(String),
    /// A page could not be rendered, or a figure not drawn.
    #[error(transparent)]
    Figures(#[from] collo_figures::Error),
}

impl From<Error> for Diagnostic {
    fn from(e: Error) -> Diagnostic {
        let shown = Diagnostic::new(e.to_string());
        match e {
            Error::Store(e) => e.into(),
            Error::Guidelines(e) => e.into(),
            Error::NoRuns { .. } => shown.hint("where its runs are stored: `collo report CAMPAIGN`"),
            Error::Figures(e) => e.into(),
            Error::Io(e) => shown.of_machine().way_out_of(&e),
            Error::Database(_) => shown.of_machine(),
        }
    }
}

/// The result of every fallible call of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;
