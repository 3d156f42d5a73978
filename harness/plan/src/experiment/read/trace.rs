//! `[trace]`, `[manager]`, and the axes that only a trace has.

use std::path::Path;
use std::time::Duration;

use collo_schedule::trace::{Scale, Trace};
use collo_schedule::{Discipline, Recovery, policy};
use collo_text::{Diagnostic, quoted, units};

use super::{Axes, ExperimentReader, TracePlan, keys};
use crate::cell::{ManagerRules, Settle};
use crate::traces::{self, MemberCache};
use collo_text::fields::{Fields, Located, Value};

impl ExperimentReader<'_> {
    /// The labels of policies, as they are written in full.
    pub(in crate::experiment) fn policies(&mut self, table: &Fields) -> Vec<String> {
        let mut labels = Vec::new();
        for found in table.list("policy").unwrap_or_default() {
            match policy::parse(found.text().unwrap_or_default()) {
                Ok(policy) => labels.push(policy.label()),
                Err(wrong) => self.wrong(&found.span, wrong),
            }
        }
        labels
    }

    pub(in crate::experiment) fn estimates(&mut self, table: &Fields) -> Vec<String> {
        let all = table.list("estimate").unwrap_or_default();
        all.iter().filter_map(|found| found.text().map(str::to_string)).collect()
    }

    /// The trace of an experiment. What else would span a matrix is wrong beside it.
    pub(super) fn trace(&mut self, path: &Path, fields: &Fields, axes: &Axes) -> Option<TracePlan> {
        let Some(table) = fields.table("trace") else {
            self.only_with_a_trace(fields);
            return None;
        };
        let beside = ["group", "search", "until"].into_iter().find_map(|key| Some((key, fields.key_span(key)?)));
        if let Some((key, span)) = beside {
            let what = format!("`{key}` has no meaning beside `[trace]`, whose tasks arrive one after another");
            self.wrong(&span, Diagnostic::new(what).note("make two experiments of it"));
        }
        let tables = || fields.table("axes").into_iter().chain(fields.tables("zip"));
        let other = tables().flat_map(|table| table.in_order()).find(|(key, ..)| !TRACE_AXES.contains(key));
        if let Some((key, span, _)) = other {
            let what = Diagnostic::new(format!("axis `{key}` has no meaning beside `[trace]`: its tasks say what they train"));
            self.wrong(span, what.note(format!("axes of a trace are {}", TRACE_AXES.map(|axis| format!("`{axis}`")).join(", "))));
        }
        if axes.policy.is_empty() && axes.zips.iter().all(|zip| zip.policy.is_empty()) && self.mistakes.is_empty() {
            let what = Diagnostic::new("no policy says where tasks go, so there is no cell");
            self.mistakes.push(what.hint("add `policy = [\"exclusive\", \"magm:sm=80%,free=5GB\"]` to `[axes]`"));
        }
        let header = table.span.start..table.span.start + 1;
        let Some(name) = table.found("name") else {
            let what = Diagnostic::new("a trace without its name").note("as in `name = \"tiny-12\"`; all: `collo list traces`");
            self.wrong(&header, what);
            return None;
        };
        let table = table.or_defaults(&keys::TRACE);
        let scale = self.scale(table.found("scale")?)?;
        let manager = self.manager(fields.table("manager"), scale)?;
        let trace = self.named_trace(path, name)?;
        let seeds: Vec<u64> = table.get("orders");
        let mut orders = Vec::new();
        let mut members = MemberCache::new();
        for seed in seeds {
            match traces::tasks(&trace, seed, scale, self.workloads, &mut members) {
                Ok(tasks) => orders.push((seed, tasks)),
                Err(wrong) => {
                    wrong.iter().for_each(|mistake| self.wrong(&name.span, mistake.clone()));
                    return None;
                }
            }
        }
        let name = name.text().unwrap_or_default().to_string();
        Some(TracePlan { name, orders, scale, cards: table.get("cards"), manager })
    }

    fn only_with_a_trace(&mut self, fields: &Fields) {
        let tables = || fields.table("axes").into_iter().chain(fields.tables("zip"));
        let of_traces = tables().flat_map(|table| table.in_order()).find(|(key, ..)| ["policy", "estimate"].contains(key));
        let manager = fields.key_span("manager").map(|span| ("manager".to_string(), span));
        let first = of_traces.map(|(key, span, _)| (key.to_string(), span.clone())).or(manager);
        if let Some((key, span)) = first {
            let what = Diagnostic::new(format!("`{key}` is of traces, and this experiment has none"));
            self.wrong(&span, what.note("as in `[trace]` with `name = \"tiny-12\"`"));
        }
    }

    fn scale(&mut self, found: &Located) -> Option<u32> {
        match Scale::parse(found.text().unwrap_or_default()) {
            Ok(scale) => Some(scale.by()),
            Err(wrong) => {
                self.wrong(&found.span, wrong);
                None
            }
        }
    }

    fn manager(&mut self, table: Option<&Fields>, scale: u32) -> Option<ManagerRules> {
        let table = table.cloned().unwrap_or_default().or_defaults(&keys::MANAGER);
        let scaled = |duration: Duration| (duration.as_nanos() / u128::from(scale)) as u64;
        let (queue, recovery): (String, String) = (table.get("queue"), table.get("recovery"));
        for (key, wrong) in [("queue", Discipline::parse(&queue).err()), ("recovery", Recovery::parse(&recovery).err())] {
            if let (Some(found), Some(wrong)) = (table.found(key), wrong) {
                self.wrong(&found.span, wrong);
            }
        }
        let settle = self.settle(table.found("settle")?, scale)?;
        Some(ManagerRules {
            window_ns: scaled(table.get("window")).max(1),
            settle,
            queue,
            recovery,
            recovery_keeps: table.get("recovery_keeps"),
            attempts: table.get("attempts"),
            idle_first: table.get("idle_first"),
            decide_every_ns: table.get::<Option<Duration>>("decide").map(scaled),
        })
    }

    fn settle(&mut self, found: &Located, scale: u32) -> Option<Settle> {
        match &found.value {
            Value::Duration(after) => Some(Settle::After((after.as_nanos() / u128::from(scale)) as u64)),
            _ if found.text() == Some("ready") => Some(Settle::Ready),
            _ => {
                let what = Diagnostic::new(format!("invalid `settle` value {}", quoted(found.text().unwrap_or_default())));
                self.wrong(&found.span, what.note(format!("`ready`, or a duration; {}", units::DURATION_HELP)));
                None
            }
        }
    }

    fn named_trace(&mut self, path: &Path, found: &Located) -> Option<Trace> {
        let name = found.text()?;
        let folder = self.workloads.folder().parent().map(|root| root.join("traces")).unwrap_or_else(|| path.join("traces"));
        match traces::find(&folder, name) {
            Ok(trace) => Some(trace),
            Err(mistakes) => {
                // What is wrong in the trace's own file is shown there; an unknown name is wrong here.
                let own = traces::file(&folder, name).is_file();
                match own {
                    true => self.mistakes.extend(mistakes),
                    false => mistakes.iter().for_each(|mistake| self.wrong(&found.span, mistake.clone())),
                }
                None
            }
        }
    }
}

const TRACE_AXES: [&str; 3] = ["policy", "estimate", "sharing"];
