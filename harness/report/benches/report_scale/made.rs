//! Campaigns of a given size, written through the store. In: samples and runs. Out: a campaign folder, and how large it became.

use std::path::Path;

use collo_store::CampaignFolder;

use crate::support::Fixture;

/// Epoch alone, and together with others: long enough that ten samples a second fill a run of the largest size.
const EPOCH_S: f64 = 60.0;
/// Repetitions of a group; a solo cell opens and closes each block.
const REPETITIONS: usize = 5;
const DEGREES: [u32; 6] = [2, 3, 4, 5, 6, 7];
/// What the fixture reads in one tick: of each member, of the host.
const OF_MEMBER: f64 = 12.0;
const OF_HOST: f64 = 3.0;

pub struct Made {
    pub folder: CampaignFolder,
    pub samples: u64,
    pub runs: u64,
    /// Of `samples.parquet` over all runs.
    pub bytes: u64,
}

/// Workloads alone and in groups of two to seven, as many as make so many runs.
pub fn campaign(root: &Path, samples: f64, runs: usize) -> Made {
    let per_workload = REPETITIONS * (2 + DEGREES.len());
    let workloads = (runs / per_workload).max(1);
    let mut fixture = Fixture::named("scale").repetitions(REPETITIONS as u32);
    fixture.extra_metrics = 8;
    for i in 0..workloads {
        let name = format!("net{i:03}");
        fixture = fixture.solo(&name, 32, EPOCH_S);
        for degree in DEGREES {
            fixture = fixture.group(&name, 32, degree, "naive", EPOCH_S);
        }
    }
    // A warm-up epoch takes a tenth longer.
    let run_s = EPOCH_S * (f64::from(fixture.epochs) + 0.1);
    let ticked = |n: f64| n * OF_MEMBER + OF_HOST;
    let groups: f64 = DEGREES.iter().map(|d| ticked(f64::from(*d))).sum();
    let per_tick = workloads as f64 * REPETITIONS as f64 * (groups + 2.0 * ticked(1.0));
    fixture.samples_hz = samples / (per_tick * run_s);
    let folder = fixture.write(root);
    let (stored, _) = folder.runs().expect("runs");
    let size = |path: &Path| path.metadata().map_or(0, |m| m.len());
    let bytes = stored.values().map(|r| size(&r.path.join("samples.parquet"))).sum();
    Made { samples: fixture.written.get(), runs: stored.len() as u64, bytes, folder }
}
