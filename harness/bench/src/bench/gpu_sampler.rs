//! The cost of sampling many GPUs: eight simulated ones, each in seven instances, NVML at 10 Hz and GPM at 5 Hz.

use collo_device::requested::on_gpus;
use collo_device::{gpu, repartition};
use collo_plan::experiment::{MetricSource, SourceChoice};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use collo_gpus::mig::Cards;
use collo_plan::facts::DeviceFacts;
use collo_plan::project::Project;
use collo_prepare::machine;
use collo_sample::{Board, BoardInstance, Rates, Sampling, Sites};
use collo_store::{Campaign, PlanRecord, Runs, SCHEMA, SamplingQuality, Thresholds, member_of_scope, read_samples, utc_now};
use serde::{Deserialize, Serialize};

use super::Effort;
use crate::figure::{Figure, Statistic, Unit};
use crate::scratch_project::ScratchProject;
use crate::simulated::{SimMachine, Task};

pub const PART: &str = "gpu-sampler";
/// The variable that passes the training program and its place to a part.
const TRAINS: &str = "COLLO_BENCH_TRAINS";
const CARDS: usize = 8;
const SECONDS: usize = 30;
const MOST: f64 = 0.02;
/// The threads that sample GPUs, by name.
const THREADS: [(&str, f64); 3] = [("nvml", 10.0), ("gpm", 5.0), ("nvml-slow", 1.0)];

pub fn run(ground: &ScratchProject, effort: Effort) -> Result<Vec<Figure>> {
    let room = match SimMachine::new(ground, PART, &format!("h100-80gb,gpus={CARDS},mig=sevenths")) {
        Ok(room) => room,
        Err(why) => return Ok(vec![Figure::absent("GPU sampling threads", format!("{why:#}"))]),
    };
    let folder = ground.path().join("workloads/vision");
    let seconds = if effort.smoke { 2 } else { SECONDS };
    // Nobody's training is to end while it is sampled.
    let more = [(TRAINS, folder.to_str().context("a path of text")?), ("COLLO_SIM_EPOCH_S", "1000")];
    Ok(figures(&room.ask(PART, seconds, &more)?))
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SampledGpus {
    boards: usize,
    instances: usize,
    /// Numeric readings, by sampling thread.
    readings: BTreeMap<String, u64>,
    quality: Vec<SamplingQuality>,
}

impl SampledGpus {
    fn thread(&self, name: &str) -> Option<&SamplingQuality> {
        self.quality.iter().find(|q| q.source == name)
    }
}

fn figures(m: &SampledGpus) -> Vec<Figure> {
    let costs: Option<Vec<f64>> = THREADS.iter().map(|(name, _)| m.thread(name)?.cpu_ratio).collect();
    let each = m.instances.checked_div(m.boards).unwrap_or_default();
    let mut all = vec![Figure {
        name: format!("GPU sampling threads, {} GPUs × {each}", m.boards),
        unit: Unit::Share,
        value: costs.map(|c| c.iter().sum()),
        count: m.thread(THREADS[0].0).map_or(0, |q| q.ticks as usize),
        limit: Some((MOST, Statistic::Value)),
        note: Some("all three, including the simulated library's work in them".into()),
        ..Figure::default()
    }];
    all.extend(THREADS.iter().map(|(name, asked_hz)| match m.thread(name) {
        Some(q) => thread(q, m.readings.get(*name).copied()),
        None => Figure::absent(format!("{name}, {asked_hz} Hz"), "there was no such thread"),
    }));
    all
}

fn thread(q: &SamplingQuality, readings: Option<u64>) -> Figure {
    let each = readings.filter(|_| q.ticks > 0).map(|n| n as f64 / q.ticks as f64);
    let ms = |s: Option<f64>| s.map_or("–".into(), |s| format!("{:.1} ms", s * 1e3));
    let tick = q.cpu_ratio.zip(q.achieved_hz).map(|(ratio, hz)| ratio / hz);
    Figure {
        name: format!("{}, {:.0} Hz", q.source, q.asked_hz),
        unit: Unit::Share,
        value: q.cpu_ratio,
        count: q.ticks as usize,
        note: Some(format!(
            "{} Hz achieved; {} values and {} of a core each tick; longest gap {}, {} of {} ticks missed; {} metrics absent",
            q.achieved_hz.map_or("–".into(), |hz| format!("{hz:.2}")),
            each.map_or("–".into(), |n| format!("{n:.0}")),
            tick.map_or("–".into(), |s| format!("{:.3} ms", s * 1e3)),
            ms(q.longest_gap_s),
            q.missed,
            q.ticks + q.missed,
            q.absent.len()
        )),
        ..Figure::default()
    }
}

/// In the simulated machine.
pub fn inside(job: &Task) -> Result<SampledGpus> {
    let checkout = Project::nearest(Path::new(env!("CARGO_MANIFEST_DIR")))?.context("this checkout is no project any more")?;
    let driver = gpu::ask(&Cards::load(&checkout.mig_profiles())?)?;
    let facts = on_gpus(driver.gpus.clone(), Some(&driver));
    ensure!(facts.gpus.iter().all(|g| g.simulated), "there is a real GPU, and these must be simulated");
    let boards: Vec<Board> = facts.gpus.iter().map(board).collect::<Result<_>>()?;
    let instances = boards.iter().map(|b| b.instances.len()).sum();
    ensure!(
        boards.len() == CARDS && instances == 7 * CARDS,
        "{} GPUs and {instances} instances are not as requested",
        boards.len()
    );
    // One trains on each card, so that there is something to read; more of them would want the cores that are measured.
    let mut members = Members::start(&boards)?;
    std::thread::sleep(Duration::from_secs(1));
    let campaign = Runs::at(job.folder.join("runs")).create(campaign(&checkout, &facts))?;
    let draft = campaign.begin("run")?;
    let rates = Rates { fast_hz: 10.0, slow_hz: 1.0, pss_every: Duration::from_secs(3600) };
    let sites = Sites { boards: &boards, ..Sites::default() };
    let sampling = Sampling::start(&[std::process::id()], Some(rates), draft.samples()?, sites)?;
    std::thread::sleep(Duration::from_secs(job.amount as u64));
    let lost = sampling.lost();
    let quality = sampling.stop()?;
    ensure!(lost.is_none(), "{}", lost.unwrap_or_default());
    ensure!(members.all_live()?, "a member ended while it was sampled");
    let mut readings = BTreeMap::new();
    let file = draft.path().join("samples.parquet");
    for (name, _) in THREADS {
        // The slow thread's samples name NVML too; it alone says what members hold.
        let of_members = name == "nvml-slow";
        let source = name.trim_end_matches("-slow");
        let found = read_samples(&file, |s, scope, _| s == source && member_of_scope(scope).is_some() == of_members)?;
        let numbers = found.values().flatten().filter(|(_, _, value)| value.is_some()).count();
        readings.insert(name.to_string(), numbers as u64);
    }
    let active = read_samples(&file, |s, scope, metric| (s, metric) == ("gpm", "sm_active_ratio") && scope.starts_with("mig:"))?;
    let trained = active.values().filter(|read| read.iter().any(|(_, _, value)| value.is_some_and(|v| v > 0.0))).count();
    ensure!(trained == CARDS, "{trained} instances were seen to train, not {CARDS}");
    Ok(SampledGpus { boards: boards.len(), instances, readings, quality })
}

/// A GPU as partitioned. DCGM is another process, which is not measured here.
fn board(gpu: &collo_plan::facts::Gpu) -> Result<Board> {
    let uuid = gpu.at.as_ref().context("the GPU has a place")?.uuid.clone();
    let devices = repartition::read(&uuid, &gpu.label())?.instances.into_iter().flat_map(|part| part.devices);
    let instances =
        devices.map(|d| BoardInstance { uuid: d.uuid, gpu_instance: d.gpu_instance, compute_instance: Some(d.compute_instance) });
    Ok(Board {
        uuid,
        instances: instances.collect(),
        sources: SourceChoice { sm: Some(MetricSource::Gpm), ..SourceChoice::default() },
    })
}

/// The processes that train meanwhile; killed on drop.
struct Members(Vec<Child>);

impl Members {
    fn start(boards: &[Board]) -> Result<Members> {
        let folder = std::env::var_os(TRAINS).context("no training folder")?;
        let program = std::env::var_os("COLLO_PYTHON").context("no training program")?;
        let mut members = Members(Vec::new());
        for board in boards {
            let instance = board.instances.first().context("an instance")?;
            let mut command = Command::new(&program);
            command.args(["train.py", "--model=resnet26", "--dataset=cifar10", "--batch-size=128"]).current_dir(&folder);
            command.env("CUDA_VISIBLE_DEVICES", &instance.uuid).stdin(Stdio::null()).stdout(Stdio::null());
            members.0.push(command.spawn()?);
        }
        Ok(members)
    }

    fn all_live(&mut self) -> Result<bool> {
        let ended: Vec<_> = self.0.iter_mut().map(Child::try_wait).collect::<std::io::Result<_>>()?;
        Ok(ended.iter().all(Option::is_none))
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        for member in &mut self.0 {
            let _ = member.kill();
            let _ = member.wait();
        }
    }
}

/// An empty campaign, for its folder: samples are written as those of a run are.
fn campaign(checkout: &Project, facts: &DeviceFacts) -> Campaign {
    let cores = facts.cores.len() as u32;
    Campaign {
        schema: SCHEMA,
        id: "bench".into(),
        experiment: "bench".into(),
        description: None,
        tags: Vec::new(),
        created_utc: utc_now(),
        source_toml: String::new(),
        thresholds: Thresholds::default(),
        references: Vec::new(),
        until: None,
        plan: PlanRecord { seed: 0, epochs: 1, measure_for_s: None, cells: Vec::new(), order: Vec::new(), refusals: Vec::new() },
        predicted: None,
        device: facts.record(),
        machine: machine::describe(Some(checkout.root()), cores, 0, BTreeMap::new()),
        ingredients: BTreeMap::new(),
        indicative: Vec::new(),
        shard: None,
        origins: Vec::new(),
        surroundings: None,
        filing: Default::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Verdict;
    use crate::load::Load;

    fn quality(source: &str, cpu_ratio: Option<f64>) -> SamplingQuality {
        let text = format!(r#"{{"source": "{source}", "asked_hz": 10.0, "ticks": 300, "missed": 2, "moved_ratio": {{}}}}"#);
        SamplingQuality { cpu_ratio, achieved_hz: Some(9.9), ..serde_json::from_str(&text).expect("a quality") }
    }

    #[test]
    fn the_limit_is_asked_of_all_threads_together_and_one_that_is_missing_leaves_no_sum() {
        let readings = BTreeMap::from([("nvml".to_string(), 600)]);
        let mut m = SampledGpus { boards: 8, instances: 56, readings, quality: Vec::new() };
        m.quality = vec![quality("nvml", Some(0.008)), quality("gpm", Some(0.009)), quality("nvml-slow", Some(0.001))];
        let found = figures(&m);
        assert!((found[0].value.expect("a sum") - 0.018).abs() < 1e-12);
        assert_eq!(found[0].name, "GPU sampling threads, 8 GPUs × 7");
        let note = found[1].note.as_deref().expect("a note");
        assert!(note.starts_with("9.90 Hz achieved; 2 values") && note.contains("2 of 302 ticks missed"), "{note}");
        m.quality.pop();
        let found = figures(&m);
        let idle = Load { average: 0.0, others_cores: 0.0 };
        assert_eq!(found[0].verdict(&idle), Verdict::NotComparable("not measured".into()));
    }
}
