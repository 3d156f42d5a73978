//! Devices: how many, which, and what they are called.

use std::ffi::{c_char, c_int};

use nvml_wrapper_sys::bindings as b;

use super::{Device, Kind, card, code, device, letters, nvml, of_card, put, put_text, tag, text};
use crate::sim::Sim;

/// `00000000:07:00.0`
pub fn bus_id(card: usize) -> String {
    format!("00000000:{:02X}:00.0", bus(card))
}

fn bus(card: usize) -> u32 {
    7 + 8 * card as u32
}

fn uuid(sim: &Sim, device: Device) -> Option<String> {
    let state = &sim.state().cards[device.card];
    match device.mig {
        None => Some(state.uuid.clone()),
        Some((gi, ci)) => state.compute().find(|(g, c)| (g.id, c.id) == (gi, ci)).map(|(_, c)| c.uuid.clone()),
    }
}

nvml! {
    fn nvmlDeviceGetCount_v2(sim, now, count: *mut u32) {
        put(count, sim.cards.len() as u32)
    }

    fn nvmlDeviceGetHandleByIndex_v2(sim, now, index: u32, to: *mut b::nvmlDevice_t) {
        if index as usize >= sim.cards.len() {
            return Err(code::INVALID_ARGUMENT);
        }
        if sim.is_lost(index as usize) {
            return Err(code::GPU_IS_LOST);
        }
        put(to, of_card(sim, index as usize))
    }

    fn nvmlDeviceGetHandleByUUID(sim, now, name: *const c_char, to: *mut b::nvmlDevice_t) {
        let name = text(name)?;
        for (i, state) in sim.state().cards.iter().enumerate() {
            let is_it = state.uuid == name || state.compute().any(|(_, c)| c.uuid == name);
            if is_it && sim.is_lost(i) {
                return Err(code::GPU_IS_LOST);
            }
            if state.uuid == name {
                return put(to, of_card(sim, i));
            }
            if let Some((_, c)) = state.compute().find(|(_, c)| c.uuid == name) {
                return put(to, tag(Kind::MigDevice, i, c.serial));
            }
        }
        Err(code::NOT_FOUND)
    }

    fn nvmlDeviceGetHandleByPciBusId_v2(sim, now, name: *const c_char, to: *mut b::nvmlDevice_t) {
        let name = text(name)?.to_ascii_uppercase();
        let short = |i: usize| bus_id(i)[4..].to_string();
        let found = (0..sim.cards.len()).find(|&i| name == bus_id(i) || name == short(i) || name == bus_id(i)[9..]);
        put(to, of_card(sim, found.ok_or(code::NOT_FOUND)?))
    }

    fn nvmlDeviceGetName(sim, now, of: b::nvmlDevice_t, name: *mut c_char, length: u32) {
        let device = device(sim, of)?;
        let own = sim.cards[device.card].name.clone();
        let whole = match device.mig {
            None => own,
            Some((gi, ci)) => format!("{own} MIG {}", super::compute::name(sim, device.card, gi, ci).ok_or(code::UNKNOWN)?),
        };
        put_text(&whole, name, length)
    }

    fn nvmlDeviceGetUUID(sim, now, of: b::nvmlDevice_t, to: *mut c_char, length: u32) {
        let device = device(sim, of)?;
        put_text(&uuid(sim, device).ok_or(code::UNKNOWN)?, to, length)
    }

    fn nvmlDeviceGetIndex(sim, now, of: b::nvmlDevice_t, index: *mut u32) {
        let device = device(sim, of)?;
        let state = &sim.state().cards[device.card];
        let own = state.compute().find(|(g, c)| device.mig == Some((g.id, c.id))).map(|(_, c)| c.index);
        put(index, own.unwrap_or(device.card as u32))
    }

    fn nvmlDeviceGetMinorNumber(sim, now, of: b::nvmlDevice_t, number: *mut u32) {
        put(number, card(sim, of)? as u32)
    }

    fn nvmlDeviceGetPciInfo_v3(sim, now, of: b::nvmlDevice_t, info: *mut b::nvmlPciInfo_t) {
        let card = card(sim, of)?;
        let id = bus_id(card);
        put(info, b::nvmlPciInfo_t {
            busIdLegacy: letters(&id[4..]),
            domain: 0,
            bus: bus(card),
            device: 0,
            pciDeviceId: sim.cards[card].pci_device << 16 | 0x10de,
            pciSubSystemId: 0x0144_10de,
            busId: letters(&id),
        })
    }

    fn nvmlDeviceGetArchitecture(sim, now, of: b::nvmlDevice_t, architecture: *mut u32) {
        put(architecture, sim.cards[device(sim, of)?.card].extra.architecture)
    }

    fn nvmlDeviceGetCudaComputeCapability(sim, now, of: b::nvmlDevice_t, major: *mut c_int, minor: *mut c_int) {
        let (a, b) = sim.cards[device(sim, of)?.card].extra.capability;
        put(major, a)?;
        put(minor, b)
    }

    fn nvmlDeviceGetNumGpuCores(sim, now, of: b::nvmlDevice_t, cores: *mut u32) {
        let card = &sim.cards[card(sim, of)?];
        put(cores, card.sms * card.extra.cores_per_sm)
    }

    fn nvmlDeviceGetVbiosVersion(sim, now, of: b::nvmlDevice_t, version: *mut c_char, length: u32) {
        let card = card(sim, of)?;
        put_text(&format!("92.00.45.00.{:02X}", card + 3), version, length)
    }
}
