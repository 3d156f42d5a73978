//! The memory of a cell's members: measured alone in earlier runs, else predicted, else from the workloads' files.
//!
//! On a GPU stored runs refuse no cell: running out of memory is a result, and a plan that depended on its own campaign's runs
//! would change when that is resumed. A prediction refuses what cannot run at all: its lower bounds are more than there is. What
//! may run out is marked.

use collo_predict::{Interval, probability_above};
use collo_store::{MarkedCell, PredictedMemory};

use super::{Basis, ForecastSource, PlannedCell, Seated, forecast::forecast_of};
use crate::cell::{Cell, Term};
use crate::facts::{DeviceFacts, DeviceKind};
use crate::past::PastCell;
use crate::sharing::{Refusal, Seat};
use collo_text::units;

/// What a plan tells of the memory of a cell.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct MemoryForecast {
    /// All members together, with what their allocators keep; absent if that of one is unknown.
    pub bytes: Option<u64>,
    /// Upper bounds added up, where a member is predicted.
    pub upper_bytes: Option<u64>,
    /// The least certain source among the members; absent with `bytes`.
    pub source: Option<ForecastSource>,
    /// Absent if nothing says that it may run out.
    pub risk: Option<OutOfMemoryRisk>,
    /// Whether the estimates are within each part of the device; unknown with `bytes`.
    pub fits: Option<bool>,
}

/// Why a cell may run out of memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OutOfMemoryRisk {
    /// The largest readings of its members alone are more than there is.
    Readings,
    /// Upper bounds of predictions are.
    Predicted { probability: f64 },
}

impl MemoryForecast {
    /// Of a prediction alone; readings add nothing.
    pub fn probability(&self) -> Option<f64> {
        match self.risk? {
            OutOfMemoryRisk::Readings => None,
            OutOfMemoryRisk::Predicted { probability } => Some(probability),
        }
    }

    /// It is predicted to run out rather than not.
    pub(super) fn is_likely_to_run_out(&self) -> bool {
        self.probability().is_some_and(|probability| probability >= 0.5)
    }
}

pub(super) fn forecast(seated: Seated<'_>, basis: &Basis<'_>) -> MemoryForecast {
    let places = places(seated, basis);
    let predicted = places.iter().flat_map(|place| &place.needs).flatten().any(|need| need.source == ForecastSource::Predicted);
    let shared = || places.iter().filter(|place| !place.is_limit);
    MemoryForecast {
        bytes: shared().map(|place| place.all(|need| need.bytes)).sum(),
        upper_bytes: shared().map(|place| place.all(|need| need.upper_bytes)).sum::<Option<u64>>().filter(|_| predicted),
        source: places.iter().flat_map(|place| &place.needs).map(|need| Some(need.as_ref()?.source)).max().flatten(),
        risk: places.iter().filter_map(MemoryPlace::risk).reduce(OutOfMemoryRisk::larger),
        fits: places.iter().map(MemoryPlace::fits).reduce(|all, own| Some(all? && own?)).flatten(),
    }
}

/// The cells that may run out of memory, as a campaign keeps them.
pub(super) fn marked(cells: &[PlannedCell]) -> Vec<MarkedCell> {
    let marked = cells.iter().filter(|planned| planned.forecast.memory.risk.is_some());
    marked
        .map(|planned| MarkedCell { cell: planned.record.cell.clone(), probability: planned.forecast.memory.probability() })
        .collect()
}

/// No run of the cell can fit: by the lower bounds of its members' predictions.
pub(super) fn never_fits(seated: Seated<'_>, basis: &Basis<'_>) -> Option<Refusal> {
    let Seated { cell, record, .. } = seated;
    // To find it is the purpose of a search, and who expects it wants to see it.
    if basis.experiment.search || record.expect.is_some() || basis.prior.begun.contains(&record.cell) {
        return None;
    }
    let place =
        places(seated, basis).into_iter().find(|place| place.there_bytes.is_some_and(|there| place.least_bytes() > there))?;
    let (least, there) = (place.least_bytes(), place.there_bytes?);
    let count = place.needs.len() as u32;
    let need = if count == 1 { "needs" } else { "need" };
    let reason = format!(
        "{} {need} at least {} by prediction, {} has {}",
        members(count),
        units::gib(least),
        place.name,
        units::gib(there)
    );
    // By the bounds that 95 % of measurements are below: what the lower ones let pass may well run out.
    let upper = place.all(|need| need.upper_bytes).filter(|_| place.is_all);
    let fewer = upper.and_then(|upper| fewer(cell, there / (upper / u64::from(count)).max(1)));
    let hint =
        fewer.map_or_else(|| "`--no-predict` runs it anyway".into(), |fewer| format!("{fewer}; `--no-predict` runs it anyway"));
    Some(Refusal { reason, hint: Some(hint) })
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

/// What a member needs.
#[derive(Debug, Clone, Copy)]
struct Need {
    bytes: u64,
    upper_bytes: u64,
    source: ForecastSource,
    /// Of a prediction that no measurement contradicts, else 0: it needs something, too.
    least_bytes: u64,
    /// The ends of the interval of a prediction, as shares of the estimate; 1 for a measurement.
    low: f64,
    high: f64,
}

impl Need {
    fn exactly(bytes: u64, source: ForecastSource) -> Need {
        Need { bytes, upper_bytes: bytes, source, least_bytes: 0, low: 1.0, high: 1.0 }
    }

    fn predicted(claim: &PredictedMemory) -> Need {
        let share = |bytes: u64| bytes as f64 / claim.estimate_bytes.max(1) as f64;
        Need {
            bytes: claim.estimate_bytes,
            upper_bytes: claim.upper_bytes,
            source: ForecastSource::Predicted,
            least_bytes: claim.least_bytes,
            low: share(claim.low_bytes),
            high: share(claim.high_bytes),
        }
    }
}

/// A memory that members share, and what each of them needs; absent if unknown.
struct MemoryPlace {
    /// For messages.
    name: String,
    /// All members of the cell are in it.
    is_all: bool,
    /// A limit of one member, inside what it shares with others.
    is_limit: bool,
    there_bytes: Option<u64>,
    needs: Vec<Option<Need>>,
}

/// The whole device, or each GPU instance with members; and the limit of each member that has one.
fn places(seated: Seated<'_>, basis: &Basis<'_>) -> Vec<MemoryPlace> {
    let (Seated { cell, record, seating }, Basis { facts, prior, .. }) = (seated, *basis);
    let mut places: Vec<(Option<usize>, MemoryPlace)> = Vec::new();
    let mut limited: Vec<MemoryPlace> = Vec::new();
    let whole = match facts.kind {
        DeviceKind::Cpu => "this machine",
        DeviceKind::Gpu => "the GPU",
    };
    let workloads: Vec<_> = cell.members().collect();
    for (place, member) in record.members.iter().enumerate() {
        let instance = match seating.seats.get(place) {
            None | Some(Seat::Whole) => None,
            Some(Seat::Slice { instance, .. }) => Some(*instance),
        };
        let measured = prior.past.alone(member).and_then(PastCell::footprint_bytes);
        let measured = measured.map(|bytes| Need::exactly(bytes, ForecastSource::Measured));
        let predicted = prior.memory_of(record, member).map(Need::predicted);
        let told =
            || workloads.get(place).filter(|_| facts.kind == DeviceKind::Cpu).and_then(|m| forecast_of(m)?.cpu.memory_bytes);
        let need = match (measured, predicted) {
            (Some(measured), Some(predicted)) => {
                // One that needed less was predicted wrongly, and that refuses nothing.
                let least_bytes = if measured.bytes < predicted.least_bytes { 0 } else { predicted.least_bytes };
                Some(Need { least_bytes, ..measured })
            }
            (measured, predicted) => measured.or(predicted).or_else(|| Some(Need::exactly(told()?, ForecastSource::Workload))),
        };
        let found = match places.iter().position(|(other, _)| *other == instance) {
            Some(found) => found,
            None => {
                let slice = instance.and_then(|at| seating.partition.as_ref()?.instances.get(at));
                let (name, there_bytes) = match slice {
                    Some(slice) => (format!("an instance {}", slice.profile), profile_bytes(&slice.profile, facts)),
                    None => (whole.to_string(), facts.memory_bytes),
                };
                places.push((instance, MemoryPlace { name, is_all: false, is_limit: false, there_bytes, needs: Vec::new() }));
                places.len() - 1
            }
        };
        if let Some(limit_bytes) = seating.limits.get(place).and_then(|limits| limits.memory_bytes) {
            let name = "its limit under MPS".to_string();
            limited.push(MemoryPlace { name, is_all: false, is_limit: true, there_bytes: Some(limit_bytes), needs: vec![need] });
        }
        places[found].1.needs.push(need);
    }
    let mut places: Vec<MemoryPlace> = places.into_iter().map(|(_, place)| place).collect();
    for place in &mut places {
        place.is_all = place.needs.len() == record.members.len();
    }
    places.extend(limited);
    places
}

fn profile_bytes(name: &str, facts: &DeviceFacts) -> Option<u64> {
    let profile = facts.gpu()?.card.as_ref()?.profiles.iter().find(|profile| profile.name == name)?;
    profile.memory_gib.map(|gib| (gib * (1u64 << 30) as f64) as u64)
}

impl MemoryPlace {
    /// Of all members; absent if that of one is.
    fn all(&self, bytes: impl Fn(&Need) -> u64) -> Option<u64> {
        self.needs.iter().map(|need| need.as_ref().map(&bytes)).sum()
    }

    /// Of those that are known: the others need something too.
    fn known(&self, bytes: impl Fn(&Need) -> u64) -> u64 {
        self.needs.iter().flatten().map(bytes).sum()
    }

    fn fits(&self) -> Option<bool> {
        Some(self.all(|need| need.bytes)? <= self.there_bytes?)
    }

    /// Lower bounds of those that are predicted: the others need something too.
    fn least_bytes(&self) -> u64 {
        self.known(|need| need.least_bytes)
    }

    fn risk(&self) -> Option<OutOfMemoryRisk> {
        let there = self.there_bytes?;
        if self.known(|need| need.upper_bytes) <= there {
            return None;
        }
        let measured = self.known(|need| if need.source == ForecastSource::Predicted { 0 } else { need.bytes });
        let claimed = self.known(|need| if need.source == ForecastSource::Predicted { need.bytes } else { 0 });
        if claimed == 0 {
            return Some(OutOfMemoryRisk::Readings);
        }
        // Members of one cell err alike, as they are of few architectures: their errors do not cancel out.
        let low = self.needs.iter().flatten().map(|need| need.low).fold(1.0, f64::min);
        let high = self.needs.iter().flatten().map(|need| need.high).fold(1.0, f64::max);
        let estimate = claimed as f64;
        let interval = Interval { estimate, low: estimate * low, high: estimate * high };
        let left = there.saturating_sub(measured) as f64;
        Some(OutOfMemoryRisk::Predicted { probability: probability_above(interval, left) })
    }
}

impl OutOfMemoryRisk {
    fn larger(self, other: OutOfMemoryRisk) -> OutOfMemoryRisk {
        let weight = |risk: OutOfMemoryRisk| match risk {
            OutOfMemoryRisk::Readings => 2.0,
            OutOfMemoryRisk::Predicted { probability } => probability,
        };
        if weight(other) > weight(self) { other } else { self }
    }
}

/// The memory of all members together on a CPU, copies counted.
fn on_cpu(cell: &Cell) -> Option<u64> {
    let term = |t: &Term| Some(forecast_of(&t.member)?.cpu.memory_bytes?.saturating_mul(u64::from(t.count)));
    cell.terms().iter().map(term).sum()
}

/// On a GPU, the host memory that the members need; absent if unknown.
fn host_memory_bytes(cell: &Cell) -> Option<u64> {
    let term = |t: &Term| Some(forecast_of(&t.member)?.gpu.host_memory_bytes?.saturating_mul(u64::from(t.count)));
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

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
