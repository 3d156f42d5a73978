//! GPU models: their names, memory and SMs, and how those with MIG can be partitioned. Pure: it touches no device.
//!
//! A [`GpuModel`] is one file of `mig-profiles/`; all of them are compiled into this package, and a project may have its own ([`mig::Cards`]).
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

use collo_text::Source;

pub use mig::{Engines, GpuModel, Peaks, Places, Profile};

/// The major compute capability of Hopper. From it on a GPU has GPM, DCGM reads its instances individually, and a change of MIG mode
/// does not reset it.
pub const HOPPER: u8 = 9;

/// Compute slices of most GPUs with MIG: assumed of one that no file knows.
pub const USUAL_COMPUTE_SLICES: u32 = 7;
/// Memory units of the same.
pub const USUAL_MEMORY_UNITS: u32 = 8;

include!(concat!(env!("OUT_DIR"), "/files.rs"));

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

impl GpuModel {
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

/// All models that this build knows, sorted by name.
pub fn known() -> &'static [GpuModel] {
    static KNOWN: LazyLock<Vec<GpuModel>> = LazyLock::new(|| {
        let parse = |(name, text): &(&str, &str)| mig::parse(name, &Source::file(*name, *text)).ok();
        FILES.iter().filter_map(parse).collect()
    });
    &KNOWN
}

/// The model with this name in the driver.
pub fn of_product(product: &str) -> Option<&'static GpuModel> {
    known().iter().find(|model| model.product_names.iter().any(|name| is_same_product(name, product)))
}

/// The published peaks of the board with this name in the driver.
pub fn peaks_of(product: &str) -> Option<&'static Peaks> {
    of_product(product)?.peaks_of(product)
}

/// A name in the driver without that of the vendor.
pub fn without_vendor(name: &str) -> &str {
    const VENDOR: &str = "NVIDIA ";
    let name = name.trim();
    let vendor = name.get(..VENDOR.len()).filter(|start| start.eq_ignore_ascii_case(VENDOR));
    &name[vendor.map_or(0, str::len)..]
}

/// Whether two names are those of one product. Old drivers leave the vendor out; people write in lower case.
pub fn is_same_product(one: &str, other: &str) -> bool {
    without_vendor(one).eq_ignore_ascii_case(without_vendor(other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use collo_text::Diagnostics;

    fn read(text: &str) -> Result<GpuModel, Diagnostics> {
        mig::parse("mine", &Source::file("mine", text))
    }

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
        let model = read(text).expect("read");
        let (one, two) = (&model.profiles[0], &model.profiles[1]);
        assert_eq!((one.slices, one.memory_gib, one.sms, one.units()), (1, Some(1.0), None, Some(1)));
        assert_eq!(one.places.as_ref().expect("it has some").starts, [0, 1]);
        assert_eq!((two.slices, two.places.as_ref(), two.is_plain(), &two.engines), (2, None, false, &Engines::default()));
        assert_eq!((model.sms, model.product_names.len()), (None, 0));
        assert!(read("compute_slices = 1\nprofiles = [{ name = \"1c.1g.1gb\" }]").is_err());
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
        let of = |text: &str| read(text).expect("read").memory_bytes();
        assert_eq!(of("memory_gb = 24"), Some(24 << 30), "as advertised, if nothing else is known");
        let whole = "memory_gb = 40\ncompute_slices = 7\nprofiles = [{ name = \"7g.40gb\", memory_gib = 39.25 }]";
        assert_eq!(of(whole), Some(39 << 30 | 1 << 28));
        assert_eq!(of("compute_slices = 7\nprofiles = [{ name = \"1g.5gb\", memory_gib = 4.75 }]"), None);
    }

    #[test]
    fn a_profile_may_have_the_memory_that_another_driver_reports() {
        let profile = |numbers: &str| {
            let text = format!("compute_slices = 7\nprofiles = [{{ name = \"1g.23gb\"{numbers} }}]");
            read(&text).expect("read").profiles[0].clone()
        };
        let both = profile(", memory_gib = 22, memory_gib_also = [20.5]");
        assert!(both.may_have(22.25) && both.may_have(20.5) && !both.may_have(21.0));
        assert!(profile("").may_have(3.0), "what is not known is no difference");
    }
}
