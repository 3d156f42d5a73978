//! Measurements of trainings, for predictors: read, described, compared with predictions, and fitted.
//!
//! [`sources`] opens what a name leads to: a stored campaign as its data set, a table in CSV or Parquet, the published jobs. A [`table`] is
//! read by its columns for a [`quantity`], and every mistake is reported at its line; its rows become [`measurements`], each of a training
//! by what measured it. [`describing`] traces what each training does in a step, so that a formula can be applied to it.
//!
//! Of [`memory`], of [`utilisation`] and of the [`company`] of groups that share a device, every estimator is then scored on the same rows: fits
//! of these rows that have not seen the architecture of a row, the shipped predictor, the rivals of the literature as they were published,
//! and rules of thumb. The same rows of one device make a predictor of their own.
//!
//! In: names of campaigns and tables, by a [`Caller`] who knows where they are. Out: rows, scores and predictors. What a person should know
//! meanwhile is a remark to the caller; nothing is printed or written here. The formulas themselves are those of `collo_predict`.

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod caller;
pub mod company;
pub mod describing;
pub mod measurements;
pub mod memory;
pub mod quantity;
pub mod sources;
pub mod table;
pub mod utilisation;

pub use caller::{Caller, Request};
