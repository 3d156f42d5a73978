//! Who is on a device.

use nvml_wrapper_sys::bindings as b;

use super::{Device, device, entry, nvml, put_list};
use crate::clock;
use crate::history::Guest;
use crate::nvml::readings::FOREIGN_BYTES;
use crate::sim::Sim;

/// What stands for no instance.
const NO_INSTANCE: u32 = u32::MAX;
/// Added to pids that a container does not see as they are.
const HIDDEN: u32 = 5_000_000;

/// The foreign process of the scenario, once its time has come and while it lives.
pub fn foreign(sim: &Sim) -> Option<u32> {
    let pid = sim.scenario.number("foreign").filter(|_| sim.is_on("foreign"))? as u32;
    clock::born(pid).map(|_| pid)
}

/// What it holds: 2 GiB, unless the scenario says otherwise.
pub fn foreign_bytes(sim: &Sim) -> u64 {
    sim.scenario.number("foreign-mib").map_or(FOREIGN_BYTES, |mib| (mib as u64) << 20)
}

fn list(sim: &mut Sim, of: Device, only_clients: bool) -> Result<Vec<b::nvmlProcessInfo_t>, u32> {
    // As a user of an instance may find it: the parent tells nothing, and clients (type M+C) are in a list of their own.
    let apart = sim.scenario.has("mps-list-only") && sim.state().cards[of.card].mig;
    if apart && of.mig.is_none() {
        return Err(super::code::NO_PERMISSION);
    }
    let here = |g: &&Guest| {
        let place = of.mig.is_none_or(|(gi, ci)| g.here.gi == Some(gi) && g.here.ci == Some(ci));
        let listed = if only_clients { g.here.server.is_some() } else { !apart || g.here.server.is_none() };
        g.here.card == of.card && place && listed
    };
    if sim.history().guests.iter().filter(here).any(|g| !clock::is_there(g.actor.pid)) {
        sim.bury();
    }
    let shown = |pid: u32| if sim.scenario.has("hidden-pids") { pid + HIDDEN } else { pid };
    let mut all: Vec<b::nvmlProcessInfo_t> = Vec::new();
    for g in sim.history().guests.iter().filter(here) {
        let process = b::nvmlProcessInfo_t {
            pid: shown(g.actor.pid),
            usedGpuMemory: g.bytes,
            gpuInstanceId: g.here.gi.unwrap_or(NO_INSTANCE),
            computeInstanceId: g.here.ci.unwrap_or(NO_INSTANCE),
        };
        // The driver knows processes: what its threads hold is held by it.
        let is_it = |known: &&mut b::nvmlProcessInfo_t| {
            known.pid == process.pid
                && known.gpuInstanceId == process.gpuInstanceId
                && known.computeInstanceId == process.computeInstanceId
        };
        match all.iter_mut().find(is_it) {
            Some(known) => known.usedGpuMemory += process.usedGpuMemory,
            None => all.push(process),
        }
    }
    let on_instance = sim.scenario.number("foreign-gi").map(|id| id as u32);
    if of.card == sim.first_card()
        && of.mig.is_none_or(|(gi, _)| on_instance == Some(gi))
        && !only_clients
        // From 535.113.01 on a list has only who has a pid in the caller's namespace (open-gpu-kernel-modules, `_gpuConvertPid`).
        && !sim.scenario.has("pid-namespace")
        && let Some(pid) = foreign(sim)
    {
        all.push(b::nvmlProcessInfo_t {
            pid: shown(pid),
            usedGpuMemory: foreign_bytes(sim),
            gpuInstanceId: on_instance.unwrap_or(NO_INSTANCE),
            computeInstanceId: NO_INSTANCE,
        });
    }
    all.sort_by_key(|p| p.pid);
    Ok(all)
}

nvml! {
    fn nvmlDeviceGetComputeRunningProcesses_v3(sim, now, of: b::nvmlDevice_t, count: *mut u32, to: *mut b::nvmlProcessInfo_t) {
        let device = device(sim, of)?;
        super::rights::may_see_all(sim, device)?;
        entry::has_lists(sim)?;
        let all = list(sim, device, false)?;
        put_processes(sim, &all, to, count)
    }

    fn nvmlDeviceGetMPSComputeRunningProcesses_v3(sim, now, of: b::nvmlDevice_t, count: *mut u32, to: *mut b::nvmlProcessInfo_t) {
        let device = device(sim, of)?;
        super::rights::may_see_all(sim, device)?;
        entry::has_lists(sim)?;
        let all = list(sim, device, true)?;
        put_processes(sim, &all, to, count)
    }

    fn nvmlDeviceGetGraphicsRunningProcesses_v3(sim, now, of: b::nvmlDevice_t, count: *mut u32, to: *mut b::nvmlProcessInfo_t) {
        let device = device(sim, of)?;
        super::rights::may_see_all(sim, device)?;
        put_processes(sim, &[], to, count)
    }
}

/// A list of processes that does not fit, also into no room at all, says so and how long it is.
unsafe fn put_processes(sim: &Sim, all: &[b::nvmlProcessInfo_t], to: *mut b::nvmlProcessInfo_t, count: *mut u32) -> super::Done {
    // SAFETY: as the caller.
    unsafe {
        let given = super::get(count)? as usize;
        if given < all.len() {
            super::put(count, all.len() as u32)?;
            return Err(super::code::INSUFFICIENT_SIZE);
        }
        match entry::are_wide(sim) {
            true => entry::put_wide(all, to, count, given),
            false => put_list(all, to, count),
        }
    }
}
