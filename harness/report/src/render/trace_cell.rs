//! One cell of a trace in full: of each run its tasks, its attempts, and what was decided how often.

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_analysis::trace::TraceRun;
use collo_analysis::words;
use collo_figures::document::{Align, Block, Table, terminal};
use collo_quantity::Key;
use collo_quantity::number::{self, ABSENT};
use collo_quantity::unit::{COUNT, JOULE, SHARE};
use collo_store::{AttemptRecord, TaskRecord, TaskTimes};
use collo_text::quoting;

/// Its title, its numbers, and the tables of each run, at most `width` columns wide.
pub fn text(analysis: &Analysis, cell: &Cell, width: usize) -> String {
    let c = &analysis.campaign;
    let of = number::count(cell.record.repetitions.max(cell.repetitions.len() as u32) as usize, "repetition");
    let verdict = cell.verdict().text();
    let counted = cell.count();
    let title =
        format!("{} of {}, {}, {}: {verdict}, {counted} of {of}", cell.name(), c.short_id(), c.experiment, c.device.name_said());
    let mut blocks = Vec::new();
    let mut facts: Vec<(String, String)> = cell.validity.reasons.iter().map(|why| (verdict.into(), why.clone())).collect();
    for (word, n) in cell.outcomes.iter().filter(|(word, n)| **word != "completed" && **n > 0) {
        facts.push(("not used".into(), format!("{n} {}", words::outcome(word))));
    }
    facts.extend(cell.suspicious.iter().map(|odd| ("suspicious".into(), odd.clone())));
    blocks.push(Block::Facts(facts));
    for run in analysis.traces.of_cell(cell.name()) {
        blocks.extend([Block::Text(String::new()), Block::Text(said(run)), Block::Facts(numbers(run))]);
        for table in [tasks(run), attempts(run), decisions(run)] {
            blocks.extend([Block::Text(String::new()), Block::Table(table)]);
        }
    }
    format!("{}\n{}", quoting::line(&title), terminal::text(&blocks, width))
}

/// `repetition 1: 8 of 8 tasks done in 28.2 s on GPU 0, 13 decisions (scale 1:100)`.
fn said(run: &TraceRun) -> String {
    let cards: Vec<&str> = run.cards.iter().map(|card| card.name.as_str()).collect();
    let scale = if run.of.scale == 1 { String::new() } else { format!(" (scale 1:{})", run.of.scale) };
    let (done, all) = (run.done().count(), number::count(run.tasks.len(), "task"));
    let took = format!("in {} s on {}", number::three(run.total_s()), cards.join(", "));
    format!("repetition {}: {done} of {all} done {took}, {}{scale}", run.repetition, number::count(run.decisions, "decision"))
}

fn numbers(run: &TraceRun) -> Vec<(String, String)> {
    let part = |key: Key| {
        let value = *run.values.get(&key)?;
        let text = match key.unit {
            SHARE => number::percent(value),
            // Of one run a count is whole, but the length of a queue is a mean.
            COUNT if value.fract() == 0.0 => format!("{value}"),
            JOULE if value >= 2000.0 => format!("{} kJ", number::three(value * 1e-3)),
            unit => format!("{} {}", number::three(value), unit.symbol),
        };
        Some(format!("{} {}", key.label, text.trim_end()))
    };
    let rows: [(&str, &[Key]); 5] = [
        ("time", &[Key::WaitMean, Key::ExecutionMean, Key::CompletionMean, Key::StretchMean]),
        ("waits", &[Key::WaitMedian, Key::WaitP95, Key::Blocked, Key::QueueLength]),
        ("memory", &[Key::OutOfMemory, Key::Recoveries, Key::Lost, Key::SiteMemory]),
        ("cards", &[Key::SiteEnergy, Key::SiteActive]),
        ("deciding", &[Key::ReadingAge, Key::ArrivalLateness]),
    ];
    let row = |(name, keys): (&str, &[Key])| {
        (name.to_string(), keys.iter().filter_map(|key| part(*key)).collect::<Vec<_>>().join(", "))
    };
    let mut facts: Vec<(String, String)> = rows.into_iter().map(row).filter(|(_, what)| !what.is_empty()).collect();
    facts.extend(run.remarks.iter().map(|remark| ("indicative".into(), remark.clone())));
    facts
}

fn seconds(ns: u64) -> String {
    number::three(ns as f64 * 1e-9)
}

/// In the order of the trace; on a narrow terminal the last columns go first.
fn tasks(run: &TraceRun) -> Table {
    let heads = [
        ("task", Align::Right),
        ("alone it is", Align::Left),
        ("end", Align::Left),
        ("arrives s", Align::Right),
        ("wait s", Align::Right),
        ("execution s", Align::Right),
        ("stretch", Align::Right),
        ("on", Align::Left),
        ("attempts", Align::Right),
        ("epochs", Align::Right),
        ("blocked s", Align::Right),
    ];
    let mut table = Table::new(&heads, 6).with_prose(1);
    let first_ns = run.tasks.iter().map(|task| task.arrives_ns).min().unwrap_or(0);
    for ((task, times), stretch) in run.tasks.iter().zip(&run.numbers.tasks).zip(&run.stretch) {
        let ran = |ns: u64| (times.attempts > 0).then(|| seconds(ns));
        table.values([
            Some(task.task.to_string()),
            Some(task.solo.clone()),
            Some(task.end.as_str().into()),
            Some(seconds(task.arrives_ns - first_ns)),
            ran(times.wait_ns),
            ran(times.execution_ns),
            stretch.map(number::three),
            last_cards(run, task, times),
            Some(times.attempts.to_string()),
            Some(task.epochs.to_string()),
            (task.blocked_ns > 0).then(|| seconds(task.blocked_ns)),
        ]);
    }
    table
}

/// The cards of its last attempt.
fn last_cards(run: &TraceRun, task: &TaskRecord, times: &TaskTimes) -> Option<String> {
    let last = run.attempts.iter().rev().find(|a| a.task == task.task).filter(|_| times.attempts > 0)?;
    Some(run.cards_of(last).collect::<Vec<_>>().join(", "))
}

/// In the order of their start.
fn attempts(run: &TraceRun) -> Table {
    let heads = [
        ("attempt", Align::Right),
        ("task", Align::Right),
        ("end", Align::Left),
        ("from s", Align::Right),
        ("to s", Align::Right),
        ("on", Align::Left),
        ("ready after s", Align::Right),
        ("company", Align::Left),
        ("evidence", Align::Left),
        ("message", Align::Left),
    ];
    let completed = |a: &AttemptRecord| a.outcome.as_str() == "completed";
    let shown = if run.attempts.iter().all(completed) { &heads[..heads.len() - 1] } else { &heads[..] };
    let mut table = Table::new(shown, 5);
    if shown.len() == heads.len() {
        table = table.with_prose_last();
    }
    for a in &run.attempts {
        let company = match a.newcomer {
            _ if a.alone => "nobody",
            None => "nobody",
            Some(true) => "came last",
            Some(false) => "others came later",
        };
        let values = [
            Some(a.attempt.to_string()),
            Some(a.task.to_string()),
            Some(words::outcome(a.outcome.as_str())),
            Some(number::three(run.since_s(a.launched_ns))),
            Some(number::three(run.since_s(a.ended_ns))),
            Some(run.cards_of(a).collect::<Vec<_>>().join(", ")),
            a.settled_ns.map(|ns| seconds(ns.saturating_sub(a.launched_ns))),
            Some(company.into()),
            Some(a.attested.as_str().replace('_', " ")),
            Some(message(a)),
        ];
        table.values(values.into_iter().take(shown.len()));
    }
    table
}

/// What is known of its end besides the word; its row says which member it was.
fn message(a: &AttemptRecord) -> String {
    let (word, full) = (words::outcome(a.outcome.as_str()), words::outcome_in_full(&a.outcome));
    let rest = full.strip_prefix(&*word).unwrap_or(&full);
    let whose = format!(", member {}", a.attempt);
    rest.strip_prefix(&*whose).unwrap_or(rest).trim_start_matches([':', ',', ' ']).to_string()
}

/// How often what was decided, for which reason, and how long tasks waited for it.
fn decisions(run: &TraceRun) -> Table {
    let heads = [
        ("decided", Align::Left),
        ("because", Align::Left),
        ("times", Align::Right),
        ("tasks", Align::Right),
        ("waited s", Align::Right),
    ];
    let mut table = Table::new(&heads, 4).with_prose(1);
    for d in &run.decided {
        let waited = d.waited_ns.map_or_else(|| ABSENT.into(), seconds);
        table.texts([d.decided.clone(), d.why.clone(), d.times.to_string(), d.tasks.to_string(), waited]);
    }
    table
}
