//! All workloads of a project, by name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use collo_text::{Diagnostic, Diagnostics, nearest, quoted};
use fs_err as fs;

use super::Workload;
use super::read::{self, is_name, without_file};

/// All workloads of a project.
#[derive(Debug, Clone, Default)]
pub struct Workloads {
    folder: PathBuf,
    all: BTreeMap<String, Arc<Workload>>,
    broken: BTreeMap<String, Diagnostics>,
}

impl Workloads {
    /// Read every folder that has a `workload.toml`. A broken one is kept with its mistakes: they matter only if it is requested.
    pub fn load(folder: &Path) -> Result<Workloads, Diagnostics> {
        let unreadable = |e: std::io::Error| Diagnostic::new("the workloads cannot be read").caused_by(e.to_string());
        let mut workloads = Workloads { folder: folder.to_path_buf(), ..Workloads::default() };
        let entries = fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>).map_err(unreadable)?;
        let mut paths: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths.into_iter().filter(|path| path.join("workload.toml").is_file()) {
            match read::read(&path) {
                Ok(read) => read.into_iter().for_each(|workload| workloads.add(workload)),
                Err(mistakes) => {
                    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                    workloads.broken.insert(name, mistakes);
                }
            }
        }
        Ok(workloads)
    }

    /// If two have the same name, neither can be used.
    fn add(&mut self, workload: Workload) {
        let name = workload.name.clone();
        let Some(other) = self.all.get(&name) else {
            self.all.insert(name, Arc::new(workload));
            return;
        };
        let place = |w: &Workload| collo_text::shown(&w.folder.join("workload.toml"));
        let what = format!("two workloads are called `{name}`: {}, {}", place(other), place(&workload));
        self.broken.insert(name.clone(), Diagnostic::new(what).hint("rename one").into());
        self.all.remove(&name);
    }

    /// These workloads, with another one in place of the one of its name.
    pub fn with(&self, workload: Workload) -> Workloads {
        let mut workloads = self.clone();
        workloads.all.insert(workload.name.clone(), Arc::new(workload));
        workloads
    }

    /// The folder that they were read from.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The observers of the same project lie beside them.
    pub fn observers(&self) -> PathBuf {
        self.folder.parent().unwrap_or(Path::new("")).join("observers")
    }

    pub fn iter(&self) -> impl Iterator<Item = &Arc<Workload>> {
        self.all.values()
    }

    /// Folders with an invalid `workload.toml`, with its errors.
    pub fn broken(&self) -> &BTreeMap<String, Diagnostics> {
        &self.broken
    }

    pub fn get(&self, name: &str) -> Option<&Arc<Workload>> {
        self.all.get(name)
    }

    /// Whether there is a folder of this name, without the file that makes it a workload.
    pub fn lacks_file(&self, name: &str) -> bool {
        let folder = self.folder.join(name);
        is_name(name) && folder.is_dir() && !folder.join("workload.toml").is_file()
    }

    /// The workload of this name, or the error: unknown, broken, or without its file.
    pub fn find(&self, name: &str) -> Result<&Arc<Workload>, Diagnostics> {
        if let Some(workload) = self.all.get(name) {
            return Ok(workload);
        }
        if let Some(mistakes) = self.broken.get(name) {
            return Err(mistakes.clone());
        }
        if self.lacks_file(name) {
            return Err(without_file(name, &self.folder.join(name)).into());
        }
        let all = "all: `collo list workloads`";
        let note = match nearest(name, self.all.keys().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`? All: `collo list workloads`"),
            None => all.into(),
        };
        let unknown = Diagnostic::new(format!("unknown workload {}", quoted(name))).note(note);
        // It may be a preset in a file that cannot be read.
        let broken: Vec<String> = self.broken.keys().map(|b| format!("`{b}`")).collect();
        Err(match broken.is_empty() {
            true => unknown.into(),
            false => unknown.hint(format!("{} could not be read, see `collo list workloads`", broken.join(", "))).into(),
        })
    }
}
