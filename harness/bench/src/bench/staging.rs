//! The cost of changing the GPU's state: partitioning it in seven and restoring it, an MPS daemon's start and end. The GPU is
//! simulated: its driver answers immediately, so what is left is collo's own time, compared with the bare calls and a daemon
//! started by hand.

use collo_device::requested::on_gpus;
use collo_device::{gpu, mps, nvml, repartition};
use collo_plan::sharing::MPS_PROGRAM;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use collo_device::lease::{GpuLease, Who};
use collo_device::nvml::instances::Raw;
use collo_device::select_gpu::GpuSelector;
use collo_gpus::mig::Cards;
use collo_gpus::partition::Partition;
use collo_measure::stage::{Consent, Placing, SiteOrder, StagedSite};
use collo_plan::experiment::SourceChoice;
use collo_plan::facts::{Cores, DeviceFacts, Gpu};
use collo_plan::project::Project;
use collo_plan::sharing;
use collo_quantity::stats::median;
use collo_store::MemberSpec;
use serde::{Deserialize, Serialize};

use super::Effort;
use crate::figure::Figure;
use crate::scratch_project::ScratchProject;
use crate::simulated::{SimMachine, Task};

pub const PART: &str = "staging";
const MEMBERS: usize = 7;
const TIMES: usize = 40;

pub fn run(ground: &ScratchProject, effort: Effort) -> Result<Vec<Figure>> {
    let room = match SimMachine::new(ground, PART, "a100-40gb") {
        Ok(room) => room,
        Err(why) => return Ok(vec![Figure::absent("a GPU partitioned in seven", format!("{why:#}"))]),
    };
    Ok(figures(&room.ask(PART, effort.times(TIMES), &[])?))
}

/// Seconds of each repetition, for the change and the restore.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StagingTimes {
    /// The partition applied, and the one before.
    there: String,
    back: String,
    /// As in a campaign: the journal first.
    held: Both,
    /// The same without the journal.
    cut: Both,
    /// Only the calls that change the GPU.
    calls: Both,
    /// Reading the partition, in seven.
    look_s: Vec<f64>,
    /// A daemon, staged for seven members.
    daemon: Both,
    by_hand: Both,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Both {
    there_s: Vec<f64>,
    back_s: Vec<f64>,
}

fn figures(m: &StagingTimes) -> Vec<Figure> {
    let middle = |values: &[f64]| median(&mut values.to_vec());
    let ms = |values: &[f64]| middle(values).map_or("–".into(), |s| format!("{:.3} ms", s * 1e3));
    let figure = |name: String, ours: &[f64], peer: &'static str, theirs: &[f64], note: Option<String>| Figure {
        peer: middle(theirs).map(|s| (peer, s)),
        note,
        ..Figure::of_seconds(name, ours)
    };
    let parts = |cut: &[f64]| {
        format!(
            "median of {}; without the journal {}, one read of the GPU partitioned in seven {}",
            cut.len(),
            ms(cut),
            ms(&m.look_s)
        )
    };
    let calls = "the calls alone";
    let hand = "by hand";
    vec![
        figure(format!("{} → {}", m.back, m.there), &m.held.there_s, calls, &m.calls.there_s, Some(parts(&m.cut.there_s))),
        figure(format!("{} → {}", m.there, m.back), &m.held.back_s, calls, &m.calls.back_s, Some(parts(&m.cut.back_s))),
        figure(
            "MPS daemon, until its server serves".into(),
            &m.daemon.there_s,
            hand,
            &m.by_hand.there_s,
            Some("both wait until their server serves; staged, its place is noted first".into()),
        ),
        figure("MPS daemon, its end".into(), &m.daemon.back_s, hand, &m.by_hand.back_s, None),
    ]
}

/// In the simulated machine.
pub fn inside(job: &Task) -> Result<StagingTimes> {
    let checkout = Project::nearest(Path::new(env!("CARGO_MANIFEST_DIR")))?.context("this checkout is no project any more")?;
    let driver = gpu::ask(&Cards::load(&checkout.mig_profiles())?)?;
    let facts = on_gpus(GpuSelector::Auto.of(&driver)?, Some(&driver));
    let gpu = facts.gpu().context("there is no GPU")?;
    ensure!(gpu.simulated, "{} is a real GPU, and this needs a simulated one", gpu.label());
    let who = Who { experiment: "bench".into(), campaign: "bench".into() };
    let (mut hold, _) = GpuLease::take(gpu, &who, false)?;
    let seven = seating(&facts, "mig")?.partition.context("a GPU with MIG is partitioned")?;
    let found = hold.found().clone();
    let mut m = StagingTimes { there: seven.to_string(), back: found.to_string(), ..StagingTimes::default() };
    for time in 0..job.amount {
        // First one, then the other.
        for way in if time % 2 == 0 { [0, 1, 2] } else { [2, 1, 0] } {
            match way {
                0 => held(&mut hold, &seven, &mut m)?,
                1 => bare_cut(&mut hold, gpu, &seven, &found, &mut m)?,
                _ => calls(gpu, &seven, &mut m.calls)?,
            }
            let now = repartition::read(hold.uuid(), &gpu.label())?.partition;
            ensure!(now == found, "the GPU was not restored: it is {now}");
        }
        let stand = Stand { facts: &facts, gpu, folder: &job.folder };
        for way in [time % 2, 1 - time % 2] {
            match way {
                0 => staged(&stand, &mut hold, &mut m)?,
                _ => by_hand(&stand, &hold, &mut m)?,
            }
        }
    }
    Ok(m)
}

struct Stand<'a> {
    facts: &'a DeviceFacts,
    gpu: &'a Gpu,
    folder: &'a Path,
}

fn seating(facts: &DeviceFacts, mode: &str) -> Result<sharing::Seating> {
    let member = MemberSpec { workload: "small".into(), batch_size: None, settings: Default::default(), solo: "small".into() };
    sharing::parse(mode)?
        .seat(facts, &vec![member; MEMBERS], &sharing::Each::default())
        .map_err(|refusal| anyhow!(refusal.reason))
}

fn timed<T, E>(seconds: &mut Vec<f64>, work: impl FnOnce() -> std::result::Result<T, E>) -> std::result::Result<T, E> {
    let begin = Instant::now();
    let done = work()?;
    seconds.push(begin.elapsed().as_secs_f64());
    Ok(done)
}

fn held(hold: &mut GpuLease, seven: &Partition, m: &mut StagingTimes) -> Result<()> {
    timed(&mut m.held.there_s, || hold.apply(seven))?;
    let label = hold.uuid().to_string();
    timed(&mut m.look_s, || repartition::read(&label, "the GPU"))?;
    let restored = timed(&mut m.held.back_s, || hold.restore())?;
    ensure!(restored.destroyed == MEMBERS, "{} instances were destroyed, not {MEMBERS}", restored.destroyed);
    Ok(())
}

fn bare_cut(hold: &mut GpuLease, gpu: &Gpu, seven: &Partition, found: &Partition, m: &mut StagingTimes) -> Result<()> {
    let (uuid, label) = (hold.uuid().to_string(), gpu.label());
    timed(&mut m.cut.there_s, || repartition::apply(&uuid, &label, seven))?;
    timed(&mut m.cut.back_s, || repartition::apply(&uuid, &label, found))?;
    Ok(())
}

/// The indispensable calls: open the library, switch the mode, create seven instances of each kind; and undo it.
fn calls(gpu: &Gpu, seven: &Partition, both: &mut Both) -> Result<()> {
    let uuid = &gpu.at.as_ref().context("the GPU has a place")?.uuid;
    let profile = seven.instances.first().and_then(|s| gpu.card.as_ref()?.profile(&s.profile).ok()).context("a profile")?;
    let (id, units) = (profile.id.context("a number")?, profile.places.as_ref().context("places")?.units);
    let begin = Instant::now();
    let nvml = nvml::open()?;
    let device = nvml.device_by_uuid(uuid.as_str())?;
    device.set_mig_mode(true)?;
    // The card may have been reset: what stood for it before stands for nothing.
    let device = nvml.device_by_uuid(uuid.as_str())?;
    let raw = Raw::new(&nvml, &device);
    let mut made = Vec::new();
    for slice in &seven.instances {
        let start = slice.start.context("a place")?;
        let instance = raw.create_gpu_instance(id, start, units)?;
        // Number 0 is the size of one slice, in every version of the library.
        let inside = raw.create_compute_instance(&instance, 0)?;
        made.push((instance, inside));
    }
    both.there_s.push(begin.elapsed().as_secs_f64());
    let begin = Instant::now();
    for (instance, inside) in &made {
        raw.destroy_compute_instance(inside)?;
        raw.destroy_gpu_instance(instance)?;
    }
    device.set_mig_mode(false)?;
    drop(made);
    nvml.shutdown()?;
    both.back_s.push(begin.elapsed().as_secs_f64());
    Ok(())
}

fn staged(stand: &Stand<'_>, hold: &mut GpuLease, m: &mut StagingTimes) -> Result<()> {
    let seating = seating(stand.facts, "mps")?;
    let shares = stand.facts.shares(&Cores::Shared);
    let order = SiteOrder {
        folder: stand.folder,
        shares: &shares,
        consent: Consent::default(),
        sources: SourceChoice::default(),
        placing: Placing::Seats,
    };
    let mut leases = [(stand.gpu, &mut *hold)];
    let mut site = timed(&mut m.daemon.there_s, || StagedSite::stage(&mut leases, &seating, &order))?;
    let begin = Instant::now();
    let trouble = site.trouble(0);
    site.end(&mut leases);
    m.daemon.back_s.push(begin.elapsed().as_secs_f64());
    ensure!(trouble.is_none(), "{}", trouble.unwrap_or_default());
    // What is left is the journal, which a campaign keeps to its end.
    hold.restore()?;
    Ok(())
}

fn by_hand(stand: &Stand<'_>, hold: &GpuLease, m: &mut StagingTimes) -> Result<()> {
    // A Unix socket lies in it, so its path is short.
    let pipe = tempfile::Builder::new().prefix("collo-bench-").tempdir_in("/tmp")?;
    let control = mps::Control::at(pipe.path());
    let log = pipe.path().join(mps::LOG);
    let printed = fs_err::File::create(&log)?.into_parts().0;
    let begin = Instant::now();
    let mut daemon = Command::new(MPS_PROGRAM)
        .arg("-f")
        .env("CUDA_VISIBLE_DEVICES", hold.uuid())
        .env("CUDA_MPS_PIPE_DIRECTORY", pipe.path())
        .env("CUDA_MPS_LOG_DIRECTORY", stand.folder)
        .stdin(Stdio::null())
        .stdout(printed)
        .stderr(Stdio::null())
        .spawn()?;
    let serves = || fs_err::read_to_string(&log).is_ok_and(|text| mps::server_start(&text) == mps::ServerStart::Serving);
    let mut asked = false;
    while !serves() {
        if begin.elapsed() > Duration::from_secs(10) {
            daemon.kill()?;
            daemon.wait()?;
            return Err(anyhow!("the MPS daemon by hand did not serve"));
        }
        if !asked && control.is_ready() {
            control.start_server(nix::unistd::geteuid().as_raw())?;
            asked = true;
        } else {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    m.by_hand.there_s.push(begin.elapsed().as_secs_f64());
    let begin = Instant::now();
    control.end(Duration::from_secs(5))?;
    daemon.wait()?;
    m.by_hand.back_s.push(begin.elapsed().as_secs_f64());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_stands_beside_the_calls_that_it_is_made_of() {
        let both = |there: f64| Both { there_s: vec![there], back_s: vec![there / 2.0] };
        let m = StagingTimes {
            there: "7×1g.5gb".into(),
            back: "MIG off".into(),
            held: both(0.006),
            cut: both(0.004),
            calls: both(0.002),
            look_s: vec![0.001],
            ..StagingTimes::default()
        };
        let found = figures(&m);
        assert_eq!((found[0].name.as_str(), found[0].value), ("MIG off → 7×1g.5gb", Some(0.006)));
        assert_eq!(found[0].peer, Some(("the calls alone", 0.002)));
        assert_eq!(found[1].peer, Some(("the calls alone", 0.001)));
        assert!(found[0].note.as_deref().is_some_and(|n| n.contains("without the journal 4.000 ms")));
        assert_eq!((found[2].value, found[2].peer), (None, None), "a daemon that was not started has no time");
    }
}
