//! The simulation's workloads and truths as campaigns: what a card does while a group trains on it, and what is true of each cell.

use collo_report::Report;
use collo_store::DeviceRecord;
use simgpu::card::Card;
use simgpu::truth::{Sharing, truth};
use simgpu::workload::Workload;

use super::Fixture;
use super::card::CardTruth;

/// Seconds of an epoch alone.
pub const EPOCH_S: f64 = 3.0;
/// What a context takes of a card's memory beside the allocator, MiB; more than any card's.
pub const CONTEXT_MIB: u64 = 600;

/// Small, medium and large ones, by the folder and the options that find them.
pub const WORKLOADS: [(&str, &str, &str); 10] = [
    ("small", "vision", "model=resnet26 dataset=cifar-10"),
    ("medium", "vision", "model=resnet50 dataset=imagenet64"),
    ("large", "vision", "model=resnet152 dataset=imagenet"),
    ("cait", "vision", "model=cait_xxs24_224"),
    ("effnet", "vision", "model=efficientnetv2_s dataset=imagenet64"),
    ("mobile", "vision", "model=mobilenetv2_100 dataset=imagenet"),
    ("vgg", "vision", "model=vgg16 dataset=imagenet"),
    ("bert", "language", ""),
    ("dlrm", "dlrm", ""),
    ("gpt", "gpt", ""),
];
pub const MIXES: [(&str, &str); 3] = [("small", "large"), ("medium", "dlrm"), ("bert", "mobile")];

/// What is true of a cell.
#[derive(Debug)]
pub struct Known {
    pub cell: String,
    pub mode: &'static str,
    /// Cells that are held against the same baselines.
    pub family: usize,
    pub gain: f64,
    pub energy_j_per_epoch: f64,
    pub sm_active_ratio: f64,
}

pub fn workload(name: &str) -> Workload {
    let (_, folder, options) = WORKLOADS.iter().find(|w| w.0 == name).unwrap();
    let option = |text: &str| text.split_once('=').map(|(name, value)| (name.to_string(), value.to_string()));
    Workload::find(folder, &options.split_whitespace().filter_map(option).collect()).unwrap()
}

/// The largest instance of which a card holds so many.
pub fn slice(card: &Card, degree: usize) -> &simgpu::card::Profile {
    let plain = |name: &str| !name.contains(['+', '-']);
    let profiles = card.mig.as_ref().unwrap().profiles.iter();
    profiles.filter(|p| plain(&p.name) && p.most as usize >= degree).max_by_key(|p| p.sms).unwrap()
}

/// A group on a card: how long its epochs take, what the card does, and what it gains; none where its memory does not fit.
pub fn group(card: &Card, members: &[&str], mode: &str) -> Option<(Vec<f64>, CardTruth, f64)> {
    let each: Vec<Workload> = members.iter().map(|m| workload(m)).collect();
    let profile = slice(card, members.len());
    let (sharing, sum, room) = match mode {
        "mps" => (Sharing::Mps(None), true, card.total_mib),
        "mig" => (Sharing::Mig(vec![profile.name.clone(); members.len()]), false, profile.memory_mib),
        _ => (Sharing::Naive, true, card.total_mib),
    };
    let footprints = each.iter().map(|w| w.memory_mib + CONTEXT_MIB);
    if (if sum { footprints.sum::<u64>() } else { footprints.max()? }) > room {
        return None;
    }
    let known = truth(card, &each, &sharing).unwrap();
    let share = f64::from(profile.sms) / f64::from(card.sms);
    let of_instance = |(w, pace): (&Workload, &f64)| {
        let load = w.on(card).load;
        pace * load.u * load.a / share
    };
    let truth = CardTruth {
        sm_active_ratio: known.sm_active_ratio,
        idle_w: card.extra.idle_w,
        power_w: known.power_w,
        instances: if mode == "mig" { each.iter().zip(&known.paces).map(of_instance).collect() } else { Vec::new() },
        sources: vec![(if card.has_gpm() { "gpm" } else { "dcgm" }, 1.0)],
        pcie_rx_bytes_per_s: None,
        counter_resets: false,
        counters_of_instances: false,
    };
    Some((known.paces.iter().map(|pace| EPOCH_S / pace).collect(), truth, known.gain))
}

pub fn on(card: &Card, name: &str) -> Fixture {
    let mut fixture = Fixture::named(name);
    fixture.device = DeviceRecord {
        name: card.name.clone(),
        kind: "gpu".into(),
        simulated: true,
        memory_bytes: Some(card.total_mib << 20),
        cores: None,
        quota_cores: None,
        persistence: Some(true),
    };
    // Baselines vary as much as anything: blocks are not thrown away for it.
    fixture.thresholds.baseline_drift_ratio = 1.0;
    fixture
}

/// All workloads in all ways on one card, each cell with noise of its own.
pub fn campaign(key: &str, seed: u64, repetitions: u32) -> (Fixture, Vec<Known>) {
    let card = Card::find(key).unwrap();
    let mut fixture = on(&card, "ground-truth").seed(seed).repetitions(repetitions);
    fixture.samples_hz = 5.0;
    let mut known = Vec::new();
    let mut add = |fixture: Fixture, members: &[&str], mode: &'static str, family| {
        let Some((epochs, truth, gain)) = group(&card, members, mode) else { return fixture };
        let paired: Vec<(&str, f64)> = members.iter().copied().zip(epochs.iter().copied()).collect();
        // From 1 to 8 %, as likely below 3 % as above. A card that is nearly full has no room to be much faster.
        let number = known.len() as f64 + seed as f64;
        let noise = 0.01 * 8f64.powf((number * 0.618034).fract());
        let room = -truth.sm_active_ratio.ln() / 2.5;
        let (sm_active_ratio, power_w) = (truth.sm_active_ratio, truth.power_w);
        let fixture = fixture.on_card(mode, &paired, truth, noise.min(room));
        known.push(Known {
            cell: fixture.cells.last().unwrap().record.cell.clone(),
            mode,
            family,
            gain,
            energy_j_per_epoch: power_w / epochs.iter().map(|e| 1.0 / e).sum::<f64>(),
            sm_active_ratio,
        });
        fixture
    };
    for (family, (name, _, _)) in WORKLOADS.iter().enumerate() {
        fixture = add(fixture, &[*name], "solo", family);
        for mode in ["naive", "mps", "mig"] {
            for degree in [1, 2, 3, 7].into_iter().filter(|d| mode != "naive" || *d > 1) {
                fixture = add(fixture, &vec![*name; degree], mode, family);
            }
        }
    }
    for (a, b) in MIXES {
        let family = WORKLOADS.iter().position(|w| w.0 == a).unwrap();
        for mode in ["naive", "mps", "mig"] {
            fixture = add(fixture, &[a, b], mode, family);
        }
    }
    (fixture, known)
}

pub fn analysed(fixture: &Fixture) -> Report {
    // Thousands of runs, each of them flushed: where there is a file system in memory, it is used.
    let memory = std::path::Path::new("/dev/shm");
    let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
    let campaign = fixture.write(folder.path());
    Report::of(&campaign).unwrap()
}
