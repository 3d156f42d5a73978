//! Earlier runs of the members of a plan, from which it takes its forecast.
//!
//! In: the folder of stored runs, the device, the cells of a plan. Out: how long those cells, and their members alone, took here.
//! The newest campaigns are opened, and of the older ones those that have a run of a cell which no newer one has; only runs of the cells in
//! question are read. What cannot be read is passed over: a forecast never stops a plan. Runs on another GPU model, or on a simulated one in
//! place of a real one, never serve.
//!
//! To add a condition on the runs that serve: `Here::serves`.

use std::collections::BTreeSet;
use std::time::Duration;

use collo_quantity::stats::median;
use collo_store::{
    CellRecord, DeviceRecord, Outcome, RunRecord, Runs, StoredRun, UnreadCampaign, is_scope_of_a_part, member_of_scope,
    read_epochs, read_samples,
};

use crate::earlier::{Earlier, solo};
use crate::facts::cpu_model;
use crate::goal::EpochGoal;

/// So many of the newest campaigns are opened whatever their cells are: a plan may not have the cells of its members alone.
const NEWEST: usize = 40;
/// Runs that are read at most; of more cells than that, one of each.
const MOST_RUNS: usize = 300;
/// Runs of one cell that are read at most.
const OF_A_CELL: usize = 4;

/// The cells that were measured before, each as the newest campaign has it.
pub type PastRuns = Earlier<PastCell>;

/// One cell in one campaign.
#[derive(Debug, Clone, PartialEq)]
pub struct PastCell {
    epochs: u32,
    measure_for_s: Option<f64>,
    pub runs: Vec<PastRun>,
}

/// One completed run.
#[derive(Debug, Clone, PartialEq)]
pub struct PastRun {
    /// Its folder, by which it is counted once.
    pub folder: String,
    set_up_s: f64,
    /// From go to the end of the last measured epoch.
    measured_s: f64,
    end_s: f64,
    /// Mean power of the whole run, its set-up included; absent if its energy was not measured.
    power_w: Option<f64>,
    /// The GPU memory of a member alone, with what its allocator keeps and the CUDA context: the largest reading.
    footprint_bytes: Option<u64>,
    /// The median of the measured epochs of a member alone.
    alone_epoch_s: Option<f64>,
}

/// What a member alone takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AloneTime {
    pub set_up_s: f64,
    /// One epoch.
    pub epoch_s: f64,
}

impl AloneTime {
    /// So many epochs, set-up included.
    pub fn of_epochs_s(self, epochs: u32) -> f64 {
        self.set_up_s + f64::from(epochs) * self.epoch_s
    }
}

impl PastRuns {
    /// What is stored of these cells and of their members alone, on this device, of members with so many threads; `None`: with any.
    pub fn read<'a>(
        runs: &Runs,
        device: &DeviceRecord,
        threads: Option<u32>,
        cells: impl Iterator<Item = &'a CellRecord>,
    ) -> PastRuns {
        let campaigns = runs.unread();
        let (newest, older) = campaigns.split_at(campaigns.len().min(NEWEST));
        if newest.is_empty() {
            return PastRuns::default();
        }
        let wanted: Vec<&CellRecord> = cells.collect();
        let of_a_cell = runs_of_a_cell(wanted.len());
        let here = Here { device, threads, cpu_model: cpu_model(), of_a_cell };
        let mut past = PastRuns::default();
        // Not every run serves.
        let mut left = MOST_RUNS.max(2 * wanted.len());
        for campaign in newest {
            past.learn(campaign, &here, &wanted, &mut left);
        }
        let slugs_without = |past: &PastRuns| -> BTreeSet<&str> {
            wanted.iter().filter(|cell| past.of(cell).is_none()).map(|cell| cell.slug.as_str()).collect()
        };
        let mut missing = if older.is_empty() { BTreeSet::new() } else { slugs_without(&past) };
        for campaign in older {
            if missing.is_empty() || left == 0 {
                break;
            }
            if campaign.has_run_of(&missing) {
                past.learn(campaign, &here, &wanted, &mut left);
                missing = slugs_without(&past);
            }
        }
        past
    }

    /// The devices of the newest campaigns, each model once, the newest first.
    pub fn devices(runs: &Runs) -> Vec<DeviceRecord> {
        let mut devices: Vec<DeviceRecord> = Vec::new();
        for campaign in runs.newest(NEWEST) {
            let device = &campaign.manifest().device;
            if !devices.iter().any(|known| known.is_like(device)) {
                devices.push(device.clone());
            }
        }
        devices
    }

    /// Add the wanted cells of one campaign that no newer one had.
    fn learn(&mut self, campaign: &UnreadCampaign, here: &Here<'_>, wanted: &[&CellRecord], left: &mut usize) {
        if *left == 0 {
            return;
        }
        let Ok(campaign) = campaign.open() else { return };
        if !here.device.is_like(&campaign.manifest().device) || campaign.expect_unchanged().is_err() {
            return;
        }
        let plan = &campaign.manifest().plan;
        for (index, record) in plan.cells.iter().enumerate() {
            let alone = solo(record);
            let is_wanted = |cell: &&CellRecord| {
                cell.is_same(record) || alone.is_some_and(|alone| cell.members.iter().any(|member| member.is_same(alone)))
            };
            if self.of(record).is_some() || !wanted.iter().any(is_wanted) {
                continue;
            }
            let mut runs = Vec::new();
            for planned in plan.order.iter().filter(|run| run.cell == index) {
                if runs.len() == here.of_a_cell || *left == 0 {
                    break;
                }
                let path = campaign.path().join(plan.folder(planned));
                if !path.is_dir() {
                    continue;
                }
                *left -= 1;
                let same_cpu = campaign.manifest().machine_of(planned.block).cpu_model == here.cpu_model;
                let stored = StoredRun::open(&path).ok().filter(|run| here.serves(&run.record, same_cpu));
                // Samples are large, and the runs of a cell alike.
                let sampled = runs.is_empty();
                let is_it = |run: &StoredRun| run.record.cell.members == record.members;
                runs.extend(stored.filter(is_it).and_then(|run| PastRun::of(&run, sampled)));
            }
            if !runs.is_empty() {
                self.add(record.clone(), PastCell { epochs: plan.epochs, measure_for_s: plan.measure_for_s, runs });
            }
        }
    }
}

impl PastCell {
    /// The seconds of one run until this goal, for which `epochs_of` has the epochs of a member by their length; `None` if the stored runs
    /// do not tell the length of an epoch.
    pub fn each_s(&self, goal: EpochGoal, epochs_of: impl Fn(f64) -> f64) -> Option<f64> {
        let measure_for_s = (goal.measure_for_ns > 0).then(|| Duration::from_nanos(goal.measure_for_ns).as_secs_f64());
        let measured_s = match self.epochs == goal.epochs && self.measure_for_s == measure_for_s {
            true => self.mean(|run| run.measured_s),
            false => {
                let epoch_s = self.epoch_s()?;
                epoch_s * epochs_of(epoch_s)
            }
        };
        Some(self.mean(|run| run.set_up_s) + measured_s + self.mean(|run| run.end_s))
    }

    /// Before go.
    pub fn set_up_s(&self) -> f64 {
        self.mean(|run| run.set_up_s)
    }

    /// One epoch of its slowest member; unknown if the number of epochs was left to the clock.
    pub fn epoch_s(&self) -> Option<f64> {
        (self.measure_for_s.is_none() && self.epochs > 0).then(|| self.mean(|run| run.measured_s) / f64::from(self.epochs))
    }

    fn mean(&self, value: impl Fn(&PastRun) -> f64) -> f64 {
        self.runs.iter().map(value).sum::<f64>() / self.runs.len() as f64
    }

    /// The mean of the runs in which it was measured.
    pub fn power_w(&self) -> Option<f64> {
        let known: Vec<f64> = self.runs.iter().filter_map(|run| run.power_w).collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    }

    /// What its member takes alone: the means over its runs. An epoch is a measured one, without warm-up.
    pub fn alone_time(&self) -> Option<AloneTime> {
        let known: Vec<f64> = self.runs.iter().filter_map(|run| run.alone_epoch_s).collect();
        let epoch_s = (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)?;
        Some(AloneTime { set_up_s: self.set_up_s(), epoch_s })
    }

    /// The GPU memory of a member alone: the largest of its runs.
    pub fn footprint_bytes(&self) -> Option<u64> {
        self.runs.iter().filter_map(|run| run.footprint_bytes).max()
    }

    /// A whole run, from launch to end.
    pub fn whole_s(&self) -> Option<f64> {
        Some(self.mean(|run| run.set_up_s + run.measured_s + run.end_s))
    }

    /// The folders of its runs.
    pub fn folders(&self) -> BTreeSet<String> {
        self.runs.iter().map(|run| run.folder.clone()).collect()
    }
}

impl PastRun {
    fn of(run: &StoredRun, sampled: bool) -> Option<PastRun> {
        let t = &run.record.timeline;
        let (go_ns, done_ns) = (t.go_ns?, t.done_ns?);
        let seconds = |from: u64, to: u64| Some(to.checked_sub(from)? as f64 / 1e9);
        let on_gpu = run.record.device.kind == "gpu";
        let counter = if on_gpu { "energy_j" } else { "cpu_energy_j" };
        let wanted = |scope: &str, metric: &str| match metric {
            "gpu_memory_bytes" => member_of_scope(scope) == Some(0),
            // Of the whole device.
            _ => metric == counter && !is_scope_of_a_part(scope),
        };
        let samples = sampled.then(|| read_samples(&run.path.join("samples.parquet"), |_, scope, metric| wanted(scope, metric)));
        let samples = samples.and_then(Result::ok).unwrap_or_default();
        let of = |metric: &'static str| samples.iter().filter(move |((_, m), _)| m == metric).map(|(_, readings)| readings);
        // Without persistence mode the counter may begin anew between two readings.
        let is_counted = run.record.device.persistence != Some(false);
        let power_w =
            of(counter).filter(|_| is_counted).filter_map(|r| growth_per_s(r, t.launched_ns, t.ended_ns)).reduce(|a, b| a + b);
        let member = run.record.members.first().filter(|_| on_gpu && run.record.members.len() == 1);
        let read = of("gpu_memory_bytes").flatten().filter_map(|(_, _, value)| *value).fold(0.0, f64::max) as u64;
        let most = member.and_then(|m| {
            [m.reserved_bytes, m.warm_up_reserved_bytes, Some(read).filter(|b| *b > 0)].into_iter().flatten().max()
        });
        let alone_epoch_s = (run.record.members.len() == 1).then(|| median_epoch_s(run)).flatten();
        Some(PastRun {
            alone_epoch_s,
            folder: run.path.display().to_string(),
            set_up_s: seconds(t.launched_ns, go_ns)?,
            measured_s: seconds(go_ns, done_ns)?,
            end_s: seconds(done_ns, t.ended_ns)?,
            power_w,
            footprint_bytes: most,
        })
    }
}

/// The median of its measured epochs, as stretch is counted; absent if none was.
fn median_epoch_s(run: &StoredRun) -> Option<f64> {
    let epochs = read_epochs(&run.table("epochs.parquet")?).ok()?;
    let whole = epochs.iter().filter(|epoch| epoch.measured && epoch.end_ns > epoch.start_ns);
    let mut lengths_ns: Vec<f64> = whole.map(|epoch| (epoch.end_ns - epoch.start_ns) as f64).collect();
    median(&mut lengths_ns).map(|ns| ns / 1e9)
}

/// The growth of a counter between its first and its last reading in a window; absent if it has decreased.
fn growth_per_s(readings: &[(u64, u64, Option<f64>)], from_ns: u64, to_ns: u64) -> Option<f64> {
    let inside = readings.iter().filter(|(at, _, _)| (from_ns..=to_ns).contains(at));
    let values: Vec<(u64, f64)> = inside.filter_map(|(at, _, value)| Some((*at, (*value)?))).collect();
    let ((first_ns, first), (last_ns, last)) = (values.first()?, values.last()?);
    let rises = values.windows(2).all(|pair| pair[0].1 <= pair[1].1);
    (rises && last_ns > first_ns && last > first).then(|| (last - first) / ((last_ns - first_ns) as f64 / 1e9))
}

/// The device that a forecast is for.
struct Here<'a> {
    device: &'a DeviceRecord,
    threads: Option<u32>,
    cpu_model: Option<String>,
    of_a_cell: usize,
}

/// So many runs of each of so many cells are read, or the first of a large plan would leave none for the last.
fn runs_of_a_cell(cells: usize) -> usize {
    (MOST_RUNS / cells.max(1)).clamp(1, OF_A_CELL)
}

impl Here<'_> {
    fn serves(&self, run: &RunRecord, same_cpu: bool) -> bool {
        // A member that does not report its threads is a foreign script, or one that has no use for them.
        let threads = |hello: &serde_json::Value| {
            hello["threads"].as_u64().is_none_or(|n| self.threads.is_none_or(|own| n == u64::from(own)))
        };
        run.outcome == Outcome::Completed
            && self.device.is_like(&run.device)
            && (run.device.kind == "gpu" || same_cpu)
            && run.members.iter().all(|member| member.hello.as_ref().is_none_or(threads))
    }
}

#[cfg(test)]
#[path = "past_tests.rs"]
mod tests;
