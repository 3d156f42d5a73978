//! How a campaign was started: its command line, the variables that can influence it, the packages of its Python. Provenance,
//! never a conclusion. The command lines of members are in their runs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The command and the environment of a campaign when it began.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub struct Surroundings {
    /// The command line of collo, a word each.
    pub command: Vec<String>,
    /// Variables of the listed families that were set where collo was started. Values that may be secrets are left out.
    #[serde(default)]
    pub variables: BTreeMap<String, String>,
    /// How the kernel shares the CPU among the members; absent in campaigns of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub scheduling: Option<Scheduling>,
    /// By interpreter, and what is laid over it: the packages that members can import, name → version.
    #[serde(default)]
    pub packages: BTreeMap<String, BTreeMap<String, String>>,
}

/// What decides about the CPU time of a member besides its cores. Each member is a session of its own, with all its processes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scheduling {
    /// The kernel shares the CPU by session first (`sched_autogroup_enabled`), and by process inside one.
    pub autogroup: Option<bool>,
    /// The nice value of collo, which members inherit.
    pub nice: Option<i32>,
    /// The control group of collo, as `/proc/self/cgroup` gives it.
    pub cgroup: Option<String>,
}
