//! One experiment, from the request to a stored campaign: plan, prepare, measure, search.
//!
//! In: a request, built by a verb from its arguments. Out: the result, and events on the way. Planning touches nothing; restoring
//! and storing are done by `campaign`. It prints nothing.

mod predict;
mod search;

use collo_device::requested::requested;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use collo_store::{CampaignFolder, Runs, Shard, Sharing};
use collo_text::{Diagnostic, Diagnostics};

use crate::campaign::{self, CampaignOptions, CampaignSpec, Finished};
use crate::error::RunError;
use crate::events::{Event, Watcher};
use crate::steps::{Step, steps};
use collo_device::driver::DriverTarget;
use collo_device::lease::turn::{self, Turn};
use collo_device::{fixed, lease, numa};
use collo_gpus::partition::Partition;
use collo_launch::interrupted::Noted;
use collo_plan::expand::Expanded;
use collo_plan::experiment::{DeviceRequest, Experiment};
use collo_plan::facts::{DeviceFacts, Fixed, Gpu, NumaMemory};
use collo_plan::past::PastRuns;
use collo_plan::plan::{Plan, PlannedCell, cells_of, plan};
use collo_plan::prior::Prior;
use collo_plan::project::Project;
use collo_plan::select::Selection;
use collo_plan::workload::{Workload, WorkloadPython};
use collo_prepare::commands::MemberCommands;
use collo_prepare::consent::DescribeConsent;
use collo_prepare::data::{Prepared, prepare_all};
use collo_prepare::interpreters::Interpreters;
use collo_prepare::python::PythonError;
use collo_prepare::{programs, python};

pub use predict::{NotPredicted, PythonToPredict};

/// Earlier runs of these cells and of their members alone.
fn past_of(project: &Project, experiment: &Experiment, cells: &[Expanded], facts: &DeviceFacts) -> PastRuns {
    let records: Vec<_> = cells.iter().map(|e| e.cell.record(1)).collect();
    PastRuns::read(&Runs::at(project.runs()), &facts.record(), Some(experiment.threads), records.iter())
}

/// The GPUs of the campaign that a request continues, as `--gpu` names them.
fn gpus_of_campaign(project: &Project, request: &Request) -> Option<String> {
    let campaign = request.continued(project).ok().flatten()?;
    let uuids: Vec<&str> = campaign.manifest().machine.gpus.iter().map(|gpu| gpu.uuid.as_str()).collect();
    (!uuids.is_empty()).then(|| uuids.join(","))
}

/// What to measure, and how.
#[derive(Debug, Clone)]
pub struct Request {
    pub experiment: Experiment,
    /// These cells and their baselines; all if `None`.
    pub selection: Option<Selection>,
    /// This part of the experiment; the whole if `None`.
    pub shard: Option<Shard>,
    pub device: DeviceRequest,
    /// The user's own Python instead of the provided one.
    pub python: Option<PathBuf>,
    /// Predict what its members need, before it is measured.
    pub predict: bool,
    /// To start the scripts and the Pythons of the project for predictions and plans.
    pub describe: Option<DescribeConsent>,
    /// How long to wait while another collo uses the GPU, or measures this CPU; absent, it is refused, or only reported.
    pub wait: Option<Duration>,
    pub choice: CampaignOptions,
}

impl Request {
    /// The whole experiment, with its own settings.
    pub fn of(experiment: Experiment) -> Request {
        Request {
            experiment,
            selection: None,
            shard: None,
            device: DeviceRequest::default(),
            python: None,
            predict: true,
            describe: None,
            wait: None,
            choice: CampaignOptions::default(),
        }
    }

    /// The campaign that it continues, if its ingredients are the same, and as far as that is known before anything is refused: a run
    /// may have a retry left here that it will not get.
    fn continued(&self, project: &Project) -> Result<Option<CampaignFolder>, RunError> {
        self.choice.candidate(&Runs::at(project.runs()), &self.experiment, self.shard, |_| false)
    }
}

/// An experiment planned on a device.
pub struct Session {
    project: Project,
    request: Request,
    facts: DeviceFacts,
    prior: Prior,
    plan: Plan,
    provided: Option<Provided>,
    /// The turn that it waited for, until it is over.
    turn: Option<Turn>,
}

/// What members are started with: their interpreters, the package versions of these, and the data sets.
#[derive(Default)]
struct Provided {
    interpreters: Interpreters,
    versions: BTreeMap<String, String>,
    data: Vec<Prepared>,
}

/// An error during measuring, and the campaign that was open then: its stored runs are safe.
#[derive(Debug)]
pub struct Unfinished {
    pub error: RunError,
    pub campaign: Option<Box<CampaignFolder>>,
}

impl<E: Into<RunError>> From<E> for Unfinished {
    fn from(error: E) -> Self {
        Unfinished { error: error.into(), campaign: None }
    }
}

impl Session {
    /// Expand and plan on the requested device. Nothing is touched.
    pub fn plan(project: &Project, mut request: Request) -> Result<Session, Diagnostics> {
        if let Some(more) = request.choice.more {
            request.experiment.repetitions = more;
        }
        let mut facts =
            requested(&request.experiment, &request.device, &project.cards(), || gpus_of_campaign(project, &request))?;
        request.experiment.place_its_trace(&facts);
        if let Some(model) = facts.gpu().and_then(|gpu| gpu.card.as_ref()) {
            request.experiment.resolve_shares(model);
            request.selection.iter_mut().for_each(|selection| selection.resolve_shares(model));
        }
        if let Some(shard) = request.shard.filter(|_| request.experiment.search) {
            let what = format!("a search cannot be divided into shards such as `{shard}`");
            let hint = "it chooses its cells as it goes; divide it with `--where`";
            return Err(Diagnostic::new(what).hint(hint).into());
        }
        let cells = cells_of(&request.experiment, request.selection.as_ref(), request.shard, &facts)?;
        // The lock matters to threads of one process; the interpreters of another machine are not here.
        let hosted = cells.iter().filter(|e| facts.is_here() && Sharing::of_label(&e.cell.sharing()).one_process);
        let asked = hosted.flat_map(|e| e.cell.terms()).map(|term| &term.member.workload().environment);
        // What a project names is started for no plan without a consent.
        let is_ours = |environment: &&WorkloadPython| match environment {
            WorkloadPython::System => true,
            WorkloadPython::Torch => request.python.is_none(),
            WorkloadPython::Own(_) => false,
        };
        let asked: BTreeSet<_> = asked.filter(|environment| request.describe.is_some() || is_ours(environment)).collect();
        facts.python = python::seen(request.python.as_deref(), asked);
        if facts.is_here() {
            let target = DriverTarget::of(&facts);
            let foreseen = |workload: &Arc<Workload>| {
                let one = std::slice::from_ref(workload);
                Interpreters::foreseen(project, one, request.python.as_deref(), facts.kind, target).ok()
            };
            facts.python.missing =
                programs::missing(cells.iter().flat_map(|e| e.cell.terms()).map(|term| &term.member), &foreseen);
            facts.python.missing_around = programs::missing_around(cells.iter().map(|e| &e.cell), &foreseen);
        }
        let past = past_of(project, &request.experiment, &cells, &facts);
        let prior = Prior { past, is_to_predict: request.predict, ..Prior::default() };
        let plan = plan(&request.experiment, &cells, &facts, &prior);
        Ok(Session { project: project.clone(), request, facts, prior, plan, provided: None, turn: None })
    }

    /// The same for measuring: the state left by a dead collo is restored first, and what cannot be changed on the GPU is
    /// checked, so that the cells which need it are refused before anything is measured.
    pub fn plan_to_measure(project: &Project, request: Request, watcher: Watcher<'_>) -> Result<Session, Diagnostics> {
        let mut session = Session::plan(project, request)?;
        if let Some(at_most) = session.request.wait {
            let turn = session.wait(at_most, watcher)?;
            if turn.has_waited {
                // Another may have left the cards in another state.
                session = Session::plan(project, session.request)?;
            }
            session.turn = Some(turn);
        }
        let gpus = session.facts.gpus.clone();
        gpus.iter().try_for_each(lease::check_free)?;
        // GPUs are restored, and changes of them are tried: neither may end half way.
        let noted = Noted::begin();
        let go_on = || noted.go_on().map_err(|stopped| stopped.error("planning was stopped; every GPU is as it was found"));
        let mut repaired = false;
        for gpu in &gpus {
            if let Some(restored) = lease::repair(gpu)? {
                watcher(Event::Restored { label: gpu.label(), restored });
                repaired = true;
            }
        }
        if repaired {
            let turn = session.turn.take();
            session = Session { turn, ..Session::plan(project, session.request)? };
        }
        go_on()?;
        session.ask_what_is_fixed()?;
        go_on()?;
        Ok(session)
    }

    /// Wait until no other collo uses the GPUs, or measures this CPU.
    fn wait(&self, at_most: Duration, watcher: Watcher<'_>) -> Result<Turn, Diagnostic> {
        let noted = Noted::begin();
        let go_on = || noted.go_on().map_err(|stopped| stopped.error("waiting for another collo was stopped"));
        turn::wait(&self.facts.gpus, at_most, &mut |other| watcher(Event::Waits { other, at_most }), &go_on)
    }

    fn ask_what_is_fixed(&mut self) -> Result<(), Diagnostic> {
        let facts = &self.facts;
        if facts.gpus.is_empty() || facts.as_found {
            return Ok(());
        }
        // What is wanted of the card, whoever may change it: services that are to be stopped by somebody who may not are an error.
        let closed = facts.gpus.iter().any(|gpu| gpu.may_cut == Some(false));
        let open = closed.then(|| {
            let gpus = facts.gpus.iter().map(|gpu| Gpu { may_cut: None, ..gpu.clone() }).collect();
            self.planned_on(&DeviceFacts { gpus, ..facts.clone() })
        });
        let open = open.transpose()?;
        let plan = open.as_ref().unwrap_or(&self.plan);
        let wanted: Vec<&Partition> = plan.cells.iter().filter_map(|c| c.seating.partition.as_ref()).collect();
        let mut fixed = Fixed::default();
        for gpu in &facts.gpus {
            // What is measured on several cards has to be possible on each.
            fixed = fixed.or(fixed::ask(gpu, &wanted, self.request.choice.consent.services)?);
        }
        if fixed != self.facts.fixed {
            self.facts.fixed = fixed;
            self.plan = self.planned_on(&self.facts)?;
        }
        Ok(())
    }

    fn planned_on(&self, facts: &DeviceFacts) -> Result<Plan, Diagnostic> {
        let cells = cells_of(&self.request.experiment, self.request.selection.as_ref(), self.request.shard, facts)?;
        Ok(plan(&self.request.experiment, &cells, facts, &self.prior))
    }

    pub fn experiment(&self) -> &Experiment {
        &self.request.experiment
    }

    pub fn selection(&self) -> Option<&Selection> {
        self.request.selection.as_ref()
    }

    pub fn shard(&self) -> Option<Shard> {
        self.request.shard
    }

    pub fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    /// What will be measured.
    pub fn planned(&self) -> &Plan {
        &self.plan
    }

    /// What settings mean on this machine, where that is not obvious.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.request.experiment.numa_memory == NumaMemory::Local {
            notes.extend(numa::note(&self.request.experiment.cores, &numa::nodes()));
        }
        // The cores near cards that are only planned for are of another machine.
        if self.facts.gpus.iter().all(|gpu| gpu.at.is_some()) {
            notes.extend(self.facts.note_on_shares(&self.request.experiment.cores));
        }
        if !self.request.experiment.sampling.recording {
            notes.push(
                "sampling is off: no time series is recorded, so energy, power, activity and CPU load will be absent".into(),
            );
        }
        notes
    }

    /// Everything that [`Session::measure`] will execute, in order.
    pub fn steps(&self) -> Result<Vec<Step>, Diagnostic> {
        let (own, facts) = (self.request.python.as_deref(), &self.facts);
        let target = DriverTarget::of(facts);
        let interpreters = Interpreters::foreseen(&self.project, &self.workloads(), own, facts.kind, target)?;
        steps(&self.plan, facts, &self.commands(&interpreters), &self.project.runs().join(&self.plan.experiment))
    }

    fn commands<'a>(&'a self, interpreters: &'a Interpreters) -> MemberCommands<'a> {
        MemberCommands { project: &self.project, experiment: &self.request.experiment, interpreters }
    }

    /// Those of all cells, each once.
    fn workloads(&self) -> Vec<Arc<Workload>> {
        let mut workloads: Vec<Arc<Workload>> = Vec::new();
        for member in self.plan.members() {
            if !workloads.iter().any(|w| w.name == member.workload().name) {
                workloads.push(member.workload().clone());
            }
        }
        // What observers need beside them is provided in the same way.
        let tools = self.plan.cells.iter().filter_map(|planned| planned.cell.observe()?.tool()?.as_workload());
        for tool in tools {
            if !workloads.iter().any(|w| w.name == tool.name) {
                workloads.push(Arc::new(tool));
            }
        }
        workloads
    }

    /// Keep only these runs of the plan, by index and cell.
    pub fn keep(&mut self, keep: impl Fn(usize, &PlannedCell) -> bool) {
        self.plan.keep(keep);
    }

    /// Provide Python for the workloads of the cells, and their data.
    pub fn prepare(&mut self, watcher: Watcher<'_>) -> Result<(), RunError> {
        let noted = Noted::begin();
        let workloads = self.workloads();
        let target = DriverTarget::of(&self.facts);
        let mut tell = |progress| watcher(Event::Python(progress));
        let (interpreters, versions) =
            Interpreters::provide(&self.project, &workloads, self.request.python.as_deref(), target, &mut tell)?;
        let data =
            prepare_all(&self.project, self.plan.members(), &interpreters, &mut |prepared| watcher(Event::Data(prepared)))?;
        noted.go_on().map_err(PythonError::from)?;
        self.provided = Some(Provided { interpreters, versions, data });
        Ok(())
    }

    /// Use these interpreters as they are, instead of preparing anything.
    pub fn prepared_with(&mut self, interpreters: Interpreters) {
        self.provided = Some(Provided { interpreters, ..Provided::default() });
    }

    /// Measure the plan, or search; prepares first if necessary.
    pub fn measure(&mut self, watcher: Watcher<'_>) -> Result<Finished, Unfinished> {
        if self.provided.is_none() {
            self.prepare(watcher)?;
        }
        match self.request.experiment.search {
            true => self.search(watcher),
            false => self.campaign(self.request.choice.clone(), watcher),
        }
    }

    /// One campaign, or one more round of it.
    fn campaign(&self, choice: CampaignOptions, watcher: Watcher<'_>) -> Result<Finished, Unfinished> {
        let nothing = Provided::default();
        let provided = self.provided.as_ref().unwrap_or(&nothing);
        let order = CampaignSpec {
            commands: self.commands(&provided.interpreters),
            plan: &self.plan,
            facts: &self.facts,
            python: &provided.versions,
            data: &provided.data,
            selection: self.request.selection.as_ref(),
            shard: self.request.shard,
            choice,
        };
        // Where each card has a thread, this one waits for them: signals are heard on another.
        let mut runtime = match self.facts.gpus.len() {
            0 | 1 => tokio::runtime::Builder::new_current_thread(),
            _ => tokio::runtime::Builder::new_multi_thread(),
        };
        let runtime = runtime.worker_threads(1).enable_all().build().map_err(collo_store::Error::from)?;
        let mut opened = None;
        let result = runtime.block_on(campaign::run(&order, &mut |event| {
            if let Event::Opened { campaign, .. } = &event {
                opened = Some(Box::new((*campaign).clone()));
            }
            watcher(event);
        }));
        result.map_err(|error| Unfinished { error, campaign: opened })
    }
}
