//! Settings of a card: modes of computing, persistence, ECC, display, limits of power.

use nvml_wrapper_sys::bindings as b;

use super::{Done, card, code, nvml, nvml_in, put};
use crate::sim::Sim;
use crate::state::{DEFAULT, EXCLUSIVE_PROCESS};

fn is_display(sim: &Sim, card: usize) -> u32 {
    u32::from(sim.cards[card].key == "display")
}

fn milliwatts(watts: f64) -> u32 {
    (watts * 1000.0).round() as u32
}

/// The limits of power are those of the data sheet; nobody changes them here.
fn limit(sim: &Sim, of: b::nvmlDevice_t) -> Result<u32, u32> {
    Ok(milliwatts(sim.cards[card(sim, of)?].extra.limit_w))
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
        put(mw, limit(sim, of)?)
    }

    fn nvmlDeviceGetPowerManagementLimitConstraints(sim, now, of: b::nvmlDevice_t, least: *mut u32, most: *mut u32) {
        let most_mw = limit(sim, of)?;
        put(least, most_mw / 4)?;
        put(most, most_mw)
    }
}

nvml_in! {
    fn nvmlDeviceSetComputeMode(sim, of: b::nvmlDevice_t, mode: u32) {
        let card = card(sim, of)?;
        if mode > EXCLUSIVE_PROCESS || mode == 1 {
            return Err(code::NOT_SUPPORTED);
        }
        if sim.scenario.has("mig-no-permission") {
            return Err(code::NO_PERMISSION);
        }
        if sim.state().cards[card].mig && mode != DEFAULT {
            return Err(code::NOT_SUPPORTED);
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
