//! What a seating means for processes: the MPS daemons to start, and the slot of each member. Pure; staging executes it, and a plan
//! shows it with placeholders for what is only known then.

use collo_plan::sharing::{Limits, MPS_PROGRAM, Seat, Seating};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::daemon::MpsDaemon;
use super::site::Placing;
use super::staging::{StagedCard, Visible};
use collo_device::mps::{self, Control};
use collo_device::state_folder;
use collo_launch::ServiceOrders;
use collo_launch::environment::scrubbed;
use collo_plan::facts::{CardShare, Cores, DeviceKind, Gpu};
use collo_prepare::slot::Slot;

/// The devices that need a daemon, UUIDs with commas between them: one for each that members are on, or one for all cards.
pub fn served<'c>(cards: impl Iterator<Item = &'c StagedCard>, placing: Placing) -> Vec<String> {
    let uuids: Vec<String> = cards.flat_map(|card| &card.devices).map(|device| device.uuid.clone()).collect();
    match placing {
        Placing::Seats => {
            uuids.iter().enumerate().filter(|(n, uuid)| !uuids[..*n].contains(uuid)).map(|(_, own)| own.clone()).collect()
        }
        Placing::Cards { several: true, .. } => vec![uuids.join(",")],
        Placing::Cards { several: false, .. } => uuids,
    }
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

/// What staging will start, as far as it is known before.
pub struct ForeseenStage {
    pub daemons: Vec<ServiceOrders>,
    pub slots: Vec<Slot>,
}

/// The daemons and slots of a seating before anything is staged. UUIDs of MIG devices and pipe folders are placeholders in `<>`. Members
/// that come and go have one slot: on which cards each is, the policy decides.
pub fn foreseen(CardShare { facts, cores }: &CardShare, seating: &Seating, placing: Placing, run: &Path) -> ForeseenStage {
    let seated = placing == Placing::Seats;
    let members = if seated { seating.seats.len() } else { 1 };
    if facts.kind == DeviceKind::Cpu {
        let slots = (0..members).map(|member| Slot::on_cpu(member, members, cores, &facts.cores)).collect();
        return ForeseenStage { daemons: Vec::new(), slots };
    }
    let mig = seating.partition.as_ref().is_some_and(|partition| partition.mig);
    let seat = |seat: &Seat| match *seat {
        Seat::Whole => facts.gpu().and_then(|gpu| gpu.at.as_ref()).map_or("<UUID of the GPU>".into(), |at| at.uuid.clone()),
        Seat::Slice { instance, compute } => {
            let slice = seating.partition.as_ref().and_then(|partition| partition.instances.get(instance));
            let name = slice.map(|slice| slice.to_string()).unwrap_or_default();
            match slice.is_some_and(|slice| slice.is_whole()) {
                true => format!("<UUID of {name}>"),
                false => format!("<UUID of compute instance {compute} in {name}>"),
            }
        }
    };
    let gpu = |gpu: &Gpu| match (mig, &gpu.at) {
        (true, _) => format!("<UUIDs of the instances of {}>", gpu.label()),
        (false, Some(at)) => at.uuid.clone(),
        (false, None) => format!("<UUID of {}>", gpu.label()),
    };
    let uuids: Vec<String> = match seated {
        true => seating.seats.iter().map(seat).collect(),
        false => facts.gpus.iter().map(gpu).collect(),
    };
    let device = |uuid| Visible { uuid, sms: None, gpu_instance: None, compute_instance: None, daemon: None, percent: None };
    let mut card = StagedCard {
        label: String::new(),
        uuid: String::new(),
        sms: None,
        mig,
        devices: uuids.into_iter().map(device).collect(),
        daemons: Vec::new(),
        empty: state_folder::state_folder().join(mps::NO_DAEMON),
        foreign: false,
        thread_limit_percent: None,
        memory_limit_bytes: None,
        own_memory_limits: false,
    };
    let told = seating.common_limits().unwrap_or_default();
    let mut daemons = Vec::new();
    if seating.daemons {
        for (number, uuids) in served(std::iter::once(&card), placing).into_iter().enumerate() {
            let several = mig || !seated;
            let log = log_folder(run, several, number);
            let pipe = PathBuf::from(if several { format!("<pipe folder {number}>") } else { "<pipe folder>".into() });
            daemons.push(daemon(&uuids, &pipe, &log, &told));
            card.serve(&uuids, MpsDaemon { control: Control::at(&pipe), log, devices: devices(&uuids) });
        }
    }
    if seated {
        let near = facts.gpu().and_then(|gpu| gpu.near_cores());
        return ForeseenStage { daemons, slots: slots(&card, seating, cores, &facts.cores, near.as_deref()) };
    }
    let mut env = environment(&card, 0, None);
    env.insert("CUDA_VISIBLE_DEVICES".into(), Some("<UUIDs of its cards>".into()));
    let client_of = seating.daemons.then(|| PathBuf::from("<pipe folder of its cards>"));
    if let Some(pipe) = &client_of {
        env.insert("CUDA_MPS_PIPE_DIRECTORY".into(), Some(pipe.display().to_string()));
    }
    ForeseenStage { daemons, slots: vec![Slot { env, cores: None, client_of }] }
}
