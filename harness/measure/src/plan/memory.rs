//! The memory of a cell's members: from the workloads' files on a CPU, from stored runs of each alone on a GPU.
//!
//! A cell is refused only if it cannot fit: on a GPU, if what its members' tensors alone occupied exceeds what there is. What
//! their allocators keep is given back when memory gets scarce, so with that much they may fit or not.

use collo_store::CellRecord;

use super::forecast::forecast_of;
use crate::cell::{Cell, Term};
use crate::device::{DeviceFacts, DeviceKind};
use crate::experiment::Experiment;
use crate::past::{Footprint, PastRuns};
use crate::sharing::{Refusal, Seat, Seating};
use crate::units;

/// What a plan tells of the memory of a cell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryForecast {
    /// All members together, at most on a GPU; absent if that of one is unknown.
    pub bytes: Option<u64>,
    pub may_run_out: bool,
}

pub fn forecast(cell: &Cell, record: &CellRecord, seating: &Seating, facts: &DeviceFacts, past: &PastRuns) -> MemoryForecast {
    if facts.kind == DeviceKind::Cpu {
        return MemoryForecast { bytes: on_cpu(cell), may_run_out: false };
    }
    let places = places(record, seating, facts, past);
    let bytes = places.iter().map(|place| place.sum(|f| f.most_bytes)).sum();
    let exceeds = |place: &Place| place.sum(|f| f.most_bytes).zip(place.there_bytes).is_some_and(|(most, there)| most > there);
    MemoryForecast { bytes, may_run_out: places.iter().any(exceeds) }
}

/// The members cannot fit the memory of the device, or of their slice of it. A search for what fits tries it.
pub fn too_large(
    cell: &Cell,
    record: &CellRecord,
    seating: &Seating,
    experiment: &Experiment,
    facts: &DeviceFacts,
    past: &PastRuns,
) -> Option<Refusal> {
    if facts.kind == DeviceKind::Gpu {
        let places = places(record, seating, facts, past);
        return places.iter().filter(|_| !experiment.search).find_map(|place| place.too_small(cell, facts));
    }
    let (needed, there) = (on_cpu(cell)?, facts.memory_bytes?);
    if needed <= there {
        return None;
    }
    let reason = format!("{} need about {}, this machine has {}", members(cell.degree()), units::gib(needed), units::gib(there));
    Some(Refusal { reason, hint: fewer(cell, there / (needed / u64::from(cell.degree())).max(1)) })
}

/// Members on a GPU use host memory as well, and the host's OOM killer ignores the GPU.
pub fn too_large_for_the_host(cell: &Cell, facts: &DeviceFacts) -> Option<Refusal> {
    if facts.kind != DeviceKind::Gpu {
        return None;
    }
    let (needed, there) = (host_memory_bytes(cell)?, facts.host_memory_bytes?);
    if needed <= there {
        return None;
    }
    let reason = format!(
        "{} need about {} of host memory, besides the GPU's; this machine has {}",
        members(cell.degree()),
        units::gib(needed),
        units::gib(there)
    );
    Some(Refusal { reason, hint: fewer(cell, there / (needed / u64::from(cell.degree())).max(1)) })
}

/// True if host memory is too small for this many members on a GPU: that says nothing about the GPU.
pub fn beyond_the_host(cell: &Cell, facts: &DeviceFacts) -> bool {
    too_large_for_the_host(cell, facts).is_some()
}

/// A memory that members share, and what each of them needed alone.
struct Place {
    /// The profile of its instance; absent for the whole GPU.
    profile: Option<String>,
    there_bytes: Option<u64>,
    footprints: Vec<Footprint>,
}

/// The whole GPU, or each GPU instance with members.
fn places(record: &CellRecord, seating: &Seating, facts: &DeviceFacts, past: &PastRuns) -> Vec<Place> {
    let mut places: Vec<(Option<usize>, Place)> = Vec::new();
    for (member, seat) in record.members.iter().zip(&seating.seats) {
        let instance = match seat {
            Seat::Whole => None,
            Seat::Slice { instance, .. } => Some(*instance),
        };
        let footprint = past.alone(member).map(|cell| cell.footprint()).unwrap_or_default();
        match places.iter_mut().find(|(other, _)| *other == instance) {
            Some((_, place)) => place.footprints.push(footprint),
            None => {
                let slice = instance.and_then(|at| seating.partition.as_ref()?.instances.get(at));
                let profile = slice.map(|slice| slice.profile.clone());
                let there_bytes = match &profile {
                    Some(name) => profile_bytes(name, facts),
                    None => facts.memory_bytes,
                };
                places.push((instance, Place { profile, there_bytes, footprints: vec![footprint] }));
            }
        }
    }
    places.into_iter().map(|(_, place)| place).collect()
}

fn profile_bytes(name: &str, facts: &DeviceFacts) -> Option<u64> {
    let profile = facts.gpu()?.card.as_ref()?.profiles.iter().find(|profile| profile.name == name)?;
    profile.memory_gib.map(|gib| (gib * (1u64 << 30) as f64) as u64)
}

impl Place {
    /// Of all members; absent if that of one is.
    fn sum(&self, of: impl Fn(&Footprint) -> Option<u64>) -> Option<u64> {
        self.footprints.iter().map(of).sum()
    }

    fn too_small(&self, cell: &Cell, facts: &DeviceFacts) -> Option<Refusal> {
        // Members of which nothing is known need something too.
        let needed: u64 = self.footprints.iter().filter_map(|f| f.least_bytes).sum();
        let there = self.there_bytes.filter(|there| needed > *there)?;
        let count = self.footprints.len() as u32;
        let need = if count == 1 { "needs" } else { "need" };
        let what = format!("{} {need} at least {} by stored runs of each alone", members(count), units::gib(needed));
        let Some(profile) = &self.profile else {
            let reason = format!("{what}, this GPU has {}", units::gib(there));
            return Some(Refusal { reason, hint: fewer(cell, there / (needed / u64::from(count)).max(1)) });
        };
        let larger = facts.gpu().and_then(|gpu| gpu.card.as_ref()).and_then(|card| {
            let enough = card.profiles.iter().filter(|p| profile_bytes(&p.name, facts).is_some_and(|bytes| bytes >= needed));
            enough.min_by_key(|p| profile_bytes(&p.name, facts))
        });
        let hint = larger.map(|p| format!("a `{}` has enough", p.name));
        Some(Refusal { reason: format!("{what}, a `{profile}` has {}", units::gib(there)), hint })
    }
}

/// The memory of all members together on a CPU, copies counted.
fn on_cpu(cell: &Cell) -> Option<u64> {
    let term = |t: &Term| Some(forecast_of(&t.member)?.memory_bytes?.saturating_mul(u64::from(t.count)));
    cell.terms().iter().map(term).sum()
}

/// On a GPU, the host memory that the members need; absent if unknown.
fn host_memory_bytes(cell: &Cell) -> Option<u64> {
    let term = |t: &Term| Some(forecast_of(&t.member)?.host_memory_bytes?.saturating_mul(u64::from(t.count)));
    // Those that tell nothing need something too, so what the others need is a lower bound.
    cell.terms().iter().filter_map(term).reduce(u64::saturating_add)
}

pub fn members(degree: u32) -> String {
    if degree == 1 { "1 member".into() } else { format!("{degree} members") }
}

/// The largest degree that fits, if all members are alike and at least one fits.
fn fewer(cell: &Cell, fit: u64) -> Option<String> {
    (cell.terms().len() == 1 && fit > 0).then(|| format!("`degree` up to {fit} fits"))
}
