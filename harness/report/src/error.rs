//! What can go wrong between stored runs and a report.

use std::io;

/// Errors of this crate; every variant names what it is about.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The campaign could not be read.
    #[error(transparent)]
    Store(#[from] collo_store::Error),
    /// A file of the report could not be written; the message names the path.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A template could not be filled.
    #[error("the page could not be rendered: {0}")]
    Page(#[from] askama::Error),
    /// A figure could not be turned into pixels.
    #[error("figure `{figure}` could not be drawn: {reason}")]
    Figure { figure: String, reason: String },
}

/// The result of every fallible call of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;
