//! MIG: its mode, its devices, and making and destroying GPU instances.

use nvml_wrapper_sys::bindings as b;

use super::{Device, Kind, card, code, device, nvml, nvml_in, profile, put, tag, untag};
use crate::sim::Sim;
use crate::state::{GpuInstance, State};
use crate::{clock, cut};

/// A refusal, or NVML's code for it.
pub enum Refused {
    Code(u32),
    Folder(String),
}

impl From<String> for Refused {
    fn from(why: String) -> Refused {
        Refused::Folder(why)
    }
}

/// Change the state with NVML's codes.
pub fn change<T>(sim: &mut Sim, what: impl FnOnce(&mut State, &Sim) -> Result<T, u32>) -> Result<T, u32> {
    sim.change(|state, sim| what(state, sim).map_err(Refused::Code)).map_err(|refused| match refused {
        Refused::Code(code) => code,
        Refused::Folder(why) => {
            eprintln!("simulated GPU: {why}");
            code::UNKNOWN
        }
    })
}

/// The GPU instance of a handle.
pub fn gpu_instance(sim: &Sim, handle: b::nvmlGpuInstance_t) -> Result<(usize, &GpuInstance), u32> {
    let (kind, card, serial) = untag(handle);
    let state = sim.state().cards.get(card).filter(|_| kind == Kind::GpuInstance as usize).ok_or(code::INVALID_ARGUMENT)?;
    if sim.is_lost(card) {
        return Err(code::GPU_IS_LOST);
    }
    let found = state.instances.iter().find(|g| g.serial == serial).ok_or(code::INVALID_ARGUMENT)?;
    Ok((card, found))
}

/// Whether a living process holds this card, or this instance of it.
pub fn is_held(sim: &Sim, card: usize, gi: Option<u32>, ci: Option<u32>) -> bool {
    let here = |g: &&crate::history::Guest| {
        g.here.card == card && (gi.is_none() || g.here.gi == gi) && (ci.is_none() || g.here.ci == ci)
    };
    sim.history().guests.iter().filter(here).any(|g| clock::lives(g.actor.pid, g.here.born))
}

/// Whether the host engine has had this GPU instance since it was made, and never lets go of it.
pub fn is_leaked(sim: &Sim, state: &State, card: usize, id: u32) -> bool {
    let since_ns = crate::services::engine(state).filter(|s| s.active).map(|s| s.since_ns);
    let made_ns = state.cards[card].instance(id).map(|g| g.made_ns);
    sim.scenario.has("dcgm-leaks") && since_ns.zip(made_ns).is_some_and(|(since, made)| since < made)
}

/// Whether this process may cut the card.
pub fn permitted(sim: &Sim) -> Result<(), u32> {
    if sim.scenario.has("mig-no-permission") || sim.scenario.has("user") { Err(code::NO_PERMISSION) } else { Ok(()) }
}

fn capable(sim: &Sim, of: b::nvmlDevice_t) -> Result<usize, u32> {
    let card = card(sim, of)?;
    if sim.cards[card].mig.is_none() { Err(code::NOT_SUPPORTED) } else { Ok(card) }
}

/// The card, which must be in MIG mode.
fn in_mig_mode(sim: &Sim, of: b::nvmlDevice_t) -> Result<usize, u32> {
    let card = capable(sim, of)?;
    if sim.state().cards[card].mig { Ok(card) } else { Err(code::NOT_SUPPORTED) }
}

fn make(sim: &mut Sim, of: b::nvmlDevice_t, id: u32, start: Option<u32>) -> Result<b::nvmlGpuInstance_t, u32> {
    let card = in_mig_mode(sim, of)?;
    profile::of_id(sim, of, id)?;
    permitted(sim)?;
    if sim.scenario.has("no-resources") {
        return Err(code::INSUFFICIENT_RESOURCES);
    }
    let serial = change(sim, |state, sim| {
        let kind = &sim.cards[card];
        let first = || cut::free_starts(kind, &state.cards[card], id).first().copied();
        let start = start.or_else(first).ok_or(code::INSUFFICIENT_RESOURCES)?;
        let serial = state.next_serial();
        cut::make_gpu_instance(kind, &mut state.cards[card], id, start, serial)?;
        Ok(serial)
    })?;
    Ok(tag(Kind::GpuInstance, card, serial))
}

/// What stands in the way of a reset of the card, and whether the change stays pending then or is refused at once.
fn in_the_way(sim: &Sim, state: &State, card: usize) -> Option<(u32, bool)> {
    let has = |word: &str| sim.scenario.has(word);
    let foreign = card == sim.first_card() && super::process::foreign(sim).is_some();
    match () {
        _ if has("mig-in-use") => Some((code::IN_USE, true)),
        _ if has("mig-pending") => Some((code::RESET_REQUIRED, true)),
        _ if is_held(sim, card, None, None) || foreign || !state.cards[card].instances.is_empty() => Some((code::IN_USE, true)),
        // From Hopper on the mode needs no reset: whoever has the card open may keep it open.
        _ if sim.cards[card].has_gpm() => None,
        _ if crate::services::hold_the_cards(state) => Some((code::IN_USE, has("services-pending"))),
        _ if has("nvidia-drm") => Some((code::IN_USE, has("services-pending"))),
        _ => None,
    }
}

fn set_mode(sim: &mut Sim, card: usize, on: bool) -> Result<u32, u32> {
    permitted(sim)?;
    change(sim, |state, sim| {
        let busy = sim.scenario.number("busy-for").unwrap_or(0.0) as u32;
        if state.cards[card].mig != on && state.refused < busy {
            state.refused += 1;
            return Err(code::IN_USE);
        }
        let refused = in_the_way(sim, state, card).filter(|_| state.cards[card].mig != on);
        let own = &mut state.cards[card];
        match refused {
            Some((why, false)) => Err(why),
            Some((why, true)) => {
                own.mig_pending = on;
                Ok(why)
            }
            None => {
                own.mig_pending = on;
                if own.mig != on {
                    own.mig = on;
                    if sim.cards[card].has_gpm() {
                        // nvml.h: "attributes of the handle may change" with the mode, with a reset or without.
                        own.resets += 1;
                        own.compute_mode = crate::state::DEFAULT;
                    } else {
                        own.reset();
                    }
                }
                Ok(code::SUCCESS)
            }
        }
    })
}

nvml! {
    fn nvmlDeviceGetMigMode(sim, now, of: b::nvmlDevice_t, current: *mut u32, pending: *mut u32) {
        let card = capable(sim, of)?;
        let state = &sim.state().cards[card];
        put(current, u32::from(state.mig))?;
        put(pending, u32::from(state.mig_pending))
    }

    fn nvmlDeviceSetMigMode(sim, now, of: b::nvmlDevice_t, mode: u32, status: *mut u32) {
        let card = capable(sim, of)?;
        if mode > 1 {
            return Err(code::INVALID_ARGUMENT);
        }
        put(status, code::SUCCESS)?;
        let done = set_mode(sim, card, mode == 1)?;
        put(status, done)
    }

    fn nvmlDeviceGetMaxMigDeviceCount(sim, now, of: b::nvmlDevice_t, count: *mut u32) {
        let card = capable(sim, of)?;
        put(count, sim.cards[card].mig.as_ref().map_or(0, |g| g.compute_slices))
    }

    fn nvmlDeviceGetMigDeviceHandleByIndex(sim, now, of: b::nvmlDevice_t, index: u32, to: *mut b::nvmlDevice_t) {
        let card = capable(sim, of)?;
        if index >= sim.cards[card].mig.as_ref().map_or(0, |g| g.compute_slices) {
            return Err(code::INVALID_ARGUMENT);
        }
        let found = sim.state().cards[card].compute().find(|(_, c)| c.index == index).map(|(_, c)| c.serial);
        put(to, tag(Kind::MigDevice, card, found.ok_or(code::NOT_FOUND)?))
    }

    fn nvmlDeviceIsMigDeviceHandle(sim, now, of: b::nvmlDevice_t, is: *mut u32) {
        put(is, u32::from(device(sim, of)?.mig.is_some()))
    }

    fn nvmlDeviceGetDeviceHandleFromMigDeviceHandle(sim, now, of: b::nvmlDevice_t, to: *mut b::nvmlDevice_t) {
        let Device { card, mig } = device(sim, of)?;
        mig.ok_or(code::INVALID_ARGUMENT)?;
        put(to, super::of_card(sim, card))
    }

    fn nvmlDeviceGetGpuInstanceId(sim, now, of: b::nvmlDevice_t, id: *mut u32) {
        put(id, device(sim, of)?.mig.ok_or(code::INVALID_ARGUMENT)?.0)
    }

    fn nvmlDeviceGetComputeInstanceId(sim, now, of: b::nvmlDevice_t, id: *mut u32) {
        put(id, device(sim, of)?.mig.ok_or(code::INVALID_ARGUMENT)?.1)
    }

    fn nvmlDeviceGetAttributes_v2(sim, now, of: b::nvmlDevice_t, to: *mut b::nvmlDeviceAttributes_t) {
        let Device { card, mig } = device(sim, of)?;
        let kind = &sim.cards[card];
        let state = &sim.state().cards[card];
        let found = state.compute().find(|(g, c)| mig == Some((g.id, c.id))).ok_or(code::NOT_SUPPORTED)?;
        let profile = kind.profile(found.0.profile).ok_or(code::UNKNOWN)?;
        put(to, b::nvmlDeviceAttributes_t {
            multiprocessorCount: found.1.sms,
            sharedCopyEngineCount: profile.engines.copy,
            sharedDecoderCount: profile.engines.decode,
            sharedEncoderCount: profile.engines.encode,
            sharedJpegCount: profile.engines.jpeg,
            sharedOfaCount: profile.engines.ofa,
            gpuInstanceSliceCount: profile.slices,
            computeInstanceSliceCount: found.1.slices,
            memorySizeMB: profile.memory_mib,
        })
    }

    fn nvmlDeviceCreateGpuInstance(sim, now, of: b::nvmlDevice_t, id: u32, to: *mut b::nvmlGpuInstance_t) {
        put(to, make(sim, of, id, None)?)
    }

    fn nvmlDeviceCreateGpuInstanceWithPlacement(
        sim, now, of: b::nvmlDevice_t, id: u32, place: *const b::nvmlGpuInstancePlacement_t, to: *mut b::nvmlGpuInstance_t,
    ) {
        let place = super::get(place)?;
        let size = profile::of_id(sim, of, id)?.1.units;
        if place.size != size {
            return Err(code::INVALID_ARGUMENT);
        }
        put(to, make(sim, of, id, Some(place.start))?)
    }

    fn nvmlDeviceGetGpuInstances(
        sim, now, of: b::nvmlDevice_t, id: u32, to: *mut b::nvmlGpuInstance_t, count: *mut u32,
    ) {
        let card = in_mig_mode(sim, of)?;
        profile::of_id(sim, of, id)?;
        let all = sim.state().cards[card].instances.iter().filter(|g| g.profile == id);
        let handles: Vec<b::nvmlGpuInstance_t> = all.map(|g| tag(Kind::GpuInstance, card, g.serial)).collect();
        put_all(&handles, to, count)
    }

    fn nvmlDeviceGetGpuInstanceById(sim, now, of: b::nvmlDevice_t, id: u32, to: *mut b::nvmlGpuInstance_t) {
        let card = in_mig_mode(sim, of)?;
        let found = sim.state().cards[card].instance(id).ok_or(code::NOT_FOUND)?;
        put(to, tag(Kind::GpuInstance, card, found.serial))
    }

    fn nvmlGpuInstanceGetInfo(sim, now, of: b::nvmlGpuInstance_t, to: *mut b::nvmlGpuInstanceInfo_t) {
        let (card, found) = gpu_instance(sim, of)?;
        put(to, b::nvmlGpuInstanceInfo_t {
            device: super::of_card(sim, card),
            id: found.id,
            profileId: found.profile,
            placement: b::nvmlGpuInstancePlacement_t { start: found.start, size: found.size },
        })
    }
}

/// A list into an array that holds as many as the profile allows: its room is not asked for.
pub unsafe fn put_all<T: Copy>(all: &[T], to: *mut T, count: *mut u32) -> super::Done {
    // SAFETY: the caller keeps NVML's contract, by which the array has room for the profile's instance count.
    unsafe {
        put(count, all.len() as u32)?;
        if to.is_null() {
            return if all.is_empty() { Ok(()) } else { Err(code::INVALID_ARGUMENT) };
        }
        all.iter().enumerate().for_each(|(i, item)| to.add(i).write(*item));
    }
    Ok(())
}

nvml_in! {
    fn nvmlGpuInstanceDestroy(sim, of: b::nvmlGpuInstance_t) {
        let (card, found) = gpu_instance(sim, of)?;
        let id = found.id;
        permitted(sim)?;
        change(sim, |state, sim| {
            let refusals = sim.scenario.number("gi-busy").unwrap_or(0.0) as u32;
            if state.refused < refusals {
                state.refused += 1;
                return Err(code::IN_USE);
            }
            if is_held(sim, card, Some(id), None) || is_leaked(sim, state, card, id) {
                return Err(code::IN_USE);
            }
            cut::destroy_gpu_instance(&mut state.cards[card], id)
        })
    }
}
