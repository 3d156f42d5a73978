//! One side of a comparison. In: a report as JSON, wherever it came from. Out: its campaign, device, environment and cells. Nothing
//! here knows whether a campaign was analysed a moment ago or its `report.json` was copied from another machine.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use super::conditions::Regime;
use crate::render::json::SCHEMA;
use crate::stats::Quantity;
use crate::{Error, Result};

/// A report that is held against another.
#[derive(Debug, Clone)]
pub struct Side {
    pub experiment: String,
    pub campaign: String,
    pub created_utc: String,
    pub device: Device,
    /// Names with texts, in the order of the report.
    pub environment: Vec<(String, String)>,
    pub synthetic: Vec<String>,
    /// Batches that were left of an epoch, by workload: one count for each of its settings that differs.
    pub shortened: BTreeMap<String, BTreeSet<u64>>,
    pub informative: Vec<String>,
    pub relevant_ratio: f64,
    pub cells: Vec<Cell>,
    /// Cells that could not run there, with the reason.
    pub refusals: Vec<(String, String)>,
    pub advice: Vec<Advice>,
    /// What `collo run` takes to add repetitions to it: the last part of the id, or the experiment whose newest campaign it is.
    pub runs_as: String,
}

/// The device of a side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    pub name: String,
    pub kind: String,
    pub simulated: bool,
    pub memory_bytes: Option<u64>,
}

/// A guideline with its verdict.
#[derive(Debug, Clone)]
pub struct Advice {
    pub id: String,
    pub statement: String,
    pub finding: String,
    /// `supported`, `contradicted`, `not_enough_evidence`.
    pub verdict: String,
}

/// A cell as its report has it.
#[derive(Debug, Clone)]
pub struct Cell {
    pub label: String,
    pub sharing: String,
    pub degree: u64,
    pub tail: String,
    pub slots: Option<String>,
    pub outcome: String,
    pub validity: String,
    /// Each member's workload with its batch size and settings.
    pub members: Vec<Member>,
    /// The cell as it stands in the report: quantities are read when somebody asks.
    value: Value,
}

/// One member of a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    pub workload: String,
    pub batch_size: Option<u64>,
    pub settings: BTreeMap<String, Value>,
    pub solo: String,
    /// What it told of the regime that it trained in; none where it told nothing.
    pub regime: Option<Regime>,
}

/// Much larger than the report of a hundred thousand cells.
const LIMIT_BYTES: u64 = 512 << 20;

impl Side {
    /// A report file, as `collo report` writes it.
    pub fn read(path: &Path) -> Result<Side> {
        let what = path.display().to_string();
        let text = collo_store::read_small(path, LIMIT_BYTES)?;
        let value = serde_json::from_slice(&text).map_err(|e| {
            let reason = if e.is_eof() { format!("it ends in the middle, {e}") } else { format!("it is not JSON, {e}") };
            Error::NotAReport { what: what.clone(), reason }
        })?;
        Side::of(value, &what)
    }

    /// A report that was just made, or read; `what` names it in errors.
    pub fn of(mut report: Value, what: &str) -> Result<Side> {
        let not = |reason: String| Error::NotAReport { what: what.into(), reason };
        if !report.is_object() {
            return Err(not("it is no JSON object".into()));
        }
        match report.get("schema") {
            None => return Err(not("it has no `schema`".into())),
            Some(found) if found.as_u64() != Some(u64::from(SCHEMA)) => {
                return Err(not(format!("it has schema {found}, this collo reads schema {SCHEMA}")));
            }
            Some(_) => {}
        }
        let Value::Array(cells) = report["cells"].take() else { return Err(not("it has no list `cells`".into())) };
        let cells = cells.into_iter().enumerate();
        let cells = cells.map(|(i, c)| Cell::of(c).map_err(|why| not(format!("cell {} {why}", i + 1)))).collect::<Result<_>>()?;
        let device = &report["device"];
        let name = text(&device["name"]).ok_or_else(|| not("it has no device with a name".into()))?;
        let campaign = text(&report["campaign"]).ok_or_else(|| not("it has no `campaign`".into()))?;
        let texts = |list: &Value| list.as_array().into_iter().flatten().filter_map(text).collect::<Vec<_>>();
        let refusals = report["refusals"].as_array().into_iter().flatten();
        let mut shortened = BTreeMap::<String, BTreeSet<u64>>::new();
        for s in report["shortened"].as_array().into_iter().flatten() {
            if let (Some(workload), Some(batches)) = (text(&s["workload"]), s["limit_batches"].as_u64()) {
                shortened.entry(workload).or_default().insert(batches);
            }
        }
        let advice = report["guidelines"].as_array().into_iter().flatten();
        let environment = report["environment"].as_object().into_iter().flatten();
        Ok(Side {
            experiment: text(&report["experiment"]).unwrap_or_default(),
            created_utc: text(&report["created_utc"]).unwrap_or_default(),
            device: Device {
                name,
                kind: text(&device["kind"]).unwrap_or_default(),
                simulated: device["simulated"].as_bool().unwrap_or(false),
                memory_bytes: device["memory_bytes"].as_u64(),
            },
            environment: environment.filter_map(|(name, value)| Some((name.clone(), text(value)?))).collect(),
            synthetic: texts(&report["synthetic"]),
            shortened,
            informative: texts(&report["informative"]),
            relevant_ratio: report["thresholds"]["relevant_ratio"].as_f64().filter(|r| *r > 0.0).unwrap_or(0.05),
            cells,
            refusals: refusals.filter_map(|r| Some((text(&r["cell"])?, text(&r["reason"])?))).collect(),
            advice: advice.filter_map(Advice::of).collect(),
            runs_as: campaign.rsplit('-').next().unwrap_or(&campaign).to_string(),
            campaign,
        })
    }

    /// Its device, which never comes without the word `simulated` where a model invented its numbers.
    pub fn device_said(&self) -> String {
        if self.device.simulated { format!("simulated {}", self.device.name) } else { self.device.name.clone() }
    }

    /// `small-7way-mps 20261114-0200-11d8`.
    pub fn said(&self) -> String {
        format!("{} {}", self.experiment, self.campaign)
    }

    /// One text of its environment.
    pub fn fact(&self, name: &str) -> Option<&str> {
        self.environment.iter().find(|(n, _)| n == name).map(|(_, text)| text.as_str())
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_string)
}

impl Advice {
    fn of(value: &Value) -> Option<Advice> {
        Some(Advice {
            id: text(&value["id"])?,
            statement: text(&value["statement"]).unwrap_or_default(),
            finding: text(&value["finding"]).unwrap_or_default(),
            verdict: text(&value["verdict"])?,
        })
    }
}

impl Cell {
    fn of(value: Value) -> std::result::Result<Cell, String> {
        let label = text(&value["cell"]).ok_or("has no label")?;
        let members = value["members"].as_array().into_iter().flatten().map(|m| Member {
            workload: text(&m["workload"]).unwrap_or_default(),
            batch_size: m["batch_size"].as_u64(),
            settings: m["settings"].as_object().into_iter().flatten().map(|(k, v)| (k.clone(), v.clone())).collect(),
            solo: text(&m["solo"]).unwrap_or_default(),
            regime: m["regime"].as_object().cloned(),
        });
        let word = |name: &str, otherwise: &str| text(&value[name]).unwrap_or_else(|| otherwise.into());
        Ok(Cell {
            sharing: word("sharing", ""),
            degree: value["degree"].as_u64().unwrap_or(1),
            tail: word("tail", "hold"),
            slots: text(&value["slots"]),
            outcome: word("outcome", "missing"),
            validity: word("validity", "void"),
            members: members.collect(),
            label,
            value,
        })
    }

    /// A quantity of the cell, or a mean of the card; one that is not positive has no logarithm and is none.
    pub fn get(&self, name: &str) -> Option<Quantity> {
        quantity(self.value.get(name).unwrap_or(&Value::Null)).or_else(|| quantity(self.value.get("metrics")?.get(name)?))
    }

    /// A quantity of one member.
    pub fn of_member(&self, index: usize, name: &str) -> Option<Quantity> {
        quantity(self.value.get("members")?.get(index)?.get(name)?)
    }

    /// The names of everything that the cell has a number for.
    pub fn names(&self) -> Vec<&str> {
        let (own, metrics) = (self.value.as_object(), self.value.get("metrics").and_then(Value::as_object));
        own.into_iter().chain(metrics).flatten().filter(|(_, v)| quantity(v).is_some()).map(|(k, _)| k.as_str()).collect()
    }

    /// A word that the report has about the cell, such as `memory_kind`.
    pub fn word(&self, name: &str) -> Option<&str> {
        self.value.get(name)?.as_str()
    }

    /// True where one of its members serves.
    pub fn serves(&self) -> bool {
        !self.served().is_empty()
    }

    /// How each of its members that serve is asked: rate, requests answered together, limit.
    pub fn served(&self) -> Vec<[Option<f64>; 3]> {
        let members = self.value["members"].as_array().into_iter().flatten();
        let asked = |s: &Value| ["rate_per_s", "batch_size", "slo_s"].map(|name| s[name].as_f64());
        members.filter_map(|m| m.get("serving").filter(|s| s.is_object()).map(asked)).collect()
    }

    /// Why the cell is not valid.
    pub fn reasons(&self) -> String {
        let reasons = self.value["reasons"].as_array().into_iter().flatten().filter_map(Value::as_str);
        reasons.collect::<Vec<_>>().join("; ")
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

/// A quantity as `report.json` has it. An interval without degrees of freedom is one that is there by definition.
fn quantity(value: &Value) -> Option<Quantity> {
    let object = value.as_object()?;
    let number = |name: &str| object.get(name).and_then(Value::as_f64).filter(|x| x.is_finite());
    let estimate = number("estimate").filter(|e| *e > 0.0)?;
    let positive = |name: &str| number(name).filter(|x| *x > 0.0);
    let bounds = positive("low").zip(positive("high")).filter(|(low, high)| *low <= estimate && estimate <= *high);
    Some(Quantity {
        estimate,
        low: bounds.map(|b| b.0),
        high: bounds.map(|b| b.1),
        n: object.get("repetitions").and_then(Value::as_u64).unwrap_or(1) as usize,
        df: number("df").filter(|df| *df > 0.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn why(report: Value) -> String {
        Side::of(report, "x.json").unwrap_err().to_string()
    }

    #[test]
    fn what_is_no_report_is_said_to_be_none() {
        insta::assert_snapshot!(why(json!([1])), @"`x.json` is not a report of collo: it is no JSON object");
        insta::assert_snapshot!(why(json!({})), @"`x.json` is not a report of collo: it has no `schema`");
        insta::assert_snapshot!(why(json!({ "schema": 7 })), @"`x.json` is not a report of collo: it has schema 7, this collo reads schema 1");
        insta::assert_snapshot!(why(json!({ "schema": 1 })), @"`x.json` is not a report of collo: it has no list `cells`");
        insta::assert_snapshot!(why(json!({ "schema": 1, "cells": [{}] })), @"`x.json` is not a report of collo: cell 1 has no label");
    }

    #[test]
    fn a_file_that_was_cut_short_or_has_a_nan_is_said_to_be_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.json");
        fs_err::write(&path, r#"{"schema": 1, "cells": [{"cell": "a", "#).unwrap();
        assert!(Side::read(&path).unwrap_err().to_string().contains("it ends in the middle"));
        fs_err::write(&path, r#"{"schema": 1, "cells": [{"cell": "a", "epoch_time_s": {"estimate": NaN}}]}"#).unwrap();
        assert!(Side::read(&path).unwrap_err().to_string().contains("it is not JSON, expected value at line 1"));
    }

    #[test]
    fn numbers_that_cannot_be_are_none() {
        let q =
            |low: f64, high: f64| quantity(&json!({ "estimate": 2.0, "low": low, "high": high, "repetitions": 3, "df": 4.0 }));
        assert_eq!(q(1.0, 3.0).unwrap().low, Some(1.0));
        assert_eq!(q(3.0, 4.0).unwrap().low, None, "an interval that leaves its estimate out is none");
        assert!(quantity(&json!({ "estimate": -1.0 })).is_none() && quantity(&json!(null)).is_none());
    }
}
