//! DCGM, through its command `dcgmi`: on Ampere the only profiler, later a second source.
//!
//! In: the metrics to read of each scope. Out: their samples. `dcgmi discovery -l` maps DCGM's entities to GPUs, `discovery -c`
//! to instances; one `dcgmi dmon` for each level of entities prints its values, and a thread reads each.

mod command;
mod discovery;
mod dmon;
mod entities;
mod inventory;
mod refusal;
pub mod replay;
mod stream;
mod version;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use collo_store::{Instrument, ReadCard};

use super::gpm::Missing;
use super::gpm_metrics::{Level, PCIE_TX, PROFILED, Profiled};
use super::handle::Opened;
use crate::account::{Account, SourceResult};
use crate::latest::Outlet;
use collo_device::services::DCGMI;
use command::DcgmCommand;
use entities::{Entities, FoundEntities};
use stream::Stream;
use version::Version;

/// DCGM updates its profiling values ten times a second and no faster.
pub const EVERY: Duration = Duration::from_millis(100);

const ANSWER: Duration = Duration::from_secs(10);

/// Wanted metrics of a GPU, by the GPU's number.
pub type WantedMetrics = (usize, Vec<Missing>);

/// Everything requested from DCGM for a GPU.
pub fn everything(opened: &Opened) -> Vec<Missing> {
    everywhere(opened).filter(|(_, p)| !is_by_turns(opened, p)).collect()
}

/// Everything that DCGM could report about a GPU.
fn everywhere(opened: &Opened) -> impl Iterator<Item = Missing> {
    let parts = opened.parts.iter().flat_map(|part| {
        let compute = part.compute_instances.iter().map(|(_, scope)| (scope, Level::ComputeInstance));
        std::iter::once((&part.scope, Level::GpuInstance)).chain(compute)
    });
    let scopes = std::iter::once((&opened.scope, Level::Gpu)).chain(parts);
    scopes.flat_map(|(scope, level)| PROFILED.iter().filter(move |p| p.exists_at(level)).map(|p| (scope.clone(), p)))
}

/// Whether DCGM would alternate between this metric and SM activity. From Hopper on it reads any metrics together, through GPM.
/// Before, the counters of the FP64 and the FP16 pipe do not fit into one pass with the others (DCGM user guide, "Concurrent
/// metrics"; DCGM #144), so each is left out unless requested.
fn is_by_turns(opened: &Opened, profiled: &Profiled) -> bool {
    let is_before_hopper = opened.capability.is_some_and(|(major, _)| major < i32::from(collo_gpus::HOPPER));
    is_before_hopper && !opened.sources.pipes && [1006, 1008].contains(&profiled.dcgm)
}

/// Starts DCGM, once its metrics are known.
pub struct DcgmCoordinator {
    pub boards: Vec<Arc<Opened>>,
    /// A message from each GPU, once its wanted metrics are settled.
    pub wanted: mpsc::Receiver<WantedMetrics>,
    pub expected: usize,
    pub stop: Arc<AtomicBool>,
    pub outlet: Outlet,
}

impl DcgmCoordinator {
    /// Run until sampling stops.
    pub fn run(self) -> Vec<SourceResult> {
        let Some(wanted) = self.collect() else { return Vec::new() };
        if wanted.is_empty() {
            return Vec::new();
        }
        let stopped = || self.stopped();
        let command = DcgmCommand { program: DCGMI, at_most: ANSWER, stop: &stopped };
        let version = Version::ask(&command);
        let instrument = instrument(&self.boards, version);
        let entities = Entities { boards: &self.boards, wanted: &wanted, version };
        let FoundEntities { targets, lost } = match entities.find(&command) {
            Ok(found) => found,
            Err(why) => FoundEntities::nothing(&wanted, &refusal::explained(&why)),
        };
        self.boards.iter().filter(|b| lost.contains_key(&b.scope)).for_each(|b| b.pcie.dcgm_does_not());
        let streams: Vec<_> = targets
            .into_iter()
            .map(|(level, targets)| {
                let stream = Stream::of(DCGMI, level, targets, self.stop.clone(), self.outlet.clone());
                std::thread::spawn(move || stream.run())
            })
            .collect();
        // A stream that panicked has no quality to tell; what it read is in the table.
        let mut finished: Vec<SourceResult> = streams.into_iter().filter_map(|s| s.join().ok()).collect();
        let untold = self.untold(&lost);
        if untold.absent().next().is_some() {
            finished.push(SourceResult::without_reading("dcgm", 1.0 / EVERY.as_secs_f64(), untold));
        }
        finished.iter_mut().for_each(|f| f.quality.instrument = Some(instrument.clone()));
        finished
    }

    /// Metrics for which no stream was started.
    fn untold(&self, lost: &BTreeMap<Arc<str>, UnreadableScope>) -> Account {
        let mut account = Account::default();
        for (scope, UnreadableScope { metrics, why }) in lost {
            metrics.iter().for_each(|p| account.lacks(p.metric, scope, why));
        }
        for opened in self.boards.iter().filter(|b| b.sources.dcgm()) {
            for (scope, p) in everywhere(opened).filter(|(_, p)| is_by_turns(opened, p)) {
                account.lacks(p.metric, &scope, "left out: before Hopper, DCGM would alternate it with SM activity");
            }
        }
        account
    }

    /// The wanted metrics of all GPUs; `None` if sampling stops before.
    fn collect(&self) -> Option<Scopes> {
        let mut wanted = Scopes::new();
        for _ in 0..self.expected {
            let (board, missing) = loop {
                match self.wanted.recv_timeout(Duration::from_millis(50)) {
                    Ok(message) => break message,
                    Err(mpsc::RecvTimeoutError::Timeout) if !self.stopped() => {}
                    Err(_) => return None,
                }
            };
            let is_pcie = |(scope, p): &Missing| p.metric == PCIE_TX && *scope == self.boards[board].scope;
            if !missing.iter().any(is_pcie) {
                self.boards[board].pcie.dcgm_tells();
            } else if !self.boards[board].sources.dcgm() {
                self.boards[board].pcie.dcgm_does_not();
            }
            if self.boards[board].sources.dcgm() {
                missing.into_iter().for_each(|(scope, p)| wanted.entry(scope).or_default().push(p));
            }
        }
        Some(wanted)
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Metrics by scope.
type Scopes = BTreeMap<Arc<str>, Vec<&'static Profiled>>;

/// The wanted metrics of an unreadable scope, and why it is unreadable.
pub struct UnreadableScope {
    metrics: Vec<&'static Profiled>,
    why: String,
}

/// The DCGM version, and the GPUs it reads.
fn instrument(boards: &[Arc<Opened>], version: Option<Version>) -> Instrument {
    let card = |opened: &Arc<Opened>| {
        let compute_capability = opened.capability.map(|(major, minor)| format!("{major}.{minor}"));
        let of_part = |part: &super::handle::InstanceHandle| {
            let scopes = std::iter::once(&part.scope).chain(part.compute_instances.iter().map(|(_, scope)| scope));
            let slices = part.slices;
            scopes.filter_map(move |scope| Some((scope.to_string(), slices?))).collect::<Vec<_>>()
        };
        let slices = opened.parts.iter().flat_map(of_part).collect();
        (opened.scope.to_string(), ReadCard { compute_capability, slices })
    };
    Instrument { version: version.map(|v| v.to_string()), cards: boards.iter().map(card).collect() }
}
