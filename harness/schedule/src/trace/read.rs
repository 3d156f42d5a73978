//! `traces/NAME.toml`: its keys, and what they must be together.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use collo_text::fields::ValueKind::{self, Duration, List, Map, Number, Setting, Table, Text, Whole};
use collo_text::fields::{self, Fields, Located, Value};
use collo_text::{Diagnostic, Diagnostics, Source};

use super::arrivals::{Process, mean_gap_s};
use super::{Drawn, MOST_TASKS, Trace, What, short};

const MANY: ValueKind = Whole(1..=u64::MAX);
const SOME: ValueKind = Whole(1..=u32::MAX as u64);
const TIME: ValueKind = Number(0.0..=1e9);
const SETTINGS: ValueKind = Map(&Setting);

collo_text::keys! { "collo schema trace";
    /// The keys of a trace.
    pub static TRACE {
        description [Text], "what it is, in a sentence";
        source [Text], "where its arrivals and its tasks come from, with the licence";
        arrivals_s [List(&TIME)], "when tasks arrive, in seconds";
        arrivals [Table(&PROCESS)], "the process by which they arrive";
        tasks [List(&Table(&DRAWN))], "tasks that are drawn, a class each";
        task [List(&Table(&LISTED))], "a task";
    }

    pub static PROCESS {
        poisson [Text], "by chance, so many on average: `20/h`";
        burst [Whole(1..=MOST_TASKS as u64)], "so many at once";
        every [Duration], "one after each of these intervals";
        count [MANY], "how many arrive; by default as many as there are tasks";
        seed [Whole(0..=u64::MAX)] = 1, "of the gaps that chance draws";
    }

    pub static DRAWN {
        count [MANY], "how many are drawn";
        one_of [List(&Text)], "from these, each as likely: `resnet50:b64 3e 2c`";
        settings [SETTINGS], "further settings of all of them";
    }

    pub static LISTED {
        at [Duration], "when it arrives; by default at the next of the arrivals";
        workload [Text], "a workload of the project";
        batch_size [SOME], "its batch size; by default the workload's own";
        epochs [SOME] = 1, "how many epochs it trains";
        cards [Whole(0..=u32::MAX as u64)] = 1, "on how many cards of one node";
        settings [SETTINGS], "its further settings";
    }
}

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
            let tasks = super::count_tasks(wanted);
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
        let count = match (kind, process.get::<Option<u64>>("count")) {
            ("burst", Some(_)) => {
                let span = process.key_span("count").unwrap_or_default();
                self.wrong("a burst says itself how many it has".into(), span, "leave `count` out");
                return None;
            }
            ("burst", None) => process.get("burst"),
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
                Process::Poisson { mean_s, seed: process.get::<Option<_>>("seed").unwrap_or(1) }
            }
            "burst" => Process::Burst,
            _ => Process::Every {
                ns: u64::try_from(process.get::<Option<std::time::Duration>>("every")?.as_nanos()).unwrap_or(u64::MAX),
            },
        };
        Some(process.arrivals_ns(count))
    }

    fn drawn(&mut self, table: &Fields) -> Option<Drawn> {
        let settings: BTreeMap<String, serde_json::Value> = table.get("settings");
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
        let count = table.get::<Option<u64>>("count").and_then(|count| usize::try_from(count).ok());
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
        let cards = table.get::<Option<u32>>("cards").unwrap_or(1);
        if cards == 0 {
            let span = table.found("cards").map(|found| found.span.clone()).unwrap_or_default();
            self.wrong("a task of 0 cards".into(), span, "write 1 or more");
        }
        let mut settings: BTreeMap<String, serde_json::Value> = table.get("settings");
        settings.extend(table.get::<Option<u32>>("batch_size").map(|size| ("batch_size".to_string(), size.into())));
        let at_ns = table.get::<Option<std::time::Duration>>("at").map(|at| u64::try_from(at.as_nanos()).unwrap_or(u64::MAX));
        let epochs = table.get::<Option<u32>>("epochs").unwrap_or(1);
        Some((What { workload: workload.into(), settings, epochs, cards }, at_ns))
    }
}
