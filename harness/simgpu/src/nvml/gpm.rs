//! GPM, the metrics of Hopper and later: two samples, and the mean of what happened between them.

use nvml_wrapper_sys::bindings as b;

use super::{Device, call, card, code, device, nvml, put};
use crate::history::Totals;
use crate::model::Activity;
use crate::sim::Sim;

/// Samples must lie further apart than this.
pub const SAMPLE_SPACING_NS: u64 = 100_000_000;
const MIB: f64 = (1u64 << 20) as f64;

/// What stands behind a sample of NVML.
#[derive(Debug, Default)]
struct Sample {
    taken: Option<Taken>,
}

#[derive(Debug, Clone, PartialEq)]
struct Taken {
    card: usize,
    /// The GPU instance and the serial number of its making; none: the whole card.
    of: Option<(u32, u64)>,
    at_ns: u64,
    sum: Activity,
}

fn supported(sim: &Sim, card: usize) -> bool {
    sim.cards[card].has_gpm() && !sim.scenario.has("no-gpm")
}

fn take(sim: &Sim, card: usize, gi: Option<u32>, now: u64) -> Result<Taken, u32> {
    if !supported(sim, card) {
        return Err(code::NOT_SUPPORTED);
    }
    let totals: Totals = sim.history().totals(card, now);
    let (of, sum) = match gi {
        None => (None, totals.card),
        Some(gi) => {
            let gpu = sim.state().cards[card].instance(gi).ok_or(code::INVALID_ARGUMENT)?;
            if gpu.compute.is_empty() {
                return Err(code::NOT_SUPPORTED);
            }
            (Some((gi, gpu.serial)), totals.instances.get(&gi).copied().unwrap_or_default())
        }
    };
    Ok(Taken { card, of, at_ns: now, sum })
}

/// One metric of the mean activity, as GPM numbers and scales them.
fn metric(mean: Activity, id: u32) -> Option<f64> {
    Some(match id {
        1 => 100.0 * mean.graphics,
        2 => 100.0 * mean.sm,
        3 => 100.0 * mean.occupancy,
        4 => 20.0 * mean.sm,
        5 => 100.0 * mean.tensor,
        6 | 8 | 9 => 0.0,
        7 => 100.0 * mean.tensor,
        10 => 100.0 * mean.dram,
        11 => 0.0,
        12 => 35.0 * mean.sm,
        13 => 5.0 * mean.sm,
        20 => mean.pcie_tx / MIB,
        21 => mean.pcie_rx / MIB,
        60 | 61 => 0.0,
        _ => return None,
    })
}

nvml! {
    fn nvmlGpmQueryDeviceSupport(sim, now, of: b::nvmlDevice_t, to: *mut b::nvmlGpmSupport_t) {
        let Device { card, .. } = device(sim, of)?;
        let version = super::get(to)?.version;
        if version != 1 {
            return Err(code::ARGUMENT_VERSION_MISMATCH);
        }
        put(to, b::nvmlGpmSupport_t { version, isSupportedDevice: u32::from(supported(sim, card)) })
    }

    fn nvmlGpmSampleGet(sim, now, of: b::nvmlDevice_t, sample: b::nvmlGpmSample_t) {
        let Device { card, mig } = device(sim, of)?;
        let taken = take(sim, card, mig.map(|(gi, _)| gi), now)?;
        let sample: *mut Sample = sample.cast();
        sample.as_mut().ok_or(code::INVALID_ARGUMENT)?.taken = Some(taken);
        Ok(())
    }

    fn nvmlGpmMigSampleGet(sim, now, of: b::nvmlDevice_t, gi: u32, sample: b::nvmlGpmSample_t) {
        let card = card(sim, of)?;
        let taken = take(sim, card, Some(gi), now)?;
        let sample: *mut Sample = sample.cast();
        sample.as_mut().ok_or(code::INVALID_ARGUMENT)?.taken = Some(taken);
        Ok(())
    }

    fn nvmlGpmMetricsGet(sim, now, get: *mut b::nvmlGpmMetricsGet_t) {
        let get = get.as_mut().ok_or(code::INVALID_ARGUMENT)?;
        if get.version != 1 {
            return Err(code::ARGUMENT_VERSION_MISMATCH);
        }
        let sample = |pointer: b::nvmlGpmSample_t| pointer.cast::<Sample>().as_ref().and_then(|s| s.taken.clone());
        let (before, after) = (sample(get.sample1), sample(get.sample2));
        let (before, after) = (before.ok_or(code::INVALID_ARGUMENT)?, after.ok_or(code::INVALID_ARGUMENT)?);
        let apart_ns = after.at_ns.saturating_sub(before.at_ns);
        let same = before.card == after.card && before.of == after.of;
        if !same || apart_ns < SAMPLE_SPACING_NS || get.numMetrics as usize > get.metrics.len() {
            return Err(code::INVALID_ARGUMENT);
        }
        let difference = after.sum.plus(before.sum, -1.0);
        let mean = Activity::default().plus(difference, 1e9 / apart_ns as f64);
        let spoilt = sim.is_on("gpm-nan");
        for slot in get.metrics.iter_mut().take(get.numMetrics as usize) {
            let value = metric(mean, slot.metricId);
            slot.nvmlReturn = if value.is_some() { code::SUCCESS } else { code::NOT_SUPPORTED };
            slot.value = if spoilt { f64::NAN } else { value.unwrap_or(0.0) };
            slot.metricInfo.shortName = c"simulated".as_ptr().cast_mut();
            slot.metricInfo.longName = c"simulated".as_ptr().cast_mut();
            slot.metricInfo.unit = if slot.metricId < 20 { c"%" } else { c"MiB/s" }.as_ptr().cast_mut();
        }
        Ok(())
    }
}

/// As in NVML.
///
/// # Safety
/// `sample` is null or points to a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlGpmSampleAlloc(sample: *mut b::nvmlGpmSample_t) -> u32 {
    call("nvmlGpmSampleAlloc", |_, _| {
        // SAFETY: the caller keeps NVML's contract; null is checked.
        unsafe { put(sample, Box::into_raw(Box::<Sample>::default()).cast()) }
    })
}

/// As in NVML.
///
/// # Safety
/// `sample` is null or was given by `nvmlGpmSampleAlloc`, and not freed since.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlGpmSampleFree(sample: b::nvmlGpmSample_t) -> u32 {
    if sample.is_null() {
        return code::INVALID_ARGUMENT;
    }
    // SAFETY: by the contract above it is a box of this library's.
    drop(unsafe { Box::from_raw(sample.cast::<Sample>()) });
    code::SUCCESS
}
