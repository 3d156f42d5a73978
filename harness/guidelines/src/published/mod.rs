//! What others published, embedded in the binary from `reports/published/*.json`: figures and statements with their conditions and
//! sources. Out: which cell, policy, launch or observer each is about, and how its conditions compare with ours. Published numbers have
//! no interval here, so that nothing is judged by them.
//!
//! To add a published figure: an entry of such a file, with its conditions, the regime that it was measured in, and its source.

pub mod conditions;
pub mod manager;
pub mod position;
pub mod square;
pub mod study;
pub mod watching;

/// Results from the literature, never ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Published {
    pub statement: &'static str,
    /// A few words for the column beside our number.
    pub short: &'static str,
    pub source: &'static str,
}
