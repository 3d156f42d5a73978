//! The lease of a GPU by this collo: no other collo may use it, and it is restored as found.
//!
//! Before the first change the state found is written to a journal and flushed, in the state folder of this user, because a
//! campaign's folder can be anywhere. The lock is machine-wide. If this process is killed, `collo restore` or the next `collo
//! run` finds the journal there.

pub mod journal;
pub mod lock;
pub mod turn;

use std::path::Path;

use collo_text::Diagnostic;

use super::repartition::{self, PartitionedGpu};
use super::services::Services;
use crate::lease::journal::set_compute_mode;
use crate::lease::lock::CardLock;
use collo_gpus::PartitionError;
use collo_gpus::partition::Partition;
use collo_plan::facts::Gpu;

pub use super::state_folder::state_folder;
pub use crate::lease::journal::{Journal, Restored, SCHEMA, Unread, Written, compute_mode, pending_restores, written};
pub use crate::lease::lock::{LockHolder, holder};

/// Restore a GPU that a dead collo left changed, if so: otherwise its current state would be taken for the one found.
pub fn repair(gpu: &Gpu) -> Result<Option<Restored>, Diagnostic> {
    let Some(at) = &gpu.at else { return Ok(None) };
    if !journal::is_there(&at.uuid)? {
        return Ok(None);
    }
    let who = Who { experiment: "collo restore".into(), campaign: String::new() };
    GpuLease::take(gpu, &who, false).map(|(_, restored)| restored)
}

/// Check that no collo has a lease of this GPU: the partition of a leased one is not how it will be found.
pub fn check_free(gpu: &Gpu) -> Result<(), Diagnostic> {
    gpu.at.as_ref().map_or(Ok(()), |at| lock::check_free(&at.uuid, &gpu.label()))
}

/// The leaseholder of a GPU, for the journal.
#[derive(Debug, Clone)]
pub struct Who {
    pub experiment: String,
    pub campaign: String,
}

/// The lease of a GPU.
pub struct GpuLease {
    journal: Journal,
    /// True once the journal is on disk.
    written: bool,
    /// Nothing is changed: the administrator's partition is used.
    as_found: bool,
    /// The compute mode was set by us.
    exclusive: bool,
    /// Why the MIG mode could not be changed.
    refused: Option<PartitionError>,
    lock: CardLock,
}

/// A GPU with its lease.
pub type LeasedGpu<'a> = (&'a Gpu, &'a mut GpuLease);

impl GpuLease {
    /// Lease a GPU, unless another process has it. What a dead collo left changed is restored first, and returned as the second
    /// value.
    pub fn take(gpu: &Gpu, who: &Who, as_found: bool) -> Result<(GpuLease, Option<Restored>), Diagnostic> {
        let at = gpu.at.as_ref().ok_or_else(|| Diagnostic::new(format!("{} is not a GPU of this machine", gpu.name)))?;
        // Before anything is read of it: what another is about to put back was not found.
        let lock = CardLock::take(&at.uuid, &gpu.label())?;
        let repaired = match journal::of(&at.uuid)? {
            Some(mut journal) => Some(journal.restore()?),
            None => None,
        };
        let found = repartition::read(&at.uuid, &gpu.label())?.partition;
        let journal = Journal {
            schema: SCHEMA,
            uuid: at.uuid.clone(),
            label: gpu.label(),
            name: gpu.name.clone(),
            simulated: gpu.simulated,
            experiment: who.experiment.clone(),
            campaign: who.campaign.clone(),
            process: std::process::id(),
            since_utc: collo_store::utc_now(),
            found,
            ..Journal::default()
        };
        Ok((GpuLease { journal, written: false, as_found, exclusive: false, refused: None, lock }, repaired))
    }

    pub fn uuid(&self) -> &str {
        &self.journal.uuid
    }

    /// Set the campaign, once there is one; it is written with the next change.
    pub fn belongs_to(&mut self, campaign: &str) {
        self.journal.campaign = campaign.into();
        if self.written {
            // What was found stands there already, and that is what counts.
            let _ = self.write();
        }
    }

    pub fn found(&self) -> &Partition {
        &self.journal.found
    }

    /// Whether MIG is on now; `None` if that cannot be read.
    pub fn is_on(&self) -> Option<bool> {
        repartition::read(&self.journal.uuid, &self.journal.label).ok().map(|now| now.partition.mig)
    }

    /// What to do with services that block a change of MIG mode.
    pub fn with_services(&mut self, services: Services) {
        self.journal.may_stop = services == Services::Stop;
    }

    /// Partition the GPU as wanted, unless it already is.
    pub fn apply(&mut self, wanted: &Partition) -> Result<PartitionedGpu, PartitionError> {
        self.lock.answer();
        let now = repartition::read(&self.journal.uuid, &self.journal.label)?;
        if now.partition.is_as(wanted) {
            return Ok(now);
        }
        if self.as_found {
            return Err(PartitionError::as_found(&self.journal.label, wanted, &now.partition));
        }
        let turns = now.partition.mig != wanted.mig;
        if let Some(refused) = self.refused.as_ref().filter(|_| turns) {
            // It was waited for once: not again for each run of a night.
            return Err(refused.clone());
        }
        self.written = true;
        let cut = self.journal.apply(&now.partition, wanted);
        if let Err(e) = &cut
            && turns
        {
            self.refused = Some(e.clone());
        }
        cut
    }

    /// Keep the changes; nothing is restored.
    pub fn settle(&mut self) -> Result<(), PartitionError> {
        self.written = false;
        self.journal.forget()
    }

    /// From now on only one process may use the GPU, which is then the MPS server.
    pub fn make_exclusive(&mut self) -> Result<(), PartitionError> {
        const EXCLUSIVE: &str = "ExclusiveProcess";
        let now = compute_mode(&self.journal.uuid);
        if now.as_deref() == Some(EXCLUSIVE) {
            return Ok(());
        }
        if self.journal.found_compute_mode.is_none() {
            self.journal.found_compute_mode = now;
        }
        self.write()?;
        set_compute_mode(&self.journal.uuid, &self.journal.label, EXCLUSIVE)?;
        self.exclusive = true;
        Ok(())
    }

    /// Reset the compute mode to the one found: in exclusive mode, the second member of a naive group fails.
    pub fn make_shared(&mut self) -> Result<(), PartitionError> {
        if !self.exclusive {
            return Ok(());
        }
        if let Some(found) = &self.journal.found_compute_mode {
            set_compute_mode(&self.journal.uuid, &self.journal.label, found)?;
        }
        // Only now: as long as it could not be set nobody else measures in it.
        self.exclusive = false;
        Ok(())
    }

    /// A daemon is about to be started there, or has ended.
    pub fn note_daemon(&mut self, pipe: &Path, runs: bool) -> Result<(), PartitionError> {
        self.journal.daemons.retain(|p| p != pipe);
        if runs {
            self.journal.daemons.push(pipe.into());
        }
        self.write()
    }

    fn write(&mut self) -> Result<(), PartitionError> {
        self.journal.write()?;
        self.written = true;
        Ok(())
    }

    /// Restore the GPU as found.
    pub fn restore(&mut self) -> Result<Restored, PartitionError> {
        if !self.written {
            return Ok(Restored::default());
        }
        let restored = self.journal.restore()?;
        self.written = false;
        self.journal.daemons.clear();
        self.journal.found_compute_mode = None;
        self.journal.found_settings = None;
        self.exclusive = false;
        Ok(restored)
    }
}

impl GpuLease {
    /// The restore failed: the journal is kept; there is no automatic retry.
    pub fn give_up(&mut self) {
        self.written = false;
    }
}

impl Drop for GpuLease {
    fn drop(&mut self) {
        // Whoever forgot to, or could not: the journal stays if this does not work.
        let _ = self.restore();
    }
}
