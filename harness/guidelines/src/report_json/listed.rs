//! What a list of reports has of each. In: a `report.json`. Out: its head, its answer and the validity of its cells; all else is passed
//! over without being kept, because a project may have thousands of reports.

use std::path::Path;

use serde::Deserialize;

use super::read::{LIMIT_BYTES, not_json, other_schema};
use super::{Device, Ordered};
use crate::{Error, Result};

/// A report in a list of reports.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ListedReport {
    schema: Option<serde_json::Value>,
    pub experiment: String,
    pub campaign: String,
    pub created_utc: String,
    pub measured_by: Option<String>,
    pub device: Device,
    pub synthetic: Vec<String>,
    pub indicative: Vec<String>,
    pub planned: usize,
    pub accounted: Ordered<usize>,
    /// Absent from reports of earlier versions.
    pub answer: Option<Vec<String>>,
    cells: Vec<ListedCell>,
    traces: Vec<ListedTrace>,
}

#[derive(Deserialize)]
struct Versioned {
    schema: Option<serde_json::Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ListedCell {
    validity: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ListedTrace {
    policies: Vec<ListedCell>,
}

impl ListedReport {
    /// A report file, as `collo report` writes it.
    pub fn read(path: &Path) -> Result<ListedReport> {
        let not = |reason: String| Error::NotAReport { what: path.display().to_string(), reason };
        let text = collo_text::read_small(path, LIMIT_BYTES)?;
        let read = serde_json::from_slice::<ListedReport>(&text).map_err(|e| {
            // The fields of another version may be others.
            let version = serde_json::from_slice::<Versioned>(&text).ok();
            not(version.and_then(|of| other_schema(of.schema.as_ref())).unwrap_or_else(|| not_json(&e)))
        })?;
        match other_schema(read.schema.as_ref()) {
            Some(reason) => Err(not(reason)),
            None if read.campaign.is_empty() => Err(not("it has no `campaign`".into())),
            None if read.device.name.is_empty() => Err(not("it has no device with a name".into())),
            None => Ok(read),
        }
    }

    /// The validity of each cell, and of each policy of its traces.
    pub fn validities(&self) -> impl Iterator<Item = &str> {
        self.cells.iter().chain(self.traces.iter().flat_map(|t| &t.policies)).map(|judged| judged.validity.as_str())
    }

    /// True if it has traces and no cells.
    pub fn has_only_traces(&self) -> bool {
        self.cells.is_empty() && !self.traces.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> std::result::Result<ListedReport, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.json");
        fs_err::write(&path, text).unwrap();
        ListedReport::read(&path).map_err(|e| e.to_string().replace(&folder.path().display().to_string(), ""))
    }

    #[test]
    fn a_report_of_another_version_and_a_damaged_one_are_refused_with_the_reason() {
        let why = |text: &str| read(text).unwrap_err();
        insta::assert_snapshot!(why("{\"schema\": 1}"), @"`/report.json` is not a collo report: it has schema 1, and this collo reads schema 2");
        insta::assert_snapshot!(why("{\"schema\": 2, \"cells\": ["), @"`/report.json` is not a collo report: it is truncated, EOF while parsing a list at line 1 column 24");
        insta::assert_snapshot!(why("{\"schema\": 2}"), @"`/report.json` is not a collo report: it has no `campaign`");
        insta::assert_snapshot!(why("{\"schema\": 2, \"campaign\": 7}"), @"`/report.json` is not a collo report: it has another content, invalid type: integer `7`, expected a string at line 1 column 27");
        insta::assert_snapshot!(why("[]"), @"`/report.json` is not a collo report: it has no `schema`");
    }

    #[test]
    fn validity_is_that_of_cells_and_of_policies() {
        let text = r#"{"schema": 2, "campaign": "c", "device": {"name": "d"}, "unknown": {"a": [1]},
            "cells": [{"validity": "valid", "more": 1}, {}], "traces": [{"policies": [{"validity": "indicative"}]}]}"#;
        let read = read(text).unwrap();
        assert_eq!(read.validities().collect::<Vec<_>>(), ["valid", "", "indicative"]);
        assert!(!read.has_only_traces() && read.answer.is_none());
    }
}
