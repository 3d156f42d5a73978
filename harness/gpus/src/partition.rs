//! A GPU's partition as a value: wanted, found, or written to journals and layouts.

use std::fmt;

use crate::notation::Size;
use serde::{Deserialize, Serialize};

use super::mig::Instance;

/// The MIG state of a GPU: off, or on with these GPU instances.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Partition {
    pub mig: bool,
    /// Sorted by place, those without a known place first; empty with MIG off.
    pub instances: Vec<Slice>,
}

/// One GPU instance: its profile, its place, and the compute instances inside it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Slice {
    pub profile: String,
    /// Absent if the driver does not report it: a normal user can read the sizes of instances but not their places.
    pub start: Option<u32>,
    /// Compute slices of each compute instance; usually a single one with all of them. Empty: CUDA cannot see the instance.
    pub compute: Vec<u32>,
}

impl Partition {
    pub fn off() -> Partition {
        Partition::default()
    }

    /// These instances, each with one compute instance that has all of it.
    pub fn of(instances: &[Instance]) -> Partition {
        let whole =
            |i: &Instance| Slice { profile: i.profile.name.clone(), start: Some(i.start), compute: vec![i.profile.slices] };
        Partition::on(instances.iter().map(whole).collect())
    }

    pub fn on(mut instances: Vec<Slice>) -> Partition {
        instances.sort_by_key(|s| s.start);
        Partition { mig: true, instances }
    }

    /// Equality as far as both are known: if an instance of either has no known place, sizes decide.
    pub fn is_as(&self, other: &Partition) -> bool {
        match self.has_places() && other.has_places() {
            true => self == other,
            false => self.mig == other.mig && self.sizes() == other.sizes(),
        }
    }

    /// Whether the place of every instance is known.
    pub fn has_places(&self) -> bool {
        self.instances.iter().all(|s| s.start.is_some())
    }

    /// Its instances by size and without places: what `assert` compares unless a layout has places.
    pub fn sizes(&self) -> Vec<(&str, &[u32])> {
        let mut sizes: Vec<_> = self.instances.iter().map(|s| (s.profile.as_str(), s.compute.as_slice())).collect();
        sizes.sort();
        sizes
    }
}

impl Slice {
    /// True if one compute instance has all of it, by the profile's own number of slices.
    pub fn is_whole(&self) -> bool {
        let slices = Size::parse(&self.profile).map(|size| size.slices);
        self.compute.len() == 1 && self.compute.first().copied() == slices
    }

    /// `@4`; empty if unknown.
    pub fn place(&self) -> String {
        self.start.map(|start| format!("@{start}")).unwrap_or_default()
    }

    /// `3g.20gb`, or `2×1c.3g.20gb` if it is divided further.
    fn to_text(&self) -> String {
        match self.compute.as_slice() {
            [] => format!("{} without compute instance", self.profile),
            _ if self.is_whole() => self.profile.clone(),
            [first, rest @ ..] if rest.iter().all(|c| c == first) => match rest.len() + 1 {
                1 => format!("{first}c.{}", self.profile),
                n => format!("{n}×{first}c.{}", self.profile),
            },
            many => {
                let parts: Vec<String> = many.iter().map(|c| format!("{c}c.{}", self.profile)).collect();
                parts.join(" + ")
            }
        }
    }
}

/// `3g.20gb@4`, `1c+1c.3g.20gb@4`: as in a layout file; `3g.20gb` if the place is unknown.
impl fmt::Display for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.compute.is_empty() {
            return write!(f, "{}{} without compute instance", self.profile, self.place());
        }
        if !self.is_whole() {
            let parts: Vec<String> = self.compute.iter().map(|c| format!("{c}c")).collect();
            write!(f, "{}.", parts.join("+"))?;
        }
        write!(f, "{}{}", self.profile, self.place())
    }
}

/// `MIG off`, `7×1g.5gb`, `3g.20gb + 2g.10gb + 2×1g.5gb`: largest first.
impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.mig {
            return f.write_str("MIG off");
        }
        let mut counted: Vec<(String, usize)> = Vec::new();
        for words in self.instances.iter().map(Slice::to_text) {
            match counted.iter_mut().find(|(w, _)| *w == words) {
                Some((_, n)) => *n += 1,
                None => counted.push((words, 1)),
            }
        }
        if counted.is_empty() {
            return f.write_str("MIG on, no instance");
        }
        counted.sort_by(|a, b| b.0.cmp(&a.0));
        let parts: Vec<String> = counted
            .iter()
            .map(|(words, n)| if *n == 1 || words.contains('×') { words.clone() } else { format!("{n}×{words}") })
            .collect();
        f.write_str(&parts.join(" + "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(profile: &str, start: u32, compute: &[u32]) -> Slice {
        Slice { profile: profile.into(), start: Some(start), compute: compute.to_vec() }
    }

    #[test]
    fn a_partition_reads_as_people_count() {
        let on = |s: &[Slice]| Partition::on(s.to_vec()).to_string();
        assert_eq!(Partition::off().to_string(), "MIG off");
        assert_eq!(on(&[]), "MIG on, no instance");
        let seven: Vec<Slice> = (0..7).map(|n| slice("1g.5gb", n, &[1])).collect();
        assert_eq!(on(&seven), "7×1g.5gb");
        let balanced = [slice("2g.10gb", 0, &[2]), slice("1g.5gb", 2, &[1]), slice("1g.5gb", 3, &[1]), slice("3g.20gb", 4, &[3])];
        assert_eq!(on(&balanced), "3g.20gb + 2g.10gb + 2×1g.5gb");
        assert_eq!(on(&[slice("3g.20gb", 0, &[1, 1])]), "2×1c.3g.20gb");
        assert_eq!(on(&[slice("3g.20gb", 0, &[])]), "3g.20gb without compute instance");
    }

    #[test]
    fn an_instance_whose_place_is_not_known_is_none_at_0_and_sizes_decide() {
        let unknown = |profile: &str, compute: &[u32]| Slice { start: None, ..slice(profile, 0, compute) };
        let told = Partition::on(vec![slice("2g.10gb", 0, &[2]), slice("3g.20gb", 4, &[3])]);
        let user = Partition::on(vec![unknown("3g.20gb", &[3]), unknown("2g.10gb", &[2])]);
        assert_eq!(user.to_string(), "3g.20gb + 2g.10gb");
        assert!(user.is_as(&told) && told.is_as(&user) && told != user);
        assert!(!user.is_as(&Partition::on(vec![slice("3g.20gb", 4, &[3])])));
        let moved = Partition::on(vec![slice("2g.10gb", 2, &[2]), slice("3g.20gb", 4, &[3])]);
        assert!(!told.is_as(&moved) && user.is_as(&moved));
        assert!(!Partition::off().is_as(&Partition::on(Vec::new())));
        assert_eq!(user.instances[0].to_string(), "3g.20gb");
        let old: Slice = serde_json::from_str(r#"{"profile":"3g.20gb","start":4,"compute":[3]}"#).unwrap();
        assert_eq!(old, told.instances[1], "journals of before are read");
    }

    #[test]
    fn a_slice_is_written_with_its_place() {
        assert_eq!(slice("3g.20gb", 4, &[3]).to_string(), "3g.20gb@4");
        assert_eq!(slice("3g.20gb", 4, &[1, 2]).to_string(), "1c+2c.3g.20gb@4");
    }
}
