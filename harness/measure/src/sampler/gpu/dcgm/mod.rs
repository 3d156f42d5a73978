//! DCGM, through its command `dcgmi`: on Ampere the only profiler there is, later a second source.
//!
//! In: which metrics of which scopes it is to tell. Out: their samples. `dcgmi discovery -c` says which of DCGM's entities is which
//! card and instance; one `dcgmi dmon` for each level of entities prints its values, and a thread reads each.

mod command;
mod discovery;
mod dmon;
pub mod replay;
mod stream;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use super::Finished;
use super::account::Account;
use super::card::Opened;
use super::gpm::Missing;
use super::profiled::{Level, PCIE_TX, PROFILED, Profiled};
use crate::sampler::latest::Outlet;
use discovery::Hierarchy;
use stream::{Stream, Target};

/// The name that is looked for on the PATH.
const PROGRAM: &str = "dcgmi";

/// DCGM renews its profiling values ten times a second and no faster.
pub const EVERY: Duration = Duration::from_millis(100);

/// DCGM notices new instances seconds after they were made.
const DISCOVERY: Duration = Duration::from_secs(8);
const DISCOVERY_EVERY: Duration = Duration::from_millis(500);
const ANSWER: Duration = Duration::from_secs(10);

/// What is wanted of a card, by the card's number.
pub type Wanted = (usize, Vec<Missing>);

/// Everything that DCGM could tell of a card.
pub fn everything(opened: &Opened) -> Vec<Missing> {
    let mut all = Vec::new();
    let mut add = |scope: &Arc<str>, level| {
        all.extend(PROFILED.iter().filter(|p| p.exists_at(level)).map(|p| (scope.clone(), p)));
    };
    add(&opened.scope, Level::Gpu);
    for part in &opened.parts {
        add(&part.scope, Level::GpuInstance);
        part.compute_instances.iter().for_each(|(_, scope)| add(scope, Level::ComputeInstance));
    }
    all
}

/// What starts DCGM, once it is known what it is to tell.
pub struct Conductor {
    pub boards: Vec<Arc<Opened>>,
    /// A message from each card, when it is settled there what is wanted.
    pub wanted: mpsc::Receiver<Wanted>,
    pub expected: usize,
    pub stop: Arc<AtomicBool>,
    pub outlet: Outlet,
}

impl Conductor {
    /// Run until sampling stops.
    pub fn run(self) -> Vec<Finished> {
        let Some(wanted) = self.collect() else { return Vec::new() };
        if wanted.is_empty() {
            return Vec::new();
        }
        let hierarchy = match self.discover(&wanted) {
            Ok(hierarchy) => hierarchy,
            Err(why) => {
                self.boards.iter().for_each(|b| b.pcie.dcgm_does_not());
                return vec![nothing(&wanted, &why)];
            }
        };
        let (targets, lost) = self.targets(&wanted, &hierarchy);
        self.boards.iter().filter(|b| lost.contains_key(&b.scope)).for_each(|b| b.pcie.dcgm_does_not());
        let streams: Vec<_> = targets
            .into_iter()
            .map(|(level, targets)| {
                let stream = Stream::of(PROGRAM, level, targets, self.stop.clone(), self.outlet.clone());
                std::thread::spawn(move || stream.run())
            })
            .collect();
        // A stream that panicked has no quality to tell; what it read is in the table.
        let mut finished: Vec<Finished> = streams.into_iter().filter_map(|s| s.join().ok()).collect();
        if !lost.is_empty() {
            finished.push(nothing(&lost, "dcgmi discovery does not list it"));
        }
        finished
    }

    /// What is wanted of all cards; none if sampling stops before.
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

    /// Ask for the entities until all that are wanted are there, but not for ever.
    fn discover(&self, wanted: &Scopes) -> Result<Hierarchy, String> {
        let deadline = Instant::now() + DISCOVERY;
        loop {
            let text = command::output(PROGRAM, &["discovery", "-c"], ANSWER, || self.stopped())?;
            let hierarchy = Hierarchy::parse(&text);
            if self.targets(wanted, &hierarchy).1.is_empty() || Instant::now() >= deadline {
                return Ok(hierarchy);
            }
            let next = Instant::now() + DISCOVERY_EVERY;
            while Instant::now() < next {
                if self.stopped() {
                    return Ok(hierarchy);
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }

    /// The entities to read, by level, and what is wanted of scopes that DCGM does not list.
    fn targets(&self, wanted: &Scopes, hierarchy: &Hierarchy) -> (BTreeMap<Level, Vec<Target>>, Scopes) {
        let mut targets = BTreeMap::<Level, Vec<Target>>::new();
        let mut lost = Scopes::new();
        for opened in &self.boards {
            let gpu = hierarchy.gpu(&opened.uuid).map(|g| g.entity);
            let mut scopes = vec![(Level::Gpu, &opened.scope, gpu)];
            for part in &opened.parts {
                scopes.push((Level::GpuInstance, &part.scope, hierarchy.instance(&opened.uuid, part.gpu_instance)));
                for (id, scope) in &part.compute_instances {
                    let entity = hierarchy.compute_instance(&opened.uuid, part.gpu_instance, *id);
                    scopes.push((Level::ComputeInstance, scope, entity));
                }
            }
            for (level, scope, entity) in scopes {
                let Some(metrics) = wanted.get(scope) else { continue };
                match entity {
                    Some(entity) => {
                        let (scope, metrics) = (scope.clone(), metrics.clone());
                        targets.entry(level).or_default().push(Target {
                            entity,
                            scope,
                            metrics,
                            pcie: opened.pcie.clone(),
                            tells: opened.dcgm_tells.clone(),
                        });
                    }
                    None => {
                        lost.insert(scope.clone(), metrics.clone());
                    }
                }
            }
        }
        (targets, lost)
    }
}

/// Metrics by scope.
type Scopes = BTreeMap<Arc<str>, Vec<&'static Profiled>>;

/// What is stored where DCGM told nothing.
fn nothing(wanted: &Scopes, why: &str) -> Finished {
    let mut account = Account::default();
    for (scope, metrics) in wanted {
        metrics.iter().for_each(|p| account.lacks(p.metric, scope, why));
    }
    Finished::without_reading("dcgm", 1.0 / EVERY.as_secs_f64(), account)
}
