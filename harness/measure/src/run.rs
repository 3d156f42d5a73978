//! Measure one cell, start to end: stage, launch, start, observe, record.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use collo_store::{
    Attestation, AttestationVerdict, CampaignFolder, Diagnostic, Ingredient, MemberSpec, Outcome, PlannedRun, RunRecord, SCHEMA,
    StoredRun, Thresholds, Validity, Verdict, utc_now,
};
use tokio::sync::watch;

use crate::cell::{AfterMeasured, Cell};
use crate::device::lease::GpuLease;
use crate::device::{DeviceFacts, DeviceKind, Gpu, nvml};
use crate::experiment::{Experiment, FailureRule};
use crate::ingredients::IngredientWatch;
use crate::interpreters::Interpreters;
use crate::interrupt::Stop;
use crate::launch::{Adapter, MemberLaunch};
use crate::observe::{self, Observation, ObserveError, ObserveSpec, Rules, View};
use crate::plan::PlannedCell;
use crate::project::Project;
use crate::python::PythonError;
use crate::sampler::Rates;
use crate::sharing::{self, InForce, MEMORY_LIMIT, OTHERS, Seating, Slot, StageContext, StageError, scrubbed};
use crate::workload::Workload;

/// For each member, the number of identical ones (workload and settings) before it: the first is 0 wherever it is in the group,
/// as when it is alone.
fn copies(cell: &Cell) -> Vec<usize> {
    let specs: Vec<_> = cell.members().map(|member| member.spec()).collect();
    specs.iter().enumerate().map(|(at, spec)| specs[..at].iter().filter(|before| *before == spec).count()).collect()
}

/// What all runs of a campaign have in common.
pub struct RunContext<'a> {
    pub project: &'a Project,
    pub experiment: &'a Experiment,
    pub facts: &'a DeviceFacts,
    pub interpreters: &'a Interpreters,
    pub campaign: &'a CampaignFolder,
    pub ingredients: &'a BTreeMap<String, Ingredient>,
    /// The files among them.
    pub files: RefCell<IngredientWatch>,
    /// What the last run wrote beside its scripts, until taken.
    pub written: RefCell<Vec<String>>,
    pub stop: watch::Receiver<Stop>,
    /// Under MPS, only the server may use the GPU.
    pub exclusive: bool,
    /// Others may compute on the GPU.
    pub foreign: bool,
}

/// Failed preparation, or a run that could not be stored.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Observe(#[from] ObserveError),
    #[error(transparent)]
    Store(#[from] collo_store::Error),
    #[error(transparent)]
    Diagnostic(#[from] Diagnostic),
    #[error(transparent)]
    Python(#[from] PythonError),
}

impl From<RunError> for Diagnostic {
    fn from(e: RunError) -> Diagnostic {
        match e {
            RunError::Diagnostic(shown) => shown,
            RunError::Python(e) => e.into(),
            RunError::Store(e) | RunError::Observe(ObserveError::Store(e)) => e.into(),
            RunError::Observe(ObserveError::Launch(e)) => e.into(),
        }
    }
}

impl RunContext<'_> {
    /// Measure one repetition of a cell, on a GPU if one is leased. `None` if it was killed and discarded.
    pub async fn run(
        &self,
        cell: &PlannedCell,
        planned: &PlannedRun,
        mut card: Option<(&Gpu, &mut GpuLease)>,
        show: &mut dyn FnMut(View),
    ) -> Result<Option<StoredRun>, RunError> {
        let PlannedCell { cell, seating, .. } = cell;
        let folder = self.campaign.manifest().plan.folder(planned);
        let mut draft = self.campaign.begin(&folder)?;
        let started_utc = utc_now();
        let mut ground = StageContext {
            facts: self.facts,
            card: card.as_mut().map(|(gpu, hold)| (*gpu, &mut **hold)),
            cores: &self.experiment.cores,
            folder: draft.path(),
            exclusive: self.exclusive,
            foreign: self.foreign,
        };
        let staged = match sharing::stage(&mut ground, seating) {
            Ok(staged) => staged,
            Err(reason) => return self.not_staged(draft, cell, planned, started_utc, reason).map(Some),
        };
        let launches = self.launches(cell, planned.repetition, &staged.slots, draft.path())?;
        let setting = ObserveSpec {
            members: &launches,
            threads: self.experiment.threads,
            all_cores: self.facts.cores.clone(),
            rules: self.rules(cell),
            rates: Rates {
                fast_hz: self.experiment.sampling.rate_hz,
                slow_hz: self.experiment.sampling.slow_rate_hz,
                pss_every: self.experiment.sampling.pss_every,
            },
            boards: staged.card.iter().map(|card| card.board(self.experiment.sampling.sm_source)).collect(),
            attest: {
                let card = staged.card.clone();
                Arc::new(move |found: &[InForce]| sharing::attest(card.as_deref(), found))
            },
            misplaced: &|member, hello| sharing::misplaced(staged.card.as_deref(), member, hello),
            stop: self.stop.clone(),
            show,
        };
        let observed = observe::observe(setting, &mut draft).await;
        let trouble = staged.trouble_and_end(card.as_mut().map(|(_, hold)| &mut **hold));
        let mut observation = observed?;
        if observation.killed {
            draft.discard()?;
            return Ok(None);
        }
        // A member that the host's memory failed may take the MPS server along: that is not the cause.
        let is_told = matches!(observation.outcome, Outcome::DeviceLost { .. } | Outcome::HostOutOfMemory { .. });
        if observation.outcome.is_failure() && !is_told {
            let lost = card.as_ref().and_then(|(_, hold)| lost(hold.uuid()));
            observation.outcome = match (lost, trouble) {
                (Some(reason), _) => Outcome::DeviceLost { reason },
                // Members fail when their server does; it is not they who are to blame.
                (None, Some(reason)) => Outcome::ModeLost { reason },
                (None, None) => observation.outcome,
            };
        }
        let record = self.record(cell, seating, planned, started_utc, &mut observation);
        let path = draft.commit(record, &observation.epochs, &observation.requests)?;
        Ok(Some(StoredRun::open(&path)?))
    }

    /// Record that a run could not be staged, for a reason known beforehand.
    pub fn refuse(&self, cell: &Cell, planned: &PlannedRun, reason: String) -> Result<StoredRun, RunError> {
        let draft = self.campaign.begin(&self.campaign.manifest().plan.folder(planned))?;
        self.not_staged(draft, cell, planned, utc_now(), StageError { reason, lost: false })
    }

    fn rules(&self, cell: &Cell) -> Rules {
        let foreign = cell.members().any(|m| m.workload().epochs.is_some());
        // A foreign script cannot be held.
        let after_measured = match cell.after_measured() {
            AfterMeasured::KeepRunning if !foreign => AfterMeasured::KeepRunning,
            _ => AfterMeasured::Exit,
        };
        Rules {
            epochs: self.experiment.epochs,
            after_measured,
            set_up_timeout: self.set_up_timeout(cell),
            stall_timeout: self.experiment.stall_timeout,
            timeout: self.experiment.timeout,
            keep_survivors: self.experiment.member_failure == FailureRule::KeepSurvivors,
            on_card: self.facts.kind == DeviceKind::Gpu,
        }
    }

    /// Members tune for their GPU, or compile, one after another.
    fn set_up_timeout(&self, cell: &Cell) -> Duration {
        let compiles = cell.terms().iter().any(|t| t.member.settings().get("compile") == Some(&true.into()));
        self.experiment.set_up_timeout_of(cell.degree(), self.facts.kind == DeviceKind::Gpu || compiles)
    }

    fn launches(&self, cell: &Cell, repetition: u32, slots: &[Slot], folder: &Path) -> Result<Vec<MemberLaunch>, RunError> {
        let copies = copies(cell);
        let launch = |(index, (member, slot)): (usize, (&Arc<crate::cell::Member>, &Slot))| {
            let workload = member.workload();
            let mut command = workload.command_for(&member.spec())?;
            self.interpreters.put_into(&mut command, workload);
            let mut env = scrubbed();
            env.extend(process_environment(self.project, workload, &member.spec(), self.interpreters)?);
            env.extend(self.environment(index, slots.len()));
            env.insert("COLLO_COPY".into(), Some(copies[index].to_string()));
            env.insert("COLLO_REPETITION".into(), Some(repetition.to_string()));
            env.extend(slot.env.clone());
            let adapter = workload.epochs.as_ref().map(|a| Adapter {
                pattern: a.pattern.as_str().to_string(),
                items: a.items,
                epochs: self.experiment.epochs,
            });
            let log = folder.join(format!("member-{index}.log"));
            Ok(MemberLaunch { command, folder: workload.folder.clone(), env, log, cores: slot.cores.clone(), adapter })
        };
        cell.members().zip(slots).enumerate().map(launch).collect()
    }

    fn environment(&self, member: usize, members: usize) -> BTreeMap<String, Option<String>> {
        let mut env = BTreeMap::new();
        let threads = self.experiment.threads.to_string();
        for name in ["COLLO_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"] {
            env.insert(name.into(), Some(threads.clone()));
        }
        env.insert("COLLO_MEMBER".into(), Some(member.to_string()));
        env.insert("COLLO_MEMBERS".into(), Some(members.to_string()));
        env
    }

    fn record(
        &self,
        cell: &Cell,
        seating: &Seating,
        planned: &PlannedRun,
        started_utc: String,
        observation: &mut Observation,
    ) -> RunRecord {
        let mut record = self.blank(cell, planned, started_utc);
        record.members = observation.members(&record.cell.members);
        for (member, kept) in record.members.iter_mut().enumerate() {
            kept.slice = seating.slice(member);
        }
        record.timeline = observation.timeline.clone();
        record.outcome = observation.outcome.clone();
        record.sampling = std::mem::take(&mut observation.sampling);
        record.attestation = observation
            .attestation
            .take()
            .unwrap_or_else(|| Attestation::absent("the run ended before the evidence was gathered"));
        if record.members.iter().any(|m| !m.barrier) {
            record.cell.after_measured = AfterMeasured::Exit;
        }
        judge(&mut record, observation.skew_ns, &self.campaign.manifest().thresholds);
        let after = self.files.borrow_mut().after_run();
        self.written.borrow_mut().extend(after.written);
        if let Some(name) = after.changed {
            record.validity.lower(Verdict::Void, format!("`{name}` changed while it ran"));
        }
        record
    }

    fn blank(&self, cell: &Cell, planned: &PlannedRun, started_utc: String) -> RunRecord {
        let manifest = self.campaign.manifest();
        RunRecord {
            schema: SCHEMA,
            experiment: manifest.experiment.clone(),
            campaign: manifest.id.clone(),
            cell: manifest.plan.cells.get(planned.cell).cloned().unwrap_or_else(|| cell.record(1)),
            repetition: planned.repetition,
            block: planned.block,
            device: manifest.device.clone(),
            started_utc,
            timeline: Default::default(),
            outcome: Outcome::Interrupted,
            validity: Validity::valid(),
            attestation: Attestation::absent("nothing was started"),
            members: Vec::new(),
            sampling: Vec::new(),
            ingredients: {
                let files = self.files.borrow();
                let are = self.ingredients.iter().filter(|(name, _)| !files.is_output(name));
                are.map(|(name, i)| (name.clone(), i.sha256.clone())).collect()
            },
            files: BTreeMap::new(),
        }
    }

    fn not_staged(
        &self,
        draft: collo_store::RunDraft,
        cell: &Cell,
        planned: &PlannedRun,
        started_utc: String,
        StageError { reason, lost }: StageError,
    ) -> Result<StoredRun, RunError> {
        let mut record = self.blank(cell, planned, started_utc);
        record.outcome = match lost {
            false => Outcome::NotStaged { reason: reason.clone() },
            true => Outcome::DeviceLost { reason: reason.clone() },
        };
        record.validity.lower(Verdict::Void, reason);
        draft.samples()?.finish()?;
        let path = draft.commit(record, &[], &[])?;
        Ok(StoredRun::open(&path)?)
    }
}

/// The driver's report of a GPU that has disappeared.
fn lost(uuid: &str) -> Option<String> {
    use nvml_wrapper::error::NvmlError;
    let gone = |e: &NvmlError| matches!(e, NvmlError::GpuLost | NvmlError::ResetRequired);
    let answer = nvml::open().ok()?.device_by_uuid(uuid).and_then(|device| device.memory_info()).err()?;
    gone(&answer).then(|| format!("the driver reports: {}", nvml::text(&answer)))
}

/// The environment of every process of a workload, for members and preparation alike.
pub fn process_environment(
    project: &Project,
    workload: &Workload,
    member: &MemberSpec,
    interpreters: &Interpreters,
) -> Result<BTreeMap<String, Option<String>>, Diagnostic> {
    let mut env: BTreeMap<String, Option<String>> =
        workload.variables_for(member)?.into_iter().map(|(name, value)| (name, Some(value))).collect();
    env.extend([
        ("COLLO_DATA".into(), Some(project.data().display().to_string())),
        ("PYTHONPATH".into(), Some(interpreters.search_path(project, workload))),
        // What is not in the environment's pins does not belong to the measurement.
        ("PYTHONNOUSERSITE".into(), Some("1".into())),
        ("COLLO_SOCKET".into(), None),
    ]);
    Ok(env)
}

/// The validity of a run as far as the harness can judge it; the report adds what only many runs show.
fn judge(record: &mut RunRecord, skew_ns: Option<u64>, thresholds: &Thresholds) {
    if record.outcome == Outcome::Completed {
        match record.attestation.verdict {
            AttestationVerdict::Attested => {}
            AttestationVerdict::CountsOnly => {
                record.validity.lower(Verdict::Informative, "attested by counts only");
            }
            AttestationVerdict::Absent => {
                let reason = unmet(&record.attestation);
                record.outcome = Outcome::ModeLost { reason: reason.clone() };
                record.validity.lower(Verdict::Void, reason);
            }
        }
    } else {
        let why = format!("{}: no time of it is used", record.outcome.text());
        record.validity.lower(Verdict::Void, why);
    }
    if record.attestation.checks.iter().any(|c| c.what == MEMORY_LIMIT && c.found.is_none()) {
        record.validity.lower(Verdict::Informative, "the memory limit of MPS could not be read back");
    }
    let others = record.attestation.checks.iter().find(|c| c.what == OTHERS && c.holds);
    if let Some(who) = others.and_then(|c| c.found.clone()).filter(|who| who != "none") {
        record.validity.lower(Verdict::Informative, format!("{who} computed on the same GPU"));
    }
    let barrier = record.members.iter().all(|m| m.barrier);
    if let Some(skew_s) = skew_ns.map(|ns| ns as f64 / 1e9).filter(|s| barrier && *s > thresholds.start_skew_s) {
        let limit = thresholds.start_skew_s;
        record.validity.lower(Verdict::Informative, format!("members started {skew_s:.3} s apart, the limit is {limit} s"));
    }
}

/// The first check that fails, in words.
fn unmet(attestation: &Attestation) -> String {
    match attestation.checks.iter().find(|c| !c.holds) {
        None => "no evidence that the mode was in force".into(),
        Some(check) => sharing::words(check),
    }
}
