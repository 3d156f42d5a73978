//! Formats numbers and words for people. It knows quantities, and nothing of what they were measured on.

pub mod number;
pub mod quoted;
pub mod words;
