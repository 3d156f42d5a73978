//! DCGM, through its command `dcgmi`: on Ampere the only profiler there is, later a second source.
//!
//! In: which metrics of which scopes it is to tell. Out: their samples. `dcgmi discovery -l` says which of DCGM's entities is which card,
//! `discovery -c` which is which instance; one `dcgmi dmon` for each level of entities prints its values, and a thread reads each.

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

use super::Finished;
use super::account::Account;
use super::card::Opened;
use super::gpm::Missing;
use super::profiled::{Level, PCIE_TX, PROFILED, Profiled};
use crate::sampler::latest::Outlet;
use command::Command;
use entities::{Entities, Found};
use stream::Stream;
use version::Version;

/// The name that is looked for on the PATH.
const PROGRAM: &str = "dcgmi";

/// DCGM renews its profiling values ten times a second and no faster.
pub const EVERY: Duration = Duration::from_millis(100);

const ANSWER: Duration = Duration::from_secs(10);

/// The compute capability from which on DCGM reads through GPM: any metrics at once, and shares of instances that are their own.
const HOPPER: i32 = 9;

/// What is wanted of a card, by the card's number.
pub type Wanted = (usize, Vec<Missing>);

/// Everything that is asked of DCGM for a card.
pub fn everything(opened: &Opened) -> Vec<Missing> {
    everywhere(opened).filter(|(_, p)| !is_by_turns(opened, p)).collect()
}

/// Everything that DCGM could tell of a card.
fn everywhere(opened: &Opened) -> impl Iterator<Item = Missing> {
    let parts = opened.parts.iter().flat_map(|part| {
        let compute = part.compute_instances.iter().map(|(_, scope)| (scope, Level::ComputeInstance));
        std::iter::once((&part.scope, Level::GpuInstance)).chain(compute)
    });
    let scopes = std::iter::once((&opened.scope, Level::Gpu)).chain(parts);
    scopes.flat_map(|(scope, level)| PROFILED.iter().filter(move |p| p.exists_at(level)).map(|p| (scope.clone(), p)))
}

/// Whether DCGM would read this metric and SM activity by turns. Before Hopper the counters of the FP64 and the FP16 pipe do not fit into one pass
/// with the others (DCGM user guide, "Concurrent metrics"; DCGM #144), so each is left out unless it is asked for.
fn is_by_turns(opened: &Opened, profiled: &Profiled) -> bool {
    let is_before_hopper = opened.capability.is_some_and(|(major, _)| major < HOPPER);
    is_before_hopper && !opened.sources.pipes && [1006, 1008].contains(&profiled.dcgm)
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
        let stopped = || self.stopped();
        let command = Command { program: PROGRAM, at_most: ANSWER, stop: &stopped };
        let version = Version::ask(&command);
        let instrument = instrument(&self.boards, version);
        let entities = Entities { boards: &self.boards, wanted: &wanted, version };
        let Found { targets, lost } = match entities.find(&command) {
            Ok(found) => found,
            Err(why) => Found::nothing(&wanted, &refusal::explained(&why)),
        };
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
        let untold = self.untold(&lost);
        if untold.absent().next().is_some() {
            finished.push(Finished::without_reading("dcgm", 1.0 / EVERY.as_secs_f64(), untold));
        }
        finished.iter_mut().for_each(|f| f.quality.instrument = Some(instrument.clone()));
        finished
    }

    /// What no stream was begun for.
    fn untold(&self, lost: &BTreeMap<Arc<str>, Lost>) -> Account {
        let mut account = Account::default();
        for (scope, Lost { metrics, why }) in lost {
            metrics.iter().for_each(|p| account.lacks(p.metric, scope, why));
        }
        for opened in self.boards.iter().filter(|b| b.sources.dcgm()) {
            for (scope, p) in everywhere(opened).filter(|(_, p)| is_by_turns(opened, p)) {
                account.lacks(p.metric, &scope, "left out: before Hopper DCGM would read it and SM activity by turns");
            }
        }
        account
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
}

/// Metrics by scope.
type Scopes = BTreeMap<Arc<str>, Vec<&'static Profiled>>;

/// What is wanted of a scope that cannot be read, and why it cannot.
pub struct Lost {
    metrics: Vec<&'static Profiled>,
    why: String,
}

/// What DCGM is asked with, and about which cards.
fn instrument(boards: &[Arc<Opened>], version: Option<Version>) -> Instrument {
    let card = |opened: &Arc<Opened>| {
        let compute_capability = opened.capability.map(|(major, minor)| format!("{major}.{minor}"));
        let of_part = |part: &super::card::Part| {
            let scopes = std::iter::once(&part.scope).chain(part.compute_instances.iter().map(|(_, scope)| scope));
            let slices = part.slices;
            scopes.filter_map(move |scope| Some((scope.to_string(), slices?))).collect::<Vec<_>>()
        };
        let slices = opened.parts.iter().flat_map(of_part).collect();
        (opened.scope.to_string(), ReadCard { compute_capability, slices })
    };
    Instrument { version: version.map(|v| v.to_string()), cards: boards.iter().map(card).collect() }
}
