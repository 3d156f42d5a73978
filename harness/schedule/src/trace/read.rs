//! `traces/NAME.toml`: its keys, and what they must be together.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use collo_text::fields::{self, Fields, Key, Located, Shape, Value, ValueKind};
use collo_text::{Diagnostic, Diagnostics, Source};

use super::arrivals::{Process, mean_gap_s};
use super::{Drawn, MOST_TASKS, Trace, What, short};

const HELP: &str = "collo schema trace";

const fn key(name: &'static str, kind: ValueKind, default: Option<&'static str>, about: &'static str) -> Key {
    Key { name, kind, default, about, former: None }
}

const SETTINGS: Shape = Shape { help: HELP, keys: &[], others: Some(&ValueKind::Setting) };

const PROCESS: Shape = Shape {
    help: HELP,
    keys: &[
        key("poisson", ValueKind::Text, None, "by chance, so many on average: `20/h`"),
        key("burst", ValueKind::Whole { from: 1, to: MOST_TASKS as u64 }, None, "so many at once"),
        key("every", ValueKind::Duration, None, "one after each of these intervals"),
        key("count", ValueKind::Whole { from: 1, to: u64::MAX }, Some("as many as there are tasks"), "how many arrive"),
        key("seed", ValueKind::Whole { from: 0, to: u64::MAX }, Some("1"), "of the gaps that chance draws"),
    ],
    others: None,
};

const DRAWN: Shape = Shape {
    help: HELP,
    keys: &[
        key("count", ValueKind::Whole { from: 1, to: u64::MAX }, None, "how many are drawn"),
        key("one_of", ValueKind::List(&ValueKind::Text), None, "from these, each as likely: `resnet50:b64 3e 2c`"),
        key("settings", ValueKind::Table(&SETTINGS), None, "further settings of all of them"),
    ],
    others: None,
};

const LISTED: Shape = Shape {
    help: HELP,
    keys: &[
        key("at", ValueKind::Duration, Some("the next of the arrivals"), "when it arrives"),
        key("workload", ValueKind::Text, None, "a workload of the project"),
        key("batch_size", ValueKind::Whole { from: 1, to: u32::MAX as u64 }, Some("the workload's own"), "its batch size"),
        key("epochs", ValueKind::Whole { from: 1, to: u32::MAX as u64 }, Some("1"), "how many epochs it trains"),
        key("cards", ValueKind::Whole { from: 0, to: u32::MAX as u64 }, Some("1"), "on how many cards of one node"),
        key("settings", ValueKind::Table(&SETTINGS), None, "its further settings"),
    ],
    others: None,
};

/// The keys of a trace.
pub const TRACE: Shape = Shape {
    help: HELP,
    keys: &[
        key("description", ValueKind::Text, None, "what it is, in a sentence"),
        key("source", ValueKind::Text, None, "where its arrivals and its tasks come from, with the licence"),
        key("arrivals_s", ValueKind::List(&ValueKind::Number { from: 0.0, to: 1e9 }), None, "when tasks arrive, in seconds"),
        key("arrivals", ValueKind::Table(&PROCESS), None, "the process by which they arrive"),
        key("tasks", ValueKind::Tables(&DRAWN), None, "tasks that are drawn, a class each"),
        key("task", ValueKind::Tables(&LISTED), None, "a task"),
    ],
    others: None,
};

struct Reader<'a> {
    source: &'a Arc<Source>,
    wrong: Diagnostics,
}

pub(super) fn read(source: &Arc<Source>) -> Result<Trace, Diagnostics> {
    let (fields, wrong) = fields::read(source, &TRACE);
    let mut reader = Reader { source, wrong };
    let drawn: Vec<Drawn> = fields.tables("tasks").filter_map(|table| reader.drawn(table)).collect();
    let listed: Vec<(What, Option<u64>)> = fields.tables("task").filter_map(|table| reader.listed(table)).collect();
    let count = drawn.iter().map(|class| class.count).fold(listed.len(), usize::saturating_add);
    if count > MOST_TASKS {
        let hint = "leave out what is not to be played: a window of it";
        reader.wrong(format!("{count} tasks are more than the {MOST_TASKS} that a trace can have"), 0..0, hint);
        return Err(reader.wrong);
    }
    if count == 0 && reader.wrong.is_empty() {
        reader.wrong("a trace without tasks".into(), 0..0, "list one with `[[task]]`, or draw some with `[[tasks]]`");
    }
    let own: Vec<u64> = listed.iter().filter_map(|(_, at_ns)| *at_ns).collect();
    let mut arrivals_ns = reader.arrivals(&fields, count - own.len());
    arrivals_ns.extend(own);
    arrivals_ns.sort_unstable();
    let description = fields.text("description").unwrap_or_default().to_string();
    let source = fields.text("source").map(str::to_string);
    reader.wrong.into_result(Trace { description, source, arrivals_ns, listed, drawn })
}

impl Reader<'_> {
    fn wrong(&mut self, what: String, span: Range<usize>, note: &str) {
        self.wrong.push(Diagnostic::new(what).at(self.source, span).note(note));
    }

    /// The arrivals of the tasks that have none of their own.
    fn arrivals(&mut self, fields: &Fields, wanted: usize) -> Vec<u64> {
        let (given, process) = (fields.found("arrivals_s"), fields.table("arrivals"));
        if let (Some(_), Some(process)) = (given, process) {
            self.wrong("arrivals are given twice".into(), process.span.clone(), "leave `arrivals_s` or `arrivals` out");
            return Vec::new();
        }
        let (arrivals_ns, span) = match (given, process) {
            (Some(given), _) => (self.given(given), given.span.clone()),
            (_, Some(process)) => {
                let Some(arrivals_ns) = self.made(process, wanted) else { return Vec::new() };
                (arrivals_ns, process.span.clone())
            }
            (None, None) => (Vec::new(), 0..0),
        };
        if arrivals_ns.len() != wanted && self.wrong.is_empty() {
            let tasks = if wanted == 1 { "1 task".into() } else { format!("{wanted} tasks") };
            let what = match arrivals_ns.len() {
                0 => format!("{tasks} without a time to arrive"),
                1 => format!("1 arrival for {tasks} without a time of their own"),
                n => format!("{n} arrivals for {tasks} without a time of their own"),
            };
            let note = "give as many as there are tasks, or each task an `at`";
            self.wrong(what, span, note);
        }
        arrivals_ns
    }

    fn given(&mut self, given: &Located) -> Vec<u64> {
        let Value::List(all) = &given.value else { return Vec::new() };
        let mut last_s = 0.0;
        for one in all {
            let Value::Number(at_s) = one.value else { continue };
            if at_s < last_s {
                let what = format!("an arrival at {at_s} s follows one at {last_s} s");
                self.wrong(what, one.span.clone(), "write them in the order of their times");
                break;
            }
            last_s = at_s;
        }
        all.iter()
            .filter_map(|one| if let Value::Number(at_s) = one.value { Some((at_s * 1e9).round() as u64) } else { None })
            .collect()
    }

    fn made(&mut self, process: &Fields, wanted: usize) -> Option<Vec<u64>> {
        let kinds = ["poisson", "burst", "every"].into_iter().filter(|kind| process.found(kind).is_some()).collect::<Vec<_>>();
        let &[kind] = kinds.as_slice() else {
            let what = if kinds.is_empty() { "arrivals without a process" } else { "arrivals by more than one process" };
            self.wrong(what.into(), process.span.clone(), "one of `poisson`, `burst` or `every`");
            return None;
        };
        let count = match (kind, process.whole("count")) {
            ("burst", Some(_)) => {
                let span = process.key_span("count").unwrap_or_default();
                self.wrong("a burst says itself how many it has".into(), span, "leave `count` out");
                return None;
            }
            ("burst", None) => process.whole("burst"),
            (_, count) => count,
        };
        let count = count.map_or(Some(wanted), |count| usize::try_from(count).ok()).filter(|count| *count <= MOST_TASKS);
        let Some(count) = count else {
            let span = process.key_span("count").unwrap_or_default();
            self.wrong(format!("more than the {MOST_TASKS} arrivals that a trace can have"), span, "cut a window out of it");
            return None;
        };
        let process = match kind {
            "poisson" => {
                let found = process.found("poisson")?;
                let Some(mean_s) = found.text().and_then(mean_gap_s) else {
                    let what = format!("{} is no rate", collo_text::quoted(found.text().unwrap_or_default()));
                    self.wrong(what, found.span.clone(), "write `\"20/h\"`; units are s, m, h, d");
                    return None;
                };
                Process::Poisson { mean_s, seed: process.whole("seed").unwrap_or(1) }
            }
            "burst" => Process::Burst,
            _ => Process::Every { ns: u64::try_from(process.duration("every")?.as_nanos()).unwrap_or(u64::MAX) },
        };
        Some(process.arrivals_ns(count))
    }

    fn drawn(&mut self, table: &Fields) -> Option<Drawn> {
        let settings = settings(table);
        let mut one_of = Vec::new();
        for found in table.list("one_of").unwrap_or_default() {
            let text = found.text().unwrap_or_default();
            match short::read(text) {
                Ok(mut what) => {
                    settings.iter().for_each(|(name, value)| drop(what.settings.insert(name.clone(), value.clone())));
                    one_of.push(what);
                }
                Err(wrong) => self.wrong.push(fields::placed(wrong, self.source, &found.span, text)),
            }
        }
        let count = table.whole("count").and_then(|count| usize::try_from(count).ok());
        match (count, one_of.is_empty()) {
            (Some(count), false) => Some(Drawn { count, one_of }),
            _ => {
                if self.wrong.is_empty() {
                    self.wrong("`[[tasks]]` does not say what is drawn".into(), table.span.clone(), "give `count` and `one_of`");
                }
                None
            }
        }
    }

    fn listed(&mut self, table: &Fields) -> Option<(What, Option<u64>)> {
        let Some(workload) = table.text("workload").filter(|name| !name.is_empty()) else {
            if table.found("workload").is_none() || table.text("workload").is_some() {
                self.wrong("a task without a workload".into(), table.span.clone(), "give `workload`");
            }
            return None;
        };
        let cards = table.whole_u32("cards").unwrap_or(1);
        if cards == 0 {
            let span = table.found("cards").map(|found| found.span.clone()).unwrap_or_default();
            self.wrong("a task of 0 cards".into(), span, "write 1 or more");
        }
        let mut settings = settings(table);
        settings.extend(table.whole_u32("batch_size").map(|size| ("batch_size".to_string(), size.into())));
        let at_ns = table.duration("at").map(|at| u64::try_from(at.as_nanos()).unwrap_or(u64::MAX));
        let epochs = table.whole_u32("epochs").unwrap_or(1);
        Some((What { workload: workload.into(), settings, epochs, cards }, at_ns))
    }
}

fn settings(table: &Fields) -> BTreeMap<String, serde_json::Value> {
    let of = |(name, found): (&str, &Located)| match &found.value {
        Value::Setting(value) => Some((name.to_string(), value.clone())),
        _ => None,
    };
    let all = table.table("settings").map(Fields::in_order).unwrap_or_default();
    all.into_iter().filter_map(|(name, _, found)| of((name, found))).collect()
}
