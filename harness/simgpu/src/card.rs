//! A card: what `mig-profiles/` says of it, and what `cards.toml` adds for the simulation.
//!
//! In: the card's name. Out: [`Card`], with profiles numbered as NVML numbers them. This reader knows nothing of the harness's own,
//! so that each checks the other.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// Another folder of card files.
pub const FOLDER: &str = "COLLO_SIM_CARDS";
const EXTRAS: &str = include_str!("../cards.toml");
const MIB_PER_GIB: f64 = 1024.0;

/// One kind of card.
#[derive(Debug, Clone)]
pub struct Card {
    /// As in `COLLO_SIM`.
    pub key: String,
    /// As NVML prints it: begins with `simulated `.
    pub name: String,
    pub sms: u32,
    pub total_mib: u64,
    /// Absent: a card without MIG.
    pub mig: Option<Grid>,
    pub layouts: BTreeMap<String, Vec<String>>,
    pub pci_device: u32,
    pub extra: Extra,
}

/// What can be cut out of a card.
#[derive(Debug, Clone)]
pub struct Grid {
    pub compute_slices: u32,
    /// Unknown: nothing can be placed.
    pub memory_units: Option<u32>,
    pub profiles: Vec<Profile>,
}

/// A GPU instance profile.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// `1g.5gb`
    pub name: String,
    pub id: u32,
    /// NVML's index, which is another number than the id.
    pub index: u32,
    pub slices: u32,
    pub most: u32,
    pub memory_mib: u64,
    pub sms: u32,
    /// Empty: unknown.
    pub starts: Vec<u32>,
    pub units: u32,
    pub engines: Engines,
}

/// Engines of a profile; what is not known is 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Engines {
    pub copy: u32,
    pub decode: u32,
    pub encode: u32,
    pub jpeg: u32,
    pub ofa: u32,
}

/// See `cards.toml`.
#[derive(Debug, Clone, Deserialize)]
pub struct Extra {
    pub name: String,
    pub sms: u32,
    pub architecture: u32,
    pub capability: (i32, i32),
    pub cores_per_sm: u32,
    pub total_mib: u64,
    pub idle_w: f64,
    pub limit_w: f64,
    pub sm_mhz: u32,
    pub memory_mhz: u32,
    pub sm_speed: f64,
    pub bandwidth_gbs: f64,
}

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    product_names: Vec<String>,
    #[serde(default)]
    pci_devices: Vec<String>,
    memory_mib: Option<u64>,
    sms: Option<u32>,
    /// Absent for a card without MIG.
    compute_slices: Option<u32>,
    memory_units: Option<u32>,
    #[serde(default)]
    profiles: Vec<FileProfile>,
    #[serde(default)]
    layouts: BTreeMap<String, Vec<String>>,
}

#[derive(Deserialize)]
struct FileProfile {
    name: String,
    id: Option<u32>,
    most: Option<u32>,
    memory_gib: Option<f64>,
    sms: Option<u32>,
    #[serde(default)]
    starts: Vec<u32>,
    units: Option<u32>,
    #[serde(default)]
    engines: Engines,
}

/// The profiles of the checkout that this was built from.
pub fn of_checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../mig-profiles")
}

impl Card {
    /// The card of that name.
    pub fn find(key: &str) -> Result<Card, String> {
        Card::find_in(&std::env::var_os(FOLDER).map_or_else(of_checkout, PathBuf::from), key)
    }

    /// A card whose profiles are a file of this folder.
    pub fn find_in(folder: &Path, key: &str) -> Result<Card, String> {
        let path = folder.join(format!("{key}.toml"));
        let text = std::fs::read_to_string(&path).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => format!("no GPU model `{key}` in `{}`", folder.display()),
            _ => format!("`{}`: {e}", path.display()),
        })?;
        Card::read(key, &text).map_err(|e| format!("`{}`: {e}", path.display()))
    }

    fn read(key: &str, text: &str) -> Result<Card, String> {
        let file: File = toml::from_str(text).map_err(|e| e.to_string())?;
        let extras: BTreeMap<String, Extra> = toml::from_str(EXTRAS).map_err(|e| e.to_string())?;
        let usual = || {
            let usual = extras.get("a100-40gb")?.clone();
            Some(Extra { total_mib: file.memory_mib.unwrap_or(usual.total_mib), ..usual })
        };
        let extra = extras.get(key).cloned().or_else(usual).ok_or("the simulation knows no card")?;
        let sms = file.sms.unwrap_or(extra.sms);
        let mig = file.compute_slices.map(|compute_slices| {
            let numbered = |p: &FileProfile| p.numbered(&file, compute_slices, sms, &extra);
            let mut profiles: Vec<Profile> = file.profiles.iter().filter_map(numbered).collect();
            profiles.sort_by_key(|p| p.index);
            Grid { compute_slices, memory_units: file.memory_units, profiles }
        });
        let name = file.product_names.first().unwrap_or(&extra.name);
        Ok(Card {
            key: key.to_string(),
            name: format!("simulated {name}"),
            sms,
            total_mib: extra.total_mib,
            mig,
            layouts: file.layouts,
            pci_device: file.pci_devices.first().and_then(|id| u32::from_str_radix(id, 16).ok()).unwrap_or(0x20b0),
            extra,
        })
    }

    /// The small display GPU of a workstation.
    pub fn display() -> Card {
        let extra = Extra {
            name: "NVIDIA DGX Display".into(),
            sms: 7,
            architecture: 6,
            capability: (7, 5),
            cores_per_sm: 64,
            total_mib: 4096,
            idle_w: 8.0,
            limit_w: 50.0,
            sm_mhz: 1545,
            memory_mhz: 5001,
            sm_speed: 0.5,
            bandwidth_gbs: 96.0,
        };
        let name = format!("simulated {}", extra.name);
        let (sms, total_mib) = (extra.sms, extra.total_mib);
        Card { key: "display".into(), name, sms, total_mib, mig: None, layouts: BTreeMap::new(), pci_device: 0x1fb0, extra }
    }

    /// The GPM of Hopper and later.
    pub fn has_gpm(&self) -> bool {
        self.extra.architecture >= 9
    }

    pub fn profile(&self, id: u32) -> Option<&Profile> {
        self.mig.as_ref()?.profiles.iter().find(|p| p.id == id)
    }

    pub fn profile_at(&self, index: u32) -> Option<&Profile> {
        self.mig.as_ref()?.profiles.iter().find(|p| p.index == index)
    }

    pub fn profile_named(&self, name: &str) -> Option<&Profile> {
        self.mig.as_ref()?.profiles.iter().find(|p| p.name == name)
    }

    /// Share of the card's memory slices, and so of its bandwidth.
    pub fn memory_share(&self, profile: &Profile) -> f64 {
        let units = self.mig.as_ref().and_then(|g| g.memory_units).unwrap_or(8);
        f64::from(profile.units) / f64::from(units)
    }
}

impl FileProfile {
    fn numbered(&self, file: &File, compute_slices: u32, sms: u32, extra: &Extra) -> Option<Profile> {
        let slices: u32 = self.name.split('g').next()?.parse().ok()?;
        let plain = file.profiles.iter().filter(|p| p.name.starts_with("1g.") && suffix(&p.name).is_empty());
        let least_gib = plain.filter_map(|p| p.memory_gib).fold(f64::INFINITY, f64::min);
        let double = slices == 1 && self.memory_gib.is_some_and(|gib| gib > 1.5 * least_gib);
        let index = match (slices, suffix(&self.name), double) {
            (1, "", true) => 9,
            (1, "", false) => 0,
            (2, "", _) => 1,
            (3, "", _) => 2,
            (4, "", _) => 3,
            (7, "", _) => 4,
            (8, "", _) => 5,
            (6, "", _) => 6,
            (1, "+me", _) => 7,
            (2, "+me", _) => 8,
            (1, "+gfx", _) => 10,
            (2, "+gfx", _) => 11,
            (4, "+gfx", _) => 12,
            (1, "-me", _) => 13,
            (2, "-me", _) => 14,
            (1, "+me.all", _) => 15,
            (2, "+me.all", _) => 16,
            _ => return None,
        };
        let usual_id = match slices {
            3 => Some(9),
            4 => Some(5),
            7 => Some(0),
            _ => None,
        };
        let units = self.units.unwrap_or(0);
        let share = match file.memory_units {
            Some(all) if units > 0 => f64::from(units) / f64::from(all),
            _ => f64::from(slices) / f64::from(compute_slices),
        };
        let whole = slices == compute_slices;
        let guessed_sms = if whole { sms } else { sms * slices / compute_slices / 2 * 2 };
        let guessed_mib = ((extra.total_mib - 1024) as f64 * share) as u64;
        let by_room = file.memory_units.unwrap_or(units).checked_div(units).unwrap_or(1);
        Some(Profile {
            name: self.name.clone(),
            id: self.id.or(usual_id)?,
            index,
            slices,
            most: self.most.unwrap_or(by_room.min(compute_slices / slices).max(1)),
            memory_mib: self.memory_gib.map_or(guessed_mib, mib),
            sms: self.sms.unwrap_or(guessed_sms),
            starts: if units > 0 { self.starts.clone() } else { Vec::new() },
            units,
            engines: self.engines,
        })
    }
}

/// `+me` of `1g.5gb+me`.
fn suffix(name: &str) -> &str {
    name.find("gb").map_or("", |at| &name[at + 2..])
}

/// The driver's tables print two decimals of what is a multiple of 64 MiB.
fn mib(gib: f64) -> u64 {
    (gib * MIB_PER_GIB / 64.0).round() as u64 * 64
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [&str; 12] = [
        "a100-40gb",
        "a100-80gb",
        "a30-24gb",
        "b200",
        "gb200",
        "gh200",
        "gh200-96gb",
        "h100-80gb",
        "h100-nvl-94gb",
        "h100-pcie-80gb",
        "h200-141gb",
        "rtx-pro-6000",
    ];

    #[test]
    fn every_card_can_be_read_and_its_profiles_have_different_numbers() {
        for key in ALL {
            let card = Card::find(key).unwrap();
            let grid = card.mig.clone().unwrap();
            for number in [|p: &Profile| p.id, |p: &Profile| p.index] {
                let mut all: Vec<u32> = grid.profiles.iter().map(number).collect();
                all.sort_unstable();
                all.dedup();
                assert_eq!(all.len(), grid.profiles.len(), "{key}");
            }
            assert!(grid.profiles.iter().all(|p| p.memory_mib < card.total_mib && p.sms > 0 && p.most > 0), "{key}");
            assert!(card.name.starts_with("simulated "), "{key}");
        }
    }

    #[test]
    fn an_a100_has_the_drivers_numbers() {
        let card = Card::find("a100-40gb").unwrap();
        let small = card.profile_named("1g.5gb").unwrap();
        assert_eq!((small.id, small.index, small.memory_mib, small.sms), (19, 0, 4864, 14));
        let double = card.profile_named("1g.10gb").unwrap();
        assert_eq!((double.id, double.index, double.memory_mib), (15, 9, 9856));
        assert_eq!(card.profile_named("1g.5gb+me").unwrap().index, 7);
        assert_eq!(card.profile_named("7g.40gb").unwrap().index, 4);
        assert_eq!(card.name, "simulated NVIDIA A100-SXM4-40GB");
    }
}
