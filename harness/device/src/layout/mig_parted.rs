//! mig-parted's file format: configurations by name, each a list of GPUs, whether MIG is on, and the number of instances of each
//! profile.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use collo_gpus::notation;
use collo_text::{Diagnostic, Source, quoted};
use serde::Deserialize;
use serde_json::Value as Json;

use super::{Items, WantedPartition, card_of};
use collo_gpus::partition::Partition;
use collo_plan::facts::Gpu;
use collo_plan::workload::plain;

/// One configuration.
#[derive(Debug, Clone)]
pub struct Config {
    name: String,
    /// The file, for messages.
    file: String,
    entries: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct PartedDocument {
    version: String,
    mig_configs: BTreeMap<String, Vec<Entry>>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Entry {
    #[serde(default)]
    device_filter: Option<OneOrMany>,
    devices: Devices,
    mig_enabled: bool,
    #[serde(default)]
    mig_devices: Option<BTreeMap<String, u32>>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
    /// What is refused, so that it is refused in its own words.
    Other(Json),
}

/// `all`, or GPUs by index.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Devices {
    Some(Vec<u32>),
    Word(String),
    Other(Json),
}

/// The supported version of the format.
const VERSION: &str = "v1";

impl Config {
    /// The configuration of this name; optional if the file has only one.
    pub fn read(source: &Arc<Source>, name: Option<&str>) -> Result<Config, Diagnostic> {
        let document: PartedDocument = serde_saphyr::from_str(source.text())
            .map_err(|e| object_of_kubernetes(source).unwrap_or_else(|| not_read(source, &e)))?;
        let file = source.name();
        if document.version != VERSION {
            let what = format!("{file} has version {}; only `{VERSION}` is supported", quoted(&document.version));
            return Err(Diagnostic::new(what));
        }
        let names: Vec<String> = document.mig_configs.keys().map(|n| format!("`{n}`")).collect();
        let mut all = document.mig_configs;
        let chosen = match name {
            Some(name) => all.remove_entry(name),
            None if all.len() == 1 => all.pop_first(),
            None => {
                let first = all.keys().next().cloned().unwrap_or_default();
                let what = format!("{file} has several configurations: {}", names.join(", "));
                return Err(Diagnostic::new(what).hint(format!("name one, as in `{file}:{first}`")));
            }
        };
        let Some((name, entries)) = chosen else {
            let what = format!("no configuration {} in {file}", quoted(name.unwrap_or_default()));
            return Err(Diagnostic::new(what).hint(format!("it has {}", names.join(", "))));
        };
        for entry in &entries {
            entry.check(&name, file)?;
        }
        Ok(Config { name, file: file.into(), entries })
    }

    /// The wanted partition of this GPU; `None` if no entry applies to it.
    pub fn of(&self, gpu: &Gpu, pci: Option<u32>) -> Result<Option<WantedPartition>, Diagnostic> {
        let mut found: Option<WantedPartition> = None;
        for entry in &self.entries {
            if !entry.is_about(gpu, pci)? {
                continue;
            }
            let Some(wanted) = entry.wanted(gpu)? else { continue };
            if found.as_ref().is_some_and(|other| *other != wanted) {
                let what = format!("two entries of `{}` in {} apply to {}, and differ", self.name, self.file, gpu.label());
                return Err(Diagnostic::new(what));
            }
            found = Some(wanted);
        }
        Ok(found)
    }
}

/// Why a ConfigMap is none: the GPU operator has configurations as a text in one (`data` of ConfigMap in the Kubernetes API).
fn object_of_kubernetes(source: &Source) -> Option<Diagnostic> {
    let object: serde_json::Map<String, Json> = serde_saphyr::from_str(source.text()).ok()?;
    let kind = object.get("kind").and_then(Json::as_str).filter(|_| object.contains_key("apiVersion"))?;
    let what = format!("{} is a {} of Kubernetes, not a configuration of mig-parted", source.name(), quoted(kind));
    let data = object.get("data").and_then(Json::as_object);
    let key = data.and_then(|data| data.keys().next()).map_or("config.yaml", String::as_str);
    Some(Diagnostic::new(what).hint(format!("write the part under {} into a file of its own", quoted(&format!("{key}: |")))))
}

fn not_read(source: &Arc<Source>, e: &serde_saphyr::Error) -> Diagnostic {
    let whole = e.without_snippet().to_string();
    let what = Diagnostic::new(format!("not a configuration of mig-parted: {}", whole.lines().next().unwrap_or_default()));
    let Some(place) = e.location() else { return what.hint(format!("the file is {}", source.name())) };
    let (line, column) = (place.line() as usize, place.column() as usize);
    let before: usize = source.text().split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let in_line = source.text()[before.min(source.text().len())..].chars().take(column.saturating_sub(1));
    let at = before + in_line.map(char::len_utf8).sum::<usize>();
    what.at(source, at..at + 1)
}

impl Entry {
    fn check(&self, config: &str, file: &str) -> Result<(), Diagnostic> {
        let wrong = |what: String| Err(Diagnostic::new(format!("`{config}` of {file}: {what}")));
        let other = match &self.devices {
            Devices::Some(_) => None,
            Devices::Word(word) => Some(Json::from(word.as_str())).filter(|_| word != "all"),
            Devices::Other(other) => Some(other.clone()),
        };
        if let Some(other) = other {
            let list = if other.is_u64() { format!(": `[{other}]`") } else { String::new() };
            return wrong(format!("`devices` is `all` or a list of indices{list}, not {}", quoted(&plain(&other))));
        }
        if let Some(OneOrMany::Other(other)) = &self.device_filter {
            let is = "`device-filter` is a PCI device id in quotes, as in `\"0x20B010DE\"`, or a list of them";
            return wrong(format!("{is}, not {}", quoted(&plain(other))));
        }
        if !self.mig_enabled && self.mig_devices.as_ref().is_some_and(|d| !d.is_empty()) {
            return wrong("`mig-devices` requires `mig-enabled: true`".into());
        }
        if let Some((name, _)) = self.mig_devices.iter().flatten().find(|(_, count)| **count > notation::MOST) {
            return wrong(format!("more than {} instances of `{name}`", notation::MOST));
        }
        if let Some(text) = self.filters().iter().find(|text| pci_id(text).is_none()) {
            return wrong(format!("invalid PCI device id {}, as in `0x20B010DE`", quoted(text)));
        }
        Ok(())
    }

    fn filters(&self) -> Vec<&str> {
        match &self.device_filter {
            None | Some(OneOrMany::Other(_)) => Vec::new(),
            Some(OneOrMany::One(one)) if one.is_empty() => Vec::new(),
            Some(OneOrMany::One(one)) => vec![one],
            Some(OneOrMany::Many(many)) => many.iter().map(String::as_str).collect(),
        }
    }

    fn is_about(&self, gpu: &Gpu, pci: Option<u32>) -> Result<bool, Diagnostic> {
        let listed = match &self.devices {
            Devices::Word(_) | Devices::Other(_) => true,
            Devices::Some(list) => gpu.at.as_ref().is_some_and(|at| list.contains(&at.index)),
        };
        let filters = self.filters();
        if !listed || filters.is_empty() {
            return Ok(listed);
        }
        let Some(pci) = pci else {
            let what = format!("the PCI device id of {} is unknown, so `device-filter` cannot be applied to it", gpu.label());
            return Err(Diagnostic::new(what).of_machine());
        };
        Ok(filters.iter().any(|text| pci_id(text) == Some(pci)))
    }

    /// `None` for a GPU without MIG that is to have none: nothing to do.
    fn wanted(&self, gpu: &Gpu) -> Result<Option<WantedPartition>, Diagnostic> {
        if !self.mig_enabled {
            return Ok(gpu.has_mig.then(|| WantedPartition { partition: Partition::off(), placed: true }));
        }
        // `all` means all that can be cut; a card that is listed is meant.
        if !gpu.has_mig && matches!(self.devices, Devices::Word(_)) {
            return Ok(None);
        }
        let card = card_of(gpu)?;
        let mut items = Items::default();
        for (name, count) in self.mig_devices.iter().flatten() {
            let item = notation::Item::of(name);
            if item.count() != Ok(None) || item.is_placed() {
                // Counts and places are not part of a name here: `2×1g.5gb: 3` is a mistake, not three.
                card.profile(name)?;
            }
            items.add(*count, &item, card)?;
        }
        items.placed(card).map(Some)
    }
}

/// `0x233010DE`: the device before the vendor, combined in one number as in NVML.
fn pci_id(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?;
    u32::from_str_radix(digits, 16).ok().filter(|_| digits.len() == 8)
}

/// States of GPUs as a file with one configuration, `current`. It has no places, and no instance that CUDA cannot see.
pub fn written<'a>(cards: impl IntoIterator<Item = (&'a Gpu, &'a Partition)>) -> String {
    let mut text = format!("version: {VERSION}\nmig-configs:\n  current:\n");
    for (gpu, partition) in cards {
        let index = gpu.at.as_ref().map_or(0, |at| at.index);
        // A string takes any text.
        let _ = writeln!(text, "  - devices: [{index}]\n    mig-enabled: {}", partition.mig);
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        for slice in &partition.instances {
            for size in &slice.compute {
                let name = if slice.is_whole() { slice.profile.clone() } else { format!("{size}c.{}", slice.profile) };
                *counts.entry(name).or_default() += 1;
            }
        }
        if partition.mig {
            let _ = writeln!(text, "    mig-devices:{}", if counts.is_empty() { " {}" } else { "" });
        }
        for (name, count) in counts {
            let _ = writeln!(text, "      \"{name}\": {count}");
        }
    }
    text
}
