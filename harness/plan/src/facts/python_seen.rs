//! What is known of the Python that members will run under before anything is provided: it decides which cells can run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::workload::WorkloadPython;

/// The interpreters of a plan, as they are found. Nothing is known of those of another machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PythonSeen {
    /// It is the user's own, which is taken as it is: nothing is installed beside it.
    pub is_own: bool,
    /// Interpreters that say that they are built with Python's global lock, by what they serve.
    pub with_lock: BTreeMap<WorkloadPython, PathBuf>,
    /// Workloads, by name, with the program that they start and that is nowhere.
    pub missing: BTreeSet<(String, String)>,
    /// The same of programs that observers around and inside them need.
    pub missing_around: BTreeSet<(String, String)>,
}

impl PythonSeen {
    /// The interpreter that serves these workloads, if it is known to have the lock.
    pub fn with_lock(&self, environment: &WorkloadPython) -> Option<&Path> {
        self.with_lock.get(environment).map(PathBuf::as_path)
    }
}
