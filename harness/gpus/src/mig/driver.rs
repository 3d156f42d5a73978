//! A GPU model as its driver describes it, compared with its file.

use std::sync::Arc;

use super::{Cards, Engines, GpuModel, Places, Profile};

/// A size of GPU instance, as the driver of a GPU reports it.
#[derive(Debug, Clone, PartialEq)]
pub struct DriverProfile {
    /// `3g.20gb`
    pub name: String,
    pub id: u32,
    pub slices: u32,
    pub most: u32,
    pub sms: u32,
    pub memory_mib: u64,
    /// copy, decode, encode, jpeg, ofa
    pub engines: [u32; 5],
    /// Possible start units; empty if the driver does not report them, as to a normal user.
    pub starts: Vec<u32>,
    /// Units of the grid per instance.
    pub units: u32,
}

impl GpuModel {
    /// From the profiles reported by NVML, with the layouts of the file that can be placed here.
    pub fn of_driver(
        name: String,
        product: &str,
        sms: Option<u32>,
        profiles: &[DriverProfile],
        known: Option<&GpuModel>,
    ) -> GpuModel {
        // A driver that reports no engines of the whole GPU has not counted them: nothing is limited by them then.
        let whole = profiles.iter().max_by_key(|p| p.slices).map_or([0; 5], |p| p.engines);
        let profile = |p: &DriverProfile| {
            let count = |kind: usize| Some(p.engines[kind]).filter(|n| *n <= whole[kind]);
            let [copy, decode, encode, jpeg, ofa] = [count(0), count(1), count(2), count(3), count(4)];
            Arc::new(Profile {
                name: p.name.clone(),
                slices: p.slices,
                id: Some(p.id),
                most: Some(p.most),
                memory_gib: Some(p.memory_mib as f64 / 1024.0),
                memory_gib_also: Vec::new(),
                sms: Some(p.sms),
                engines: Engines { copy, decode, encode, jpeg, ofa },
                // A normal user does not see where instances may lie: then the file decides.
                places: Some(Places { starts: p.starts.clone(), units: p.units })
                    .filter(|p| !p.starts.is_empty())
                    .or_else(|| known?.profile(&p.name).ok()?.places.clone()),
            })
        };
        let units = profiles.iter().flat_map(|p| p.starts.iter().map(|s| s + p.units)).max();
        let mut card = GpuModel {
            name,
            product_names: vec![product.into()],
            sms,
            memory_units: units.or_else(|| known?.memory_units),
            description: known.and_then(|k| k.description.clone()),
            pci_devices: known.map(|k| k.pci_devices.clone()).unwrap_or_default(),
            memory_gb: known.and_then(|k| k.memory_gb),
            memory_mib: known.and_then(|k| k.memory_mib),
            peaks: known.map(|k| k.peaks.clone()).unwrap_or_default(),
            compute_slices: profiles.iter().map(|p| p.slices).max(),
            profiles: profiles.iter().map(profile).collect(),
            layouts: Vec::new(),
        };
        for layout in known.map(|k| k.layouts.as_slice()).unwrap_or_default() {
            let wanted: Option<Vec<Arc<Profile>>> =
                layout.instances.iter().map(|i| card.profile(&i.profile.name).ok().cloned()).collect();
            if let Some(instances) = wanted.and_then(|wanted| card.room(&wanted, &[])) {
                card.layouts.push(super::Layout { name: layout.name.clone(), instances });
            }
        }
        card
    }

    /// A GPU model of which only its name and its slices are known.
    pub fn bare(name: &str, compute_slices: u32) -> GpuModel {
        GpuModel { name: name.into(), compute_slices: Some(compute_slices), ..GpuModel::default() }
    }

    /// The differences between the driver and this file: one line each. What the file does not give is not a difference.
    pub fn differences(&self, driver: &GpuModel) -> Vec<String> {
        let mut all = Vec::new();
        for own in &self.profiles {
            let Some(told) = driver.profiles.iter().find(|p| p.name == own.name) else {
                all.push(format!("`{}` is not offered by the driver", own.name));
                continue;
            };
            let numbers = [
                ("id", own.id, told.id),
                ("SMs", own.sms, told.sms),
                ("number at once", own.most, told.most),
                ("units", own.places.as_ref().map(|p| p.units), told.places.as_ref().map(|p| p.units)),
            ];
            for (what, own_value, told_value) in numbers {
                if let (Some(a), Some(b)) = (own_value, told_value)
                    && a != b
                {
                    all.push(format!("`{}`: {what} {a} in the file, {b} by the driver", own.name));
                }
            }
            if let (Some(a), Some(b)) = (own.memory_gib, told.memory_gib)
                && !own.may_have(b)
            {
                all.push(format!("`{}`: {a:.2} GiB in the file, {b:.2} by the driver", own.name));
            }
            let starts = |p: &Profile| p.places.as_ref().map(|p| p.starts.clone());
            if let (Some(a), Some(b)) = (starts(own), starts(told))
                && a != b
            {
                all.push(format!("`{}`: starts {a:?} in the file, {b:?} by the driver", own.name));
            }
        }
        let unknown = driver.profiles.iter().filter(|p| self.profiles.iter().all(|own| own.name != p.name));
        all.extend(unknown.map(|p| format!("`{}` is offered by the driver but not in the file", p.name)));
        all
    }
}

/// A GPU whose memory differs by more from the file is another model.
const SAME_MEMORY: f64 = 0.1;

impl Cards {
    /// The model with this name in the driver or this PCI device id. The name is more reliable: one id can stand for two sizes. A
    /// match by id alone also requires the memory that it is sold with.
    pub fn of_device(&self, product: &str, pci_device: u32, memory_bytes: Option<u64>) -> Option<&GpuModel> {
        let id = format!("{pci_device:04x}");
        let as_large = |c: &&GpuModel| match (c.memory_gb, memory_bytes) {
            (Some(sold), Some(bytes)) => {
                // Vendors count in GB or in GiB.
                let close = |unit: f64| (bytes as f64 / unit / f64::from(sold) - 1.0).abs() <= SAME_MEMORY;
                close(1e9) || close(1024.0 * 1024.0 * 1024.0)
            }
            _ => true,
        };
        let by_name = self.iter().filter(as_large).find(|c| c.product_names.iter().any(|n| n == product));
        by_name.or_else(|| {
            let mut by_id = self.iter().filter(|c| c.pci_devices.iter().any(|d| d.eq_ignore_ascii_case(&id)));
            by_id.next().filter(|_| by_id.next().is_none()).filter(as_large)
        })
    }
}
