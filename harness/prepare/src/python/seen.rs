//! Finds what is known of the Python that members will run under before anything is provided.

use collo_plan::facts::PythonSeen;
use std::path::Path;

use super::{find_system, interpreter_of, system_python};
use collo_plan::workload::WorkloadPython;

/// What is known of these interpreters. `own` is the user's Python. `asked`: those of which it matters whether they have the lock. One that gives no answer has none to be
/// refused for: what it does is evidence, and an interpreter that does not work is an error of its own.
pub fn seen<'a>(own: Option<&Path>, asked: impl IntoIterator<Item = &'a WorkloadPython>) -> PythonSeen {
    let mut found = PythonSeen { is_own: own.is_some(), ..PythonSeen::default() };
    for environment in asked {
        let path = match (environment, own) {
            (WorkloadPython::Torch, Some(path)) => Some(interpreter_of(path)),
            // Pinned environments are built from it.
            (WorkloadPython::Torch, None) | (WorkloadPython::System, _) => find_system().ok().map(|found| found.path),
            (WorkloadPython::Own(path), _) => Some(interpreter_of(path)),
        };
        let locked = path.filter(|path| system_python::has_lock(path) == Some(true));
        found.with_lock.extend(locked.map(|path| (environment.clone(), path)));
    }
    found
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
            let found = seen(Some(&path), &asked);
            assert!(found.is_own);
            for environment in &asked {
                assert_eq!(found.with_lock(environment), has.then_some(&*path), "{name}");
            }
        }
        assert_eq!(seen(Some(Path::new("/nowhere/python")), &[WorkloadPython::Torch]).with_lock.len(), 0);
    }
}
