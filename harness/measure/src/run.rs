//! Measure one cell, start to end: stage, launch, start, observe, record.

mod trace;

use crate::stage;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use collo_store::{
    Attestation, AttestationVerdict, CampaignFolder, Cooling, CpuThrottling, EpochRecord, Ingredient, Outcome, PlannedRun,
    RequestRecord, RunDraft, RunRecord, SCHEMA, Sharing, StoredRun, Thresholds, Validity, Verdict, XidError, utc_now,
};
use tokio::sync::watch;

use crate::error::RunError;
use crate::observe::watching::{Watching, with_samples};
use crate::observe::{self, GRACE, Observation, ObserveSpec, Rules, View};
use crate::stage::{Consent, MEMORY_LIMIT, NOBODY, OTHERS, Placing, SiteOrder, StageError, StagedSite, THREAD_LIMIT};
use collo_device::lease::LeasedGpu;
use collo_device::nvml;
use collo_launch::interrupt::Stop;
use collo_plan::cell::Cell;
use collo_plan::experiment::FailureRule;
use collo_plan::facts::{CardShare, DeviceFacts, DeviceKind};
use collo_plan::goal::EpochGoal;
use collo_plan::observer::{Observe, Place};
use collo_plan::plan::PlannedCell;
use collo_plan::sharing::Seating;
use collo_prepare::commands::MemberCommands;
use collo_prepare::consent;
use collo_prepare::ingredients::IngredientWatch;
use collo_sample::Rates;

/// What all runs of a campaign have in common.
pub struct RunContext<'a> {
    pub commands: MemberCommands<'a>,
    pub facts: &'a DeviceFacts,
    pub consent: Consent,
    pub campaign: &'a CampaignFolder,
    pub ingredients: &'a BTreeMap<String, Ingredient>,
    /// The files among them.
    pub files: Mutex<IngredientWatch>,
    /// What the last runs wrote beside their scripts, until taken.
    pub written: Mutex<Vec<String>>,
    pub stop: watch::Receiver<Stop>,
}

/// What went before a run.
#[derive(Debug, Clone, Default)]
pub struct BeforeRun {
    /// How earlier attempts at it failed.
    pub failed_attempts: Vec<Outcome>,
    /// The wait for the GPU to cool down.
    pub cooling: Option<Cooling>,
}

/// What one run is measured on.
pub struct RunDevice<'a, 'l> {
    pub share: &'a CardShare,
    /// The GPUs, of which a group is on the first; none on a CPU.
    pub leases: &'a mut [LeasedGpu<'l>],
}

impl RunContext<'_> {
    /// The files that the numbers depend on.
    pub fn files(&self) -> MutexGuard<'_, IngredientWatch> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What runs wrote beside their scripts since this was last asked.
    pub fn written(&self) -> Vec<String> {
        std::mem::take(&mut *self.written.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Measure one repetition of a cell. `None` if it was killed and discarded.
    pub async fn run(
        &self,
        cell: &PlannedCell,
        planned: &PlannedRun,
        before: &BeforeRun,
        on: RunDevice<'_, '_>,
        show: &mut dyn FnMut(View),
    ) -> Result<Option<StoredRun>, RunError> {
        let draft = self.campaign.begin(&self.campaign.manifest().plan.folder(planned))?;
        let started_utc = utc_now();
        let blank = || self.blank(&cell.cell, planned, started_utc.clone(), before);
        match cell.cell.trace() {
            Some(trace) => self.play((cell, trace), planned.repetition, draft, blank(), on.leases, show).await,
            None => self.observe(cell, planned.repetition, draft, &blank, on, show).await,
        }
    }

    /// Measure a group.
    async fn observe(
        &self,
        PlannedCell { cell, seating, .. }: &PlannedCell,
        repetition: u32,
        mut draft: RunDraft,
        blank: &dyn Fn() -> RunRecord,
        RunDevice { share, leases }: RunDevice<'_, '_>,
        show: &mut dyn FnMut(View),
    ) -> Result<Option<StoredRun>, RunError> {
        let (sampling, first) = (&self.commands.experiment.sampling, leases.len().min(1));
        let leases = &mut leases[..first];
        let mut site = match self.stage(leases, cell, seating, std::slice::from_ref(share), draft.path()) {
            Ok(site) => site,
            Err(reason) => return not_staged(draft, blank(), reason).map(Some),
        };
        let slots = site.slots(seating, share);
        let (mut launches, mut host) = self.commands.group(cell, seating, repetition, &slots, draft.path())?;
        // Before a log is opened, a member that started earlier may have moved the folder.
        let logs = launches.iter_mut().chain(host.as_mut().map(|host| &mut host.process)).map(|launch| &mut launch.log);
        logs.for_each(|log| *log = draft.inside_of(log));
        let observing = self.commands.observing(cell, draft.path());
        let recording = observing.as_ref().map_or(sampling.recording, |spec| spec.is_sampled_by_collo());
        let fast_hz = observing.as_ref().and_then(|spec| spec.observe.collo_hz()).unwrap_or(sampling.rate_hz);
        let setting = ObserveSpec {
            members: &launches,
            host: host.as_ref(),
            threads: self.commands.experiment.threads,
            all_cores: share.facts.cores.clone(),
            rules: self.rules(cell),
            rates: recording.then(|| Rates {
                fast_hz,
                slow_hz: sampling.slow_rate_hz.min(fast_hz),
                pss_every: sampling.pss_every,
            }),
            boards: site.boards(),
            card: site.card(0),
            hosting: seating.hosting,
            watching: observing.map(|spec| Watching::of(spec, draft.inside(), self.facts.gpus.len() < 2)),
            stop: self.stop.clone(),
            show,
        };
        let observed = observe::observe(setting, &mut draft).await;
        let trouble = site.trouble(0);
        site.end(leases);
        let mut observation = observed?;
        if observation.killed {
            draft.discard()?;
            return Ok(None);
        }
        // A member that the host's memory failed may take the MPS server along: that is not the cause.
        let is_told = matches!(observation.outcome, Outcome::DeviceLost { .. } | Outcome::HostOutOfMemory { .. });
        if observation.outcome.is_failure() && !is_told {
            let lost = leases.first().and_then(|(_, hold)| nvml::lost(hold.uuid()));
            observation.outcome = match (lost, trouble) {
                (Some(reason), _) => Outcome::DeviceLost { reason },
                // Members fail when their server does; it is not they who are to blame.
                (None, Some(reason)) => Outcome::ModeLost { reason },
                (None, None) => observation.outcome,
            };
        }
        let mut record = recorded(blank(), seating, &mut observation);
        if let Some(observer) = &mut record.observer {
            with_samples(observer, draft.inside());
        }
        for (kept, launch) in record.members.iter_mut().zip(&launches) {
            kept.command = launch.command.clone();
        }
        let Observation { skew_ns, epochs, requests, .. } = &observation;
        self.close(draft, record, *skew_ns, (epochs, requests)).map(Some)
    }

    /// The device as this seating asks for.
    fn stage(
        &self,
        leases: &mut [LeasedGpu<'_>],
        cell: &Cell,
        seating: &Seating,
        shares: &[CardShare],
        folder: &Path,
    ) -> Result<StagedSite, StageError> {
        let (sources, placing) = (self.commands.experiment.sampling.sm_source, Placing::of(cell));
        StagedSite::stage(leases, seating, &SiteOrder { folder, shares, consent: self.consent, sources, placing })
    }

    /// Judge what came of a run, and store it.
    fn close(
        &self,
        draft: RunDraft,
        mut record: RunRecord,
        skew_ns: Option<u64>,
        (epochs, requests): (&[EpochRecord], &[RequestRecord]),
    ) -> Result<StoredRun, RunError> {
        let short = match record.trace {
            None => too_few_epochs(record.members.len(), epochs, self.commands.experiment.goal()),
            Some(_) => None,
        };
        judge(&mut record, skew_ns, short, &self.campaign.manifest().thresholds);
        let after = self.files().after_run();
        self.written.lock().unwrap_or_else(PoisonError::into_inner).extend(after.written);
        if let Some(name) = after.changed {
            record.validity.lower(Verdict::Discarded, format!("`{name}` changed while it ran"));
            // It is measured again when the campaign goes on, with what the campaign was begun with.
            if record.outcome == Outcome::Completed {
                record.outcome = Outcome::Interrupted;
            }
        }
        let path = draft.commit(record, epochs, requests)?;
        consent::note_run(self.commands.project);
        Ok(StoredRun::open(&path)?)
    }

    /// Record that a run could not be staged, for a reason known beforehand.
    pub fn refuse(&self, cell: &Cell, planned: &PlannedRun, reason: String) -> Result<StoredRun, RunError> {
        let draft = self.campaign.begin(&self.campaign.manifest().plan.folder(planned))?;
        not_staged(draft, self.blank(cell, planned, utc_now(), &BeforeRun::default()), StageError { reason, lost: false })
    }

    fn rules(&self, cell: &Cell) -> Rules {
        Rules {
            goal: self.commands.experiment.goal(),
            after_measured: cell.after_measured(),
            set_up_timeout: self.set_up_timeout(cell),
            stall_timeout: self.commands.experiment.stall_timeout,
            timeout: self.commands.experiment.timeout,
            grace: self.grace(cell),
            keep_survivors: self.commands.experiment.member_failure == FailureRule::KeepSurvivors,
            on_card: self.facts.kind == DeviceKind::Gpu,
        }
    }

    /// What runs around the members writes its report when they have ended, and ends with them.
    fn grace(&self, cell: &Cell) -> Duration {
        let around = cell.observe().and_then(Observe::tool).filter(|tool| tool.place == Place::Around);
        GRACE + around.map(|tool| tool.stop_timeout).unwrap_or_default()
    }

    /// Members tune for their GPU, or compile, or share one process, one after another.
    fn set_up_timeout(&self, cell: &Cell) -> Duration {
        let compiles = cell.terms().iter().any(|t| t.member.settings().get("compile") == Some(&true.into()));
        let in_turn = compiles || Sharing::of_label(&cell.sharing()).one_process;
        self.commands.experiment.set_up_timeout_of(cell.degree(), self.facts.kind == DeviceKind::Gpu || in_turn)
    }

    fn blank(&self, cell: &Cell, planned: &PlannedRun, started_utc: String, before: &BeforeRun) -> RunRecord {
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
            process: None,
            sampling: Vec::new(),
            ingredients: {
                let files = self.files();
                let are = self.ingredients.iter().filter(|(name, _)| !files.is_output(name));
                are.map(|(name, i)| (name.clone(), i.sha256.clone())).collect()
            },
            failed_attempts: before.failed_attempts.clone(),
            cooling: before.cooling.clone(),
            throttling: None,
            trace: None,
            observer: None,
            files: BTreeMap::new(),
        }
    }
}

/// The record of a group that was observed.
fn recorded(mut record: RunRecord, seating: &Seating, observation: &mut Observation) -> RunRecord {
    record.members = observation.members(&record.cell.members);
    for (member, kept) in record.members.iter_mut().enumerate() {
        kept.slice = seating.slice(member);
    }
    record.process = observation.process.take();
    record.timeline = observation.timeline.clone();
    record.outcome = observation.outcome.clone();
    record.observer = observation.observer.take();
    record.sampling = std::mem::take(&mut observation.sampling);
    record.throttling = observation.throttling;
    let absent = || Attestation::absent("the run ended before the evidence was gathered");
    record.attestation = observation.attestation.take().unwrap_or_else(absent);
    record
}

/// Store a run that could not be staged.
fn not_staged(draft: RunDraft, mut record: RunRecord, StageError { reason, lost }: StageError) -> Result<StoredRun, RunError> {
    record.outcome = match lost {
        false => Outcome::NotStaged { reason: reason.clone() },
        true => Outcome::DeviceLost { reason: reason.clone() },
    };
    record.validity.lower(Verdict::Discarded, reason);
    draft.samples()?.finish()?;
    let path = draft.commit(record, &[], &[])?;
    Ok(StoredRun::open(&path)?)
}

/// The validity of a run as far as the harness can judge it; the report adds what only many runs show.
fn judge(record: &mut RunRecord, skew_ns: Option<u64>, short: Option<(Verdict, String)>, thresholds: &Thresholds) {
    if record.outcome == Outcome::Completed
        && let Some((verdict, why)) = short
    {
        record.validity.lower(verdict, why);
        if verdict == Verdict::Discarded {
            // Members that never trained together leave no evidence either, and this is why.
            return;
        }
    }
    if record.outcome == Outcome::Completed {
        match record.attestation.verdict {
            AttestationVerdict::Attested => {}
            AttestationVerdict::CountsOnly => {
                record.validity.lower(Verdict::Indicative, "attested by counts only");
            }
            AttestationVerdict::Absent => {
                let reason = unmet(&record.attestation);
                record.outcome = Outcome::ModeLost { reason: reason.clone() };
                record.validity.lower(Verdict::Discarded, reason);
            }
        }
    } else {
        let why = format!("{}: no time of it is used", record.outcome.text());
        record.validity.lower(Verdict::Discarded, why);
    }
    for (what, name) in [(MEMORY_LIMIT, "memory"), (THREAD_LIMIT, "thread")] {
        if record.attestation.checks.iter().any(|c| c.what == what && c.found.is_none()) {
            record.validity.lower(Verdict::Indicative, format!("the {name} limit of MPS could not be read back"));
        }
    }
    // The error of a program is the outcome of its own member, or another's affair.
    let texts: Vec<String> = record.xids().into_iter().filter(|xid| !xid.is_of_a_program()).map(XidError::text).collect();
    for text in texts {
        record.validity.lower(Verdict::Indicative, format!("the driver reported {text} while it ran"));
    }
    if let Some(why) = record.cooling.as_ref().and_then(Cooling::shortfall) {
        record.validity.lower(Verdict::Indicative, why);
    }
    if let Some(CpuThrottling { periods, throttled }) = record.throttling {
        let why = format!("the CPU quota was used up in {throttled} of {periods} periods while members trained");
        record.validity.lower(Verdict::Indicative, why);
    }
    // A trace has one for each attempt.
    let mut others = record.attestation.checks.iter().filter(|c| c.what == OTHERS && c.holds).filter_map(|c| c.found.clone());
    if let Some(who) = others.find(|who| who != NOBODY) {
        record.validity.lower(Verdict::Indicative, format!("{who} computed on the same GPU"));
    }
    if let Some(skew_s) = skew_ns.map(|ns| ns as f64 / 1e9).filter(|s| *s > thresholds.start_skew_s) {
        record.validity.lower(Verdict::Indicative, Validity::started_apart(skew_s, thresholds.start_skew_s));
    }
    for remark in record.trace.as_ref().map(|trace| trace.remarks.clone()).unwrap_or_default() {
        record.validity.lower(Verdict::Indicative, remark);
    }
}

/// The member of a group that measured less than was asked for, as scripts without a barrier may, and what that makes of the run.
fn too_few_epochs(members: usize, epochs: &[EpochRecord], goal: EpochGoal) -> Option<(Verdict, String)> {
    let too_few = |member: usize| {
        let measured: Vec<&EpochRecord> = epochs.iter().filter(|e| e.measured && e.member as usize == member).collect();
        let Some((first, last)) = measured.first().zip(measured.last()) else {
            return Some((
                Verdict::Discarded,
                format!("member {member} ended no epoch while all members trained: let scripts train longer"),
            ));
        };
        let (count, asked) = (measured.len() as u32, goal.measured());
        match goal.is_reached(count, first.start_ns, last.end_ns) {
            true => None,
            false if count < asked => {
                let why = format!(
                    "member {member} ended {count} of {asked} epochs while all members trained: let scripts train longer"
                );
                Some((Verdict::Indicative, why))
            }
            false => Some((Verdict::Indicative, format!("member {member} measured for less than `measure_for`"))),
        }
    };
    // Discarded before indicative.
    let all: Vec<(Verdict, String)> = (0..members).filter_map(too_few).collect();
    all.into_iter().max_by_key(|(verdict, _)| *verdict == Verdict::Discarded)
}

/// The first check that fails, in words.
fn unmet(attestation: &Attestation) -> String {
    match attestation.checks.iter().find(|c| !c.holds) {
        None => "no evidence that the mode was in force".into(),
        Some(check) => stage::words(check),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn epochs(measured: &[&[bool]]) -> Vec<EpochRecord> {
        let record = |member: usize, index: usize, measured: bool| EpochRecord {
            member: member as u32,
            index: index as u32,
            measured,
            items: None,
            start_ns: index as u64 * S,
            end_ns: (index as u64 + 1) * S,
            loss: None,
        };
        let of = |(member, all): (usize, &&[bool])| {
            all.iter().enumerate().map(|(index, is)| record(member, index, *is)).collect::<Vec<_>>()
        };
        measured.iter().enumerate().flat_map(of).collect()
    }

    #[test]
    fn a_group_that_measured_less_than_asked_is_indicative_and_one_with_a_member_without_an_epoch_is_discarded() {
        let judged = |measured: &[&[bool]], epochs_asked: u32, measure_for_ns: u64| {
            let goal = EpochGoal { epochs: epochs_asked, measure_for_ns };
            too_few_epochs(measured.len(), &epochs(measured), goal)
        };
        assert_eq!(judged(&[&[false, true, true], &[false, true, true, false]], 3, 0), None);
        let (verdict, why) = judged(&[&[false, true, true], &[false, false, true]], 3, 0).expect("one short");
        assert_eq!(
            (verdict, why.as_str()),
            (Verdict::Indicative, "member 1 ended 1 of 2 epochs while all members trained: let scripts train longer")
        );
        let (verdict, why) = judged(&[&[false, true], &[false, false]], 3, 0).expect("none of one");
        assert_eq!(
            (verdict, why.as_str()),
            (Verdict::Discarded, "member 1 ended no epoch while all members trained: let scripts train longer")
        );
        let (verdict, why) = judged(&[&[false, true, true]], 2, 3 * S).expect("too short");
        assert_eq!((verdict, why.as_str()), (Verdict::Indicative, "member 0 measured for less than `measure_for`"));
    }
}
