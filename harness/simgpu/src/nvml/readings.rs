//! What a card's sensors and counters say: memory, power, energy, clocks, temperature, utilisation, PCIe.

use std::time::Duration;

use nvml_wrapper_sys::bindings as b;

use super::{Device, call, card, code, device, nvml, put, version_word};
use crate::clock;
use crate::model::Activity;
use crate::sim::Sim;

const MIB: u64 = 1 << 20;
/// Firmware and page tables of a whole card.
pub const RESERVED_MIB: u64 = 600;
/// What a foreign process of the scenario holds.
pub const FOREIGN_BYTES: u64 = 2 << 30;
/// The energy counter moves in steps.
const ENERGY_STEP_NS: u64 = 20_000_000;
const AVERAGED_NS: u64 = 1_000_000_000;
const UTILISATION_NS: u64 = 250_000_000;
const PCIE_NS: u64 = 20_000_000;
const IDLE_MHZ: u32 = 210;
const THROTTLED_CLOCK: f64 = 0.7;

/// Total, reserved, used, free in bytes.
pub fn memory(sim: &Sim, of: Device) -> Result<[u64; 4], u32> {
    let kind = &sim.cards[of.card];
    if sim.scenario.number("lost-card") == Some(of.card as f64) {
        return Err(code::GPU_IS_LOST);
    }
    let held = |gi: Option<u32>| -> u64 {
        let here = |g: &&crate::history::Guest| g.here.card == of.card && (gi.is_none() || g.here.gi == gi);
        sim.history().guests.iter().filter(here).map(|g| g.bytes).sum()
    };
    let (total, reserved, used) = match of.mig {
        None => {
            let is_there = of.card == sim.first_card() && super::process::foreign(sim).is_some();
            let foreign = if is_there { super::process::foreign_bytes(sim) } else { 0 };
            let used = held(None);
            let own = sim.scenario.number("unexplained-mib").filter(|_| used > 0).map_or(0, |mib| mib as u64 * MIB);
            (kind.total_mib * MIB, RESERVED_MIB.min(kind.total_mib / 8) * MIB, used + foreign + own)
        }
        Some((gi, _)) => {
            let gpu = sim.state().cards[of.card].instance(gi).ok_or(code::INVALID_ARGUMENT)?;
            let profile = kind.profile(gpu.profile).ok_or(code::UNKNOWN)?;
            (profile.memory_mib * MIB, 0, held(Some(gi)))
        }
    };
    let used = used.min(total - reserved);
    Ok([total, reserved, used, total - reserved - used])
}

fn power_mw(sim: &Sim, card: usize) -> Result<u32, u32> {
    if sim.is_on("no-power") {
        return Err(code::NOT_SUPPORTED);
    }
    Ok((sim.history().now(card).power_w * 1000.0).round() as u32)
}

fn average_mw(sim: &Sim, card: usize, now: u64) -> Result<u32, u32> {
    if sim.is_on("no-power") {
        return Err(code::NOT_SUPPORTED);
    }
    Ok((sim.history().mean(card, now, AVERAGED_NS).1 * 1000.0).round() as u32)
}

/// The driver was loaded long before, so the counter does not begin at 0.
fn energy_mj(sim: &Sim, card: usize, now: u64) -> Result<u64, u32> {
    if sim.is_on("no-energy") {
        return Err(code::NOT_SUPPORTED);
    }
    let counted = sim.history().totals(card, now - now % ENERGY_STEP_NS).energy_j;
    let counter_j = match sim.history().reset_j(card) {
        Some(at_reset) => (counted - at_reset).max(0.0),
        None => counted + 1_000_000.0 * (card + 1) as f64,
    };
    Ok((counter_j * 1000.0) as u64)
}

fn pcie_bytes(sim: &Sim, card: usize, now: u64) -> (u64, u64) {
    let totals = sim.history().totals(card, now);
    (totals.card.pcie_tx as u64, totals.card.pcie_rx as u64)
}

fn clock_mhz(sim: &Sim, card: usize, kind: u32) -> Result<u32, u32> {
    let extra = &sim.cards[card].extra;
    let set = &sim.state().cards[card];
    if let (0 | 1 | 3, Some(mhz)) = (kind, set.locked_mhz) {
        return Ok(mhz);
    }
    let sm_mhz = set.application_mhz.unwrap_or(extra.sm_mhz);
    let busy = sim.history().guests.iter().any(|g| g.here.card == card && !g.here.serves);
    match kind {
        0 | 1 | 3 if !busy => Ok(IDLE_MHZ),
        0 | 1 | 3 if sim.history().is_throttled() => Ok((f64::from(sm_mhz) * THROTTLED_CLOCK) as u32),
        0 | 1 | 3 => Ok(sm_mhz),
        2 => Ok(extra.memory_mhz),
        _ => Err(code::INVALID_ARGUMENT),
    }
}

fn throttle_reasons(sim: &Sim, card: usize) -> u64 {
    let trains = sim.history().guests.iter().any(|g| g.here.card == card && g.trains);
    match (trains, sim.history().is_throttled()) {
        (false, _) => 0x1,
        (true, true) => 0x4,
        (true, false) => 0,
    }
}

fn field(sim: &Sim, card: usize, now: u64, id: u32) -> Result<(u32, b::nvmlValue_t), u32> {
    let unsigned = |mw: u32| (b::nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_INT, b::nvmlValue_t { uiVal: mw });
    let long = |n: u64| (b::nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_LONG_LONG, b::nvmlValue_t { ullVal: n });
    match id {
        83 | 191 => energy_mj(sim, card, now).map(long),
        185 => average_mw(sim, card, now).map(unsigned),
        186 => power_mw(sim, card).map(unsigned),
        189 => Ok(unsigned((sim.cards[card].extra.limit_w * 1000.0) as u32)),
        190 => Ok(unsigned((super::board::limit_w(sim, card) * 1000.0) as u32)),
        197 => Ok(long(pcie_bytes(sim, card, now).0)),
        198 => Ok(long(pcie_bytes(sim, card, now).1)),
        _ => Err(code::NOT_SUPPORTED),
    }
}

/// Total, reserved, used and free MiB of a card or a GPU instance.
pub fn memory_mib(sim: &Sim, card: usize, gi: Option<u32>) -> Option<[u64; 4]> {
    memory(sim, Device { card, mig: gi.map(|gi| (gi, 0)) }).ok().map(|all| all.map(|bytes| bytes / MIB))
}

/// What the sensors of a board say, for the programs that show it; absent is what the scenario took away.
pub struct Board {
    pub power_w: Option<f64>,
    pub average_w: Option<f64>,
    pub energy_mj: Option<u64>,
    pub sm_mhz: u32,
    pub celsius: u32,
    pub throttle_reasons: u64,
    pub recent: Activity,
}

impl Board {
    pub fn read(sim: &Sim, card: usize, now: u64) -> Board {
        Board {
            power_w: power_mw(sim, card).ok().map(|mw| f64::from(mw) / 1e3),
            average_w: average_mw(sim, card, now).ok().map(|mw| f64::from(mw) / 1e3),
            energy_mj: energy_mj(sim, card, now).ok(),
            sm_mhz: clock_mhz(sim, card, 1).unwrap_or(0),
            celsius: celsius(sim, card, now),
            throttle_reasons: throttle_reasons(sim, card),
            recent: sim.history().mean(card, now, UTILISATION_NS).0,
        }
    }
}

fn celsius(sim: &Sim, card: usize, now: u64) -> u32 {
    let watts = sim.history().mean(card, now, 2 * AVERAGED_NS).1;
    (30.0 + 45.0 * watts / sim.cards[card].extra.limit_w).round() as u32
}

nvml! {
    fn nvmlDeviceGetMemoryInfo_v2(sim, now, of: b::nvmlDevice_t, info: *mut b::nvmlMemory_v2_t) {
        let device = device(sim, of)?;
        super::rights::may_see_all(sim, device)?;
        let version = version_word::<b::nvmlMemory_v2_t>(2);
        if super::get(info)?.version != version {
            return Err(code::ARGUMENT_VERSION_MISMATCH);
        }
        let [total, reserved, used, free] = memory(sim, device)?;
        put(info, b::nvmlMemory_v2_t { version, total, reserved, free, used })
    }

    fn nvmlDeviceGetMemoryInfo(sim, now, of: b::nvmlDevice_t, info: *mut b::nvmlMemory_t) {
        let device = device(sim, of)?;
        super::rights::may_see_all(sim, device)?;
        let [total, reserved, used, free] = memory(sim, device)?;
        put(info, b::nvmlMemory_t { total, free, used: used + reserved })
    }

    fn nvmlDeviceGetPowerUsage(sim, now, of: b::nvmlDevice_t, mw: *mut u32) {
        let card = card(sim, of)?;
        // An A100 reports the moment; what came after it reports the mean of a second.
        let moment = sim.cards[card].extra.architecture <= 7 && sim.cards[card].key.starts_with("a100");
        put(mw, if moment { power_mw(sim, card)? } else { average_mw(sim, card, now)? })
    }

    fn nvmlDeviceGetTotalEnergyConsumption(sim, now, of: b::nvmlDevice_t, mj: *mut u64) {
        let card = card(sim, of)?;
        put(mj, energy_mj(sim, card, now)?)
    }

    fn nvmlDeviceGetFieldValues(sim, now, of: b::nvmlDevice_t, count: i32, values: *mut b::nvmlFieldValue_t) {
        let card = card(sim, of)?;
        if values.is_null() || count <= 0 {
            return Err(code::INVALID_ARGUMENT);
        }
        for i in 0..count as usize {
            let slot = &mut *values.add(i);
            slot.timestamp = clock::wall_us();
            slot.latencyUsec = 5;
            match field(sim, card, now, slot.fieldId) {
                Ok((kind, value)) => {
                    slot.valueType = kind;
                    slot.value = value;
                    slot.nvmlReturn = code::SUCCESS;
                }
                Err(why) => slot.nvmlReturn = why,
            }
        }
        Ok(())
    }

    fn nvmlDeviceGetMaxPcieLinkGeneration(sim, now, of: b::nvmlDevice_t, generation: *mut u32) {
        // PCIe 5 came with Hopper.
        put(generation, if sim.cards[card(sim, of)?].has_gpm() { 5 } else { 4 })
    }

    fn nvmlDeviceGetMaxPcieLinkWidth(sim, now, of: b::nvmlDevice_t, lanes: *mut u32) {
        card(sim, of)?;
        put(lanes, 16)
    }

    fn nvmlDeviceGetClockInfo(sim, now, of: b::nvmlDevice_t, kind: u32, mhz: *mut u32) {
        let card = device(sim, of)?.card;
        put(mhz, clock_mhz(sim, card, kind)?)
    }

    fn nvmlDeviceGetMaxClockInfo(sim, now, of: b::nvmlDevice_t, kind: u32, mhz: *mut u32) {
        let extra = &sim.cards[device(sim, of)?.card].extra;
        put(mhz, if kind == 2 { extra.memory_mhz } else { extra.sm_mhz })
    }

    fn nvmlDeviceGetTemperature(sim, now, of: b::nvmlDevice_t, _sensor: u32, to: *mut u32) {
        let card = card(sim, of)?;
        put(to, celsius(sim, card, now))
    }

    fn nvmlDeviceGetCurrentClocksThrottleReasons(sim, now, of: b::nvmlDevice_t, bits: *mut u64) {
        let card = card(sim, of)?;
        put(bits, throttle_reasons(sim, card))
    }

    fn nvmlDeviceGetCurrentClocksEventReasons(sim, now, of: b::nvmlDevice_t, bits: *mut u64) {
        let card = card(sim, of)?;
        put(bits, throttle_reasons(sim, card))
    }

    fn nvmlDeviceGetUtilizationRates(sim, now, of: b::nvmlDevice_t, to: *mut b::nvmlUtilization_t) {
        let card = card(sim, of)?;
        if sim.state().cards[card].mig {
            return Err(code::NOT_SUPPORTED);
        }
        let activity = sim.history().mean(card, now, UTILISATION_NS).0;
        let percent = |share: f64| (100.0 * share).round() as u32;
        let is_there = card == sim.first_card() && super::process::foreign(sim).is_some();
        let foreign = sim.scenario.number("foreign-load").filter(|_| is_there).unwrap_or(0.0) as u32;
        let gpu = (percent(activity.graphics) + foreign).min(100);
        put(to, b::nvmlUtilization_t { gpu, memory: percent(activity.dram) })
    }
}

/// As in NVML: it waits for 20 ms.
///
/// # Safety
/// `kb_per_s` is null or points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetPcieThroughput(of: b::nvmlDevice_t, counter: u32, kb_per_s: *mut u32) -> u32 {
    let check = call("nvmlDeviceGetPcieThroughput", |sim, _| {
        let card = card(sim, of)?;
        if sim.state().cards[card].mig { Err(code::NOT_SUPPORTED) } else { Ok(()) }
    });
    if check != code::SUCCESS {
        return check;
    }
    std::thread::sleep(Duration::from_nanos(PCIE_NS));
    call("nvmlDeviceGetPcieThroughput", |sim, now| {
        let activity = sim.history().mean(card(sim, of)?, now, PCIE_NS).0;
        let bytes = if counter == 0 { activity.pcie_tx } else { activity.pcie_rx };
        // SAFETY: the caller keeps NVML's contract; null is checked.
        unsafe { put(kb_per_s, (bytes / 1000.0) as u32) }
    })
}
