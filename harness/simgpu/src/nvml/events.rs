//! Events of NVML: sets of them, and the Xid of the scenario (`xid=79@300ms`), which every set that is there by then gets once.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use nvml_wrapper_sys::bindings as b;

use super::{Done, call, card, code, device, nvml, nvml_in, of_card, put};
use crate::clock;
use crate::sim::Sim;

/// nvmlEventTypeXidCriticalError of nvml.h.
const XID: u64 = 0x8;
const LOOK: Duration = Duration::from_millis(5);

struct Set {
    since_ns: u64,
    cards: Vec<usize>,
    delivered: bool,
}

/// The sets of this process by their handles.
static SETS: Mutex<BTreeMap<usize, Set>> = Mutex::new(BTreeMap::new());

fn sets() -> MutexGuard<'static, BTreeMap<usize, Set>> {
    SETS.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

nvml! {
    fn nvmlEventSetCreate(sim, now, to: *mut b::nvmlEventSet_t) {
        let _ = &sim;
        let mut sets = sets();
        let handle = sets.keys().next_back().map_or(1, |last| last + 1);
        sets.insert(handle, Set { since_ns: now, cards: Vec::new(), delivered: false });
        put(to, handle as b::nvmlEventSet_t)
    }

    fn nvmlDeviceGetSupportedEventTypes(sim, now, of: b::nvmlDevice_t, types: *mut u64) {
        device(sim, of)?;
        put(types, XID)
    }
}

nvml_in! {
    fn nvmlDeviceRegisterEvents(sim, of: b::nvmlDevice_t, types: u64, set: b::nvmlEventSet_t) {
        let card = card(sim, of)?;
        match sets().get_mut(&(set as usize)) {
            Some(set) if types & !XID == 0 => {
                set.cards.push(card);
                Ok(())
            }
            Some(_) => Err(code::NOT_SUPPORTED),
            None => Err(code::INVALID_ARGUMENT),
        }
    }

    fn nvmlEventSetFree(sim, set: b::nvmlEventSet_t) {
        let _ = &sim;
        sets().remove(&(set as usize)).map(|_| ()).ok_or(code::INVALID_ARGUMENT)
    }
}

/// The Xid that a set has not delivered yet.
fn pending(sim: &Sim, set: b::nvmlEventSet_t) -> Result<Option<b::nvmlEventData_t>, u32> {
    let mut sets = sets();
    let set = sets.get_mut(&(set as usize)).ok_or(code::INVALID_ARGUMENT)?;
    let begins_ns = sim.begins_ns("xid").filter(|begins| *begins >= set.since_ns && *begins <= clock::now_ns());
    let (Some(_), Some(card), false) = (begins_ns, set.cards.first(), set.delivered) else { return Ok(None) };
    set.delivered = true;
    let number = sim.scenario.number("xid").unwrap_or(79.0) as u64;
    // No instance: it is of the whole card.
    let (gpu, compute) = (u32::MAX, u32::MAX);
    let (device, kind) = (of_card(sim, *card), XID);
    Ok(Some(b::nvmlEventData_t { device, eventType: kind, eventData: number, gpuInstanceId: gpu, computeInstanceId: compute }))
}

/// As in NVML: it waits, and others may ask meanwhile.
///
/// # Safety
/// `to` is null or points to an event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlEventSetWait_v2(set: b::nvmlEventSet_t, to: *mut b::nvmlEventData_t, timeout_ms: u32) -> u32 {
    let until = Instant::now() + Duration::from_millis(u64::from(timeout_ms));
    loop {
        let mut found = None;
        let look = |sim: &mut Sim, _: u64| -> Done {
            found = pending(sim, set)?;
            Ok(())
        };
        match (call("nvmlEventSetWait_v2", look), found) {
            // SAFETY: the caller keeps NVML's contract; null is checked.
            (code::SUCCESS, Some(event)) => return call("nvmlEventSetWait_v2", |_, _| unsafe { put(to, event) }),
            (code::SUCCESS, None) if Instant::now() >= until => return code::TIMEOUT,
            (code::SUCCESS, None) => std::thread::sleep(LOOK),
            (failed, _) => return failed,
        }
    }
}
