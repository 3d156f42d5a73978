//! What an NVIDIA card is, as its driver tells it, or as `mig-profiles/` does where no card is asked.

use collo_store::GpuRecord;
use nvml_wrapper::enum_wrappers::device::{Clock, ComputeMode};
use nvml_wrapper::enums::device::DeviceArchitecture;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};

use super::company::Company;
use super::mig::{Card, Cards};
use super::nvml::instances::{Profile, Raw};
use super::partition::Partition;
use super::{cut, nvml};

/// The driver, and its cards that can compute.
#[derive(Debug, Clone, PartialEq)]
pub struct Driver {
    /// `580.95.05`
    pub version: String,
    /// As CUDA writes it: 13000 is 13.0.
    pub cuda: Option<i32>,
    pub gpus: Vec<Gpu>,
    /// Cards that are listed and do not answer, by their index, with what the driver says.
    pub silent: Vec<(u32, String)>,
}

/// One card. What the driver does not tell is absent.
#[derive(Debug, Clone, PartialEq)]
pub struct Gpu {
    /// Absent for a card that is only planned for.
    pub at: Option<Address>,
    /// What the driver calls it, without the word that says it is simulated.
    pub name: String,
    /// Every number of it is invented by a model: its driver says so in its name.
    pub simulated: bool,
    pub architecture: Option<String>,
    pub sms: Option<u32>,
    pub memory_bytes: Option<u64>,
    /// Its compute capability: `(8, 0)`; absent where nobody tells.
    pub capability: Option<(i32, i32)>,
    /// It has a MIG mode. What it can be cut into is another matter, which some drivers tell only once it is on.
    pub has_mig: bool,
    /// What it can be cut into; absent where it has no MIG, and where nobody tells.
    pub card: Option<Card>,
    /// Whether this user may cut it anew, as far as the driver's answers tell.
    pub may_cut: Option<bool>,
    /// How it is cut now, and whether that can be known.
    pub partition: Option<Partition>,
    /// UUIDs of the MIG devices that CUDA can see of it.
    pub mig_devices: Vec<String>,
    /// MIG mode will be another one after a reset.
    pub mig_pending: bool,
    /// GPU performance monitoring: Hopper and later.
    pub gpm: bool,
    pub persistence: Option<bool>,
    /// `Default`, `ExclusiveProcess` …
    pub compute_mode: Option<String>,
    pub display: bool,
    pub settings: Settings,
    /// Who is on it.
    pub company: Company,
}

/// Where a card is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    pub index: u32,
    pub uuid: String,
    /// `00000000:36:00.0`
    pub pci: String,
}

/// What may change a number of a card, for the record.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    pub vbios: Option<String>,
    pub ecc: Option<bool>,
    pub power_limit_w: Option<f64>,
    pub power_limit_default_w: Option<f64>,
    pub max_sm_clock_mhz: Option<u32>,
}

/// The word before the name of a device whose driver is a model.
const SIMULATED: &str = "simulated ";

impl Driver {
    /// Ask the driver of this machine.
    pub fn ask(cards: &Cards) -> Result<Driver, nvml::NoDriver> {
        let nvml = nvml::open()?;
        let silent = |e: NvmlError| nvml::NoDriver::Silent(nvml::text(&e));
        let (mut gpus, mut lost) = (Vec::new(), Vec::new());
        for index in 0..nvml.device_count().map_err(silent)? {
            match nvml.device_by_index(index).and_then(|device| Gpu::read(&nvml, &device, index, cards)) {
                Ok(gpu) => gpus.push(gpu),
                Err(e) => lost.push((index, nvml::text(&e))),
            }
        }
        let version = nvml.sys_driver_version().map_err(silent)?;
        Ok(Driver { version, cuda: nvml.sys_cuda_driver_version().ok(), gpus, silent: lost })
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
        let cut = there(cut::look(nvml, device))?;
        let watts = |mw: Result<u32, NvmlError>| mw.ok().map(|mw| f64::from(mw) / 1000.0);
        Ok(Gpu {
            name: name.to_string(),
            simulated,
            architecture: device.architecture().ok().filter(|a| *a != DeviceArchitecture::Unknown).map(|a| a.to_string()),
            sms: sms(device),
            memory_bytes,
            capability: device.cuda_compute_capability().ok().map(|c| (c.major, c.minor)),
            has_mig: mode.is_some(),
            may_cut: raw.may_cut(&profiles),
            card,
            mig_devices: cut.iter().flat_map(|c| &c.instances).flat_map(|p| &p.devices).map(|d| d.uuid.clone()).collect(),
            partition: cut.map(|c| c.partition),
            mig_pending: mode.is_some_and(|m| m.current != m.pending),
            gpm: device.gpm_support().unwrap_or(false),
            persistence: device.is_in_persistent_mode().ok(),
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

    /// A card that is planned for and not asked.
    pub fn planned(card: &Card) -> Gpu {
        Gpu {
            at: None,
            name: card.product_names.first().cloned().unwrap_or_else(|| card.name.clone()),
            simulated: false,
            architecture: None,
            sms: card.sms,
            memory_bytes: card.memory_gb.map(|gb| u64::from(gb) << 30),
            capability: None,
            has_mig: true,
            card: Some(card.clone()),
            may_cut: None,
            mig_devices: Vec::new(),
            partition: None,
            mig_pending: false,
            gpm: false,
            persistence: None,
            compute_mode: None,
            display: false,
            settings: Settings::default(),
            company: Company::nobody(),
        }
    }

    /// As it is stored with a campaign; none for one that is only planned for.
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

    /// Why nothing is known of what it can be cut into, although it has MIG.
    pub fn why_no_profiles(&self) -> &'static str {
        match self.partition.as_ref().is_some_and(|p| p.mig) {
            true => "MIG is on, and the driver tells no profile",
            false => "MIG is off, and its profiles are known once it is on",
        }
    }

    /// `GPU 0`, or its model where no card is asked.
    pub fn label(&self) -> String {
        match &self.at {
            Some(at) => format!("GPU {}", at.index),
            None => self.name.clone(),
        }
    }

    /// Whether it is made for computing: neither for a display nor without the memory for it.
    pub fn computes(&self) -> bool {
        !self.display && self.memory_bytes.is_none_or(|b| b >= 8 << 30)
    }

    /// A card that a campaign may use in this one's place.
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

/// Streaming multiprocessors of the whole card: NVML counts its cores, and each architecture has so many of them in one.
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

/// What a card tells, if it tells it; an error where the card is not there any more.
fn there<T>(answer: Result<T, NvmlError>) -> Result<Option<T>, NvmlError> {
    match answer {
        Ok(told) => Ok(Some(told)),
        Err(e @ (NvmlError::GpuLost | NvmlError::ResetRequired)) => Err(e),
        Err(_) => Ok(None),
    }
}

/// What the driver says the card can be cut into, with the layouts that are written down for it.
fn card(device: &Device<'_>, product: &str, profiles: &[Profile], known: Option<&Card>) -> Option<Card> {
    if profiles.is_empty() {
        // With MIG off some drivers tell no profile: what is written down has to do.
        return known.cloned();
    }
    let name = known.map_or_else(|| product.to_lowercase().replace(' ', "-"), |k| k.name.clone());
    Some(Card::of_driver(name, product, sms(device), profiles, known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_display_card_is_not_for_computing_and_a_planned_one_has_no_address() {
        let card = Card { memory_gb: Some(40), sms: Some(108), ..Card::bare("a100-40gb", 7) };
        let gpu = Gpu::planned(&card);
        assert!(gpu.computes() && gpu.at.is_none());
        assert_eq!(gpu.label(), "a100-40gb");
        assert!(!Gpu { display: true, ..gpu.clone() }.computes());
        assert!(!Gpu { memory_bytes: Some(4 << 30), ..gpu }.computes());
    }
}
