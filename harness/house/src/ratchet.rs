//! Counts compared with ceilings that may only fall. In: counts, and the rows of a section. Out: problems; or the rows lowered.
//!
//! A count above its ceiling is a problem, and so is a ceiling that is too far above its count, or not needed any more: what was won
//! is not lost again. Lowering never raises: a new row, or a higher one, takes its number from rows that became less.

use std::collections::BTreeMap;

use crate::ceilings::{Ceiling, Rows};

/// What a rule counted of a name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Count {
    pub number: usize,
    /// Where to look, a line each.
    pub places: Vec<String>,
}

impl From<usize> for Count {
    fn from(number: usize) -> Count {
        Count { number, places: Vec::new() }
    }
}

pub type Counts = BTreeMap<String, Count>;

/// How the counts of a section are compared with its rows.
#[derive(Debug, Clone, Copy)]
pub struct Ratchet {
    /// In `ceilings.toml`.
    pub section: &'static str,
    /// What is counted: `lines of production code`.
    pub unit: &'static str,
    /// The ceiling of what has no row.
    pub general: usize,
    /// Ceilings are multiples of it.
    pub step: usize,
    /// How far a ceiling may be above its count.
    pub slack: usize,
    pub way_out: &'static str,
    /// Whether what the first counts may have come from the second: a room that moved to another package.
    pub moved: fn(&str, &str) -> bool,
}

const LOWER: &str = "`cargo run -p collo-house -- lower`";

impl Ratchet {
    fn rounded(&self, number: usize) -> usize {
        number.next_multiple_of(self.step)
    }

    /// What is not as the rows say, each with its way out.
    pub fn problems(&self, counts: &Counts, rows: &Rows) -> Vec<String> {
        let is_fresh = |name: &str| self.number(counts, name) > self.general && !rows.contains_key(name);
        let is_stale = |name: &str| self.number(counts, name) <= self.general;
        let fresh: Vec<&String> = counts.keys().filter(|name| is_fresh(name)).collect();
        let stale: Vec<&String> = rows.keys().filter(|name| is_stale(name)).collect();
        let above = counts.iter().filter_map(|(name, count)| {
            let old = stale.iter().find(|old| is_fresh(name) && self.is_enough(&rows[**old], count) && (self.moved)(name, old));
            match old {
                Some(old) => Some(format!("`{name}` is what is left of `{old}` in [{}]: {LOWER} writes its row", self.section)),
                None => self.above(name, count, rows),
            }
        });
        // A row whose place another name took is that name's problem.
        let is_taken = |old: &str| fresh.iter().any(|name| (self.moved)(name, old) || (self.moved)(old, name));
        let open = rows.iter().filter(|(name, _)| !(is_stale(name) && is_taken(name)));
        above.chain(open.filter_map(|(name, ceiling)| self.too_high(name, ceiling, counts))).collect()
    }

    fn number(&self, counts: &Counts, name: &str) -> usize {
        counts.get(name).map_or(0, |count| count.number)
    }

    fn is_enough(&self, ceiling: &Ceiling, count: &Count) -> bool {
        match ceiling {
            Ceiling::Reason(_) => true,
            Ceiling::Number(number) => *number >= self.rounded(count.number),
        }
    }

    fn above(&self, name: &str, count: &Count, rows: &Rows) -> Option<String> {
        let (allowed, whose) = match rows.get(name) {
            Some(Ceiling::Reason(_)) => return None,
            Some(Ceiling::Number(number)) => (*number, "its ceiling"),
            None => (self.general, "the general ceiling"),
        };
        let Count { number, places } = count;
        let places: String = places.iter().map(|place| format!("\n    {place}")).collect();
        (*number > allowed).then(|| format!("`{name}`: {number} {}, {whose} is {allowed}: {}{places}", self.unit, self.way_out))
    }

    fn too_high(&self, name: &str, ceiling: &Ceiling, counts: &Counts) -> Option<String> {
        let number = self.number(counts, name);
        match ceiling {
            _ if number <= self.general => Some(format!(
                "remove the row of `{name}` from [{}]: {number} {} need none; {LOWER} does it",
                self.section, self.unit
            )),
            Ceiling::Number(ceiling) if *ceiling > number + self.slack => Some(format!(
                "lower the ceiling of `{name}` in [{}] from {ceiling} to {}: {number} {} are left; {LOWER} does it",
                self.section,
                self.rounded(number),
                self.unit
            )),
            _ => None,
        }
    }

    /// The rows that these counts need, and what is above its ceiling all the same.
    pub fn lowered(&self, counts: &Counts, rows: &Rows) -> (Rows, Vec<String>) {
        let (mut lowered, mut spares) = self.kept(counts, rows);
        let mut problems = Vec::new();
        for (name, count) in counts {
            let has = match lowered.get(name) {
                Some(Ceiling::Reason(_)) => continue,
                Some(Ceiling::Number(number)) => *number,
                None => 0,
            };
            if count.number <= self.general.max(has) {
                continue;
            }
            let mut old: Vec<&mut Spare> = spares.iter_mut().filter(|spare| (self.moved)(name, spare.of)).collect();
            if let Some(reason) = old.iter().find_map(|spare| spare.reason) {
                lowered.insert(name.clone(), reason.clone());
            } else if take(&mut old, self.rounded(count.number) - has) {
                lowered.insert(name.clone(), Ceiling::Number(self.rounded(count.number)));
            } else {
                problems.extend(self.above(name, count, &lowered));
            }
        }
        (lowered, problems)
    }

    /// The rows that are still needed, none higher than before, and what the others leave.
    fn kept<'a>(&self, counts: &Counts, rows: &'a Rows) -> (Rows, Vec<Spare<'a>>) {
        let mut kept = Rows::new();
        let mut spares = Vec::new();
        for (name, ceiling) in rows {
            let number = self.number(counts, name);
            let needed = number > self.general;
            let (row, left) = match ceiling {
                Ceiling::Reason(_) => (ceiling.clone(), 0),
                Ceiling::Number(old) if needed => {
                    let lower = self.rounded(number).min(*old);
                    (Ceiling::Number(lower), old - lower)
                }
                Ceiling::Number(old) => (ceiling.clone(), *old),
            };
            let reason = Some(ceiling).filter(|c| !needed && matches!(c, Ceiling::Reason(_)));
            spares.push(Spare { of: name, left, reason });
            if needed {
                kept.insert(name.clone(), row);
            }
        }
        (kept, spares)
    }
}

/// What a row does not need any more.
struct Spare<'a> {
    of: &'a str,
    left: usize,
    /// Of a row that is not needed at all.
    reason: Option<&'a Ceiling>,
}

/// Take a number from what is spare, if there is so much.
fn take(spares: &mut [&mut Spare], number: usize) -> bool {
    if spares.iter().map(|spare| spare.left).sum::<usize>() < number {
        return false;
    }
    let mut lacking = number;
    for spare in spares {
        let taken = lacking.min(spare.left);
        spare.left -= taken;
        lacking -= taken;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same_room(new: &str, old: &str) -> bool {
        new.split_once('/').map(|n| n.1) == old.split_once('/').map(|o| o.1)
    }

    const ROOMS: Ratchet =
        Ratchet { section: "rooms", unit: "lines", general: 3000, step: 50, slack: 150, way_out: "split it", moved: same_room };

    fn counts(of: &[(&str, usize)]) -> Counts {
        of.iter().map(|(name, number)| (name.to_string(), (*number).into())).collect()
    }

    fn rows(of: &[(&str, usize)]) -> Rows {
        of.iter().map(|(name, number)| (name.to_string(), Ceiling::Number(*number))).collect()
    }

    #[test]
    fn counts_at_or_below_their_ceilings_are_no_problem() {
        assert!(
            ROOMS
                .problems(&counts(&[("a/x", 3000), ("a/y", 4000), ("a/z", 3851)]), &rows(&[("a/y", 4000), ("a/z", 4000)]))
                .is_empty()
        );
    }

    #[test]
    fn a_count_above_its_ceiling_is_a_problem() {
        assert_eq!(
            ROOMS.problems(&counts(&[("a/x", 3001), ("a/y", 4001)]), &rows(&[("a/y", 4000)])),
            ["`a/x`: 3001 lines, the general ceiling is 3000: split it", "`a/y`: 4001 lines, its ceiling is 4000: split it"]
        );
    }

    #[test]
    fn a_ceiling_that_is_too_high_or_not_needed_is_a_problem() {
        let found =
            ROOMS.problems(&counts(&[("a/x", 3849), ("a/y", 2999)]), &rows(&[("a/x", 4000), ("a/y", 3050), ("a/z", 3050)]));
        assert_eq!(found.len(), 3);
        assert!(found[0].starts_with("lower the ceiling of `a/x` in [rooms] from 4000 to 3850"), "{}", found[0]);
        assert!(found[1].starts_with("remove the row of `a/y`"), "{}", found[1]);
        assert!(found[2].starts_with("remove the row of `a/z`"), "{}", found[2]);
    }

    #[test]
    fn what_moved_is_one_problem() {
        let found = ROOMS.problems(&counts(&[("b/x", 3900)]), &rows(&[("a/x", 4000)]));
        assert_eq!(found, ["`b/x` is what is left of `a/x` in [rooms]: `cargo run -p collo-house -- lower` writes its row"]);
        let found = ROOMS.problems(&counts(&[("b/x", 4001)]), &rows(&[("a/x", 4000)]));
        assert_eq!(found, ["`b/x`: 4001 lines, the general ceiling is 3000: split it"]);
    }

    #[test]
    fn lowering_follows_what_fell_moved_or_is_gone() {
        let (lower, problems) = ROOMS.lowered(
            &counts(&[("a/x", 3501), ("a/y", 2000), ("b/moved", 4990)]),
            &rows(&[("a/x", 4000), ("a/y", 3100), ("a/gone", 3100), ("a/moved", 5000)]),
        );
        assert_eq!((lower, problems), (rows(&[("a/x", 3550), ("b/moved", 5000)]), vec![]));
    }

    #[test]
    fn lowering_never_raises() {
        let before = rows(&[("a/x", 4000), ("a/moved", 5000)]);
        let (lower, problems) = ROOMS.lowered(&counts(&[("a/x", 4001), ("a/new", 3500), ("b/moved", 5001)]), &before);
        assert_eq!(lower, rows(&[("a/x", 4000)]));
        assert_eq!(problems.len(), 3, "{problems:#?}");
    }

    #[test]
    fn a_row_with_a_reason_allows_any_count_as_long_as_there_is_one() {
        let rows: Rows = [("a/x".to_string(), Ceiling::Reason("because".into()))].into();
        assert!(ROOMS.problems(&counts(&[("a/x", 9000)]), &rows).is_empty());
        assert_eq!(ROOMS.problems(&counts(&[("a/x", 1)]), &rows).len(), 1);
        assert_eq!(ROOMS.lowered(&counts(&[("a/x", 9000)]), &rows).0, rows);
        assert!(ROOMS.lowered(&counts(&[]), &rows).0.is_empty());
        let moved: Rows = [("b/x".to_string(), Ceiling::Reason("because".into()))].into();
        assert_eq!(ROOMS.lowered(&counts(&[("b/x", 9000)]), &rows), (moved, vec![]));
    }
}
