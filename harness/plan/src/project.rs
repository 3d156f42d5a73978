//! The folders of a project: the nearest ancestor folder that has `experiments/` and `workloads/`.
//!
//! A project decides what is executed. One that is found must be the user's own ([`trust::project`]), as git has it of checkouts
//! (git-config(1), `safe.directory`); one that is named is used, of whichever user.

use std::path::{Path, PathBuf};

use collo_text::{Diagnostic, trust};

use collo_gpus::mig::Cards;

/// The entries that decide what is executed.
const DECIDING: [&str; 7] = ["experiments", "workloads", "observers", "traces", "predictors", "mig-profiles", "collo.toml"];

/// A checkout, or what `collo init` wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    root: PathBuf,
    /// Where runs are stored, if not in the project.
    runs: Option<PathBuf>,
}

impl Project {
    /// The nearest project at or above a folder.
    pub fn find(from: &Path) -> Result<Project, Diagnostic> {
        let none = || {
            let from = std::path::absolute(from).unwrap_or_else(|_| from.to_path_buf());
            Diagnostic::new(format!("no `experiments/` and `workloads/` in {} or above it", from.display()))
                .hint("`collo init DIR` writes them; `-C DIR` works in another")
        };
        Project::look(from)?.ok_or_else(none)
    }

    /// The nearest project at or above a folder, if there is one; an error if another user could have written it.
    pub fn look(from: &Path) -> Result<Option<Project>, Diagnostic> {
        let Some(project) = Project::nearest(from)? else { return Ok(None) };
        match project.judge() {
            Ok(()) => Ok(Some(project)),
            Err(why) => {
                let root = project.root().display();
                let what = format!("the project in {root} is not used: another user could have written it");
                let hint =
                    format!("`collo -C {root} …` works in it, and executes what is in it as you; `collo init DIR` writes one");
                Err(Diagnostic::new(what).caused_by(why).hint(hint).of_machine())
            }
        }
    }

    fn judge(&self) -> Result<(), trust::Untrusted> {
        trust::project(&self.root, &DECIDING)
    }

    /// Whether no other user could have written it.
    pub fn is_own(&self) -> bool {
        self.judge().is_ok()
    }

    /// The project of a folder that the user named: if it is that very folder, it is used even if another user owns it.
    pub fn named(folder: &Path) -> Result<Project, Diagnostic> {
        let real = |path: &Path| path.canonicalize().ok();
        match Project::nearest(folder)? {
            Some(project) if real(project.root()).is_some_and(|root| real(folder) == Some(root)) => Ok(project),
            _ => Project::find(folder),
        }
    }

    /// The nearest one, of whichever user: for what judges its files by itself.
    pub fn nearest(from: &Path) -> Result<Option<Project>, Diagnostic> {
        let from = std::path::absolute(from).unwrap_or_else(|_| from.to_path_buf());
        let found = from.ancestors().find(|f| f.join("experiments").is_dir() && f.join("workloads").is_dir());
        let Some(root) = found else { return Ok(None) };
        // Members are told of folders in variables, and what is stored is JSON.
        if root.to_str().is_some() {
            return Ok(Some(Project::at(root)));
        }
        Err(Diagnostic::new(format!("the path of this project, {}, is not UTF-8", root.display()))
            .hint("move the project, or rename its folder")
            .of_machine())
    }

    pub fn at(root: impl Into<PathBuf>) -> Project {
        Project { root: root.into(), runs: None }
    }

    /// The same project, with its runs stored elsewhere: for temporary trials.
    pub fn with_runs(self, folder: impl Into<PathBuf>) -> Project {
        Project { runs: Some(folder.into()), ..self }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn experiments(&self) -> PathBuf {
        self.root.join("experiments")
    }

    pub fn workloads(&self) -> PathBuf {
        self.root.join("workloads")
    }

    /// Programs that watch members.
    pub fn observers(&self) -> PathBuf {
        self.root.join("observers")
    }

    /// Descriptions of GPU models with MIG.
    pub fn mig_profiles(&self) -> PathBuf {
        self.root.join("mig-profiles")
    }

    /// The known GPU models; none without `mig-profiles/`, in which case the driver's data is used alone.
    pub fn cards(&self) -> Cards {
        Cards::load(&self.mig_profiles()).unwrap_or_default()
    }

    /// Predictors beside those that collo brings.
    pub fn predictors(&self) -> PathBuf {
        self.root.join("predictors")
    }

    /// Tasks and their arrivals.
    pub fn traces(&self) -> PathBuf {
        self.root.join("traces")
    }

    pub fn runs(&self) -> PathBuf {
        self.runs.clone().unwrap_or_else(|| self.root.join("runs"))
    }

    pub fn reports(&self) -> PathBuf {
        self.root.join("reports")
    }

    pub fn data(&self) -> PathBuf {
        self.root.join("data")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_found_from_any_folder_inside_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        for below in ["experiments", "workloads/tiny"] {
            std::fs::create_dir_all(root.join(below)).expect("created");
        }
        assert_eq!(Project::find(&root.join("workloads/tiny")).expect("found"), Project::at(root));
        assert_eq!(Project::find(root).expect("found").runs(), root.join("runs"));
    }

    #[test]
    fn outside_any_project_the_way_in_is_said() {
        let folder = tempfile::tempdir().expect("a folder");
        let mistake = Project::find(folder.path()).expect_err("nothing here");
        assert!(mistake.to_string().ends_with("hint: `collo init DIR` writes them; `-C DIR` works in another"));
        assert_eq!(mistake.class().code(), 2);
    }
}
