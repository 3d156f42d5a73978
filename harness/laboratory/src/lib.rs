//! Measurements of trainings, for predictors: read, described, and made into a predictor.
//!
//! [`sources`] opens what a name leads to: a stored campaign as its data set, a table in CSV or Parquet, the published jobs. A [`table`] is
//! read by its columns for a [`quantity`], and every mistake is reported at its line; its rows become [`measurements`], each of a training
//! by what measured it. [`described`] has what each training does in a step, so that a formula can be applied to it.
//!
//! Of [`memory`], of [`utilisation`] and of the [`company`] of groups that share a device, the rows of one source are then what
//! `collo_predict` fits and scores: [`fit`] makes a predictor of them, [`predictor_text`] prints one, and [`evaluate`] compares every
//! estimator with the rows.
//!
//! In: names of campaigns and tables, by a [`Caller`] who knows where they are. Out: rows and predictors. What a person should know
//! meanwhile is a remark to the caller; nothing is printed or written here. The formulas themselves are those of `collo_predict`.

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod caller;
pub mod company;
pub mod described;
pub mod evaluate;
mod farthest;
mod fit;
mod lines;
pub mod measurements;
pub mod memory;
mod predictor_text;
pub mod quantity;
pub mod sources;
pub mod table;
pub mod utilisation;

pub use caller::{Caller, Request};
pub use fit::fit;
pub use predictor_text::predictor_text;
