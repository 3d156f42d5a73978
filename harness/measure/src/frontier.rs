//! The largest degree that fits, for each workload and way of sharing: by doubling, then by halving the gap.
//!
//! In: what is stored of a campaign. Out: the degree that each combination is to try next, until none is left to try. Pure; a campaign
//! grows by a round at a time, so that a search which was cut off goes on where it was.

use std::collections::BTreeMap;

use collo_store::{CellRecord, Outcome, StoredRun};

use crate::device::DeviceFacts;
use crate::expand::{Expanded, expand};
use crate::experiment::Experiment;
use crate::mistake::Mistake;
use crate::plan::{Plan, plan};
use crate::select::Expression;

/// Whether a degree fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fits {
    Yes,
    /// Out of memory, or refused.
    No,
    /// It failed for another reason: the search of this combination ends here.
    Unknown,
}

/// One workload with its settings under one way of sharing: its member's text and the mode's label.
type Combination = (String, String);

/// What is known of each combination, by degree.
#[derive(Debug, Clone, Default)]
pub struct Frontier {
    known: BTreeMap<Combination, BTreeMap<u32, Fits>>,
}

/// The degree to try next; none when the largest is found.
pub fn next(known: &BTreeMap<u32, Fits>, least: u32, most: u32) -> Option<u32> {
    if known.values().any(|f| *f == Fits::Unknown) {
        return None;
    }
    let fits = known.iter().filter(|(_, f)| **f == Fits::Yes).map(|(d, _)| *d).max();
    let too_many = known.iter().filter(|(_, f)| **f == Fits::No).map(|(d, _)| *d).min();
    match (fits, too_many) {
        (None, None) => Some(least),
        // Not even the least.
        (None, Some(_)) => None,
        (Some(fits), None) => (fits < most).then(|| (2 * fits).min(most)),
        (Some(fits), Some(too_many)) => (too_many > fits + 1).then(|| fits + (too_many - fits) / 2),
    }
}

/// A round of the search.
pub struct Round {
    /// Every cell of the campaign so far, and those to try now.
    pub cells: Vec<Expanded>,
    /// Its order has only what is to be tried now.
    pub plan: Plan,
}

impl Frontier {
    /// From the runs that are stored.
    pub fn of<'a>(runs: impl Iterator<Item = &'a StoredRun>) -> Frontier {
        let mut frontier = Frontier::default();
        for run in runs {
            let fits = match &run.record.outcome {
                Outcome::Completed => Fits::Yes,
                Outcome::OutOfMemory { .. } => Fits::No,
                // It will be run again.
                Outcome::Interrupted => continue,
                _ => Fits::Unknown,
            };
            frontier.learn(combination(&run.record.cell), run.record.cell.degree, fits);
        }
        frontier
    }

    fn learn(&mut self, of: Combination, degree: u32, fits: Fits) {
        let known = self.known.entry(of).or_default().entry(degree).or_insert(fits);
        // One repetition that does not fit is enough.
        if *known == Fits::Yes {
            *known = fits;
        }
    }

    /// What to try now; none when every combination has its answer.
    pub fn round(
        &mut self,
        experiment: &Experiment,
        selection: Option<&Expression>,
        facts: &DeviceFacts,
    ) -> Result<Option<Round>, Mistake> {
        let (least, most) = bounds(experiment);
        loop {
            // All degrees that were or may be asked for, of which each combination takes its own.
            let mut wide = experiment.clone();
            wide.axes.degree = (least..=most).collect();
            let all = expand(&wide, selection)?;
            let of = |e: &Expanded| combination(&e.cell.record(1));
            let mut wanted: BTreeMap<Combination, u32> = BTreeMap::new();
            for expanded in &all {
                let of = of(expanded);
                let known = self.known.get(&of).cloned().unwrap_or_default();
                if let Some(degree) = next(&known, least, most) {
                    wanted.insert(of, degree);
                }
            }
            if wanted.is_empty() {
                return Ok(None);
            }
            let asked = |e: &Expanded| wanted.get(&of(e)) == Some(&e.cell.degree());
            let known = |e: &Expanded| self.known.get(&of(e)).is_some_and(|k| k.contains_key(&e.cell.degree()));
            let labels: Vec<String> = all.iter().filter(|e| asked(e)).map(|e| e.cell.label()).collect();
            let cells: Vec<Expanded> = all
                .into_iter()
                .filter(|e| asked(e) || known(e) || e.cell.is_baseline())
                .map(|e| Expanded { asked: true, ..e })
                .collect();
            let mut plan = plan(experiment, &cells, facts);
            let refused: Vec<&Expanded> = cells
                .iter()
                .filter(|e| plan.record.refusals.iter().any(|r| r.cell == e.cell.label()) && labels.contains(&e.cell.label()))
                .collect();
            for expanded in &refused {
                self.learn(combination(&expanded.cell.record(1)), expanded.cell.degree(), Fits::No);
            }
            let cells_of = plan.record.cells.clone();
            plan.record.order.retain(|run| labels.contains(&cells_of[run.cell].cell));
            if !plan.record.order.is_empty() {
                return Ok(Some(Round { cells, plan }));
            }
            // Everything that was wanted is refused: its answer is known now.
            if refused.is_empty() {
                return Ok(None);
            }
        }
    }

    /// The answers in words, one line for each combination: `small mps: 24 fit, 25 do not`.
    pub fn answers(&self) -> Vec<String> {
        let line = |(of, known): (&Combination, &BTreeMap<u32, Fits>)| {
            let fits = known.iter().filter(|(_, f)| **f == Fits::Yes).map(|(d, _)| *d).max();
            let no = known.iter().filter(|(_, f)| **f == Fits::No).map(|(d, _)| *d).min();
            let unknown = known.iter().find(|(_, f)| **f == Fits::Unknown).map(|(d, _)| *d);
            let name = format!("{} {}", of.0, of.1);
            match (fits, no, unknown) {
                (_, _, Some(d)) => format!("{name}: not known, degree {d} failed"),
                (Some(f), Some(n), _) => format!("{name}: {f} fit, {n} do not"),
                (Some(f), None, _) => format!("{name}: {f} fit, more were not tried"),
                (None, Some(n), _) => format!("{name}: not even {n} fit"),
                (None, None, None) => format!("{name}: not known"),
            }
        };
        self.known.iter().map(line).collect()
    }
}

fn bounds(experiment: &Experiment) -> (u32, u32) {
    let degrees = &experiment.axes.degree;
    (degrees.iter().copied().min().unwrap_or(1), degrees.iter().copied().max().unwrap_or(1))
}

/// The label of one member alone and the mode's, which `solo` is naive sharing of.
fn combination(cell: &CellRecord) -> Combination {
    let member = cell.members.first().map(|m| m.solo.replacen(" solo", "", 1)).unwrap_or_default();
    let sharing = if cell.sharing == "solo" { "naive" } else { &cell.sharing };
    (member, sharing.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Search against a card on which so many fit; the degrees that were tried.
    fn search(capacity: u32, least: u32, most: u32) -> Vec<u32> {
        let mut known = BTreeMap::new();
        let mut tried = Vec::new();
        while let Some(degree) = next(&known, least, most) {
            assert!(!known.contains_key(&degree), "{degree} is tried twice in {tried:?}");
            known.insert(degree, if degree <= capacity { Fits::Yes } else { Fits::No });
            tried.push(degree);
        }
        tried
    }

    #[test]
    fn degrees_double_until_one_does_not_fit_and_then_the_gap_is_halved() {
        assert_eq!(search(5, 1, 64), [1, 2, 4, 8, 6, 5]);
        assert_eq!(search(1, 1, 64), [1, 2]);
        assert_eq!(search(0, 1, 64), [1]);
        assert_eq!(search(100, 1, 48), [1, 2, 4, 8, 16, 32, 48]);
    }

    #[test]
    fn every_capacity_is_found_exactly_and_in_few_steps() {
        for capacity in 1..=256 {
            let tried = search(capacity, 1, 256);
            let largest = tried.iter().copied().filter(|d| *d <= capacity).max();
            assert_eq!(largest, Some(capacity));
            assert!(capacity == 256 || tried.contains(&(capacity + 1)), "the next one was tried: {tried:?}");
            assert!(tried.len() <= 17, "{tried:?}");
        }
    }

    #[test]
    fn a_failure_that_is_no_answer_ends_the_search() {
        let known = BTreeMap::from([(1, Fits::Yes), (2, Fits::Unknown)]);
        assert_eq!(next(&known, 1, 64), None);
    }
}
