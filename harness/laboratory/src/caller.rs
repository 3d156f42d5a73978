//! What the laboratory asks of its caller, and what its caller asks of it.

use std::path::{Path, PathBuf};

use collo_plan::project::Project;
use collo_prepare::python::Progress;
use collo_store::CampaignFolder;
use collo_text::{Diagnostic, Diagnostics, Remark};

/// Where names lead, and how a person learns what goes on.
pub trait Caller {
    /// The folder that the paths of tables begin in.
    fn folder(&self) -> Result<PathBuf, Diagnostic>;
    fn project(&self) -> Result<Project, Diagnostic>;
    /// The stored campaign of a name, or that of a bundle, which is there as long as the second is.
    fn campaign(&self, name: &str) -> Result<(CampaignFolder, Option<tempfile::TempDir>), Diagnostics>;
    fn remark(&self, remark: Remark);
    /// Shows how a Python is provided, until it is dropped.
    fn display(&self) -> Box<dyn FnMut(Progress) + '_>;
}

/// Which measurements are asked for, and how what they trained is described.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Names of campaigns, files of tables, or the word for the published jobs.
    pub rows: &'a [String],
    /// Only what it measured.
    pub measured_by: Option<&'a str>,
    /// Whether steps are traced again that were traced before.
    pub fresh: bool,
    /// Whether scripts may be started for it in a project in which the user ran nothing.
    pub describe: bool,
    /// In place of the provided one.
    pub python: Option<&'a Path>,
}
