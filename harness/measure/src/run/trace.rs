//! Measure one run of a trace: stage all cards, play the tasks, store what came of it.

use collo_device::control_groups::ControlGroups;
use collo_schedule::{Decided, Decision, Rules as SiteRules, SiteCard, State, TaskAccount};
use collo_store::{
    Attestation, AttestationVerdict, DecisionRecord, Outcome, RunDraft, RunRecord, SeenCard, StoredRun, TaskEnd, TaskRecord,
    TraceCard, TraceRecord, write_trace,
};

use super::{RunContext, not_staged};
use crate::error::RunError;
use crate::manage::{self, CutShort, ManageSpec, Played};
use crate::observe::{Rules, View};
use crate::stage::{StageError, StagedSite};
use collo_device::lease::LeasedGpu;
use collo_device::nvml;
use collo_plan::cell::{CellTask, CellTrace};
use collo_plan::goal::EpochGoal;
use collo_plan::plan::PlannedCell;
use collo_sample::Rates;

/// Kept free on a GPU for what the driver and further contexts hold outside of any estimate: the study's code subtracts as much.
const RESERVE_BYTES: u64 = 512 << 20;

impl RunContext<'_> {
    /// Play a trace once. `None` if it was killed and discarded.
    pub(super) async fn play(
        &self,
        (PlannedCell { cell, seating, estimates, .. }, trace): (&PlannedCell, &CellTrace),
        repetition: u32,
        mut draft: RunDraft,
        blank: RunRecord,
        leases: &mut [LeasedGpu<'_>],
        show: &mut dyn FnMut(View),
    ) -> Result<Option<StoredRun>, RunError> {
        let experiment = self.commands.experiment;
        let shares = self.facts.shares(&experiment.cores);
        let mut site = match self.stage(leases, cell, seating, &shares, draft.path()) {
            Ok(site) => site,
            Err(reason) => return not_staged(draft, blank, reason).map(Some),
        };
        let rules = match self.site_rules(trace, &site) {
            Ok(rules) => rules,
            Err(reason) => {
                site.end(leases);
                return not_staged(draft, blank, reason).map(Some);
            }
        };
        let folder = draft.inside().to_path_buf();
        let goal = |task: usize| EpochGoal { epochs: trace.tasks[task].epochs, measure_for_ns: 0 };
        let launch =
            |index: usize, task: usize, slot: &_| self.commands.launch_task(trace, index, task, repetition, slot, &folder);
        let of_task = |task: usize| Rules { goal: goal(task), set_up_timeout: experiment.set_up_timeout, ..self.rules(cell) };
        let spec = ManageSpec {
            tasks: &trace.tasks,
            estimates,
            rules: &rules,
            settle: trace.manager.settle,
            site: &mut site,
            leases,
            launch: &launch,
            of_task: &of_task,
            threads: experiment.threads,
            all_cores: self.facts.cores.clone(),
            rates: Some(Rates {
                fast_hz: experiment.sampling.rate_hz,
                slow_hz: experiment.sampling.slow_rate_hz,
                pss_every: experiment.sampling.pss_every,
            }),
            stall_timeout: experiment.stall_timeout,
            stop: self.stop.clone(),
            show,
        };
        let throttling = ControlGroups::own().throttling();
        let played = manage::play(spec, &mut draft).await;
        let throttling = throttling.zip(ControlGroups::own().throttling()).and_then(|(then, now)| now.since(then));
        let cards = (0..site.cards()).map(|card| card_record(&site, card, &rules)).collect();
        site.end(leases);
        let played = played?;
        if played.cut_short == Some(CutShort::Interrupted(true)) {
            draft.discard()?;
            return Ok(None);
        }
        if let Some(CutShort::DiskFull(why)) = &played.cut_short {
            return Err(collo_store::Error::from(std::io::Error::other(why.clone())).into());
        }
        write_tables(&draft, trace, estimates, &played)?;
        let record = RunRecord { throttling, ..recorded(blank, cards, &rules, &played) };
        self.close(draft, record, None, (&played.epochs, &played.requests)).map(Some)
    }

    /// The rules by which the ledger decides here.
    fn site_rules(&self, trace: &CellTrace, site: &StagedSite) -> Result<SiteRules, StageError> {
        let manager = &trace.manager;
        let mut cards = Vec::new();
        for card in 0..site.cards() {
            cards.push(match site.visible(card) {
                Some(device) => {
                    let capacity_bytes = memory_of(&device.uuid)?;
                    SiteCard { capacity_bytes, reserve_bytes: RESERVE_BYTES.min(capacity_bytes / 4), node: 0 }
                }
                None => {
                    let all =
                        self.facts.memory_bytes.ok_or_else(|| StageError::because("the size of the host's memory is unknown"))?;
                    SiteCard { capacity_bytes: all / site.cards() as u64, reserve_bytes: 0, node: 0 }
                }
            });
        }
        let keeps = serde_json::from_value(manager.recovery_keeps.clone().into());
        Ok(SiteRules {
            queue: manager.queue.clone(),
            recovery: manager.recovery.clone(),
            recovery_keeps: keeps.map_err(|e| StageError::because(format!("`recovery_keeps`: {e}")))?,
            attempts: manager.attempts,
            window_ns: self.window_ns(manager.window_ns),
            decide_every_ns: manager.decide_every_ns,
            idle_first: manager.idle_first,
            expects: Some(trace.tasks.len() as u32),
            ..SiteRules::of(trace.record.policy.clone(), cards)
        })
    }

    /// Readings come so often: a window has at least a few of them, whatever the scale.
    fn window_ns(&self, asked_ns: u64) -> u64 {
        asked_ns.max((READINGS_OF_A_WINDOW * 1e9 / self.commands.experiment.sampling.rate_hz.min(PROFILER_HZ)) as u64)
    }
}

fn card_record(site: &StagedSite, card: usize, rules: &SiteRules) -> TraceCard {
    let cores = site.cores_of(card).filter(|_| site.visible(card).is_none()).map(<[u32]>::to_vec);
    let (scope, capacity_bytes) = (site.scope(card).to_string(), rules.cards[card].capacity_bytes);
    TraceCard { scope, name: site.label(card), cores: cores.unwrap_or_default(), capacity_bytes }
}

/// The record of a trace that was played.
fn recorded(mut record: RunRecord, cards: Vec<TraceCard>, rules: &SiteRules, played: &Played) -> RunRecord {
    let lost = |reason: &String| Outcome::DeviceLost { reason: reason.clone() };
    record.outcome = match &played.cut_short {
        None => Outcome::Completed,
        Some(CutShort::Interrupted(_)) => Outcome::Interrupted,
        Some(CutShort::ModeLost(reason)) => Outcome::ModeLost { reason: reason.clone() },
        Some(CutShort::DeviceLost(reason) | CutShort::DiskFull(reason)) => lost(reason),
        Some(CutShort::NotStaged(reason)) => Outcome::NotStaged { reason: reason.clone() },
    };
    record.members = played.members.clone();
    record.timeline.launched_ns = played.launched_ns;
    record.timeline.go_ns = Some(played.began_ns);
    record.timeline.done_ns = played.attempts.iter().map(|attempt| attempt.ended_ns).max();
    record.timeline.ended_ns = played.ended_ns;
    record.sampling = played.sampling.clone();
    record.attestation = attestation(played);
    record.trace = Some(TraceRecord {
        rules: serde_json::to_value(rules).unwrap_or_default(),
        cards,
        began_ns: played.began_ns,
        remarks: played.remarks.clone(),
    });
    record
}

/// Write the tables of a trace: its tasks, its attempts, the decisions on them.
fn write_tables(
    draft: &RunDraft,
    trace: &CellTrace,
    estimates: &[Option<u64>],
    played: &Played,
) -> Result<(), collo_store::Error> {
    let of = |number: usize| played.accounts.iter().find(|account| account.task.id.0 as usize == number);
    let task = |(number, task): (usize, &CellTask)| TaskRecord {
        task: number as u32,
        solo: task.member.solo().to_string(),
        epochs: task.epochs,
        cards: task.cards,
        arrives_ns: task.arrives_ns,
        arrived_ns: of(number).map(|account| played.began_ns + account.arrived_ns),
        estimate_bytes: estimates.get(number).copied().flatten(),
        end: end_of(of(number)),
        blocked_ns: of(number).map_or(0, |account| account.blocked_ns),
    };
    let tasks: Vec<TaskRecord> = trace.tasks.iter().enumerate().map(task).collect();
    let decisions: Vec<DecisionRecord> = played.decided.iter().flat_map(|decided| decisions(decided, played.began_ns)).collect();
    write_trace(draft.inside(), &tasks, &played.attempts, &decisions)
}

/// A window has at least so many readings.
const READINGS_OF_A_WINDOW: f64 = 5.0;
/// How often a profiler is read at most.
const PROFILER_HZ: f64 = 10.0;

fn memory_of(uuid: &str) -> Result<u64, StageError> {
    let because = |e: &dyn std::fmt::Display| StageError::because(format!("the memory of {uuid} cannot be read: {e}"));
    let nvml = nvml::open().map_err(|e| because(&e))?;
    let device = nvml.device_by_uuid(uuid).map_err(|e| because(&nvml::text(&e)))?;
    device.memory_info().map(|info| info.total).map_err(|e| because(&nvml::text(&e)))
}

/// Attested only if every attempt that trained is: an attempt that ended before it was ready has nothing to be attested.
fn attestation(played: &Played) -> Attestation {
    let trained = played.attempts.iter().zip(&played.members).filter(|(_, member)| member.training_start_ns.is_some());
    let verdicts: Vec<AttestationVerdict> = trained.map(|(attempt, _)| attempt.attested).collect();
    let checks = played.checks.clone();
    if let Some(CutShort::ModeLost(reason)) = &played.cut_short
        && checks.iter().all(|check| check.holds)
    {
        return Attestation::absent(reason.clone());
    }
    if verdicts.is_empty() {
        return Attestation::absent("no attempt of the trace trained");
    }
    let worst = [AttestationVerdict::Absent, AttestationVerdict::CountsOnly, AttestationVerdict::Attested];
    let verdict = worst.into_iter().find(|verdict| verdicts.contains(verdict)).unwrap_or(AttestationVerdict::Absent);
    Attestation { verdict, checks }
}

fn end_of(account: Option<&TaskAccount>) -> TaskEnd {
    match account.map(|account| account.state) {
        Some(State::Done) => TaskEnd::Done,
        Some(State::Failed) => TaskEnd::Failed,
        Some(State::Never) => TaskEnd::Never,
        _ => TaskEnd::Interrupted,
    }
}

/// A decision as rows, one for each card that it saw. Times of the ledger count from the beginning of the trace.
fn decisions(decided: &Decided, began_ns: u64) -> Vec<DecisionRecord> {
    let row = |card| DecisionRecord {
        at_ns: began_ns + decided.at_ns,
        task: decided.task.0,
        attempt: decided.attempt.map(|attempt| attempt.0),
        decided: match decided.outcome {
            Decision::Placed => "placed",
            Decision::Waits => "waits",
            Decision::Never => "never",
        }
        .into(),
        why: decided.why.clone(),
        card,
    };
    if decided.seen.is_empty() {
        return vec![row(None)];
    }
    let seen = |seen: &collo_schedule::Seen| SeenCard {
        card: seen.card.0,
        chosen: decided.cards.contains(&seen.card),
        candidate: seen.candidate,
        why_not: seen.why_not.map(|why| why.to_string()),
        free_bytes: seen.read_ns.map(|_| seen.free_bytes),
        promised_bytes: seen.promised_bytes,
        residents: seen.residents,
        sm_permille: seen.sm_permille,
        occupancy_permille: seen.occupancy_permille,
        dram_permille: seen.dram_permille,
        read_ns: seen.read_ns.map(|ns| began_ns + ns),
    };
    decided.seen.iter().map(|card| row(Some(seen(card)))).collect()
}
