//! From profiles to explicit placements.
//!
//! Instances must not overlap on the grid, may only start where their profile allows, and share the GPU's compute slices and
//! engines. All are placed together, because one placed by itself may take the only place of another: a `3g` at 0 shuts out `2g +
//! 2g`, which leave it room at 4. The grid has at most 12 units on every known GPU, so the search is exhaustive.

use std::collections::BTreeMap;
use std::sync::Arc;

use collo_text::Diagnostic;

use super::{GpuModel, Instance, Profile};

/// A limit that the sum of all instances exceeds, wherever they are placed.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Limit {
    /// Where instances may lie is unknown.
    Unplaced,
    Most {
        profile: Arc<Profile>,
        most: u32,
    },
    Slices {
        wanted: u32,
        there: u32,
    },
    Engines {
        name: &'static str,
        wanted: u32,
        there: u32,
    },
    Units {
        wanted: u32,
        there: u32,
    },
}

impl GpuModel {
    /// The places of these instances, sorted, beside the existing ones; or why they do not fit, and what would.
    pub fn place(&self, wanted: &[Arc<Profile>], beside: &[Instance]) -> Result<Vec<Instance>, Diagnostic> {
        self.room(wanted, beside).ok_or_else(|| self.why(wanted, beside))
    }

    /// The same, without the message.
    pub(super) fn room(&self, wanted: &[Arc<Profile>], beside: &[Instance]) -> Option<Vec<Instance>> {
        if self.limit(wanted, beside).is_some() {
            return None;
        }
        let taken = beside.iter().fold(0, |taken, i| taken | bits(i.start, i.profile.units().unwrap_or(0)));
        let mut placed = Vec::new();
        if !arrange(&self.largest_first(wanted), taken, &mut placed) {
            return None;
        }
        placed.sort_by_key(|i| i.start);
        Some(placed)
    }

    /// In the order in which they are tried: those with the fewest places first.
    pub(super) fn largest_first(&self, profiles: &[Arc<Profile>]) -> Vec<Arc<Profile>> {
        let mut sorted = profiles.to_vec();
        let rank = |p: &Arc<Profile>| self.profiles.iter().position(|other| other.name == p.name);
        sorted.sort_by_key(|p| (std::cmp::Reverse((p.units(), p.slices)), rank(p)));
        sorted
    }

    /// The first limit exceeded, checked before any placement.
    pub(super) fn limit(&self, wanted: &[Arc<Profile>], beside: &[Instance]) -> Option<Limit> {
        let all: Vec<&Arc<Profile>> = beside.iter().map(|i| &i.profile).chain(wanted).collect();
        // Counted in one pass: a file may ask for a hundred thousand.
        let counts = all.iter().fold(BTreeMap::<&str, usize>::new(), |mut counts, profile| {
            *counts.entry(&profile.name).or_default() += 1;
            counts
        });
        for profile in wanted {
            let count = counts.get(profile.name.as_str()).copied().unwrap_or(0);
            if let Some(most) = profile.most.filter(|most| count > *most as usize) {
                return Some(Limit::Most { profile: Arc::clone(profile), most });
            }
        }
        let slices = all.iter().map(|p| p.slices).sum();
        if let Some(there) = self.compute_slices.filter(|there| slices > *there) {
            return Some(Limit::Slices { wanted: slices, there });
        }
        // The whole card has every engine that there is, which is why there is one `+me` and no second.
        for (kind, (name, there)) in self.whole().map(|w| w.engines.each()).into_iter().flatten().enumerate() {
            let wanted = all.iter().filter_map(|p| p.engines.each()[kind].1).sum();
            if let Some(there) = there.filter(|there| wanted > *there) {
                return Some(Limit::Engines { name, wanted, there });
            }
        }
        if wanted.iter().any(|p| p.places.is_none()) {
            return Some(Limit::Unplaced);
        }
        let there = self.memory_units.unwrap_or(0);
        let units = all.iter().filter_map(|p| p.units()).sum();
        (units > there).then_some(Limit::Units { wanted: units, there })
    }
}

/// Place the first of them wherever it leaves room for the others; instances of one profile ascend, so that no permutations of
/// the same are tried.
fn arrange(wanted: &[Arc<Profile>], taken: u64, placed: &mut Vec<Instance>) -> bool {
    let Some((profile, others)) = wanted.split_first() else { return true };
    let Some(places) = &profile.places else { return false };
    let after = placed.last().filter(|before| before.profile.name == profile.name).map(|before| before.start);
    for start in places.starts.iter().copied().filter(|start| after.is_none_or(|after| *start > after)) {
        let own = bits(start, places.units);
        if taken & own != 0 {
            continue;
        }
        placed.push(Instance { profile: Arc::clone(profile), start });
        if arrange(others, taken | own, placed) {
            return true;
        }
        placed.pop();
    }
    false
}

/// The units from `start` on, a bit each; the reader ensures that they are inside the grid.
fn bits(start: u32, units: u32) -> u64 {
    (0..units).fold(0, |bits, unit| bits | 1u64.checked_shl(start + unit).unwrap_or(0))
}
