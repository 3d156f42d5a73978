//! The largest degree that fits, for each workload and sharing mode: from the degree that should be it, else by doubling, then by
//! halving the gap.
//!
//! In: the stored runs of a campaign. Out: the next degree to try for each combination, until none is left. Pure; a campaign
//! grows one round at a time, so that an interrupted search continues where it stopped.

use std::collections::BTreeMap;

use collo_store::{CellRecord, Outcome, StoredRun, without_mode};
use collo_text::Diagnostic;

use crate::cell::Cell;
use crate::expand::{Expanded, expand};
use crate::experiment::Experiment;
use crate::facts::DeviceFacts;
use crate::plan::{self, Plan, plan};
use crate::prior::Prior;
use crate::select::Selection;

/// Whether a degree fits. If repetitions differ, the later variant takes precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fits {
    Yes,
    /// It failed for another reason: the search of this combination ends here.
    Unknown,
    /// The host ran out of memory, which says nothing about the GPU: the search ends here, too.
    Host,
    /// A member crashed before any member trained. On a full GPU even a library that cannot report it fails, so above a degree
    /// that ran it counts as too many.
    Unsure,
    /// Out of memory, or refused.
    No,
}

/// One workload with its settings in one sharing mode.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Combination {
    /// The label of the cell in which the member trains alone.
    solo: String,
    /// The mode's label; a single member counts as naive.
    mode: String,
}

impl Combination {
    fn of(cell: &Cell) -> Combination {
        Combination { solo: cell.terms()[0].member.solo().into(), mode: cell.mode().label() }
    }

    fn stored(cell: &CellRecord) -> Combination {
        let solo = cell.members.first().map(|m| m.solo.clone()).unwrap_or_default();
        Combination { solo, mode: if cell.sharing == "solo" { "naive".into() } else { cell.sharing.clone() } }
    }
}

/// Results for each combination, by degree.
#[derive(Debug, Clone, Default)]
pub struct Frontier {
    known: BTreeMap<Combination, BTreeMap<u32, Fits>>,
}

/// The degree to try next; `None` once the largest is found. A degree that should be the largest is where it begins: if it fits, the
/// next is tried, if not, the one before, in steps that double.
pub fn next(known: &BTreeMap<u32, Fits>, least: u32, most: u32, foreseen: Option<u32>) -> Option<u32> {
    let found = Conclusion::of(known);
    if found.unknown.is_some() {
        return None;
    }
    let foreseen = foreseen.map(|degree| degree.clamp(least, most));
    match (found.fits, found.too_many) {
        (None, None) => Some(foreseen.unwrap_or(least)),
        (None, Some(too_many)) => {
            // Not even the least.
            let step = foreseen.map_or(too_many, |foreseen| foreseen.abs_diff(too_many).max(1));
            (too_many > least).then(|| too_many.saturating_sub(step).max(least))
        }
        (Some(fits), None) if fits >= most => None,
        (Some(fits), None) => Some(
            match foreseen {
                Some(foreseen) if foreseen > fits => foreseen,
                Some(foreseen) => fits + (fits - foreseen).max(1),
                None => 2 * fits,
            }
            .min(most),
        ),
        (Some(fits), Some(too_many)) => (too_many > fits + 1).then(|| match foreseen {
            // Beside what should be the last that fits.
            Some(foreseen) if (fits + 1..too_many).contains(&foreseen) => foreseen,
            Some(foreseen) if foreseen == fits => fits + 1,
            Some(foreseen) if foreseen == too_many => too_many - 1,
            _ => fits + (too_many - fits) / 2,
        }),
    }
}

/// The conclusion from the degrees tried.
struct Conclusion {
    fits: Option<u32>,
    too_many: Option<u32>,
    /// A degree that failed without an answer.
    unknown: Option<u32>,
}

impl Conclusion {
    fn of(known: &BTreeMap<u32, Fits>) -> Conclusion {
        let least = |is: &dyn Fn(u32, Fits) -> bool| known.iter().find(|(d, f)| is(**d, **f)).map(|(d, _)| *d);
        let smallest = least(&|_, f| f == Fits::Yes);
        let is_above = |degree: u32| smallest.is_some_and(|ran| ran < degree);
        Conclusion {
            fits: known.iter().rev().find(|(_, f)| **f == Fits::Yes).map(|(d, _)| *d),
            too_many: least(&|d, f| f == Fits::No || f == Fits::Unsure && is_above(d)),
            unknown: least(&|d, f| matches!(f, Fits::Unknown | Fits::Host) || f == Fits::Unsure && !is_above(d)),
        }
    }
}

impl Frontier {
    /// From the stored runs.
    pub fn of<'a>(runs: impl Iterator<Item = &'a StoredRun>) -> Frontier {
        let mut frontier = Frontier::default();
        for run in runs {
            let fits = match &run.record.outcome {
                Outcome::Completed => Fits::Yes,
                Outcome::OutOfMemory { .. } => Fits::No,
                Outcome::HostOutOfMemory { .. } => Fits::Host,
                Outcome::Crashed { .. } if run.record.timeline.go_ns.is_none() => Fits::Unsure,
                // It will be run again.
                Outcome::Interrupted => continue,
                _ => Fits::Unknown,
            };
            frontier.learn(Combination::stored(&run.record.cell), run.record.cell.degree, fits);
        }
        frontier
    }

    fn learn(&mut self, of: Combination, degree: u32, fits: Fits) {
        let known = self.known.entry(of).or_default().entry(degree).or_insert(fits);
        // One repetition that does not fit is enough.
        *known = (*known).max(fits);
    }

    /// The plan of the next round; `None` when every combination has its answer. It has every cell of the campaign so far and
    /// those to try, and its order only the latter.
    pub fn round(
        &mut self,
        experiment: &Experiment,
        selection: Option<&Selection>,
        facts: &DeviceFacts,
        prior: &Prior,
    ) -> Result<Option<Plan>, Diagnostic> {
        let (least, most) = bounds(experiment);
        // All degrees that were or may be asked for, of which each combination takes its own.
        let mut wide = experiment.clone();
        wide.axes.degree = (least..=most).collect();
        let all = expand(&wide, selection)?;
        let foreseen = foreseen(&plan(&wide, &all, facts, prior));
        loop {
            let mut wanted: BTreeMap<Combination, u32> = BTreeMap::new();
            for Expanded { cell, .. } in &all {
                let of = Combination::of(cell);
                let known = self.known.get(&of).cloned().unwrap_or_default();
                if let Some(degree) = next(&known, least, most, foreseen.get(&of).copied()) {
                    wanted.insert(of, degree);
                }
            }
            if wanted.is_empty() {
                return Ok(None);
            }
            let is_wanted = |cell: &Cell| wanted.get(&Combination::of(cell)) == Some(&cell.degree());
            let is_known = |cell: &Cell| self.known.get(&Combination::of(cell)).is_some_and(|k| k.contains_key(&cell.degree()));
            let is_in_it = |e: &&Expanded| is_wanted(&e.cell) || is_known(&e.cell) || e.cell.is_baseline();
            let cells: Vec<Expanded> = all.iter().filter(is_in_it).map(|e| Expanded { asked: true, ..e.clone() }).collect();
            let mut plan = plan(experiment, &cells, facts, prior);
            plan.keep(|_, planned| is_wanted(&planned.cell));
            let refused = self.learn_refused(&plan, is_wanted, facts);
            if !plan.order.is_empty() {
                return Ok(Some(plan));
            }
            // Everything that was wanted is refused: its answer is known now.
            if !refused {
                return Ok(None);
            }
        }
    }

    /// Record the wanted cells that were refused; false if there are none.
    fn learn_refused(&mut self, plan: &Plan, is_wanted: impl Fn(&Cell) -> bool, facts: &DeviceFacts) -> bool {
        let mut any = false;
        for cell in plan.refusals.iter().map(|r| &r.cell).filter(|cell| is_wanted(cell)) {
            let fits = if plan::beyond_the_host(cell, facts) { Fits::Host } else { Fits::No };
            self.learn(Combination::of(cell), cell.degree(), fits);
            any = true;
        }
        any
    }

    /// The answers in words, one line for each combination: `small mps: 24 fit, 25 do not`.
    pub fn answers(&self) -> Vec<String> {
        let line = |(of, known): (&Combination, &BTreeMap<u32, Fits>)| {
            let Conclusion { fits, too_many, unknown } = Conclusion::of(known);
            let name = format!("{} {}", without_mode(&of.solo), of.mode);
            match (fits, too_many, unknown) {
                (Some(f), _, Some(d)) if known[&d] == Fits::Host => {
                    format!("{name}: {f} fit, {d} exceed the memory of this machine, which says nothing about the GPU")
                }
                (None, _, Some(d)) if known[&d] == Fits::Host => {
                    format!("{name}: unknown, the memory of this machine does not hold even {d}")
                }
                (_, _, Some(d)) => format!("{name}: unknown, degree {d} failed"),
                (Some(f), Some(n), _) if known[&n] == Fits::Unsure => {
                    format!("{name}: {f} fit, {n} probably do not: a member crashed before it trained")
                }
                (Some(f), Some(n), _) => format!("{name}: {f} fit, {n} do not"),
                (Some(f), None, _) => format!("{name}: {f} fit, more were not tried"),
                (None, Some(n), _) => format!("{name}: not even {n} fit"),
                (None, None, None) => format!("{name}: unknown"),
            }
        };
        self.known.iter().map(line).collect()
    }
}

/// The largest degree that should fit, by what is known of its members; absent where that is nothing.
fn foreseen(all: &Plan) -> BTreeMap<Combination, u32> {
    let mut degrees: BTreeMap<Combination, u32> = BTreeMap::new();
    let mut least: BTreeMap<Combination, u32> = BTreeMap::new();
    for planned in &all.cells {
        let (of, degree) = (Combination::of(&planned.cell), planned.cell.degree());
        match planned.forecast.memory.fits {
            Some(true) => degrees.entry(of).and_modify(|most| *most = degree.max(*most)).or_insert(degree),
            Some(false) => least.entry(of).and_modify(|known| *known = degree.min(*known)).or_insert(degree),
            None => continue,
        };
    }
    // Where not even the least should fit, that is where to begin.
    for (of, degree) in least {
        degrees.entry(of).or_insert(degree);
    }
    degrees
}

fn bounds(experiment: &Experiment) -> (u32, u32) {
    let degrees = &experiment.axes.degree;
    (degrees.iter().copied().min().unwrap_or(1), degrees.iter().copied().max().unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Search on a GPU with this capacity; returns the degrees tried.
    fn search(capacity: u32, least: u32, most: u32) -> Vec<u32> {
        search_from(None, capacity, least, most)
    }

    fn search_from(foreseen: Option<u32>, capacity: u32, least: u32, most: u32) -> Vec<u32> {
        let mut known = BTreeMap::new();
        let mut tried = Vec::new();
        while let Some(degree) = next(&known, least, most, foreseen) {
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
    fn a_search_begins_at_the_degree_that_should_be_the_largest_and_two_or_three_runs_are_enough_if_it_nearly_is() {
        assert_eq!(search_from(Some(23), 23, 1, 64), [23, 24]);
        assert_eq!(search_from(Some(23), 24, 1, 64), [23, 24, 25]);
        assert_eq!(search_from(Some(23), 22, 1, 64), [23, 22]);
        assert_eq!(search_from(Some(23), 30, 1, 64), [23, 24, 25, 27, 31, 29, 30]);
        assert_eq!(search_from(Some(23), 12, 1, 64), [23, 22, 21, 19, 15, 7, 11, 13, 12]);
        assert_eq!(search_from(Some(90), 64, 1, 64), [64], "not beyond what is asked for");
        assert_eq!(search_from(Some(1), 0, 1, 64), [1]);
        for foreseen in 1..=64 {
            for capacity in 0..=64 {
                let tried = search_from(Some(foreseen), capacity, 1, 64);
                assert_eq!(tried.iter().copied().filter(|d| *d <= capacity).max().unwrap_or(0), capacity, "{foreseen} {tried:?}");
                assert!(capacity == 64 || tried.contains(&(capacity + 1)), "{foreseen} {capacity}: {tried:?}");
            }
        }
    }

    #[test]
    fn a_failure_that_is_no_answer_ends_the_search() {
        for fits in [Fits::Unknown, Fits::Host] {
            let known = BTreeMap::from([(1, Fits::Yes), (2, fits)]);
            assert_eq!(next(&known, 1, 64, None), None);
        }
    }

    #[test]
    fn a_crash_before_the_training_is_taken_as_too_many_above_a_degree_that_ran_and_the_search_goes_on() {
        let known = BTreeMap::from([(1, Fits::Yes), (2, Fits::Yes), (4, Fits::Unsure)]);
        assert_eq!(next(&known, 1, 64, None), Some(3));
        // Where nothing ran the script itself may be wrong.
        assert_eq!(next(&BTreeMap::from([(1, Fits::Unsure)]), 1, 64, None), None);
    }

    /// The answer for a combination with these results.
    fn answer(known: &[(u32, Fits)]) -> String {
        let mut frontier = Frontier::default();
        for (degree, fits) in known {
            frontier.learn(Combination { solo: "small".into(), mode: "mps".into() }, *degree, *fits);
        }
        frontier.answers().remove(0)
    }

    #[test]
    fn the_answer_says_how_sure_it_is() {
        assert_eq!(answer(&[(1, Fits::Yes), (2, Fits::No)]), "small mps: 1 fit, 2 do not");
        let unsure = "small mps: 1 fit, 2 probably do not: a member crashed before it trained";
        assert_eq!(answer(&[(1, Fits::Yes), (2, Fits::Unsure)]), unsure);
        assert_eq!(answer(&[(1, Fits::Yes), (2, Fits::Unsure), (2, Fits::No)]), "small mps: 1 fit, 2 do not");
        assert_eq!(answer(&[(1, Fits::Unsure)]), "small mps: unknown, degree 1 failed");
        let host = "small mps: 1 fit, 2 exceed the memory of this machine, which says nothing about the GPU";
        assert_eq!(answer(&[(1, Fits::Yes), (2, Fits::Host)]), host);
        assert_eq!(answer(&[(1, Fits::Host)]), "small mps: unknown, the memory of this machine does not hold even 1");
    }
}
