//! Traces: tasks with their arrival times.
//!
//! In: the text of a `traces/NAME.toml`. Out: the tasks of an order. An *order* is a seeded shuffle of the tasks over the same arrivals:
//! policies are compared within one, and differ between them by chance as well.
//!
//! To add a published trace: a file in `traces/` with its source: arrivals, and tasks drawn from classes.

mod arrivals;
pub mod import;
pub mod make;
pub mod names;
mod read;
mod scale;
mod shell;
mod short;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use collo_store::Shuffle;
use collo_text::{Diagnostics, Source};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

pub use read::TRACE;
pub use scale::Scale;

use crate::task::TaskId;

/// More tasks than this are a data set, not a trace to run.
pub const MOST_TASKS: usize = 1_000_000;
/// The largest file of a trace, in bytes.
pub const LARGEST: u64 = 32_000_000;

/// A task as its trace describes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TraceTask {
    /// Counted from 0 in the order of arrival.
    pub id: TaskId,
    /// Since the first moment of the trace.
    pub at_ns: u64,
    pub workload: String,
    /// With `batch_size`, where it is given.
    pub settings: BTreeMap<String, Json>,
    pub epochs: u32,
    pub cards: u32,
}

/// What arrives, without its time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct What {
    pub workload: String,
    pub settings: BTreeMap<String, Json>,
    pub epochs: u32,
    pub cards: u32,
}

/// A class of which so many are drawn.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Drawn {
    pub count: usize,
    pub one_of: Vec<What>,
}

/// A trace, read.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    pub description: String,
    /// Where its arrivals and shares come from.
    pub source: Option<String>,
    /// Ascending.
    arrivals_ns: Vec<u64>,
    /// In the order of the file, each with its own arrival if it has one; then what is drawn.
    listed: Vec<(What, Option<u64>)>,
    drawn: Vec<Drawn>,
}

impl Trace {
    /// Read a trace, with every mistake and its place.
    pub fn read(source: &Arc<Source>) -> Result<Trace, Diagnostics> {
        read::read(source)
    }

    pub fn tasks(&self) -> usize {
        self.arrivals_ns.len()
    }

    pub fn arrivals_ns(&self) -> &[u64] {
        &self.arrivals_ns
    }

    /// The workloads with the settings that tasks of some order can have, each once.
    pub fn kinds(&self) -> Vec<(&str, &BTreeMap<String, Json>)> {
        let all = self.listed.iter().map(|(what, _)| what).chain(self.drawn.iter().flat_map(|drawn| &drawn.one_of));
        let mut kinds: Vec<(&str, &BTreeMap<String, Json>)> = Vec::new();
        // As text, because settings have no order of their own.
        let mut known = HashSet::new();
        for what in all {
            if known.insert(format!("{} {:?}", what.workload, what.settings)) {
                kinds.push((&what.workload, &what.settings));
            }
        }
        kinds
    }

    /// The tasks of an order, by their arrival. The seed draws what is drawn, and which task comes at which arrival; 0 leaves listed tasks
    /// as they are written.
    pub fn order(&self, seed: u64) -> Vec<TraceTask> {
        let mut dice = Shuffle::seeded(seed);
        let mut all: Vec<(&What, Option<u64>)> = self.listed.iter().map(|(what, at_ns)| (what, *at_ns)).collect();
        for drawn in &self.drawn {
            all.extend((0..drawn.count).map(|_| (&drawn.one_of[(dice.share() * drawn.one_of.len() as f64) as usize], None)));
        }
        if seed == 0 && self.drawn.is_empty() {
            // Those with a time of their own keep it, and the others fill what is left.
            all.sort_by_key(|(_, at_ns)| at_ns.is_none());
            let own = all.iter().filter_map(|(_, at_ns)| *at_ns).collect::<Vec<_>>();
            let left = self.without(&own);
            let mut left = left.into_iter();
            let mut timed: Vec<(u64, &What)> =
                all.into_iter().filter_map(|(what, at_ns)| at_ns.or_else(|| left.next()).map(|at_ns| (at_ns, what))).collect();
            timed.sort_by_key(|(at_ns, _)| *at_ns);
            return numbered(timed);
        }
        let mut what: Vec<&What> = all.into_iter().map(|(what, _)| what).collect();
        dice.shuffle(&mut what);
        numbered(self.arrivals_ns.iter().copied().zip(what))
    }

    /// The arrivals that no listed task has for its own.
    fn without(&self, own: &[u64]) -> Vec<u64> {
        let mut own: BTreeMap<u64, usize> = own.iter().fold(BTreeMap::new(), |mut counts, at_ns| {
            *counts.entry(*at_ns).or_default() += 1;
            counts
        });
        let is_left = |at_ns: &&u64| match own.get_mut(at_ns) {
            Some(count) if *count > 0 => {
                *count -= 1;
                false
            }
            _ => true,
        };
        self.arrivals_ns.iter().filter(is_left).copied().collect()
    }
}

fn numbered<'a>(timed: impl IntoIterator<Item = (u64, &'a What)>) -> Vec<TraceTask> {
    let task = |(id, (at_ns, what)): (u32, (u64, &What))| TraceTask {
        id: TaskId(id),
        at_ns,
        workload: what.workload.clone(),
        settings: what.settings.clone(),
        epochs: what.epochs,
        cards: what.cards,
    };
    (0..).zip(timed).map(task).collect()
}

/// A number of tasks, for texts.
fn count_tasks(count: usize) -> String {
    if count == 1 { "1 task".into() } else { format!("{count} tasks") }
}

/// The least time in which so many cards can do this work, in nanoseconds from the first arrival, whatever the policy, if each card does one
/// task at a time. Of each task its arrival, its time alone, and its cards.
///
/// Whatever arrives from some moment on is done by all cards at once at best, and no task sooner than its own time.
pub fn least_time_ns(work: &[(u64, u64, u32)], cards: u32) -> u64 {
    let mut work = work.to_vec();
    work.sort_unstable();
    let Some(first_ns) = work.first().map(|(at_ns, ..)| *at_ns) else { return 0 };
    let (mut least, mut to_do) = (0u128, 0u128);
    for (at_ns, work_ns, of_cards) in work.into_iter().rev() {
        let since = u128::from(at_ns - first_ns);
        to_do += u128::from(work_ns) * u128::from(of_cards);
        least = least.max(since + u128::from(work_ns)).max(since + to_do.div_ceil(u128::from(cards.max(1))));
    }
    u64::try_from(least).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
