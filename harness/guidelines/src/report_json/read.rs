//! Reads a `report.json` from any source: an invalid one is refused with the place of the error and what was expected there.

use std::path::Path;

use serde_json::Value;
use serde_json::error::Category;

use super::{ReportJson, SCHEMA};
use crate::{Error, Result};

/// Much larger than the report of a hundred thousand cells.
pub(super) const LIMIT_BYTES: u64 = 512 << 20;

impl ReportJson {
    /// A report file, as `collo report` writes it.
    pub fn read(path: &Path) -> Result<ReportJson> {
        let what = path.display().to_string();
        let text = collo_text::read_small(path, LIMIT_BYTES)?;
        let value = serde_json::from_slice(&text).map_err(|e| Error::NotAReport { what: what.clone(), reason: not_json(&e) })?;
        ReportJson::of(value, &what)
    }

    /// A report just made, or read; `what` names it in errors.
    pub fn of(report: Value, what: &str) -> Result<ReportJson> {
        let not = |reason: String| Error::NotAReport { what: what.into(), reason };
        if !report.is_object() {
            return Err(not("it is not a JSON object".into()));
        }
        // Before all else: the fields of another version may be others.
        if let Some(reason) = other_schema(report.get("schema")) {
            return Err(not(reason));
        }
        if !report["cells"].is_array() {
            return Err(not("it has no list `cells`".into()));
        }
        let guidelines = report["guidelines"].as_array().into_iter().flatten();
        if guidelines.into_iter().any(|guideline| guideline.get("holds").is_none()) {
            return Err(not("a guideline of it has no `holds`".into()));
        }
        let read: ReportJson =
            serde_path_to_error::deserialize(report).map_err(|e| not(format!("`{}`: {}", e.path(), e.inner())))?;
        match read.cells.iter().position(|cell| cell.label.is_empty()) {
            Some(i) => Err(not(format!("cell {} has no label", i + 1))),
            None if read.device.name.is_empty() => Err(not("it has no device with a name".into())),
            None if read.campaign.is_empty() => Err(not("it has no `campaign`".into())),
            None => Ok(read),
        }
    }
}

/// Why a text is not the JSON of a report.
pub(super) fn not_json(e: &serde_json::Error) -> String {
    match e.classify() {
        Category::Eof => format!("it is truncated, {e}"),
        Category::Data => format!("it has another content, {e}"),
        Category::Syntax | Category::Io => format!("it is not JSON, {e}"),
    }
}

/// Why a report with this schema is not read, if so.
pub(super) fn other_schema(schema: Option<&Value>) -> Option<String> {
    match schema {
        None => Some("it has no `schema`".into()),
        Some(found) if found.as_u64() == Some(SCHEMA.into()) => None,
        Some(found) => Some(format!("it has schema {found}, and this collo reads schema {SCHEMA}")),
    }
}

#[cfg(test)]
mod tests {
    use collo_store::AfterMeasured;
    use serde_json::json;

    use super::*;

    fn why(report: Value) -> String {
        ReportJson::of(report, "x.json").unwrap_err().to_string()
    }

    #[test]
    fn what_is_no_report_is_said_to_be_none() {
        insta::assert_snapshot!(why(json!([1])), @"`x.json` is not a collo report: it is not a JSON object");
        insta::assert_snapshot!(why(json!({})), @"`x.json` is not a collo report: it has no `schema`");
        insta::assert_snapshot!(why(json!({ "schema": 7 })), @"`x.json` is not a collo report: it has schema 7, and this collo reads schema 2");
        insta::assert_snapshot!(why(json!({ "schema": 2 })), @"`x.json` is not a collo report: it has no list `cells`");
        insta::assert_snapshot!(why(json!({ "schema": 2, "cells": [{}] })), @"`x.json` is not a collo report: cell 1 has no label");
    }

    #[test]
    fn what_has_another_type_is_named_with_its_place_and_what_was_expected() {
        let with = |cell: Value| {
            why(json!({ "schema": 2, "campaign": "c", "device": { "name": "d" }, "cells": [{ "cell": "a" }, cell] }))
        };
        insta::assert_snapshot!(with(json!({ "cell": "b", "degree": "two" })), @r#"`x.json` is not a collo report: `cells[1].degree`: invalid type: string "two", expected u64"#);
        insta::assert_snapshot!(with(json!({ "cell": "b", "members": [{ "workload": 1 }] })), @"`x.json` is not a collo report: `cells[1].members[0].workload`: invalid type: integer `1`, expected a string");
        insta::assert_snapshot!(with(json!({ "cell": "b", "epoch_time_s": "fast" })), @r#"`x.json` is not a collo report: `cells[1]`: epoch_time_s: invalid type: string "fast", expected a quantity"#);
        insta::assert_snapshot!(with(json!("b")), @r#"`x.json` is not a collo report: `cells[1]`: invalid type: string "b", expected a cell"#);
    }

    #[test]
    fn a_file_that_was_cut_short_or_has_a_nan_is_said_to_be_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.json");
        fs_err::write(&path, r#"{"schema": 2, "cells": [{"cell": "a", "#).unwrap();
        assert!(ReportJson::read(&path).unwrap_err().to_string().contains("it is truncated"));
        fs_err::write(&path, r#"{"schema": 2, "cells": [{"cell": "a", "epoch_time_s": {"estimate": NaN}}]}"#).unwrap();
        assert!(ReportJson::read(&path).unwrap_err().to_string().contains("it is not JSON, expected value at line 1"));
    }

    #[test]
    fn what_another_collo_wrote_is_read_as_far_as_it_goes() {
        let cell = json!({ "cell": "a", "after_measured": "exit", "verdict_of_tomorrow": "fine", "epoch_time_s": { "estimate": 2.0, "low": null, "high": null,
                           "repetitions": 1, "df": null }, "slowdown": null, "metrics": { "warmth": 3 } });
        let report =
            ReportJson::of(json!({ "schema": 2, "campaign": "c", "device": { "name": "d" }, "cells": [cell] }), "x").unwrap();
        let cell = &report.cells[0];
        assert_eq!(
            (cell.degree, cell.after_measured, cell.outcome.as_str(), cell.validity.as_str()),
            (1, AfterMeasured::Exit, "missing", "discarded")
        );
        let known: Vec<_> = cell.quantities.iter().map(|(name, q)| (name, q.as_ref().map(|q| q.estimate))).collect();
        assert_eq!(known, [("epoch_time_s", Some(2.0)), ("slowdown", None)]);
        assert!(cell.metrics.get("warmth").is_none(), "a bare number is no quantity");
        assert_eq!(report.thresholds.relevant_ratio, 0.05);
    }
}
