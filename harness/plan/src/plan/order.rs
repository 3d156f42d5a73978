//! The order of runs: in blocks of equal partitions, each workload's groups between two runs of its baseline, shuffled by the seed.
//!
//! In: planned cells, repetitions, a seed, the number of cards. Out: each repetition at its place.
//!
//! On several cards each block lies on one of them, so that ratios are made within a card. The repetitions of a cell go around the
//! cards: the card is a factor that is crossed with the cells. With fewer repetitions than cards the cells are divided into parts, each
//! with its own cards and baselines, because no cell could be on all of them.

use std::collections::HashMap;
use std::ops::Range;

use collo_store::{BlockEdge, PlannedRun, Shuffle};

use super::{PlannedCell, shards};
use crate::experiment::Experiment;
use collo_gpus::partition::Partition;

/// Every repetition of these cells on so many cards; `found_on`: MIG was on when the GPU was found.
pub(super) fn order(cells: &[PlannedCell], experiment: &Experiment, found_on: bool, cards: usize) -> Vec<PlannedRun> {
    if cells.iter().any(|planned| planned.cell.trace().is_some()) {
        return of_traces(cells, experiment);
    }
    let mut shuffle = Shuffle::seeded(experiment.seed);
    let mut done = vec![0u32; cells.len()];
    let mut order = Vec::new();
    let mut block = 0;
    let is_on = |state: &Option<&Partition>| state.is_some_and(|p| p.mig);
    let parts = parts(cells, experiment.repetitions as usize, cards);
    for (as_found, repetitions) in sections(experiment.repetitions as usize) {
        for repetition in repetitions {
            for part in &parts {
                let states = states(cells, &part.cells);
                let mut these: Vec<_> = states.iter().copied().filter(|state| (is_on(state) == found_on) == as_found).collect();
                if these.len() > 1 {
                    shuffle.shuffle(&mut these);
                }
                for state in these {
                    block += 1;
                    // A state begins where the one before it ended, so that every card has as many blocks as the others.
                    let place = states.iter().position(|other| *other == state).unwrap_or(0);
                    let card = part.card(place * experiment.repetitions as usize + repetition);
                    let here = part.cells.iter().copied().filter(|c| cells[*c].seating.partition.as_ref() == state);
                    for (cell, edge) in families(cells, here.collect(), &mut shuffle) {
                        done[cell] += 1;
                        order.push(PlannedRun { block, cell, repetition: done[cell], edge, card });
                    }
                }
            }
        }
    }
    order
}

/// Repetitions in the MIG mode as found, and in the other. A change of the mode is the dearest step: it may reset the card, and services
/// must let go of it. As found comes first, so that what is measured before the change needs none, and again last: what has no baseline
/// in its own blocks is measured between runs of it, and the second change is the one that would restore the mode anyway.
fn sections(repetitions: usize) -> [(bool, Range<usize>); 3] {
    let before = repetitions.div_ceil(2);
    [(true, 0..before), (false, 0..repetitions), (true, before..repetitions)]
}

/// Each repetition is a block: every member alone, then each order of the trace under all policies, shuffled. Policies are compared within an order, so that what changes meanwhile changes little between them.
fn of_traces(cells: &[PlannedCell], experiment: &Experiment) -> Vec<PlannedRun> {
    let mut shuffle = Shuffle::seeded(experiment.seed);
    let mut done = vec![0u32; cells.len()];
    let mut order = Vec::new();
    let baselines: Vec<usize> = (0..cells.len()).filter(|cell| cells[*cell].record.baseline).collect();
    // The cells of each order, in the order of its first one.
    let mut orders: Vec<Vec<usize>> = Vec::new();
    let mut places: HashMap<u64, usize> = HashMap::new();
    for (cell, trace) in cells.iter().enumerate().filter_map(|(cell, planned)| Some((cell, planned.cell.trace()?))) {
        let place = *places.entry(trace.record.order).or_insert(orders.len());
        if place == orders.len() {
            orders.push(Vec::new());
        }
        orders[place].push(cell);
    }
    for block in 1..=experiment.repetitions {
        let mut put = |cell: usize, edge: Option<BlockEdge>| {
            done[cell] += 1;
            order.push(PlannedRun { block, cell, repetition: done[cell], edge, card: None });
        };
        let mut alone = baselines.clone();
        shuffle.shuffle(&mut alone);
        alone.iter().for_each(|cell| put(*cell, Some(BlockEdge::Opens)));
        for policies in &orders {
            let mut policies = policies.clone();
            shuffle.shuffle(&mut policies);
            policies.into_iter().for_each(|cell| put(cell, None));
        }
    }
    order
}

/// Cells that are measured on the same cards.
struct Part {
    cells: Vec<usize>,
    /// None on one device.
    cards: Vec<u32>,
}

impl Part {
    /// The card at this place, around and around.
    fn card(&self, place: usize) -> Option<u32> {
        self.cards.get(place.checked_rem(self.cards.len())?).copied()
    }
}

/// All cells on all cards while there are as many repetitions as cards, and otherwise so many parts that no part has more cards than
/// repetitions: a card without a repetition of a baseline could compare nothing.
fn parts(cells: &[PlannedCell], repetitions: usize, cards: usize) -> Vec<Part> {
    if cards < 2 {
        return vec![Part { cells: (0..cells.len()).collect(), cards: Vec::new() }];
    }
    let mut divided = match cards.div_ceil(repetitions.max(1)) {
        1 => vec![(0..cells.len()).collect()],
        count => shards::parts(cells, count),
    };
    divided.retain(|part: &Vec<usize>| !part.is_empty());
    let count = divided.len().max(1);
    // Where there are fewer parts than would be needed, not every card has a repetition.
    let first = |part: usize| (part * cards / count) as u32;
    let of = |(place, cells)| Part { cells, cards: (first(place)..first(place + 1)).take(repetitions.max(1)).collect() };
    divided.into_iter().enumerate().map(of).collect()
}

/// The states of the device that these cells need, in the order of their first cells.
fn states<'a>(cells: &'a [PlannedCell], here: &[usize]) -> Vec<Option<&'a Partition>> {
    let mut states: Vec<Option<&Partition>> = Vec::new();
    for fitting in here.iter().map(|cell| &cells[*cell]) {
        let state = fitting.seating.partition.as_ref();
        if !states.contains(&state) {
            states.push(state);
        }
    }
    states
}

/// The cells of a block in an order in which each baseline stands close around its groups, so that what changes meanwhile changes
/// little between them: families in a shuffled order, in each the baseline, its groups shuffled, the baseline. A mixed group stands
/// in the family of one of its members, chosen by chance.
fn families(cells: &[PlannedCell], here: Vec<usize>, shuffle: &mut Shuffle) -> Vec<(usize, Option<BlockEdge>)> {
    let (mut baselines, others): (Vec<usize>, Vec<usize>) = here.into_iter().partition(|cell| cells[*cell].record.baseline);
    shuffle.shuffle(&mut baselines);
    let place_of: HashMap<&str, usize> =
        baselines.iter().enumerate().map(|(place, cell)| (cells[*cell].record.cell.as_str(), place)).collect();
    let mut groups: Vec<Vec<usize>> = vec![Vec::new(); baselines.len().max(1)];
    for cell in others {
        let against = cells[cell].record.against.iter();
        let mut possible: Vec<usize> = against.filter_map(|label| place_of.get(label.as_str()).copied()).collect();
        possible.sort_unstable();
        possible.dedup();
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
