//! Who waited, who was slowed: each task's completion time over its stretch, a panel per policy.

use collo_analysis::campaign::Analysis;
use collo_analysis::trace::{Arm, TraceMatrix, TraceRun};
use collo_figures::chart::{Completion, Completions};
use collo_figures::document::{Block, Section, Table, TableCell, TableColumn};
use collo_figures::draw::Panel;
use collo_quantity::{Key, number};
use collo_store::{TaskRecord, TaskTimes};

use super::{TimeUnit, figure, kind_of, kinds, of_matrices, task_name};
use crate::parts::absent::Content;

/// Panels of one figure, at most.
const POLICIES: usize = 12;

pub fn section(analysis: &Analysis) -> Content {
    let blocks = |matrix: &TraceMatrix, suffix: &str| drawn(analysis, matrix, suffix).into_iter().collect();
    of_matrices(analysis, finding(analysis), blocks).map(Section::answering)
}

/// Runs of an arm that its numbers come from.
fn runs<'a>(analysis: &'a Analysis, matrix: &'a TraceMatrix, arm: &'a Arm) -> impl Iterator<Item = &'a TraceRun> {
    analysis.traces.runs.iter().filter(move |run| {
        (&run.of.trace, run.of.cards, run.of.scale) == (&matrix.trace, matrix.cards, matrix.scale)
            && (&run.of.policy, &run.of.estimate, &run.sharing) == (&arm.policy, &arm.estimate, &arm.sharing)
            && run.validity.verdict == arm.validity.verdict
    })
}

fn drawn(analysis: &Analysis, matrix: &TraceMatrix, suffix: &str) -> Option<Block> {
    let unit = TimeUnit::of(matrix);
    let kinds = kinds(analysis, matrix);
    let points = |arm: &Arm| -> Vec<Completion> {
        let of = |run: &TraceRun| -> Vec<Completion> {
            let each = run.tasks.iter().zip(&run.numbers.tasks).zip(&run.stretch);
            let point = |((task, times), stretch): ((&TaskRecord, &TaskTimes), &Option<f64>)| {
                let completion_s = times.completion_ns? as f64 * 1e-9;
                Some(Completion {
                    kind: kind_of(&kinds, &task.solo),
                    stretch: (*stretch)?,
                    completion: completion_s * unit.factor,
                    title: format!(
                        "task {} of order {}, {}\ncompletion {}, of it waiting {}\nstretch {}",
                        task.task,
                        run.of.order,
                        task_name(task),
                        unit.text(completion_s),
                        unit.text(times.wait_ns as f64 * 1e-9),
                        number::three((*stretch)?)
                    ),
                })
            };
            each.filter_map(point).collect()
        };
        runs(analysis, matrix, arm).flat_map(of).collect()
    };
    let arms: Vec<(&Arm, Vec<Completion>)> = matrix.arms.iter().map(|a| (a, points(a))).filter(|(_, p)| !p.is_empty()).collect();
    let all = || arms.iter().flat_map(|(_, points)| points);
    let largest = (all().map(|p| p.stretch).fold(1.0, f64::max), all().map(|p| p.completion).fold(0.0, f64::max));
    let least_stretch = all().map(|p| p.stretch).fold(1.0, f64::min);
    let mut values = values(analysis, matrix, &unit);
    values.shown = (values.rows.len() > 200).then_some(200);
    let caption = unit.head("completion,");
    let panel = |(arm, points): &(&Arm, Vec<Completion>)| Panel {
        title: arm.name(),
        subtitle: number::count(points.len(), "task"),
        label: format!("completion time over stretch of each task under {}", arm.name()),
        drawing: Completions { caption: &caption, points, least_stretch, largest }.draw(),
    };
    let panels: Vec<Panel> = arms.iter().take(POLICIES).map(panel).collect();
    let more = if arms.len() > POLICIES { format!(" The first {POLICIES} of {} policies.", arms.len()) } else { String::new() };
    let named: Vec<String> = kinds.iter().map(|k| format!("`{k}`")).collect();
    let caption = format!(
        "A point is a task that was done, of all orders: high is who waited, to the right is who was slowed; colours are workloads ({}). Stretch is execution of the \
         attempt that completed ÷ the same alone, starting up included; tasks of several cards have none, because baselines have one. All panels share their axes.{more}",
        named.join(", ")
    );
    figure(analysis, matrix, format!("waits{suffix}"), ("Completion and stretch", caption), panels, values, false)
}

/// A task of a run, with its times and its stretch.
type Task<'a> = (&'a Arm, &'a TraceRun, &'a TaskRecord, &'a TaskTimes, Option<f64>);

fn values(analysis: &Analysis, matrix: &TraceMatrix, unit: &TimeUnit) -> Table {
    let time = |ns: u64| TableCell::number(unit.number(ns as f64 * 1e-9), ns as f64 * 1e-9 * unit.factor);
    let columns: &[TableColumn<Task>] = &[
        ("policy", &|(arm, ..)| TableCell::text(arm.name())),
        ("#order", &|(_, run, ..)| TableCell::text(run.of.order.to_string())),
        ("#task", &|(_, _, task, ..)| TableCell::text(task.task.to_string())),
        ("workload", &|(_, _, task, ..)| TableCell::text(task_name(task))),
        (&format!("#{}", unit.head("wait")), &|(.., times, _)| time(times.wait_ns)),
        (&format!("#{}", unit.head("execution")), &|(.., times, _)| time(times.execution_ns)),
        (&format!("#{}", unit.head("completion")), &|(_, _, task, times, _)| {
            times.completion_ns.map_or_else(|| TableCell::text(task.end.as_str()), time)
        }),
        ("#stretch", &|(.., stretch)| stretch.map_or_else(TableCell::default, |s| TableCell::number(number::three(s), s))),
        ("#attempts", &|(.., times, _)| TableCell::text(times.attempts.to_string())),
    ];
    let runs = matrix.arms.iter().flat_map(|arm| runs(analysis, matrix, arm).map(move |run| (arm, run)));
    let tasks = runs.flat_map(|(arm, run)| {
        let each = run.tasks.iter().zip(&run.numbers.tasks).zip(&run.stretch);
        each.map(move |((task, times), stretch)| (arm, run, task, times, *stretch))
    });
    Table::of(columns, tasks)
}

fn finding(analysis: &Analysis) -> String {
    let of = |matrix: &TraceMatrix| {
        let unit = TimeUnit::of(matrix);
        let told = |arm: &Arm| {
            let wait = arm.get(Key::WaitMean)?.estimate;
            let stretch =
                arm.get(Key::StretchMean).map_or_else(String::new, |q| format!(", stretch {}", number::three(q.estimate)));
            Some(format!("`{}` waits {} on average{stretch}", arm.name(), unit.text(wait)))
        };
        let others = matrix.arms.iter().enumerate().filter(|(i, _)| *i != matrix.reference);
        let most = others.filter(|(_, a)| a.get(Key::WaitMean).is_some()).min_by(|a, b| {
            let wait = |arm: &Arm| arm.get(Key::WaitMean).map_or(f64::INFINITY, |q| q.estimate);
            wait(a.1).total_cmp(&wait(b.1))
        });
        let parts: Vec<String> = told(matrix.reference()).into_iter().chain(most.and_then(|(_, arm)| told(arm))).collect();
        (!parts.is_empty()).then(|| format!("A task under {}.", parts.join("; under ")))
    };
    analysis.traces.matrices.iter().filter_map(of).collect::<Vec<_>>().join(" ")
}
