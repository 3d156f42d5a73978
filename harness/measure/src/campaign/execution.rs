//! The loop of a campaign: one run after another, with pauses, retries and limits, until nothing is left to do or something ends it.
//! On several cards there is one such loop for each, on a thread of its own, so that a card that is staged delays no message of a
//! group on another.
//!
//! In: the runs to do, what is stored. Out: how it ended, and how many runs are final now.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Instant;

use collo_store::{Outcome, PlannedRun, StoredRun};
use collo_text::Diagnostic;

use super::attempts::Attempts;
use super::cooldown::{Cooler, pause};
use super::failures::Extent;
use super::leased::Leases;
use super::{CampaignEnd, CampaignSpec, Only, Spent};
use crate::error::RunError;
use crate::events::{Event, Watcher};
use crate::observe::{Phase, View};
use crate::run::{BeforeRun, RunContext, RunDevice};
use collo_device::lease::{GpuLease, LeasedGpu};
use collo_launch::interrupt::{Interrupts, Stop};
use collo_launch::protocol::Shortfall;
use collo_plan::facts::CardShare;
use collo_plan::plan::PlannedCell;

/// What the loops of all cards have in common.
struct Loops<'a, 'w> {
    order: &'a CampaignSpec<'a>,
    bench: &'a RunContext<'a>,
    interrupts: &'a Interrupts,
    begun: Instant,
    stored: &'a BTreeMap<String, StoredRun>,
    /// There are several.
    several: bool,
    extent: Extent,
    /// Held for reading by whoever measures, for writing by whoever changes a MIG mode: that may reset a card, stop services and
    /// needs every handle on the card closed, those of this process among them.
    quiet: RwLock<()>,
    so_far: Mutex<SoFar<'w>>,
}

/// What they count together, and tell.
struct SoFar<'w> {
    attempts: Attempts,
    spent: &'w mut Spent,
    done: usize,
    journal: &'w mut collo_store::Journal,
    watcher: Watcher<'w>,
    /// The most urgent request to stop that was told.
    heard: Stop,
    /// No further run begins on any card.
    over: bool,
}

/// A run to do, and how earlier attempts at it failed.
type Queue = VecDeque<(PlannedRun, Vec<Outcome>)>;

/// One card, or the CPU: what is to be done on it. A trace is played on all cards at once, and has but one lane.
struct Lane<'a> {
    share: &'a CardShare,
    /// None on a CPU. Groups run on the first.
    cards: Vec<LeasedGpu<'a>>,
    queue: Queue,
}

impl CampaignSpec<'_> {
    pub(super) async fn measure(
        &self,
        bench: &RunContext<'_>,
        (todo, stored, spent): (Vec<PlannedRun>, &BTreeMap<String, StoredRun>, &mut Spent),
        leases: &mut Leases<'_>,
        interrupts: &Interrupts,
        journal: &mut collo_store::Journal,
        watcher: Watcher<'_>,
    ) -> Result<(CampaignEnd, usize), RunError> {
        let begun = *spent.begun.get_or_insert_with(Instant::now);
        let mut attempts = Attempts::so_far(self.commands.experiment.retries, bench.campaign, stored);
        let shares = self.facts.shares(&self.commands.experiment.cores);
        let mut lanes: Vec<Lane<'_>> =
            shares.iter().map(|share| Lane { share, cards: Vec::new(), queue: VecDeque::new() }).collect();
        for (lane, card) in lanes.iter_mut().zip(leases.each()) {
            lane.cards.push(card);
        }
        if self.plan.cells.iter().any(|planned| planned.cell.trace().is_some()) {
            let others = lanes.split_off(1);
            lanes[0].cards.extend(others.into_iter().flat_map(|lane| lane.cards));
        }
        let mut workloads = BTreeSet::new();
        // What is asked for by hand begins anew.
        for planned in todo {
            let before = stored.get(&bench.campaign.manifest().plan.folder(&planned)).map(|run| &run.record);
            let failed_attempts = before.filter(|_| self.choice.only == Only::Missing).map(|run| attempts.resume(run));
            let lane = self.lane_of(bench, &planned)?;
            let members = &bench.campaign.manifest().plan.cells[planned.cell].members;
            workloads.extend(members.iter().map(|member| &*member.workload));
            lanes[lane].queue.push_back((planned, failed_attempts.unwrap_or_default()));
        }
        lanes.retain(|lane| !lane.queue.is_empty());
        spent.failures = std::mem::take(&mut spent.failures).since(stored.values());
        let extent = Extent { gpus: lanes.len(), workloads: workloads.len() };
        // Those of earlier rounds may be enough.
        if let Some(end) = spent.failures.end(self.choice.failures, extent).filter(|_| !lanes.is_empty()) {
            return Ok((end, 0));
        }
        let several = lanes.len() > 1;
        let so_far = SoFar { attempts, spent, done: 0, journal, watcher, heard: Stop::No, over: false };
        let loops = Loops {
            order: self,
            bench,
            interrupts,
            begun,
            stored,
            several,
            extent,
            quiet: RwLock::new(()),
            so_far: Mutex::new(so_far),
        };
        let ends = match several {
            true => loops.side_by_side(lanes),
            false => match lanes.pop() {
                Some(lane) => vec![loops.lane(lane).await],
                None => Vec::new(),
            },
        };
        let done = loops.so_far().done;
        let ends = ends.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok((ends.into_iter().max_by_key(weight).unwrap_or(CampaignEnd::Complete), done))
    }

    /// The place of a run's card among those of this order.
    fn lane_of(&self, bench: &RunContext<'_>, planned: &PlannedRun) -> Result<usize, RunError> {
        let Some(card) = planned.card else { return Ok(0) };
        let manifest = bench.campaign.manifest();
        let uuid = manifest.machine.gpus.get(card as usize).map(|gpu| &gpu.uuid);
        let place = self.facts.gpus.iter().position(|gpu| gpu.at.as_ref().map(|at| &at.uuid) == uuid);
        place.ok_or_else(|| {
            let cell = &manifest.plan.cells[planned.cell].cell;
            let there: Vec<String> = manifest.machine.gpus.iter().map(|gpu| gpu.index.to_string()).collect();
            Diagnostic::new(format!("`{cell}` {} is planned on a card that is not among those to measure on", planned.repetition))
                .hint(format!("`--gpu {}` continues the campaign, `--new` starts another", there.join(",")))
                .into()
        })
    }
}

/// Which of several ends is that of the campaign: who was told to stop outranks who merely had nothing left.
fn weight(end: &CampaignEnd) -> u8 {
    match end {
        CampaignEnd::Complete => 0,
        CampaignEnd::TimeOver => 1,
        CampaignEnd::DeviceLost => 2,
        CampaignEnd::TooManyFailures { .. } => 3,
        CampaignEnd::Terminated => 4,
        CampaignEnd::Interrupted { killed: false } => 5,
        CampaignEnd::Interrupted { killed: true } => 6,
    }
}

impl<'w> Loops<'_, 'w> {
    fn so_far(&self) -> MutexGuard<'_, SoFar<'w>> {
        self.so_far.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, event: Event<'_>) {
        (self.so_far().watcher)(event);
    }

    /// Every card at the same time. An error on one lets no further run begin on the others, and a panic is that of them all.
    fn side_by_side<'a>(&self, lanes: Vec<Lane<'a>>) -> Vec<Result<CampaignEnd, RunError>> {
        let one = |lane: Lane<'a>| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(collo_store::Error::from)?;
            let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| runtime.block_on(self.lane(lane))));
            if !matches!(ended, Ok(Ok(_))) {
                self.so_far().over = true;
            }
            ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        std::thread::scope(|scope| {
            let one = &one;
            let begin = |lane: Lane<'a>| {
                let name = lane.cards.first().map(|(gpu, _)| gpu.label()).unwrap_or_default();
                std::thread::Builder::new().name(name).spawn_scoped(scope, move || one(lane))
            };
            let begun: Vec<_> = lanes.into_iter().map(begin).collect();
            let ended = |thread: std::io::Result<std::thread::ScopedJoinHandle<'_, _>>| match thread {
                Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                Err(e) => Err(collo_store::Error::from(e).into()),
            };
            begun.into_iter().map(ended).collect()
        })
    }

    /// One run after another on one card.
    #[expect(clippy::await_holding_lock, reason = "each card has a thread and a runtime of its own, in which nothing else waits")]
    async fn lane(&self, Lane { share, mut cards, mut queue }: Lane<'_>) -> Result<CampaignEnd, RunError> {
        let (order, bench) = (self.order, self.bench);
        let (experiment, campaign) = (order.commands.experiment, bench.campaign);
        let cells = order.plan.by_slug();
        let uuid = cards.first().map(|(_, hold)| hold.uuid().to_string());
        let gate = experiment.thermal_gate.zip(uuid.as_deref());
        let mut tell = |event: Event<'_>| self.tell(event);
        let cooler = match gate {
            Some((gate, uuid)) => {
                let label = cards.first().filter(|_| self.several).map(|(gpu, _)| gpu.label());
                let here = queue.front().map(|(planned, _)| planned.card);
                let on_it = |run: &&StoredRun| here.is_some_and(|card| self.card_of(run) == card);
                let earlier = self.stored.values().filter(on_it).filter_map(|run| run.record.cooling.as_ref()?.idle_c);
                let found = Cooler::before_campaign(gate, uuid, label, earlier.reduce(f64::min), bench.stop.clone(), &mut tell);
                match found.await {
                    Some(cooler) => Some(cooler),
                    None => return Ok(self.stopped(false)),
                }
            }
            None => None,
        };
        let mut first = true;
        while let Some((planned, failed_attempts)) = queue.pop_front() {
            let planned = &planned;
            if !std::mem::take(&mut first) && !pause(experiment.cooldown, bench.stop.clone()).await {
                return Ok(self.stopped(false));
            }
            if let Some(end) = self.ends_before_a_run() {
                return Ok(end);
            }
            let plan = &campaign.manifest().plan;
            let record = &plan.cells[planned.cell];
            if let Some(run) = self.refused(planned)? {
                if let Some(end) = self.counts(&run, planned) {
                    return Ok(end);
                }
                continue;
            }
            let Some(cell) = cells.get(&*record.slug) else {
                return Err(Diagnostic::new(format!("`{}` is no longer a cell of `{}`", record.cell, experiment.name))
                    .hint("`--new` starts a new campaign")
                    .into());
            };
            let mut before = BeforeRun { failed_attempts, cooling: None };
            if let Some(cooler) = &cooler {
                before.cooling = cooler.wait(bench.stop.clone(), &mut tell).await;
                if before.cooling.is_none() {
                    return Ok(self.stopped(false));
                }
            }
            self.turn(cell, cards.first_mut().map(|(_, hold)| &mut **hold));
            let _measuring = self.quiet.read().unwrap_or_else(PoisonError::into_inner);
            // Last of all: cooling down may have taken minutes.
            if let Some(end) = self.ends_before_a_run() {
                return Ok(end);
            }
            self.expect_unchanged()?;
            self.so_far().journal.began(&plan.folder(planned))?;
            self.tell(Event::Begins { planned });
            let mut reported = Vec::new();
            let mut show = |view: View| self.stands(planned, view, &mut reported);
            let run = bench.run(cell, planned, &before, RunDevice { share, leases: &mut cards }, &mut show).await?;
            let written = bench.written();
            if !written.is_empty() {
                self.so_far().journal.wrote(&written)?;
                self.tell(Event::Wrote { files: &written });
            }
            let Some(run) = run else { return Ok(self.stopped(true)) };
            self.tell(Event::Ends { planned, run: &run });
            if run.record.outcome == Outcome::Interrupted {
                // Perhaps by a file that changed meanwhile.
                self.expect_unchanged()?;
                return Ok(self.stopped(false));
            }
            if let Some(failed_attempts) = self.retries(planned, &run) {
                queue.push_front((planned.clone(), failed_attempts));
                continue;
            }
            if let Some(end) = self.counts(&run, planned) {
                return Ok(end);
            }
        }
        Ok(CampaignEnd::Complete)
    }

    /// The card that a stored run was measured on.
    fn card_of(&self, run: &StoredRun) -> Option<u32> {
        let plan = &self.bench.campaign.manifest().plan;
        plan.order.iter().find(|planned| planned.block == run.record.block).and_then(|planned| planned.card)
    }

    /// Why no further run may begin; `None` if one may.
    fn ends_before_a_run(&self) -> Option<CampaignEnd> {
        if self.interrupts.asked() != Stop::No {
            return Some(self.stopped(false));
        }
        if self.order.choice.time_limit.is_some_and(|limit| self.begun.elapsed() >= limit) {
            return Some(CampaignEnd::TimeOver);
        }
        // Whoever ended it says why.
        self.so_far().over.then_some(CampaignEnd::Complete)
    }

    /// Change the MIG mode while no other card measures. What stands against it is told by the run, which asks again.
    fn turn(&self, cell: &PlannedCell, hold: Option<&mut GpuLease>) {
        let (Some(hold), Some(partition)) = (hold.filter(|_| self.several), &cell.seating.partition) else { return };
        if hold.is_on() == Some(partition.mig) {
            return;
        }
        let _nobody_measures = self.quiet.write().unwrap_or_else(PoisonError::into_inner);
        let _ = hold.apply(partition);
    }

    fn expect_unchanged(&self) -> Result<(), RunError> {
        let mut files = self.bench.files();
        let Some(name) = files.changed(self.several) else { return Ok(()) };
        let what = Diagnostic::new(format!("`{name}` changed while the campaign ran"));
        let what = what.note("further runs would not belong to it");
        Err(files.hint(&name).map_or(what.clone(), |hint| what.hint(hint)).into())
    }

    /// Pass on how a run stands; `reported` are the members of it whose output matched nothing.
    fn stands(&self, planned: &PlannedRun, view: View, reported: &mut Vec<(usize, Shortfall)>) {
        let mut so_far = self.so_far();
        // A signal is answered at once, not when the run has ended.
        let asked = self.interrupts.asked();
        if asked > so_far.heard {
            so_far.heard = asked;
            (so_far.watcher)(Event::Stopping { now: asked == Stop::Now });
        }
        let silent = view.members.iter().enumerate().filter(|(_, m)| m.phase != Phase::Ended);
        for (member, shortfall) in silent.filter_map(|(member, m)| Some((member, m.shortfall.clone()?))) {
            if !reported.contains(&(member, shortfall.clone())) {
                (so_far.watcher)(Event::NothingMatches { planned, member, shortfall: &shortfall });
                reported.push((member, shortfall));
            }
        }
        (so_far.watcher)(Event::Stands { planned, view });
    }

    /// Record a planned run that is now impossible, e.g. when an administrator began a campaign that another user continues. The
    /// run as it is stored, if it is one.
    fn refused(&self, planned: &PlannedRun) -> Result<Option<StoredRun>, RunError> {
        let plan = &self.bench.campaign.manifest().plan;
        let label = &plan.cells[planned.cell].cell;
        let Some(refused) = self.order.plan.refusals.iter().find(|r| r.record.cell == *label) else { return Ok(None) };
        self.so_far().journal.began(&plan.folder(planned))?;
        self.tell(Event::Begins { planned });
        let run = self.bench.refuse(&refused.cell, planned, refused.record.reason.clone())?;
        self.tell(Event::Ends { planned, run: &run });
        Ok(Some(run))
    }

    /// The failed attempts at a run that is to be measured again.
    fn retries(&self, planned: &PlannedRun, run: &StoredRun) -> Option<Vec<Outcome>> {
        let mut so_far = self.so_far();
        if !so_far.attempts.retry(&run.record) {
            return None;
        }
        (so_far.watcher)(Event::Retries { planned, run });
        Some(so_far.attempts.spend(&run.record))
    }

    /// A run is final; the end that follows from it, if one does.
    fn counts(&self, run: &StoredRun, planned: &PlannedRun) -> Option<CampaignEnd> {
        let mut so_far = self.so_far();
        so_far.done += 1;
        if matches!(run.record.outcome, Outcome::DeviceLost { .. }) {
            return Some(CampaignEnd::DeviceLost);
        }
        so_far.spent.failures.record(&run.record, planned.card);
        let end = so_far.spent.failures.end(self.order.choice.failures, self.extent);
        so_far.over |= end.is_some();
        end
    }

    /// The end that follows from the first signal.
    fn stopped(&self, killed: bool) -> CampaignEnd {
        if self.interrupts.is_by_hand() { CampaignEnd::Interrupted { killed } } else { CampaignEnd::Terminated }
    }
}
