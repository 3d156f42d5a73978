//! Queries the driver for the properties of this machine's GPUs.

use collo_gpus::mig::{Cards, DriverProfile, GpuModel};
use collo_plan::facts::{Address, Driver, Gpu, Settings, SilentGpu};
use nvml_wrapper::enum_wrappers::device::{Clock, ComputeMode, TemperatureSensor};
use nvml_wrapper::enums::device::DeviceArchitecture;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};

use crate::company::company;
use crate::nvml::instances::Raw;
use crate::{nvml, repartition};

/// The prefix of a device's name if its driver is a model.
const SIMULATED: &str = "simulated ";

/// Query the driver of this machine.
pub fn ask(cards: &Cards) -> Result<Driver, nvml::NoDriver> {
    let nvml = nvml::open()?;
    let silent = |e: NvmlError| nvml::NoDriver::silent(&e);
    let (mut gpus, mut lost) = (Vec::new(), Vec::new());
    for index in 0..nvml.device_count().map_err(silent)? {
        match nvml.device_by_index(index).and_then(|device| read(&nvml, &device, index, cards)) {
            Ok(gpu) => gpus.push(gpu),
            Err(e) => lost.push(SilentGpu { index, why: nvml::text(&e), hint: nvml::hint(&e) }),
        }
    }
    let version = nvml.sys_driver_version().map_err(silent)?;
    Ok(Driver { version, cuda: nvml.sys_cuda_driver_version().ok(), gpus, silent: lost })
}

/// One GPU.
fn read(nvml: &Nvml, device: &Device<'_>, index: u32, cards: &Cards) -> Result<Gpu, NvmlError> {
    let said = device.name()?;
    let (name, simulated) = said.strip_prefix(SIMULATED).map_or((said.as_str(), false), |name| (name, true));
    let (uuid, pci) = (device.uuid()?, device.pci_info()?);
    let mode = there(device.mig_mode())?;
    let memory_bytes = match device.memory_info() {
        // A card that has fallen off the bus is still listed with its name; this is the first thing that it cannot tell.
        Err(e @ (NvmlError::GpuLost | NvmlError::ResetRequired | NvmlError::Unknown)) => return Err(e),
        told => told.ok().map(|m| m.total),
    };
    let known = cards.of_device(name, pci.pci_device_id >> 16, memory_bytes);
    let raw = Raw::new(nvml, device);
    let told = match &mode {
        Some(_) => there(raw.profiles())?,
        None => None,
    };
    let card = told.as_ref().and_then(|profiles| card(device, name, profiles, known));
    let profiles = told.unwrap_or_default();
    let cut = there(repartition::look(nvml, device))?;
    let watts = |mw: Result<u32, NvmlError>| mw.ok().map(|mw| f64::from(mw) / 1000.0);
    Ok(Gpu {
        name: name.to_string(),
        simulated,
        architecture: device.architecture().ok().filter(|a| *a != DeviceArchitecture::Unknown).map(|a| a.to_string()),
        sms: sms(device),
        memory_bytes,
        capability: device.cuda_compute_capability().ok().map(|c| (c.major, c.minor)),
        has_mig: mode.is_some(),
        model: known.map(|known| known.name.clone()),
        may_cut: raw.may_cut(&profiles),
        card,
        mig_devices: cut.iter().flat_map(|c| &c.instances).flat_map(|p| &p.devices).map(|d| d.uuid.clone()).collect(),
        partition: cut.map(|c| c.partition),
        mig_pending: mode.is_some_and(|m| m.current != m.pending),
        gpm: device.gpm_support().unwrap_or(false),
        persistence: device.is_in_persistent_mode().ok(),
        tells_temperature: Some(device.temperature(TemperatureSensor::Gpu).is_ok()),
        compute_mode: device.compute_mode().ok().map(|m: ComputeMode| format!("{m:?}")),
        display: device.is_display_active().unwrap_or(false),
        settings: Settings {
            vbios: device.vbios_version().ok(),
            ecc: device.is_ecc_enabled().ok().map(|e| e.currently_enabled),
            power_limit_w: watts(device.enforced_power_limit()),
            power_limit_default_w: watts(device.power_management_limit_default()),
            max_sm_clock_mhz: device.max_clock_info(Clock::SM).ok(),
        },
        company: company(nvml, device, &uuid),
        at: Some(Address { index, uuid, pci: pci.bus_id }),
    })
}

/// Streaming multiprocessors of the whole GPU: NVML reports its cores, and each architecture has a fixed number of them per SM.
fn sms(device: &Device<'_>) -> Option<u32> {
    let capability = device.cuda_compute_capability().ok()?;
    let each = match (capability.major, capability.minor) {
        // Volta, Turing and GA100 have 64 lanes for single precision in each, all since have 128 (CUDA C++ programming guide).
        (7, _) | (8, 0) => 64,
        (8.., _) => 128,
        _ => return None,
    };
    device.num_cores().ok().map(|cores| cores / each)
}

/// An optional property of a GPU; an error if the GPU has disappeared.
fn there<T>(answer: Result<T, NvmlError>) -> Result<Option<T>, NvmlError> {
    match answer {
        Ok(told) => Ok(Some(told)),
        Err(e @ (NvmlError::GpuLost | NvmlError::ResetRequired)) => Err(e),
        Err(_) => Ok(None),
    }
}

/// The partitions that the driver reports as possible, with the layouts of the known model.
fn card(device: &Device<'_>, product: &str, profiles: &[DriverProfile], known: Option<&GpuModel>) -> Option<GpuModel> {
    if profiles.is_empty() {
        // With MIG off some drivers tell no profile: what is written down has to do.
        return known.filter(|known| known.has_mig()).cloned();
    }
    let name = known.map_or_else(|| product.to_lowercase().replace(' ', "-"), |k| k.name.clone());
    Some(GpuModel::of_driver(name, product, sms(device), profiles, known))
}
