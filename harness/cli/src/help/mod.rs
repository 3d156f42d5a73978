//! Verbs for shells and readers: completions of commands, and manual pages. In: the definition of the command line. Out: their text.

pub mod completions;
pub mod man;
