//! What is measured, and how sure a number of it is.
//!
//! In: numbers, one per repetition, and names of quantities. Out: estimates with 95 % intervals, verdicts on their ratios, and text
//! in which the interval decides the digits. This package knows nothing of cells, campaigns, GPUs or files.
//!
//! - [`unit`] has the units: suffixes of names, printed symbols, base units in monitoring.
//! - [`definition`] says what is known of a quantity: name, words, unit, which direction is better, traits.
//! - [`table`] has a row for each; [`Key`] names one. Where code asks which quantities are of some kind, that is a [`Trait`] of their
//!   rows, not a list elsewhere; [`key`] answers.
//! - [`stats`] makes a [`stats::Quantity`] of samples: pools of variances, intervals, tests, corrections for many comparisons.
//! - [`number`] prints one.

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod definition;
#[cfg(test)]
mod guide;
pub mod key;
pub mod number;
pub mod stats;
pub mod table;
pub mod unit;

pub use definition::{Better, Definition, Subject, Trait};
pub use key::is_share;
pub use table::Key;
