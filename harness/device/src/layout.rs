//! Layouts as people write them: a name, a partition such as `7×1g.5gb`, a file of collo, a file of mig-parted.
//!
//! In: the text typed, and the selected GPUs. Out: the partition of each. The other way: a GPU's state as the file that `collo
//! mig apply` reads. It reads files and touches no GPU; `apply.rs` does.

mod mig_parted;
#[cfg(test)]
mod tests;
mod toml;
mod typed;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use collo_gpus::notation;
use collo_text::{Diagnostic, Source, quoted};

use collo_gpus::mig::{GpuModel, Instance, Profile};
use collo_gpus::partition::{Partition, Slice};
use collo_plan::facts::Gpu;

pub use mig_parted::written as parted_text;
pub use toml::written as toml_text;
pub use typed::written as cut_text;

/// The wanted partition of a GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedPartition {
    pub partition: Partition,
    /// The places of the instances were requested; otherwise any will do.
    pub placed: bool,
}

impl WantedPartition {
    /// Whether a GPU with this partition needs no change.
    pub fn is_met_by(&self, found: &Partition) -> bool {
        match self.placed {
            true => self.partition.is_as(found),
            false => found.mig == self.partition.mig && found.sizes() == self.partition.sizes(),
        }
    }
}

/// A requested layout.
#[derive(Debug, Clone)]
pub enum RequestedLayout {
    /// A name or a partition, whose meaning depends on the GPU.
    Words(String),
    Collo(toml::LayoutFile),
    MigParted(mig_parted::Config),
}

/// One item of a partition, before it has a place: its profile, and its compute instances if it is divided.
struct Item {
    profile: Arc<Profile>,
    compute: Vec<u32>,
}

impl RequestedLayout {
    /// From the command line; files are read.
    pub fn parse(text: &str, folder: &Path) -> Result<RequestedLayout, Diagnostic> {
        let Some((path, name)) = file_and_name(text) else { return Ok(RequestedLayout::Words(text.trim().into())) };
        let path = folder.join(path);
        let shown = collo_text::shown(&path);
        let content = collo_text::read_small_text(&path, collo_text::fields::LARGEST)
            .map_err(|e| Diagnostic::new(format!("layout `{shown}` cannot be read")).caused_by(e.to_string()))?;
        let source = Source::file(shown, content);
        match path.extension().is_some_and(|e| e == "toml") {
            true => Ok(RequestedLayout::Collo(toml::LayoutFile::read(&source, name.as_deref())?)),
            false => Ok(RequestedLayout::MigParted(mig_parted::Config::read(&source, name.as_deref())?)),
        }
    }

    /// The GPUs that the layout applies to, and the partition of each. `pci` returns the PCI device id as in NVML.
    ///
    /// A layout that names no GPUs is for the only one; if there are several, the user has to choose (`chosen`).
    pub fn on<'a>(
        &self,
        gpus: &'a [Gpu],
        chosen: bool,
        pci: &dyn Fn(&Gpu) -> Option<u32>,
    ) -> Result<Vec<(&'a Gpu, WantedPartition)>, Diagnostic> {
        let mut all = Vec::new();
        let own_cards = match self {
            RequestedLayout::MigParted(_) => true,
            RequestedLayout::Collo(file) => !chosen && file.names_cards(),
            RequestedLayout::Words(_) => false,
        };
        if !own_cards && !chosen {
            one_of(gpus)?;
        }
        for gpu in gpus.iter().filter(|gpu| chosen || own_cards || gpu.has_mig) {
            let wanted = match self {
                RequestedLayout::Words(text) => Some(words(text, gpu)?),
                RequestedLayout::Collo(file) => file.of(gpu, own_cards)?,
                RequestedLayout::MigParted(config) => config.of(gpu, pci(gpu))?,
            };
            all.extend(wanted.map(|wanted| (gpu, wanted)));
        }
        if all.is_empty() {
            let what = "the layout covers none of these GPUs".to_string();
            return Err(Diagnostic::new(what).hint("`devices` and `device-filter` decide; GPUs here: `collo doctor`"));
        }
        Ok(all)
    }
}

/// A layout that names no GPU is for the only one that can be partitioned.
pub fn one_of(gpus: &[Gpu]) -> Result<&Gpu, Diagnostic> {
    let able: Vec<&Gpu> = gpus.iter().filter(|gpu| gpu.has_mig).collect();
    match able.as_slice() {
        [only] => Ok(only),
        [] => Err(Diagnostic::new("no GPU here can be partitioned: none has MIG")
            .hint("GPUs that have it: `collo list gpus`")
            .of_machine()),
        [first, .., last] => {
            let number = |gpu: &Gpu| gpu.at.as_ref().map_or(0, |at| at.index);
            let what = format!("{} GPUs can be partitioned, and none is named", able.len());
            Err(Diagnostic::new(what).hint(format!(
                "name one, as in `--gpu {}`, or several: `--gpu {0},{}`",
                number(first),
                number(last)
            )))
        }
    }
}

/// `layouts.toml`, `configs.yaml:half`: the path and the name after it. `None` if it is not a file path.
fn file_and_name(text: &str) -> Option<(PathBuf, Option<String>)> {
    let is_file = |path: &str| [".toml", ".yaml", ".yml"].iter().any(|end| path.ends_with(end));
    if is_file(text) {
        return Some((text.into(), None));
    }
    let (path, name) = text.rsplit_once(':')?;
    is_file(path).then(|| (path.into(), Some(name.to_string())))
}

fn card_of(gpu: &Gpu) -> Result<&GpuModel, Diagnostic> {
    gpu.card.as_ref().ok_or_else(|| {
        if gpu.has_mig {
            let what =
                format!("the possible partitions of {} ({}) are unknown: {}", gpu.label(), gpu.name, gpu.why_no_profiles());
            return Diagnostic::new(what).hint("`collo mig apply on` switches MIG on").of_machine();
        }
        let what = format!("{} ({}) has no MIG, so it cannot be partitioned", gpu.label(), gpu.name);
        Diagnostic::new(what).hint("GPUs that have it: `collo list gpus`").of_machine()
    })
}

/// `off`, `on` without any instance, the name of a layout, or a partition.
fn words(text: &str, gpu: &Gpu) -> Result<WantedPartition, Diagnostic> {
    let mode = match text {
        "off" => Some(Partition::off()),
        "on" => Some(Partition::on(Vec::new())),
        _ => None,
    };
    if let Some(partition) = mode.filter(|_| gpu.has_mig) {
        return Ok(WantedPartition { partition, placed: true });
    }
    let card = card_of(gpu)?;
    if text.contains("g.") || text.starts_with(|c: char| c.is_ascii_digit()) {
        return typed::read(text, card);
    }
    let layout = card.layout(text).map_err(|e| e.hint("or a file, or a partition such as `3g.20gb+2×2g.10gb`"))?;
    Ok(WantedPartition { partition: Partition::of(&layout.instances), placed: false })
}

/// Find a place for each.
fn placed(items: Vec<Item>, card: &GpuModel) -> Result<WantedPartition, Diagnostic> {
    let profiles: Vec<Arc<Profile>> = items.iter().map(|item| Arc::clone(&item.profile)).collect();
    let mut left = items;
    let mut slices = Vec::new();
    for Instance { profile, start } in card.place(&profiles, &[])? {
        let Some(at) = left.iter().position(|item| item.profile.name == profile.name) else { continue };
        let item = left.remove(at);
        slices.push(Slice { profile: profile.name.clone(), start: Some(start), compute: item.compute });
    }
    Ok(WantedPartition { partition: Partition::on(slices), placed: false })
}

/// Compute instances of these sizes, packed into as few GPU instances of a profile as possible.
fn packed(profile: &Arc<Profile>, sizes: &[u32]) -> Result<Vec<Item>, Diagnostic> {
    let mut items: Vec<Item> = Vec::new();
    for size in sizes {
        if *size == 0 || *size > profile.slices {
            let what =
                format!("`{size}c.{}` is impossible: {} has {} compute slices", profile.name, profile.name, profile.slices);
            return Err(Diagnostic::new(what));
        }
        let room = items.iter_mut().find(|item| item.compute.iter().sum::<u32>() + size <= profile.slices);
        match room {
            Some(item) => item.compute.push(*size),
            None => items.push(Item { profile: Arc::clone(profile), compute: vec![*size] }),
        }
    }
    Ok(items)
}

/// Instances by their profiles, before placement: whole ones, and compute instances to be packed.
#[derive(Default)]
struct Items {
    whole: Vec<Item>,
    divided: BTreeMap<String, Vec<u32>>,
}

impl Items {
    /// Add `count` instances of what is written, `3g.20gb` or `1c.3g.20gb`.
    fn add(&mut self, count: u32, written: &notation::Item<'_>, card: &GpuModel) -> Result<(), Diagnostic> {
        let profile = card.sized(written.profile)?;
        match written.compute().map_err(|text| Diagnostic::new(format!("invalid compute instance {}", quoted(text))))? {
            Some(sizes) => {
                let all = (0..count).flat_map(|_| sizes.iter().copied());
                self.divided.entry(profile.name.clone()).or_default().extend(all);
            }
            None => self.whole.extend((0..count).map(|_| Item { profile: profile.clone(), compute: vec![profile.slices] })),
        }
        Ok(())
    }

    fn placed(mut self, card: &GpuModel) -> Result<WantedPartition, Diagnostic> {
        for (profile, sizes) in self.divided {
            self.whole.extend(packed(card.profile(&profile)?, &sizes)?);
        }
        placed(self.whole, card)
    }
}

/// Check instances with given places: valid starts for their profiles, no overlaps, no more slices than the GPU has.
fn checked(slices: Vec<Slice>, card: &GpuModel) -> Result<WantedPartition, Diagnostic> {
    let mut taken = 0u64;
    let mut compute = 0;
    for slice in &slices {
        let profile = card.profile(&slice.profile)?;
        // Together they may be more than any number of slices.
        let divided: u64 = slice.compute.iter().map(|slices| u64::from(*slices)).sum();
        if divided > u64::from(profile.slices) || slice.compute.contains(&0) {
            let what = format!("`{}` is impossible: {} has {} compute slices", slice_text(slice), slice.profile, profile.slices);
            return Err(Diagnostic::new(what));
        }
        compute += profile.slices;
        let (Some(places), Some(start)) = (&profile.places, slice.start) else { continue };
        if !places.starts.contains(&start) {
            let starts: Vec<String> = places.starts.iter().map(u32::to_string).collect();
            let what = format!("`{}` cannot start at unit {start} of {}", slice.profile, card.name);
            return Err(Diagnostic::new(what).hint(format!("it can start at {}", starts.join(", "))));
        }
        let own = (0..places.units).fold(0u64, |bits, unit| bits | 1 << ((start + unit) % 64));
        if taken & own != 0 {
            return Err(Diagnostic::new(format!("`{}` overlaps another instance", slice_text(slice))));
        }
        taken |= own;
    }
    if let Some(there) = card.compute_slices.filter(|there| compute > *there) {
        let what = format!("together they need {compute} compute slices, {} has {there}", card.name);
        return Err(Diagnostic::new(what));
    }
    Ok(WantedPartition { partition: Partition::on(slices), placed: true })
}

/// `3g.20gb@4`, `1c+1c.3g.20gb@4`; prefixed with `0c.` if it has no compute instance.
fn slice_text(slice: &Slice) -> String {
    match slice.compute.is_empty() {
        true => format!("0c.{}{}", slice.profile, slice.place()),
        false => slice.to_string(),
    }
}

/// Instances written either all with their places, or all without.
fn arranged(slices: Vec<Slice>, card: &GpuModel) -> Result<WantedPartition, Diagnostic> {
    let with = slices.iter().filter(|slice| slice.start.is_some()).count();
    if with == slices.len() {
        return checked(slices, card);
    }
    if with > 0 {
        return Err(Diagnostic::new("some instances have places, others do not").hint("give places to all of them, or to none"));
    }
    let item = |slice: Slice| Ok(Item { profile: Arc::clone(card.profile(&slice.profile)?), compute: slice.compute });
    placed(slices.into_iter().map(item).collect::<Result<_, Diagnostic>>()?, card)
}

/// Reads what [`slice_text`] writes.
fn slice_of(text: &str, card: &GpuModel) -> Result<Slice, Diagnostic> {
    let not_one =
        || Diagnostic::new(format!("invalid placed instance {}", quoted(text))).note("as in `3g.20gb@4` or `1c+1c.3g.20gb@0`");
    let written = notation::Item::of(text);
    let start = written.start().map_err(|_| not_one())?;
    let profile = card.sized(written.profile)?;
    if written.count() != Ok(None) {
        return Err(not_one());
    }
    let compute = written.compute().map_err(|_| not_one())?.unwrap_or(vec![profile.slices]);
    let compute = if compute == [0] { Vec::new() } else { compute };
    Ok(Slice { profile: profile.name.clone(), start, compute })
}
