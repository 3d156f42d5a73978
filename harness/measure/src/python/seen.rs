//! What is known of the Python that members will run under before anything is provided: it decides which cells can run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{find_system, interpreter_of, system_python};
use crate::workload::WorkloadPython;

/// The interpreters of a plan, as they are found. Nothing is known of those of another machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PythonSeen {
    /// It is the user's own, which is taken as it is: nothing is installed beside it.
    pub is_own: bool,
    /// Interpreters that say that they are built with Python's global lock, by what they serve.
    with_lock: BTreeMap<WorkloadPython, PathBuf>,
}

impl PythonSeen {
    /// `own` is the user's Python. `asked`: those of which it matters whether they have the lock. One that gives no answer has none to be
    /// refused for: what it does is evidence, and an interpreter that does not work is an error of its own.
    pub fn find<'a>(own: Option<&Path>, asked: impl IntoIterator<Item = &'a WorkloadPython>) -> PythonSeen {
        let mut seen = PythonSeen { is_own: own.is_some(), with_lock: BTreeMap::new() };
        for environment in asked {
            let path = match (environment, own) {
                (WorkloadPython::Torch, Some(path)) => Some(interpreter_of(path)),
                // Pinned environments are built from it.
                (WorkloadPython::Torch, None) | (WorkloadPython::System, _) => find_system().ok().map(|found| found.path),
                (WorkloadPython::Own(path), _) => Some(interpreter_of(path)),
            };
            let locked = path.filter(|path| system_python::has_lock(path) == Some(true));
            seen.with_lock.extend(locked.map(|path| (environment.clone(), path)));
        }
        seen
    }

    /// The interpreter that serves these workloads, if it is known to have the lock.
    pub fn with_lock(&self, environment: &WorkloadPython) -> Option<&Path> {
        self.with_lock.get(environment).map(PathBuf::as_path)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// Programs that answer like interpreters of which each was built in another way, and what is concluded.
    #[test]
    fn only_who_says_to_have_the_lock_is_known_to_have_it() {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, answer, has) in [
            ("free", "echo 1", false),
            ("locked", "echo 0", true),
            ("before-3.13", "echo None", true),
            ("silent", "true", false),
            ("broken", "echo 0; exit 1", false),
        ] {
            let path = folder.path().join(name);
            fs_err::write(&path, format!("#!/bin/sh\n{answer}\n")).expect("a program");
            fs_err::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("its mode");
            let asked = [WorkloadPython::Own(path.clone()), WorkloadPython::Torch];
            let seen = PythonSeen::find(Some(&path), &asked);
            assert!(seen.is_own);
            for environment in &asked {
                assert_eq!(seen.with_lock(environment), has.then_some(&*path), "{name}");
            }
        }
        assert_eq!(PythonSeen::find(Some(Path::new("/nowhere/python")), &[WorkloadPython::Torch]).with_lock.len(), 0);
    }
}
