//! The fields that the simulated host engine has: number, tag, width, and value.
//!
//! In: an entity and what it did over a window. Out: a value as `dmon` prints it, or blank.

use super::Entity;
use super::version::Version;
use crate::history::Totals;
use crate::model::Activity;
use crate::sim::Sim;

/// A field of DCGM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    pub id: u32,
    pub tag: &'static str,
    pub unit: &'static str,
    pub width: usize,
    lowest: Level,
}

/// The lowest entity that has the field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Card,
    Instance,
    Compute,
}

const fn field(id: u32, tag: &'static str, unit: &'static str, width: usize, lowest: Level) -> Field {
    Field { id, tag, unit, width, lowest }
}

const FIELDS: &[Field] = &[
    field(54, "UUID#", "", 40, Level::Compute),
    field(65, "CMMOD", "", 5, Level::Card),
    field(67, "MGMOD", "", 5, Level::Card),
    field(100, "SMCLK", "", 5, Level::Card),
    field(101, "MMCLK", "", 5, Level::Card),
    field(112, "DVCCTR", "", 20, Level::Card),
    field(150, "TMPTR", "C", 5, Level::Card),
    field(155, "POWER", "W", 10, Level::Card),
    field(156, "TOTEC", "mJ", 16, Level::Card),
    field(157, "POWINST", "W", 10, Level::Card),
    field(200, "TXTPT", "KB/s", 7, Level::Card),
    field(201, "RXTPT", "KB/s", 7, Level::Card),
    field(203, "GPUTL", "", 10, Level::Card),
    field(204, "MCUTL", "", 10, Level::Card),
    field(250, "FBTTL", "", 10, Level::Compute),
    field(251, "FBFRE", "", 10, Level::Compute),
    field(252, "FBUSD", "", 10, Level::Compute),
    field(253, "FBRSV", "", 10, Level::Compute),
    field(1001, "GRACT", "", 5, Level::Compute),
    field(1002, "SMACT", "", 5, Level::Compute),
    field(1003, "SMOCC", "", 5, Level::Compute),
    field(1004, "TENSO", "", 5, Level::Compute),
    field(1005, "DRAMA", "", 5, Level::Instance),
    field(1006, "FP64A", "", 5, Level::Compute),
    field(1007, "FP32A", "", 5, Level::Compute),
    field(1008, "FP16A", "", 5, Level::Compute),
    field(1009, "PCITX", "", 20, Level::Card),
    field(1010, "PCIRX", "", 20, Level::Card),
    field(1011, "NVLTX", "", 20, Level::Card),
    field(1012, "NVLRX", "", 20, Level::Card),
];

/// The fields of the profiling module, which come as `N/A` where there is nothing; others do not come at all.
const PROFILED: std::ops::Range<u32> = 1001..1013;

/// What a cell holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    Text(String),
    /// `N/A`
    Blank,
    /// The entity does not have the field at all: its column stays empty.
    Absent,
}

/// How the host engine goes wrong in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    None,
    /// Everything of the profiling module reads 0 (DCGM #303, dcgm-exporter #662).
    Zero,
    /// SM activity is above 1 (DCGM #152).
    OverOne,
}

pub fn find(id: u32) -> Option<Field> {
    FIELDS.iter().copied().find(|f| f.id == id)
}

/// The value of a field for an entity, over the window between two totals of its card; nothing before there was a window.
pub fn value(sim: &Sim, field: Field, of: Entity, window: Option<(&Totals, &Totals)>, now: u64, fault: Fault) -> Cell {
    let has = match of {
        Entity::Card(_) => true,
        Entity::Instance(..) => field.lowest != Level::Card,
        Entity::Compute(..) => field.lowest == Level::Compute,
    };
    let is_profiled = PROFILED.contains(&field.id);
    if !has && !is_profiled {
        return Cell::Absent;
    }
    if is_profiled {
        return match window.filter(|_| has && !sim.scenario.has("dcgm-blank")) {
            None => nothing(sim, field),
            Some(_) if fault == Fault::Zero => zero(field),
            Some(_) if fault == Fault::OverOne && field.id == 1002 => Cell::Text("1.294".into()),
            Some((before, after)) => profiled(field, mean(sim, of, before, after)),
        };
    }
    if sim.scenario.has("dcgm-blank") {
        return Cell::Blank;
    }
    let memory_field = (250..=253).contains(&field.id);
    match of {
        Entity::Card(card) => of_card(sim, field, card, now),
        Entity::Instance(card, gi) | Entity::Compute(card, gi, _) if memory_field => memory(sim, field, card, Some(gi)),
        Entity::Compute(card, gi, ci) if field.id == 54 => {
            let uuid = sim.state().cards[card].compute().find(|(g, c)| (g.id, c.id) == (gi, ci)).map(|(_, c)| c.uuid.clone());
            uuid.map_or(Cell::Blank, Cell::Text)
        }
        _ => Cell::Blank,
    }
}

/// What is printed of a watched field without a sample.
fn nothing(sim: &Sim, field: Field) -> Cell {
    let says_zero = Version::of(&sim.scenario).is_ok_and(Version::says_zero_for_nothing);
    if says_zero { zero(field) } else { Cell::Blank }
}

fn zero(field: Field) -> Cell {
    Cell::Text(if field.id < 1009 { "0.000" } else { "0" }.into())
}

fn mean(sim: &Sim, of: Entity, before: &Totals, after: &Totals) -> Activity {
    let seconds = (after.at_ns.saturating_sub(before.at_ns) as f64 / 1e9).max(1e-3);
    let over = |sum: fn(&Totals, u32) -> Activity, gi| {
        Activity::default().plus(sum(after, gi).plus(sum(before, gi), -1.0), 1.0 / seconds)
    };
    let of_instance = |gi| over(|totals, gi| totals.instances.get(&gi).copied().unwrap_or_default(), gi);
    match of {
        Entity::Card(card) => {
            let whole = over(|totals, _| totals.card, 0);
            let slices = slices(sim, card);
            // The card's row is made of those of its instances.
            let sum = |kept: &dyn Fn(u32) -> f64| -> f64 {
                slices.iter().map(|(gi, n)| of_instance(*gi).sm * f64::from(*n) * kept(*n)).sum()
            };
            let (told, true_sum) = (sum(&|n| kept(sim, card, n)), sum(&|_| 1.0));
            scaled(whole, if true_sum > 0.0 { told / true_sum } else { 1.0 })
        }
        Entity::Instance(card, gi) | Entity::Compute(card, gi, _) => {
            let own = slices(sim, card).into_iter().find(|(id, _)| *id == gi).map_or(1, |(_, n)| n);
            scaled(of_instance(gi), kept(sim, card, own))
        }
    }
}

/// The compute slices of each GPU instance of a card.
fn slices(sim: &Sim, card: usize) -> Vec<(u32, u32)> {
    let of = |profile| sim.cards[card].profile(profile).map_or(1, |p| p.slices);
    sim.state().cards[card].instances.iter().map(|g| (g.id, of(g.profile))).collect()
}

/// What is told of the SM shares of an instance of so many slices. Before Hopper DCGM relates all instances of a card to the smallest of them:
/// a full 2g beside a 1g reads 0.5, a full 3g 0.33 (DCGM #138, #151, #248).
fn kept(sim: &Sim, card: usize, own: u32) -> f64 {
    let least = slices(sim, card).into_iter().map(|(_, n)| n).min().unwrap_or(own);
    if sim.cards[card].has_gpm() { 1.0 } else { f64::from(least) / f64::from(own.max(1)) }
}

/// The shares of SMs, by a factor.
fn scaled(a: Activity, by: f64) -> Activity {
    Activity { graphics: a.graphics * by, sm: a.sm * by, occupancy: a.occupancy * by, tensor: a.tensor * by, ..a }
}

fn profiled(field: Field, mean: Activity) -> Cell {
    let share = match field.id {
        1001 => mean.graphics,
        1002 => mean.sm,
        1003 => mean.occupancy,
        1004 => mean.tensor,
        1005 => mean.dram,
        1007 => 0.35 * mean.sm,
        1008 => 0.05 * mean.sm,
        1009 => return Cell::Text(format!("{}", mean.pcie_tx as u64)),
        1010 => return Cell::Text(format!("{}", mean.pcie_rx as u64)),
        1011 | 1012 => return Cell::Text("0".into()),
        _ => 0.0,
    };
    Cell::Text(format!("{share:.3}"))
}

fn memory(sim: &Sim, field: Field, card: usize, gi: Option<u32>) -> Cell {
    let Some([total, reserved, used, free]) = crate::nvml::memory_mib(sim, card, gi) else { return Cell::Blank };
    let mib = match field.id {
        250 => total,
        251 => free,
        252 => used,
        _ => reserved,
    };
    Cell::Text(mib.to_string())
}

fn of_card(sim: &Sim, field: Field, card: usize, now: u64) -> Cell {
    let state = &sim.state().cards[card];
    let seen = crate::nvml::Board::read(sim, card, now);
    let watts = |w: Option<f64>| w.map_or(Cell::Blank, |w| Cell::Text(format!("{w:.3}")));
    let whole = |n: Option<u64>| n.map_or(Cell::Blank, |n| Cell::Text(n.to_string()));
    let percent = |share: f64| if state.mig { Cell::Blank } else { Cell::Text(format!("{:.0}", 100.0 * share)) };
    match field.id {
        54 => Cell::Text(state.uuid.clone()),
        65 => whole(Some(u64::from(state.compute_mode))),
        67 => whole(Some(u64::from(state.mig))),
        100 => whole(Some(u64::from(seen.sm_mhz))),
        101 => whole(Some(u64::from(sim.cards[card].extra.memory_mhz))),
        112 => whole(Some(seen.throttle_reasons)),
        150 => whole(Some(u64::from(seen.celsius))),
        155 => watts(seen.average_w),
        156 => whole(seen.energy_mj),
        157 => watts(seen.power_w),
        203 => percent(seen.recent.graphics),
        204 => percent(seen.recent.dram),
        200 | 201 if state.mig => Cell::Blank,
        200 => whole(Some((seen.recent.pcie_tx / 1000.0) as u64)),
        201 => whole(Some((seen.recent.pcie_rx / 1000.0) as u64)),
        250..=253 => memory(sim, field, card, None),
        _ => Cell::Blank,
    }
}
