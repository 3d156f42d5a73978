//! Campaigns that have between them what a report makes numbers of.

use std::path::Path;

use collo_store::{AfterMeasured, CampaignFolder, Outcome, Runs};

use crate::support::card::CardTruth;
use crate::support::predictions::card;
use crate::support::serving::Serves;
use crate::support::traces::{PolicyTruth, TraceTruth};
use crate::support::{Fixture, predictions, study, threads};

type Make = fn(&Path) -> CampaignFolder;

pub const ALL: [(&str, Make); 19] = [
    ("quickstart", quickstart),
    ("once", once),
    ("drifting", drifting),
    ("mixed", mixed),
    ("study", study_of_a_card),
    ("card", counters),
    ("steps", steps),
    ("slices", slices),
    ("apart", apart),
    ("odd", odd),
    ("odd-baseline", odd_baseline),
    ("odd-of-many", odd_of_many),
    ("processes", |folder| threads::beside_all_modes().write(folder)),
    ("cores", |folder| threads::on_cores().write(folder)),
    ("predicted", |folder| predictions::predicted().write(folder)),
    ("serving", serving),
    ("trace", trace),
    ("devices", devices),
    ("again", again),
];

/// One workload on two cores, with an energy counter and others on the machine.
pub fn quickstart(folder: &Path) -> CampaignFolder {
    let mut fixture = Fixture::quickstart();
    (fixture.power_w, fixture.pcie_rx_bytes_per_s, fixture.extra_metrics) = (Some(30.0), Some(2e8), 5);
    fixture.write(folder)
}

/// Nothing has an interval.
fn once(folder: &Path) -> CampaignFolder {
    Fixture::quickstart().repetitions(1).write(folder)
}

/// A slow block, epochs that grow, closing baselines that are slower, and an end before the last runs.
fn drifting(folder: &Path) -> CampaignFolder {
    let mut fixture = Fixture::quickstart().group("tiny", 32, 4, "naive", 3.3).repetitions(5).seed(7);
    (fixture.epochs, fixture.growth, fixture.drift, fixture.jitter) = (4, 1.02, 1.03, 0.02);
    (fixture.slow_block, fixture.stop_after) = (Some((2, 1.3)), 22);
    fixture.write(folder)
}

/// Different members that exit or train on, equal ones that exit, and a group that crashed.
fn mixed(folder: &Path) -> CampaignFolder {
    let mut fixture = Fixture::named("mixed").repetitions(3).solo("tiny", 32, 1.5).solo("wide", 32, 1.8).solo("deep", 32, 2.9);
    fixture = fixture.mixed(("tiny", 2.4), ("wide", 2.45), "naive", "exit").mixed(("tiny", 2.2), ("deep", 4.1), "naive", "exit");
    fixture = fixture.mixed(("wide", 3.0), ("deep", 4.3), "naive", "keep-running").group("tiny", 32, 2, "naive", 1.9);
    fixture.cells.last_mut().unwrap().record.after_measured = AfterMeasured::parse("exit").unwrap();
    fixture.more_when_done_gib = 2.0;
    let crashed = Outcome::Crashed { member: 1, status: "exited with 1".into(), message: "in epoch 1".into(), place_alone: true };
    fixture.group("wide", 32, 3, "naive", 4.0).ends(crashed).write(folder)
}

/// Ten workloads in every mode on a card with GPU instances: variances are moderated.
fn study_of_a_card(folder: &Path) -> CampaignFolder {
    study::campaign("a100-40gb", 3, 3).0.write(folder)
}

/// An energy counter that is read more often than it moves.
fn steps(folder: &Path) -> CampaignFolder {
    let mut fixture = on("NVIDIA A100-SXM4-40GB", "steps").on_card("solo", &[("small", 1.5)], card(), 0.003);
    fixture = fixture.on_card("naive", &[("small", 2.0); 2], CardTruth { power_w: 260.0, ..card() }, 0.003);
    fixture.samples_hz = 40.0;
    fixture.write(folder)
}

/// Two of a workload on halves of a card, each alone on such a half; the second block has lost its baselines.
fn slices(folder: &Path) -> CampaignFolder {
    let mut fixture = on("NVIDIA A100-SXM4-40GB", "slices").on_card("solo", &[("small", 2.0)], card(), 0.01);
    fixture = fixture.on_card("mig:3g.20gb", &[("small", 3.0)], card(), 0.01);
    let label = fixture.cells.last().unwrap().record.cell.clone();
    fixture = fixture.on_card("mig", &[("small", 3.1); 2], card(), 0.01);
    fixture.cells.last_mut().unwrap().record.alone_on_slice = vec![label; 2];
    fixture = fixture.on_card("mps", &[("small", 2.7); 2], card(), 0.01).repetitions(4);
    let campaign = fixture.write(folder);
    let plan = campaign.manifest().plan.clone();
    for run in plan.order.iter().filter(|run| run.block == 2 && plan.cells[run.cell].baseline) {
        fs_err::remove_dir_all(campaign.path().join(plan.folder(run))).unwrap();
    }
    campaign
}

/// Two workloads on instances, in blocks of their own between those with baselines, on a machine that becomes slower, with a far run.
fn apart(folder: &Path) -> CampaignFolder {
    let mut fixture = on("NVIDIA A100-SXM4-40GB", "apart").on_card("solo", &[("small", 1.0)], card(), 0.004);
    fixture = fixture.on_card("solo", &[("large", 2.0)], card(), 0.004).on_card("mps", &[("small", 1.3); 2], card(), 0.004);
    fixture = fixture.on_card("mig:3g.20gb", &[("small", 1.25); 2], card(), 0.004);
    fixture = fixture.on_card("mig:3g.20gb", &[("small", 1.3), ("large", 2.4)], card(), 0.004).repetitions(3).seed(11);
    (fixture.ramp, fixture.instances_apart) = (0.03, true);
    fixture.odd_run = Some(("small×2 mps b32", 2, 1.3));
    fixture.write(folder)
}

/// A run of a group that is far from the others.
fn odd(folder: &Path) -> CampaignFolder {
    let mut fixture = Fixture::quickstart();
    fixture.odd_run = Some(("tiny×2 naive b32", 2, 1.31));
    fixture.write(folder)
}

/// A run of a baseline, which all groups are compared with.
fn odd_baseline(folder: &Path) -> CampaignFolder {
    let mut fixture = Fixture::quickstart().repetitions(4);
    (fixture.odd_run, fixture.power_w) = (Some(("tiny solo b32", 1, 1.31)), Some(30.0));
    fixture.write(folder)
}

/// A far run among so many cells that variances are moderated.
fn odd_of_many(folder: &Path) -> CampaignFolder {
    let mut fixture = Fixture::named("odd").seed(13);
    for (name, alone_s) in [("tiny", 1.0), ("wide", 1.4), ("deep", 2.0), ("long", 2.5), ("flat", 3.0)] {
        fixture = fixture.solo(name, 32, alone_s).group(name, 32, 2, "naive", 1.4 * alone_s);
        fixture = fixture.group(name, 32, 3, "mps", 1.9 * alone_s);
    }
    fixture.odd_run = Some(("deep×2 naive b32", 3, 1.2));
    fixture.write(folder)
}

fn on(device: &str, name: &str) -> Fixture {
    let mut fixture = Fixture::named(name);
    fixture.device.name = device.into();
    fixture.device.kind = "gpu".into();
    fixture.device.memory_bytes = Some(80 << 30);
    fixture.device.cores = None;
    fixture.device.persistence = Some(true);
    fixture
}

/// Two sources of SM activity, PCIe, a counter that resets, other metrics, a group that holds nothing readable.
fn counters(folder: &Path) -> CampaignFolder {
    let truth = |sm_active_ratio, power_w| CardTruth {
        sm_active_ratio,
        power_w,
        sources: vec![("gpm", 1.0), ("dcgm", 1.1)],
        pcie_rx_bytes_per_s: Some(3e9),
        ..card()
    };
    let mut fixture = on("NVIDIA H100 80GB HBM3", "card").seed(5).repetitions(4);
    fixture = fixture.on_card("solo", &[("small", 3.0)], truth(0.4, 180.0), 0.01);
    fixture.cells.last_mut().unwrap().shares = vec![("dram_active_ratio", 0.3), ("sm_occupancy_ratio", 0.2)];
    fixture = fixture.on_card("naive", &[("small", 5.0); 2], truth(0.5, 200.0), 0.01);
    let resets = CardTruth { counter_resets: true, ..truth(0.7, 260.0) };
    fixture = fixture.on_card("mps", &[("small", 4.0); 2], resets, 0.01);
    fixture = fixture.on_card("mps", &[("small", 5.5); 3], truth(0.9, 300.0), 0.02).holding(f64::NAN);
    fixture.write(folder)
}

/// A server alone and beside a trainer, with enough requests and with too few for a p99; some are never answered.
fn serving(folder: &Path) -> CampaignFolder {
    let usual = Serves::usual();
    let mut fixture = Fixture::named("serving").solo("tiny", 32, 8.0).serves("serve", &usual);
    fixture = fixture.beside(&[("serve", usual.clone().left(110.0))], &[("tiny", 10.0)], "mps");
    let dropping = Serves { dropped_ratio: 0.004, ..usual.clone().left(75.0) };
    fixture = fixture.beside(&[("serve", dropping)], &[("tiny", 9.0)], "naive");
    let short = Serves { window_s: 4.0, ..usual };
    fixture.serves("brief", &short).beside(&[("brief", short.clone()), ("brief", short)], &[], "naive").write(folder)
}

/// Policies, one with attempts that ran out of memory.
fn trace(folder: &Path) -> CampaignFolder {
    let mut trace = TraceTruth::burst(4)
        .policy(PolicyTruth::of("magm", "none", "mps", 2, 0.75).out_of_memory(&[1, 0, 2, 1]))
        .policy(PolicyTruth::of("lug", "none", "mps", 1, 0.80));
    trace.spread = 0.02;
    let mut fixture = on("NVIDIA A100-SXM4-40GB", "manager").solo("tiny", 32, 1.6).solo("large", 32, 4.0).repetitions(2);
    fixture.trace = Some(trace);
    fixture.write(folder)
}

/// Two devices, one slower, merged.
fn devices(folder: &Path) -> CampaignFolder {
    let parts: Vec<(tempfile::TempDir, CampaignFolder)> = [(2, 1.0), (3, 1.5)]
        .into_iter()
        .map(|(degree, pace)| {
            let fixture = Fixture::named("shards").solo("tiny", 32, pace).group("tiny", 32, degree, "naive", 1.25 * pace);
            let aside = tempfile::tempdir().unwrap();
            let campaign = fixture.seed(u64::from(degree)).write(aside.path());
            (aside, campaign)
        })
        .collect();
    let parts: Vec<CampaignFolder> = parts.iter().map(|part| CampaignFolder::open(part.1.path()).unwrap()).collect();
    collo_store::merge(&Runs::at(folder), &parts, &[]).unwrap()
}

/// A run of a slow block that was measured again in a later sitting.
fn again(folder: &Path) -> CampaignFolder {
    let mut fixture = Fixture::quickstart().repetitions(4);
    (fixture.slow_block, fixture.odd_run) = (Some((2, 1.05)), Some(("tiny×2 naive b32", 2, 1.0 / 1.05)));
    let campaign = fixture.write(folder);
    crate::support::measure_again(&campaign, "tinyx2_naive_b32~0000-2");
    campaign
}
