//! What a person should know while something goes on, before its result.

use crate::Diagnostics;

#[derive(Debug, Clone)]
pub enum Remark {
    /// Left out where only results are wanted.
    Note(String),
    Warning(String),
    /// A part of what was asked for failed, and the rest goes on.
    Failure(Diagnostics),
}
