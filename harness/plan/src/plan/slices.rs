//! Members alone on a slice: they distinguish "a smaller slice" from "interference".
//!
//! A group on slices of a GPU is compared with each of its members alone on a slice of the same size. Those cells are added here,
//! once the possible partitions are known.

use std::collections::HashSet;

use crate::cell::Cell;
use crate::expand::Expanded;
use crate::experiment::Experiment;
use crate::facts::DeviceFacts;
use crate::sharing::{self, Seating};

/// The cells, and before the first that needs it each member alone on its slice.
pub fn alone_on_slices(experiment: &Experiment, cells: Vec<Expanded>, facts: &DeviceFacts) -> Vec<Expanded> {
    let mut known: HashSet<String> = cells.iter().map(|e| e.cell.label()).collect();
    let mut all = Vec::new();
    for expanded in cells {
        let cell = &expanded.cell;
        if cell.trace().is_some() || cell.observe().is_some() {
            // The instances of a trace are its cards: whoever is alone there is so on one of them. A watched group is compared with
            // itself.
            all.push(expanded);
            continue;
        }
        let specs: Vec<_> = cell.members().map(|m| m.spec()).collect();
        if let Ok(seating) = cell.mode().seat(facts, &specs, &experiment.each) {
            for (member, own) in cell.members().enumerate() {
                let Some(alone) = alone(cell, &seating, member, own, experiment) else { continue };
                if known.insert(alone.label()) {
                    all.push(Expanded { cell: alone, asked: false });
                }
            }
        }
        all.push(expanded);
    }
    all
}

fn alone(
    cell: &Cell,
    seating: &Seating,
    member: usize,
    own: &std::sync::Arc<crate::cell::Member>,
    experiment: &Experiment,
) -> Option<Cell> {
    // Who is alone already needs no other.
    let slice = seating.slice(member).filter(|_| cell.degree() > 1)?;
    Some(Cell::new([(own.clone(), 1)], sharing::on_slice(&slice), experiment.after_measured))
}

/// The labels of those cells, by member.
pub fn labels(cell: &Cell, seating: &Seating) -> Vec<String> {
    let label = |(member, own): (usize, &std::sync::Arc<crate::cell::Member>)| {
        Some(Cell::new([(own.clone(), 1)], sharing::on_slice(&seating.slice(member)?), None).label())
    };
    let all: Option<Vec<String>> = cell.members().enumerate().map(label).collect();
    all.filter(|_| cell.degree() > 1 && cell.observe().is_none()).unwrap_or_default()
}

/// A member alone on a slice runs in a partition that is used anyway, if one has such a slice: fewer changes of the GPU, and the
/// same block as the group that it is compared with.
pub fn join(cells: &mut [super::PlannedCell]) {
    let partitions: Vec<_> = cells.iter().filter(|f| f.record.degree > 1).filter_map(|f| f.seating.partition.clone()).collect();
    for fitting in cells.iter_mut().filter(|f| f.record.degree == 1 && !f.record.baseline) {
        if !fitting.seating.partition.as_ref().is_some_and(|p| p.mig) {
            continue;
        }
        if let Some(inside) = partitions.iter().find_map(|p| fitting.seating.inside(p)) {
            fitting.seating = inside;
        }
    }
}
