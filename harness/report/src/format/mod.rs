//! Texts for people and programs.

pub mod quoted;
pub mod words;
