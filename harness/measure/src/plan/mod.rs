//! From cells and a device to an order of runs, and the reason for each cell that cannot run.
//!
//! In: cells, the facts of a device, the experiment's repetitions and seed. Out: the plan as it is stored, and a forecast. Pure: the
//! same input gives the same plan on every machine and in every year, and nothing is touched.
//!
//! Each repetition is one pass over all cells. On a CPU there is one device state, so a pass is one block: solo baselines open and
//! close it, so that drift inside it shows, and the cells between are shuffled by the recorded seed.

mod forecast;
mod shuffle;

use std::collections::HashSet;

use collo_store::{BlockEdge, CellRecord, DeviceRecord, PlanRecord, PlannedRun, RefusalRecord};
use serde_json::{Value as Json, json};

use crate::cell::Cell;
use crate::device::{DeviceFacts, DeviceKind};
use crate::expand::Expanded;
use crate::experiment::{Cores, Experiment};
use crate::sharing::Refusal;
use crate::units;
use crate::workload::Requirement;
use shuffle::Shuffle;

pub use forecast::{CellForecast, Forecast};

/// The cells that fit, their order, the refusals and the forecast.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    pub experiment: String,
    pub device: DeviceRecord,
    pub record: PlanRecord,
    /// What the members of each cell get, in the order of the record's cells.
    pub slots: Vec<String>,
    pub forecast: Forecast,
}

/// Plan the cells of an experiment on a device.
pub fn plan(experiment: &Experiment, cells: &[Expanded], facts: &DeviceFacts) -> Plan {
    let mut refusals = Vec::new();
    let mut fitting: Vec<(&Expanded, CellRecord)> = Vec::new();
    for expanded in cells {
        let cell = &expanded.cell;
        let repetitions = if cell.is_baseline() { 2 * experiment.repetitions } else { experiment.repetitions };
        let record = cell.record(repetitions);
        match refuse(cell, &record, experiment, facts) {
            Some(Refusal { reason, hint }) => {
                refusals.push(RefusalRecord { cell: record.cell, sharing: record.sharing, reason, hint })
            }
            None => fitting.push((expanded, record)),
        }
    }
    // A baseline that nobody asked for goes with the last cell that needed it.
    let needed: HashSet<String> = fitting.iter().flat_map(|(_, record)| record.against.clone()).collect();
    fitting.retain(|(expanded, record)| expanded.asked || needed.contains(&record.cell));
    distinct_slugs(&mut fitting);

    let order = order(&fitting, experiment);
    let forecasts: Vec<(CellForecast, u32)> = fitting
        .iter()
        .map(|(expanded, record)| {
            (forecast::cell(&expanded.cell, experiment, facts.cores.len(), record.repetitions), record.repetitions)
        })
        .collect();
    Plan {
        experiment: experiment.name.clone(),
        device: facts.record(),
        slots: fitting.iter().map(|(expanded, _)| slots(&expanded.cell, experiment)).collect(),
        forecast: Forecast::of(&forecasts, experiment.cooldown),
        record: PlanRecord {
            seed: experiment.seed,
            epochs: experiment.epochs,
            cells: fitting.into_iter().map(|(_, record)| record).collect(),
            order,
            refusals,
        },
    }
}

/// Why a cell cannot run here: a workload's needs, its mode, its memory, or its cores.
fn refuse(cell: &Cell, record: &CellRecord, experiment: &Experiment, facts: &DeviceFacts) -> Option<Refusal> {
    lacking(cell, facts)
        .or_else(|| cell.mode().refuse(facts, &record.members))
        .or_else(|| too_large(cell, facts))
        .or_else(|| too_wide(cell, experiment, facts))
}

/// What a workload requires and this device does not have.
fn lacking(cell: &Cell, facts: &DeviceFacts) -> Option<Refusal> {
    let needy = cell.terms().iter().map(|t| t.member.workload()).find(|w| match w.requires {
        Some(Requirement::Cuda) => facts.kind == DeviceKind::Cpu,
        None => false,
    })?;
    let reason = format!("`{}` needs an NVIDIA GPU with CUDA, this device is a CPU", needy.name);
    Some(Refusal { reason, hint: None })
}

fn too_large(cell: &Cell, facts: &DeviceFacts) -> Option<Refusal> {
    let (needed, there) = (forecast::memory_bytes(cell)?, facts.memory_bytes?);
    if needed <= there {
        return None;
    }
    let reason = format!("{} need about {}, this machine has {}", members(cell.degree()), units::gib(needed), units::gib(there));
    Some(Refusal { reason, hint: fewer(cell, there / (needed / u64::from(cell.degree())).max(1)) })
}

fn too_wide(cell: &Cell, experiment: &Experiment, facts: &DeviceFacts) -> Option<Refusal> {
    let threads = u64::from(experiment.threads);
    let (needed, there) = (u64::from(cell.degree()) * threads, facts.cores.len() as u64);
    if experiment.cores != Cores::Spread || needed <= there {
        return None;
    }
    let each = if threads == 1 { String::new() } else { format!(" of {threads} threads") };
    let reason = format!("{}{each} need {needed} cores of their own, this machine has {there}", members(cell.degree()));
    Some(Refusal { reason, hint: Some("`cores = \"shared\"` lets them share".into()) })
}

/// What the members of a cell get of a CPU, in words.
fn slots(cell: &Cell, experiment: &Experiment) -> String {
    match &experiment.cores {
        Cores::Shared if cell.degree() == 1 => "whole CPU".into(),
        Cores::Shared => "whole CPU, shared".into(),
        Cores::Spread => "cores of their own".into(),
        Cores::Listed(cores) => format!("cores {}", ranges(cores)),
    }
}

/// `0-3,8`, from ascending numbers.
fn ranges(cores: &[u32]) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for core in cores {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == *core => *last = *core,
            _ => parts.push((*core, *core)),
        }
    }
    let text = |(first, last): &(u32, u32)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    parts.iter().map(text).collect::<Vec<_>>().join(",")
}

fn members(degree: u32) -> String {
    if degree == 1 { "1 member".into() } else { format!("{degree} members") }
}

/// The largest degree that fits, where all members are alike and one fits at all.
fn fewer(cell: &Cell, fit: u64) -> Option<String> {
    (cell.terms().len() == 1 && fit > 0).then(|| format!("`degree` up to {fit} fits"))
}

/// Two cells never share a folder: where four digits of the hash are not enough, the later one has more.
fn distinct_slugs(cells: &mut [(&Expanded, CellRecord)]) {
    let mut taken = HashSet::new();
    for (expanded, record) in cells {
        for digits in (8..=64).step_by(4) {
            if taken.insert(record.slug.clone()) {
                break;
            }
            record.slug = expanded.cell.slug_of(digits);
        }
    }
}

fn order(cells: &[(&Expanded, CellRecord)], experiment: &Experiment) -> Vec<PlannedRun> {
    let (baselines, others): (Vec<usize>, Vec<usize>) = (0..cells.len()).partition(|cell| cells[*cell].1.baseline);
    let mut shuffle = Shuffle::seeded(experiment.seed);
    let mut done = vec![0u32; cells.len()];
    let mut order = Vec::new();
    for block in 1..=experiment.repetitions {
        let parts = [(&baselines, Some(BlockEdge::Opens)), (&others, None), (&baselines, Some(BlockEdge::Closes))];
        for (part, edge) in parts {
            let mut part = part.clone();
            shuffle.shuffle(&mut part);
            order.extend(part.into_iter().map(|cell| {
                done[cell] += 1;
                PlannedRun { block, cell, repetition: done[cell], edge }
            }));
        }
    }
    order
}

impl Plan {
    /// The schema of [`Plan::json`].
    pub const SCHEMA: u32 = 1;

    /// The plan as `collo plan --json` prints it.
    pub fn json(&self) -> Json {
        let record = &self.record;
        let order: Vec<Json> =
            record.order.iter().map(|run| json!([run.block, record.cells[run.cell].cell, run.repetition])).collect();
        json!({
            "schema": Plan::SCHEMA,
            "experiment": self.experiment,
            "cells": record.cells.iter().map(cell_json).collect::<Vec<Json>>(),
            "order": order,
            "refusals": record.refusals.iter().map(|r| json!({"cell": r.cell, "sharing": r.sharing, "reason": r.reason, "hint": r.hint})).collect::<Vec<Json>>(),
            "forecast_s": self.forecast.total_s,
        })
    }
}

fn cell_json(cell: &CellRecord) -> Json {
    let members: Vec<Json> = cell
        .members
        .iter()
        .map(|member| {
            let mut json = json!({"workload": member.workload, "batch_size": member.batch_size});
            for (name, value) in &member.settings {
                json[name] = value.clone();
            }
            json
        })
        .collect();
    json!({"cell": cell.cell, "sharing": cell.sharing, "degree": cell.degree, "members": members, "baseline": cell.baseline, "repetitions": cell.repetitions})
}

#[cfg(test)]
mod tests;
