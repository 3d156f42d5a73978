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

use crate::Accepted;
use crate::given::{parts, shown, text};
use crate::project::WORKLOADS;

/// Of a trace with more tasks no order is made.
const MOST_ORDERED: usize = 20_000;

/// The workloads here that tasks with other names are.
const NAMES: [&str; 2] = ["a=tiny", "b=small"];

fn names() -> NameMap {
    NameMap::parse("--map", NAMES).unwrap_or_default()
}

/// The orders of a trace whose workloads are all here.
fn ordered(source: &Arc<Source>) -> Accepted {
    let trace = shown(Trace::read(source))?;
    if trace.tasks() > MOST_ORDERED {
        return None;
    }
    traces::wrong_tasks(&trace, &WORKLOADS).iter().for_each(|wrong| drop(wrong.to_string()));
    let order = |seed, scale| shown(traces::tasks(&trace, seed, scale, &WORKLOADS, &mut MemberCache::new())).map(drop);
    // Not every workload can train a part of an epoch.
    order(1, 10);
    order(0, 1)
}

pub fn trace(bytes: &[u8]) -> Accepted {
    ordered(&text(bytes)?)
}

/// What an import writes is read in turn.
fn imported(written: String) -> Accepted {
    ordered(&Source::file("imported", written))
}

pub fn table(bytes: &[u8]) -> Accepted {
    imported(shown(import::table(&text(bytes)?, &mut names()))?)
}

pub fn rad(bytes: &[u8]) -> Accepted {
    shown(import::rad(&text(bytes)?)).map(drop)
}

/// A script, then the task files that it submits, in the order in which it names them first.
pub fn script(bytes: &[u8]) -> Accepted {
    let parts = parts(bytes);
    let (script, files) = parts.split_first()?;
    let source = text(script)?;
    let mut paths = Vec::new();
    for path in import::submitted(&source) {
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    let mut known = BTreeMap::new();
    for (path, file) in paths.into_iter().zip(files) {
        let rad = std::str::from_utf8(file).ok().and_then(|file| shown(import::rad(&Source::file(path, file))));
        known.extend(rad.map(|rad| (path.to_string(), rad)));
    }
    imported(shown(import::script(&source, &known, &mut names()))?)
}

fn log(log: Log, bytes: &[u8]) -> Accepted {
    let submissions_s = shown(log.submissions_s(&text(bytes)?))?;
    let window = Window { from_s: 0, length_s: None, tasks: Some(100) };
    let classes = [Class { share: 3, one_of: vec!["tiny:b32 2e".into(), "square 1e".into()] }];
    imported(shown(make(log, &submissions_s, window, &classes))?)
}

pub fn philly(bytes: &[u8]) -> Accepted {
    log(Log::Philly, bytes)
}

pub fn helios(bytes: &[u8]) -> Accepted {
    log(Log::Helios, bytes)
}

/// The rules of a run of a trace, and behind them the events, as `verify` replays them.
pub fn happened(bytes: &[u8]) -> Accepted {
    let parts = parts(bytes);
    let [rules, events] = &parts[..] else { return None };
    let rules: Rules = serde_json::from_slice(rules).ok()?;
    let event = |line: &str| -> Option<(u64, Happened)> {
        let mut line: Value = serde_json::from_str(line).ok()?;
        Some((line["at_ns"].as_u64()?, serde_json::from_value(line["happened"].take()).ok()?))
    };
    let events: Option<Vec<(u64, Happened)>> = text(events)?.text().lines().map(event).collect();
    shown(replay(&rules, events?)).map(drop)
}
