//! GPM, the profiler inside NVML from Hopper on: means between two readings of a GPU or a GPU instance.
//!
//! Two readings must be more than 100 ms apart, so it has a thread and a cadence of its own. The first reading only seeds. After
//! a few pairs it is settled which metrics of which entity it reports; fallback sources for the others are notified then.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use collo_store::{Sample, monotonic_ns};
use nvml_wrapper::error::{NvmlError, nvml_sym, nvml_try};
use nvml_wrapper::{Device, Nvml};
use nvml_wrapper_sys::bindings::{NVML_GPM_METRICS_GET_VERSION, nvmlGpmMetricsGet_t, nvmlGpmSample_t};

use super::gpm_metrics::{Level, PCIE_TX, PROFILED, Profiled};
use super::handle::Opened;
use crate::Sampler;
use crate::account::{Account, is_never};
use collo_device::nvml::text;

/// Pairs of 200 ms.
pub const RATE_HZ: f64 = 5.0;

/// NVML refuses pairs of 100 ms and less.
const LEAST_NS: u64 = 105_000_000;

/// After this many pairs a fallback source takes over a metric that gave no number, if others of the entity gave one.
const SETTLED_PAIRS: u32 = 3;

/// Pairs to wait for an entity that gave nothing at all.
const PATIENT_PAIRS: u32 = 10;

/// Called once for each GPU, with the metrics and scopes that GPM does not report.
pub type Settled = Box<dyn FnMut(usize, Vec<Missing>) + Send>;

/// A metric of a scope for a fallback source.
pub type Missing = (Arc<str>, &'static Profiled);

/// Whether a GPU has readable GPM, or why not.
pub fn supported(opened: &Opened) -> Result<(), String> {
    match opened.card.ask(|d| d.gpm_support()) {
        Ok(true) => permitted(opened),
        Err(e) if !is_never(&e) => Err(text(&e)),
        Err(e @ (NvmlError::FunctionNotFound | NvmlError::FailedToLoadSymbol(_))) => Err(text(&e)),
        Ok(false) | Err(_) => match opened.card.ask(|d| d.cuda_compute_capability()) {
            Ok(capability) if capability.major >= i32::from(collo_gpus::HOPPER) => {
                Err("this GPU reports that it has no GPM".into())
            }
            _ => Err("GPM requires Hopper".into()),
        },
    }
}

/// A GPU may restrict it to privileged users: in containers, and if the driver restricts profiling (DCGM #214). Tested with one
/// reading.
fn permitted(opened: &Opened) -> Result<(), String> {
    let reading = Buffer::new(opened.card.nvml()).and_then(|buffer| opened.card.ask(|device| buffer.fill(device, None)));
    match reading {
        Err(e @ NvmlError::NoPermission) => Err(format!("GPM cannot be read: {}", text(&e))),
        // Anything else may pass.
        _ => Ok(()),
    }
}

/// The memory for one reading.
struct Buffer {
    nvml: Arc<Nvml>,
    raw: nvmlGpmSample_t,
}

// SAFETY: a reading may be used by any thread, by one at a time; it is owned here and freed with its library open.
unsafe impl Send for Buffer {}

impl Buffer {
    fn new(nvml: &Arc<Nvml>) -> Result<Buffer, NvmlError> {
        let alloc = nvml_sym(nvml.lib().nvmlGpmSampleAlloc.as_ref())?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: NVML writes the pointer to what it allocated.
        unsafe { nvml_try(alloc(&mut raw))? };
        Ok(Buffer { nvml: nvml.clone(), raw })
    }

    /// Take a reading of a device, or of a GPU instance on it.
    fn fill(&self, device: &Device<'_>, gpu_instance: Option<u32>) -> Result<(), NvmlError> {
        let lib = self.nvml.lib();
        // SAFETY: the handle and the buffer are of this open library.
        unsafe {
            match gpu_instance {
                None => nvml_try(nvml_sym(lib.nvmlGpmSampleGet.as_ref())?(device.handle(), self.raw)),
                Some(id) => nvml_try(nvml_sym(lib.nvmlGpmMigSampleGet.as_ref())?(device.handle(), id, self.raw)),
            }
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Ok(free) = &self.nvml.lib().nvmlGpmSampleFree {
            // SAFETY: it was allocated by this library and is freed once. What free says of it changes nothing any more.
            let _ = unsafe { free(self.raw) };
        }
    }
}

/// A GPU or a GPU instance.
struct Entity {
    board: usize,
    scope: Arc<str>,
    /// NVML's id of the instance on the GPU; `None` for the GPU.
    gpu_instance: Option<u32>,
    older: Buffer,
    newer: Buffer,
    /// When the older reading was taken, if there is one.
    seeded_ns: Option<u64>,
    metrics: Vec<RequestedMetric>,
    pairs: u32,
    settled: bool,
}

/// A requested metric.
struct RequestedMetric {
    profiled: &'static Profiled,
    /// The driver refused it permanently; a value that is not a number may become one, as on a GPU that slept.
    is_never: bool,
}

/// Reads all GPUs that have GPM.
pub struct Gpm {
    boards: Vec<Arc<Opened>>,
    entities: Vec<Entity>,
    /// Large, so it is made once.
    request: Box<nvmlGpmMetricsGet_t>,
    account: Account,
    settled: Settled,
    /// Boards that have not settled.
    open: Vec<usize>,
    missing: Vec<Vec<Missing>>,
}

// SAFETY: the pointers in the request are those of buffers that are owned here, and are set before each use.
unsafe impl Send for Gpm {}

impl Gpm {
    /// GPUs known to have GPM, by their index among all.
    pub fn of(boards: &[Arc<Opened>], having: &[usize], mut settled: Settled) -> Gpm {
        let mut entities = Vec::new();
        let mut account = Account::default();
        let mut missing = vec![Vec::new(); boards.len()];
        for &board in having {
            let opened = &boards[board];
            let parts = opened.parts.iter().map(|p| (&p.scope, Some(p.gpu_instance)));
            for (scope, gpu_instance) in std::iter::once((&opened.scope, None)).chain(parts) {
                let level = if gpu_instance.is_some() { Level::GpuInstance } else { Level::Gpu };
                let profiled = || PROFILED.iter().filter(move |p| p.exists_at(level));
                let nvml = opened.card.nvml();
                match Buffer::new(nvml).and_then(|older| Ok((older, Buffer::new(nvml)?))) {
                    Ok((older, newer)) => entities.push(Entity {
                        board,
                        scope: scope.clone(),
                        gpu_instance,
                        older,
                        newer,
                        seeded_ns: None,
                        metrics: profiled().map(|profiled| RequestedMetric { profiled, is_never: false }).collect(),
                        pairs: 0,
                        settled: false,
                    }),
                    Err(e) => profiled().for_each(|p| {
                        account.lacks(p.metric, scope, &text(&e));
                        missing[board].push((scope.clone(), p));
                    }),
                }
            }
        }
        // GPM knows no compute instances.
        for &board in having {
            for (_, scope) in boards[board].parts.iter().flat_map(|p| &p.compute_instances) {
                let there = PROFILED.iter().filter(|p| p.exists_at(Level::ComputeInstance));
                missing[board].extend(there.map(|p| (scope.clone(), p)));
            }
        }
        let (open, idle): (Vec<_>, Vec<_>) = having.iter().partition(|b| entities.iter().any(|e| e.board == **b));
        idle.into_iter().for_each(|b: usize| settled(b, std::mem::take(&mut missing[b])));
        // SAFETY: a structure of numbers and pointers, for which zero is a value.
        let request = unsafe { Box::<nvmlGpmMetricsGet_t>::new_zeroed().assume_init() };
        Gpm { boards: boards.to_vec(), entities, request, account, settled, open, missing }
    }

    /// Report GPUs whose entities are all settled.
    fn settle(&mut self) {
        let entities = &self.entities;
        let (open, done): (Vec<_>, Vec<_>) =
            self.open.iter().partition(|b| entities.iter().any(|e| e.board == **b && !e.settled));
        self.open = open;
        for board in done {
            (self.settled)(board, std::mem::take(&mut self.missing[board]));
        }
    }
}

impl Entity {
    /// Take a reading into the newer buffer; returns its time.
    fn take(&self, opened: &Opened) -> Result<u64, NvmlError> {
        opened.card.ask(|device| self.newer.fill(device, self.gpu_instance))?;
        Ok(monotonic_ns())
    }

    /// The means between the two readings, in the order of the metrics.
    fn compute(&mut self, opened: &Opened, request: &mut nvmlGpmMetricsGet_t) -> Result<Vec<Result<f64, String>>, NvmlError> {
        request.version = NVML_GPM_METRICS_GET_VERSION;
        request.numMetrics = self.metrics.len() as u32;
        request.sample1 = self.older.raw;
        request.sample2 = self.newer.raw;
        for (slot, asked) in request.metrics.iter_mut().zip(&self.metrics) {
            slot.metricId = asked.profiled.gpm;
            slot.nvmlReturn = 0;
            // What the driver leaves alone must not look like a value.
            slot.value = f64::NAN;
        }
        opened.card.ask(|_| {
            let get = nvml_sym(opened.card.nvml().lib().nvmlGpmMetricsGet.as_ref())?;
            // SAFETY: the request is filled, and its readings are of this open library.
            nvml_try(unsafe { get(request) })
        })?;
        let results = request.metrics.iter().zip(&mut self.metrics).map(|(slot, asked)| {
            let answer = nvml_try(slot.nvmlReturn);
            asked.is_never = answer.as_ref().is_err_and(is_never);
            answer.map_err(|e| text(&e))?;
            number(slot.value, asked.profiled)
        });
        Ok(results.collect())
    }
}

/// A GPM value in our unit.
fn number(value: f64, profiled: &Profiled) -> Result<f64, String> {
    // A share above one is rounding at the most.
    let most = if profiled.is_ratio { 105.0 } else { f64::MAX };
    match value {
        v if v.is_nan() => Err("GPM reports no number".into()),
        v if (0.0..=most).contains(&v) => Ok(v * profiled.gpm_unit),
        v => Err(format!("GPM reports {v}, which is impossible")),
    }
}

impl Sampler for Gpm {
    fn sample(&mut self, _: u64, samples: &mut Vec<Sample>) {
        for entity in &mut self.entities {
            let opened = &self.boards[entity.board];
            if entity.metrics.is_empty() || entity.seeded_ns.is_some_and(|then| monotonic_ns() < then + LEAST_NS) {
                continue;
            }
            let taken = entity.take(opened);
            let computed = match (&taken, entity.seeded_ns) {
                (Ok(at_ns), Some(then_ns)) => {
                    let values = entity.compute(opened, &mut self.request).map_err(|e| text(&e));
                    Some((*at_ns, at_ns - then_ns, values))
                }
                // The first reading of two, or the first after one that failed.
                (Ok(_), None) => None,
                (Err(e), _) => {
                    let at_ns = monotonic_ns();
                    Some((at_ns, entity.seeded_ns.map_or(0, |then_ns| at_ns - then_ns), Err(text(e))))
                }
            };
            entity.seeded_ns = taken.ok();
            std::mem::swap(&mut entity.older, &mut entity.newer);
            let Some((at_ns, window_ns, values)) = computed else { continue };
            entity.pairs += 1;
            for (i, asked) in entity.metrics.iter().enumerate() {
                let value = values.as_ref().map_err(String::clone).and_then(|v| v[i].clone());
                let (metric, scope) = (asked.profiled.metric, &entity.scope);
                match &value {
                    Ok(_) => self.account.gave(metric, scope),
                    Err(why) => self.account.lacks(metric, scope, why),
                }
                if metric == PCIE_TX && value.is_ok() {
                    opened.pcie.gpm_tells();
                }
                // Until it gave a number it is not known to tell this metric at all.
                if self.account.has(metric, scope) {
                    let (scope, value) = (scope.clone(), value.ok());
                    samples.push(Sample { at_ns, window_ns, source: "gpm", scope, metric, value });
                }
            }
            let gave = |asked: &RequestedMetric| self.account.has(asked.profiled.metric, &entity.scope);
            let any = entity.metrics.iter().any(gave);
            if !entity.settled && entity.pairs >= if any { SETTLED_PAIRS } else { PATIENT_PAIRS } {
                entity.settled = true;
                for asked in entity.metrics.iter().filter(|a| !gave(a)) {
                    self.missing[entity.board].push((entity.scope.clone(), asked.profiled));
                }
            }
            if entity.settled {
                // What may still become a number is asked for until another source tells it.
                let is_told = opened.dcgm_tells.load(Ordering::Relaxed) && !opened.sources.both;
                entity.metrics.retain(|asked| gave(asked) || !(asked.is_never || is_told));
            }
        }
        self.settle();
    }

    fn account(&self) -> Option<&Account> {
        Some(&self.account)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_become_shares_and_mebibytes_bytes_and_what_is_no_number_is_absent() {
        let of = |metric: &str| PROFILED.iter().find(|p| p.metric == metric).unwrap();
        assert_eq!(number(50.0, of("sm_active_ratio")), Ok(0.5));
        assert_eq!(number(2.0, of("pcie_rx_bytes_per_s")), Ok(2_097_152.0));
        assert!(number(f64::NAN, of("sm_active_ratio")).is_err());
        assert!(number(-1.0, of("sm_active_ratio")).is_err());
        assert!(number(140.0, of("sm_active_ratio")).is_err());
        assert!(number(f64::INFINITY, of("pcie_rx_bytes_per_s")).is_err());
    }
}
