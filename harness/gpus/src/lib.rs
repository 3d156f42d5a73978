//! GPU models: their names, memory and SMs, and how those with MIG can be partitioned. Pure: it touches no device.
//!
//! A [`Model`] is one file of `mig-profiles/`; all of them are compiled into this package, and a project may have its own ([`mig::Cards`]).
//! [`mig`] finds the places of instances on a model, or why there are none; a [`partition::Partition`] is such a layout, and a
//! [`PartitionError`] why a GPU did not take it. [`notation`] is how MIG writes all of that.
//!
//! In: a text such as `mig-profiles/a100-40gb.toml`. Out: its numbers and placements, or its errors.
//!
//! To add a GPU model: a file in `mig-profiles/` with its sources, without `compute_slices` and `profiles` if it has no MIG;
//! published peaks are `[[peaks]]`, a layout is a line below `[layouts]`. No code changes, for plans and reports alike.

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod mig;
pub mod notation;
pub mod partition;
mod partition_error;
mod peaks;

pub use partition_error::PartitionError;

use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Deserializer, Serialize};

pub use peaks::Peaks;

/// The major compute capability of Hopper. From it on a GPU has GPM, DCGM reads its instances individually, and a change of MIG mode
/// does not reset it.
pub const HOPPER: u8 = 9;

/// Compute slices of most GPUs with MIG: assumed of one that no file knows.
pub const USUAL_COMPUTE_SLICES: u32 = 7;
/// Memory units of the same.
pub const USUAL_MEMORY_UNITS: u32 = 8;

include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// A GPU model. What its file does not give is absent; its layouts are read elsewhere, by the code that partitions GPUs.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Model {
    /// The name of its file, as in `--gpu a100-40gb`.
    #[serde(skip)]
    pub name: String,
    pub description: Option<String>,
    /// The driver's names for it, as far as known.
    #[serde(default)]
    pub product_names: Vec<String>,
    /// PCI device ids, four hexadecimal digits each.
    #[serde(default)]
    pub pci_devices: Vec<String>,
    /// The marketed size; see [`Model::memory_bytes`] for the real one.
    pub memory_gb: Option<u32>,
    /// All of the GPU's memory without MIG, as its driver reports it.
    pub memory_mib: Option<u64>,
    /// Streaming multiprocessors of the whole GPU, without MIG.
    pub sms: Option<u32>,
    /// Empty if none are published. Boards whose figures differ each have their own.
    #[serde(default)]
    pub peaks: Vec<Peaks>,
    /// Absent for a GPU without MIG.
    pub compute_slices: Option<u32>,
    /// Length of the grid on which instances are placed.
    pub memory_units: Option<u32>,
    /// Empty for a GPU without MIG.
    #[serde(default, deserialize_with = "shared")]
    pub profiles: Vec<Arc<Profile>>,
}

/// A size of instance.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Profile {
    /// `3g.20gb`, `1g.5gb+me`.
    pub name: String,
    /// Compute slices: the number before the `g`.
    #[serde(skip)]
    pub slices: u32,
    /// The driver's id for it, which differs between models.
    pub id: Option<u32>,
    /// The maximum number of instances.
    pub most: Option<u32>,
    pub memory_gib: Option<f64>,
    /// Its memory under other drivers, or on other boards of the same model.
    #[serde(default)]
    pub memory_gib_also: Vec<f64>,
    pub sms: Option<u32>,
    #[serde(default)]
    pub engines: Engines,
    #[serde(flatten)]
    pub places: Option<Places>,
}

/// Where instances of a profile can be placed on the grid.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Places {
    /// In ascending order.
    pub starts: Vec<u32>,
    /// Memory units per instance, which is not its number of slices: `3g` takes 4 of 8.
    pub units: u32,
}

/// Engines that an instance has to itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Engines {
    pub copy: Option<u32>,
    pub decode: Option<u32>,
    pub encode: Option<u32>,
    pub jpeg: Option<u32>,
    pub ofa: Option<u32>,
}

impl Engines {
    pub fn each(&self) -> [(&'static str, Option<u32>); 5] {
        [("copy", self.copy), ("decode", self.decode), ("encode", self.encode), ("JPEG", self.jpeg), ("OFA", self.ofa)]
    }
}

impl Profile {
    /// Without extras in its name: no `+me`, no `-me`, no `+gfx`.
    pub fn is_plain(&self) -> bool {
        self.name.ends_with("gb")
    }

    pub fn units(&self) -> Option<u32> {
        self.places.as_ref().map(|p| p.units)
    }

    /// True if a driver that reports this much memory is a known one. Drivers round differently, by a quarter of a GiB.
    pub fn may_have(&self, gib: f64) -> bool {
        let mut known = self.memory_gib.iter().chain(&self.memory_gib_also).peekable();
        known.peek().is_none() || known.any(|own| (own - gib).abs() <= 0.3)
    }
}

impl Model {
    /// Parse the description of a model; the error is what is wrong with it, without the place.
    pub fn read(name: &str, text: &str) -> Result<Model, String> {
        let mut model: Model = toml::from_str(text).map_err(|e| e.message().to_string())?;
        model.name = name.into();
        for peaks in model.peaks.iter_mut().filter(|peaks| peaks.product_names.is_empty()) {
            peaks.product_names.clone_from(&model.product_names);
        }
        for profile in model.profiles.iter_mut().map(Arc::make_mut) {
            let size = notation::Size::parse(&profile.name).filter(|size| size.compute.is_none());
            profile.slices = size.ok_or_else(|| format!("invalid profile name `{}`", profile.name))?.slices;
            if let Some(places) = &mut profile.places {
                places.starts.sort_unstable();
                places.starts.dedup();
            }
        }
        Ok(model)
    }

    /// The profile of this name.
    pub fn profile(&self, name: &str) -> Option<&Arc<Profile>> {
        self.profiles.iter().find(|p| p.name == name)
    }

    /// The published peaks of the board that its driver names so.
    pub fn peaks_of(&self, product: &str) -> Option<&Peaks> {
        self.peaks.iter().find(|peaks| peaks.names(product))
    }

    pub fn has_mig(&self) -> bool {
        self.compute_slices.is_some()
    }

    /// The profile of the instance that is the whole GPU.
    pub fn whole(&self) -> Option<&Arc<Profile>> {
        self.profiles.iter().find(|p| Some(p.slices) == self.compute_slices && p.is_plain())
    }

    /// The memory of the whole GPU; `None` if nothing is known of it.
    ///
    /// In this order: what its driver reports without MIG, the memory of the instance that is all of it, and what is advertised, which
    /// is a little more than there is. The largest profile of known memory is no answer: of some models that is a quarter of the GPU.
    pub fn memory_bytes(&self) -> Option<u64> {
        let whole = || self.whole().and_then(|profile| profile.memory_gib);
        let gib = || whole().or(self.memory_gb.map(f64::from)).map(|gib| (gib * (1u64 << 30) as f64) as u64);
        self.memory_mib.map(|mib| mib << 20).or_else(gib)
    }
}

fn shared<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Arc<Profile>>, D::Error> {
    Ok(Vec::<Profile>::deserialize(from)?.into_iter().map(Arc::new).collect())
}

/// All models that this build knows, sorted by name.
pub fn known() -> &'static [Model] {
    static KNOWN: LazyLock<Vec<Model>> =
        LazyLock::new(|| FILES.iter().filter_map(|(name, text)| Model::read(name, text).ok()).collect());
    &KNOWN
}

/// The model with this name in the driver.
pub fn of_product(product: &str) -> Option<&'static Model> {
    known().iter().find(|model| model.product_names.iter().any(|name| is_same_product(name, product)))
}

/// The published peaks of the board with this name in the driver.
pub fn peaks_of(product: &str) -> Option<&'static Peaks> {
    of_product(product)?.peaks_of(product)
}

/// Whether two names are those of one product. Old drivers leave the vendor out; people write in lower case.
pub fn is_same_product(one: &str, other: &str) -> bool {
    const VENDOR: &str = "NVIDIA ";
    let bare = |name: &str| {
        let name = name.trim();
        let vendor = name.get(..VENDOR.len()).filter(|start| start.eq_ignore_ascii_case(VENDOR));
        name[vendor.map_or(0, str::len)..].to_ascii_lowercase()
    };
    bare(one) == bare(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_folder_is_known_without_a_line_of_rust() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../mig-profiles");
        let entries = std::fs::read_dir(folder).expect("readable").map(|entry| entry.expect("an entry").path());
        let mut there: Vec<String> = entries
            .filter(|path| path.extension().is_some_and(|e| e == "toml"))
            .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
            .collect();
        there.sort();
        let names: Vec<&str> = known().iter().map(|model| model.name.as_str()).collect();
        assert_eq!(names, there, "all of them, and each can be read");
    }

    #[test]
    fn a_model_is_found_by_what_the_driver_calls_it_with_or_without_the_vendor() {
        let found = |product: &str| of_product(product).map(|model| (model.name.as_str(), model.compute_slices));
        assert_eq!(found("NVIDIA A100-SXM4-80GB"), Some(("a100-80gb", Some(7))));
        assert_eq!(found("A30"), Some(("a30-24gb", Some(4))));
        assert_eq!(found("NVIDIA RTX PRO 6000 Blackwell Server Edition"), Some(("rtx-pro-6000", Some(4))));
        assert_eq!(found("NVIDIA L40S"), Some(("l40s", None)), "it has no MIG");
        assert_eq!((found("NVIDIA H800 PCIe"), found("cpu")), (None, None));
    }

    #[test]
    fn what_a_file_leaves_out_is_absent_and_a_whole_number_may_stand_for_a_fraction() {
        let text = "compute_slices = 2\nmemory_units = 2\nprofiles = [\n\
                    { name = \"1g.1gb\", memory_gib = 1, starts = [1, 0, 1], units = 1 }, { name = \"2g.2gb+me\" } ]";
        let model = Model::read("mine", text).expect("read");
        let (one, two) = (&model.profiles[0], &model.profiles[1]);
        assert_eq!((one.slices, one.memory_gib, one.sms, one.units()), (1, Some(1.0), None, Some(1)));
        assert_eq!(one.places.as_ref().expect("it has some").starts, [0, 1]);
        assert_eq!((two.slices, two.places.as_ref(), two.is_plain(), &two.engines), (2, None, false, &Engines::default()));
        assert_eq!((model.sms, model.product_names.len()), (None, 0));
        assert!(Model::read("mine", "compute_slices = 1\nprofiles = [{ name = \"1c.1g.1gb\" }]").is_err());
    }

    #[test]
    fn the_memory_of_a_whole_gpu_is_never_that_of_a_part_of_it() {
        let gib = |name: &str| {
            let bytes = known().iter().find(|model| model.name == name)?.memory_bytes()?;
            Some(format!("{:.2}", bytes as f64 / f64::from(1 << 30)))
        };
        let said = |names: [&str; 4]| names.map(|name| gib(name).expect("known"));
        assert_eq!(said(["a100-40gb", "h100-80gb", "b200", "gb200"]), ["40.00", "79.65", "179.06", "185.03"]);
        assert_eq!(said(["gh200", "l40s", "l4", "t4"]), ["142.50", "44.99", "22.49", "15.00"]);
        let of = |text: &str| Model::read("mine", text).expect("read").memory_bytes();
        assert_eq!(of("memory_gb = 24"), Some(24 << 30), "as advertised, if nothing else is known");
        let whole = "memory_gb = 40\ncompute_slices = 7\nprofiles = [{ name = \"7g.40gb\", memory_gib = 39.25 }]";
        assert_eq!(of(whole), Some(39 << 30 | 1 << 28));
        assert_eq!(of("compute_slices = 7\nprofiles = [{ name = \"1g.5gb\", memory_gib = 4.75 }]"), None);
    }

    #[test]
    fn a_profile_may_have_the_memory_that_another_driver_reports() {
        let profile = |numbers: &str| {
            let text = format!("compute_slices = 7\nprofiles = [{{ name = \"1g.23gb\"{numbers} }}]");
            Model::read("mine", &text).expect("read").profiles[0].clone()
        };
        let both = profile(", memory_gib = 22, memory_gib_also = [20.5]");
        assert!(both.may_have(22.25) && both.may_have(20.5) && !both.may_have(21.0));
        assert!(profile("").may_have(3.0), "what is not known is no difference");
    }
}
