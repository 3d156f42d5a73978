//! Charts and documents, before and after they have markup.
//!
//! In: names, values with intervals, and texts, already chosen. Out: drawings as SVG and PNG, and one document as a page, as Markdown and
//! as lines of a terminal. This package knows nothing of campaigns, cells or guidelines, and nothing here prints.
//!
//! - [`modes`] has the names and the order of sharing modes, which every figure, table and sentence follows.
//! - [`draw`] has what charts are drawn with: axes, frames, marks, the look of modes, and figures as files.
//! - [`chart`] has the families of charts: bars, rows of marks, lines, heat, timelines and others.
//! - [`document`] has the parts of a document, and alone knows HTML and Markdown. What can be shown in every form is
//!   [`document::Present`].

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod chart;
pub mod document;
pub mod draw;
mod error;
pub mod modes;

pub use error::{Error, Result};
