//! The memory of a cell's members: from the workloads' files on a CPU, from stored runs of each alone on a GPU.
//!
//! On a GPU stored runs refuse no cell: running out of memory is a result, and a plan that depended on its own campaign's runs
//! would change when that is resumed. A cell that may run out is marked.

use super::forecast::forecast_of;
use super::{Basis, Seated};
use crate::cell::{Cell, Term};
use crate::device::{DeviceFacts, DeviceKind};
use crate::past::PastCell;
use crate::sharing::{Refusal, Seat};
use crate::units;

/// What a plan tells of the memory of a cell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryForecast {
    /// All members together, at most on a GPU; absent if that of one is unknown.
    pub bytes: Option<u64>,
    pub may_run_out: bool,
}

pub(super) fn forecast(seated: Seated<'_>, basis: &Basis<'_>) -> MemoryForecast {
    if basis.facts.kind == DeviceKind::Cpu {
        return MemoryForecast { bytes: on_cpu(seated.cell), may_run_out: false };
    }
    let places = places(seated, basis);
    let bytes = places.iter().map(Place::all_bytes).sum();
    MemoryForecast { bytes, may_run_out: places.iter().any(Place::may_run_out) }
}

/// The members cannot fit the memory of a CPU, by the workloads' files.
pub(super) fn too_large(cell: &Cell, facts: &DeviceFacts) -> Option<Refusal> {
    if facts.kind == DeviceKind::Gpu {
        return None;
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

/// A memory that members share, and what each of them needed alone; absent if unknown.
struct Place {
    there_bytes: Option<u64>,
    members_bytes: Vec<Option<u64>>,
}

/// The whole GPU, or each GPU instance with members.
fn places(seated: Seated<'_>, basis: &Basis<'_>) -> Vec<Place> {
    let (Seated { record, seating, .. }, Basis { facts, past, .. }) = (seated, *basis);
    let mut places: Vec<(Option<usize>, Place)> = Vec::new();
    for (member, seat) in record.members.iter().zip(&seating.seats) {
        let instance = match seat {
            Seat::Whole => None,
            Seat::Slice { instance, .. } => Some(*instance),
        };
        let footprint = past.alone(member).and_then(PastCell::footprint_bytes);
        match places.iter_mut().find(|(other, _)| *other == instance) {
            Some((_, place)) => place.members_bytes.push(footprint),
            None => {
                let slice = instance.and_then(|at| seating.partition.as_ref()?.instances.get(at));
                let there_bytes = match slice {
                    Some(slice) => profile_bytes(&slice.profile, facts),
                    None => facts.memory_bytes,
                };
                places.push((instance, Place { there_bytes, members_bytes: vec![footprint] }));
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
    fn all_bytes(&self) -> Option<u64> {
        self.members_bytes.iter().copied().sum()
    }

    fn may_run_out(&self) -> bool {
        // Members of which nothing is known need something too.
        let known: u64 = self.members_bytes.iter().flatten().sum();
        self.there_bytes.is_some_and(|there| known > there)
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
