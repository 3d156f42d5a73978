//! Temporary experiments: the trial of a workload, the full load of the doctor. Planned, staged, run and stored as any other, in
//! a folder that is deleted afterwards.

use std::path::Path;

use crate::campaign::{CampaignEnd, CampaignOptions, FailureLimit};
use crate::events::{Event, Watcher};
use crate::session::{Request, Session};
use collo_plan::experiment::{DeviceRequest, Experiment};
use collo_plan::project::Project;
use collo_plan::workload::Workloads;
use collo_store::{RefusalRecord, StoredRun};
use collo_text::{Diagnostic, Diagnostics, ExitClass, Source};

const STOPPED: &str = "the trial was stopped; no process is left";

/// The experiment to try.
pub struct Trial<'a> {
    pub workloads: &'a Workloads,
    /// The text of its file.
    pub text: String,
    pub asked: DeviceRequest,
    pub python: Option<&'a Path>,
    /// Maximum number of runs; the others would give the same result.
    pub at_most: usize,
    /// Whether output is searched for progress, so that no line is expected to match.
    pub searches: bool,
}

/// The result.
pub struct Tried {
    pub runs: Vec<StoredRun>,
    /// Cells that this machine cannot run, with the reasons.
    pub refusals: Vec<RefusalRecord>,
    _folder: tempfile::TempDir,
}

impl Trial<'_> {
    /// Run it to completion; what is not about the runs themselves is shown.
    pub fn run(self, project: &Project, watch: Watcher<'_>) -> Result<Tried, Diagnostics> {
        let folder = tempfile::tempdir()?;
        let project = &project.clone().with_runs(folder.path());
        let experiment = Experiment::parse(Path::new("trial.toml"), &Source::file("trial.toml", self.text), self.workloads)?;
        let mut session = Session::plan(
            project,
            Request {
                device: self.asked,
                python: self.python.map(Path::to_path_buf),
                // Each run is asked for its own answer.
                choice: CampaignOptions { new: true, failures: FailureLimit::Unlimited, ..CampaignOptions::default() },
                ..Request::of(experiment)
            },
        )?;
        let refusals = session.planned().record().refusals;
        session.keep(|place, _| place < self.at_most);
        let mut runs = Vec::new();
        if session.planned().order.is_empty() {
            return Ok(Tried { runs, refusals, _folder: folder });
        }
        let finished = session.measure(&mut |event| match event {
            Event::Ends { run, .. } => runs.push(run.clone()),
            Event::NothingMatches { .. } if self.searches => {}
            // How a card was put back, or could not be, is never kept to oneself.
            Event::Python(_)
            | Event::Describes { .. }
            | Event::Data(_)
            | Event::NothingMatches { .. }
            | Event::Restored { .. }
            | Event::NotRestored { .. } => watch(event),
            _ => {}
        });
        match finished.map_err(|unfinished| unfinished.error)?.end {
            CampaignEnd::Complete | CampaignEnd::DeviceLost | CampaignEnd::TooManyFailures { .. } => {
                Ok(Tried { runs, refusals, _folder: folder })
            }
            CampaignEnd::Interrupted { .. } => Err(Diagnostic::new(STOPPED).of(ExitClass::Interrupted).into()),
            CampaignEnd::Terminated | CampaignEnd::TimeOver => Err(Diagnostic::new(STOPPED).of(ExitClass::Incomplete).into()),
        }
    }
}
