//! Campaigns beside each other: two of them, several GPU models, one and what was published, many nights.
//!
//! In: reports as JSON, from any source, and the summaries of nights that are kept beside them. Out: verdicts that separate a difference
//! from noise, and documents that show them. This package knows nothing of how a report is worded or exported, and nothing here prints.
//!
//! - [`history`] judges the nights of an experiment: what campaigns differ by although nothing changed, and which cells stepped.
//! - [`side`] reads one side, finds the pairs of two, and names what their environments differ by.
//! - [`ratio`] judges ratios, and what all cells have in common ([`ratio::between`]).
//! - [`campaigns`] compares two sides, [`generations`] several GPU models, [`published`] a side with published results.

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod campaigns;
mod error;
pub mod generations;
pub mod history;
pub mod published;
#[cfg(test)]
#[path = "../../quantity/tests/support/random.rs"]
pub mod random;
pub mod ratio;
pub mod side;

pub use error::{Error, Result};
