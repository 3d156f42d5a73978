//! The properties of an NVIDIA GPU, as its driver reports them, or of a model without a GPU.

use collo_gpus::mig::GpuModel;
use collo_gpus::partition::Partition;
use collo_store::GpuRecord;

use super::company::Company;

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

    /// By its index, by its UUID or a prefix of it, or by its PCI address.
    pub fn is_called(&self, name: &str) -> bool {
        let Some(at) = &self.at else { return false };
        let pci = |text: &str| text.to_lowercase().trim_start_matches("0000").trim_start_matches(':').to_string();
        let by_uuid = name.len() >= "GPU-".len() + 4 && at.uuid.to_lowercase().starts_with(&name.to_lowercase());
        name.parse() == Ok(at.index) || by_uuid || (name.contains(':') && pci(name) == pci(&at.pci))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_display_card_is_not_for_computing_and_a_planned_one_has_no_address() {
        let card = GpuModel { name: "a100-40gb".into(), memory_gb: Some(40), sms: Some(108), ..GpuModel::default() };
        let gpu = Gpu::planned(&card);
        assert!(gpu.computes() && gpu.at.is_none());
        assert_eq!(gpu.label(), "a100-40gb");
        assert!(!Gpu { display: true, ..gpu.clone() }.computes());
        assert!(!Gpu { memory_bytes: Some(4 << 30), ..gpu }.computes());
    }

    fn card(name: &str) -> GpuModel {
        crate::fixture::models().find(name).expect("known").clone()
    }

    #[test]
    fn a_gpu_without_mig_has_neither_slices_nor_profiles_and_its_memory_is_known() {
        let l40s = card("l40s");
        assert!(!l40s.has_mig() && l40s.layouts.is_empty());
        let planned = Gpu::planned(&l40s);
        assert_eq!((planned.has_mig, planned.card, planned.model.as_deref()), (false, None, Some("l40s")));
        assert_eq!(planned.memory_bytes.map(|bytes| bytes >> 20), Some(46068));
        let b200 = Gpu::planned(&card("b200"));
        assert_eq!((b200.has_mig, b200.memory_bytes), (true, card("b200").memory_bytes()));
    }

    #[test]
    fn every_model_is_planned_with_the_memory_of_its_file() {
        for card in crate::fixture::models().iter() {
            let planned = Gpu::planned(card);
            assert_eq!((&planned.memory_bytes, planned.has_mig), (&card.memory_bytes(), card.has_mig()), "{}", card.name);
            let facts = crate::fixture::planned(vec![planned]);
            assert!(facts.record().memory_bytes.is_some_and(|bytes| Some(bytes) == card.memory_bytes()), "{}", card.name);
        }
    }
}
