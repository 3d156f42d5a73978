//! The GPUs of a campaign, from the first check until they are restored as found.

use collo_device::company;
use collo_text::Diagnostic;

use super::CampaignSpec;
use crate::error::RunError;
use crate::events::{Event, Watcher};
use collo_device::lease::lock::CpuNotice;
use collo_device::lease::{GpuLease, Restored, Who};

use collo_plan::facts::{DeviceKind, Gpu};

/// Restore a GPU as found, and report it; if that fails, the journal is kept for `collo restore`. True if it is as found.
fn put_back(gpu: &Gpu, hold: &mut GpuLease, watcher: Watcher<'_>) -> bool {
    match hold.restore() {
        Ok(restored) if restored != Restored::default() => watcher(Event::Restored { label: gpu.label(), restored }),
        Ok(_) => {}
        Err(e) => {
            hold.give_up();
            watcher(Event::NotRestored { label: gpu.label(), reason: e.line() });
            return false;
        }
    }
    true
}

/// The leases of a campaign's GPUs, in the order of its device facts; none on a CPU.
pub(super) struct Leases<'a> {
    all: Vec<(&'a Gpu, GpuLease)>,
}

impl<'a> Leases<'a> {
    /// Every GPU with its lease.
    pub(super) fn each(&mut self) -> impl Iterator<Item = (&'a Gpu, &mut GpuLease)> {
        self.all.iter_mut().map(|(gpu, hold)| (*gpu, hold))
    }

    /// Restore every GPU as found, whatever becomes of the others. True if all are as found.
    pub(super) fn put_back(&mut self, watcher: Watcher<'_>) -> bool {
        self.each().fold(true, |all, (gpu, hold)| put_back(gpu, hold, watcher) && all)
    }
}

impl CampaignSpec<'_> {
    /// Lease the GPUs of this campaign, if it runs on any: each must be free, and it must be possible to partition it as planned.
    /// What one of them refuses is an error, and those that were leased before it are put back.
    pub(super) fn hold(&self, watcher: Watcher<'_>) -> Result<Leases<'_>, RunError> {
        let mut leases = Leases { all: Vec::new() };
        for gpu in self.facts.gpus.iter().filter(|_| self.facts.kind == DeviceKind::Gpu) {
            match self.hold_one(gpu, watcher) {
                Ok(hold) => leases.all.push((gpu, hold)),
                Err(refused) => {
                    leases.put_back(watcher);
                    return Err(refused);
                }
            }
        }
        Ok(leases)
    }

    fn hold_one(&self, gpu: &Gpu, watcher: Watcher<'_>) -> Result<GpuLease, RunError> {
        let who = Who { experiment: self.commands.experiment.name.clone(), campaign: String::new() };
        let (mut hold, repaired) = GpuLease::take(gpu, &who, self.facts.as_found)?;
        hold.with_services(self.choice.consent.services);
        if let Some(restored) = repaired {
            watcher(Event::Restored { label: gpu.label(), restored });
        }
        // The plan was made of what was there before the card was ours alone.
        if let Some(planned) = gpu.partition.as_ref().filter(|planned| !planned.is_as(hold.found())) {
            let what = format!("{} was repartitioned during planning: it was {planned}, it is {}", gpu.label(), hold.found());
            return Err(Diagnostic::new(what).hint("run the same command again").of_machine().into());
        }
        let checked = self.check_card(gpu, &mut hold);
        if checked.is_err() {
            put_back(gpu, &mut hold, watcher);
        }
        checked?;
        Ok(hold)
    }

    /// A CPU is not locked, because others use it anyway: another campaign on it is reported, and so is this one to later ones.
    pub(super) fn notice(&self, watcher: Watcher<'_>) -> Option<CpuNotice> {
        if self.facts.kind != DeviceKind::Cpu {
            return None;
        }
        let (notice, others) = CpuNotice::post();
        if let Some(other) = others.first() {
            watcher(Event::Beside { other: other.text() });
        }
        notice
    }

    /// Nobody else may be on the GPU, and it must be possible to partition it as planned: a missing permission is reported before
    /// anything is measured, not after a night.
    fn check_card(&self, gpu: &Gpu, hold: &mut GpuLease) -> Result<(), RunError> {
        if !self.choice.consent.foreign
            && let Some(who) = company::settled(hold.uuid()).to_text().first()
        {
            return Err(Diagnostic::new(format!("{} is in use: {who}", gpu.label()))
                .hint("select another with `--gpu`; `--foreign allow` measures anyway, marked indicative")
                .of_machine()
                .into());
        }
        // Where nothing of what is asked for can be had as the card is, it is changed now: what stands against it is told before baselines
        // are measured for nothing. Elsewhere what is there is measured first, and the card is changed when its turn comes.
        let asked = self.plan.order.iter().map(|run| &self.plan.cells[run.cell]).filter(|c| c.asked);
        let wanted: Vec<_> = asked.filter_map(|c| c.seating.partition.as_ref()).collect();
        if let Some(partition) = wanted.first().filter(|_| wanted.iter().all(|p| *p != hold.found())) {
            hold.apply(partition).map_err(Diagnostic::from)?;
        }
        Ok(())
    }
}
