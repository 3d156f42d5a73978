//! Which groups are predicted by a fit that has not seen them. In: measured groups. Out: folds.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use super::MeasuredGroup;

/// What the fit that predicts a member has not seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unseen {
    /// The families of all members of its group: neither of a pair.
    EveryFamily,
    /// The member's own family.
    OwnFamily,
    /// Its group and the repeats of it: where there are too few families.
    Group,
}

/// A fit, and what it is judged by.
pub struct Fold {
    pub learnt: Vec<usize>,
    /// Group and member.
    pub judged: Vec<(usize, usize)>,
}

/// With fewer groups nothing is fitted.
pub const FEWEST_TO_FIT: usize = 4;
/// Of more families several are left out together: every two of them are a fit.
const MOST_BLOCKS: usize = 16;
/// Of more groups several are left out together.
const MOST_FOLDS: usize = 40;

impl Unseen {
    pub const ALL: [Unseen; 3] = [Unseen::EveryFamily, Unseen::OwnFamily, Unseen::Group];

    /// The folds whose fit has something to learn from.
    pub fn folds(self, groups: &[MeasuredGroup]) -> Vec<Fold> {
        let blocks = blocks(groups);
        let of = |group: usize| -> BTreeSet<usize> { groups[group].members.iter().map(|m| blocks[m.family.as_str()]).collect() };
        let sets: Vec<BTreeSet<usize>> = (0..groups.len()).map(of).collect();
        let all_of = |group: usize| (0..groups[group].members.len()).map(move |member| (group, member));
        let mut folds: BTreeMap<Vec<usize>, Fold> = BTreeMap::new();
        let mut judged = |key: Vec<usize>, row: (usize, usize)| {
            folds.entry(key).or_insert_with(|| Fold { learnt: Vec::new(), judged: Vec::new() }).judged.push(row);
        };
        match self {
            Unseen::EveryFamily => {
                (0..groups.len()).flat_map(all_of).for_each(|row| judged(sets[row.0].iter().copied().collect(), row));
            }
            Unseen::OwnFamily => (0..groups.len())
                .flat_map(all_of)
                .for_each(|row| judged(vec![blocks[groups[row.0].members[row.1].family.as_str()]], row)),
            Unseen::Group => {
                let labels: BTreeSet<&str> = groups.iter().map(|group| group.label.as_str()).collect();
                let place = |group: usize| labels.range(..groups[group].label.as_str()).count() % MOST_FOLDS;
                (0..groups.len()).flat_map(all_of).for_each(|row| judged(vec![place(row.0)], row));
            }
        }
        for (key, fold) in &mut folds {
            let own: BTreeSet<usize> = fold.judged.iter().map(|(group, _)| *group).collect();
            fold.learnt = match self {
                Unseen::Group => (0..groups.len()).filter(|group| !own.contains(group)).collect(),
                _ => (0..groups.len()).filter(|group| key.iter().all(|block| !sets[*group].contains(block))).collect(),
            };
        }
        folds.into_values().filter(|fold| fold.learnt.len() >= FEWEST_TO_FIT).collect()
    }
}

/// A number for each family; of many, for several in the order of their names.
fn blocks(groups: &[MeasuredGroup]) -> BTreeMap<&str, usize> {
    let families: BTreeSet<&str> = groups.iter().flat_map(|group| &group.members).map(|m| m.family.as_str()).collect();
    families.into_iter().enumerate().map(|(place, family)| (family, place % MOST_BLOCKS)).collect()
}

/// The families of a group's members, each once: groups of one set err alike.
pub fn family_set(group: &MeasuredGroup) -> String {
    let families: BTreeSet<&str> = group.members.iter().map(|member| member.family.as_str()).collect();
    families.into_iter().collect::<Vec<_>>().join(" + ")
}

impl fmt::Display for Unseen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unseen::EveryFamily => "every family of the group left out",
            Unseen::OwnFamily => "each member's own family left out",
            Unseen::Group => "the group left out",
        })
    }
}

#[cfg(test)]
mod tests;
