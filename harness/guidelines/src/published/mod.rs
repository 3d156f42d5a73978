//! What others published, embedded in the binary from `reports/published/*.json`: figures and statements with their conditions and
//! sources. Out: which cell, policy, launch or observer each is about, and how its conditions compare with ours. Published numbers have
//! no interval here, so that nothing is judged by them.
//!
//! To add a published figure: an entry of such a file, with its conditions, the regime that it was measured in, and its source.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub mod conditions;
pub mod manager;
pub mod position;
pub mod square;
pub mod study;
pub mod watching;

/// Results from the literature, never ours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub struct Published {
    pub statement: Cow<'static, str>,
    /// A few words for the column beside our number.
    #[serde(skip)]
    pub short: &'static str,
    pub source: Cow<'static, str>,
}

impl Published {
    pub const fn new(statement: &'static str, short: &'static str, source: &'static str) -> Published {
        Published { statement: Cow::Borrowed(statement), short, source: Cow::Borrowed(source) }
    }
}
