//! What a seating means for processes: the MPS daemons to start, and the slot of each member. Pure; staging executes it, and a plan
//! shows it with placeholders for what is only known then.

use collo_plan::sharing::MPS_PROGRAM;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::daemon::MpsDaemon;
use crate::stage::staging::{StagedCard, Visible};
use collo_device::mps::{self, Control};
use collo_device::state_folder;
use collo_launch::ServiceOrders;
use collo_launch::environment::scrubbed;
use collo_plan::facts::{Cores, DeviceFacts, DeviceKind, Gpu};
use collo_plan::sharing::{Limits, Seat, Seating};
use collo_prepare::slot::Slot;

/// The devices that need a daemon, UUIDs with commas between them: one for each that members are on, or one for all of them.
pub fn served<'c>(cards: impl Iterator<Item = &'c StagedCard>, together: bool) -> Vec<String> {
    let mut uuids: Vec<String> = Vec::new();
    for device in cards.flat_map(|card| &card.devices) {
        if !uuids.contains(&device.uuid) {
            uuids.push(device.uuid.clone());
        }
    }
    if together { vec![uuids.join(",")] } else { uuids }
}

/// The logs of a daemon, in the folder of a run.
pub fn log_folder(run: &Path, several: bool, number: usize) -> PathBuf {
    run.join(if several { format!("mps-{number}") } else { "mps".into() })
}

/// The number of devices in a list with commas.
pub(super) fn devices(uuids: &str) -> u32 {
    uuids.split(',').count() as u32
}

/// How an MPS daemon is started for devices, UUIDs with commas between them.
pub fn daemon(uuids: &str, pipe: &Path, log: &Path, limits: &Limits) -> ServiceOrders {
    let mut env: BTreeMap<String, Option<String>> = scrubbed();
    env.insert("CUDA_VISIBLE_DEVICES".into(), Some(uuids.into()));
    env.insert("CUDA_MPS_PIPE_DIRECTORY".into(), Some(pipe.display().to_string()));
    env.insert("CUDA_MPS_LOG_DIRECTORY".into(), Some(log.display().to_string()));
    env.extend(limits.environment(devices(uuids)).into_iter().map(|(name, value)| (name.into(), Some(value))));
    ServiceOrders {
        command: vec![MPS_PROGRAM.into(), "-f".into()],
        folder: "/".into(),
        env,
        log: log.join(mps::LOG),
        asked_to_end: Some(pipe.into()),
    }
}

/// The members' slots on a GPU.
pub fn slots(card: &StagedCard, seating: &Seating, cores: &Cores, all: &[u32], near: Option<&[u32]>) -> Vec<Slot> {
    let members = card.devices.len();
    let slot = |member| Slot {
        env: environment(card, member, seating.limits.get(member)),
        cores: cores.of(member, members, all, near),
        client_of: card.pipe_of(member).map(Path::to_path_buf),
    };
    (0..members).map(slot).collect()
}

pub(super) fn environment(card: &StagedCard, member: usize, limits: Option<&Limits>) -> BTreeMap<String, Option<String>> {
    let device = &card.devices[member];
    let pipe = card.pipe_of(member).unwrap_or(&card.empty);
    let mut env = BTreeMap::from([
        ("CUDA_DEVICE_ORDER".to_string(), Some("PCI_BUS_ID".to_string())),
        ("CUDA_VISIBLE_DEVICES".to_string(), Some(device.uuid.clone())),
        ("CUDA_MPS_PIPE_DIRECTORY".to_string(), Some(pipe.display().to_string())),
    ]);
    let limits = limits.map(|limits| limits.environment(1)).unwrap_or_default();
    env.extend(limits.into_iter().map(|(name, value)| (name.to_string(), Some(value))));
    env
}

/// What staging the cards of a trace will start. On which of them a task is, the policy decides: its one slot says so.
///
/// `across`: some task has several cards, so that one daemon serves all of them.
pub fn foreseen_site(facts: &DeviceFacts, seating: &Seating, run: &Path, across: bool) -> ForeseenStage {
    if facts.kind == DeviceKind::Cpu {
        let slot = Slot { env: Slot::on_cpu(0, 1, &Cores::Shared, &[]).env, cores: None, client_of: None };
        return ForeseenStage { daemons: Vec::new(), slots: vec![slot] };
    }
    let mig = seating.partition.as_ref().is_some_and(|partition| partition.mig);
    let uuid = |gpu: &Gpu| match (mig, &gpu.at) {
        (true, _) => format!("<UUIDs of the instances of {}>", gpu.label()),
        (false, Some(at)) => at.uuid.clone(),
        (false, None) => format!("<UUID of {}>", gpu.label()),
    };
    let uuids: Vec<String> = facts.gpus.iter().map(uuid).collect();
    let told = seating.common_limits().unwrap_or_default();
    let served = if across { vec![uuids.join(",")] } else { uuids };
    let of = |(number, uuid): (usize, &String)| {
        daemon(uuid, Path::new(&format!("<pipe folder {number}>")), &log_folder(run, true, number), &told)
    };
    let daemons = if seating.daemons { served.iter().enumerate().map(of).collect() } else { Vec::new() };
    let pipe = match seating.daemons {
        true => PathBuf::from("<pipe folder of its cards>"),
        false => state_folder::state_folder().join(mps::NO_DAEMON),
    };
    let env = BTreeMap::from([
        ("CUDA_DEVICE_ORDER".to_string(), Some("PCI_BUS_ID".to_string())),
        ("CUDA_VISIBLE_DEVICES".to_string(), Some("<UUIDs of its cards>".to_string())),
        ("CUDA_MPS_PIPE_DIRECTORY".to_string(), Some(pipe.display().to_string())),
    ]);
    ForeseenStage { daemons, slots: vec![Slot { env, cores: None, client_of: seating.daemons.then_some(pipe) }] }
}

/// What staging will start, as far as it is known before.
pub struct ForeseenStage {
    pub daemons: Vec<ServiceOrders>,
    pub slots: Vec<Slot>,
}

/// The daemons and slots of a seating before anything is staged. UUIDs of MIG devices and pipe folders are placeholders in `<>`.
pub fn foreseen(facts: &DeviceFacts, seating: &Seating, cores: &Cores, run: &Path) -> ForeseenStage {
    let members = seating.seats.len();
    if facts.kind == DeviceKind::Cpu {
        let slots = (0..members).map(|member| Slot::on_cpu(member, members, cores, &facts.cores)).collect();
        return ForeseenStage { daemons: Vec::new(), slots };
    }
    let gpu = facts.gpu();
    let whole = gpu.and_then(|gpu| gpu.at.as_ref()).map_or("<UUID of the GPU>".into(), |at| at.uuid.clone());
    let visible = |seat: &Seat| {
        let uuid = match *seat {
            Seat::Whole => whole.clone(),
            Seat::Slice { instance, compute } => {
                let slice = seating.partition.as_ref().and_then(|partition| partition.instances.get(instance));
                let name = slice.map(|slice| slice.to_string()).unwrap_or_default();
                match slice.is_some_and(|slice| slice.is_whole()) {
                    true => format!("<UUID of {name}>"),
                    false => format!("<UUID of compute instance {compute} in {name}>"),
                }
            }
        };
        Visible { uuid, sms: None, gpu_instance: None, compute_instance: None, daemon: None, percent: None }
    };
    let told = seating.common_limits().unwrap_or_default();
    let mut card = StagedCard {
        label: gpu.map(|gpu| gpu.label()).unwrap_or_default(),
        uuid: whole.clone(),
        sms: None,
        mig: seating.partition.as_ref().is_some_and(|partition| partition.mig),
        devices: seating.seats.iter().map(visible).collect(),
        daemons: Vec::new(),
        empty: state_folder::state_folder().join(mps::NO_DAEMON),
        foreign: false,
        thread_limit_percent: None,
        memory_limit_bytes: None,
        own_memory_limits: false,
    };
    let mut daemons = Vec::new();
    if seating.daemons {
        for (number, uuid) in served(std::iter::once(&card), false).into_iter().enumerate() {
            let log = log_folder(run, card.mig, number);
            let pipe = PathBuf::from(if card.mig { format!("<pipe folder {number}>") } else { "<pipe folder>".into() });
            daemons.push(daemon(&uuid, &pipe, &log, &told));
            card.serve(&uuid, MpsDaemon { control: Control::at(&pipe), log, devices: devices(&uuid) });
        }
    }
    let near = gpu.and_then(|gpu| gpu.near_cores());
    ForeseenStage { daemons, slots: slots(&card, seating, cores, &facts.cores, near.as_deref()) }
}
