//! Why a quantity is absent. In: a cell with its quantities, and the baselines. Out: a reason for each missing one. It lowers no
//! verdict.

use std::collections::BTreeMap;

use collo_quantity::stats::Quantity;
use collo_quantity::{Key, Subject, Trait};
use collo_store::{Campaign, SAMPLING_OFF};

use super::Cell;
use super::quantities::Baselines;
use crate::reading::repetition::{NO_COMMON_TIME, Repetition};

/// How every reason begins for which there is nothing to be compared with.
const NO_BASELINE: &str = "no baseline: ";

/// Why a solo cell has no numbers, by its label: those that were refused, are not planned, or did not complete.
pub type Lacking = BTreeMap<String, String>;

/// Those of the solo cells that these cells are compared with.
pub fn lacking(cells: &[Cell], campaign: &Campaign) -> Lacking {
    let solos: BTreeMap<&str, &Cell> = cells.iter().filter(|c| c.is_solo()).map(|c| (c.name(), c)).collect();
    let refused = |solo: &str| campaign.plan.refusals.iter().find(|r| r.cell == solo);
    let why = |solo: &str| match (solos.get(solo), refused(solo)) {
        (Some(cell), _) if !cell.counted.is_empty() => None,
        (Some(cell), _) if cell.repetitions.is_empty() => Some(format!("{NO_BASELINE}`{}` has not run", cell.name())),
        (Some(cell), _) => {
            let word = crate::words::outcome(cell.outcome());
            let how = if cell.outcome() == "completed" { cell.validity.reasons.join("; ") } else { word };
            Some(format!("{NO_BASELINE}`{solo}` has no usable run: {how}"))
        }
        (None, Some(refusal)) => Some(format!("{NO_BASELINE}`{solo}` was refused here: {}", refusal.reason)),
        (None, None) => Some(format!("{NO_BASELINE}`{solo}` is not in the plan")),
    };
    let members = cells.iter().flat_map(|c| &c.record.members);
    members.filter_map(|m| Some((m.solo.clone(), why(&m.solo)?))).collect()
}

fn why_lacking(solo: &str, lacking: &Lacking) -> String {
    lacking.get(solo).cloned().unwrap_or_else(|| format!("{NO_BASELINE}`{solo}` has no usable run where it was measured"))
}

/// The first member's solo cell that has no usable run where the cell was measured.
fn unmeasured<'a>(cell: &'a Cell, baselines: &Baselines) -> Option<&'a str> {
    cell.record.members.iter().map(|m| m.solo.as_str()).find(|s| !baselines.is_measured(cell.repetitions.iter(), s))
}

/// Why a cell with usable runs has nothing to be compared with.
pub fn no_baseline(cell: &Cell, baselines: &Baselines, lacking: &Lacking) -> Option<String> {
    let solo = unmeasured(cell, baselines).filter(|_| !cell.counted.is_empty())?;
    Some(why_lacking(solo, lacking))
}

/// Why a cell that was read from a report has nothing to be compared with, by the reasons in the file.
pub fn reported_no_baseline(cell: &Cell) -> Option<String> {
    let mut reasons = Key::with(Trait::NeedsBaseline).filter_map(|key| cell.absent.get(&key));
    let found = reasons.find(|why| why.starts_with(NO_BASELINE))?;
    (cell.counts() && !cell.is_solo()).then(|| found.clone())
}

/// Why each missing quantity of a cell is absent, whose runs were measured for a time or for an amount of work. Reasons derived from
/// a definition's traits come first, its own reason last.
pub fn of_cell(cell: &Cell, baselines: &Baselines, lacking: &Lacking, for_a_time: bool) -> BTreeMap<Key, String> {
    let unmeasured = unmeasured(cell, baselines);
    let requests = of_servers(cell, baselines, lacking);
    let why = |key: Key| match (key, unmeasured) {
        _ if cell.counted.is_empty() => cell.validity.reasons.first().cloned().unwrap_or_else(|| "no run".into()),
        _ if key.subject == Subject::Requests => requests.get(&key).cloned().unwrap_or_default(),
        _ if cell.serves() && key.has(Trait::PerEpoch) => "a member serves".into(),
        (_, Some(solo)) if key.has(Trait::NeedsBaseline) => why_lacking(solo, lacking),
        _ if key.has(Trait::Company) && cell.record.members.len() < 2 => "it has a single member".into(),
        _ if key.has(Trait::Uniform) && !cell.record.is_uniform() => "its members train different workloads".into(),
        (key, _) if key.has(Trait::Sampled) && cell.counted().all(|r| !r.record().is_sampled()) => SAMPLING_OFF.into(),
        (Key::EnergyPerEpoch | Key::Cpu, _) if cell.counted().all(|r| r.measured.is_none()) => NO_COMMON_TIME.into(),
        (Key::Makespan, _) if for_a_time => "runs are measured for a time, not for an amount of work".into(),
        (Key::EnergyPerEpochAboveIdle, _) if cell.get(Key::EnergyPerEpoch).is_some() => {
            match cell.counted().any(|r| r.idle_w.is_some()) {
                true => "the power of a run was not above the GPU's idle power".into(),
                false => "the GPU's idle power was not read".into(),
            }
        }
        (Key::SlowdownOnSlice, _) if cell.record.alone_on_slice.is_empty() => "its members do not run on slices".into(),
        (Key::MemoryOfSolo, _) if cell.get(Key::Memory).is_some() => {
            match cell.record.members.iter().find(|m| !baselines.knows(cell.counted(), &m.solo, Key::Memory)) {
                Some(m) => format!("the memory of its baseline `{}` was not read", m.solo),
                None => "its baseline's memory was read differently".into(),
            }
        }
        (Key::EnergyPerEpoch | Key::EnergyPerItem | Key::EnergyPerEpochAboveIdle | Key::EnergyOfSolo, _) => {
            cell.counted().find_map(|r| r.no_energy).unwrap_or(key.absent).into()
        }
        _ => key.absent.into(),
    };
    let mut found: BTreeMap<Key, String> =
        Key::with(Trait::Cell).filter(|&key| cell.get(key).is_none()).map(|key| (key, why(key))).collect();
    if cell.metric(Key::SmActive).is_none() {
        // Of several reasons the first is told, as of other quantities.
        found.extend(cell.counted().find_map(|r| r.trust.why_absent.clone()).map(|why| (Key::SmActive, why)));
    }
    found
}

/// Why a member lacks what was read of its process, if all members share one; empty otherwise.
pub fn of_thread(cell: &Cell) -> BTreeMap<Key, String> {
    if !cell.record.mode.one_process {
        return BTreeMap::new();
    }
    let of_process = [Key::Memory, Key::Cpu, Key::ReadRate, Key::InvoluntarySwitches];
    let told_of_group = |key: Key| key.has(Trait::Cell);
    let why = |key: Key| match told_of_group(key) {
        true => format!("its members are threads of one process, which has the {} of the group", key.label),
        false => "its members are threads of one process".into(),
    };
    of_process.into_iter().map(|key| (key, why(key))).collect()
}

/// Why a member that trains lacks an epoch time or a slowdown.
pub fn of_epochs(
    cell: &Cell,
    member: usize,
    solo: &str,
    known: &BTreeMap<Key, Quantity>,
    baselines: &Baselines,
) -> BTreeMap<Key, String> {
    let serves = cell.repetitions.iter().any(|r| r.record().members.get(member).is_some_and(|m| m.serving.is_some()));
    let why = |key: Key| match key {
        _ if cell.counted.is_empty() => cell.validity.reasons.first().cloned().unwrap_or_else(|| "no run".into()),
        _ if serves => "it serves".into(),
        _ if !known.contains_key(&Key::EpochTime) => "none of its epochs had all members training".into(),
        _ if !baselines.is_measured(cell.repetitions.iter(), solo) => format!("its baseline `{solo}` has no usable run"),
        _ => format!("its baseline `{solo}` has no epoch time"),
    };
    [Key::EpochTime, Key::Slowdown].into_iter().filter(|key| !known.contains_key(key)).map(|key| (key, why(key))).collect()
}

/// Why a cell lacks quantities of requests.
fn of_servers(cell: &Cell, baselines: &Baselines, lacking: &Lacking) -> BTreeMap<Key, String> {
    let all = |why: &str| Key::of_requests().map(|key| (key, why.to_string())).collect();
    let mut solos: Vec<&str> = cell.members.iter().filter(|m| m.serving.is_some()).map(|m| m.spec.solo.as_str()).collect();
    solos.dedup();
    match solos[..] {
        [] => all(NOBODY_SERVES),
        [solo] => of_requests(cell, None, solo, &cell.quantities, baselines, lacking),
        _ => all("its members serve different workloads: see each member"),
    }
}

/// The reason for all quantities of requests, if there are none.
pub const NOBODY_SERVES: &str = "no member serves";

/// Why quantities of requests are absent: of one member, or of all that serve.
pub fn of_requests(
    cell: &Cell,
    member: Option<usize>,
    solo: &str,
    known: &BTreeMap<Key, Quantity>,
    baselines: &Baselines,
    lacking: &Lacking,
) -> BTreeMap<Key, String> {
    let of = |r: &Repetition| match member {
        Some(i) => r.members.get(i).and_then(|m| m.latency.clone()),
        None => r.latency.clone(),
    };
    let why = |key: Key| {
        // Without a p99 there is no ratio of it, for the same reason.
        let asked = if key == Key::LatencyP99OfSolo { Key::LatencyP99 } else { key };
        let told = cell.counted().find_map(|r| of(r)?.why_absent(asked));
        match key {
            _ if cell.counted.is_empty() => "no usable run".into(),
            Key::LatencyP99OfSolo
                if known.contains_key(&Key::LatencyP99) && !baselines.is_measured(cell.repetitions.iter(), solo) =>
            {
                why_lacking(solo, lacking)
            }
            Key::LatencyP99OfSolo if known.contains_key(&Key::LatencyP99) => format!("its baseline `{solo}` has no p99"),
            _ => told.unwrap_or_else(|| "its requests cannot be read".into()),
        }
    };
    Key::of_requests().filter(|key| !known.contains_key(key)).map(|key| (key, why(key))).collect()
}
