//! What every verb is given: the command line, the folder with its project and stored runs, and the result that it ends with.
//!
//! In: parsed arguments. Out: the project, a stored campaign or that of a bundle, the [`experiments`] that a name or a tag stands for, the
//! driver of this machine with its [`gpus`].

pub mod experiments;
pub mod gpus;

use std::path::PathBuf;

use collo_launch::mark;
use collo_plan::project::Project;
use collo_store::{CampaignFolder, Runs};
use collo_text::{Diagnostic, Diagnostics};

use crate::args::Arguments;
use crate::{bundled, output};

/// The result of a verb that has printed what it did: its exit code.
pub type Ended = Result<u8, Diagnostics>;

/// What comes before the first campaign where there is no project.
const NO_PROJECT: &str = "no project is here: `collo init DIR` writes one";

/// What every verb may need.
pub struct Context<'a> {
    pub arguments: &'a Arguments,
    /// The folder of an unpacked bundle, in place of the one that was given.
    unpacked: Option<PathBuf>,
}

impl<'a> Context<'a> {
    pub fn of(arguments: &'a Arguments) -> Context<'a> {
        Context { arguments, unpacked: None }
    }

    /// The same in another folder.
    pub fn inside(&self, folder: PathBuf) -> Context<'a> {
        Context { arguments: self.arguments, unpacked: Some(folder) }
    }

    /// The stored campaign that a text names, or that of a bundle, which is there as long as the second is.
    pub fn campaign(&self, asked: &str) -> Result<(CampaignFolder, Option<tempfile::TempDir>), Diagnostics> {
        let path = self.folder()?.join(asked);
        if bundled::is_bundle(&path) && path.is_file() {
            let (campaign, scratch) = bundled::read(&path, self.project().ok().as_ref())?;
            return Ok((campaign, Some(scratch)));
        }
        Ok((self.runs()?.find(asked)?, None))
    }

    /// The folder that collo works in.
    pub fn folder(&self) -> Result<PathBuf, Diagnostic> {
        match self.unpacked.as_ref().or(self.arguments.folder.as_ref()) {
            Some(folder) if !folder.is_dir() => {
                let what = if folder.exists() { "is not a folder" } else { "does not exist" };
                Err(Diagnostic::new(format!("`-C {}`: it {what}", folder.display()))
                    .hint("name an existing folder; a project is one with `experiments/` and `workloads/`"))
            }
            Some(folder) => Ok(folder.clone()),
            None => std::env::current_dir().map_err(|e| {
                Diagnostic::new("the folder in which collo was started no longer exists")
                    .of_machine()
                    .caused_by(e)
                    .hint("`cd` to an existing one, or name it with `-C DIR`")
            }),
        }
    }

    /// The project that contains the folder, or that `-C` names.
    pub fn project(&self) -> Result<Project, Diagnostic> {
        let folder = self.folder()?;
        match &self.unpacked {
            // The bundle was named.
            Some(unpacked) => Ok(Project::at(unpacked)),
            None if self.arguments.folder.is_some() => Project::named(&folder),
            None => Project::find(&folder),
        }
    }

    /// The stored campaigns; a folder of results alone, without a project around it, is enough.
    pub fn runs(&self) -> Result<Runs, Diagnostic> {
        Ok(match self.is_in_project()? {
            true => Runs::at(self.project()?.runs()),
            false => Runs::at(self.folder()?.join("runs")).begun_by(NO_PROJECT),
        })
    }

    /// Whether there is a project to run experiments of.
    pub fn is_in_project(&self) -> Result<bool, Diagnostic> {
        Ok(matches!(Project::nearest(&self.folder()?), Ok(Some(_))))
    }
}

/// End processes left behind by collos that were killed together with their supervisors, before they disturb anything, and report
/// them.
pub fn end_left_behind() {
    let left = mark::end_left_behind();
    let named: Vec<String> = left.iter().take(5).map(|l| format!("{} `{}`", l.pid, l.name)).collect();
    let more = if left.len() > named.len() { " …" } else { "" };
    match left.len() {
        0 => {}
        1 => output::warning(format!("ended a process left behind by a killed collo: {}", named.join(", "))),
        n => output::warning(format!("ended {n} processes left behind by a killed collo: {}{more}", named.join(", "))),
    }
}
