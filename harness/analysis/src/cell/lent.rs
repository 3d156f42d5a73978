//! Whose baselines a cell is compared with, if they are not of its own campaign.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A campaign whose baselines groups of another part or campaign are compared with.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub struct Lender {
    pub campaign: String,
    /// Absent for an origin of a merged campaign, which does not say so.
    pub experiment: Option<String>,
    pub created_utc: String,
}

impl Lender {
    /// `f950`, as it is typed.
    pub fn short_id(&self) -> &str {
        collo_store::last_part(&self.campaign)
    }
}
