//! What a process holds of a GPU outside its allocator, as stored runs on that GPU have shown: the context of CUDA with its modules.
//!
//! In: stored runs on the same GPU model, driver and kind of GPU. Out: the median of memory read by the driver less memory reserved by
//! the allocator, over members; apart for clients of MPS.

use collo_quantity::stats::median;
use collo_store::{
    COLLO_SAMPLES, CampaignFolder, DeviceRecord, Outcome, Runs, StoredRun, member_of_scope, observer_name, read_samples,
};

/// Campaigns on the GPU whose runs are read, the newest first.
const MOST_CAMPAIGNS: usize = 20;
/// Campaigns that are opened to find them: others may have been run since on a CPU or on another GPU.
const MOST_OPENED: usize = 400;
/// Runs that are read at most in each way of having a context.
const MOST_RUNS: usize = 12;

/// The contexts that were seen on a GPU.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Contexts {
    /// Of processes that have their own, by run.
    own: Vec<f64>,
    /// Of clients of MPS, by run.
    of_clients: Vec<f64>,
}

/// The context of a process, from some stored runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Context {
    pub bytes: u64,
    pub runs: usize,
}

impl Contexts {
    /// Of the newest stored runs on this device, with this driver.
    pub fn read(runs: &Runs, device: &DeviceRecord, driver: Option<&str>) -> Contexts {
        let mut contexts = Contexts::default();
        let is_here = |campaign: &CampaignFolder| {
            let manifest = campaign.manifest();
            manifest.device.is_of_model(device)
                && manifest.machine.driver.as_deref() == driver
                && campaign.expect_unchanged().is_ok()
        };
        let opened = runs.unread().into_iter().take(MOST_OPENED).filter_map(|campaign| campaign.open().ok());
        for campaign in opened.filter(is_here).take(MOST_CAMPAIGNS) {
            contexts.learn(&campaign);
            if contexts.own.len() >= MOST_RUNS && contexts.of_clients.len() >= MOST_RUNS {
                break;
            }
        }
        contexts
    }

    fn learn(&mut self, campaign: &CampaignFolder) {
        let plan = &campaign.manifest().plan;
        for planned in &plan.order {
            let mps = plan.cells[planned.cell].mode.mps;
            if self.list(mps).len() >= MOST_RUNS {
                continue;
            }
            let Ok(run) = StoredRun::open(&campaign.path().join(plan.folder(planned))) else { continue };
            if let Some(bytes) = Some(run).filter(|run| run.record.outcome == Outcome::Completed).and_then(|run| outside_of(&run))
            {
                self.list(mps).push(bytes);
            }
        }
    }

    fn list(&mut self, mps: bool) -> &mut Vec<f64> {
        if mps { &mut self.of_clients } else { &mut self.own }
    }

    /// For clients of MPS, or for processes with a context of their own.
    pub fn of(&self, mps: bool) -> Option<Context> {
        let list = if mps { &self.of_clients } else { &self.own };
        median(&mut list.clone()).map(|bytes| Context { bytes: bytes as u64, runs: list.len() })
    }
}

/// The median over the members of a run; absent where the driver reported no memory of theirs.
fn outside_of(run: &StoredRun) -> Option<f64> {
    let (go_ns, done_ns) = (run.record.timeline.go_ns?, run.record.timeline.done_ns?);
    if run.record.cell.observe.as_deref().is_some_and(|by| observer_name(by) != COLLO_SAMPLES) {
        // A profiler has buffers of its own on the card.
        return None;
    }
    let is_it = |scope: &str, metric: &str| metric == "gpu_memory_bytes" && member_of_scope(scope).is_some();
    let samples = read_samples(&run.path.join("samples.parquet"), |_, scope, metric| is_it(scope, metric)).ok()?;
    let mut outside = Vec::new();
    for (index, member) in run.record.members.iter().enumerate() {
        let native =
            run.record.cell.members.get(index).and_then(|m| m.settings.get("allocator")?.as_str().map(|a| a == "native"));
        let Some(reserved) = member.reserved_bytes.filter(|_| native != Some(false)) else { continue };
        // While it trained: the cache of the warm-up may be larger, and given back before the first reading.
        let read = samples.iter().filter(|((of, _), _)| member_of_scope(of) == Some(index)).flat_map(|(_, readings)| readings);
        let inside = read.filter(|(at, _, _)| (go_ns..=done_ns).contains(at)).filter_map(|(_, _, value)| *value);
        let largest = inside.fold(0.0, f64::max);
        if largest > reserved as f64 {
            outside.push(largest - reserved as f64);
        }
    }
    median(&mut outside)
}
