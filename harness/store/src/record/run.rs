//! `run.json`, and the draft that becomes a run: everything is written to a temporary folder, flushed and renamed.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fs_err as fs;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::place::sync_folder;
use crate::{
    Attestation, CellRecord, Check, Cooling, DEVICE_SEEN, DeviceRecord, EpochRecord, Error, Journal, MemberSpec, ObserverRecord,
    Outcome, RequestRecord, Result, SampleWriter, TraceRecord, Validity, Verdict, XidError, digest, names, place, tables,
};
use collo_text::{open_folder, open_regular};

/// The output of a process that all members were threads of.
pub const PROCESS_LOG: &str = "process.log";

/// One execution of one cell, as stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    pub schema: u32,
    pub experiment: String,
    pub campaign: String,
    pub cell: CellRecord,
    /// From 1.
    pub repetition: u32,
    /// From 1.
    pub block: u32,
    pub device: DeviceRecord,
    pub started_utc: String,
    pub timeline: Timeline,
    pub outcome: Outcome,
    pub validity: Validity,
    pub attestation: Attestation,
    pub members: Vec<MemberRecord>,
    /// The process that all members were threads of; absent where each had a process of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessRecord>,
    pub sampling: Vec<SamplingQuality>,
    /// Digest of each ingredient at the time of this run.
    pub ingredients: BTreeMap<String, String>,
    /// How the attempts before this one failed, which the experiment's retries measured again. They are in `.superseded/`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_attempts: Vec<Outcome>,
    /// The wait for the GPU to cool down; absent without a thermal gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cooling: Option<Cooling>,
    /// How often a CPU quota of collo's control groups was used up after `go`, or in the run of a trace; absent if never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttling: Option<CpuThrottling>,
    /// Of a run of a trace; absent for a group that started together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceRecord>,
    /// Who watched it, of a cell that says so; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observer: Option<ObserverRecord>,
    /// The other files of the folder; filled on commit.
    pub files: BTreeMap<String, StoredFile>,
}

/// Periods of the kernel's CPU bandwidth control: all in which something ran, and those in which a quota was used up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuThrottling {
    pub periods: u64,
    pub throttled: u64,
}

impl CpuThrottling {
    /// What came since an earlier reading; `None` if nothing was throttled.
    pub fn since(self, before: CpuThrottling) -> Option<CpuThrottling> {
        let throttled = self.throttled.checked_sub(before.throttled).filter(|count| *count > 0)?;
        Some(CpuThrottling { periods: self.periods.saturating_sub(before.periods), throttled })
    }
}

/// The moments of a run, nanoseconds of `CLOCK_MONOTONIC`; absent if it did not get that far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    pub launched_ns: u64,
    /// All members were ready.
    pub ready_ns: Option<u64>,
    /// `go` was sent.
    pub go_ns: Option<u64>,
    /// The last measured epoch ended.
    pub done_ns: Option<u64>,
    /// No process was left.
    pub ended_ns: u64,
}

/// What is known of one member of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemberRecord {
    pub spec: MemberSpec,
    /// Its command line, a word each; empty in records of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    pub pid: Option<u32>,
    /// Its part of the device: `1g.5gb`; absent if that is the whole device.
    #[serde(default)]
    pub slice: Option<String>,
    /// False for a foreign script without the protocol: it started when launched, without waiting for the others.
    pub barrier: bool,
    /// The member's own hello, word for word: device as seen, versions, model, data set.
    pub hello: Option<Value>,
    /// True if it trained on a synthetic stand-in; absent if not reported.
    pub synthetic: Option<bool>,
    /// Batches after which its epochs were cut short; absent for whole epochs.
    #[serde(default)]
    pub limit_batches: Option<u64>,
    /// Present if it serves instead of training.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serving: Option<Serving>,
    /// Absent if not reported.
    #[serde(default)]
    pub features: Option<Features>,
    pub ready_ns: Option<u64>,
    /// When its first epoch began; of a script without the protocol, when its first unmeasured one ended, which has its start in it.
    pub training_start_ns: Option<u64>,
    /// When it stopped training: it was told to stop, was done under `exit`, or ended.
    pub training_end_ns: Option<u64>,
    /// `exited with 0`, `killed by SIGKILL`.
    pub exit: Option<String>,
    pub cpu_time_s: Option<f64>,
    /// Peak resident memory of the member's process, from VmHWM.
    pub peak_rss_bytes: Option<u64>,
    /// The GPU allocator's own peaks.
    pub allocated_bytes: Option<u64>,
    pub reserved_bytes: Option<u64>,
    /// The same for its warm-up, if they were reset after it: tuning asks for memory that training does not.
    #[serde(default)]
    pub warm_up_allocated_bytes: Option<u64>,
    #[serde(default)]
    pub warm_up_reserved_bytes: Option<u64>,
    /// Processes that it left behind, ended by its supervisor.
    pub orphans: Vec<u32>,
    /// The last lines of its log if it failed.
    pub log_tail: Vec<String>,
    /// A line of `[epochs]` that reads progress from its output; present only if none of its lines matched the pattern.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposed_epochs: Option<String>,
}

/// The one process of a group whose members were its threads: what cannot be told of each of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProcessRecord {
    /// Its command line, a word each.
    pub command: Vec<String>,
    pub pid: Option<u32>,
    /// `exited with 0`, `killed by SIGKILL`; absent if that is not known.
    pub exit: Option<String>,
    /// CPU time of all its threads and children, seconds.
    pub cpu_time_s: Option<f64>,
    /// Peak resident memory of the process, from VmHWM.
    pub peak_rss_bytes: Option<u64>,
    /// Processes that it left behind, ended by its supervisor.
    pub orphans: Vec<u32>,
}

impl RunRecord {
    /// The errors of GPUs that the driver reported while it ran, each number once.
    pub fn xids(&self) -> Vec<&XidError> {
        let mut all: Vec<&XidError> = Vec::new();
        for xid in self.sampling.iter().flat_map(|quality| &quality.xids) {
            if !all.iter().any(|known| known.number == xid.number) {
                all.push(xid);
            }
        }
        all
    }

    /// The UUID of the device that a member was given. What a member reports as its device is no name of an instance: CUDA shows the digits
    /// of a UUID alone, and a script puts `GPU-` before them (`as_seen` of workloads/collo_torch.py; `cuDeviceGetUuid_v2` of the CUDA
    /// driver API: "16-octets", inside an instance the MIG UUID's). It is taken only where nothing was asked.
    pub fn device_of(&self, member: usize) -> Option<&str> {
        let is_it = |check: &&Check| check.what == DEVICE_SEEN && check.member.is_some_and(|own| own as usize == member);
        let asked = self.attestation.checks.iter().find(is_it).map(|check| check.asked.as_str());
        asked.or_else(|| self.members.get(member)?.hello.as_ref()?.get("device")?.as_str())
    }

    /// The file with the output of a member, in the run's folder: that of its process, which it may share.
    pub fn log_of(&self, member: usize) -> String {
        if self.cell.mode.one_process { PROCESS_LOG.into() } else { format!("member-{member}.log") }
    }

    /// Whether time series were to be recorded.
    pub fn is_sampled(&self) -> bool {
        !self.sampling.iter().any(|quality| quality.absent.values().any(|why| why == SAMPLING_OFF))
    }
}

/// The load of a serving member: requests arrive by an open-loop Poisson process, whether or not it keeps up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Serving {
    /// Mean rate of arrivals.
    pub rate_per_s: f64,
    /// Requests answered in one batch, at most.
    pub batch_size: u64,
    /// The latency that a request must not exceed; absent if none was set.
    #[serde(default)]
    pub slo_s: Option<f64>,
    /// Requests per second that it answers when none waits, measured in its warm-up; absent if not reported.
    #[serde(default)]
    pub capacity_per_s: Option<f64>,
}

/// The computation graph of a member in numbers, as reported: training data for predictors of utilisation and memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Features {
    pub batch_size: Option<u64>,
    pub parameters: Option<u64>,
    /// Parameters and buffers, 10⁶ bytes.
    pub model_mb: Option<f64>,
    /// Of one forward pass; a multiply-add is two.
    pub flops_per_item: Option<f64>,
    /// Values that the layers output in one forward pass.
    pub activations_per_item: Option<f64>,
    /// Layers by kind.
    #[serde(default)]
    pub layers: BTreeMap<String, u64>,
    /// Layers in the order of the forward pass: type, values output for one item, parameters; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<Vec<(String, u64, u64)>>,
}

/// The reason for absent readings where no time series was to be recorded.
pub const SAMPLING_OFF: &str = "sampling was off";

/// How well one source was sampled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SamplingQuality {
    pub source: String,
    pub asked_hz: f64,
    pub achieved_hz: Option<f64>,
    pub ticks: u64,
    /// Ticks skipped because the one before took too long.
    pub missed: u64,
    pub longest_gap_s: Option<f64>,
    /// How late a tick began after its deadline.
    pub lateness_p50_s: Option<f64>,
    pub lateness_p99_s: Option<f64>,
    pub lateness_max_s: Option<f64>,
    /// CPU time of the sampling thread over its life, of one core; of one that reads through `dcgmi` with that of this program.
    pub cpu_ratio: Option<f64>,
    /// Share of ticks at which the metric's value moved, by metric.
    pub moved_ratio: BTreeMap<String, f64>,
    /// Why an expected metric is absent, by metric, or by `METRIC of SCOPE` if other scopes have it.
    #[serde(default)]
    pub absent: BTreeMap<String, String>,
    /// Lines of a stream that could not be parsed; nothing was read from them.
    #[serde(default)]
    pub unread_lines: u64,
    /// Events during sampling that users of its numbers should know about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// Errors of the GPUs that the driver reported.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub xids: Vec<XidError>,
    /// Absent unless the source is a third-party program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instrument: Option<Instrument>,
}

/// The program a source was read with, and the GPUs it read: the facts by which a report decides how far to trust its numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instrument {
    /// Of the program: `3.3.9`; absent if not reported.
    pub version: Option<String>,
    /// By scope: `gpu:UUID`.
    pub cards: BTreeMap<String, ReadCard>,
}

/// A GPU as seen by a source.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadCard {
    /// `8.0`
    pub compute_capability: Option<String>,
    /// Compute slices of each of its GPU instances, by scope; empty if it is not partitioned.
    pub slices: BTreeMap<String, u32>,
}

/// A file of a run, for `verify`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredFile {
    pub bytes: u64,
    pub sha256: String,
}

/// The last step of a complete, journalled run.
pub(crate) fn put_in_place(campaign: &Path, folder: &str, aside: &Path) -> Result<()> {
    let place = campaign.join(folder);
    if place.symlink_metadata().is_ok() {
        keep_superseded(campaign, folder, &place)?;
    }
    fs::rename(aside, &place)?;
    sync_folder(campaign)
}

/// An unfinished run. Dropped without [`RunDraft::commit`], its folder stays as a partial, for `show --partial`.
pub struct RunDraft {
    campaign: PathBuf,
    folder: String,
    aside: PathBuf,
    made: MadeFolder,
    events: fs::File,
}

impl RunDraft {
    pub(crate) fn begin(campaign: &Path, folder: &str) -> Result<Self> {
        let aside = campaign.join(format!(".partial-{folder}"));
        match aside.symlink_metadata() {
            Ok(found) if found.is_dir() => fs::remove_dir_all(&aside)?,
            Ok(_) => fs::remove_file(&aside)?,
            Err(_) => {}
        }
        let made = MadeFolder::new(&aside)?;
        let events = place::fresh_file(&made.inside().join("events.jsonl"))?;
        Ok(RunDraft { campaign: campaign.to_path_buf(), folder: folder.to_string(), aside, made, events })
    }

    /// The temporary folder, where members write, by its name.
    pub fn path(&self) -> &Path {
        &self.aside
    }

    /// The temporary folder by its descriptor: what is written below it is in the folder that was made, whatever members moved or put in its
    /// place.
    pub fn inside(&self) -> &Path {
        self.made.inside()
    }

    /// What lies in the folder, by its descriptor.
    pub fn inside_of(&self, path: &Path) -> PathBuf {
        path.strip_prefix(&self.aside).map_or_else(|_| path.to_path_buf(), |below| self.inside().join(below))
    }

    /// Record one event as it happens, so that `show` works on what a killed harness leaves behind.
    pub fn event(&mut self, event: &Value) -> Result<()> {
        let mut line = event.to_string();
        line.push('\n');
        self.events.write_all(line.as_bytes())?;
        Ok(())
    }

    /// A writer for the samples of this run; it may live on another thread, but not longer than the draft.
    pub fn samples(&self) -> Result<SampleWriter> {
        SampleWriter::create(self.inside())
    }

    /// Write the record and the tables, flush everything, journal the digest, and rename the folder into place. Returns the run's
    /// folder.
    ///
    /// A folder of the same name (an interrupted run, a failed one measured again) moves to `.superseded/`. If the folder is not where it
    /// was made, the run is recorded as discarded, with what is left of the first.
    pub fn commit(mut self, mut record: RunRecord, epochs: &[EpochRecord], requests: &[RequestRecord]) -> Result<PathBuf> {
        if let Some(why) = self.made.is_gone_from(&self.aside) {
            record.validity.lower(Verdict::Discarded, why);
            self.replace()?;
        }
        let inside = self.made.inside();
        tables::write_epochs(&inside.join("epochs.parquet"), epochs)?;
        if record.members.iter().any(|m| m.serving.is_some()) {
            tables::write_requests(&inside.join("requests.parquet"), requests)?;
        }
        drop(self.events);
        record.files.clear();
        for (below, path) in files_below(inside) {
            let name = names::written(&below);
            if name != "run.json" {
                let file = open_regular(&path)?;
                file.sync_all()?;
                let bytes = file.metadata()?.len();
                record.files.insert(name, StoredFile { bytes, sha256: digest::sha256_file(&path)? });
            }
        }
        let json = to_json(&record)?;
        let mut file = place::fresh_file(&inside.join("run.json"))?;
        file.write_all(json.as_bytes())?;
        file.sync_all()?;
        sync_folder(inside)?;
        // Before it is there: no run is ever without its digest.
        Journal::open(&self.campaign)?.recorded(&self.folder, record.outcome.as_str(), &digest::sha256_text(&json))?;
        put_in_place(&self.campaign, &self.folder, &self.aside)?;
        Ok(self.campaign.join(&self.folder))
    }

    /// Make the folder once more where it was, and move into it what lies in the first. What has taken its place is not touched: a link
    /// is removed, and a folder kept.
    fn replace(&mut self) -> Result<()> {
        match self.aside.symlink_metadata() {
            Ok(found) if found.is_dir() => keep_superseded(&self.campaign, &self.folder, &self.aside)?,
            Ok(_) => fs::remove_file(&self.aside)?,
            Err(_) => {}
        }
        let made = MadeFolder::new(&self.aside)?;
        for entry in std::fs::read_dir(self.inside()).into_iter().flatten().flatten() {
            // What is on another disk by now is lost: the run is discarded as it is.
            let _ = std::fs::rename(entry.path(), made.inside().join(entry.file_name()));
        }
        self.made = made;
        if self.inside().join("samples.parquet").symlink_metadata().is_err() {
            self.samples()?.finish()?;
        }
        Ok(())
    }

    /// Throw the draft away: the second Ctrl-C.
    pub fn discard(self) -> Result<()> {
        match self.made.is_gone_from(&self.aside) {
            // It is not ours to remove.
            Some(_) => Ok(()),
            None => Ok(fs::remove_dir_all(&self.aside)?),
        }
    }
}

/// A folder that was made here, kept open so that it is the same whatever happens to its name.
struct MadeFolder {
    opened: fs::File,
    inside: PathBuf,
}

impl MadeFolder {
    fn new(path: &Path) -> Result<MadeFolder> {
        fs::create_dir_all(path)?;
        let opened = open_folder(path)?;
        // Below it the kernel begins in the open folder itself, for supervisors too (proc_pid_fd(5)).
        let inside = PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), opened.as_raw_fd()));
        let is_reached = inside.metadata().is_ok_and(|found| found.is_dir());
        Ok(MadeFolder { inside: if is_reached { inside } else { path.to_path_buf() }, opened })
    }

    fn inside(&self) -> &Path {
        &self.inside
    }

    /// What became of it, if this is not its name any more.
    fn is_gone_from(&self, path: &Path) -> Option<&'static str> {
        let own = self.opened.metadata().ok().map(|own| (own.dev(), own.ino()));
        match path.symlink_metadata() {
            Ok(found) if Some((found.dev(), found.ino())) == own => None,
            Ok(found) if found.is_symlink() => Some("while it ran its folder was moved away, and a link put in its place"),
            Ok(_) => Some("while it ran its folder was moved away, and something else put in its place"),
            Err(e) if e.kind() == ErrorKind::NotFound => Some("while it ran its folder was moved or removed"),
            // A disk that does not answer, or no right to look: what is written next will fail, with the reason.
            Err(_) => None,
        }
    }
}

/// Folders of logs are in the run's folder, nothing deeper than this.
const DEEPEST: usize = 4;
/// No run of ours has more files: a member that fills its folder with others does not block the campaign.
const MOST: usize = 10_000;

/// The regular files of a folder and of the folders of logs in it, each with its relative path. A link is never followed: it may
/// lead anywhere, including back here.
fn files_below(folder: &Path) -> Vec<(PathBuf, PathBuf)> {
    let mut files = Vec::new();
    let mut folders = vec![(PathBuf::new(), folder.to_path_buf(), 0)];
    while let Some((below, folder, depth)) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let (below, path) = (below.join(entry.file_name()), entry.path());
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && depth < DEEPEST => folders.push((below, path, depth + 1)),
                Ok(kind) if kind.is_file() => files.push((below, path)),
                _ => {}
            }
            if files.len() + folders.len() >= MOST {
                return files;
            }
        }
    }
    files
}

/// The folder of a campaign in which replaced runs are kept.
pub(crate) const SUPERSEDED: &str = ".superseded";

fn keep_superseded(campaign: &Path, folder: &str, from: &Path) -> Result<()> {
    let attic = campaign.join(SUPERSEDED);
    fs::create_dir_all(&attic)?;
    let free = (1..).map(|k| attic.join(format!("{folder}.{k}"))).find(|p| p.symlink_metadata().is_err());
    if let Some(free) = free {
        fs::rename(from, free)?;
    }
    Ok(())
}

pub(crate) fn to_json<T: Serialize>(value: &T) -> Result<String> {
    let mut text = serde_json::to_string_pretty(value).map_err(|e| Error::Io(e.into()))?;
    text.push('\n');
    Ok(text)
}
