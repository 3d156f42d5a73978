//! From an analysis to text: the terminal, JSON, the report's files.

pub mod json;
pub mod terminal;
pub mod words;
mod write;

pub use write::write;
