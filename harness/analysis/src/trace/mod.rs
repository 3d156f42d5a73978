//! Runs of traces: tasks that arrive, and a policy that places them. In: the runs that the ordinary analysis leaves out, and the
//! baselines of the same campaign. Out: the numbers of each run, and what they say of policies.
//!
//! The unit is an order: policies are compared within the same order of tasks, never a run with a run of another order.

mod arm;
mod policies;
mod queue;
mod readings;
mod run;

use std::collections::BTreeSet;

use collo_quantity::number;
use collo_store::{TaskEnd, Verdict};

use crate::cell::Cell;
use crate::reading::repetition::Repetition;

pub use arm::{Arm, ArmValues};
pub use policies::{OrdersNeeded, RatioToReference, TraceMatrix, gains, shared_variance, verdict_text};
pub use readings::SiteReadings;
pub use run::{DecisionCount, TraceRun};

/// What a campaign has of traces.
#[derive(Debug, Default)]
pub struct Traces {
    /// In the order of the plan; they have outcomes and validity, and no quantity of a group.
    pub cells: Vec<Cell>,
    /// Runs that completed and are not discarded, in the same order.
    pub runs: Vec<TraceRun>,
    /// One for each trace on a site at a scale, in the order of the plan.
    pub matrices: Vec<TraceMatrix>,
}

/// Read the runs that completed: what cannot be read is discarded, and what did less work than another of its order is indicative.
pub(super) fn read(repetitions: &mut [Repetition]) -> Vec<TraceRun> {
    let mut runs: Vec<(usize, TraceRun)> = Vec::new();
    for (at, repetition) in repetitions.iter_mut().enumerate().filter(|(_, r)| r.counts()) {
        match TraceRun::read(repetition) {
            Ok(run) => runs.push((at, run)),
            Err(why) => repetition.validity.lower(Verdict::Discarded, why),
        }
    }
    // A total is only one of the same work: what another run of the order could do was left undone.
    for i in 0..runs.len() {
        let done =
            |run: &TraceRun| -> BTreeSet<u32> { run.tasks.iter().filter(|t| t.end == TaskEnd::Done).map(|t| t.task).collect() };
        let possible: BTreeSet<u32> =
            runs.iter().filter(|(_, other)| other.plays_as(&runs[i].1)).flat_map(|(_, other)| done(other)).collect();
        let undone = possible.difference(&done(&runs[i].1)).count();
        if undone > 0 {
            let why = format!(
                "{} not done that others of this order did: its total is one of less work",
                number::count(undone, "task")
            );
            repetitions[runs[i].0].validity.lower(Verdict::Indicative, why);
        }
    }
    for (at, run) in &mut runs {
        run.validity = repetitions[*at].validity.clone();
    }
    runs.into_iter().map(|(_, run)| run).collect()
}

impl Traces {
    /// The cells of traces with their runs; `baselines` are the campaign's other cells.
    pub(super) fn of(cells: Vec<Cell>, mut runs: Vec<TraceRun>, baselines: &[Cell], threshold: f64) -> Traces {
        for run in &mut runs {
            run.take_baselines(baselines);
        }
        let matrices = TraceMatrix::all(&cells, &runs, threshold);
        Traces { cells, runs, matrices }
    }

    /// True if the campaign has no cell of a trace.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty() && self.matrices.is_empty()
    }

    /// Runs of a cell, in the order of their repetitions.
    pub fn of_cell<'a>(&'a self, label: &'a str) -> impl Iterator<Item = &'a TraceRun> {
        self.runs.iter().filter(move |run| run.cell == label)
    }
}
