//! NVML's gauges: memory, power, energy, clocks, temperature, throttling and utilisation of each GPU, memory of each instance.

use std::sync::Arc;

use collo_store::{Sample, monotonic_ns};
use nvml_wrapper::Device;
use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};
use nvml_wrapper::enums::device::SampleValue;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::structs::device::FieldId;

use super::handle::Opened;
use super::pcie::{Traffic, bus_bytes_per_s, read_counters};
use crate::Sampler;
use crate::account::{Account, is_never};
use collo_device::nvml::text;

/// One metric of a GPU.
struct Gauge {
    metric: &'static str,
    /// The driver's averaging window; 0 for an instantaneous value or a counter.
    window_ns: u64,
    read: fn(&Device<'_>) -> Result<f64, NvmlError>,
}

/// Counted since the driver was loaded; never of an instance.
const ENERGY: Gauge =
    Gauge { metric: "energy_j", window_ns: 0, read: |d| d.total_energy_consumption().map(|mj| mj as f64 / 1e3) };

/// Field 186, the instantaneous power.
const POWER_NOW: Gauge = Gauge { metric: "power_w", window_ns: 0, read: power_now_w };

/// A mean over a second from Ampere on, except on GA100.
const POWER_MEAN: Gauge =
    Gauge { metric: "power_w", window_ns: 1_000_000_000, read: |d| d.power_usage().map(|mw| f64::from(mw) / 1e3) };

/// The same call on GA100 and older GPUs, where it is instantaneous.
const POWER_USAGE: Gauge = Gauge { window_ns: 0, ..POWER_MEAN };

const OTHERS: [Gauge; 6] = [
    Gauge { metric: "memory_used_bytes", window_ns: 0, read: |d| d.memory_info().map(|m| m.used as f64) },
    Gauge { metric: "sm_clock_mhz", window_ns: 0, read: |d| d.clock_info(Clock::SM).map(f64::from) },
    Gauge { metric: "memory_clock_mhz", window_ns: 0, read: |d| d.clock_info(Clock::Memory).map(f64::from) },
    Gauge { metric: "temperature_c", window_ns: 0, read: |d| d.temperature(TemperatureSensor::Gpu).map(f64::from) },
    // The bits of NVML's mask as a number.
    Gauge { metric: "throttle_reasons", window_ns: 0, read: |d| d.current_throttle_reasons().map(|r| r.bits() as f64) },
    // The driver's period is a sixth of a second to a second, by the card. Not supported once MIG is on.
    Gauge {
        metric: "gpu_utilization_ratio",
        window_ns: 1_000_000_000,
        read: |d| d.utilization_rates().map(|u| f64::from(u.gpu) / 100.0),
    },
];

/// The only gauge of an instance.
pub const OF_INSTANCES: &str = OTHERS[0].metric;

/// All metrics of a GPU.
pub fn metrics() -> impl Iterator<Item = &'static str> {
    [&ENERGY, &POWER_NOW].into_iter().chain(&OTHERS).map(|g| g.metric)
}

const POWER_INSTANT: FieldId = FieldId(186);

fn power_now_w(device: &Device<'_>) -> Result<f64, NvmlError> {
    let mut values = device.field_values_for(&[POWER_INSTANT])?;
    let value = values.pop().ok_or(NvmlError::NoData)??.value?;
    match value {
        SampleValue::U32(mw) => Ok(f64::from(mw) / 1e3),
        SampleValue::U64(mw) => Ok(mw as f64 / 1e3),
        _ => Err(NvmlError::NoData),
    }
}

/// Which of the three power queries is right for a GPU.
fn power_gauge(opened: &Opened) -> &'static Gauge {
    // A card in use draws something: a zero here is a field that is not filled.
    if opened.card.ask(power_now_w).is_ok_and(|w| w > 0.0) {
        return &POWER_NOW;
    }
    match opened.card.ask(|d| d.cuda_compute_capability()).map(|c| (c.major, c.minor)) {
        Ok(capability) if capability <= (8, 0) => &POWER_USAGE,
        _ => &POWER_MEAN,
    }
}

/// Reads all GPUs at each tick.
pub struct GpuGauges {
    boards: Vec<WatchedGpu>,
    account: Account,
}

struct WatchedGpu {
    opened: Arc<Opened>,
    /// Those that the driver did not refuse permanently.
    gauges: Vec<&'static Gauge>,
    parts: Vec<usize>,
    traffic: Traffic,
}

impl GpuGauges {
    /// Query everything once, and leave out what will never be reported.
    pub fn of(boards: &[Arc<Opened>]) -> GpuGauges {
        let mut account = Account::default();
        let boards = boards.iter().map(|opened| {
            let all = [&ENERGY, power_gauge(opened)].into_iter().chain(&OTHERS);
            let mut is_told = |gauge: &&'static Gauge| match opened.card.ask(gauge.read) {
                Err(e) if is_never(&e) => {
                    account.lacks(gauge.metric, &opened.scope, &text(&e));
                    false
                }
                _ => true,
            };
            let gauges = all.filter(&mut is_told).collect();
            let mut parts = Vec::new();
            for (i, part) in opened.parts.iter().enumerate() {
                match &part.card {
                    Ok(_) => parts.push(i),
                    Err(why) => account.lacks(OF_INSTANCES, &part.scope, why),
                }
            }
            let traffic = Traffic::over(opened.card.ask(bus_bytes_per_s).ok());
            WatchedGpu { opened: opened.clone(), gauges, parts, traffic }
        });
        let boards = boards.collect();
        GpuGauges { boards, account }
    }
}

impl Sampler for GpuGauges {
    fn sample(&mut self, _: u64, samples: &mut Vec<Sample>) {
        let account = &mut self.account;
        for WatchedGpu { opened, gauges, parts, traffic } in &mut self.boards {
            // With eight cards the last is read well after the tick: each has a time of its own.
            let at_ns = monotonic_ns();
            let mut push = |scope: &Arc<str>, metric, window_ns, value: Result<f64, NvmlError>| {
                match &value {
                    Ok(_) => account.gave(metric, scope),
                    Err(e @ NvmlError::GpuLost) => account.ended(metric, scope, &text(e)),
                    Err(e) => account.lacks(metric, scope, &text(e)),
                }
                samples.push(Sample { at_ns, window_ns, source: "nvml", scope: scope.clone(), metric, value: value.ok() });
            };
            for gauge in gauges.iter() {
                push(&opened.scope, gauge.metric, gauge.window_ns, opened.card.ask(gauge.read));
            }
            for part in parts.iter().map(|i| &opened.parts[*i]) {
                if let Ok(card) = &part.card {
                    push(&part.scope, OF_INSTANCES, 0, card.ask(OTHERS[0].read));
                }
            }
            if opened.pcie.is_counters() {
                match opened.card.ask(read_counters) {
                    Ok(Some(counted)) => {
                        for (metric, window_ns, value) in traffic.since(monotonic_ns(), counted) {
                            push(&opened.scope, metric, window_ns, value.ok_or(NvmlError::NoData));
                        }
                        if traffic.is_useless() {
                            opened.pcie.no_counters();
                        }
                    }
                    Ok(None) => opened.pcie.no_counters(),
                    Err(e) if is_never(&e) => opened.pcie.no_counters(),
                    Err(_) => traffic.forget(),
                }
            }
        }
    }

    fn account(&self) -> Option<&Account> {
        Some(&self.account)
    }
}
