//! What can be cut out of a card: profiles of GPU instances, their places, what is left.

use nvml_wrapper_sys::bindings as b;

use super::{card, code, get, letters, nvml, put, version_word};
use crate::card::{Card, Profile};
use crate::cut;
use crate::sim::Sim;

fn at_index(sim: &Sim, of: b::nvmlDevice_t, index: u32) -> Result<(&Card, &Profile), u32> {
    let at = card(sim, of)?;
    let card = &sim.cards[at];
    if sim.scenario.has("no-profiles-off") && !sim.state().cards[at].mig {
        return Err(code::NOT_SUPPORTED);
    }
    if index > b::NVML_GPU_INSTANCE_PROFILE_COUNT {
        return Err(code::INVALID_ARGUMENT);
    }
    Ok((card, card.profile_at(index).ok_or(code::NOT_SUPPORTED)?))
}

/// The profile of an id, on a card that can be cut.
pub fn of_id(sim: &Sim, of: b::nvmlDevice_t, id: u32) -> Result<(usize, &Profile), u32> {
    let card = card(sim, of)?;
    if sim.cards[card].mig.is_none() || (sim.scenario.has("no-profiles-off") && !sim.state().cards[card].mig) {
        return Err(code::NOT_SUPPORTED);
    }
    Ok((card, sim.cards[card].profile(id).ok_or(code::INVALID_ARGUMENT)?))
}

/// A wide profile of one slice has as many copy engines as one of one slice; the rest is the table's.
fn info(profile: &Profile) -> b::nvmlGpuInstanceProfileInfo_t {
    b::nvmlGpuInstanceProfileInfo_t {
        id: profile.id,
        isP2pSupported: 0,
        sliceCount: profile.slices,
        instanceCount: profile.most,
        multiprocessorCount: profile.sms,
        copyEngineCount: profile.engines.copy,
        decoderCount: profile.engines.decode,
        encoderCount: profile.engines.encode,
        jpegCount: profile.engines.jpeg,
        ofaCount: profile.engines.ofa,
        memorySizeMB: profile.memory_mib,
    }
}

nvml! {
    fn nvmlDeviceGetGpuInstanceProfileInfo(
        sim, now, of: b::nvmlDevice_t, index: u32, to: *mut b::nvmlGpuInstanceProfileInfo_t,
    ) {
        put(to, info(at_index(sim, of, index)?.1))
    }

    fn nvmlDeviceGetGpuInstanceProfileInfoV(
        sim, now, of: b::nvmlDevice_t, index: u32, to: *mut b::nvmlGpuInstanceProfileInfo_v2_t,
    ) {
        let (_, profile) = at_index(sim, of, index)?;
        let i = info(profile);
        let name = letters(&format!("MIG {}", profile.name));
        let version = get(to.cast::<u32>())?;
        if version == version_word::<b::nvmlGpuInstanceProfileInfo_v2_t>(2) {
            return put(to, b::nvmlGpuInstanceProfileInfo_v2_t {
                version,
                id: i.id,
                isP2pSupported: i.isP2pSupported,
                sliceCount: i.sliceCount,
                instanceCount: i.instanceCount,
                multiprocessorCount: i.multiprocessorCount,
                copyEngineCount: i.copyEngineCount,
                decoderCount: i.decoderCount,
                encoderCount: i.encoderCount,
                jpegCount: i.jpegCount,
                ofaCount: i.ofaCount,
                memorySizeMB: i.memorySizeMB,
                name,
            });
        }
        if version == version_word::<b::nvmlGpuInstanceProfileInfo_v3_t>(3) {
            return put(to.cast(), b::nvmlGpuInstanceProfileInfo_v3_t {
                version,
                id: i.id,
                sliceCount: i.sliceCount,
                instanceCount: i.instanceCount,
                multiprocessorCount: i.multiprocessorCount,
                copyEngineCount: i.copyEngineCount,
                decoderCount: i.decoderCount,
                encoderCount: i.encoderCount,
                jpegCount: i.jpegCount,
                ofaCount: i.ofaCount,
                memorySizeMB: i.memorySizeMB,
                name,
                capabilities: 0,
            });
        }
        Err(code::ARGUMENT_VERSION_MISMATCH)
    }

    fn nvmlDeviceGetGpuInstancePossiblePlacements_v2(
        sim, now, of: b::nvmlDevice_t, id: u32, to: *mut b::nvmlGpuInstancePlacement_t, count: *mut u32,
    ) {
        let (_, profile) = of_id(sim, of, id)?;
        let place = |start: &u32| b::nvmlGpuInstancePlacement_t { start: *start, size: profile.units };
        let all: Vec<b::nvmlGpuInstancePlacement_t> = profile.starts.iter().map(place).collect();
        // Asked without room it gives the length, whatever the count says.
        if to.is_null() {
            return put(count, all.len() as u32);
        }
        super::put_list(&all, to, count)
    }

    fn nvmlDeviceGetGpuInstanceRemainingCapacity(sim, now, of: b::nvmlDevice_t, id: u32, count: *mut u32) {
        let (card, profile) = of_id(sim, of, id)?;
        let state = &sim.state().cards[card];
        put(count, if state.mig { cut::remaining(&sim.cards[card], state, profile.id) } else { 0 })
    }
}
