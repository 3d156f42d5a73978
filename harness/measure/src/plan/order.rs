//! The order of runs: in blocks of equal partitions, each workload's groups between two runs of its baseline, shuffled by the seed.
//!
//! In: planned cells, repetitions, a seed. Out: each repetition at its place.

use collo_store::{BlockEdge, PlannedRun, Shuffle};

use super::PlannedCell;
use crate::device::Partition;
use crate::experiment::Experiment;

/// Every repetition of these cells; `found_on`: MIG was on when the GPU was found.
pub(super) fn order(cells: &[PlannedCell], experiment: &Experiment, found_on: bool) -> Vec<PlannedRun> {
    // In the order of their first cells.
    let mut states: Vec<Option<&Partition>> = Vec::new();
    for fitting in cells {
        let state = fitting.seating.partition.as_ref();
        if !states.contains(&state) {
            states.push(state);
        }
    }
    let mut shuffle = Shuffle::seeded(experiment.seed);
    let mut done = vec![0u32; cells.len()];
    let mut order = Vec::new();
    let mut block = 0;
    // A change of the mode is the dearest step: it may reset the card, and services must let go of it. As found comes first, so that
    // what is measured before the change needs none.
    let is_on = |state: &Option<&Partition>| state.is_some_and(|p| p.mig);
    let (found, other): (Vec<_>, Vec<_>) = states.into_iter().partition(|state| is_on(state) == found_on);
    for states in [found, other] {
        for _ in 0..experiment.repetitions {
            let mut states = states.clone();
            if states.len() > 1 {
                shuffle.shuffle(&mut states);
            }
            for state in states {
                block += 1;
                let here = (0..cells.len()).filter(|c| cells[*c].seating.partition.as_ref() == state);
                for (cell, edge) in families(cells, here.collect(), &mut shuffle) {
                    done[cell] += 1;
                    order.push(PlannedRun { block, cell, repetition: done[cell], edge });
                }
            }
        }
    }
    order
}

/// The cells of a block in an order in which each baseline stands close around its groups, so that what changes meanwhile changes
/// little between them: families in a shuffled order, in each the baseline, its groups shuffled, the baseline. A mixed group stands
/// in the family of one of its members, chosen by chance.
fn families(cells: &[PlannedCell], here: Vec<usize>, shuffle: &mut Shuffle) -> Vec<(usize, Option<BlockEdge>)> {
    let (mut baselines, others): (Vec<usize>, Vec<usize>) = here.into_iter().partition(|cell| cells[*cell].record.baseline);
    shuffle.shuffle(&mut baselines);
    let mut groups: Vec<Vec<usize>> = vec![Vec::new(); baselines.len().max(1)];
    for cell in others {
        let of = |place: &usize| cells[cell].record.members.iter().any(|m| m.solo == cells[baselines[*place]].record.cell);
        let mut possible: Vec<usize> = (0..baselines.len()).filter(of).collect();
        if possible.len() > 1 {
            shuffle.shuffle(&mut possible);
        }
        groups[possible.first().copied().unwrap_or(0)].push(cell);
    }
    let mut order = Vec::new();
    for (place, mut groups) in groups.into_iter().enumerate() {
        let edge = |edge| baselines.get(place).map(|cell| (*cell, Some(edge)));
        shuffle.shuffle(&mut groups);
        // What is likely to fail does so when the others are stored.
        groups.sort_by_key(|cell| cells[*cell].forecast.memory.is_likely_to_run_out());
        order.extend(edge(BlockEdge::Opens));
        order.extend(groups.into_iter().map(|cell| (cell, None)));
        order.extend(edge(BlockEdge::Closes));
    }
    order
}
