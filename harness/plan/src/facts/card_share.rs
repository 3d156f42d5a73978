//! What of the machine each card of a campaign on several has for its members: they run at the same time, and must not compete for
//! cores or memory unnoticed.
//!
//! In: the facts of the cards, and what the experiment says about cores. Out: the facts that the runs on one card see.

use std::collections::BTreeMap;

use super::{Cores, DeviceFacts, Gpu, core_list, cores, usable_cores};

/// The part of the machine that the members on one card use.
#[derive(Debug, Clone, PartialEq)]
pub struct CardShare {
    /// Those of this card alone, with its cores.
    pub facts: DeviceFacts,
    /// The cores of its members; `shared` means those of the card.
    pub cores: Cores,
}

impl DeviceFacts {
    /// The share of each card, in their order; of one device all of it.
    pub fn shares(&self, cores: &Cores) -> Vec<CardShare> {
        if self.gpus.len() < 2 {
            return vec![CardShare { facts: self.clone(), cores: cores.clone() }];
        }
        let near: Vec<Option<Vec<u32>>> = self.gpus.iter().map(Gpu::near_cores).collect();
        let divided = divide(&near, &self.cores, &siblings);
        let of = |((gpu, own), near): ((&Gpu, Vec<u32>), &Option<Vec<u32>>)| {
            let near_own = |near: &Vec<u32>| !usable_cores(near, &own).is_empty();
            let cores = match cores {
                Cores::Shared => Cores::Listed(own.clone()),
                other => other.clone(),
            };
            let is_near = matches!(cores, Cores::GpuLocal | Cores::GpuLocalSpread);
            // Cores near the card are what was asked for: rather shared with another card than none.
            let own = if is_near && !near.as_ref().is_some_and(near_own) { self.cores.clone() } else { own };
            // A quota is that of all of them together.
            let quota_cores = self.quota_cores.map(|quota| quota / self.gpus.len() as f64);
            CardShare { facts: DeviceFacts { gpus: vec![gpu.clone()], cores: own, quota_cores, ..self.clone() }, cores }
        };
        self.gpus.iter().zip(divided).zip(&near).map(of).collect()
    }

    /// The facts that every card of these has at least: what is planned on them runs on each.
    pub fn least_share(&self, cores: &Cores) -> CardShare {
        let shares = self.shares(cores).into_iter();
        shares
            .min_by_key(|share| share.facts.cores.len())
            .unwrap_or_else(|| CardShare { facts: self.clone(), cores: cores.clone() })
    }

    /// Which cores the members of each card use, where that is not what one card would have.
    pub fn note_on_shares(&self, cores: &Cores) -> Option<String> {
        if self.gpus.len() < 2 {
            return None;
        }
        if !cores.named().is_empty() {
            return Some("`cores` names the same cores for the members of every card: they compete for them".into());
        }
        let shares = self.shares(cores);
        let mut users: BTreeMap<u32, usize> = BTreeMap::new();
        shares.iter().flat_map(|share| &share.facts.cores).for_each(|core| *users.entry(*core).or_default() += 1);
        let each = shares.iter().map(|share| {
            let label = share.facts.gpu().map(Gpu::label).unwrap_or_default();
            format!("{label} {}", collo_text::units::ranges(&share.facts.cores))
        });
        let each = each.collect::<Vec<_>>().join(", ");
        match users.values().any(|cards| *cards > 1) {
            false => Some(format!("members of each card run on its own cores: {each}")),
            true => Some(format!("members of several cards compete for cores: {each}")),
        }
    }
}

/// Cores for each card. Near it, where the kernel tells: cards with the same near cores divide them. Where that is unknown, or
/// neither equal nor disjoint, all cores are divided into equal parts. The threads of one physical core stay together.
fn divide(near: &[Option<Vec<u32>>], all: &[u32], siblings: &dyn Fn(u32) -> Vec<u32>) -> Vec<Vec<u32>> {
    let usable = |near: &Option<Vec<u32>>| near.as_ref().map(|near| usable_cores(near, all));
    let known: Option<Vec<Vec<u32>>> = near.iter().map(usable).collect();
    let beside = |own: &Vec<u32>, sets: &[Vec<u32>]| sets.iter().filter(|other| *other == own).count();
    let disjoint = |a: &Vec<u32>, b: &Vec<u32>| a == b || !a.iter().any(|core| b.contains(core));
    let apart = |sets: &[Vec<u32>]| {
        sets.iter().all(|a| physical(a, siblings).len() >= beside(a, sets) && sets.iter().all(|b| disjoint(a, b)))
    };
    let sets = known.filter(|sets| apart(sets)).unwrap_or_else(|| vec![all.to_vec(); near.len()]);
    let part = |(place, own): (usize, &Vec<u32>)| {
        let before = beside(own, &sets[..place]);
        let groups = physical(own, siblings);
        let indices: Vec<u32> = (0..groups.len() as u32).collect();
        if indices.is_empty() {
            return Vec::new();
        }
        let mut cores: Vec<u32> = cores::spread(before, beside(own, &sets), &indices)
            .into_iter()
            .flat_map(|group| groups[group as usize].clone())
            .collect();
        cores.sort_unstable();
        cores
    };
    sets.iter().enumerate().map(part).collect()
}

/// Logical cores by the physical core that they are threads of.
fn physical(cores: &[u32], siblings: &dyn Fn(u32) -> Vec<u32>) -> Vec<Vec<u32>> {
    let mut groups: Vec<Vec<u32>> = Vec::new();
    for core in cores {
        if groups.iter().any(|group| group.contains(core)) {
            continue;
        }
        let mut group: Vec<u32> = siblings(*core).into_iter().filter(|other| cores.contains(other)).collect();
        if !group.contains(core) {
            group = vec![*core];
        }
        groups.push(group);
    }
    groups
}

/// The threads of a logical core's physical one, itself among them (the kernel's Documentation/ABI/stable/sysfs-devices-system-cpu).
fn siblings(core: u32) -> Vec<u32> {
    let file = format!("/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list");
    fs_err::read_to_string(file).ok().and_then(|text| core_list(&text)).unwrap_or_else(|| vec![core])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alone(core: u32) -> Vec<u32> {
        vec![core]
    }

    #[test]
    fn a_card_has_its_near_cores_and_cards_with_the_same_divide_them() {
        let all: Vec<u32> = (0..8).collect();
        let two = [Some(vec![0, 1, 2, 3]), Some(vec![4, 5, 6, 7])];
        assert_eq!(divide(&two, &all, &alone), [[0, 1, 2, 3], [4, 5, 6, 7]]);
        let four = [vec![4, 5, 6, 7], vec![0, 1, 2, 3], vec![4, 5, 6, 7], vec![0, 1, 2, 3]].map(Some);
        assert_eq!(divide(&four, &all, &alone), [[4, 5], [0, 1], [6, 7], [2, 3]]);
    }

    #[test]
    fn where_near_cores_are_unknown_or_overlap_all_are_divided_equally() {
        let all: Vec<u32> = (0..6).collect();
        for near in [[None, Some(vec![0])], [Some(vec![0, 1, 2]), Some(vec![2, 3])], [Some(vec![9]), Some(vec![0])]] {
            assert_eq!(divide(&near, &all, &alone), [[0, 1, 2], [3, 4, 5]], "{near:?}");
        }
        assert_eq!(divide(&[None, None, None], &[0, 1], &alone), [[0], [1], [0]], "there are fewer than cards");
    }

    #[test]
    fn two_threads_of_a_physical_core_go_to_the_same_card() {
        let pair = |core: u32| vec![core % 4, core % 4 + 4];
        assert_eq!(divide(&[None, None], &[0, 1, 2, 3, 4, 5, 6, 7], &pair), [[0, 1, 4, 5], [2, 3, 6, 7]]);
    }
}
