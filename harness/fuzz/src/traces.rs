//! Traces, what they are imported from, and what happened in their runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use collo_plan::traces::{self, MemberCache};
use collo_schedule::trace::make::{Class, Log, Window, make};
use collo_schedule::trace::names::NameMap;
use collo_schedule::trace::{Trace, import};
use collo_schedule::{Happened, Rules, replay};
use collo_text::Source;
use serde_json::Value;

use crate::given::{parts, shown, text};
use crate::project::WORKLOADS;

/// Of a trace with more tasks no order is made.
const MOST_ORDERED: usize = 20_000;

fn ordered(source: &Arc<Source>) {
    let Some(trace) = shown(Trace::read(source)) else { return };
    if trace.tasks() > MOST_ORDERED {
        return;
    }
    for seed in [0, 1] {
        shown(traces::tasks(&trace, seed, 10, &WORKLOADS, &mut MemberCache::new()));
    }
    traces::wrong_tasks(&trace, &WORKLOADS).iter().for_each(|wrong| drop(wrong.to_string()));
}

pub fn trace(bytes: &[u8]) {
    text(bytes).iter().for_each(ordered);
}

/// What an import writes is read in turn.
fn imported(written: String) {
    ordered(&Source::file("imported", written));
}

pub fn table(bytes: &[u8]) {
    let written = text(bytes).and_then(|source| shown(import::table(&source, &mut NameMap::default())));
    written.into_iter().for_each(imported);
}

pub fn rad(bytes: &[u8]) {
    text(bytes).and_then(|source| shown(import::rad(&source)));
}

/// A script, then the task files that it submits, in its order.
pub fn script(bytes: &[u8]) {
    let parts = parts(bytes);
    let Some((source, files)) = parts.split_first().and_then(|(script, files)| Some((text(script)?, files))) else { return };
    let names: Vec<String> = import::submitted(&source).into_iter().map(String::from).collect();
    let mut known = BTreeMap::new();
    for (name, file) in names.iter().zip(files) {
        let rad = std::str::from_utf8(file).ok().and_then(|file| shown(import::rad(&Source::file(name.as_str(), file))));
        known.extend(rad.map(|rad| (name.rsplit('/').next().unwrap_or_default().to_string(), rad)));
    }
    shown(import::script(&source, &known, &mut NameMap::default())).into_iter().for_each(imported);
}

fn log(log: Log, bytes: &[u8]) {
    let Some(submissions_s) = text(bytes).and_then(|source| shown(log.submissions_s(&source))) else { return };
    let window = Window { from_s: 0, length_s: None, tasks: Some(100) };
    let classes = [Class { share: 3, one_of: vec!["tiny:b32 2e".into(), "square 1e".into()] }];
    shown(make(log, &submissions_s, window, &classes)).into_iter().for_each(imported);
}

pub fn philly(bytes: &[u8]) {
    log(Log::Philly, bytes);
}

pub fn helios(bytes: &[u8]) {
    log(Log::Helios, bytes);
}

/// The rules of a run of a trace, and behind them the events, as `verify` replays them.
pub fn happened(bytes: &[u8]) {
    let parts = parts(bytes);
    let [rules, events] = &parts[..] else { return };
    let Ok(rules) = serde_json::from_slice::<Rules>(rules) else { return };
    let Some(events) = text(events) else { return };
    let event = |line: &str| -> Option<(u64, Happened)> {
        let mut line: Value = serde_json::from_str(line).ok()?;
        Some((line["at_ns"].as_u64()?, serde_json::from_value(line["happened"].take()).ok()?))
    };
    let events: Option<Vec<(u64, Happened)>> = events.text().lines().map(event).collect();
    events.into_iter().for_each(|events| drop(shown(replay(&rules, events))));
}
