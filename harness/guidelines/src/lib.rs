//! From numbers with intervals to guidelines.
//!
//! In: a [`collo_analysis::campaign::Analysis`]. Out: guidelines that say whether they hold here, on which evidence, and whether published
//! results agree; and both, numbers and guidelines, as `report.json`. This package knows nothing of sections, pages or exports.
//!
//! - [`published`] reads what others published, which is embedded in the binary.
//! - [`verdict`] decides what may be said of groups: answers that count what could not be judged, rankings with their ties, scopes,
//!   agreement, the next command.
//! - [`rule`] has what guidelines share: a claim with its evidence, pairs of groups, counts of verdicts.
//! - [`groups`] and [`policies`] have a guideline in each file; [`list`] asks them all, in the page's order.
//! - [`report_json`] writes and reads `report.json` through the same types, and derives its schema from them.

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod error;
pub mod groups;
pub mod list;
pub mod policies;
pub mod published;
#[cfg(test)]
#[path = "../../quantity/tests/support/random.rs"]
pub mod random;
pub mod report_json;
pub mod rule;
pub mod verdict;

pub use error::{Error, Result};
