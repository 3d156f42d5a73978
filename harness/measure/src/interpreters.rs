//! Which Python runs which workload, and with which packages laid over it.
//!
//! In: workloads, and the interpreter that the user may have named. Out: for each of them the interpreter and the search path. What
//! is not there yet is built.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::project::Project;
use crate::python::{self, Environment as Provided, PinSet, Progress, Python, PythonError};
use crate::workload::{Environment, Workload};

/// The interpreters of a campaign, by the environment that a workload asks for.
#[derive(Debug, Clone, Default)]
pub struct Interpreters {
    by_environment: BTreeMap<Environment, PathBuf>,
    /// Folders of packages, by the pins that they were built from.
    overlays: BTreeMap<PathBuf, PathBuf>,
}

impl Interpreters {
    /// Provide what these workloads need; `own` is the user's Python, which takes the place of the provided one as it is. With
    /// the interpreters come the versions of what is in them.
    pub fn provide(
        project: &Project,
        workloads: &[Arc<Workload>],
        own: Option<&Path>,
        tell: &mut dyn FnMut(Progress),
    ) -> Result<(Interpreters, BTreeMap<String, String>), PythonError> {
        let mut interpreters = Interpreters::default();
        let mut facts = BTreeMap::new();
        for workload in workloads {
            if !interpreters.by_environment.contains_key(&workload.environment) {
                let python = match (&workload.environment, own) {
                    (Environment::Torch, Some(path)) => python::own(path)?,
                    (Environment::Torch, None) => provided(project)?.provide(tell)?,
                    (Environment::System, _) => python::system()?,
                    (Environment::Own(path), _) => with_name(python::named(path)?, &workload.name),
                };
                // Where two environments have a package, the one that collo provides is meant.
                let first = workload.environment == Environment::Torch;
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
                let overlay = provided(project)?.overlay(pins, tell)?;
                interpreters.overlays.insert(pins.clone(), overlay);
            }
        }
        Ok((interpreters, facts))
    }

    /// The Python with torch and numpy alone, for what is done beside campaigns.
    pub fn torch(project: &Project, own: Option<&Path>, tell: &mut dyn FnMut(Progress)) -> Result<PathBuf, PythonError> {
        let python = match own {
            Some(path) => python::own(path)?,
            None => provided(project)?.provide(tell)?,
        };
        Ok(python.interpreter)
    }

    /// What is there already, without building anything: the provided environment only if it is ready.
    pub fn ready(project: &Project) -> Result<Interpreters, PythonError> {
        let mut by_environment = BTreeMap::from([(Environment::System, python::system()?.interpreter)]);
        by_environment.extend(provided(project)?.ready()?.map(|p| (Environment::Torch, p.interpreter)));
        Ok(Interpreters { by_environment, overlays: BTreeMap::new() })
    }

    /// Whether workloads of this environment can be run.
    pub fn has(&self, environment: &Environment) -> bool {
        self.by_environment.contains_key(environment)
    }

    /// The word `python` at the beginning of a command becomes the interpreter of its workload.
    pub fn put_into(&self, command: &mut [String], workload: &Workload) {
        if let (Some(word), Some(path)) = (command.first_mut(), self.by_environment.get(&workload.environment))
            && matches!(word.as_str(), "python" | "python3")
        {
            *word = path.display().to_string();
        }
    }

    /// Where the processes of a workload look for modules: the protocol library first, then the packages of its own.
    pub fn search_path(&self, project: &Project, workload: &Workload) -> String {
        let mut path = OsString::from(project.workloads());
        if let Some(overlay) = workload.packages.as_ref().and_then(|pins| self.overlays.get(pins)) {
            path.push(":");
            path.push(overlay);
        }
        path.to_string_lossy().into_owned()
    }
}

fn provided(project: &Project) -> Result<Provided, PythonError> {
    Provided::of(&project.workloads(), &python::cache_folder(), PinSet::for_this_machine())
}

/// The facts of a workload's own environment are not those of the others.
fn with_name(python: Python, workload: &str) -> Python {
    let facts = python.facts.into_iter().map(|(name, version)| (format!("{name} of {workload}"), version)).collect();
    Python { facts, ..python }
}
