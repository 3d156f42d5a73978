//! The fields that the simulated host engine has: number, tag, width, and value.
//!
//! In: an entity and what it did over a window. Out: a value as `dmon` prints it, or blank.

use super::Entity;
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

pub fn find(id: u32) -> Option<Field> {
    FIELDS.iter().copied().find(|f| f.id == id)
}

/// The value of a field for an entity, over the window between two totals of its card; none before there was a window.
pub fn value(sim: &Sim, field: Field, of: Entity, window: Option<(&Totals, &Totals)>, now: u64) -> Cell {
    let has = match of {
        Entity::Card(_) => true,
        Entity::Instance(..) => field.lowest != Level::Card,
        Entity::Compute(..) => field.lowest == Level::Compute,
    };
    if !has && field.id < PROFILED.start {
        return Cell::Absent;
    }
    if !has || sim.scenario.has("dcgm-blank") {
        return Cell::Blank;
    }
    if PROFILED.contains(&field.id) {
        let Some((before, after)) = window else { return Cell::Blank };
        return profiled(field, mean(of, before, after));
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

fn mean(of: Entity, before: &Totals, after: &Totals) -> Activity {
    let seconds = (after.at_ns.saturating_sub(before.at_ns) as f64 / 1e9).max(1e-3);
    let sum = |totals: &Totals| match of {
        Entity::Card(_) => totals.card,
        Entity::Instance(_, gi) | Entity::Compute(_, gi, _) => totals.instances.get(&gi).copied().unwrap_or_default(),
    };
    Activity::default().plus(sum(after).plus(sum(before), -1.0), 1.0 / seconds)
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
