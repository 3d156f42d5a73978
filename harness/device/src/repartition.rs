//! Reads and changes a GPU's partition.
//!
//! The library is opened for each operation: handles do not survive a change of mode, and an open one can block it.

mod seen;

use collo_gpus::PartitionError;
use std::time::{Duration, Instant};

use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};

use super::blame::Blame;
use super::nvml::instances::{GpuInstance, MigDevice, Raw};
use super::nvml::{self, NoDriver};
use super::services;
use collo_gpus::partition::{Partition, Slice};

/// A partitioned GPU, with the CUDA names of its parts.
#[derive(Debug, Clone, PartialEq)]
pub struct PartitionedGpu {
    pub partition: Partition,
    /// By GPU instance in the partition's order: its id, its memory, and its compute instances as CUDA devices.
    pub instances: Vec<PartitionedInstance>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct PartitionedInstance {
    pub gpu_instance: u32,
    pub memory_bytes: Option<u64>,
    /// In the order of the slice's compute instances.
    pub devices: Vec<MigDevice>,
}

impl From<NoDriver> for PartitionError {
    fn from(e: NoDriver) -> PartitionError {
        PartitionError { hint: e.hint().map(str::to_string), ..PartitionError::new(e.to_string()) }
    }
}

/// Number of tries if something is in use, and the time between them.
const TRIES: u32 = 6;
const BETWEEN: Duration = Duration::from_millis(250);

/// The partition of the GPU with this UUID; `label` is its name for people.
pub fn read(uuid: &str, label: &str) -> Result<PartitionedGpu, PartitionError> {
    let nvml = nvml::open()?;
    let device = nvml.device_by_uuid(uuid).map_err(|e| failed("read", label, &e))?;
    look(&nvml, &device).map_err(|e| failed("read", label, &e))
}

/// The same, for an open GPU.
pub fn look(nvml: &Nvml, device: &Device<'_>) -> Result<PartitionedGpu, NvmlError> {
    let on = match device.mig_mode() {
        Ok(mode) => mode.current == 1,
        Err(NvmlError::NotSupported | NvmlError::FailedToLoadSymbol(_) | NvmlError::FunctionNotFound) => false,
        Err(e) => return Err(e),
    };
    if !on {
        return Ok(PartitionedGpu { partition: Partition::off(), instances: Vec::new() });
    }
    let raw = Raw::new(nvml, device);
    let profiles = raw.profiles()?;
    let devices = raw.mig_devices()?;
    let (mut slices, mut parts) = (Vec::new(), Vec::new());
    let instances = match raw.gpu_instances(&profiles) {
        // "Requires privileged user" (nvml.h): what CUDA can see is open to everybody.
        Err(NvmlError::NoPermission) => return Ok(crate::repartition::seen::by_devices(&devices, &profiles)),
        told => told?,
    };
    for instance in instances {
        let profile = profiles.iter().find(|p| p.id == instance.profile);
        let sizes = raw.compute_profiles(&instance)?;
        let inside = raw.compute_instances(&instance, &sizes)?;
        let size = |id: u32| sizes.iter().find(|s| s.id == id).map_or(0, |s| s.slices);
        let seen = |ci: u32| devices.iter().find(|d| d.gpu_instance == instance.id && d.compute_instance == ci).cloned();
        slices.push(Slice {
            profile: profile.map_or_else(|| format!("profile {}", instance.profile), |p| p.name.clone()),
            start: Some(instance.start),
            compute: inside.iter().map(|ci| size(ci.profile)).collect(),
        });
        parts.push(PartitionedInstance {
            gpu_instance: instance.id,
            memory_bytes: profile.map(|p| p.memory_mib << 20),
            devices: inside.iter().filter_map(|ci| seen(ci.id)).collect(),
        });
    }
    Ok(PartitionedGpu { partition: Partition { mig: true, instances: slices }, instances: parts })
}

/// Partition the GPU. What is already as wanted is left alone; the rest is changed, or the reason is returned.
pub fn apply(uuid: &str, label: &str, wanted: &Partition) -> Result<PartitionedGpu, PartitionError> {
    let found = read(uuid, label)?;
    if found.partition.is_as(wanted) {
        return Ok(found);
    }
    if found.partition.mig && !wanted.mig {
        change(uuid, label, &Partition::on(Vec::new()))?;
    }
    if found.partition.mig != wanted.mig {
        switch(uuid, label, wanted.mig)?;
    }
    if wanted.mig {
        change(uuid, label, wanted)?;
    }
    let now = read(uuid, label)?;
    if !now.partition.is_as(wanted) {
        return Err(PartitionError::new(format!("{label} should be {wanted}, but is {}", now.partition)));
    }
    Ok(now)
}

/// How long to wait for a process that is about to release the GPU, and the time between two tries.
///
/// `nvml.h` on nvmlDeviceSetMigMode: if the GPU is in use, idle it and try again.
const LETS_GO_WITHIN: Duration = Duration::from_secs(12);
const BETWEEN_TURNS: Duration = Duration::from_millis(500);

/// Turn MIG on or off, and verify it.
fn switch(uuid: &str, label: &str, on: bool) -> Result<(), PartitionError> {
    let deadline = Instant::now() + LETS_GO_WITHIN;
    loop {
        match turn(uuid, label, on) {
            // Services do not let go by themselves.
            Err(e) if e.in_use && Instant::now() < deadline && services::active().is_empty() => std::thread::sleep(BETWEEN_TURNS),
            other => return other,
        }
    }
}

/// The same, once.
fn turn(uuid: &str, label: &str, on: bool) -> Result<(), PartitionError> {
    let word = |on: bool| if on { "on" } else { "off" };
    let status = {
        let nvml = nvml::open()?;
        let device = nvml.device_by_uuid(uuid).map_err(|e| failed("read", label, &e))?;
        device.set_mig_mode(on).map_err(|e| {
            let error = because(format!("the MIG mode of {label} cannot be turned {}", word(on)), &e, uuid);
            let hint = if error.in_use { Some(blame(uuid).hint(true)) } else { error.hint.clone() };
            PartitionError { hint, ..error }
        })?
    };
    // The card may have been reset: what was opened before it stands for nothing (`nvml.h`, nvmlDeviceSetMigMode).
    let nvml = nvml::open()?;
    let device = nvml.device_by_uuid(uuid).map_err(|e| failed("read", label, &e))?;
    let mode = device.mig_mode().map_err(|e| failed("read", label, &e))?;
    if (mode.current == 1) == on {
        return Ok(());
    }
    // It would come with the next reset; what is pending must not stay behind.
    let undone = match device.set_mig_mode(!on) {
        Ok(_) => "undone".to_string(),
        Err(e) => format!("NVML reports {} for undoing it, so it comes with the next reset", nvml::text(&e)),
    };
    let blame = Blame::of_the_card(&nvml, uuid);
    let (who, hint) = match status {
        RESET_REQUIRED if blame.is_nobody() => {
            // As in a virtual machine that has the card passed through.
            let way = format!("`sudo nvidia-smi -mig {}`, and reboot", u8::from(on));
            ("this machine cannot reset the GPU by itself".into(), way)
        }
        _ => (blame.to_text(), blame.hint(true)),
    };
    let what = format!("MIG mode of {label} stays {}: {who}", word(!on));
    let mut error = PartitionError::new(what);
    error.cause = Some(format!("the driver left MIG {} pending; {undone}", word(on)));
    error.in_use = status == IN_USE;
    error.hint = Some(hint);
    Err(error)
}

/// The MIG mode that the next reset brings, if it is another than the current one (`nvml.h`, nvmlDeviceGetMigMode: the pending mode is the
/// "target mode following the next activation trigger").
pub fn pending_mode(uuid: &str, label: &str) -> Result<Option<bool>, PartitionError> {
    let nvml = nvml::open()?;
    let device = nvml.device_by_uuid(uuid).map_err(|e| failed("read", label, &e))?;
    // A GPU without MIG has neither.
    Ok(device.mig_mode().ok().filter(|mode| mode.current != mode.pending).map(|mode| mode.pending == 1))
}

/// Undo a change of MIG mode that is pending.
pub fn undo_pending(uuid: &str, label: &str) -> Result<(), PartitionError> {
    let Some(pending) = pending_mode(uuid, label)? else { return Ok(()) };
    let word = if pending { "on" } else { "off" };
    let what = || format!("MIG {word} of {label} is pending, so it comes with the next reset, and cannot be undone");
    let nvml = nvml::open()?;
    let device = nvml.device_by_uuid(uuid).map_err(|e| failed("read", label, &e))?;
    device.set_mig_mode(!pending).map_err(|e| because(what(), &e, uuid))?;
    match pending_mode(uuid, label)? {
        None => Ok(()),
        Some(_) => Err(PartitionError::new(what())),
    }
}

/// NVML's codes of a failed activation.
const RESET_REQUIRED: u32 = 16;
const IN_USE: u32 = 19;

/// Whether a change of MIG mode resets the GPU: on Ampere it does, and no process may have it open then. From Hopper on it does
/// not (NVIDIA's MIG user guide, "Enable MIG Mode").
pub fn takes_reset(uuid: &str) -> bool {
    let asked = nvml::open().ok().and_then(|nvml| nvml.device_by_uuid(uuid).and_then(|d| d.cuda_compute_capability()).ok());
    asked.is_none_or(|capability| capability.major < i32::from(collo_gpus::HOPPER))
}

/// Whether this process may change the GPU's MIG mode, tested by setting the current mode, which changes nothing.
pub fn may_turn(uuid: &str, label: &str) -> Result<(), PartitionError> {
    let nvml = nvml::open()?;
    let device = nvml.device_by_uuid(uuid).map_err(|e| failed("read", label, &e))?;
    let Ok(mode) = device.mig_mode() else { return Ok(()) };
    if mode.current != mode.pending {
        // A change waits for a reset: that is not touched.
        return Ok(());
    }
    match device.set_mig_mode(mode.current == 1) {
        Err(e @ NvmlError::NoPermission) => Err(because(format!("the MIG mode of {label} cannot be changed"), &e, uuid)),
        _ => Ok(()),
    }
}

/// Which processes have the GPU open while nothing is measured on it.
pub fn blame(uuid: &str) -> Blame {
    nvml::open().map(|nvml| Blame::of_the_card(&nvml, uuid)).unwrap_or_default()
}

/// Create the wanted instances on a GPU with MIG on. A GPU instance with the right profile and place stays, and only its compute
/// instances are recreated.
fn change(uuid: &str, label: &str, wanted: &Partition) -> Result<(), PartitionError> {
    let nvml = nvml::open()?;
    let device = nvml.device_by_uuid(uuid).map_err(|e| failed("read", label, &e))?;
    let raw = Raw::new(&nvml, &device);
    let because = |what: String, e: &NvmlError| because(what, e, uuid);
    let unread = |e: NvmlError| failed("read", label, &e);
    let profiles = raw.profiles().map_err(unread)?;
    let mut kept: Vec<(GpuInstance, &Slice)> = Vec::new();
    for instance in raw.gpu_instances(&profiles).map_err(unread)? {
        let called = profiles.iter().find(|p| p.id == instance.profile).map(|p| p.name.clone()).unwrap_or_default();
        match wanted.instances.iter().find(|s| s.start == Some(instance.start) && s.profile == called) {
            Some(slice) => kept.push((instance, slice)),
            None => destroy(&raw, &instance)
                .map_err(|e| because(format!("{called}@{} of {label} cannot be destroyed", instance.start), &e))?,
        }
    }
    for slice in wanted.instances.iter().filter(|s| kept.iter().all(|(_, k)| k != s)).collect::<Vec<_>>() {
        let Some(profile) = profiles.iter().find(|p| p.name == slice.profile) else {
            if profiles.is_empty() {
                let mut error = PartitionError::new(format!(
                    "the driver reports no profile of {label}, so it cannot be partitioned from here"
                ));
                error.hint = Some("a virtual machine gets its instances from its host; `--as-found` uses them".into());
                return Err(error);
            }
            let names: Vec<String> = profiles.iter().map(|p| format!("`{}`", p.name)).collect();
            return Err(PartitionError::new(format!("{label} has no profile `{}`, it has {}", slice.profile, names.join(", "))));
        };
        // A place that was never told may be any that is free.
        let starts = slice.start.map_or_else(|| profile.starts.clone(), |start| vec![start]);
        let mut created = Err(NvmlError::NotFound);
        for start in starts {
            created = again(|| raw.create_gpu_instance(profile.id, start, profile.units));
            if created.is_ok() {
                break;
            }
        }
        kept.push((created.map_err(|e| because(format!("{slice} of {label} cannot be created"), &e))?, slice));
    }
    for (instance, slice) in &kept {
        divide(&raw, instance, &slice.compute)
            .map_err(|e| because(format!("the compute instances of {slice} of {label} cannot be created"), &e))?;
    }
    Ok(())
}

/// Recreate the compute instances inside a GPU instance with these sizes.
fn divide(raw: &Raw<'_>, instance: &GpuInstance, wanted: &[u32]) -> Result<(), NvmlError> {
    let sizes = raw.compute_profiles(instance)?;
    let inside = raw.compute_instances(instance, &sizes)?;
    let slices = |profile: u32| sizes.iter().find(|s| s.id == profile).map_or(0, |s| s.slices);
    if inside.iter().map(|ci| slices(ci.profile)).eq(wanted.iter().copied()) {
        return Ok(());
    }
    for ci in inside {
        again(|| raw.destroy_compute_instance(&ci))?;
    }
    for slices in wanted {
        let size = sizes.iter().find(|s| s.slices == *slices).ok_or(NvmlError::NotFound)?;
        again(|| raw.create_compute_instance(instance, size.id))?;
    }
    Ok(())
}

fn destroy(raw: &Raw<'_>, instance: &GpuInstance) -> Result<(), NvmlError> {
    let sizes = raw.compute_profiles(instance)?;
    for inside in raw.compute_instances(instance, &sizes)? {
        again(|| raw.destroy_compute_instance(&inside))?;
    }
    again(|| raw.destroy_gpu_instance(instance))
}

/// Retry while in use: its user may be about to release it.
fn again<T>(mut call: impl FnMut() -> Result<T, NvmlError>) -> Result<T, NvmlError> {
    let mut tries = 1;
    loop {
        match call() {
            Err(NvmlError::InUse) if tries < TRIES => {
                tries += 1;
                std::thread::sleep(BETWEEN);
            }
            other => return other,
        }
    }
}

fn failed(verb: &str, label: &str, e: &NvmlError) -> PartitionError {
    let mut error = PartitionError::new(format!("the MIG state of {label} cannot be {verb}"));
    error.cause = Some(nvml::text(e));
    error.lost = matches!(e, NvmlError::GpuLost);
    error
}

/// What prevented it, and the hint.
fn because(what: String, e: &NvmlError, uuid: &str) -> PartitionError {
    let mut error = PartitionError::new(what);
    error.cause = Some(format!("NVML reports {}", nvml::text(e)));
    error.lost = matches!(e, NvmlError::GpuLost);
    error.in_use = matches!(e, NvmlError::InUse);
    error.denied = matches!(e, NvmlError::NoPermission);
    error.hint = match e {
        NvmlError::NoPermission => {
            error.cause = Some("NVML reports no permission; it requires root or the capability `mig/config`".into());
            Some("`sudo collo mig apply LAYOUT`, then `--as-found`, which needs no permission".into())
        }
        NvmlError::InUse => {
            let blame = blame(uuid);
            error.cause = Some(format!("NVML reports in use: {}", blame.to_text()));
            Some(blame.hint(false))
        }
        NvmlError::NotSupported => Some("this GPU, or this virtual machine, does not allow changes of its MIG mode".into()),
        _ => None,
    };
    error
}
