//! One side of a comparison. In: a report from any source. Out: its campaign, device, environment and cells. Nothing here depends
//! on whether a campaign was just analysed or its `report.json` was copied from another machine.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use collo_quantity::stats::Quantity;
use collo_store::last_part;

use crate::Result;
pub use crate::report_json::{AdviceJson, CellJson, MemberJson};
use crate::report_json::{Device, Ordered, Refusal, ReportJson, Thresholds, TraceJson};

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

impl CellJson {
    /// A quantity of the cell, or a mean of the GPU; `None` if not positive, as it has no logarithm.
    pub fn get(&self, name: &str) -> Option<Quantity> {
        let of = |all: &Ordered<Option<Quantity>>| comparable(all.get(name)?.as_ref()?);
        of(&self.quantities).or_else(|| of(&self.metrics))
    }

    /// A quantity of one member.
    pub fn of_member(&self, index: usize, name: &str) -> Option<Quantity> {
        comparable(self.members.get(index)?.quantities.get(name)?.as_ref()?)
    }

    /// The names of all numbers of the cell.
    pub fn names(&self) -> Vec<&str> {
        let all = self.quantities.iter().chain(self.metrics.iter());
        all.filter(|(_, q)| q.as_ref().and_then(comparable).is_some()).map(|(name, _)| name).collect()
    }

    /// True if one of its members serves.
    pub fn serves(&self) -> bool {
        self.members.iter().any(|m| m.serving.is_some())
    }

    /// The load of each of its serving members: rate, maximum batch, limit.
    pub fn served(&self) -> Vec<(f64, u64, Option<f64>)> {
        self.members.iter().filter_map(|m| m.serving.as_ref()).map(|s| (s.rate_per_s, s.batch_size, s.slo_s)).collect()
    }

    /// Why the cell is not valid.
    pub fn reasons(&self) -> String {
        self.reasons.join("; ")
    }

    /// True for a workload alone on the whole device.
    pub fn is_solo(&self) -> bool {
        matches!(&self.members[..], [only] if only.solo == self.label)
    }

    /// The workloads of its members, each with its batch size, in their order: `small b32`.
    pub fn workload(&self) -> String {
        let mut parts: Vec<(String, usize)> = Vec::new();
        for member in &self.members {
            let name = member.batch_size.map_or_else(|| member.workload.clone(), |b| format!("{} b{b}", member.workload));
            match parts.last_mut() {
                Some((last, n)) if *last == name => *n += 1,
                _ => parts.push((name, 1)),
            }
        }
        let uniform = parts.len() == 1;
        let said = parts.into_iter().map(|(name, n)| if n == 1 || uniform { name } else { format!("{n} {name}") });
        said.collect::<Vec<_>>().join(" + ")
    }
}

/// A quantity whose logarithm can be compared. An interval without degrees of freedom exists by definition.
fn comparable(q: &Quantity) -> Option<Quantity> {
    let positive = |x: Option<f64>| x.filter(|x| x.is_finite() && *x > 0.0);
    let estimate = positive(Some(q.estimate))?;
    let bounds = positive(q.low).zip(positive(q.high)).filter(|(low, high)| *low <= estimate && estimate <= *high);
    Some(Quantity { estimate, low: bounds.map(|b| b.0), high: bounds.map(|b| b.1), n: q.n, df: positive(q.df) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_cannot_be_are_none() {
        let q = |estimate: f64, low: f64, high: f64| {
            comparable(&Quantity { estimate, low: Some(low), high: Some(high), n: 3, df: Some(4.0) })
        };
        assert_eq!(q(2.0, 1.0, 3.0).unwrap().low, Some(1.0));
        assert_eq!(q(2.0, 3.0, 4.0).unwrap().low, None, "an interval that leaves its estimate out is none");
        assert!(q(-1.0, -2.0, 0.0).is_none() && q(f64::INFINITY, 1.0, 2.0).is_none());
    }
}
