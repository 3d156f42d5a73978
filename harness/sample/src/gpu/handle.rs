//! Handles of GPUs and instances that the sampling threads share, including the state of lost GPUs.

use collo_plan::experiment::{MetricSource, SourceChoice};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};
use nvml_wrapper_sys::bindings::nvmlDevice_t;

use super::{Board, gpu_scope, mig_scope};
use collo_device::nvml::text;

/// Why GPUs are lost, as soon as one is: by UUID.
#[derive(Debug, Clone, Default)]
pub struct GpuLoss(Arc<Mutex<Vec<(String, String)>>>);

impl GpuLoss {
    /// The first of them.
    pub fn why(&self) -> Option<String> {
        self.all().into_iter().next().map(|(_, why)| why)
    }

    pub fn all(&self) -> Vec<(String, String)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn remember(&self, board: &str, why: String) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.iter().all(|(known, _)| known != board) {
            all.push((board.into(), why));
        }
    }
}

/// The handle of a GPU or of a MIG device, with its library.
pub struct GpuHandle {
    nvml: Arc<Nvml>,
    handle: nvmlDevice_t,
    board: String,
    /// Set once the board is lost; shared by the handles of a board.
    gone: Arc<AtomicBool>,
    lost: GpuLoss,
}

// SAFETY: a handle is a number that the driver gave out, valid in every thread while its library is open, which `nvml` sees to;
// NVML may be called from several threads at once.
unsafe impl Send for GpuHandle {}
// SAFETY: as above; nothing in here is changed but an atomic.
unsafe impl Sync for GpuHandle {}

impl GpuHandle {
    fn find(nvml: &Arc<Nvml>, uuid: &str, board: &str, gone: &Arc<AtomicBool>, lost: &GpuLoss) -> Result<GpuHandle, NvmlError> {
        // SAFETY: the handle is kept together with its library.
        let handle = nvml.device_by_uuid(uuid).map(|device| unsafe { device.handle() });
        let card = |handle| GpuHandle { nvml: nvml.clone(), handle, board: board.into(), gone: gone.clone(), lost: lost.clone() };
        handle.map(card).inspect_err(|e| note(e, board, gone, lost))
    }

    /// Query the device. A lost GPU is remembered, and not queried again: its driver may take seconds to report it.
    pub fn ask<T>(&self, question: impl FnOnce(&Device<'_>) -> Result<T, NvmlError>) -> Result<T, NvmlError> {
        if self.gone.load(Ordering::Relaxed) {
            return Err(NvmlError::GpuLost);
        }
        // SAFETY: the handle is one of this library's.
        let device = unsafe { Device::new(self.handle, &self.nvml) };
        question(&device).inspect_err(|e| note(e, &self.board, &self.gone, &self.lost))
    }

    pub fn nvml(&self) -> &Arc<Nvml> {
        &self.nvml
    }
}

fn note(e: &NvmlError, board: &str, gone: &AtomicBool, lost: &GpuLoss) {
    const GPU_NOT_FOUND: u32 = 28;
    if matches!(e, NvmlError::GpuLost | NvmlError::UnexpectedVariant(GPU_NOT_FOUND)) {
        gone.store(true, Ordering::Relaxed);
        lost.remember(board, format!("`{board}` is lost: {}", text(e)));
    }
}

/// The source of a GPU's PCIe traffic; NVML only if there is no better one.
#[derive(Debug, Default)]
pub struct Turn(AtomicU8);

const OPEN: u8 = 0;
const GPM: u8 = 1;
const DCGM: u8 = 2;
const COUNTERS: u8 = 3;
const QUERY: u8 = 4;

impl Turn {
    pub fn gpm_tells(&self) {
        self.0.store(GPM, Ordering::Relaxed);
    }

    pub fn dcgm_tells(&self) {
        let _ = self.0.compare_exchange(OPEN, DCGM, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// DCGM does not report it, or no longer.
    pub fn dcgm_does_not(&self) {
        let next = |turn| (turn == OPEN || turn == DCGM).then_some(COUNTERS);
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    }

    /// NVML does not have the counters either.
    pub fn no_counters(&self) {
        self.0.store(QUERY, Ordering::Relaxed);
    }

    pub fn is_counters(&self) -> bool {
        self.0.load(Ordering::Relaxed) == COUNTERS
    }

    pub fn is_query(&self) -> bool {
        self.0.load(Ordering::Relaxed) == QUERY
    }
}

/// A GPU instance.
pub struct InstanceHandle {
    pub scope: Arc<str>,
    pub gpu_instance: u32,
    /// The handle of its MIG device (the first, if there are several), or why there is none.
    pub card: Result<GpuHandle, String>,
    /// Its compute slices; `None` if the driver does not report them.
    pub slices: Option<u32>,
    /// Its compute instances, if it has several.
    pub compute_instances: Vec<(u32, Arc<str>)>,
}

/// A GPU opened for sampling.
pub struct Opened {
    pub uuid: String,
    pub scope: Arc<str>,
    pub card: GpuHandle,
    /// Its compute capability; `None` if the driver does not report it.
    pub capability: Option<(i32, i32)>,
    pub parts: Vec<InstanceHandle>,
    pub sources: SourceChoice,
    pub pcie: Arc<Turn>,
    /// DCGM gave a number of this GPU or a part of it.
    pub dcgm_tells: Arc<AtomicBool>,
}

impl Opened {
    /// Find a GPU and its instances by their UUIDs.
    pub fn open(nvml: &Arc<Nvml>, board: &Board, lost: &GpuLoss) -> Result<Opened, String> {
        let gone = Arc::new(AtomicBool::new(false));
        let find =
            |uuid: &str| GpuHandle::find(nvml, uuid, &board.uuid, &gone, lost).map_err(|e| format!("`{uuid}`: {}", text(&e)));
        let card = find(&board.uuid)?;
        let mut parts = BTreeMap::<u32, InstanceHandle>::new();
        for (gpu_instance, instances) in by_gpu_instance(board) {
            let shared = instances.len() > 1;
            let first = &instances[0].uuid;
            // What is of a GPU instance is of none of the compute instances that share it.
            let scope = if shared { format!("gi:{}/{gpu_instance}", board.uuid).into() } else { mig_scope(first) };
            let of_compute = instances.iter().filter_map(|i| Some((i.compute_instance?, mig_scope(&i.uuid))));
            let compute_instances = if shared { of_compute.collect() } else { Vec::new() };
            let part = find(first);
            let slices = part.as_ref().ok().and_then(|c| c.ask(|d| d.attributes()).ok()).map(|a| a.gpu_instance_slice_count);
            parts.insert(gpu_instance, InstanceHandle { scope, gpu_instance, card: part, slices, compute_instances });
        }
        let parts = parts.into_values().collect();
        let (uuid, scope) = (board.uuid.clone(), gpu_scope(&board.uuid));
        let pcie = Arc::new(Turn::default());
        if board.sources.sm == Some(MetricSource::Nvml) && !board.sources.both {
            pcie.dcgm_does_not();
        }
        let capability = card.ask(|d| d.cuda_compute_capability()).ok().map(|c| (c.major, c.minor));
        Ok(Opened { uuid, scope, card, capability, parts, sources: board.sources, pcie, dcgm_tells: Arc::default() })
    }
}

/// The MIG devices of a GPU by their GPU instance.
fn by_gpu_instance(board: &Board) -> BTreeMap<u32, Vec<&super::BoardInstance>> {
    let mut found = BTreeMap::<u32, Vec<_>>::new();
    board.instances.iter().for_each(|i| found.entry(i.gpu_instance).or_default().push(i));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nvml_tells_traffic_only_if_nobody_better_does() {
        let turn = Turn::default();
        assert!(!turn.is_counters() && !turn.is_query());
        turn.dcgm_tells();
        assert!(!turn.is_counters());
        turn.dcgm_does_not();
        turn.dcgm_tells();
        assert!(turn.is_counters(), "who comes late does not take it back within a run");
        turn.no_counters();
        turn.dcgm_does_not();
        assert!(turn.is_query());
    }

    #[test]
    fn where_gpm_tells_traffic_nothing_that_dcgm_does_matters() {
        let turn = Turn::default();
        turn.gpm_tells();
        turn.dcgm_does_not();
        assert!(!turn.is_counters() && !turn.is_query());
    }
}
