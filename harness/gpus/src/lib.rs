//! GPU models, as described in `mig-profiles/`, and MIG's notation. Pure: it touches no device.
//!
//! In: a text such as `mig-profiles/a100-40gb.toml`. Out: its numbers, or its errors. All files of the folder are compiled into
//! this crate; measuring reads a project's own folder, which its owner may have changed.

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod notation;

use std::sync::LazyLock;

use serde::Deserialize;

include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// A GPU model. What its file does not give is absent; its layouts are read elsewhere, by the code that partitions GPUs.
#[derive(Debug, Clone, PartialEq, Deserialize)]
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
    /// The marketed size; the real memory of instances is in their profiles.
    pub memory_gb: Option<u32>,
    /// Of the whole GPU, without MIG.
    pub sms: Option<u32>,
    pub compute_slices: u32,
    /// Length of the grid on which instances are placed.
    pub memory_units: Option<u32>,
    pub profiles: Vec<Profile>,
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
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
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
}

impl Model {
    /// Parse the description of a model; the error says what is wrong with it, without the place.
    pub fn read(name: &str, text: &str) -> Result<Model, String> {
        let mut model: Model = toml::from_str(text).map_err(|e| e.message().to_string())?;
        model.name = name.into();
        for profile in &mut model.profiles {
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
    pub fn profile(&self, name: &str) -> Option<&Profile> {
        self.profiles.iter().find(|p| p.name == name)
    }
}

/// All models that this build knows, sorted by name.
pub fn known() -> &'static [Model] {
    static KNOWN: LazyLock<Vec<Model>> =
        LazyLock::new(|| FILES.iter().filter_map(|(name, text)| Model::read(name, text).ok()).collect());
    &KNOWN
}

/// The model with this name in the driver.
pub fn of_product(product: &str) -> Option<&'static Model> {
    let bare = |name: &str| name.trim().trim_start_matches("NVIDIA ").to_string();
    known().iter().find(|model| model.product_names.iter().any(|name| bare(name) == bare(product)))
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
        assert_eq!(found("NVIDIA A100-SXM4-80GB"), Some(("a100-80gb", 7)));
        assert_eq!(found("A30"), Some(("a30-24gb", 4)));
        assert_eq!(found("NVIDIA RTX PRO 6000 Blackwell Server Edition"), Some(("rtx-pro-6000", 4)));
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
        assert!(Model::read("mine", "profiles = []").expect_err("incomplete").contains("compute_slices"));
    }
}
