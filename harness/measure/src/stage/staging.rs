//! Applies a seating to a device: partitions the GPU, starts the MPS daemons, and sets what each member may see.

use collo_plan::sharing::MPS_PROGRAM;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::daemon::{Daemon, MpsDaemon};
use super::orders;
use crate::stage::staged::{StageError, Staged};
use collo_device::lease::GpuLease;
use collo_device::mps;
use collo_device::repartition::PartitionedGpu;
use collo_device::state_folder;
use collo_plan::experiment::SourceChoice;
use collo_plan::facts::{Cores, DeviceFacts, DeviceKind, Gpu};
use collo_plan::sharing::{Limits, Seat, Seating};
use collo_prepare::slot::Slot;
use collo_sample::{Board, BoardInstance};

/// The inputs of staging.
pub struct StageContext<'a> {
    pub facts: &'a DeviceFacts,
    /// The GPU of this run, and its lease; `None` on a CPU.
    pub card: Option<(&'a Gpu, &'a mut GpuLease)>,
    pub cores: &'a Cores,
    /// The run's folder, where daemons write their logs.
    pub folder: &'a Path,
    /// Under MPS, only the server may use the GPU.
    pub exclusive: bool,
    /// Others may compute on the GPU; the run is indicative then.
    pub foreign: bool,
}

/// A staged GPU: what was requested, and where to verify it. Evidence is gathered from a copy of it on any thread.
#[derive(Debug, Clone)]
pub struct StagedCard {
    pub label: String,
    pub uuid: String,
    pub sms: Option<u32>,
    pub mig: bool,
    /// By member.
    pub devices: Vec<Visible>,
    pub daemons: Vec<MpsDaemon>,
    /// The folder in which members without MPS look for a daemon, and find none.
    pub empty: PathBuf,
    pub foreign: bool,
    /// The thread percentage per client, set in the daemons.
    pub thread_limit_percent: Option<u8>,
    /// The memory limit per client, set in the daemons.
    pub memory_limit_bytes: Option<u64>,
    /// Members have memory limits of their own, which no daemon reports.
    pub own_memory_limits: bool,
    /// The GPU instances in use, to be sampled: UUID, GPU instance, compute instance.
    pub instances: Vec<(String, u32, u32)>,
}

/// What one member must see, and nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visible {
    pub uuid: String,
    pub sms: Option<u32>,
    pub gpu_instance: Option<u32>,
    pub compute_instance: Option<u32>,
    /// The daemon whose client it has to be.
    pub daemon: Option<usize>,
    /// Its limit of active threads.
    pub percent: Option<u8>,
}

/// Bring the device from its current state to the one required by the seating, and give each member its slot.
pub fn stage(ground: &mut StageContext<'_>, seating: &Seating) -> Result<Staged, StageError> {
    match ground.facts.kind {
        DeviceKind::Cpu => {
            let members = seating.seats.len();
            let slot = |m| Slot::on_cpu(m, members, ground.cores, &ground.facts.cores);
            Ok(Staged::on_cpu((0..members).map(slot).collect()))
        }
        DeviceKind::Gpu => on_gpu(ground, seating),
    }
}

fn on_gpu(ground: &mut StageContext<'_>, seating: &Seating) -> Result<Staged, StageError> {
    let Some((gpu, hold)) = ground.card.as_mut() else { return Err(StageError::because("no GPU is leased")) };
    let mig = seating.partition.as_ref().is_some_and(|p| p.mig);
    let exclusive = seating.daemons && ground.exclusive && !mig;
    if !exclusive {
        hold.make_shared().map_err(StageError::from)?;
    }
    let cut = match &seating.partition {
        Some(partition) => Some(hold.apply(partition).map_err(StageError::from)?),
        None => None,
    };
    let devices = devices(seating, hold.uuid(), gpu.sms, cut.as_ref())?;
    // A daemon is told what all its clients have alike; else each client is.
    let common = seating.common_limits();
    let told = common.unwrap_or_default();
    let mut card = StagedCard {
        label: gpu.label(),
        uuid: hold.uuid().to_string(),
        sms: gpu.sms,
        mig,
        instances: instances(seating, cut.as_ref()),
        devices,
        daemons: Vec::new(),
        empty: empty_folder()?,
        foreign: ground.foreign,
        thread_limit_percent: told.active_thread_percent,
        memory_limit_bytes: told.memory_bytes,
        own_memory_limits: common.is_none() && seating.limits.iter().any(|l| l.memory_bytes.is_some()),
    };
    let mut daemons = Vec::new();
    if seating.daemons {
        if exclusive {
            hold.make_exclusive().map_err(StageError::from)?;
        }
        if let Err(reason) = start_daemons(&mut card, &mut daemons, hold, ground.folder, &told) {
            daemons.into_iter().for_each(|daemon| daemon.end(hold));
            return Err(reason);
        }
    }
    let near = gpu.near_cores();
    let slots = orders::slots(&card, seating, ground.cores, &ground.facts.cores, near.as_deref());
    Ok(Staged { slots, card: Some(Arc::new(card)), daemons })
}

fn devices(seating: &Seating, uuid: &str, sms: Option<u32>, cut: Option<&PartitionedGpu>) -> Result<Vec<Visible>, StageError> {
    let visible = |(member, seat): (usize, &Seat)| {
        let percent = seating.limits.get(member).and_then(|l| l.active_thread_percent);
        let whole = Visible { uuid: uuid.into(), sms, gpu_instance: None, compute_instance: None, daemon: None, percent };
        let Seat::Slice { instance, compute } = *seat else { return Some(whole) };
        let device = cut?.instances.get(instance)?.devices.get(compute)?;
        Some(Visible {
            uuid: device.uuid.clone(),
            sms: device.sms,
            gpu_instance: Some(device.gpu_instance),
            compute_instance: Some(device.compute_instance),
            ..whole
        })
    };
    let all: Option<Vec<Visible>> = seating.seats.iter().enumerate().map(visible).collect();
    all.ok_or_else(|| StageError::because("an instance was created, but CUDA does not see it"))
}

fn instances(seating: &Seating, cut: Option<&PartitionedGpu>) -> Vec<(String, u32, u32)> {
    let mut all: Vec<(String, u32, u32)> = Vec::new();
    for seat in &seating.seats {
        let Seat::Slice { instance, compute } = *seat else { continue };
        let device = cut.and_then(|c| c.instances.get(instance)).and_then(|i| i.devices.get(compute));
        let Some(device) = device else { continue };
        if all.iter().all(|(uuid, _, _)| *uuid != device.uuid) {
            all.push((device.uuid.clone(), device.gpu_instance, device.compute_instance));
        }
    }
    all
}

/// An empty folder of ours: a member that looks there for an MPS daemon finds none.
pub(super) fn empty_folder() -> Result<PathBuf, StageError> {
    let folder = state_folder::make().map_err(|e| StageError::because(e.what()))?.join(mps::NO_DAEMON);
    fs_err::create_dir_all(&folder).map_err(|e| StageError::because(e.to_string()))?;
    match fs_err::read_dir(&folder).map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(folder),
        _ => Err(StageError::because(format!("{} is not empty, so members might find an MPS daemon in it", folder.display()))),
    }
}

/// One daemon for each device that members are on.
fn start_daemons(
    card: &mut StagedCard,
    daemons: &mut Vec<Daemon>,
    hold: &mut GpuLease,
    folder: &Path,
    limits: &Limits,
) -> Result<(), StageError> {
    needs_program()?;
    for (number, uuid) in orders::served(card).into_iter().enumerate() {
        let log = orders::log_folder(folder, card.mig, number);
        let daemon = Daemon::start(&uuid, &log, hold, limits)?;
        card.daemons.push(daemon.served().clone());
        daemons.push(daemon);
    }
    Ok(())
}

/// Without the program there is no daemon.
pub(super) fn needs_program() -> Result<(), StageError> {
    match mps::program() {
        Some(_) => Ok(()),
        None => Err(StageError::because(format!("`{}` is not on the PATH; it comes with the driver", MPS_PROGRAM))),
    }
}

impl StagedCard {
    /// The pipe folder of the daemon whose client a member has to be.
    pub(super) fn pipe_of(&self, member: usize) -> Option<&Path> {
        let daemon = self.devices[member].daemon.and_then(|at| self.daemons.get(at))?;
        Some(&daemon.control.pipe)
    }

    /// What to sample of it.
    pub fn board(&self, sources: SourceChoice) -> Board {
        let instance = |(uuid, gpu_instance, compute_instance): &(String, u32, u32)| BoardInstance {
            uuid: uuid.clone(),
            gpu_instance: *gpu_instance,
            compute_instance: Some(*compute_instance),
        };
        Board { uuid: self.uuid.clone(), instances: self.instances.iter().map(instance).collect(), sources }
    }
}
