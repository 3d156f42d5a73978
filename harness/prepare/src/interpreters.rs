//! Selects the Python for each workload, and the packages laid over it.
//!
//! In: workloads, and optionally the user's interpreter. Out: the interpreter and the search path of each. Missing environments
//! are built.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use crate::python::{self, PinSet, Progress, Python, PythonEnvironment as Provided, PythonError};
use collo_device::driver;
use collo_device::driver::DriverTarget;
use collo_plan::facts::DeviceKind;
use collo_plan::project::Project;
use collo_plan::workload::{Workload, WorkloadPython};

/// The interpreters of a campaign, by requested environment.
#[derive(Debug, Clone, Default)]
pub struct Interpreters {
    by_environment: BTreeMap<WorkloadPython, PathBuf>,
    /// Folders of packages, by the pins that they were built from.
    overlays: BTreeMap<PathBuf, PathBuf>,
}

impl Interpreters {
    /// Provide what these workloads need; `own` is the user's Python, which replaces the provided one unchanged. `target` is the
    /// driver and the GPU to measure, `None` for the CPU: it selects the pinned set, and a torch that does not fit it is an
    /// error. The versions of the installed packages are included.
    pub fn provide(
        project: &Project,
        workloads: &[Arc<Workload>],
        own: Option<&Path>,
        target: Option<DriverTarget>,
        tell: &mut dyn FnMut(Progress),
    ) -> Result<(Interpreters, BTreeMap<String, String>), PythonError> {
        searchable(&project.workloads())?;
        let mut interpreters = Interpreters::default();
        let mut facts = BTreeMap::new();
        let cuda = target.map(|t| t.cuda);
        let pinned = || provided(project, PinSet::for_driver(target)?);
        for workload in workloads {
            if !interpreters.by_environment.contains_key(&workload.environment) {
                let python = match (&workload.environment, own) {
                    (WorkloadPython::Torch, Some(path)) => python::own(path)?,
                    (WorkloadPython::Torch, None) => pinned()?.provide(tell)?,
                    (WorkloadPython::System, _) => python::system()?,
                    (WorkloadPython::Own(path), _) => python::named(path)?,
                };
                let python = match &workload.environment {
                    WorkloadPython::Own(_) => {
                        fits(&python, cuda).map_err(|e| of_workload(e, &workload.name))?;
                        with_name(python, &workload.name)
                    }
                    WorkloadPython::Torch | WorkloadPython::System => fits(&python, cuda).map(|()| python)?,
                };
                // Where two environments have a package, the one that collo provides is meant.
                let first = workload.environment == WorkloadPython::Torch;
                for (name, version) in python.facts {
                    if first || !facts.contains_key(&name) {
                        facts.insert(name, version);
                    }
                }
                interpreters.by_environment.insert(workload.environment.clone(), python.interpreter);
            }
            // The user's own Python is taken as it is.
            if let (Some(pins), None) = (&workload.packages, own)
                && !interpreters.overlays.contains_key(pins)
            {
                let overlay = pinned()?.overlay(pins, tell)?;
                searchable(&overlay)?;
                interpreters.overlays.insert(pins.clone(), overlay);
            }
        }
        Ok((interpreters, facts))
    }

    /// Whether [`Interpreters::provide`] would find everything, and build nothing.
    pub fn exist(
        project: &Project,
        workloads: &[Arc<Workload>],
        own: Option<&Path>,
        target: Option<DriverTarget>,
    ) -> Result<bool, PythonError> {
        let pinned = || provided(project, PinSet::for_driver(target)?);
        for workload in workloads {
            let is_there = match (&workload.environment, own) {
                (WorkloadPython::Torch, None) => pinned()?.ready()?.is_some(),
                (WorkloadPython::Torch, Some(_)) | (WorkloadPython::System | WorkloadPython::Own(_), _) => true,
            };
            let overlay = match (&workload.packages, own) {
                (Some(pins), None) => pinned()?.overlay_folder(pins)?.exists(),
                _ => true,
            };
            if !is_there || !overlay {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A Python with only torch and numpy, for work outside campaigns: of the pinned sets an existing one, else this machine's.
    pub fn torch(project: &Project, own: Option<&Path>, tell: &mut dyn FnMut(Progress)) -> Result<Python, PythonError> {
        match own {
            Some(path) => python::own(path),
            None => {
                let of_this_machine = PinSet::for_this_machine();
                match (provided(project, of_this_machine)?.ready()?, provided(project, PinSet::Cpu)?.ready()?) {
                    (Some(python), _) | (None, Some(python)) => Ok(python),
                    (None, None) => provided(project, of_this_machine)?.provide(tell),
                }
            }
        }
    }

    /// For work outside campaigns that needs no GPU: the target whose pinned set exists, else this machine's.
    pub fn target_without_gpu(project: &Project) -> Result<Option<DriverTarget>, PythonError> {
        let of_this_machine = PinSet::for_this_machine();
        let is_ready = |set| provided(project, set)?.ready().map(|python| python.is_some());
        let here = of_this_machine != PinSet::Cpu && (is_ready(of_this_machine)? || !is_ready(PinSet::Cpu)?);
        Ok(driver::target().filter(|_| here))
    }

    /// Existing interpreters, without building anything: the provided environment only if it is ready.
    pub fn ready(project: &Project) -> Result<Interpreters, PythonError> {
        let mut by_environment = BTreeMap::from([(WorkloadPython::System, python::system()?.interpreter)]);
        by_environment
            .extend(provided(project, PinSet::for_this_machine())?.ready()?.map(|p| (WorkloadPython::Torch, p.interpreter)));
        Ok(Interpreters { by_environment, overlays: BTreeMap::new() })
    }

    /// Where [`Interpreters::provide`] will find or put them; nothing is built or started. Without a known driver that of torch
    /// on a GPU is not known, and stays the word `python`.
    pub fn foreseen(
        project: &Project,
        workloads: &[Arc<Workload>],
        own: Option<&Path>,
        device: DeviceKind,
        target: Option<DriverTarget>,
    ) -> Result<Interpreters, PythonError> {
        let mut interpreters = Interpreters::default();
        let is_known = device == DeviceKind::Cpu || target.is_some();
        let pinned = || provided(project, PinSet::for_driver(target)?);
        for workload in workloads {
            let interpreter = match (&workload.environment, own) {
                (WorkloadPython::Torch, Some(path)) => Some(python::interpreter_of(path)),
                (WorkloadPython::Torch, None) if is_known => Some(pinned()?.interpreter()),
                (WorkloadPython::Torch, None) => None,
                (WorkloadPython::System, _) => Some(python::system()?.interpreter),
                (WorkloadPython::Own(path), _) => Some(python::interpreter_of(path)),
            };
            interpreters.by_environment.extend(interpreter.map(|path| (workload.environment.clone(), path)));
            if let (Some(pins), None, true) = (&workload.packages, own, is_known) {
                interpreters.overlays.insert(pins.clone(), pinned()?.overlay_folder(pins)?);
            }
        }
        Ok(interpreters)
    }

    /// The interpreter of a workload.
    pub fn path(&self, workload: &Workload) -> Option<&Path> {
        self.by_environment.get(&workload.environment).map(PathBuf::as_path)
    }

    /// The packages laid over it.
    pub fn overlay(&self, workload: &Workload) -> Option<&Path> {
        workload.packages.as_ref().and_then(|pins| self.overlays.get(pins)).map(PathBuf::as_path)
    }

    /// Where the packages of these pins are, if they were provided.
    pub fn packages(&self, pins: &Path) -> Option<&Path> {
        self.overlays.get(pins).map(PathBuf::as_path)
    }

    /// The Python that collo provides, or the user's own.
    pub fn torch_python(&self) -> Option<&Path> {
        self.by_environment.get(&WorkloadPython::Torch).map(PathBuf::as_path)
    }

    /// Whether workloads of this environment can be run.
    pub fn has(&self, environment: &WorkloadPython) -> bool {
        self.by_environment.contains_key(environment)
    }

    /// Replace the word `python` at the beginning of a command with the interpreter of its workload.
    pub fn put_into(&self, command: &mut [String], workload: &Workload) {
        if let (Some(word), Some(path)) = (command.first_mut(), self.path(workload))
            && matches!(word.as_str(), "python" | "python3")
        {
            *word = path.display().to_string();
        }
    }

    /// The folders of programs that belong to the Python of a workload: of the packages laid over it, and its own. None for the
    /// system's, whose programs are on the PATH.
    pub fn program_folders(&self, workload: &Workload) -> Vec<PathBuf> {
        if workload.environment == WorkloadPython::System {
            return Vec::new();
        }
        // A workload names its environment from its own folder, `../venv`; `sys.prefix` of its Python has none of these dots.
        let is_dotted = |folder: &Path| folder.components().any(|part| part == Component::ParentDir);
        let plain =
            |folder: &Path| folder.canonicalize().ok().filter(|_| is_dotted(folder)).unwrap_or_else(|| folder.to_path_buf());
        let own = self.path(workload).and_then(Path::parent).filter(|folder| !folder.as_os_str().is_empty()).map(plain);
        self.overlay(workload).map(|overlay| overlay.join("bin")).into_iter().chain(own).collect()
    }

    /// The module search path of a workload's processes: the protocol library first, then its own packages.
    pub fn search_path(&self, project: &Project, workload: &Workload) -> String {
        let mut path = OsString::from(project.workloads());
        if let Some(overlay) = self.overlay(workload) {
            path.push(":");
            path.push(overlay);
        }
        path.to_string_lossy().into_owned()
    }
}

fn provided(project: &Project, set: PinSet) -> Result<Provided, PythonError> {
    Provided::of(&project.workloads(), &python::cache_folder()?, set)
}

/// Python cannot express such a folder in its search path (`os.pathsep`; CPython's Modules/getpath.py splits at each).
fn searchable(folder: &Path) -> Result<(), PythonError> {
    match folder.as_os_str().as_encoded_bytes().contains(&b':') {
        true => Err(PythonError::Colon { path: folder.into() }),
        false => Ok(()),
    }
}

/// Whether its torch supports the GPU to measure. The driver's version is queried only for the message.
fn fits(python: &Python, cuda: Option<i32>) -> Result<(), PythonError> {
    let Some(cuda) = cuda else { return Ok(()) };
    python::fits(&python.facts, None, cuda).or_else(|_| python::fits(&python.facts, driver::version().as_deref(), cuda))
}

fn of_workload(e: PythonError, name: &str) -> PythonError {
    match e {
        PythonError::Misfit(misfit) => PythonError::Misfit(Box::new(misfit.of_workload(name))),
        other => other,
    }
}

/// Keys the facts of a workload's own environment by its name.
fn with_name(python: Python, workload: &str) -> Python {
    let facts = python.facts.into_iter().map(|(name, version)| (format!("{name} of {workload}"), version)).collect();
    Python { facts, ..python }
}

#[cfg(test)]
impl Interpreters {
    /// That which a workload names as its own.
    pub fn own(workload: &Workload) -> Interpreters {
        let WorkloadPython::Own(path) = &workload.environment else { return Interpreters::default() };
        let by_environment = BTreeMap::from([(workload.environment.clone(), python::interpreter_of(path))]);
        Interpreters { by_environment, overlays: BTreeMap::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn packages_that_no_search_path_can_name_are_refused_with_the_way_out() {
        assert!(searchable(Path::new("/home/me/.cache/collo/python-1")).is_ok());
        let error = searchable(Path::new("/home/me/a:b/python-1")).expect_err("it has a colon");
        assert_eq!(error.to_string(), "`/home/me/a:b/python-1` contains a colon, which separates Python's search path");
        assert_eq!(error.hint().expect("one"), "`COLLO_CACHE=DIR` puts it elsewhere");
    }

    /// A folder of an environment whose torch is only metadata.
    fn with_torch(version: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        let base = python::find_system().expect("this machine has one");
        let packages = folder.path().join(format!("lib/python{}/site-packages/torch-{version}.dist-info", base.minor()));
        fs_err::create_dir_all(&packages).expect("made");
        fs_err::create_dir_all(folder.path().join("bin")).expect("made");
        let metadata = format!("Metadata-Version: 2.1\nName: torch\nVersion: {version}\n");
        fs_err::write(packages.join("METADATA"), metadata).expect("written");
        let home = base.path.parent().expect("it lies in a folder").display();
        fs_err::write(folder.path().join("pyvenv.cfg"), format!("home = {home}\n")).expect("written");
        std::os::unix::fs::symlink(&base.path, folder.path().join("bin/python")).expect("linked");
        folder
    }

    /// The environment provided for `tiny`, as the user's own or as the workload's, on a driver with this CUDA.
    fn provide(torch: &str, of_workload: bool, cuda: Option<i32>) -> Result<BTreeMap<String, String>, PythonError> {
        let folder = with_torch(torch);
        let mut tiny = (**fixture::workloads().get("tiny").expect("there is one")).clone();
        if of_workload {
            tiny.environment = WorkloadPython::Own(folder.path().into());
        }
        let own = (!of_workload).then(|| folder.path());
        let target = cuda.map(|cuda| DriverTarget { cuda, capability: None });
        Interpreters::provide(&Project::at("/nowhere"), &[Arc::new(tiny)], own, target, &mut |_| ()).map(|(_, facts)| facts)
    }

    #[test]
    fn what_a_torch_is_built_for_is_among_the_facts() {
        let facts = provide("2.10.0+cu128", false, Some(12_020)).expect("it fits");
        assert_eq!((facts["torch"].as_str(), facts["torch_cuda"].as_str()), ("2.10.0+cu128", "12.8"));
        assert!(!facts.contains_key("python_set"));
        assert!(!provide("2.14.1+cpu", false, None).expect("good for a CPU").contains_key("torch_cuda"));
        let facts = provide("2.10.0+cu128", true, Some(13_000)).expect("it fits");
        assert_eq!(facts["torch_cuda of tiny"], "12.8");
    }

    #[test]
    fn a_torch_that_the_gpus_driver_cannot_run_is_never_provided() {
        for of_workload in [false, true] {
            let error = provide("2.14.1+cu130", of_workload, Some(12_020)).expect_err("a driver of CUDA 12");
            assert!(error.to_string().contains("is built for CUDA 13.0"), "{error}");
            assert_eq!(error.to_string().contains("workload `tiny`"), of_workload);
            let error = provide("2.14.1+cpu", of_workload, Some(13_000)).expect_err("its members would train on the CPU");
            assert!(error.to_string().contains("without CUDA"), "{error}");
        }
    }
}
