//! From an analysis to text: the terminal, JSON, Markdown, the page.

pub mod html;
pub mod markdown;
pub mod terminal;
mod write;

pub use write::{Written, write};
