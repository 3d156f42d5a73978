//! GPU models: their profiles, the places of instances, and layouts by name.
//!
//! In: `mig-profiles/NAME.toml`. Out: explicit placements, or why there are none. It touches no device, and a real GPU's driver
//! may know better than the file.

mod cards;
mod driver;
mod infeasible;
pub mod keys;
mod place;
#[cfg(test)]
mod place_tests;
mod read;
#[cfg(test)]
mod tests;

pub use cards::Cards;
pub use driver::DriverProfile;
pub use keys::{Engines, GpuModel, Peaks, Profile};
pub use read::parse;

use std::fmt;
use std::sync::Arc;

use crate::notation::{Share, Size};
use collo_text::{Diagnostic, nearest, quoted};

use collo_text::fields::listed_all;

/// Where instances of a profile can be placed on the grid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// In ascending order.
    pub starts: Vec<u32>,
    /// Memory units per instance, which is not its number of slices: `3g` takes 4 of 8.
    pub units: u32,
}

/// One instance at its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Instance {
    pub profile: Arc<Profile>,
    pub start: u32,
}

/// `3g.20gb@4`
impl fmt::Display for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.profile.name, self.start)
    }
}

/// Named instances, each with its place, sorted by place.
#[derive(Debug, Clone, PartialEq)]
pub struct Layout {
    pub name: String,
    pub instances: Vec<Instance>,
}

impl GpuModel {
    pub fn profile(&self, name: &str) -> Result<&Arc<Profile>, Diagnostic> {
        let names = self.profiles.iter().map(|p| p.name.as_str());
        self.profiles.iter().find(|profile| profile.name == name).ok_or_else(|| match self.alike(name) {
            Some(alike) => Diagnostic::new(format!("unknown profile {}", quoted(name)))
                .note(format!("on {} it is `{}`", self.name, alike.name)),
            None => self.unknown("profile", name, names),
        })
    }

    pub fn layout(&self, name: &str) -> Result<&Layout, Diagnostic> {
        let names = self.layouts.iter().map(|l| l.name.as_str());
        self.layouts.iter().find(|l| l.name == name).ok_or_else(|| self.unknown("layout", name, names))
    }

    /// The equivalent of another model's profile here: as many slices, with the same extras, and the least memory of these.
    fn alike(&self, name: &str) -> Option<&Arc<Profile>> {
        let asked = Size::parse(name).filter(|asked| asked.compute.is_none())?;
        self.least(asked.slices, asked.extras)
    }

    /// Of the profiles with so many slices and these extras the one with the least memory: `1g.5gb`, and not `1g.10gb` with the double.
    fn least(&self, slices: u32, extras: &str) -> Option<&Arc<Profile>> {
        let memory = |profile: &Arc<Profile>| {
            let size = Size::parse(&profile.name).filter(|size| (size.slices, size.extras) == (slices, extras));
            size.map(|size| size.memory_gb)
        };
        self.profiles.iter().filter_map(|profile| Some((memory(profile)?, profile))).min_by_key(|(gb, _)| *gb).map(|(_, p)| p)
    }

    /// The profile that an experiment asks for: by its name, or by a share of the compute, `3g` or `3/7`. Of several profiles with
    /// this share that with the least memory.
    pub fn sized(&self, text: &str) -> Result<&Arc<Profile>, Diagnostic> {
        let Some(share) = Share::parse(text) else { return self.profile(text) };
        let all = self.compute_slices.unwrap_or(0);
        let found = share.slices_on(all).and_then(|slices| self.least(slices, ""));
        found.ok_or_else(|| {
            let mut there: Vec<u32> = self.profiles.iter().map(|profile| profile.slices).collect();
            there.sort_unstable();
            there.dedup();
            let there: Vec<String> = there.into_iter().map(|slices| share.alike(slices, all)).collect();
            Diagnostic::new(format!("{} has no instance of {}", self.name, quoted(text)))
                .caused_by(format!("it has {all} compute slices"))
                .hint(format!("its instances are {}", listed_all(&there)))
        })
    }

    fn unknown<'a>(&self, what: &str, name: &str, names: impl Iterator<Item = &'a str> + Clone) -> Diagnostic {
        let note = match nearest(name, names.clone()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("{} has {}", self.name, names.map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")),
        };
        Diagnostic::new(format!("unknown {what} {}", quoted(name))).note(note)
    }

    /// Whether anything is known of where instances may lie.
    pub fn has_places(&self) -> bool {
        self.profiles.iter().any(|profile| profile.places.is_some())
    }

    /// The largest profile that fits this many times: what `mig` alone gives each member.
    ///
    /// Of profiles with the same slices the one with the least memory counts, so that `mig` at 4 and at 5 members means the same
    /// instance; the 1g of double memory has to be requested by its name.
    pub fn equal(&self, members: u32) -> Option<&Arc<Profile>> {
        let is_least = |p: &&Arc<Profile>| self.least(p.slices, "").is_some_and(|least| least.name == p.name);
        let mut all: Vec<&Arc<Profile>> = self.profiles.iter().filter(is_least).collect();
        all.sort_by_key(|p| std::cmp::Reverse(p.slices));
        // More members than slices cannot be; it also keeps the list below short.
        (1..=self.compute_slices?).contains(&members).then_some(())?;
        all.into_iter().find(|p| self.room(&vec![Arc::clone(p); members as usize], &[]).is_some())
    }
}
