//! What is known of the Python that members will run under before anything is provided: it decides which cells can run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use collo_text::shown;

use crate::sharing::Refusal;
use crate::workload::{Workload, WorkloadPython};

/// The interpreters of a plan, as they are found. Nothing is known of those of another machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PythonSeen {
    /// It is the user's own, which is taken as it is: nothing is installed beside it.
    pub is_own: bool,
    /// Interpreters that say that they are built with Python's global lock, by what they serve.
    pub with_lock: BTreeMap<WorkloadPython, PathBuf>,
    /// Programs that workloads start and that are nowhere, by the name of the workload.
    pub missing: BTreeMap<String, String>,
}

impl PythonSeen {
    /// The interpreter that serves these workloads, if it is known to have the lock.
    pub fn with_lock(&self, environment: &WorkloadPython) -> Option<&Path> {
        self.with_lock.get(environment).map(PathBuf::as_path)
    }

    /// Why the processes of a workload cannot be started, if that is known.
    pub fn not_startable(&self, workload: &Workload) -> Option<Refusal> {
        let program = self.missing.get(&workload.name)?;
        let name = &workload.name;
        let reason = match program.contains('/') {
            true => format!("`{program}` of workload `{name}` does not start: no such program"),
            false => {
                format!("`{program}` of workload `{name}` does not start: it is not in `bin` of its Python, nor on the PATH")
            }
        };
        let file = shown(&workload.folder.join("workload.toml"));
        let hint = match program.contains('/') {
            true => format!("a path in {file} begins in the folder of that file; `chmod +x` makes a file a program"),
            false => format!("install it, or name its path in {file}; `environment` there names another Python"),
        };
        Some(Refusal { reason, hint: Some(hint) })
    }
}
