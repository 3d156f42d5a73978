//! Divides an experiment among several campaigns, on several GPUs or machines, or the plan of one campaign among its cards.
//!
//! In: the cells of an experiment. Out: those of one shard, with the baselines that they need: each shard measures its own, so
//! that no group is compared with a baseline of another GPU. The division depends on the experiment and its selection alone, never
//! on the machine, so that machines which refuse different cells neither lose nor repeat any.
//!
//! The cells, sorted by their baselines, are divided into consecutive parts such that the largest has as few runs as possible.

use std::collections::{BTreeSet, HashMap};

use collo_store::Shard;

use super::PlannedCell;
use crate::cell::Cell;
use crate::expand::Expanded;

/// Runs of a baseline for each of a group: one opens the block, one closes it.
const OF_BASELINE: usize = 2;

/// A cell that is assigned as a whole.
struct Unit {
    /// Place in the experiment.
    place: usize,
    /// Places of the baselines that it needs.
    needs: BTreeSet<usize>,
    /// Its own runs in each repetition.
    runs: usize,
}

/// The cells of a shard, in the order of the experiment. Empty if there are fewer cells than shards.
pub fn of(cells: Vec<Expanded>, shard: Shard) -> Vec<Expanded> {
    let parts = divide(units(&cells), shard.count as usize);
    let mut wanted = BTreeSet::new();
    let mut asked = BTreeSet::new();
    for unit in parts.get(shard.index as usize - 1).into_iter().flatten() {
        asked.insert(unit.place);
        wanted.insert(unit.place);
        wanted.extend(&unit.needs);
    }
    let kept = cells.into_iter().enumerate().filter(|(place, _)| wanted.contains(place));
    // A baseline that was asked for goes with whoever needs it.
    kept.map(|(place, expanded)| Expanded {
        asked: expanded.asked && (asked.contains(&place) || expanded.cell.is_reference()),
        ..expanded
    })
    .collect()
}

/// The largest number of shards, up to this one, of which none is empty.
pub fn most_shards(cells: &[Expanded], asked: u32) -> u32 {
    let most = asked.min(u32::try_from(cells.len()).unwrap_or(u32::MAX));
    (2..=most).rev().find(|count| !of(cells.to_vec(), Shard { index: *count, count: *count }).is_empty()).unwrap_or(1)
}

/// The cells of each of so many parts of a plan, by index: what a cell is compared with is in every part that needs it.
pub(super) fn parts(cells: &[PlannedCell], count: usize) -> Vec<Vec<usize>> {
    let places: HashMap<&str, usize> = cells.iter().enumerate().map(|(place, c)| (c.record.cell.as_str(), place)).collect();
    let compared = |c: &PlannedCell| -> BTreeSet<usize> {
        let with = c.record.against.iter().chain(&c.record.alone_on_slice);
        with.filter_map(|label| places.get(label.as_str()).copied()).collect()
    };
    let needed: BTreeSet<usize> = cells.iter().flat_map(&compared).collect();
    // A member alone on a slice is itself compared with one alone on the whole GPU.
    let needs = |c: &PlannedCell| -> BTreeSet<usize> {
        let own = compared(c);
        own.iter().flat_map(|place| compared(&cells[*place])).chain(own.iter().copied()).collect()
    };
    let free = cells.iter().enumerate().filter(|(place, _)| !needed.contains(place));
    let runs = |c: &PlannedCell| if c.record.baseline { OF_BASELINE } else { 1 };
    let mut units: Vec<Unit> = free.map(|(place, c)| Unit { place, needs: needs(c), runs: runs(c) }).collect();
    keep_together(&mut units);
    let all = |part: Vec<Unit>| {
        let cells: BTreeSet<usize> = part.iter().flat_map(|unit| unit.needs.iter().copied().chain([unit.place])).collect();
        cells.into_iter().collect()
    };
    divide(units, count).into_iter().map(all).collect()
}

fn units(cells: &[Expanded]) -> Vec<Unit> {
    let references = cells.iter().enumerate().filter(|(_, e)| e.cell.is_reference());
    let places: HashMap<String, usize> = references.map(|(place, e)| (e.cell.reference_key(), place)).collect();
    let needs = |cell: &Cell| -> BTreeSet<usize> {
        cell.references(None).iter().filter_map(|other| places.get(&other.reference_key()).copied()).collect()
    };
    let needed: BTreeSet<usize> = cells.iter().flat_map(|e| needs(&e.cell)).collect();
    let mut units: Vec<Unit> = Vec::new();
    for (place, Expanded { cell, .. }) in cells.iter().enumerate() {
        if !cell.is_reference() {
            units.push(Unit { place, needs: needs(cell), runs: 1 });
        } else if !needed.contains(&place) {
            units.push(Unit { place, needs: BTreeSet::new(), runs: OF_BASELINE });
        }
    }
    keep_together(&mut units);
    units
}

/// Cells with the same baselines stay together as far as possible: a baseline is measured by each part that needs it.
fn keep_together(units: &mut [Unit]) {
    units.sort_by(|a, b| (a.needs.iter().collect::<Vec<_>>(), a.place).cmp(&(b.needs.iter().collect::<Vec<_>>(), b.place)));
}

/// Consecutive parts, the largest as small as possible, none empty while there are units.
fn divide(units: Vec<Unit>, count: usize) -> Vec<Vec<Unit>> {
    // The least limit with which so many parts are enough.
    let (mut low, mut high) = (1, cost(&units));
    while low < high {
        let limit = low + (high - low) / 2;
        if needed(&units, limit).is_some_and(|parts| parts <= count) { high = limit } else { low = limit + 1 }
    }
    let mut parts: Vec<Vec<Unit>> = Vec::new();
    let mut left = units.len();
    for unit in units {
        let full = parts.last().is_none_or(|part: &Vec<Unit>| {
            let more_parts = count - parts.len();
            more_parts > 0 && (left <= more_parts || cost_with(part, &unit) > low)
        });
        if full {
            parts.push(Vec::new());
        }
        left -= 1;
        if let Some(part) = parts.last_mut() {
            part.push(unit);
        }
    }
    parts.resize_with(count, Vec::new);
    parts
}

/// How many parts there are if none has more runs than the limit; `None` if one cell alone has more.
fn needed(units: &[Unit], limit: usize) -> Option<usize> {
    let (mut parts, mut own, mut baselines) = (0, 0, BTreeSet::<usize>::new());
    for unit in units {
        let with: BTreeSet<usize> = baselines.union(&unit.needs).copied().collect();
        if parts > 0 && own + unit.runs + OF_BASELINE * with.len() <= limit {
            (own, baselines) = (own + unit.runs, with);
        } else {
            (parts, own, baselines) = (parts + 1, unit.runs, unit.needs.clone());
        }
        if own + OF_BASELINE * baselines.len() > limit {
            return None;
        }
    }
    Some(parts)
}

/// Runs of a part in each repetition, its baselines included.
fn cost<'a>(units: impl IntoIterator<Item = &'a Unit>) -> usize {
    let (mut runs, mut baselines) = (0, BTreeSet::<usize>::new());
    for unit in units {
        runs += unit.runs;
        baselines.extend(&unit.needs);
    }
    runs + OF_BASELINE * baselines.len()
}

fn cost_with(part: &[Unit], unit: &Unit) -> usize {
    cost(part.iter().chain([unit]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expand::expand;
    use crate::fixture::experiment;

    /// The labels of each shard's cells.
    fn shards(toml: &str, count: u32) -> Vec<Vec<String>> {
        let experiment = experiment(&format!("repetitions = 1\n{toml}"));
        let cells = expand(&experiment, None).expect("right");
        let labels = |index| of(cells.clone(), Shard { index, count }).iter().map(|e| e.cell.label()).collect();
        (1..=count).map(labels).collect()
    }

    fn is_solo(label: &str) -> bool {
        label.contains(" solo")
    }

    #[test]
    fn every_cell_is_in_one_shard_and_its_baseline_beside_it() {
        for count in 1..=7 {
            let all = shards("[axes]\nworkload = [\"tiny\", \"sleep\"]\ndegree = [1, 2, 3, 4]\n", count);
            let mut groups: Vec<&String> = all.iter().flatten().filter(|l| !is_solo(l)).collect();
            assert_eq!(groups.len(), 6, "{all:?}");
            groups.sort();
            groups.dedup();
            assert_eq!(groups.len(), 6, "{all:?}");
            for shard in &all {
                for group in shard.iter().filter(|l| !is_solo(l)) {
                    let workload = group.split('×').next().expect("a name");
                    assert!(
                        shard.iter().any(|l| is_solo(l) && l.starts_with(workload)),
                        "{group} without its baseline: {shard:?}"
                    );
                }
                for solo in shard.iter().filter(|l| is_solo(l)) {
                    let workload = solo.split(' ').next().expect("a name");
                    assert!(shard.iter().any(|l| !is_solo(l) && l.starts_with(workload)), "{solo} is for nobody: {shard:?}");
                }
            }
        }
    }

    #[test]
    fn workloads_are_not_torn_apart_where_shards_are_as_equal_without() {
        let two = shards("[axes]\nworkload = [\"tiny\", \"sleep\"]\ndegree = [2, 3, 4]\n", 2);
        assert!(two[0].iter().all(|l| l.starts_with("tiny")) && two[1].iter().all(|l| l.starts_with("sleep")), "{two:?}");
    }

    #[test]
    fn one_workload_is_divided_into_shards_of_nearly_equal_length() {
        let two = shards("[axes]\nworkload = \"tiny\"\ndegree = [2, 3, 4, 5, 6]\n", 2);
        let groups: Vec<usize> = two.iter().map(|shard| shard.iter().filter(|l| !is_solo(l)).count()).collect();
        assert_eq!(groups, [3, 2]);
    }

    #[test]
    fn what_is_only_alone_is_divided_too_and_more_shards_than_cells_are_empty() {
        let three = shards("[axes]\nworkload = [\"tiny\", \"sleep\"]\ndegree = 1\n", 3);
        assert_eq!(three.iter().map(Vec::len).collect::<Vec<_>>(), [1, 1, 0]);
        let most = |toml: &str, asked| most_shards(&expand(&experiment(toml), None).expect("right"), asked);
        assert_eq!(most("[axes]\nworkload = [\"tiny\", \"sleep\"]\ndegree = 1\n", 3), 2);
        assert_eq!(most("[axes]\nworkload = \"tiny\"\ndegree = 2\n", 2), 1, "a group and its baseline");
        assert_eq!(most("[axes]\nworkload = \"tiny\"\ndegree = [2, 3, 4]\n", 2), 2);
    }
}
