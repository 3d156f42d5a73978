//! The original state of a changed GPU, on disk before the first change, and its restore.
//!
//! To add a field: [`Journal`] and `SCHEMA`, its check in `journal/read.rs`.

mod read;

use nvml_wrapper::error::NvmlError;
use std::path::{Path, PathBuf};

use nvml_wrapper::enum_wrappers::device::ComputeMode;
use serde::{Deserialize, Serialize};

use super::lock;
use crate::mps::{self, Control};
use crate::repartition::{self, PartitionedGpu};
use crate::settings::ChangedSettings;
use crate::{nvml, services, state_folder};
use collo_gpus::PartitionError;
use collo_gpus::partition::Partition;

pub(super) use read::of;
pub use read::{Unread, Written, is_there, pending_restores, written};

/// The version of journals that this collo writes, and the only one that it reads.
pub const SCHEMA: u32 = 1;

/// One GPU's journal.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Journal {
    pub schema: u32,
    pub uuid: String,
    /// `GPU 0`
    pub label: String,
    pub name: String,
    pub simulated: bool,
    pub experiment: String,
    pub campaign: String,
    /// The collo that has or had the lease.
    pub process: u32,
    pub since_utc: String,
    pub found: Partition,
    /// The MIG mode is about to be changed, or was: a change may be pending.
    #[serde(default)]
    pub turns_mig: bool,
    /// Compute mode, if it was changed.
    pub found_compute_mode: Option<String>,
    /// Settings lost by a change of MIG mode, if they were read.
    pub found_settings: Option<ChangedSettings>,
    /// Pipe folders of MPS daemons that were started.
    pub daemons: Vec<PathBuf>,
    /// Services that block a change of MIG mode may be stopped for it.
    pub may_stop: bool,
    /// Those that are stopped now.
    pub services: Vec<String>,
}

fn journal_file(folder: &Path, uuid: &str) -> PathBuf {
    folder.join(format!("{uuid}.json"))
}

/// What was restored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Restored {
    /// GPU instances that were destroyed.
    pub destroyed: usize,
    /// GPU instances that were created again.
    pub created: usize,
    /// The original MIG mode, if it was changed.
    pub mode: Option<bool>,
    /// This required a reset. Locked clocks were released by it, and there is no way to tell whether there were any (`nvml.h`
    /// sets locked clocks and has no function that gets them).
    pub reset: bool,
    pub compute_mode: Option<String>,
    /// Power limit and clocks that were set again.
    pub settings: ChangedSettings,
    /// Daemons that were still running.
    pub daemons: usize,
    /// Services that a collo had stopped and could not start again.
    pub services: Vec<String>,
}

impl Journal {
    /// Whether the collo that wrote it still runs: it has the lock.
    pub fn is_held(&self) -> bool {
        lock::is_held_by(&self.uuid, self.process)
    }

    /// The path of its file.
    pub fn path(&self) -> PathBuf {
        journal_file(&state_folder::state_folder(), &self.uuid)
    }

    /// Write and flush it.
    pub(super) fn write(&self) -> Result<(), PartitionError> {
        let not = |why: String| {
            PartitionError::new_with(format!("the state of {} cannot be recorded, so nothing is changed", self.label), why)
        };
        let text = serde_json::to_string_pretty(self).map_err(|e| not(e.to_string()))?;
        let folder = state_folder::make().map_err(|e| not(e.what().into()))?;
        state_folder::replace(&journal_file(&folder, &self.uuid), text.as_bytes()).map_err(|e| not(e.to_string()))
    }

    pub(super) fn forget(&self) -> Result<(), PartitionError> {
        match std::fs::remove_file(self.path()) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                let what = format!("the record of the state of {} cannot be removed", self.label);
                Err(PartitionError::new_with(what, e.to_string()))
            }
            _ => Ok(()),
        }
    }

    /// Partition the GPU as wanted, which it is not now. Settings lost by that are recorded before and set again after, and
    /// services that block it are stopped meanwhile, if allowed.
    pub(super) fn apply(&mut self, now: &Partition, wanted: &Partition) -> Result<PartitionedGpu, PartitionError> {
        let turns = now.mig != wanted.mig;
        if turns {
            // A change of MIG mode resets both.
            if self.found_compute_mode.is_none() {
                self.found_compute_mode = compute_mode(&self.uuid);
            }
            mode_can_be_set(&self.uuid, &self.label)?;
            let kept = self.found_settings.get_or_insert_with(|| ChangedSettings::read(&self.uuid));
            kept.can_be_set(&self.uuid, &self.label)?;
            if !self.turns_mig {
                none_is_pending(&self.uuid, &self.label)?;
            }
            self.turns_mig = true;
        }
        self.write()?;
        let (uuid, label) = (self.uuid.clone(), self.label.clone());
        let attempt = || {
            repartition::apply(&uuid, &label, wanted).inspect_err(|_| {
                // Half of a change is nobody's state. If this does not work either, the journal stays.
                let _ = repartition::apply(&uuid, &label, now);
            })
        };
        let cut = match self.may_stop && turns && repartition::takes_reset(&uuid) {
            true => self.without_services(attempt),
            // DCGM does not always let go of what it has seen (DCGM #95, #276).
            false => match attempt() {
                Err(e) if e.in_use && self.may_stop => self.without_services(attempt),
                other => other,
            },
        };
        if turns && let Some(kept) = &self.found_settings {
            let set = kept.set_again(&uuid, &label).and_then(|_| self.set_compute_mode_again(wanted));
            return cut.and_then(|cut| set.map(|_| cut));
        }
        cut
    }

    /// A change of MIG mode resets the compute mode, too: with MIG off again it is as it was found. With MIG on the driver accepts its own
    /// alone.
    fn set_compute_mode_again(&self, now: &Partition) -> Result<(), PartitionError> {
        let found = self.found_compute_mode.as_ref().filter(|mode| !now.mig && compute_mode(&self.uuid).as_ref() != Some(mode));
        found.map_or(Ok(()), |mode| set_compute_mode(&self.uuid, &self.label, mode))
    }

    /// Act while no service has the GPU open: services are recorded before they are stopped, and restarted afterwards.
    fn without_services<T>(&mut self, act: impl FnOnce() -> Result<T, PartitionError>) -> Result<T, PartitionError> {
        let _alone = services::alone();
        let active = services::active();
        if !active.is_empty() {
            services::may_stop(&active)?;
        }
        // A collo that died in the middle of this has left some stopped.
        self.services.retain(|unit| !active.contains(unit));
        self.services.extend(active.iter().cloned());
        if self.services.is_empty() {
            return act();
        }
        self.write()?;
        let stopped = if active.is_empty() { Ok(()) } else { services::stop(&active) };
        let done = stopped.and_then(|()| act());
        let started = self.start_services();
        let done = done?;
        started.map(|()| done)
    }

    fn start_services(&mut self) -> Result<(), PartitionError> {
        // What could not be stopped runs.
        let active = services::active();
        self.services.retain(|unit| !active.contains(unit));
        if self.services.is_empty() {
            return self.write();
        }
        services::start(&self.services)?;
        self.services.clear();
        self.write()
    }

    /// Restore the GPU, and delete the journal once it is as found.
    pub fn restore(&mut self) -> Result<Restored, PartitionError> {
        let mut restored = Restored { services: self.services.clone(), ..Restored::default() };
        for pipe in &self.daemons {
            // One that was never made, or that somebody else has made there since, is none of ours.
            if !mps::folder::is_ours(pipe) {
                continue;
            }
            let control = Control::at(pipe);
            if control.is_ready() {
                let _ = control.end(std::time::Duration::from_secs(5));
                restored.daemons += 1;
            }
            mps::folder::remove(pipe);
        }
        let put = self.put_back(&mut restored);
        // Whatever becomes of the card, other people's services run again.
        let started = if self.services.is_empty() { Ok(()) } else { self.start_services() };
        put.and(started)?;
        self.forget()?;
        Ok(restored)
    }

    fn put_back(&mut self, restored: &mut Restored) -> Result<(), PartitionError> {
        let now = repartition::read(&self.uuid, &self.label)?.partition;
        let found = self.found.clone();
        if !now.is_as(&found) {
            let gone = |a: &Partition, b: &Partition| a.instances.iter().filter(|s| !b.instances.contains(s)).count();
            restored.destroyed = gone(&now, &found);
            restored.created = gone(&found, &now);
            restored.mode = (now.mig != found.mig).then_some(now.mig);
            restored.reset = restored.mode.is_some() && repartition::takes_reset(&self.uuid);
            self.apply(&now, &found)?;
        }
        if self.turns_mig {
            repartition::undo_pending(&self.uuid, &self.label)?;
        }
        // Behind the cut: a change of MIG mode resets these.
        if let Some(mode) = self.found_compute_mode.as_ref().filter(|mode| compute_mode(&self.uuid).as_ref() != Some(mode)) {
            set_compute_mode(&self.uuid, &self.label, mode).map_err(|e| self.without_mode(mode, e))?;
            restored.compute_mode = Some(mode.clone());
        }
        if let Some(kept) = &self.found_settings {
            restored.settings = kept.set_again(&self.uuid, &self.label)?;
        }
        Ok(())
    }

    /// The hint if the driver refuses the original compute mode: as long as MIG is on it accepts only its own.
    fn without_mode(&self, mode: &str, e: PartitionError) -> PartitionError {
        if !self.found.mig {
            return e;
        }
        let path = self.path();
        let hint = format!(
            "everything else is as it was found. `rm {}` if {mode} is not needed; to set it without MIG: `sudo collo mig clear`, \
             then `sudo nvidia-smi -c {mode}`",
            path.display()
        );
        PartitionError { hint: Some(hint), ..e }
    }
}

/// Refuses a change of MIG mode where another change is pending already: it could not be made pending again.
pub(crate) fn none_is_pending(uuid: &str, label: &str) -> Result<(), PartitionError> {
    let Some(pending) = repartition::pending_mode(uuid, label)? else { return Ok(()) };
    let (word, now) = if pending { ("on", 0) } else { ("off", 1) };
    let mut error = PartitionError::new(format!("MIG {word} of {label} is pending until its next reset, and would be lost"));
    error.forgets = true;
    error.hint = Some(format!("reset the GPU, or cancel the change: `sudo nvidia-smi -mig {now}`"));
    Err(error)
}

/// Whether the compute mode could be set again once a change of MIG mode has reset it, tested by setting the current one, which
/// changes nothing. A GPU with MIG on may have one that nobody can set.
pub(crate) fn mode_can_be_set(uuid: &str, label: &str) -> Result<(), PartitionError> {
    let Some(mode) = compute_mode(uuid).filter(|mode| mode != DEFAULT) else { return Ok(()) };
    set_compute_mode(uuid, label, &mode).map_err(|e| {
        let what =
            format!("MIG mode of {label} is not changed: its reset clears compute mode {mode}, which could not be set again");
        let mut error = PartitionError::new_with(what, e.reason());
        error.forgets = true;
        error.hint = Some("`sudo nvidia-smi -c DEFAULT`, or measure on the GPU as it is: `--as-found`".into());
        error
    })
}

/// The compute mode of a GPU on which none was set, also after a reset.
const DEFAULT: &str = "Default";

/// `Default`, `ExclusiveProcess`; `None` if the driver does not report it.
pub fn compute_mode(uuid: &str) -> Option<String> {
    let nvml = nvml::open().ok()?;
    let mode = nvml.device_by_uuid(uuid).and_then(|device| device.compute_mode()).ok()?;
    Some(format!("{mode:?}"))
}

pub(super) fn set_compute_mode(uuid: &str, label: &str, word: &str) -> Result<(), PartitionError> {
    let mode = match word {
        "ExclusiveProcess" => ComputeMode::ExclusiveProcess,
        "Prohibited" => ComputeMode::Prohibited,
        _ => ComputeMode::Default,
    };
    let nvml = nvml::open()?;
    let set = nvml.device_by_uuid(uuid).and_then(|mut device| device.set_compute_mode(mode));
    set.map_err(|e| mode_not_set(label, word, &e))
}

/// The error of a driver that does not set the compute mode.
fn mode_not_set(label: &str, word: &str, e: &NvmlError) -> PartitionError {
    let mut error = PartitionError::new(format!("the compute mode of {label} cannot be set to {word}"));
    error.cause = Some(format!("NVML reports {}", nvml::text(e)));
    error.hint = matches!(e, NvmlError::NoPermission).then(|| "this requires root; leave out `--exclusive`".into());
    error
}
