//! From an experiment to its cells.
//!
//! In: an experiment, and optionally a selection. Out: the cells in the order of the experiment, each once, every solo baseline
//! before the first cell that needs it. It does not check which cells the device can run.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use collo_store::Diagnostic;
use serde_json::Value as Json;

use crate::cell::{AfterMeasured, Cell, Member};
use crate::experiment::{Axes, Experiment, Sharing};
use crate::select::Selection;

/// Maximum number of cells in a plan.
pub const MOST_CELLS: usize = 100_000;
/// Maximum number of combinations searched for the selected ones.
const MOST_CANDIDATES: usize = 5_000_000;

/// A cell of a plan, and whether it was requested.
#[derive(Debug, Clone, PartialEq)]
pub struct Expanded {
    pub cell: Cell,
    /// False for a baseline that is included only because others are compared with it.
    pub asked: bool,
}

/// The cells of an experiment, or those matching `selection` with the baselines that they need.
pub fn expand(experiment: &Experiment, selection: Option<&Selection>) -> Result<Vec<Expanded>, Diagnostic> {
    if let Some(selection) = selection {
        selection.check(&settings(experiment))?;
    }
    let candidates = size(&experiment.axes);
    if candidates > if selection.is_some() { MOST_CANDIDATES } else { MOST_CELLS } {
        let hint = if candidates > MOST_CANDIDATES {
            "shorten an axis"
        } else {
            "select some, as in `--where 'degree <= 7'`, or shorten an axis"
        };
        return Err(
            Diagnostic::new(format!("{candidates} cells ({}) are more than {MOST_CELLS}", product(&experiment.axes))).hint(hint)
        );
    }
    let mut expansion =
        Expansion { experiment, selection, cells: Vec::new(), places: HashMap::new(), after_measured: HashMap::new() };
    matrix(&experiment.axes, |member, sharing, degree| {
        expansion.add(Cell::new([(member.clone(), degree)], sharing.mode.clone(), experiment.after_measured))
    })?;
    for group in &experiment.groups {
        for sharing in &group.sharing {
            if sharing.solo {
                for (member, _) in &group.members {
                    expansion.add(Cell::solo(member, experiment.after_measured))?;
                }
            } else {
                let after_measured = group.after_measured.or(experiment.after_measured);
                expansion.add(Cell::new(group.members.iter().cloned(), sharing.mode.clone(), after_measured))?;
            }
        }
    }
    Ok(expansion.cells)
}

/// The names of all settings that some cell of the experiment has.
fn settings(experiment: &Experiment) -> BTreeSet<String> {
    let grouped = experiment.groups.iter().flat_map(|group| group.members.iter().map(|(member, _)| member.workload()));
    experiment.axes.workload.iter().chain(grouped).flat_map(|workload| workload.settings.keys().cloned()).collect()
}

fn lengths(axes: &Axes) -> Vec<(&str, usize)> {
    let mut all = vec![("workload", axes.workload.len()), ("batch_size", axes.batch_size.len().max(1))];
    all.extend(axes.settings.iter().map(|(name, values)| (name.as_str(), values.len())));
    all.extend([("sharing", axes.sharing.len()), ("degree", axes.degree.len())]);
    all
}

fn size(axes: &Axes) -> usize {
    lengths(axes).iter().fold(1usize, |product, (_, n)| product.saturating_mul(*n))
}

/// `6 workload × 5 batch_size`.
fn product(axes: &Axes) -> String {
    let factors: Vec<String> = lengths(axes).into_iter().filter(|(_, n)| *n > 1).map(|(name, n)| format!("{n} {name}")).collect();
    factors.join(" × ")
}

/// Call `each` for every combination of the axes; workload varies slowest, degree fastest.
fn matrix(axes: &Axes, mut each: impl FnMut(&Arc<Member>, &Sharing, u32) -> Result<(), Diagnostic>) -> Result<(), Diagnostic> {
    for workload in &axes.workload {
        let mut combinations: Vec<Vec<(&str, Json)>> = vec![Vec::new()];
        let batches: Vec<Json> = axes.batch_size.iter().map(|b| Json::from(*b)).collect();
        let batch_axis = (!batches.is_empty()).then_some(("batch_size", &batches));
        for (name, values) in batch_axis.into_iter().chain(axes.settings.iter().map(|(name, values)| (name.as_str(), values))) {
            combinations =
                combinations.iter().flat_map(|c| values.iter().map(|v| [c.as_slice(), &[(name, v.clone())]].concat())).collect();
        }
        for given in combinations {
            let member = Arc::new(Member::new(workload, given)?);
            for sharing in &axes.sharing {
                for degree in if sharing.solo { &[1][..] } else { &axes.degree[..] } {
                    each(&member, sharing, *degree)?;
                }
            }
        }
    }
    Ok(())
}

struct Expansion<'a> {
    experiment: &'a Experiment,
    selection: Option<&'a Selection>,
    cells: Vec<Expanded>,
    /// Index of the baseline of each member.
    places: HashMap<String, usize>,
    /// What finished members do, by label of the cell, to notice the same cell with another choice.
    after_measured: HashMap<String, AfterMeasured>,
}

impl Expansion<'_> {
    fn add(&mut self, cell: Cell) -> Result<(), Diagnostic> {
        if self.experiment.exclude.iter().any(|exclusion| exclusion.holds(&|axis| cell.axis(axis))) {
            return Ok(());
        }
        // The baselines come into being with the first cell that they serve, so a selection may mean them alone.
        let after_measured = self.experiment.after_measured;
        let solos: Vec<Cell> = if cell.is_baseline() {
            Vec::new()
        } else {
            cell.terms().iter().map(|t| Cell::solo(&t.member, after_measured)).collect()
        };
        let selected = self.selects(&cell);
        for solo in solos {
            let asked = self.selection.is_some() && self.selects(&solo);
            if selected || asked {
                self.baseline(solo, asked);
            }
        }
        if !selected {
            return Ok(());
        }
        if cell.is_baseline() {
            self.baseline(cell, true);
            return self.check_room();
        }
        match self.after_measured.insert(cell.label(), cell.after_measured()) {
            Some(after) if after != cell.after_measured() => {
                return Err(Diagnostic::new(format!(
                    "cell `{}` is requested with `after_measured` both `keep-running` and `exit`",
                    cell.label()
                ))
                .hint("leave one out: both would have the same name"));
            }
            Some(_) => {}
            None => self.cells.push(Expanded { cell, asked: true }),
        }
        self.check_room()
    }

    fn selects(&self, cell: &Cell) -> bool {
        self.selection.is_none_or(|selection| selection.holds(&|axis| cell.axis(axis)))
    }

    fn baseline(&mut self, solo: Cell, asked: bool) {
        let key = solo.terms()[0].member.key().to_string();
        match self.places.get(&key) {
            Some(place) => self.cells[*place].asked |= asked,
            None => {
                self.places.insert(key, self.cells.len());
                self.cells.push(Expanded { cell: solo, asked });
            }
        }
    }

    fn check_room(&self) -> Result<(), Diagnostic> {
        if self.cells.len() <= MOST_CELLS {
            return Ok(());
        }
        Err(Diagnostic::new(format!("more than {MOST_CELLS} cells are selected"))
            .hint("select fewer, as in `--where 'degree <= 7'`"))
    }
}

#[cfg(test)]
mod tests;
