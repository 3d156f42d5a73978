//! PCIe traffic if neither GPM nor DCGM reports it: NVML's byte counters, and last the driver's own measurement of 20 ms.

use std::sync::Arc;

use collo_store::{Sample, monotonic_ns};
use nvml_wrapper::Device;
use nvml_wrapper::enum_wrappers::device::PcieUtilCounter;
use nvml_wrapper::enums::device::SampleValue;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::structs::device::FieldId;

use super::gpm_metrics::{PCIE_RX, PCIE_TX};
use super::handle::Opened;
use crate::Sampler;
use crate::account::Account;
use collo_device::nvml::text;

/// Bytes sent and received, by NVML field.
const FIELDS: [FieldId; 2] = [FieldId(197), FieldId(198)];
const METRICS: [&str; 2] = [PCIE_TX, PCIE_RX];

/// Both counters of a GPU; `None` unless it has both.
pub fn read_counters(device: &Device<'_>) -> Result<Option<[u64; 2]>, NvmlError> {
    let mut counted = Vec::new();
    for field in device.field_values_for(&FIELDS)? {
        counted.push(match field.and_then(|f| f.value) {
            Ok(SampleValue::U32(bytes)) => u64::from(bytes),
            Ok(SampleValue::U64(bytes)) => bytes,
            Ok(SampleValue::I64(bytes)) => u64::try_from(bytes).map_err(|_| NvmlError::NoData)?,
            Ok(_) | Err(NvmlError::NotSupported | NvmlError::InvalidArg) => return Ok(None),
            Err(e) => return Err(e),
        });
    }
    Ok(<[u64; 2]>::try_from(counted).ok())
}

/// Bytes that a lane moves per second in one direction, by the generation of the bus: 2.5, 5, 8, 16, 32 and 64 GT/s with their encodings
/// (PCI Express Base Specification).
const LANE_BYTES_PER_S: [f64; 6] = [0.25e9, 0.5e9, 0.985e9, 1.969e9, 3.938e9, 7.563e9];

/// What the bus of a GPU moves per second in one direction, at most.
pub fn bus_bytes_per_s(device: &Device<'_>) -> Result<f64, NvmlError> {
    let (generation, width) = (device.max_pcie_link_gen()?, device.max_pcie_link_width()?);
    let lane = LANE_BYTES_PER_S.get(generation.saturating_sub(1) as usize).copied();
    // What is newer than these is twice as fast as the last at the least.
    Ok(lane.unwrap_or(2.0 * LANE_BYTES_PER_S[5]) * f64::from(width))
}

/// The readings before, for computing a rate.
#[derive(Debug)]
pub struct Traffic {
    before: Option<(u64, [u64; 2])>,
    /// A counter that was seen above 32 bits does not wrap there.
    is_wide: [bool; 2],
    /// Number of consecutive readings that were too far apart.
    unsure: u32,
    /// A 32-bit counter read at longer intervals could have wrapped twice.
    sure_ns: u64,
}

const WRAP: u64 = 1 << 32;

/// PCIe 4 ×16 moves 2³² bytes in 136 ms. Over PCIe 5 it is half of that, and not every GPU there reports its traffic by GPM: in a container
/// it may be refused (DCGM #214).
const SURE_NS: u64 = 130_000_000;
/// Of the time in which a counter may wrap, so much is sure.
const SURE: f64 = 0.95;

impl Default for Traffic {
    fn default() -> Traffic {
        Traffic { before: None, is_wide: [false; 2], unsure: 0, sure_ns: SURE_NS }
    }
}

impl Traffic {
    /// Over a bus that moves so much per second in one direction; `None` if that is not known.
    pub fn over(bus_bytes_per_s: Option<f64>) -> Traffic {
        let wraps_after = |rate: f64| (SURE * WRAP as f64 / rate * 1e9) as u64;
        let sure_ns = bus_bytes_per_s.filter(|rate| *rate > 0.0).map_or(SURE_NS, wraps_after);
        Traffic { sure_ns, ..Traffic::default() }
    }

    /// Start again: a reading is missing.
    pub fn forget(&mut self) {
        *self = Traffic { sure_ns: self.sure_ns, ..Traffic::default() };
    }

    /// Metric, window and rate since the reading before; empty at the first.
    pub fn since(&mut self, at_ns: u64, counted: [u64; 2]) -> Vec<(&'static str, u64, Option<f64>)> {
        let before = self.before.replace((at_ns, counted));
        for (wide, now) in self.is_wide.iter_mut().zip(counted) {
            *wide |= now >= WRAP;
        }
        let Some((then_ns, then)) = before.filter(|b| b.0 < at_ns) else { return Vec::new() };
        let window_ns = at_ns - then_ns;
        let is_unsure = window_ns > self.sure_ns && self.is_wide.contains(&false);
        self.unsure = if is_unsure { self.unsure + 1 } else { 0 };
        let rate = |i: usize| {
            let bytes = grown(then[i], counted[i], self.is_wide[i], window_ns <= self.sure_ns);
            (METRICS[i], window_ns, bytes.map(|b| b as f64 / (window_ns as f64 / 1e9)))
        };
        vec![rate(0), rate(1)]
    }
}

impl Traffic {
    /// Whether the counters are read too rarely to be of use.
    pub fn is_useless(&self) -> bool {
        self.unsure >= 5
    }
}

/// The growth of a counter; `None` if unknown. `is_sure`: it has wrapped once at most.
fn grown(then: u64, now: u64, is_wide: bool, is_sure: bool) -> Option<u64> {
    if is_wide {
        // Less than before: it was reset.
        return now.checked_sub(then);
    }
    is_sure.then(|| if now >= then { now - then } else { now + WRAP - then })
}

/// The driver's query, which blocks for its 20 ms, twice a GPU: for the slow thread, and only without another source.
pub struct LastResort {
    pub boards: Vec<Arc<Opened>>,
    pub account: Account,
}

impl Sampler for LastResort {
    fn sample(&mut self, _: u64, samples: &mut Vec<Sample>) {
        for opened in self.boards.iter().filter(|b| b.pcie.is_query()) {
            for (metric, counter) in [(PCIE_TX, PcieUtilCounter::Send), (PCIE_RX, PcieUtilCounter::Receive)] {
                let value = opened.card.ask(|d| d.pcie_throughput(counter));
                match &value {
                    Ok(_) => self.account.gave(metric, &opened.scope),
                    Err(e) => self.account.lacks(metric, &opened.scope, &text(e)),
                }
                // KB/s, as NVML says: of 1000 bytes.
                let value = value.ok().map(|kb| f64::from(kb) * 1e3);
                let (at_ns, scope) = (monotonic_ns(), opened.scope.clone());
                samples.push(Sample { at_ns, window_ns: 20_000_000, source: "nvml", scope, metric, value });
            }
        }
    }

    fn account(&self) -> Option<&Account> {
        Some(&self.account)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TENTH_NS: u64 = 100_000_000;

    fn rates(readings: &[(u64, u64)]) -> Vec<Option<f64>> {
        let mut traffic = Traffic::default();
        let since = |&(at_ns, bytes): &(u64, u64)| traffic.since(at_ns, [bytes, 0]).first().map(|r| r.2);
        readings.iter().filter_map(since).collect()
    }

    #[test]
    fn a_counter_of_32_bits_goes_on_over_its_wrap() {
        assert_eq!(rates(&[(0, WRAP - 100), (TENTH_NS, 900)]), [Some(10_000.0)]);
    }

    #[test]
    fn a_gap_in_which_it_may_have_wrapped_twice_tells_nothing() {
        assert_eq!(rates(&[(0, 100), (4 * TENTH_NS, 900), (5 * TENTH_NS, 1000)]), [None, Some(1000.0)]);
    }

    #[test]
    fn over_a_faster_bus_a_counter_of_32_bits_is_sure_for_less_time() {
        let rate = |bus: Option<f64>| {
            let mut traffic = Traffic::over(bus);
            traffic.since(0, [0, 0]);
            traffic.since(TENTH_NS, [900, 900])[0].2
        };
        let of = |generation: usize| rate(Some(16.0 * LANE_BYTES_PER_S[generation - 1]));
        // PCIe 5 ×16 moves 2³² bytes in 68 ms.
        assert_eq!((rate(None), of(3), of(4), of(5)), (Some(9000.0), Some(9000.0), Some(9000.0), None));
    }

    #[test]
    fn counters_that_are_always_read_too_rarely_are_of_no_use() {
        let mut traffic = Traffic::default();
        for second in 0..=5 {
            assert!(!traffic.is_useless());
            traffic.since(second * 10 * TENTH_NS, [second, second]);
        }
        assert!(traffic.is_useless());
        traffic.since(51 * TENTH_NS, [9, 9]);
        assert!(!traffic.is_useless());
    }

    #[test]
    fn a_wide_counter_may_be_read_rarely_and_one_that_was_reset_tells_nothing() {
        assert_eq!(rates(&[(0, WRAP), (10 * TENTH_NS, WRAP + 50)]), [Some(50.0)]);
        assert_eq!(rates(&[(0, WRAP + 50), (TENTH_NS, 7)]), [None]);
    }

    #[test]
    fn sent_and_received_are_not_mixed_up() {
        let mut traffic = Traffic::default();
        assert!(traffic.since(0, [10, 20]).is_empty());
        let read = traffic.since(TENTH_NS, [110, 220]);
        assert_eq!(read, [(PCIE_TX, TENTH_NS, Some(1000.0)), (PCIE_RX, TENTH_NS, Some(2000.0))]);
    }
}
