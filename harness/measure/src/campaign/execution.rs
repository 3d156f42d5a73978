//! The loop of a campaign: one run after another, with pauses, retries and limits, until nothing is left to do or something ends it.
//!
//! In: the runs to do, what is stored. Out: how it ended, and how many runs are final now.

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use collo_store::{Diagnostic, Outcome, PlannedRun, StoredRun};

use super::attempts::Attempts;
use super::cooldown::{Cooler, pause};
use super::{CampaignEnd, CampaignSpec, Only, Spent};
use crate::device::Gpu;
use crate::device::lease::GpuLease;
use crate::events::{Event, Watcher};
use crate::interrupt::{Interrupts, Stop};
use crate::observe::View;
use crate::run::{BeforeRun, RunContext, RunError};

impl CampaignSpec<'_> {
    pub(super) async fn measure(
        &self,
        bench: &RunContext<'_>,
        (todo, stored, spent): (Vec<PlannedRun>, &BTreeMap<String, StoredRun>, &mut Spent),
        mut held: Option<&mut (&Gpu, GpuLease)>,
        interrupts: &Interrupts,
        journal: &mut collo_store::Journal,
        watcher: Watcher<'_>,
    ) -> Result<(CampaignEnd, usize), RunError> {
        let (cells, campaign) = (self.plan.by_slug(), bench.campaign);
        let begun = *spent.begun.get_or_insert_with(Instant::now);
        let mut done = 0;
        let mut attempts = Attempts::so_far(self.experiment.retries, campaign, stored);
        // What is asked for by hand begins anew.
        let mut queue: VecDeque<(PlannedRun, Vec<Outcome>)> = VecDeque::new();
        for planned in todo {
            let before = stored.get(&campaign.manifest().plan.folder(&planned)).map(|run| &run.record);
            let failed_attempts = before.filter(|_| self.choice.only == Only::Missing).map(|run| attempts.resume(run));
            queue.push_back((planned, failed_attempts.unwrap_or_default()));
        }
        let uuid = held.as_ref().map(|(_, hold)| hold.uuid().to_string());
        let gate = self.experiment.thermal_gate.zip(uuid.as_deref());
        let cooler = match gate.filter(|_| !queue.is_empty()) {
            Some((gate, uuid)) => match Cooler::before_campaign(gate, uuid, stored, bench.stop.clone(), watcher).await {
                Some(cooler) => Some(cooler),
                None => return Ok((stopped(interrupts, false), done)),
            },
            None => None,
        };
        let time_is_over = || self.choice.time_limit.is_some_and(|limit| begun.elapsed() >= limit);
        let too_many = |failures| self.choice.max_failures.is_some_and(|most| failures >= most);
        // Those of earlier rounds may be enough.
        if !queue.is_empty() && too_many(spent.failures) {
            return Ok((CampaignEnd::TooManyFailures { failures: spent.failures }, done));
        }
        let mut first = true;
        while let Some((planned, failed_attempts)) = queue.pop_front() {
            let planned = &planned;
            if !std::mem::take(&mut first) && !pause(self.experiment.cooldown, bench.stop.clone()).await {
                return Ok((stopped(interrupts, false), done));
            }
            if interrupts.asked() != Stop::No {
                return Ok((stopped(interrupts, false), done));
            }
            if time_is_over() {
                return Ok((CampaignEnd::TimeOver, done));
            }
            let plan = &campaign.manifest().plan;
            let record = &plan.cells[planned.cell];
            if let Some(run) = self.refused(bench, planned, journal, watcher)? {
                done += 1;
                spent.failures += u32::from(run.record.standing().is_bad());
                if too_many(spent.failures) {
                    return Ok((CampaignEnd::TooManyFailures { failures: spent.failures }, done));
                }
                continue;
            }
            let Some(cell) = cells.get(&*record.slug) else {
                return Err(Diagnostic::new(format!("`{}` is no longer a cell of `{}`", record.cell, self.experiment.name))
                    .hint("`--new` starts a new campaign")
                    .into());
            };
            let mut before = BeforeRun { failed_attempts, cooling: None };
            if let Some(cooler) = &cooler {
                before.cooling = cooler.wait(bench.stop.clone(), watcher).await;
                if before.cooling.is_none() {
                    return Ok((stopped(interrupts, false), done));
                }
            }
            // Last of all: cooling down may have taken minutes.
            if time_is_over() {
                return Ok((CampaignEnd::TimeOver, done));
            }
            let changed = bench.files.borrow_mut().changed();
            if let Some(name) = changed {
                let what = Diagnostic::new(format!("`{name}` changed while the campaign ran"));
                let what = what.note("further runs would not belong to it");
                return Err(bench.files.borrow().hint(&name).map_or(what.clone(), |hint| what.hint(hint)).into());
            }
            journal.began(&plan.folder(planned))?;
            watcher(Event::Begins { planned });
            let mut heard = Stop::No;
            let mut show = |view: View| {
                // A signal is answered at once, not when the run has ended.
                let asked = interrupts.asked();
                if asked > heard {
                    heard = asked;
                    watcher(Event::Stopping { now: asked == Stop::Now });
                }
                watcher(Event::Stands(view));
            };
            let card = held.as_mut().map(|(gpu, hold)| (*gpu, hold));
            let run = bench.run(cell, planned, &before, card, &mut show).await?;
            let written = bench.written.take();
            if !written.is_empty() {
                journal.wrote(&written)?;
                watcher(Event::Wrote { files: &written });
            }
            let Some(run) = run else { return Ok((stopped(interrupts, true), done)) };
            watcher(Event::Ends { planned, run: &run });
            if run.record.outcome == Outcome::Interrupted {
                return Ok((stopped(interrupts, false), done));
            }
            if attempts.retry(&run.record) {
                watcher(Event::Retries { planned, run: &run });
                queue.push_front((planned.clone(), attempts.spend(&run.record)));
                continue;
            }
            done += 1;
            if matches!(run.record.outcome, Outcome::DeviceLost { .. }) {
                return Ok((CampaignEnd::DeviceLost, done));
            }
            spent.failures += u32::from(run.record.standing().is_bad());
            if too_many(spent.failures) {
                return Ok((CampaignEnd::TooManyFailures { failures: spent.failures }, done));
            }
        }
        Ok((CampaignEnd::Complete, done))
    }
}

/// The end that follows from the first signal.
fn stopped(interrupts: &Interrupts, killed: bool) -> CampaignEnd {
    if interrupts.is_by_hand() { CampaignEnd::Interrupted { killed } } else { CampaignEnd::Terminated }
}
