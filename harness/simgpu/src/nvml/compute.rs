//! Compute instances: their profiles, making, finding and destroying them.

use nvml_wrapper_sys::bindings as b;

use super::mig::{change, gpu_instance, is_held, is_leaked, permitted, put_all};
use super::{Kind, code, get, letters, nvml, nvml_in, put, tag, untag, version_word};
use crate::card::Profile;
use crate::cut::{self, ComputeProfile};
use crate::sim::Sim;

/// What a MIG device is called: `3g.20gb`, or `1c.3g.20gb` where it is a part.
pub fn name(sim: &Sim, card: usize, gi: u32, ci: u32) -> Option<String> {
    let gpu = sim.state().cards[card].instance(gi)?;
    let compute = gpu.compute.iter().find(|c| c.id == ci)?;
    let profiles = cut::compute_profiles(&sim.cards[card], gpu.profile);
    profiles.into_iter().find(|p| p.id == compute.profile).map(|p| p.name)
}

/// Card, GPU instance, compute instance of a handle.
fn compute_instance(sim: &Sim, handle: b::nvmlComputeInstance_t) -> Result<(usize, u32, u32), u32> {
    let (kind, card, serial) = untag(handle);
    let state = sim.state().cards.get(card).filter(|_| kind == Kind::ComputeInstance as usize).ok_or(code::INVALID_ARGUMENT)?;
    if sim.is_lost(card) {
        return Err(code::GPU_IS_LOST);
    }
    let found = state.compute().find(|(_, c)| c.serial == serial).ok_or(code::INVALID_ARGUMENT)?;
    Ok((card, found.0.id, found.1.id))
}

/// The compute profile of an index, and the GPU instance's profile. There is one engine profile, which shares all.
fn at_index(sim: &Sim, of: b::nvmlGpuInstance_t, index: u32, engines: u32) -> Result<(ComputeProfile, Profile), u32> {
    let (card, gpu) = gpu_instance(sim, of)?;
    if index > b::NVML_COMPUTE_INSTANCE_PROFILE_COUNT || engines != b::NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED {
        return Err(code::INVALID_ARGUMENT);
    }
    let found = cut::compute_profiles(&sim.cards[card], gpu.profile).into_iter().find(|p| p.index == index);
    let whole = sim.cards[card].profile(gpu.profile).cloned();
    Ok((found.ok_or(code::NOT_SUPPORTED)?, whole.ok_or(code::UNKNOWN)?))
}

fn has_profile(sim: &Sim, of: b::nvmlGpuInstance_t, id: u32) -> Result<(usize, u32), u32> {
    let (card, gpu) = gpu_instance(sim, of)?;
    let known = cut::compute_profiles(&sim.cards[card], gpu.profile).iter().any(|p| p.id == id);
    if known { Ok((card, gpu.id)) } else { Err(code::INVALID_ARGUMENT) }
}

nvml! {
    fn nvmlGpuInstanceGetComputeInstanceProfileInfo(
        sim, now, of: b::nvmlGpuInstance_t, index: u32, engines: u32, to: *mut b::nvmlComputeInstanceProfileInfo_t,
    ) {
        let (own, whole) = at_index(sim, of, index, engines)?;
        put(to, b::nvmlComputeInstanceProfileInfo_t {
            id: own.id,
            sliceCount: own.slices,
            instanceCount: own.most,
            multiprocessorCount: own.sms,
            sharedCopyEngineCount: whole.engines.copy,
            sharedDecoderCount: whole.engines.decode,
            sharedEncoderCount: whole.engines.encode,
            sharedJpegCount: whole.engines.jpeg,
            sharedOfaCount: whole.engines.ofa,
        })
    }

    fn nvmlGpuInstanceGetComputeInstanceProfileInfoV(
        sim, now, of: b::nvmlGpuInstance_t, index: u32, engines: u32, to: *mut b::nvmlComputeInstanceProfileInfo_v2_t,
    ) {
        let (own, whole) = at_index(sim, of, index, engines)?;
        let version = version_word::<b::nvmlComputeInstanceProfileInfo_v2_t>(2);
        if get(to.cast::<u32>())? != version {
            return Err(code::ARGUMENT_VERSION_MISMATCH);
        }
        put(to, b::nvmlComputeInstanceProfileInfo_v2_t {
            version,
            id: own.id,
            sliceCount: own.slices,
            instanceCount: own.most,
            multiprocessorCount: own.sms,
            sharedCopyEngineCount: whole.engines.copy,
            sharedDecoderCount: whole.engines.decode,
            sharedEncoderCount: whole.engines.encode,
            sharedJpegCount: whole.engines.jpeg,
            sharedOfaCount: whole.engines.ofa,
            name: letters(&format!("MIG {}", own.name)),
        })
    }

    fn nvmlGpuInstanceGetComputeInstanceRemainingCapacity(sim, now, of: b::nvmlGpuInstance_t, id: u32, count: *mut u32) {
        let (card, _) = has_profile(sim, of, id)?;
        let (_, gpu) = gpu_instance(sim, of)?;
        put(count, cut::compute_remaining(&sim.cards[card], gpu, id))
    }

    fn nvmlGpuInstanceCreateComputeInstance(sim, now, of: b::nvmlGpuInstance_t, id: u32, to: *mut b::nvmlComputeInstance_t) {
        let (card, gi) = has_profile(sim, of, id)?;
        permitted(sim)?;
        if sim.scenario.has("ci-fails") {
            return Err(code::INSUFFICIENT_RESOURCES);
        }
        let serial = change(sim, |state, sim| {
            let serial = state.next_serial();
            cut::make_compute_instance(&sim.cards[card], &mut state.cards[card], gi, id, serial)?;
            Ok(serial)
        })?;
        put(to, tag(Kind::ComputeInstance, card, serial))
    }

    fn nvmlGpuInstanceGetComputeInstances(
        sim, now, of: b::nvmlGpuInstance_t, id: u32, to: *mut b::nvmlComputeInstance_t, count: *mut u32,
    ) {
        let (card, _) = has_profile(sim, of, id)?;
        let (_, gpu) = gpu_instance(sim, of)?;
        let own = gpu.compute.iter().filter(|c| c.profile == id);
        let handles: Vec<b::nvmlComputeInstance_t> = own.map(|c| tag(Kind::ComputeInstance, card, c.serial)).collect();
        put_all(&handles, to, count)
    }

    fn nvmlGpuInstanceGetComputeInstanceById(sim, now, of: b::nvmlGpuInstance_t, id: u32, to: *mut b::nvmlComputeInstance_t) {
        let (card, gpu) = gpu_instance(sim, of)?;
        let found = gpu.compute.iter().find(|c| c.id == id).ok_or(code::NOT_FOUND)?;
        put(to, tag(Kind::ComputeInstance, card, found.serial))
    }

    fn nvmlComputeInstanceGetInfo_v2(sim, now, of: b::nvmlComputeInstance_t, to: *mut b::nvmlComputeInstanceInfo_t) {
        let (card, gi, ci) = compute_instance(sim, of)?;
        let gpu = sim.state().cards[card].instance(gi).ok_or(code::UNKNOWN)?;
        let found = gpu.compute.iter().find(|c| c.id == ci).ok_or(code::UNKNOWN)?;
        put(to, b::nvmlComputeInstanceInfo_t {
            device: super::of_card(sim, card),
            gpuInstance: tag(Kind::GpuInstance, card, gpu.serial),
            id: ci,
            profileId: found.profile,
            placement: b::nvmlComputeInstancePlacement_t { start: found.start, size: found.slices },
        })
    }
}

nvml_in! {
    fn nvmlComputeInstanceDestroy(sim, of: b::nvmlComputeInstance_t) {
        let (card, gi, ci) = compute_instance(sim, of)?;
        permitted(sim)?;
        change(sim, |state, sim| {
            if is_held(sim, card, Some(gi), Some(ci)) || is_leaked(sim, state, card, gi) {
                return Err(code::IN_USE);
            }
            cut::destroy_compute_instance(&mut state.cards[card], gi, ci)
        })
    }
}
