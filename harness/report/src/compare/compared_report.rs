//! One side of a comparison. In: a report from any source. Out: its campaign, device, environment and cells. Nothing here depends
//! on whether a campaign was just analysed or its `report.json` was copied from another machine.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use collo_guidelines::report_json::{AdviceJson, CellJson, Device, Ordered, Refusal, ReportJson, Thresholds, TraceJson};
use collo_store::last_part;
use serde_json::Value;

use crate::Result;

/// A report that is compared with another.
#[derive(Debug, Clone)]
pub struct ComparedReport {
    pub experiment: String,
    pub campaign: String,
    pub created_utc: String,
    /// Another program than collo, of whose data and Python nothing is known.
    pub measured_by: Option<String>,
    pub device: Device,
    pub environment: Ordered<String>,
    pub synthetic: Vec<String>,
    /// Remaining batches of an epoch, by workload: one count for each of its settings that differs.
    pub shortened: BTreeMap<String, BTreeSet<u64>>,
    pub indicative: Vec<String>,
    pub relevant_ratio: f64,
    pub cells: Vec<CellJson>,
    pub traces: Vec<TraceJson>,
    /// Cells that could not run there, with the reason.
    pub refusals: Vec<Refusal>,
    pub advice: Vec<AdviceJson>,
    /// The argument of `collo run` that adds repetitions to it: the last part of the id, or the experiment whose newest campaign
    /// it is.
    pub runs_as: String,
}

impl From<ReportJson> for ComparedReport {
    fn from(report: ReportJson) -> ComparedReport {
        let mut shortened = BTreeMap::<String, BTreeSet<u64>>::new();
        for s in report.shortened {
            shortened.entry(s.workload).or_default().insert(s.limit_batches);
        }
        let relevant_ratio = report.thresholds.relevant_ratio;
        ComparedReport {
            runs_as: last_part(&report.campaign).to_string(),
            experiment: report.experiment,
            campaign: report.campaign,
            created_utc: report.created_utc,
            measured_by: report.measured_by,
            device: report.device,
            environment: report.environment,
            synthetic: report.synthetic,
            shortened,
            indicative: report.indicative,
            relevant_ratio: if relevant_ratio > 0.0 { relevant_ratio } else { Thresholds::default().relevant_ratio },
            cells: report.cells,
            traces: report.traces,
            refusals: report.refusals,
            advice: report.guidelines,
        }
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

    /// `small-7way-mps 20261114-0200-11d8`.
    pub fn to_text(&self) -> String {
        format!("{} {}", self.experiment, self.campaign)
    }

    /// One text of its environment.
    pub fn fact(&self, name: &str) -> Option<&str> {
        self.environment.get(name).map(String::as_str)
    }
}
