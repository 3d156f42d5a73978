//! Settings of a card: modes of computing, persistence, ECC, display, limits of power.

use nvml_wrapper_sys::bindings as b;

use super::{Done, card, code, nvml, nvml_in, put};
use crate::sim::Sim;
use crate::state::{CardState, DEFAULT, EXCLUSIVE_PROCESS};

fn is_display(sim: &Sim, card: usize) -> u32 {
    u32::from(sim.cards[card].key == "display")
}

fn milliwatts(watts: f64) -> u32 {
    (watts * 1000.0).round() as u32
}

/// The limit of power that is in force.
pub fn limit_w(sim: &Sim, card: usize) -> f64 {
    sim.state().cards[card].power_limit_w.unwrap_or(sim.cards[card].extra.limit_w)
}

fn limit(sim: &Sim, of: b::nvmlDevice_t) -> Result<u32, u32> {
    Ok(milliwatts(limit_w(sim, card(sim, of)?)))
}

/// That of the data sheet.
fn own_limit(sim: &Sim, of: b::nvmlDevice_t) -> Result<u32, u32> {
    Ok(milliwatts(sim.cards[card(sim, of)?].extra.limit_w))
}

/// Change a setting of a card, if this process may.
fn set(sim: &mut Sim, of: b::nvmlDevice_t, what: impl FnOnce(&mut CardState)) -> Done {
    let card = card(sim, of)?;
    super::mig::permitted(sim)?;
    super::mig::change(sim, |state, _| {
        what(&mut state.cards[card]);
        Ok(())
    })
}

/// The clocks of applications, as far as they are known: memory has one.
fn application_mhz(sim: &Sim, of: b::nvmlDevice_t, kind: u32, set: bool) -> Result<u32, u32> {
    let card = card(sim, of)?;
    let extra = &sim.cards[card].extra;
    match kind {
        0 | 1 => Ok(sim.state().cards[card].application_mhz.filter(|_| set).unwrap_or(extra.sm_mhz)),
        2 => Ok(extra.memory_mhz),
        _ => Err(code::INVALID_ARGUMENT),
    }
}

nvml! {
    fn nvmlDeviceGetComputeMode(sim, now, of: b::nvmlDevice_t, mode: *mut u32) {
        put(mode, sim.state().cards[card(sim, of)?].compute_mode)
    }

    fn nvmlDeviceGetPersistenceMode(sim, now, of: b::nvmlDevice_t, mode: *mut u32) {
        put(mode, u32::from(sim.state().cards[card(sim, of)?].persistence))
    }

    fn nvmlDeviceGetEccMode(sim, now, of: b::nvmlDevice_t, current: *mut u32, pending: *mut u32) {
        let has = 1 - is_display(sim, card(sim, of)?);
        put(current, has)?;
        put(pending, has)
    }

    fn nvmlDeviceGetDisplayActive(sim, now, of: b::nvmlDevice_t, active: *mut u32) {
        put(active, is_display(sim, card(sim, of)?))
    }

    fn nvmlDeviceGetDisplayMode(sim, now, of: b::nvmlDevice_t, mode: *mut u32) {
        put(mode, is_display(sim, card(sim, of)?))
    }

    fn nvmlDeviceGetEnforcedPowerLimit(sim, now, of: b::nvmlDevice_t, mw: *mut u32) {
        put(mw, limit(sim, of)?)
    }

    fn nvmlDeviceGetPowerManagementLimit(sim, now, of: b::nvmlDevice_t, mw: *mut u32) {
        put(mw, limit(sim, of)?)
    }

    fn nvmlDeviceGetPowerManagementDefaultLimit(sim, now, of: b::nvmlDevice_t, mw: *mut u32) {
        put(mw, own_limit(sim, of)?)
    }

    fn nvmlDeviceGetApplicationsClock(sim, now, of: b::nvmlDevice_t, kind: u32, mhz: *mut u32) {
        put(mhz, application_mhz(sim, of, kind, true)?)
    }

    fn nvmlDeviceGetDefaultApplicationsClock(sim, now, of: b::nvmlDevice_t, kind: u32, mhz: *mut u32) {
        put(mhz, application_mhz(sim, of, kind, false)?)
    }

    fn nvmlDeviceGetPowerManagementLimitConstraints(sim, now, of: b::nvmlDevice_t, least: *mut u32, most: *mut u32) {
        let most_mw = own_limit(sim, of)?;
        put(least, most_mw / 4)?;
        put(most, most_mw)
    }
}

nvml_in! {
    fn nvmlDeviceSetPowerManagementLimit(sim, of: b::nvmlDevice_t, mw: u32) {
        let most_mw = own_limit(sim, of)?;
        if sim.scenario.has("power-fixed") {
            return Err(code::NOT_SUPPORTED);
        }
        if mw > most_mw || mw < most_mw / 4 {
            return Err(code::INVALID_ARGUMENT);
        }
        set(sim, of, |card| card.power_limit_w = (mw != most_mw).then_some(f64::from(mw) / 1000.0))
    }

    fn nvmlDeviceSetApplicationsClocks(sim, of: b::nvmlDevice_t, memory_mhz: u32, sm_mhz: u32) {
        let extra = &sim.cards[card(sim, of)?].extra;
        let own_mhz = extra.sm_mhz;
        if memory_mhz != extra.memory_mhz || sm_mhz > own_mhz {
            return Err(code::INVALID_ARGUMENT);
        }
        set(sim, of, |card| card.application_mhz = (sm_mhz != own_mhz).then_some(sm_mhz))
    }

    fn nvmlDeviceResetApplicationsClocks(sim, of: b::nvmlDevice_t) {
        set(sim, of, |card| card.application_mhz = None)
    }

    fn nvmlDeviceSetComputeMode(sim, of: b::nvmlDevice_t, mode: u32) {
        let card = card(sim, of)?;
        if mode > EXCLUSIVE_PROCESS || mode == 1 {
            return Err(code::NOT_SUPPORTED);
        }
        super::mig::permitted(sim)?;
        if sim.state().cards[card].mig && mode != DEFAULT {
            return Err(code::NOT_SUPPORTED);
        }
        let is_exclusive = sim.state().cards[card].compute_mode == EXCLUSIVE_PROCESS;
        if sim.scenario.has("exclusive-sticks") && is_exclusive && mode != EXCLUSIVE_PROCESS {
            return Err(code::UNKNOWN);
        }
        let done: Result<Done, String> = sim.change(|state, _| {
            state.cards[card].compute_mode = mode;
            Ok(Ok(()))
        });
        done.unwrap_or(Err(code::UNKNOWN))
    }

    fn nvmlDeviceSetPersistenceMode(sim, of: b::nvmlDevice_t, mode: u32) {
        let card = card(sim, of)?;
        let done: Result<Done, String> = sim.change(|state, _| {
            state.cards[card].persistence = mode == 1;
            Ok(Ok(()))
        });
        done.unwrap_or(Err(code::UNKNOWN))
    }
}
