//! The records of a campaign and of its runs, which refer to each other: what was planned, expected, predicted and observed.

pub mod campaign;
pub mod expectation;
mod failure;
pub mod predicted;
pub mod run;
