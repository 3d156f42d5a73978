//! Where the processes of a workload find their programs: first in its Python's environment, as after `activate`.
//!
//! In: a workload and its interpreters. Out: the variables that activate them, and which programs are not there at all.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use collo_plan::cell::{Cell, Member};
use collo_plan::observer::{Observe, Place};
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
        if find(&key.1, workload, &path_of(member), foreseen) == Presence::Absent {
            found.insert(key.clone());
        }
        seen.push(key);
    }
    found
}

/// Workloads with a program that an observer around or inside them needs and that is not there: it is started where they are. An
/// environment that is not built yet counts as one without it, since what collo builds has no observers. `foreseen` as for [`missing`].
pub fn missing_around<'a>(
    cells: impl Iterator<Item = &'a Cell>,
    foreseen: &dyn Fn(&Arc<Workload>) -> Option<Interpreters>,
) -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    let mut seen = BTreeSet::new();
    for cell in cells {
        let Some(tool) = cell.observe().and_then(Observe::tool).filter(|tool| tool.place != Place::Beside) else { continue };
        for (term, program) in cell.terms().iter().flat_map(|term| tool.programs.iter().map(move |program| (term, program))) {
            let workload = term.member.workload();
            let key = (workload.name.clone(), program.clone());
            if seen.insert(key.clone()) && find(program, workload, &path_of(&term.member), foreseen) != Presence::There {
                found.insert(key);
            }
        }
    }
    found
}

/// The PATH of a member without its Python's environment: its workload may set one.
fn path_of(member: &Member) -> OsString {
    let variables = member.workload().variables_for(&member.spec()).unwrap_or_default();
    search_path(&variables.into_iter().map(|(name, value)| (name, Some(value))).collect())
}

/// What is known of a program before a workload's environment is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    There,
    Absent,
    /// An environment that is not built yet may provide it.
    Unknown,
}

/// Look for a program where a process of this workload would.
fn find(
    program: &str,
    workload: &Arc<Workload>,
    path: &OsString,
    foreseen: &dyn Fn(&Arc<Workload>) -> Option<Interpreters>,
) -> Presence {
    let there = |is_there: bool| if is_there { Presence::There } else { Presence::Absent };
    if matches!(program, "python" | "python3") {
        return Presence::There;
    }
    if program.contains('/') {
        return there(is_program(&workload.folder.join(program)));
    }
    // A relative folder of the PATH begins in the folder of the process.
    if std::env::split_paths(path).any(|folder| is_program(&workload.folder.join(folder).join(program))) {
        return Presence::There;
    }
    let Some(interpreters) = foreseen(workload) else { return Presence::Unknown };
    if matches!(&workload.environment, WorkloadPython::Own(path) if !path.exists()) {
        return Presence::Unknown;
    }
    let folders = interpreters.program_folders(workload);
    let is_built = |folder: &PathBuf| folder.parent().is_some_and(Path::exists);
    match folders.iter().any(|folder| is_program(&folder.join(program))) {
        false if !folders.iter().all(is_built) => Presence::Unknown,
        is_there => there(is_there),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use collo_plan::observer::Observers;

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
        let find = |program: &str| find(program, &workload, &path, &foreseen);
        for program in ["no-such-program", "./no-such-program", "/no/such/program"] {
            assert_eq!(find(program), Presence::Absent, "{program}");
        }
        for program in ["python", "torchrun", "/bin/sh"] {
            assert_eq!(find(program), Presence::There, "{program}");
        }
        fs_err::remove_dir_all(folder.path()).expect("removed");
        assert_eq!(find("no-such-program"), Presence::Unknown, "an environment that is not built may have it");
    }

    #[test]
    fn what_an_observer_around_a_member_needs_is_looked_for_where_the_member_is_started() {
        let (folder, observers) = (environment_with("wrapper"), tempfile::tempdir().expect("a folder"));
        let text = |runs: &str, words: &str| {
            format!("runs = \"{runs}\"\nneeds = [\"sh\", \"wrapper\", \"no-such-program\"]\ncommand = [\"wrapper\"{words}]\n")
        };
        fs_err::write(observers.path().join("wraps.toml"), text("around", ", \"{command}\"")).expect("written");
        fs_err::write(observers.path().join("looks-on.toml"), text("beside", "")).expect("written");
        let observers = Observers::load(observers.path());
        let member = Arc::new(Member::new(&workload(folder.path()), []).expect("valid"));
        let foreseen = |workload: &Arc<Workload>| Some(Interpreters::own(workload));
        let missing = |name: &str| {
            let cell = Cell::solo(&member, None).observed(Some(Observe::parse(name, &observers).expect("known")));
            missing_around([cell].iter(), &foreseen)
        };
        assert_eq!(missing("wraps"), [("tiny".to_string(), "no-such-program".to_string())].into());
        assert_eq!(missing("looks-on"), [].into(), "one beside the members is started by collo");
        fs_err::remove_file(folder.path().join("bin/wrapper")).expect("removed");
        assert_eq!(missing("wraps").len(), 2);
    }
}
