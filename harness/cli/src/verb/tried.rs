//! An experiment whose runs nobody keeps: the trial of a workload, the full load of the doctor. It is planned, staged, run and stored as
//! any other, in a folder that goes away with it.

use std::path::Path;
use std::sync::Arc;

use collo_measure::campaign::{self, Choice, End, Order};
use collo_measure::experiment::Asked;
use collo_measure::{Event, Experiment, Interpreters, Project, Source, Workload, Workloads, prepare_all};
use collo_store::{Diagnostic, Diagnostics, ExitClass, RefusalRecord, StoredRun};

use super::{Context, Planned};
use crate::args::Selection;
use crate::progress;

const STOPPED: &str = "the trial was stopped; no process is left";

/// What is to be tried.
pub struct Trial<'a> {
    pub workloads: &'a Workloads,
    /// The one that all members train.
    pub workload: &'a Arc<Workload>,
    /// The experiment, as its file would say it.
    pub text: String,
    pub asked: Asked,
    pub python: Option<&'a Path>,
    /// Only so many runs of the plan; the others would say the same.
    pub at_most: usize,
}

/// What came of it.
pub struct Tried {
    pub runs: Vec<StoredRun>,
    /// Cells that this machine cannot run, with the reasons.
    pub refusals: Vec<RefusalRecord>,
    _folder: tempfile::TempDir,
}

impl Trial<'_> {
    /// Run it to its end.
    pub fn run(self, context: &Context<'_>, project: &Project) -> Result<Tried, Diagnostics> {
        let folder = tempfile::tempdir()?;
        let project = &project.clone().with_runs(folder.path());
        let experiment = Experiment::parse(Path::new("trial.toml"), &Source::file("trial.toml", self.text), self.workloads)?;
        let Planned { experiment, cells, facts, mut plan, .. } =
            super::planned(project, experiment, &Selection::default(), &self.asked)?;
        let refusals = plan.record.refusals.clone();
        plan.record.keep(|place, _| place < self.at_most);
        if plan.record.order.is_empty() {
            return Ok(Tried { runs: Vec::new(), refusals, _folder: folder });
        }
        let mut display = progress::display(context.arguments.quiet, plan.forecast.clone(), 0.0);
        let mut tell = |progress| display.show(Event::Python(progress));
        let workloads = std::slice::from_ref(self.workload);
        let provided = Interpreters::provide(project, workloads, self.python, facts.python_target(), &mut tell);
        let (interpreters, facts_of_python) = provided.inspect_err(|_| display.end())?;
        let members = cells.iter().flat_map(|e| e.cell.members());
        let data = prepare_all(project, members, &interpreters, &mut |prepared| display.show(Event::Data(prepared)));
        let data = data.inspect_err(|_| display.end())?;
        let order = Order {
            project,
            experiment: &experiment,
            cells: &cells,
            plan: &plan,
            facts: &facts,
            interpreters: &interpreters,
            python: facts_of_python,
            data,
            selection: None,
            choice: Choice { new: true, ..Choice::default() },
        };
        let mut runs = Vec::new();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let finished = runtime.block_on(campaign::run(&order, &mut |event| match event {
            Event::Ends { run, .. } => runs.push(run.clone()),
            // How a card was put back, or could not be, is never kept to oneself.
            Event::Stands(_) | Event::Restored { .. } | Event::NotRestored { .. } => display.show(event),
            _ => {}
        }));
        display.end();
        match finished?.end {
            End::Complete | End::DeviceLost => Ok(Tried { runs, refusals, _folder: folder }),
            End::Interrupted { .. } => Err(Diagnostic::new(STOPPED).of(ExitClass::Interrupted).into()),
            End::Terminated | End::TimeOver => Err(Diagnostic::new(STOPPED).of(ExitClass::Incomplete).into()),
        }
    }
}
