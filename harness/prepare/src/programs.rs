//! Where the processes of a workload find their programs: first in its Python's environment, as after `activate`.
//!
//! In: a workload and its interpreters. Out: the variables that activate them, and which programs are not there at all.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use collo_plan::cell::Member;
use collo_plan::workload::{Workload, WorkloadPython};
use collo_text::is_program;

use crate::interpreters::Interpreters;

/// Activate the Python of a workload: what `bin/activate` of a virtual environment sets
/// (<https://docs.python.org/3/library/venv.html#how-venvs-work>) is set, on top of a PATH that the workload may set.
pub(crate) fn activate(env: &mut Environment, workload: &Workload, interpreters: &Interpreters) {
    let folders = interpreters.program_folders(workload);
    let Some(bin) = folders.last() else { return };
    let path = std::env::join_paths(folders.iter().cloned().chain(std::env::split_paths(&search_path(env))));
    // A folder with a colon cannot be in a PATH; the commands that name it in full work all the same.
    if let Ok(path) = path {
        env.insert("PATH".into(), Some(path.to_string_lossy().into_owned()));
    }
    let environment = bin.parent().filter(|folder| folder.join("pyvenv.cfg").exists() || !folder.exists());
    env.insert("VIRTUAL_ENV".into(), environment.map(|folder| folder.display().to_string()));
    env.insert("PYTHONHOME".into(), None);
}

/// Variables on top of collo's own environment; `None` removes one.
pub type Environment = BTreeMap<String, Option<String>>;

/// The PATH of a process with this environment.
fn search_path(env: &Environment) -> OsString {
    match env.get("PATH") {
        Some(Some(path)) => path.into(),
        Some(None) => OsString::new(),
        None => std::env::var_os("PATH").unwrap_or_default(),
    }
}

/// Workloads with a program that they start and that is not there. `foreseen` are the interpreters that they will have; it is called only if a
/// program is neither a Python nor on the PATH.
pub fn missing<'a>(
    members: impl Iterator<Item = &'a Arc<Member>>,
    foreseen: &dyn Fn(&Arc<Workload>) -> Option<Interpreters>,
) -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    let mut seen: Vec<(String, String)> = Vec::new();
    for member in members {
        let (workload, spec) = (member.workload(), member.spec());
        // What `prepare` starts comes first, and may provide what is started after it.
        let words = workload.prepare_for(&spec).ok().flatten().or_else(|| workload.command_for(&spec).ok());
        let Some(program) = words.and_then(|words| words.into_iter().next()) else { continue };
        let key = (workload.name.clone(), program);
        if seen.contains(&key) {
            continue;
        }
        let own = workload.variables_for(&spec).unwrap_or_default().remove("PATH");
        let path = own.map_or_else(|| std::env::var_os("PATH").unwrap_or_default(), OsString::from);
        if is_missing(&key.1, workload, &path, foreseen) {
            found.insert(key.clone());
        }
        seen.push(key);
    }
    found
}

/// Whether a program is known not to be there. What an environment that is not built yet may provide is not known.
fn is_missing(
    program: &str,
    workload: &Arc<Workload>,
    path: &OsString,
    foreseen: &dyn Fn(&Arc<Workload>) -> Option<Interpreters>,
) -> bool {
    if matches!(program, "python" | "python3") {
        return false;
    }
    if program.contains('/') {
        return !is_program(&workload.folder.join(program));
    }
    // A relative folder of the PATH begins in the folder of the process.
    if std::env::split_paths(path).any(|folder| is_program(&workload.folder.join(folder).join(program))) {
        return false;
    }
    let Some(interpreters) = foreseen(workload) else { return false };
    if matches!(&workload.environment, WorkloadPython::Own(path) if !path.exists()) {
        return false;
    }
    let folders = interpreters.program_folders(workload);
    let is_built = |folder: &PathBuf| folder.parent().is_some_and(Path::exists);
    folders.iter().all(|folder| is_built(folder) && !is_program(&folder.join(program)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::fixture;

    /// A virtual environment with this program.
    fn environment_with(program: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        fs_err::create_dir_all(folder.path().join("bin")).expect("made");
        fs_err::write(folder.path().join("pyvenv.cfg"), "").expect("written");
        for name in ["python", program] {
            let path = folder.path().join("bin").join(name);
            fs_err::write(&path, "#!/bin/sh\n").expect("written");
            fs_err::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("its mode");
        }
        folder
    }

    fn workload(environment: &Path) -> Arc<Workload> {
        let mut tiny = (**fixture::workloads().get("tiny").expect("there is one")).clone();
        tiny.environment = WorkloadPython::Own(environment.into());
        Arc::new(tiny)
    }

    #[test]
    fn the_environment_of_a_workload_is_activated_before_the_path_that_it_sets() {
        let folder = environment_with("torchrun");
        let workload = workload(folder.path());
        let interpreters = Interpreters::own(&workload);
        let mut env: Environment = [("PATH".to_string(), Some("/opt/a:/opt/b".to_string()))].into();
        activate(&mut env, &workload, &interpreters);
        let at = folder.path().display();
        assert_eq!(env["PATH"], Some(format!("{at}/bin:/opt/a:/opt/b")));
        assert_eq!((&env["VIRTUAL_ENV"], &env["PYTHONHOME"]), (&Some(at.to_string()), &None));
    }

    #[test]
    fn only_a_program_that_is_in_no_folder_is_missing() {
        let folder = environment_with("torchrun");
        let workload = workload(folder.path());
        let path = OsString::from("/nowhere");
        let foreseen = |workload: &Arc<Workload>| Some(Interpreters::own(workload));
        let is_missing = |program: &str| is_missing(program, &workload, &path, &foreseen);
        assert!(is_missing("no-such-program") && is_missing("./no-such-program") && is_missing("/no/such/program"));
        for program in ["python", "torchrun", "/bin/sh"] {
            assert!(!is_missing(program), "{program}");
        }
        fs_err::remove_dir_all(folder.path()).expect("removed");
        assert!(!is_missing("no-such-program"), "an environment that is not built may have it");
    }
}
