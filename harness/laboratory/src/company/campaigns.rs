//! Groups of stored campaigns, by their data set. In: a table with a row for each member of each repetition. Out: of each cell one group, its members by the means
//! of its repetitions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use collo_predict::{Alone, CompanyMode, Conditions, MeasuredGroup, MeasuredMember, StandIn, TargetDevice};
use collo_store::Sharing;
use collo_text::{Diagnostics, Source};

use super::groups::{Groups, Measured};
use crate::lines::{self, Row};
use crate::table::family_of;

const COLUMNS: [&str; 30] = [
    "experiment",
    "campaign",
    "device",
    "device_kind",
    "device_cores",
    "device_quota_cores",
    "device_architecture",
    "driver",
    "torch",
    "simulated",
    "cell",
    "sharing",
    "degree",
    "repetition",
    "outcome",
    "validity",
    "member",
    "slice_sm_ratio",
    "workload",
    "family",
    "batch_size",
    "serving_rate_per_s",
    "solo_validity",
    "solo_memory_bytes",
    "solo_items_per_s",
    "solo_cpu_ratio",
    "solo_sm_active_ratio",
    "solo_dram_active_ratio",
    "solo_gpu_utilization_ratio",
    SLOWDOWN,
];
const SLOWDOWN: &str = "slowdown";

/// Whether a table is a data set as collo exports it.
pub fn is_dataset(columns: &BTreeSet<String>) -> bool {
    ["cell", "solo_cell", "outcome", "validity", SLOWDOWN].iter().all(|name| columns.contains(*name))
}

/// A member over the repetitions of its cell.
struct Member {
    alone: Alone,
    family: String,
    sm_share: Option<f64>,
    log_slowdowns: Vec<f64>,
}

struct Cell {
    label: String,
    degree: usize,
    mode: CompanyMode,
    simulated: bool,
    conditions: Conditions,
    members: BTreeMap<usize, Member>,
}

const NO_SOLO: &str = "has a member whose time alone was not measured";
const NOT_BUSY: &str =
    "has a member of which neither SMACT nor GPU utilisation was measured alone, on a CPU its share of the cores";
const OTHER_MODE: &str = "shares in a way that has no coefficients: limits, clients of MPS inside an instance";

pub fn read(source: &Arc<Source>, place: usize, groups: &mut Groups) -> Result<(), Diagnostics> {
    let mut cells: BTreeMap<String, Result<Cell, &'static str>> = BTreeMap::new();
    let needed = ["cell", "sharing", "degree", "member", SLOWDOWN];
    // It has a hundred columns for others.
    let ignored = |_| {};
    lines::read(
        source,
        |head| lines::places_with(source, head, &COLUMNS, &needed, ignored),
        |row| {
            let degree = row.number("degree")?.unwrap_or(1) as usize;
            let counts = row.get("outcome") == "completed" && !matches!(row.get("validity"), "discarded");
            if degree < 2 || !counts || !row.get("serving_rate_per_s").is_empty() {
                return Ok(());
            }
            let key = ["experiment", "campaign", "cell"].map(|column| row.get(column)).join(" ");
            let cell = cells.entry(key).or_insert_with(|| cell(row, degree));
            let member = cell.is_ok().then(|| member(row));
            match (&mut *cell, member) {
                (Ok(found), Some(Ok((index, member)))) => {
                    let known = found.members.entry(index).or_insert(Member { log_slowdowns: Vec::new(), ..member });
                    known.log_slowdowns.extend(member.log_slowdowns);
                }
                (Ok(_), Some(Err(why))) => *cell = Err(why),
                _ => {}
            }
            Ok(())
        },
    )?;
    for cell in cells.into_values() {
        match cell.and_then(Cell::group) {
            Ok(mut measured) => {
                measured.source = place;
                groups.all.push(measured);
            }
            Err(why) => *groups.left_out.entry(why).or_default() += 1,
        }
    }
    Ok(())
}

fn cell(row: &Row<'_>, degree: usize) -> Result<Cell, &'static str> {
    let given = |column: &str| Some(row.get(column)).filter(|text| !text.is_empty()).map(String::from);
    let is_cpu = row.get("device_kind") == "cpu";
    let mode = CompanyMode::of(&Sharing::of_label(row.get("sharing"))).ok_or(OTHER_MODE)?;
    Ok(Cell {
        label: row.get("cell").to_string(),
        degree,
        mode,
        simulated: row.get("simulated") == "true",
        conditions: Conditions {
            device: if is_cpu { TargetDevice::Cpu } else { TargetDevice::Gpu },
            gpu: given("device").filter(|_| !is_cpu),
            architecture: given("device_architecture"),
            driver: given("driver").filter(|_| !is_cpu),
            torch: given("torch"),
            sharing: Some(mode.to_string()),
            ..Conditions::default()
        },
        members: BTreeMap::new(),
    })
}

fn member(row: &Row<'_>) -> Result<(usize, Member), &'static str> {
    let number = |column: &str| row.get(column).parse::<f64>().ok().filter(|number| number.is_finite());
    let slowdown = number(SLOWDOWN).filter(|times| *times > 0.0).ok_or(NO_SOLO)?;
    let at_a_time = number("device_cores").map(|cores| number("device_quota_cores").unwrap_or(cores).min(cores));
    let on_cpu = number("solo_cpu_ratio").zip(at_a_time).map(|(cores, all)| (cores / all).min(1.0));
    let on_cpu_only = row.get("device_kind") == "cpu";
    let (compute, busy) = match on_cpu_only {
        true => (on_cpu, on_cpu),
        false => (number("solo_sm_active_ratio"), number("solo_gpu_utilization_ratio")),
    };
    // Cores that are busy are both.
    let stand_in = if on_cpu_only { Some(StandIn::Compute) } else { StandIn::of(compute, busy) };
    let (Some(compute), Some(busy)) = (compute.or(busy), busy.or(compute)) else { return Err(NOT_BUSY) };
    let alone = Alone {
        step_s: number("batch_size").zip(number("solo_items_per_s")).map(|(batch, rate)| batch / rate).filter(|s| s.is_finite()),
        compute,
        busy,
        stand_in,
        dram: number("solo_dram_active_ratio"),
        memory_bytes: number("solo_memory_bytes").filter(|bytes| *bytes > 0.0),
    };
    let index = row.get("member").parse().unwrap_or_default();
    let (family, _) = family_of(row, row.get("workload"));
    Ok((index, Member { alone, family, sm_share: number("slice_sm_ratio"), log_slowdowns: vec![slowdown.ln()] }))
}

impl Cell {
    fn group(self) -> Result<Measured, &'static str> {
        if self.members.len() != self.degree {
            return Err(NO_SOLO);
        }
        let mean = |logs: &[f64]| (logs.iter().sum::<f64>() / logs.len() as f64).exp();
        let members = self.members.into_values().map(|member| MeasuredMember {
            slowdown: mean(&member.log_slowdowns),
            alone: member.alone,
            family: member.family,
            sm_share: member.sm_share,
        });
        Ok(Measured {
            is_table: false,
            group: MeasuredGroup { label: self.label, members: members.collect() },
            mode: self.mode,
            simulated: self.simulated,
            conditions: self.conditions,
            source: 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_that_is_read_is_one_of_those_that_are_looked_for() {
        let text = include_str!("campaigns.rs");
        let calls = ["get(\"", "number(\"", "given(\""];
        let read = calls.iter().flat_map(|call| text.split(call).skip(1)).filter_map(|rest| rest.split('"').next());
        let read: BTreeSet<&str> = read.filter(|name| !name.is_empty()).collect();
        assert!(read.contains("device_quota_cores") && read.len() > 10, "{read:?}");
        let unlisted: Vec<&&str> = read.iter().filter(|name| !COLUMNS.contains(name)).collect();
        assert!(unlisted.is_empty(), "{unlisted:?}");
    }
}
