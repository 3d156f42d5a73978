//! The rules of MIG: where an instance may lie, which numbers it gets, what else must not be there. Pure, on the state of one card.
//!
//! In: a card, its state, a profile. Out: the state changed, or NVML's code for why not.

use crate::card::{Card, Engines, Profile};
use crate::clock;
use crate::dice::Dice;
use crate::state::{CardState, ComputeInstance, GpuInstance};

/// NVML's codes.
pub const INVALID_ARGUMENT: u32 = 2;
pub const NOT_SUPPORTED: u32 = 3;
pub const NOT_FOUND: u32 = 6;
pub const IN_USE: u32 = 19;
pub const INSUFFICIENT_RESOURCES: u32 = 23;

/// A compute instance profile of a GPU instance profile.
#[derive(Debug, Clone, PartialEq)]
pub struct ComputeProfile {
    pub id: u32,
    pub index: u32,
    pub slices: u32,
    pub most: u32,
    pub sms: u32,
    /// `1c.3g.20gb`, or `3g.20gb` where it fills its GPU instance.
    pub name: String,
}

/// Where one more of this profile could be made now, in order.
pub fn free_starts(card: &Card, state: &CardState, profile: u32) -> Vec<u32> {
    let Some(profile) = card.profile(profile) else { return Vec::new() };
    if !may_have_one_more(card, state, profile) {
        return Vec::new();
    }
    let free = |start: u32| state.instances.iter().all(|g| start + profile.units <= g.start || g.start + g.size <= start);
    profile.starts.iter().copied().filter(|s| free(*s)).collect()
}

/// Where the driver puts it unless told: the first free place, which is why mixed layouts need explicit ones.
pub fn default_start(card: &Card, state: &CardState, profile: u32) -> Option<u32> {
    free_starts(card, state, profile).first().copied()
}

fn may_have_one_more(card: &Card, state: &CardState, profile: &Profile) -> bool {
    let Some(grid) = &card.mig else { return false };
    let there: Vec<&Profile> = state.instances.iter().filter_map(|g| card.profile(g.profile)).collect();
    let slices: u32 = there.iter().map(|p| p.slices).sum();
    let equal = there.iter().filter(|p| p.id == profile.id).count() as u32;
    if slices + profile.slices > grid.compute_slices || equal >= profile.most {
        return false;
    }
    let Some(whole) = grid.profiles.iter().find(|p| p.slices == grid.compute_slices) else { return true };
    let all = there.iter().map(|p| p.engines).fold(profile.engines, add);
    let fits = |used: u32, limit: u32| limit == 0 || used <= limit;
    fits(all.copy, whole.engines.copy)
        && fits(all.decode, whole.engines.decode)
        && fits(all.jpeg, whole.engines.jpeg)
        && fits(all.ofa, whole.engines.ofa)
}

fn add(a: Engines, b: Engines) -> Engines {
    Engines {
        copy: a.copy + b.copy,
        decode: a.decode + b.decode,
        encode: a.encode + b.encode,
        jpeg: a.jpeg + b.jpeg,
        ofa: a.ofa + b.ofa,
    }
}

/// How many more of this profile could be made now.
pub fn remaining(card: &Card, state: &CardState, profile: u32) -> u32 {
    let mut state = state.clone();
    let mut count = 0;
    while let Some(start) = free_starts(card, &state, profile).first().copied() {
        if make_gpu_instance(card, &mut state, profile, start, 0).is_err() {
            break;
        }
        count += 1;
    }
    count
}

/// Make a GPU instance and return its id.
pub fn make_gpu_instance(card: &Card, state: &mut CardState, profile: u32, start: u32, serial: u64) -> Result<u32, u32> {
    let known = card.profile(profile).ok_or(INVALID_ARGUMENT)?;
    if !known.starts.is_empty() && !known.starts.contains(&start) {
        return Err(INVALID_ARGUMENT);
    }
    if !free_starts(card, state, profile).contains(&start) {
        return Err(INSUFFICIENT_RESOURCES);
    }
    let all = card.mig.as_ref().and_then(|g| g.memory_units).unwrap_or(8);
    let usual = match all / known.units.max(1) {
        1 => 0..=0,
        2 => 1..=2,
        4 => 3..=6,
        _ => 7..=13,
    };
    let taken = |id: &u32| state.instances.iter().any(|g| g.id == *id);
    let id = usual.chain(14..).find(|id| !taken(id)).ok_or(INSUFFICIENT_RESOURCES)?;
    let made_ns = clock::now_ns();
    state.instances.push(GpuInstance { id, serial, profile, start, size: known.units, made_ns, compute: Vec::new() });
    state.instances.sort_by_key(|g| g.id);
    Ok(id)
}

/// Destroy a GPU instance, which must hold no compute instance.
pub fn destroy_gpu_instance(state: &mut CardState, id: u32) -> Result<(), u32> {
    let at = state.instances.iter().position(|g| g.id == id).ok_or(NOT_FOUND)?;
    if !state.instances[at].compute.is_empty() {
        return Err(IN_USE);
    }
    state.instances.remove(at);
    Ok(())
}

/// The compute instance profiles of a GPU instance profile.
pub fn compute_profiles(card: &Card, profile: u32) -> Vec<ComputeProfile> {
    let Some(gpu) = card.profile(profile) else { return Vec::new() };
    let sizes: &[(u32, u32)] = match gpu.slices {
        1 => &[(1, 1)],
        2 => &[(1, 2), (2, 1)],
        3 => &[(1, 3), (2, 1), (3, 1)],
        4 => &[(1, 4), (2, 2), (4, 1)],
        7 => &[(1, 7), (2, 3), (3, 2), (4, 1), (7, 1)],
        _ => &[],
    };
    // A wide instance of one slice has a compute profile of another number from Hopper on.
    let wide = gpu.index == 9 && card.has_gpm();
    let numbered = |slices: u32| match slices {
        1 if wide => 7,
        7 => 4,
        slices => slices - 1,
    };
    let named = |slices: u32| if slices == gpu.slices { gpu.name.clone() } else { format!("{slices}c.{}", gpu.name) };
    let sms = |slices: u32| if slices == gpu.slices { gpu.sms } else { gpu.sms * slices / gpu.slices / 2 * 2 };
    let one = |(slices, most): &(u32, u32)| ComputeProfile {
        id: numbered(*slices),
        index: numbered(*slices),
        slices: *slices,
        most: *most,
        sms: sms(*slices),
        name: named(*slices),
    };
    sizes.iter().map(one).collect()
}

/// The compute profile that fills the instance.
pub fn whole_compute_profile(card: &Card, profile: u32) -> Option<u32> {
    compute_profiles(card, profile).last().map(|c| c.id)
}

fn free_compute_start(gpu: &GpuInstance, all: u32, slices: u32) -> Option<u32> {
    let free = |start: u32| gpu.compute.iter().all(|c| start + slices <= c.start || c.start + c.slices <= start);
    (0..=all.checked_sub(slices)?).find(|s| free(*s))
}

/// How many more compute instances of this profile fit.
pub fn compute_remaining(card: &Card, gpu: &GpuInstance, profile: u32) -> u32 {
    let Some(own) = compute_profiles(card, gpu.profile).into_iter().find(|c| c.id == profile) else { return 0 };
    let all = card.profile(gpu.profile).map_or(0, |p| p.slices);
    let used: u32 = gpu.compute.iter().map(|c| c.slices).sum();
    (all.saturating_sub(used) / own.slices).min(own.most)
}

/// Make a compute instance and return its id.
pub fn make_compute_instance(card: &Card, state: &mut CardState, gi: u32, profile: u32, serial: u64) -> Result<u32, u32> {
    let indices: Vec<u32> = state.compute().map(|(_, c)| c.index).collect();
    let uuid = format!("MIG-{}", Dice::of(&[&state.uuid, &serial.to_string(), &clock::now_ns().to_string()]).uuid());
    let gpu = state.instances.iter_mut().find(|g| g.id == gi).ok_or(NOT_FOUND)?;
    let own = compute_profiles(card, gpu.profile).into_iter().find(|c| c.id == profile).ok_or(INVALID_ARGUMENT)?;
    let all = card.profile(gpu.profile).map_or(0, |p| p.slices);
    let start = free_compute_start(gpu, all, own.slices).ok_or(INSUFFICIENT_RESOURCES)?;
    let id = (0..).find(|id| gpu.compute.iter().all(|c| c.id != *id)).ok_or(INSUFFICIENT_RESOURCES)?;
    let index = (0..).find(|i| !indices.contains(i)).ok_or(INSUFFICIENT_RESOURCES)?;
    gpu.compute.push(ComputeInstance { id, serial, uuid, profile, start, slices: own.slices, sms: own.sms, index });
    gpu.compute.sort_by_key(|c| c.id);
    Ok(id)
}

/// Destroy a compute instance.
pub fn destroy_compute_instance(state: &mut CardState, gi: u32, id: u32) -> Result<(), u32> {
    let gpu = state.instances.iter_mut().find(|g| g.id == gi).ok_or(NOT_FOUND)?;
    let at = gpu.compute.iter().position(|c| c.id == id).ok_or(NOT_FOUND)?;
    gpu.compute.remove(at);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn empty() -> CardState {
        let uuid = "GPU-0".to_string();
        CardState {
            uuid,
            mig: true,
            mig_pending: true,
            compute_mode: 0,
            persistence: true,
            power_limit_w: None,
            application_mhz: None,
            locked_mhz: None,
            resets: 0,
            instances: Vec::new(),
        }
    }

    /// Every set of instances that can be made, as sorted names.
    fn all_layouts(card: &Card, names: &[&str]) -> BTreeSet<Vec<String>> {
        let ids: Vec<u32> = names.iter().map(|n| card.profile_named(n).unwrap().id).collect();
        let mut found = BTreeSet::new();
        let mut open = vec![empty()];
        let mut seen = BTreeSet::new();
        while let Some(state) = open.pop() {
            for id in &ids {
                for start in free_starts(card, &state, *id) {
                    let mut next = state.clone();
                    make_gpu_instance(card, &mut next, *id, start, 0).unwrap();
                    let mut placed: Vec<(u32, u32)> = next.instances.iter().map(|g| (g.profile, g.start)).collect();
                    placed.sort_unstable();
                    if seen.insert(placed) {
                        let name = |g: &GpuInstance| card.profile(g.profile).unwrap().name.clone();
                        let mut layout: Vec<String> = next.instances.iter().map(name).collect();
                        layout.sort();
                        found.insert(layout);
                        open.push(next);
                    }
                }
            }
        }
        found
    }

    #[test]
    fn an_a100_has_37_layouts() {
        let card = Card::find("a100-40gb").unwrap();
        assert_eq!(all_layouts(&card, &["1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"]).len(), 37);
    }

    #[test]
    fn ids_are_the_drivers_and_not_the_places() {
        let card = Card::find("a100-40gb").unwrap();
        let mut state = empty();
        let id = |name: &str| card.profile_named(name).unwrap().id;
        assert_eq!(make_gpu_instance(&card, &mut state, id("3g.20gb"), 4, 1), Ok(1));
        assert_eq!(make_gpu_instance(&card, &mut state, id("2g.10gb"), 0, 2), Ok(3));
        assert_eq!(make_gpu_instance(&card, &mut state, id("1g.5gb"), 2, 3), Ok(7));
        assert_eq!(make_gpu_instance(&card, &mut state, id("1g.5gb"), 3, 4), Ok(8));
        assert_eq!(make_gpu_instance(&card, &mut state, id("1g.5gb"), 3, 5), Err(INSUFFICIENT_RESOURCES));
        assert_eq!(make_gpu_instance(&card, &mut state, id("2g.10gb"), 1, 5), Err(INVALID_ARGUMENT));
    }

    #[test]
    fn only_one_instance_has_the_media_engines() {
        let card = Card::find("a30-24gb").unwrap();
        let mut state = empty();
        let id = |name: &str| card.profile_named(name).unwrap().id;
        make_gpu_instance(&card, &mut state, id("2g.12gb+me"), 0, 1).unwrap();
        assert_eq!(make_gpu_instance(&card, &mut state, id("1g.6gb+me"), 2, 2), Err(INSUFFICIENT_RESOURCES));
        assert!(make_gpu_instance(&card, &mut state, id("1g.6gb"), 2, 2).is_ok());
    }

    #[test]
    fn compute_instances_fill_their_gpu_instance_and_hold_it() {
        let card = Card::find("a100-40gb").unwrap();
        let mut state = empty();
        let gi = make_gpu_instance(&card, &mut state, 9, 0, 1).unwrap();
        assert_eq!(compute_profiles(&card, 9)[0].name, "1c.3g.20gb");
        make_compute_instance(&card, &mut state, gi, 0, 2).unwrap();
        make_compute_instance(&card, &mut state, gi, 1, 3).unwrap();
        assert_eq!(make_compute_instance(&card, &mut state, gi, 0, 4), Err(INSUFFICIENT_RESOURCES));
        assert_eq!(destroy_gpu_instance(&mut state, gi), Err(IN_USE));
        destroy_compute_instance(&mut state, gi, 0).unwrap();
        destroy_compute_instance(&mut state, gi, 1).unwrap();
        assert_eq!(destroy_gpu_instance(&mut state, gi), Ok(()));
    }
}
