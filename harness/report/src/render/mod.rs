//! From an analysis to text: the terminal, JSON, Markdown, the page.

pub mod html;
pub mod json;
pub mod markdown;
pub mod terminal;
pub mod words;
mod write;

pub use write::{Written, replace, write};
