//! A site over time, for one run of each policy: the first order.

use collo_analysis::campaign::Analysis;
use collo_analysis::trace::{Arm, SiteReadings, TraceMatrix, TraceRun};
use collo_analysis::words;
use collo_figures::chart::{Occupied, SiteTimeline};
use collo_figures::document::{Block, Table, TableCell, TableColumn};
use collo_figures::draw::Panel;
use collo_store::AttemptRecord;

use super::{TimeUnit, drawn_run, figure, kind_of, kinds, of_matrices, task_name};
use crate::parts::absent::Content;

/// Panels of one figure, at most.
const POLICIES: usize = 12;

pub fn section(analysis: &Analysis) -> Content {
    let finding =
        "One run of each policy, of the first order: who ran where and when, how active the cards were, how many waited.";
    of_matrices(analysis, finding.into(), |matrix, suffix| drawn(analysis, matrix, suffix).into_iter().collect())
}

/// Steps of the queue in seconds, up to the end.
fn queue(run: &TraceRun) -> Vec<(f64, f64)> {
    let mut steps: Vec<(f64, f64)> = run.queue.iter().map(|(at, n)| (run.since_s(*at), f64::from(*n))).collect();
    steps.extend(steps.last().map(|last| (run.total_s().max(last.0), last.1)));
    steps
}

fn drawn(analysis: &Analysis, matrix: &TraceMatrix, suffix: &str) -> Option<Block> {
    let unit = TimeUnit::of(matrix);
    let kinds = kinds(analysis, matrix);
    let names: Vec<String> = kinds.iter().map(|k| (*k).to_string()).collect();
    let arms: Vec<(&Arm, &TraceRun)> =
        matrix.arms.iter().filter_map(|arm| Some((arm, drawn_run(analysis, matrix, arm)?))).collect();
    let arms = &arms[..arms.len().min(POLICIES)];
    let end_s = arms.iter().map(|(_, run)| run.total_s()).fold(0.0, f64::max);
    let longest_queue = arms.iter().flat_map(|(_, run)| &run.queue).map(|s| f64::from(s.1)).fold(0.0, f64::max);
    let on_gpu = analysis.campaign.device.kind == "gpu";
    let panel = |(arm, run): &(&Arm, &TraceRun)| {
        let cards: Vec<String> = run.cards.iter().map(|c| c.name.clone()).collect();
        let drawing = SiteTimeline {
            cards: &cards,
            attempts: &occupied(run, &kinds, &unit),
            kinds: &names,
            active: &SiteReadings::mean_curve(&run.readings.active),
            active_caption: if on_gpu { "SM activity, mean over cards, %" } else { "busy share, mean over sets of cores, %" },
            queue: &queue(run),
            end_s,
            longest_queue,
            total_s: run.total_s(),
        }
        .draw();
        Panel {
            title: arm.name(),
            subtitle: format!("order {}, total {}", run.of.order, unit.text(run.total_s())),
            label: format!("attempts on each card over time under {}", arm.name()),
            drawing,
        }
    };
    let panels: Vec<Panel> = arms.iter().map(panel).collect();
    let caption = format!(
        "A bar is an attempt on a card, coloured by its workload; hatched: it did not complete. Dotted: the end of the last one. Time from the first arrival{}; all \
         panels share their axes.",
        unit.scale
    );
    let values = values(arms, &unit);
    figure(analysis, matrix, format!("sites{suffix}"), ("Cards over time", caption), panels, values, false)
}

fn occupied(run: &TraceRun, kinds: &[&str], unit: &TimeUnit) -> Vec<Occupied> {
    let mut found = Vec::new();
    for attempt in &run.attempts {
        let Some(task) = run.tasks.iter().find(|t| t.task == attempt.task) else { continue };
        let (from_s, until_s) = (run.since_s(attempt.launched_ns), run.since_s(attempt.ended_ns));
        let ended = words::outcome(attempt.outcome.as_str());
        let title =
            format!("task {}, {}\n{} to {}, {ended}", task.task, task_name(task), unit.number(from_s), unit.text(until_s));
        let failed = attempt.outcome != collo_store::Outcome::Completed;
        let kind = kind_of(kinds, &task.solo);
        found.extend(attempt.cards.iter().map(|card| Occupied {
            card: *card as usize,
            from_s,
            until_s,
            kind,
            failed,
            title: title.clone(),
        }));
    }
    found
}

fn values(arms: &[(&Arm, &TraceRun)], unit: &TimeUnit) -> Table {
    type Attempt<'a> = (&'a Arm, &'a TraceRun, &'a AttemptRecord);
    let time = |run: &TraceRun, ns: u64| TableCell::number(unit.number(run.since_s(ns)), run.since_s(ns) * unit.factor);
    let columns: &[TableColumn<Attempt>] = &[
        ("policy", &|(arm, ..)| TableCell::text(arm.name())),
        ("#attempt", &|(.., attempt)| TableCell::text(attempt.attempt.to_string())),
        ("#task", &|(.., attempt)| TableCell::text(attempt.task.to_string())),
        ("workload", &|(_, run, attempt)| {
            TableCell::text(run.tasks.iter().find(|t| t.task == attempt.task).map(task_name).unwrap_or_default())
        }),
        ("cards", &|(_, run, attempt)| {
            let names = attempt.cards.iter().map(|c| run.cards.get(*c as usize).map_or("?", |c| c.name.as_str()));
            TableCell::text(names.collect::<Vec<_>>().join(", "))
        }),
        (&format!("#{}", unit.head("from")), &|(_, run, attempt)| time(run, attempt.launched_ns)),
        (&format!("#{}", unit.head("to")), &|(_, run, attempt)| time(run, attempt.ended_ns)),
        ("outcome", &|(.., attempt)| TableCell::text(words::outcome(attempt.outcome.as_str()))),
    ];
    let attempts = arms.iter().flat_map(|(arm, run)| run.attempts.iter().map(move |attempt| (*arm, *run, attempt)));
    let mut table = Table::of(columns, attempts);
    table.shown = (table.rows.len() > 200).then_some(200);
    table
}
