//! Errors of drawings and documents.

use std::io;

use collo_text::Diagnostic;

/// Errors of this package; every variant names what it is about.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be written; the message names the path.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A template could not be filled.
    #[error("the page could not be rendered: {0}")]
    Page(#[from] askama::Error),
    /// A figure could not be turned into pixels.
    #[error("figure `{figure}` could not be drawn: {reason}")]
    Figure { figure: String, reason: String },
}

impl From<Error> for Diagnostic {
    fn from(e: Error) -> Diagnostic {
        let shown = Diagnostic::new(e.to_string()).of_machine();
        match e {
            Error::Io(e) => shown.way_out_of(&e),
            Error::Page(_) | Error::Figure { .. } => shown,
        }
    }
}

/// The result of every fallible call of this package.
pub type Result<T, E = Error> = std::result::Result<T, E>;
