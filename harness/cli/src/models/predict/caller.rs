//! The command as the caller of the laboratory: its folder, project and campaigns, and where remarks are printed.

use std::path::PathBuf;

use collo_laboratory::{Caller, Request};
use collo_measure::events::Event;
use collo_plan::project::Project;
use collo_prepare::python::Progress;
use collo_store::CampaignFolder;
use collo_text::{Diagnostic, Diagnostics, Remark};

use crate::args::Evaluate;
use crate::context::Context;
use crate::output;
use crate::progress::{self, Display};

impl Caller for Context<'_> {
    fn folder(&self) -> Result<PathBuf, Diagnostic> {
        Context::folder(self)
    }

    fn project(&self) -> Result<Project, Diagnostic> {
        Context::project(self)
    }

    fn campaign(&self, name: &str) -> Result<(CampaignFolder, Option<tempfile::TempDir>), Diagnostics> {
        Context::campaign(self, name)
    }

    fn remark(&self, remark: Remark) {
        output::remark(&remark);
    }

    fn display(&self) -> Box<dyn FnMut(Progress) + '_> {
        let mut display = PythonDisplay(progress::display(self.arguments.quiet));
        Box::new(move |progress| display.show(progress))
    }
}

impl Evaluate {
    pub fn request(&self) -> Request<'_> {
        Request {
            rows: &self.rows,
            measured_by: self.measured_by.as_deref(),
            fresh: self.fresh,
            describe: self.describe,
            python: self.python.as_deref(),
        }
    }
}

/// A display of nothing but a Python that is provided.
struct PythonDisplay(Box<dyn Display + Send>);

impl PythonDisplay {
    fn show(&mut self, progress: Progress) {
        self.0.show(Event::Python(progress));
    }
}

impl Drop for PythonDisplay {
    fn drop(&mut self) {
        self.0.end();
    }
}
