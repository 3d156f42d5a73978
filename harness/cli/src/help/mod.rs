//! Verbs for shells and readers: completions of commands, manual pages, help on commands and the pages of the guide.
//! In: the definition of the command line, the guide. Out: their text.

pub mod completions;
pub mod guide;
pub mod man;
