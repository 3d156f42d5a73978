//! From an analysis to text: the terminal, JSON, the report's files.

pub mod terminal;
mod trace_cell;
mod write;

pub use write::{live, write};
