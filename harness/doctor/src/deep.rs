//! `collo doctor --deep`: whether numbers of this machine can be trusted. Each GPU is fully loaded, by a tiny experiment that is
//! planned, staged, run, sampled and attested like any other, and with known results.
//!
//! A kernel that fills every SM must read as SM activity near 1, on the GPU or on each instance; two members must share in each
//! mode available with the current partition; the limits of MPS must be in force and be read back; the driver's lists must have the
//! members while they train; and DCGM's stream must have given numbers. Nothing is partitioned, and nothing is kept.

use collo_measure::stage;
use std::path::Path;
use std::time::Duration;

use collo_device::mps;
use collo_device::select_gpu::GpuSelector;
use collo_measure::stage::MEMORY_LIMIT;
use collo_plan::experiment::DeviceRequest;
use collo_plan::facts::{Driver, Gpu};
use collo_plan::project::Project;
use collo_plan::sharing::{self, Limits};
use collo_plan::workload::Workloads;
use collo_sample::gpu::dcgm_texts;
use collo_store::{AttestationVerdict, Outcome, RunRecord, StoredRun};
use collo_text::{Diagnostic, Diagnostics};

use crate::check::{Check, Mark};
use crate::{lists, timeout};
use collo_measure::trial::{Trial, Tried};

/// It multiplies large matrices and leaves no SM idle.
const WORKLOAD: &str = "compute-bound";
const ACTIVITY: &str = "sm_active_ratio";
/// A full load reads at least this. Launches leave gaps of a few percent.
const FULL: f64 = 0.85;
/// The same on an instance, whose waves of blocks are smaller. Beside smaller ones a larger instance reads 0.3 to 0.5 (DCGM #138,
/// #151).
const FULL_INSTANCE: f64 = 0.6;
/// Limits of MPS that a real GPU is most likely to round, or not to report: a share that is half of the SMs, one that two SMs do not
/// divide, and a size that is no whole GiB (3814 MiB), which the daemon prints cut to whole ones.
const LIMITS: [&str; 3] = ["mps:50%", "mps:14%", "mps:mem=4GB"];
/// More than rounding explains.
const TOO_MUCH: f64 = 1.05;

/// What loads the GPUs.
pub struct DeepLoad<'a> {
    /// The one that is loaded; `None` for all that are suitable for compute.
    pub gpu: Option<&'a str>,
    /// In place of the provided one.
    pub python: Option<&'a Path>,
    pub project: &'a dyn Fn() -> Result<Project, Diagnostic>,
    /// Runs a trial, and shows what it needs first.
    pub run: &'a mut dyn FnMut(Trial<'_>, &Project) -> Result<Tried, Diagnostics>,
}

/// A row for each check on each GPU.
pub fn checks(driver: &Driver, load: &mut DeepLoad<'_>) -> Result<Vec<Check>, Diagnostics> {
    let gpus = match load.gpu {
        Some(text) => GpuSelector::parse(text).of(driver)?,
        None => driver.gpus.iter().filter(|gpu| gpu.computes()).cloned().collect(),
    };
    let mut all = Vec::new();
    for gpu in &gpus {
        all.extend(on(load, gpu)?);
    }
    Ok(all)
}

fn on(load: &mut DeepLoad<'_>, gpu: &Gpu) -> Result<Vec<Check>, Diagnostics> {
    if let Some(other) = gpu.company.to_text().first() {
        let text = format!("{} is not tested: {}", gpu.label(), other);
        return Ok(vec![Check::new(Mark::Changes, "full load", text).hint("`--gpu` selects another")]);
    }
    let Some(at) = &gpu.at else { return Ok(Vec::new()) };
    let project = (load.project)()?;
    let workloads = Workloads::load(&project.workloads())?;
    workloads.find(WORKLOAD)?;
    let cells = cells(gpu);
    if cells.is_empty() {
        let check = Check::new(Mark::Fixable, "full load", format!("{} has MIG on and no instance to train on", gpu.label()));
        return Ok(vec![check.hint("`collo mig apply LAYOUT`, or `collo mig clear`")]);
    }
    let mut all = Vec::new();
    let watch = lists::Watch::begin(std::iter::once(&at.uuid).chain(&gpu.mig_devices).cloned().collect());
    for (modes, degree) in cells {
        let text = format!(
            "name = \"deep\"\ndevice = \"gpu\"\nrepetitions = 1\nepochs = 3\ncooldown = \"0s\"\n[axes]\nworkload = \"{WORKLOAD}\"\n\
             sharing = {modes:?}\ndegree = {degree}\n"
        );
        let asked = DeviceRequest { gpu: Some(at.uuid.clone()), as_found: true, ..DeviceRequest::default() };
        // A baseline opens and closes a block; once is enough.
        let at_most = modes.len() + 1;
        let trial = Trial { workloads: &workloads, text, asked, python: load.python, at_most, searches: false };
        all.push((load.run)(trial, &project)?);
    }
    let mut checks = judged(gpu, &all, timeout::ask("dcgmi", &["--version"]).is_some());
    let completed = all.iter().flat_map(|t| &t.runs).map(|run| &run.record).filter(|r| r.outcome == Outcome::Completed);
    let sightings = watch.map(lists::Watch::end).unwrap_or_default();
    checks.extend(lists::judged(&gpu.label(), &sightings, completed));
    Ok(checks)
}

/// The modes available with the current partition, and the degree of each.
fn cells(gpu: &Gpu) -> Vec<(Vec<String>, usize)> {
    let Some(partition) = gpu.partition.as_ref().filter(|p| p.mig) else {
        let mps = mps::program().into_iter().flat_map(|_| std::iter::once("mps").chain(LIMITS));
        return vec![(std::iter::once("naive").chain(mps).map(str::to_string).collect(), 2)];
    };
    // One mode has equal instances: a card that is cut into several sizes is tried one size after the other.
    let mut sizes: Vec<(String, usize)> = Vec::new();
    for slice in &partition.instances {
        let (label, members) = match slice.compute[..] {
            [] => continue,
            [_] => (slice.profile.clone(), 1),
            [slices, ..] => (format!("{slices}c.{}", slice.profile), slice.compute.len()),
        };
        match sizes.iter_mut().find(|(known, _)| *known == label) {
            Some((_, count)) => *count += members,
            None => sizes.push((label, members)),
        }
    }
    sizes.into_iter().map(|(label, members)| (vec![format!("mig:{members}×{label}")], members)).collect()
}

fn judged(gpu: &Gpu, tried: &[Tried], dcgm: bool) -> Vec<Check> {
    let label = gpu.label();
    let runs = || tried.iter().flat_map(|t| &t.runs);
    let mut all: Vec<Check> = runs().map(|run| limits(gpu, run).unwrap_or_else(|| shares(&label, run))).collect();
    for refusal in tried.iter().flat_map(|t| &t.refusals).filter(|r| r.sharing != "solo") {
        let check = Check::new(Mark::Fixable, "shares", format!("{label}: `{}` is refused: {}", refusal.cell, refusal.reason));
        all.push(match &refusal.hint {
            Some(hint) => check.hint(hint.clone()),
            None => check,
        });
    }
    let loaded: Vec<&StoredRun> = runs().filter(|r| r.record.outcome == Outcome::Completed).collect();
    // Members under a limit leave SMs idle.
    let unlimited: Vec<&StoredRun> = loaded.iter().copied().filter(|r| limits_of(&r.record).is_none()).collect();
    all.extend(activity(&label, &unlimited));
    all.push(match loaded.iter().flat_map(|r| &r.record.sampling).any(|s| s.source.starts_with("dcgm")) {
        true => stream(&label, &loaded),
        false => asked_alone(gpu, dcgm),
    });
    all
}

/// Whether the members of a run were placed and limited as requested.
fn shares(label: &str, run: &StoredRun) -> Check {
    let r = &run.record;
    let (cell, members) = (&r.cell.sharing, r.members.len());
    let what = match members {
        1 => format!("{label}: one alone, {cell}"),
        n => format!("{label}: {n} share, {cell}"),
    };
    match (&r.outcome, r.attestation.verdict) {
        (Outcome::Completed, AttestationVerdict::Attested) => {
            let held = r.attestation.checks.len();
            Check::new(Mark::Good, "shares", format!("{what}: {held} of {held} checks hold"))
        }
        (Outcome::Completed, _) => {
            let why = r.validity.reasons.join("; ");
            Check::new(Mark::Changes, "shares", format!("{what}: {why}")).hint("start the container with `--pid=host`")
        }
        _ => Check::new(Mark::Fixable, "shares", format!("{what}: {}", r.failure().unwrap_or_default())).hint(hint_of(r)),
    }
}

/// The limits of MPS of a run, if it has any.
fn limits_of(r: &RunRecord) -> Option<Limits> {
    r.cell.sharing.strip_prefix("mps:").and_then(|text| sharing::limits(text).ok())
}

/// What was asked of MPS in a run under limits, and what its members and its server report; `None` for a run without.
pub(super) fn limits(gpu: &Gpu, run: &StoredRun) -> Option<Check> {
    const SUBJECT: &str = "limits";
    let r = &run.record;
    let limits = limits_of(r)?;
    let mut parts = Vec::new();
    if let Some(percent) = limits.active_thread_percent {
        let asked = match gpu.sms {
            Some(sms) => format!("{percent} % of {sms} SMs, which is {:.1}", f64::from(sms) * f64::from(percent) / 100.0),
            None => format!("{percent} % of the SMs"),
        };
        let seen: Vec<String> = r.members.iter().filter_map(|m| Some(m.hello.as_ref()?.get("sm_count")?.to_string())).collect();
        let found =
            if seen.is_empty() { "members report none".to_string() } else { format!("members see {}", seen.join(" and ")) };
        parts.push(format!("asked {asked}, {found}"));
    }
    let memory = r.attestation.checks.iter().find(|check| check.what == MEMORY_LIMIT);
    if let Some(bytes) = limits.memory_bytes {
        let found = memory.and_then(|check| check.found.as_deref()).unwrap_or("nothing");
        parts.push(format!("asked {} MiB, found {found}", bytes >> 20));
    }
    let text = format!("{}: {} under {}: {}", gpu.label(), r.members.len(), r.cell.sharing, parts.join("; "));
    let is_read = limits.memory_bytes.is_none() || memory.is_some_and(|check| check.found.is_some());
    let check = |mark| Check::new(mark, SUBJECT, text.clone());
    Some(match &r.outcome {
        Outcome::Completed if is_read => check(Mark::Good),
        Outcome::Completed => check(Mark::Changes)
            .hint("runs of such cells are indicative here; `collo doctor --collect` stores what the daemon answers"),
        outcome => {
            let failed = Check::new(Mark::Fixable, SUBJECT, format!("{text}; {}", r.failure().unwrap_or_default()));
            match outcome {
                Outcome::ModeLost { .. } if !stage::found_cpu(&r.attestation) => {
                    failed.hint("this driver may round a limit otherwise: `collo doctor --collect` stores what it reports")
                }
                _ => failed.hint(hint_of(r)),
            }
        }
    })
}

fn hint_of(r: &RunRecord) -> &'static str {
    match &r.outcome {
        Outcome::OutOfMemory { .. } => "another user's memory on this GPU? check `nvidia-smi`",
        Outcome::HostOutOfMemory { .. } => "stop other processes on this machine: `free -h` shows free memory",
        Outcome::NotStaged { .. } => "`nvidia-cuda-mps-control -f` in a shell shows its messages",
        Outcome::DeviceLost { .. } => "`dmesg | grep -i nvrm`, then a reset or a reboot",
        Outcome::ModeLost { .. } if stage::found_cpu(&r.attestation) => {
            "CUDA is unusable here: fabric manager on HGX, /dev/nvidia-uvm, driver and library mismatch"
        }
        _ => "`collo run gpu-smoke` records what happened, `collo show last` shows it",
    }
}

/// SM activity while all members trained, by scope: a line for each GPU or instance.
fn activity(label: &str, runs: &[&StoredRun]) -> Vec<Check> {
    const SUBJECT: &str = "full load";
    if runs.is_empty() {
        return vec![Check::new(Mark::Fixable, SUBJECT, format!("{label}: no run finished, so nothing was read"))];
    }
    let mut all = Vec::new();
    for run in runs {
        let cell = &run.record.cell;
        // A mean over a card that is cut says nothing of any of its instances.
        let on_instances = cell.mode.partitioned;
        let wanted = if on_instances { "mig:" } else { "gpu:" };
        let told = readings(run);
        let told: Vec<(&String, f64)> = told.iter().filter(|(s, _)| s.starts_with(wanted)).map(|(s, v)| (s, *v)).collect();
        if told.is_empty() {
            let absent = run.record.sampling.iter().find_map(|s| s.absent.iter().find(|(m, _)| m.starts_with(ACTIVITY)));
            let why = absent.map_or("no source gave a number".to_string(), |(_, why)| why.clone());
            let check = Check::new(Mark::Fixable, SUBJECT, format!("{label}, {}: SM activity is not reported: {why}", cell.cell));
            all.push(check.hint("`collo doctor` without `--deep` shows what its sources lack"));
        }
        for (number, (_, mean)) in told.iter().enumerate() {
            let place = if on_instances { format!("{label}, instance {}", number + 1) } else { label.to_string() };
            let text = format!("{place}, {}: SM activity {mean:.2}", cell.cell);
            all.push(match mean {
                m if *m > TOO_MUCH => Check::new(Mark::Fixable, SUBJECT, format!("{text}: more than possible"))
                    .hint("DCGM on A100 with MIG (DCGM #152): shares of instances are not comparable"),
                m if *m < if on_instances { FULL_INSTANCE } else { FULL } => Check::new(
                    Mark::Fixable,
                    SUBJECT,
                    format!("{text}: it should be near 1"),
                )
                .hint(match on_instances {
                    true => {
                        "before Hopper DCGM under-reports larger instances next to smaller ones (DCGM #138, #151): partition it equally"
                    }
                    false => "another process on the GPU, a lower clock, or a source that repeats old numbers",
                }),
                _ => Check::new(Mark::Good, SUBJECT, text),
            });
        }
    }
    all
}

/// By scope: the mean SM activity from the second epoch of the last member to the first `done`.
fn readings(run: &StoredRun) -> Vec<(String, f64)> {
    let stored = collo_store::read_samples(&run.path.join("samples.parquet"), |_, _, metric| metric == ACTIVITY);
    let began = run.record.members.iter().filter_map(|m| m.training_start_ns).max().unwrap_or(0);
    let ended = run.record.timeline.done_ns.unwrap_or(u64::MAX);
    let mut all = Vec::new();
    for ((scope, _), values) in stored.unwrap_or_default() {
        // A source may renew its numbers somewhat later than it is asked.
        let inside = |(at, window, value): &(u64, u64, Option<f64>)| {
            value.filter(|_| at.saturating_sub(window + 150_000_000) >= began && *at <= ended)
        };
        let values: Vec<f64> = values.iter().filter_map(inside).collect();
        if !values.is_empty() {
            all.push((scope, values.iter().sum::<f64>() / values.len() as f64));
        }
    }
    all
}

/// Whether DCGM's stream gave numbers during these runs.
fn stream(label: &str, runs: &[&StoredRun]) -> Check {
    let of_dcgm = || runs.iter().flat_map(|r| &r.record.sampling).filter(|s| s.source.starts_with("dcgm"));
    let ticks: u64 = of_dcgm().map(|s| s.ticks).sum();
    let unread: u64 = of_dcgm().map(|s| s.unread_lines).sum();
    let why = || of_dcgm().flat_map(|s| s.absent.values()).next().cloned();
    of_stream(label, ticks, unread, why)
}

/// The same if nothing else needed it, because the driver's profiler reports everything: a few rows, since an experiment may
/// select it by `sm_source`.
fn asked_alone(gpu: &Gpu, dcgm: bool) -> Check {
    let Some(at) = gpu.at.as_ref().filter(|_| dcgm) else {
        return Check::new(Mark::Absent, STREAM, "`dcgmi` is not on the PATH");
    };
    // DCGM numbers GPUs itself: by the driver's index the rows may be those of another GPU.
    let listed = timeout::ask("dcgmi", &["discovery", "-l"]).map(|(_, said)| said).unwrap_or_default();
    let Some(number) = dcgm_texts::entity(&listed, &at.uuid) else {
        let last = || listed.lines().rfind(|line| !line.trim().is_empty() && !line.starts_with(['+', '|'])).map(str::to_string);
        return of_stream(&gpu.label(), 0, 0, || last().or(Some("`dcgmi discovery -l` does not list the GPU".into())));
    };
    let entity = format!("gpu:{number}");
    let arguments = ["dmon", "-i", &entity, "-e", "1001,1002,1003", "-d", "100", "-c", "5"];
    match timeout::errand("dcgmi", &arguments, Duration::from_secs(15)).ask() {
        Ok(said) => {
            let (out, err) = (said.out(), said.err());
            let read = dcgm_texts::dmon(&out);
            let rows = if read.values > 0 { read.rows as u64 } else { 0 };
            let last = || err.lines().chain(out.lines()).rfind(|l| !l.trim().is_empty()).map(str::to_string);
            of_stream(&gpu.label(), rows, read.unread.len() as u64, last)
        }
        Err(e) => of_stream(&gpu.label(), 0, 0, || Some(e.to_string())),
    }
}

const STREAM: &str = "dmon";

fn of_stream(label: &str, rows: u64, unread: u64, why: impl FnOnce() -> Option<String>) -> Check {
    match (rows, unread) {
        (0, _) => {
            let why = why().map(|why| format!(": {why}")).unwrap_or_default();
            Check::new(Mark::Fixable, STREAM, format!("{label}: `dcgmi dmon` printed no numbers{why}"))
                .hint("`sudo systemctl restart nvidia-dcgm`, then `dcgmi dmon -e 1002`")
        }
        (_, 0) => Check::new(Mark::Good, STREAM, format!("{label}: {rows} rows of `dcgmi dmon`, all understood")),
        _ => Check::new(Mark::Changes, STREAM, format!("{label}: {rows} rows of `dcgmi dmon`, {unread} lines not understood"))
            .hint("`collo doctor --collect` saves them"),
    }
}
