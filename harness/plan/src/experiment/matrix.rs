//! The axes of an experiment, and those that step together.

use std::collections::BTreeMap;
use std::sync::Arc;

use collo_text::{Diagnostic, fields, quoted};
use serde_json::Value as Json;

use super::read::ExperimentReader;
use super::{Axes, Sharing};
use crate::workload::Workload;
use collo_text::fields::{Fields, Located, Value, sum};

impl ExperimentReader<'_> {
    /// The axes as written; [`ExperimentReader::complete`] adds what was left out.
    pub(super) fn matrix(&mut self, fields: &Fields) -> Axes {
        let nothing = Fields::default();
        let tables: Vec<&Fields> =
            std::iter::once(fields.table("axes").unwrap_or(&nothing)).chain(fields.tables("zip")).collect();
        let workloads: Vec<Vec<Arc<Workload>>> = tables.iter().map(|table| self.workload_axis(table)).collect();
        let all: Vec<&Arc<Workload>> = workloads.iter().flatten().collect();
        let mut read = tables.iter().zip(&workloads).enumerate().map(|(i, (table, own))| self.axes(table, own, &all, i > 0));
        let axes = read.next().unwrap_or_default();
        let zips: Vec<Axes> = read.collect();
        self.check_zips(fields, &tables);
        Axes { zips, ..axes }
    }

    fn workload_axis(&mut self, table: &Fields) -> Vec<Arc<Workload>> {
        table.list("workload").unwrap_or_default().iter().filter_map(|f| self.workload(f)).collect()
    }

    /// The axes of one table; the settings must be right for all workloads of the matrix, or, where workloads step together with
    /// them, for that of their step.
    fn axes(&mut self, table: &Fields, own: &[Arc<Workload>], all: &[&Arc<Workload>], zipped: bool) -> Axes {
        let wholes = |key: &str| -> Vec<u32> { table.list(key).unwrap_or_default().iter().filter_map(whole_u32).collect() };
        let mut settings = Vec::new();
        for (key, key_span, found) in table.in_order() {
            let Value::List(values) = &found.value else { continue };
            if ["workload", "sharing", "degree", "observe", "policy", "estimate"].contains(&key) {
                continue;
            }
            if let Some(unknown) = unknown_axis(key, all) {
                self.wrong(key_span, unknown);
                continue;
            }
            let mut plain = Vec::new();
            for (i, value) in values.iter().enumerate() {
                let step = zipped && own.len() == values.len();
                let of: Vec<&Arc<Workload>> = if step { vec![&own[i]] } else { all.to_vec() };
                let Some(json) = self.setting(key, value, &of) else { continue };
                if let Some(wrong) = of.iter().find_map(|w| w.wrong_value(key, &json)) {
                    self.wrong(&value.span, wrong);
                }
                plain.push(json);
            }
            if key != "batch_size" {
                settings.push((key.to_string(), plain));
            }
        }
        settings.sort_by(|a: &(String, Vec<Json>), b| a.0.cmp(&b.0));
        Axes {
            workload: own.to_vec(),
            batch_size: wholes("batch_size"),
            settings,
            sharing: self.sharing(table),
            degree: wholes("degree"),
            observe: self.observe(table),
            policy: self.policies(table),
            estimate: self.estimates(table),
            zips: Vec::new(),
        }
    }

    /// The value of a setting; a sum such as `"7 * 0.1"` is computed where a number is expected.
    pub(super) fn setting(&mut self, key: &str, found: &Located, of: &[&Arc<Workload>]) -> Option<Json> {
        let value = match &found.value {
            Value::Setting(value) => value,
            Value::Whole(n) => return Some((*n).into()),
            _ => return None,
        };
        let default = of.iter().find_map(|w| w.settings.get(key).filter(|default| default.is_number()));
        let Some((default, text, result)) = default.zip(value.as_str()).and_then(|(d, text)| Some((d, text, sum(text)?))) else {
            return Some(value.clone());
        };
        match result {
            Ok(result) => Some(result.like(default)),
            Err(mistake) => {
                self.mistakes.push(fields::placed(mistake, self.source, &found.span, text));
                None
            }
        }
    }

    /// Lists of a zip are of one length, and every axis is in one place.
    fn check_zips(&mut self, fields: &Fields, tables: &[&Fields]) {
        let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
        for (i, table) in tables.iter().enumerate() {
            let place = if i == 0 { "`[axes]`" } else { "another `[[zip]]`" };
            let mut first: Option<(&str, usize)> = None;
            for (key, key_span, found) in table.in_order() {
                if let Some(before) = seen.insert(key, place) {
                    let what = Diagnostic::new(format!("axis `{key}` is in {before}, too"));
                    self.wrong(key_span, what.note("leave one out"));
                }
                let (true, Value::List(values)) = (i > 0, &found.value) else { continue };
                if values.is_empty() {
                    self.wrong(&found.span, Diagnostic::new(format!("axis `{key}` is empty, so there is no cell")));
                }
                let (of, length) = *first.get_or_insert((key, values.len()));
                if length != values.len() {
                    let what = Diagnostic::new(format!("axis `{key}` has {}, and `{of}` has {length}", counted(values.len())));
                    self.wrong(&found.span, what.note("axes of a `[[zip]]` step together"));
                }
            }
            if i > 0 && table.in_order().is_empty() && self.mistakes.is_empty() {
                let header = table.span.start..table.span.start + 2;
                let what = Diagnostic::new("a zip has no axes");
                self.wrong(&header, what.note("as in `workload = [\"small\", \"large\"]` and `batch_size = [32, 8]`"));
            }
        }
        let degree = tables.iter().skip(1).find_map(|zip| zip.key_span("degree"));
        if let (Some(span), Some(_)) = (degree, fields.found("search")) {
            let what = Diagnostic::new("a search walks the axis `degree`, which cannot step with others");
            self.wrong(&span, what.note("move it to `[axes]`"));
        }
    }

    pub(super) fn complete(&mut self, mut axes: Axes, fields: &Fields, naive: Vec<Sharing>) -> Axes {
        let written = |key: &str| {
            let mut tables = fields.table("axes").into_iter().chain(fields.tables("zip"));
            tables.any(|table| table.key_span(key).is_some())
        };
        let spans_more = ["batch_size", "degree"].into_iter().any(&written);
        if fields.table("trace").is_none()
            && !written("workload")
            && self.mistakes.is_empty()
            && (fields.list("group").is_none_or(<[Located]>::is_empty) || spans_more)
        {
            let missing = Diagnostic::new(format!("axis `workload` is missing in {}, so there is no cell", self.source.name()));
            self.mistakes.push(missing.hint("add `[axes]` with `workload = [\"tiny\"]`, or a `[[group]]`"));
        }
        if axes.sharing.is_empty() && axes.zips.iter().all(|zip| zip.sharing.is_empty()) {
            axes.sharing = naive;
        }
        if axes.degree.is_empty() && axes.zips.iter().all(|zip| zip.degree.is_empty()) {
            axes.degree = vec![1];
        }
        axes
    }
}

/// An axis must be a setting of every workload of the matrix, else some cells would be the same under several names.
fn unknown_axis(key: &str, workloads: &[&Arc<Workload>]) -> Option<Diagnostic> {
    let lacking = workloads.iter().find(|w| !w.settings.contains_key(key))?;
    let axes = ["workload", "batch_size", "sharing", "degree", "observe"];
    let near = collo_text::nearest(key, axes).filter(|_| workloads.iter().all(|w| !w.settings.contains_key(key)));
    Some(match near {
        Some(near) if near != key => {
            Diagnostic::new(format!("unknown axis {}", quoted(key))).note(format!("did you mean `{near}`?"))
        }
        _ => lacking.unknown_setting(key),
    })
}

fn counted(values: usize) -> String {
    if values == 1 { "1 value".into() } else { format!("{values} values") }
}

fn whole_u32(found: &Located) -> Option<u32> {
    match found.value {
        Value::Whole(n) => u32::try_from(n).ok(),
        _ => None,
    }
}
