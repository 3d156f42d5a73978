//! One side of a comparison. In: a report from any source. Out: its campaign, device, environment and cells. Nothing here depends
//! on whether a campaign was just analysed or its `report.json` was copied from another machine.

pub mod cards;
pub mod environment;
pub mod lines;
pub mod matching;
pub mod quantity;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::path::Path;

use collo_guidelines::report_json::ReportJson;
use collo_store::{Thresholds, last_part};
use serde::Serialize;
use serde_json::Value;

use crate::{Error, Result};

/// A report that is compared with another.
#[derive(Debug, Clone)]
pub struct ComparedReport {
    report: ReportJson,
    /// Remaining batches of an epoch, by workload: one count for each of its settings that differs.
    pub shortened: BTreeMap<String, BTreeSet<u64>>,
    /// The argument of `collo run` that adds repetitions to it: the last part of the id, or the experiment whose newest campaign
    /// it is.
    pub runs_as: String,
}

impl Deref for ComparedReport {
    type Target = ReportJson;

    fn deref(&self) -> &ReportJson {
        &self.report
    }
}

impl From<ReportJson> for ComparedReport {
    fn from(report: ReportJson) -> ComparedReport {
        let mut shortened = BTreeMap::<String, BTreeSet<u64>>::new();
        for s in &report.shortened {
            shortened.entry(s.workload.clone()).or_default().insert(s.limit_batches);
        }
        ComparedReport { runs_as: last_part(&report.campaign).to_string(), shortened, report }
    }
}

impl ComparedReport {
    /// A report file, as `collo report` writes it.
    pub fn read(path: &Path) -> Result<ComparedReport> {
        Ok(ReportJson::read(path)?.into())
    }

    /// A parsed report; `what` names it in errors.
    pub fn of(report: Value, what: &str) -> Result<ComparedReport> {
        Ok(ReportJson::of(report, what)?.into())
    }

    /// Its device, always with the word `simulated` if its numbers come from a model.
    pub fn device_said(&self) -> String {
        if self.device.simulated { format!("simulated {}", self.device.name) } else { self.device.name.clone() }
    }

    /// Its device without the name of the vendor, marked likewise.
    pub fn device_short(&self) -> String {
        let name = collo_gpus::without_vendor(&self.device.name);
        if self.device.simulated { format!("simulated {name}") } else { name.to_string() }
    }

    /// `small-7way-mps 20261114-0200-11d8`.
    pub fn to_text(&self) -> String {
        format!("{} {}", self.experiment, self.campaign)
    }

    /// A relative difference that is worth acting on.
    pub fn relevant_ratio(&self) -> f64 {
        let ratio = self.thresholds.relevant_ratio;
        if ratio > 0.0 { ratio } else { Thresholds::default().relevant_ratio }
    }

    /// One text of its environment.
    pub fn fact(&self, name: &str) -> Option<&str> {
        self.environment.get(name).map(String::as_str)
    }
}

/// A comparison's summary of a side.
#[derive(Debug, Clone, Serialize)]
pub struct Head {
    pub experiment: String,
    pub campaign: String,
    pub created_utc: String,
    /// Its device, with the word `simulated` if its numbers come from a model.
    pub device: String,
    pub device_short: String,
    pub simulated: bool,
}

impl Head {
    pub fn of(side: &ComparedReport) -> Head {
        Head {
            experiment: side.experiment.clone(),
            campaign: side.campaign.clone(),
            created_utc: side.created_utc.clone(),
            device: side.device_said(),
            device_short: side.device_short(),
            simulated: side.device.simulated,
        }
    }
}

/// The error of two sides without a common cell; it names the contents of each.
pub fn nothing_in_common(left: &ComparedReport, right: &ComparedReport) -> Error {
    let has = |side: &ComparedReport| {
        let some = side.cells.iter().find(|c| !c.is_solo()).or(side.cells.first());
        let device = if side.device.kind == "cpu" { "a CPU".to_string() } else { format!("a {}", side.device_said()) };
        match some {
            None => format!("no cell on {device}"),
            Some(cell) if side.cells.len() == 1 => format!("`{}` on {device}", cell.label),
            Some(cell) => format!("`{}` and {} more on {device}", cell.label, side.cells.len() - 1),
        }
    };
    let short = |side: &ComparedReport| last_part(&side.campaign).to_string();
    Error::NothingInCommon { left: short(left), right: short(right), left_has: has(left), right_has: has(right) }
}
