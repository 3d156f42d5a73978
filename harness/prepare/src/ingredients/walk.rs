//! The files in the folders of workloads, others that are named, and the kind of each. Pipes, sockets, devices and dangling links are not files; a link
//! to a folder is followed only inside the project, once.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::kind::{self, IngredientKind};
use crate::git::tracked;
use collo_plan::project::Project;
use collo_plan::workload::Workload;

/// A file of a workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadFile {
    pub path: PathBuf,
    pub kind: IngredientKind,
    /// Tracked by git, so written by a person.
    pub tracked: bool,
}

impl WorkloadFile {
    /// Whether a run may write it: neither a source nor anybody's work.
    pub fn may_be_written(&self) -> bool {
        self.kind == IngredientKind::Other && !self.tracked
    }
}

/// Where to look, and what to leave out.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// The project.
    pub root: PathBuf,
    /// Folders of workloads, and of the packages that they share.
    pub folders: BTreeSet<PathBuf>,
    /// Further files.
    pub files: BTreeSet<PathBuf>,
    /// Files tracked by git.
    pub tracked: BTreeSet<PathBuf>,
    /// Files and folders written by runs, by name; a folder ends in `/`.
    pub outputs: BTreeSet<String>,
}

impl Places {
    /// Those of some workloads: their folders, and what workloads share beside them, such as the protocol and the readers of data
    /// sets.
    pub fn of<'a>(project: &Project, workloads: impl IntoIterator<Item = &'a Workload>) -> std::io::Result<Places> {
        let root = project.root().to_path_buf();
        let mut places = Places { tracked: tracked(&root, &project.workloads()), root, ..Places::default() };
        for workload in workloads {
            places.folders.insert(workload.folder.clone());
            let written = workload.outputs.iter().map(|name| places.name(&workload.folder.join(name)));
            let written: Vec<String> = written.flat_map(|name| [format!("{name}/"), name]).collect();
            places.outputs.extend(written);
        }
        let beside: BTreeSet<PathBuf> = fs_err::read_dir(project.workloads())?.flatten().map(|entry| entry.path()).collect();
        for path in beside {
            if path.extension().is_some_and(|e| e == "py") {
                places.files.insert(path);
            } else if path.join("__init__.py").is_file() {
                places.folders.insert(path);
            }
        }
        Ok(places)
    }

    /// A file that lies elsewhere in the project.
    pub fn add_file(&mut self, path: PathBuf) {
        self.tracked.extend(tracked(&self.root, &path));
        self.files.insert(path);
    }

    /// Every file by its name in the project.
    pub fn walk(&self) -> std::io::Result<BTreeMap<String, WorkloadFile>> {
        let inside = std::fs::canonicalize(&self.root)?;
        let mut walk = Walk { places: self, inside, seen: HashSet::new(), found: BTreeMap::new() };
        for folder in &self.folders {
            // That there is such a folder is known; what lies below it may go at any time.
            fs_err::read_dir(folder)?;
            let meta = fs_err::metadata(folder)?;
            if walk.seen.insert((meta.dev(), meta.ino())) {
                walk.folder(folder);
            }
        }
        self.files.iter().for_each(|path| walk.file(path));
        Ok(walk.found)
    }

    /// `workloads/mine/train.py`; invalid bytes are escaped.
    pub fn name(&self, path: &Path) -> String {
        let below = path.strip_prefix(&self.root).unwrap_or(path);
        below.to_str().map_or_else(|| below.as_os_str().as_bytes().escape_ascii().to_string(), str::to_string)
    }

    pub fn is_output(&self, name: &str) -> bool {
        self.outputs.contains(name) || self.outputs.iter().any(|o| o.ends_with('/') && name.starts_with(o.as_str()))
    }
}

struct Walk<'a> {
    places: &'a Places,
    inside: PathBuf,
    seen: HashSet<(u64, u64)>,
    found: BTreeMap<String, WorkloadFile>,
}

impl Walk<'_> {
    fn folder(&mut self, folder: &Path) {
        let Ok(entries) = std::fs::read_dir(folder) else { return };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        let (links, plain): (Vec<_>, Vec<_>) = paths.into_iter().partition(|path| path.is_symlink());
        // What lies here by itself is known by its own name, whatever else points to it.
        for path in plain.into_iter().chain(links) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if kind::is_left_behind(&name) {
                continue;
            }
            // Of a link what it leads to; one that leads nowhere, or to itself, is nothing.
            let Ok(meta) = std::fs::metadata(&path) else { continue };
            if !meta.is_dir() {
                self.entry(&path, &meta);
            } else if self.is_here(&path) && self.seen.insert((meta.dev(), meta.ino())) {
                let shown = format!("{}/", self.places.name(&path));
                match kind::is_output_folder(&name) || self.places.is_output(&shown) {
                    // A person may keep something there all the same.
                    true => self.places.tracked.iter().filter(|t| t.starts_with(&path)).for_each(|t| self.file(t)),
                    false => self.folder(&path),
                }
            }
        }
    }

    /// A folder of the project itself: a link to the data leads out of it.
    fn is_here(&self, path: &Path) -> bool {
        !path.is_symlink() || std::fs::canonicalize(path).is_ok_and(|target| target.starts_with(&self.inside))
    }

    fn file(&mut self, path: &Path) {
        if let Ok(meta) = std::fs::metadata(path) {
            self.entry(path, &meta);
        }
    }

    fn entry(&mut self, path: &Path, meta: &Metadata) {
        let name = self.places.name(path);
        let tracked = self.places.tracked.contains(path);
        if !meta.is_file() || (!tracked && self.places.is_output(&name)) {
            return;
        }
        let is_executable = meta.permissions().mode() & 0o111 != 0;
        self.found.insert(name, WorkloadFile { path: path.to_path_buf(), kind: kind::kind(path, is_executable), tracked });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::fs::symlink;

    fn project(files: &[&str]) -> (tempfile::TempDir, Places) {
        let dir = tempfile::tempdir().unwrap();
        for name in files {
            let place = dir.path().join("workloads/net").join(name);
            std::fs::create_dir_all(place.parent().unwrap()).unwrap();
            std::fs::write(place, "a").unwrap();
        }
        let folders = [dir.path().join("workloads/net")].into();
        let places = Places { root: dir.path().into(), folders, ..Places::default() };
        (dir, places)
    }

    fn names(places: &Places) -> Vec<String> {
        places.walk().unwrap().into_keys().map(|n| n.replace("workloads/net/", "")).collect()
    }

    #[test]
    fn what_python_and_libraries_leave_in_a_folder_is_no_ingredient() {
        let left = ["__pycache__/train.pyc", "train.py~", ".train.py.swp", "lightning_logs/version_0/hparams.yaml", "wandb/x.py"];
        let (_dir, places) = project(&[&left[..], &["train.py", "net/model.py"]].concat());
        assert_eq!(names(&places), ["net/model.py", "train.py"]);
    }

    #[test]
    fn what_runs_wrote_is_left_out_unless_git_tracks_it() {
        let (dir, mut places) = project(&["train.py", "out/a.json", "out/b.json", "checkpoint.pt"]);
        places.outputs = ["workloads/net/out/", "workloads/net/checkpoint.pt"].map(str::to_string).into();
        assert_eq!(names(&places), ["train.py"]);
        places.tracked = [dir.path().join("workloads/net/out/b.json")].into();
        assert_eq!(names(&places), ["out/b.json", "train.py"]);
    }

    #[test]
    fn whatever_else_lies_in_a_folder_is_passed_by() {
        let (dir, places) = project(&["train.py"]);
        let at = |name: &str| dir.path().join("workloads/net").join(name);
        nix::unistd::mkfifo(&at("pipe.py"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket.py")).unwrap();
        for (name, target) in [("nowhere.py", "/no/such/file"), ("self.py", "self.py"), ("zero.py", "/dev/zero")] {
            symlink(target, at(name)).unwrap();
        }
        // Folders that hold each other, and one that is somewhere else.
        symlink(".", at("a")).unwrap();
        symlink("..", at("b")).unwrap();
        symlink("/usr", at("data")).unwrap();
        std::fs::write(at("").join(OsStr::from_bytes(b"n\xff.py")), "a").unwrap();
        assert_eq!(names(&places), ["n\\xff.py", "train.py"]);
    }

    #[test]
    fn a_link_into_the_project_is_followed() {
        let (dir, places) = project(&["train.py"]);
        std::fs::create_dir(dir.path().join("shared")).unwrap();
        std::fs::write(dir.path().join("shared/model.py"), "a").unwrap();
        symlink("../../shared", dir.path().join("workloads/net/lib")).unwrap();
        assert_eq!(names(&places), ["lib/model.py", "train.py"]);
    }
}
