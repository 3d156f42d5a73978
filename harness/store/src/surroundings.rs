//! How a campaign was started: its command line, the variables that can influence it, the packages of its Python. Provenance,
//! never a conclusion. The command lines of members are in their runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The command and the environment of a campaign when it began.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Surroundings {
    /// The command line of collo, a word each.
    pub command: Vec<String>,
    /// Variables of the listed families that were set where collo was started. Values that may be secrets are left out.
    #[serde(default)]
    pub variables: BTreeMap<String, String>,
    /// By interpreter, and what is laid over it: the packages that members can import, name → version.
    #[serde(default)]
    pub packages: BTreeMap<String, BTreeMap<String, String>>,
}
