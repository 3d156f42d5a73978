//! The properties of an NVIDIA GPU, from its driver, or from `mig-profiles/` without a GPU.

use collo_store::GpuRecord;
use nvml_wrapper::enum_wrappers::device::{Clock, ComputeMode, TemperatureSensor};
use nvml_wrapper::enums::device::DeviceArchitecture;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};

use super::company::Company;
use super::mig::{Cards, GpuModel};
use super::nvml::instances::{Profile, Raw};
use super::partition::Partition;
use super::{nvml, repartition};

/// The driver, and its compute-capable GPUs.
#[derive(Debug, Clone, PartialEq)]
pub struct Driver {
    /// `580.95.05`
    pub version: String,
    /// As CUDA writes it: 13000 is 13.0.
    pub cuda: Option<i32>,
    pub gpus: Vec<Gpu>,
    /// GPUs that are listed but do not respond.
    pub silent: Vec<SilentGpu>,
}

/// A GPU that is listed but does not respond.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SilentGpu {
    pub index: u32,
    /// The driver's error, and the way out of it if there is a certain one.
    pub why: String,
    pub hint: Option<&'static str>,
}

/// One GPU. What the driver does not report is absent.
#[derive(Debug, Clone, PartialEq)]
pub struct Gpu {
    /// Absent for a GPU that is only planned for.
    pub at: Option<Address>,
    /// The driver's name for it, without the word that says it is simulated.
    pub name: String,
    /// All its numbers come from a model: its driver says so in its name.
    pub simulated: bool,
    pub architecture: Option<String>,
    pub sms: Option<u32>,
    pub memory_bytes: Option<u64>,
    /// Its compute capability: `(8, 0)`; absent if unknown.
    pub capability: Option<(i32, i32)>,
    /// It has a MIG mode. Its possible partitions are another matter, which some drivers report only once it is on.
    pub has_mig: bool,
    /// The name of its model, if one of `mig-profiles/` is known to be it.
    pub model: Option<String>,
    /// How it can be partitioned; absent without MIG, and if unknown.
    pub card: Option<GpuModel>,
    /// Whether this user may partition it, as far as the driver reports it.
    pub may_cut: Option<bool>,
    /// Its current partition, if known.
    pub partition: Option<Partition>,
    /// UUIDs of its MIG devices that are visible to CUDA.
    pub mig_devices: Vec<String>,
    /// MIG mode will change on the next reset.
    pub mig_pending: bool,
    /// GPU performance monitoring: Hopper and later.
    pub gpm: bool,
    pub persistence: Option<bool>,
    /// `Default`, `ExclusiveProcess` …
    pub compute_mode: Option<String>,
    /// Whether its temperature can be read; unknown for a GPU that is only planned for.
    pub tells_temperature: Option<bool>,
    pub display: bool,
    pub settings: Settings,
    /// Other users of it.
    pub company: Company,
}

/// The address of a GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    pub index: u32,
    pub uuid: String,
    /// `00000000:36:00.0`
    pub pci: String,
}

/// Settings of a GPU that may change a number, for the record.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    pub vbios: Option<String>,
    pub ecc: Option<bool>,
    pub power_limit_w: Option<f64>,
    pub power_limit_default_w: Option<f64>,
    pub max_sm_clock_mhz: Option<u32>,
}

/// The prefix of a device's name if its driver is a model.
const SIMULATED: &str = "simulated ";

impl Driver {
    /// Query the driver of this machine.
    pub fn ask(cards: &Cards) -> Result<Driver, nvml::NoDriver> {
        let nvml = nvml::open()?;
        let silent = |e: NvmlError| nvml::NoDriver::silent(&e);
        let (mut gpus, mut lost) = (Vec::new(), Vec::new());
        for index in 0..nvml.device_count().map_err(silent)? {
            match nvml.device_by_index(index).and_then(|device| Gpu::read(&nvml, &device, index, cards)) {
                Ok(gpu) => gpus.push(gpu),
                Err(e) => lost.push(SilentGpu { index, why: nvml::text(&e), hint: nvml::hint(&e) }),
            }
        }
        let version = nvml.sys_driver_version().map_err(silent)?;
        Ok(Driver { version, cuda: nvml.sys_cuda_driver_version().ok(), gpus, silent: lost })
    }
}

impl SilentGpu {
    /// `GPU 0 does not respond: …`
    pub fn text(&self) -> String {
        format!("GPU {} does not respond: {}", self.index, self.why)
    }
}

impl Driver {
    /// The way out where GPUs do not respond.
    pub fn hint_of_silent(&self) -> &'static str {
        self.silent
            .iter()
            .find_map(|gpu| gpu.hint)
            .unwrap_or("`nvidia-smi -L`, and the kernel log (`sudo dmesg`, lines with NVRM)")
    }
}

impl Gpu {
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
            company: Company::of(nvml, device, &uuid),
            at: Some(Address { index, uuid, pci: pci.bus_id }),
        })
    }

    /// A GPU that is planned for but not queried.
    pub fn planned(card: &GpuModel) -> Gpu {
        Gpu {
            at: None,
            name: card.product_names.first().cloned().unwrap_or_else(|| card.name.clone()),
            simulated: false,
            architecture: None,
            sms: card.sms,
            memory_bytes: card.memory_bytes(),
            capability: None,
            has_mig: card.has_mig(),
            model: Some(card.name.clone()),
            card: card.has_mig().then(|| card.clone()),
            may_cut: None,
            mig_devices: Vec::new(),
            partition: None,
            mig_pending: false,
            gpm: false,
            persistence: None,
            compute_mode: None,
            tells_temperature: None,
            display: false,
            settings: Settings::default(),
            company: Company::nobody(),
        }
    }

    /// As it is stored with a campaign; `None` if it is only planned for.
    pub fn record(&self) -> Option<GpuRecord> {
        let at = self.at.as_ref()?;
        Some(GpuRecord {
            index: at.index,
            uuid: at.uuid.clone(),
            pci: at.pci.clone(),
            name: self.name.clone(),
            architecture: self.architecture.clone(),
            sms: self.sms,
            memory_bytes: self.memory_bytes,
            vbios: self.settings.vbios.clone(),
            ecc: self.settings.ecc,
            persistence: self.persistence,
            compute_mode: self.compute_mode.clone(),
            power_limit_w: self.settings.power_limit_w,
            power_limit_default_w: self.settings.power_limit_default_w,
            max_sm_clock_mhz: self.settings.max_sm_clock_mhz,
            partition: self.partition.as_ref().map(Partition::to_string),
        })
    }

    /// Whether it is known which instances it can have, and where.
    pub fn has_known_instances(&self) -> bool {
        self.card.as_ref().is_some_and(GpuModel::has_places)
    }

    /// Why its profiles, or the places of instances, are unknown, although it has MIG.
    pub fn why_no_profiles(&self) -> &'static str {
        match (self.partition.as_ref().is_some_and(|p| p.mig), self.card.is_some()) {
            (true, _) => "MIG is on, and the driver reports no profile",
            (false, false) => "MIG is off, and its profiles are known once it is on",
            (false, true) => "MIG is off, and the places of its instances are known once it is on",
        }
    }

    /// `GPU 0`, or its model if no GPU was queried.
    pub fn label(&self) -> String {
        match &self.at {
            Some(at) => format!("GPU {}", at.index),
            None => self.name.clone(),
        }
    }

    /// Whether it is suitable for compute: not driving a display, and with enough memory.
    pub fn computes(&self) -> bool {
        !self.display && self.memory_bytes.is_none_or(|b| b >= 8 << 30)
    }

    /// Whether a campaign may use the other GPU in this one's place.
    pub fn equals(&self, other: &Gpu) -> bool {
        // In MIG mode the memory of the whole is closed to a normal user (nvml.h).
        let memory = self.memory_bytes.zip(other.memory_bytes);
        (&self.name, self.sms) == (&other.name, other.sms) && memory.is_none_or(|(own, theirs)| own == theirs)
    }

    /// The folder of its PCI device in sysfs, and so the cores near it.
    pub fn near_cores(&self) -> Option<Vec<u32>> {
        let pci = self.at.as_ref()?.pci.to_lowercase();
        // The driver writes eight digits of the domain, the kernel four.
        let short = pci.get(pci.len().checked_sub("0000:00:00.0".len())?..)?;
        let text = fs_err::read_to_string(format!("/sys/bus/pci/devices/{short}/local_cpulist")).ok()?;
        super::core_list(&text)
    }
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
fn card(device: &Device<'_>, product: &str, profiles: &[Profile], known: Option<&GpuModel>) -> Option<GpuModel> {
    if profiles.is_empty() {
        // With MIG off some drivers tell no profile: what is written down has to do.
        return known.filter(|known| known.has_mig()).cloned();
    }
    let name = known.map_or_else(|| product.to_lowercase().replace(' ', "-"), |k| k.name.clone());
    Some(GpuModel::of_driver(name, product, sms(device), profiles, known))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::mig::Model;

    #[test]
    fn a_display_card_is_not_for_computing_and_a_planned_one_has_no_address() {
        let card = Model { name: "a100-40gb".into(), memory_gb: Some(40), sms: Some(108), ..Model::default() }.into();
        let gpu = Gpu::planned(&card);
        assert!(gpu.computes() && gpu.at.is_none());
        assert_eq!(gpu.label(), "a100-40gb");
        assert!(!Gpu { display: true, ..gpu.clone() }.computes());
        assert!(!Gpu { memory_bytes: Some(4 << 30), ..gpu }.computes());
    }
}
