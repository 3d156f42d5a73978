//! A card that this collo holds: nobody else's collo may, and it goes back to how it was found.
//!
//! Before the first change what was found is written to a journal and flushed, in the state folder of this user, because a campaign's
//! folder can be anywhere. Whatever happens to this process, `collo restore` or the next `collo run` finds it there.

use std::path::{Path, PathBuf};

use fs_err as fs;
use nvml_wrapper::enum_wrappers::device::ComputeMode;
use serde::{Deserialize, Serialize};

use super::cut::{self, CutCard, NotCut};
use super::gpu::Gpu;
use super::mps::Control;
use super::nvml;
use super::partition::Partition;
use crate::mistake::Mistake;

/// What is known of a card that is not as it was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Journal {
    pub schema: u32,
    pub uuid: String,
    /// `GPU 0`
    pub label: String,
    pub name: String,
    pub simulated: bool,
    pub experiment: String,
    pub campaign: String,
    /// The collo that holds or held it.
    pub process: u32,
    pub since_utc: String,
    pub found: Partition,
    /// Compute mode, where it was changed.
    pub found_compute_mode: Option<String>,
    /// Pipe folders of MPS daemons that were started.
    pub daemons: Vec<PathBuf>,
}

/// Who holds a card, for the journal.
#[derive(Debug, Clone)]
pub struct Who {
    pub experiment: String,
    pub campaign: String,
}

/// A card, held.
pub struct Hold {
    journal: Journal,
    place: PathBuf,
    /// True once the journal is on disk.
    written: bool,
    /// Nothing is changed: what an administrator set is used.
    as_found: bool,
    _lock: std::fs::File,
}

/// The folder of journals: `COLLO_STATE`, else `~/.local/state/collo`.
pub fn state_folder() -> PathBuf {
    let var = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let home = || var("HOME").unwrap_or_else(|| "/tmp".into()).join(".local/state");
    var("COLLO_STATE").unwrap_or_else(|| var("XDG_STATE_HOME").unwrap_or_else(home).join("collo"))
}

/// Cards that are not as they were found, with their journals.
pub fn left() -> Vec<Journal> {
    let mut all: Vec<Journal> = journals().into_iter().filter_map(|path| read(&path)).collect();
    all.sort_by(|a, b| a.label.cmp(&b.label));
    all
}

fn journals() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(state_folder()).into_iter().flatten().flatten();
    entries.map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "json")).collect()
}

fn read(path: &Path) -> Option<Journal> {
    serde_json::from_str(&fs::read_to_string(path).ok()?).ok()
}

/// What was put back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Restored {
    /// GPU instances that were destroyed.
    pub destroyed: usize,
    /// GPU instances that were created again.
    pub created: usize,
    /// MIG mode as it was before, if it was turned.
    pub mode: Option<bool>,
    pub compute_mode: Option<String>,
    /// Daemons that still ran.
    pub daemons: usize,
}

impl Journal {
    /// Whether the collo that wrote it still runs: it holds the lock.
    pub fn is_held(&self) -> bool {
        let Ok(file) = std::fs::File::open(lock_file(&self.uuid)) else { return false };
        matches!(file.try_lock(), Err(std::fs::TryLockError::WouldBlock))
    }

    /// Put the card back, and forget the journal when it is.
    pub fn restore(&self) -> Result<Restored, NotCut> {
        let mut restored = Restored::default();
        for pipe in &self.daemons {
            let control = Control::at(pipe);
            if control.is_ready() {
                let _ = control.end(std::time::Duration::from_secs(5));
                restored.daemons += 1;
            }
            let _ = fs::remove_dir_all(pipe);
        }
        let now = cut::read(&self.uuid, &self.label)?.partition;
        if now != self.found {
            let gone = |a: &Partition, b: &Partition| a.instances.iter().filter(|s| !b.instances.contains(s)).count();
            restored.destroyed = gone(&now, &self.found);
            restored.created = gone(&self.found, &now);
            restored.mode = (now.mig != self.found.mig).then_some(now.mig);
            cut::bring(&self.uuid, &self.label, &self.found)?;
        }
        // Behind the cut: a change of MIG mode resets it.
        if let Some(mode) = self.found_compute_mode.as_ref().filter(|mode| compute_mode(&self.uuid).as_ref() != Some(mode)) {
            set_compute_mode(&self.uuid, &self.label, mode)?;
            restored.compute_mode = Some(mode.clone());
        }
        forget(&self.uuid).map_err(|e| NotCut::from(nvml::NoDriver::Silent(e.to_string())))?;
        Ok(restored)
    }
}

fn lock_file(uuid: &str) -> PathBuf {
    state_folder().join(format!("{uuid}.lock"))
}

fn journal_file(uuid: &str) -> PathBuf {
    state_folder().join(format!("{uuid}.json"))
}

fn forget(uuid: &str) -> std::io::Result<()> {
    match fs::remove_file(journal_file(uuid)) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

impl Hold {
    /// Take a card: nobody else may hold it. What a dead collo left of it is put right first; the second value says so.
    pub fn take(gpu: &Gpu, who: &Who, as_found: bool) -> Result<(Hold, Option<Restored>), Mistake> {
        let at = gpu.at.as_ref().ok_or_else(|| Mistake::new(format!("{} is not a card of this machine", gpu.name)))?;
        let cannot = |e: std::io::Error| {
            Mistake::new(format!("the state folder {} cannot be written", state_folder().display()))
                .caused_by(e.to_string())
                .hint("`COLLO_STATE=DIR` puts it elsewhere")
                .of_machine()
        };
        fs::create_dir_all(state_folder()).map_err(cannot)?;
        let lock = fs::OpenOptions::new().create(true).append(true).open(lock_file(&at.uuid)).map_err(cannot)?.into_file();
        if lock.try_lock().is_err() {
            let other = read(&journal_file(&at.uuid));
            let by = other.map(|j| format!(": process {} runs `{}`", j.process, j.experiment)).unwrap_or_default();
            return Err(Mistake::new(format!("{} is held by another collo{by}", gpu.label()))
                .hint("watch it with `collo status`, or take another GPU with `--gpu`")
                .of_machine());
        }
        let repaired = match read(&journal_file(&at.uuid)) {
            Some(journal) => Some(journal.restore().map_err(|e| e.mistake())?),
            None => None,
        };
        let found = cut::read(&at.uuid, &gpu.label()).map_err(|e| e.mistake())?.partition;
        let journal = Journal {
            schema: 1,
            uuid: at.uuid.clone(),
            label: gpu.label(),
            name: gpu.name.clone(),
            simulated: gpu.simulated,
            experiment: who.experiment.clone(),
            campaign: who.campaign.clone(),
            process: std::process::id(),
            since_utc: collo_store::utc_now(),
            found,
            found_compute_mode: None,
            daemons: Vec::new(),
        };
        let place = journal_file(&at.uuid);
        Ok((Hold { journal, place, written: false, as_found, _lock: lock }, repaired))
    }

    pub fn uuid(&self) -> &str {
        &self.journal.uuid
    }

    /// The campaign, once there is one; it is written down with the next change.
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

    /// Cut the card as wanted, if it is not.
    pub fn bring(&mut self, wanted: &Partition) -> Result<CutCard, NotCut> {
        let now = cut::read(&self.journal.uuid, &self.journal.label)?;
        if now.partition == *wanted {
            return Ok(now);
        }
        if self.as_found {
            return Err(NotCut::as_found(&self.journal.label, wanted, &now.partition));
        }
        if now.partition.mig != wanted.mig && self.journal.found_compute_mode.is_none() {
            // A change of MIG mode resets it.
            self.journal.found_compute_mode = compute_mode(&self.journal.uuid);
        }
        self.write()?;
        cut::bring(&self.journal.uuid, &self.journal.label, wanted).inspect_err(|_| {
            // Half of a change is nobody's state. If this does not work either, the journal stays.
            let _ = cut::bring(&self.journal.uuid, &self.journal.label, &now.partition);
        })
    }

    /// From now on only one process may use the card, which is then the MPS server.
    pub fn make_exclusive(&mut self) -> Result<(), NotCut> {
        const EXCLUSIVE: &str = "ExclusiveProcess";
        let now = compute_mode(&self.journal.uuid);
        if now.as_deref() == Some(EXCLUSIVE) {
            return Ok(());
        }
        if self.journal.found_compute_mode.is_none() {
            self.journal.found_compute_mode = now;
        }
        self.write()?;
        set_compute_mode(&self.journal.uuid, &self.journal.label, EXCLUSIVE)
    }

    /// A daemon is about to be started there, or is over.
    pub fn note_daemon(&mut self, pipe: &Path, runs: bool) -> Result<(), NotCut> {
        self.journal.daemons.retain(|p| p != pipe);
        if runs {
            self.journal.daemons.push(pipe.into());
        }
        self.write()
    }

    fn write(&mut self) -> Result<(), NotCut> {
        let text = serde_json::to_string_pretty(&self.journal).unwrap_or_default();
        let written = collo_store::replace_file(&self.place, text.as_bytes());
        written.map_err(|e| {
            NotCut::new_with(format!("the state of {} cannot be written down, so nothing is changed", self.journal.label), e)
        })?;
        self.written = true;
        Ok(())
    }

    /// Put the card back as it was found.
    pub fn restore(&mut self) -> Result<Restored, NotCut> {
        if !self.written {
            return Ok(Restored::default());
        }
        let restored = self.journal.restore()?;
        self.written = false;
        self.journal.daemons.clear();
        self.journal.found_compute_mode = None;
        Ok(restored)
    }
}

impl Hold {
    /// It could not be put back: the journal stays, and nobody tries again by the way.
    pub fn give_up(&mut self) {
        self.written = false;
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        // Whoever forgot to, or could not: the journal stays if this does not work.
        let _ = self.restore();
    }
}

/// `Default`, `ExclusiveProcess`; none if the driver does not tell.
fn compute_mode(uuid: &str) -> Option<String> {
    let nvml = nvml::open().ok()?;
    let mode = nvml.device_by_uuid(uuid).and_then(|device| device.compute_mode()).ok()?;
    Some(format!("{mode:?}"))
}

fn set_compute_mode(uuid: &str, label: &str, word: &str) -> Result<(), NotCut> {
    let mode = match word {
        "ExclusiveProcess" => ComputeMode::ExclusiveProcess,
        "Prohibited" => ComputeMode::Prohibited,
        _ => ComputeMode::Default,
    };
    let nvml = nvml::open()?;
    let set = nvml.device_by_uuid(uuid).and_then(|mut device| device.set_compute_mode(mode));
    set.map_err(|e| NotCut::of_mode(label, word, &e))
}
