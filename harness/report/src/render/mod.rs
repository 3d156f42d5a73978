//! From an analysis to text: the terminal, JSON, the report's files.

pub mod terminal;
mod write;

pub use write::write;
