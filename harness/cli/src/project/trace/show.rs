//! `collo trace show`: what a trace is, when it arrives, how much work it is, and the least time that so many cards need for it.
//!
//! What tasks take is known from stored runs of them alone, which every experiment with the trace measures first. Of what was never measured
//! nothing is said.

use std::time::Duration;

use collo_figures::document::{LONGEST_LINE, Table};
use collo_plan::cell::CellTask;
use collo_plan::experiment::{self, Overrides};
use collo_plan::project::Project;
use collo_plan::traces::{self, MeasuredTasks, MemberCache, least_s};
use collo_plan::workload::Workloads;
use collo_quantity::number;
use collo_schedule::trace::{Scale, Trace};
use collo_store::Runs;
use collo_text::units::{clock, duration_text};
use collo_text::{Diagnostic, quoting};
use serde_json::{Value as Json, json};

use crate::answer::{Answer, Answered};
use crate::context::Context;
use crate::output;

/// The widths of a column of the drawing, in milliseconds; the last one many times where even that is too short.
const COLUMNS_MS: [u64; 18] = [
    100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 900_000, 1_800_000, 3_600_000,
    7_200_000, 86_400_000,
];
/// Columns of the drawing at most.
const MOST_COLUMNS: u64 = 60;
/// The least times that are told unless another is asked for.
const CARDS: [u32; 4] = [1, 2, 4, 8];
/// The width of the labels, as a plan has them.
const LABEL: usize = 10;

pub fn show(context: &Context<'_>, name: &str, order: u64, cards: Option<u32>, scale: &str) -> Answered {
    let project = context.project()?;
    let scale = Scale::parse(scale)?;
    let trace = traces::find(&project.traces(), name)?;
    let workloads = Workloads::load(&project.workloads())?;
    let tasks = traces::tasks(&trace, order, scale.by(), &workloads, &mut MemberCache::new())?;
    let widest = tasks.iter().max_by_key(|task| task.cards);
    if let (Some(asked), Some(widest)) = (cards, widest.filter(|task| cards.is_some_and(|cards| cards < task.cards))) {
        let what = format!("a task of it, `{}`, runs on {} cards at once, and `--cards` is {asked}", label(widest), widest.cards);
        return Err(Diagnostic::new(what).hint(format!("`--cards {}`, or more", widest.cards)).into());
    }
    let runs = Runs::at(project.runs());
    let measured = MeasuredTasks::read(&runs, &tasks);
    let page = Page::of(name, &trace, order, scale, &tasks, measured.as_ref(), cards);
    let mut answer = Answer::of(page.keys());
    answer.lines(page.text(output::width()).trim_end());
    if page.work_s.is_none() {
        answer.hint(to_measure(&project, &workloads, name, scale, &runs));
    }
    Ok(answer)
}

/// How to know what its tasks take alone.
fn to_measure(project: &Project, workloads: &Workloads, name: &str, scale: Scale, runs: &Runs) -> String {
    let played = runs.newest(20).iter().find_map(|campaign| {
        let cells = &campaign.manifest().plan.cells;
        cells.iter().filter_map(|cell| cell.trace.as_ref()).find(|trace| trace.trace == name).map(|trace| trace.scale)
    });
    if let Some(other) = played.filter(|other| *other != scale.by()) {
        return format!("it was played at 1:{other}, and its tasks measured so: `--scale 1:{other}`");
    }
    let experiments = experiment::all(project, workloads, &Overrides::default()).unwrap_or_default();
    let mut readable = experiments.into_iter().filter_map(|(_, experiment)| experiment.ok());
    match readable.find(|experiment| experiment.trace.as_ref().is_some_and(|trace| trace.name == name)) {
        Some(plays) => format!("`collo run {}` measures each of its tasks alone before it plays them", plays.name),
        None => "an experiment with this trace measures each of its tasks alone: `collo help traces`".into(),
    }
}

/// A task as people name it.
fn label(task: &CellTask) -> String {
    task.member.solo().replacen(" solo", "", 1)
}

/// Tasks that are alike.
struct TaskKind<'a> {
    task: &'a CellTask,
    count: usize,
    /// One of them alone on one card.
    alone_s: Option<f64>,
}

/// What is told of a trace.
struct Page<'a> {
    name: &'a str,
    trace: &'a Trace,
    order: u64,
    scale: Scale,
    tasks: &'a [CellTask],
    measured: Option<&'a MeasuredTasks>,
    /// The most frequent first.
    kinds: Vec<TaskKind<'a>>,
    /// All tasks one after the other on one card; `None` if of one is not known what it takes.
    work_s: Option<f64>,
    /// By number of cards, with one task on a card at a time.
    least: Vec<(u32, f64)>,
    /// Where tasks share cards.
    least_shared_s: Option<f64>,
}

impl<'a> Page<'a> {
    fn of(
        name: &'a str,
        trace: &'a Trace,
        order: u64,
        scale: Scale,
        tasks: &'a [CellTask],
        measured: Option<&'a MeasuredTasks>,
        cards: Option<u32>,
    ) -> Page<'a> {
        let mut kinds: Vec<TaskKind<'a>> = Vec::new();
        for task in tasks {
            let alike = |kind: &&mut TaskKind<'_>| {
                let known = kind.task;
                (known.member.key(), known.epochs, known.cards) == (task.member.key(), task.epochs, task.cards)
            };
            match kinds.iter_mut().find(alike) {
                Some(kind) => kind.count += 1,
                None => kinds.push(TaskKind { task, count: 1, alone_s: alone_s(measured, task) }),
            }
        }
        kinds.sort_by_cached_key(|kind| (std::cmp::Reverse(kind.count), label(kind.task), kind.task.epochs));
        let work = measured.and_then(|measured| traces::work_of(tasks, |member| measured.alone(member)));
        let widest = tasks.iter().map(|task| task.cards).max().unwrap_or(1);
        let asked: Vec<u32> = match cards {
            Some(cards) => vec![cards],
            None => CARDS.into_iter().filter(|cards| *cards >= widest).collect(),
        };
        let work_s = tasks.iter().map(|task| alone_s(measured, task)).sum();
        let least = work.iter().flat_map(|work| asked.iter().map(|cards| (*cards, least_s(work, Some(*cards))))).collect();
        let least_shared_s = work.as_ref().map(|work| least_s(work, None));
        Page { name, trace, order, scale, tasks, measured, kinds, work_s, least, least_shared_s }
    }

    fn last_s(&self) -> f64 {
        self.tasks.last().map_or(0.0, |task| task.arrives_ns as f64 / 1e9)
    }

    fn text(&self, width: usize) -> String {
        let mut text = format!("{}: {}\n\n", self.name, quoting::words(&self.trace.description));
        let mut line = |label: &str, what: &str| text += &format!("{label:<LABEL$}{what}\n");
        if let Some(source) = &self.trace.source {
            for (n, part) in
                collo_text::wrapped(&quoting::words(source), width.min(LONGEST_LINE).saturating_sub(LABEL)).iter().enumerate()
            {
                line(if n == 0 { "source" } else { "" }, part);
            }
        }
        let wide = self.tasks.iter().filter(|task| task.cards > 1).count();
        let wide = if wide == 0 { String::new() } else { format!(", {wide} on several cards") };
        line("tasks", &format!("{} in order {}, {} distinct{wide}", self.tasks.len(), self.order, self.kinds.len()));
        if self.scale != Scale::ONE {
            line("scale", &format!("{}: arrivals and epochs are divided", self.scale));
        }
        self.drawn(&mut line);
        text += "\n";
        text += &self.table(width);
        text += "\n";
        let mut line = |label: &str, what: &str| text += &format!("{label:<LABEL$}{what}\n");
        match (self.work_s, self.measured) {
            (Some(work_s), Some(measured)) => {
                let runs = number::count(measured.stored_runs, "stored run");
                line(
                    "work",
                    &format!("{} of one card, on {}, from {runs} of its tasks alone", clock(work_s), measured.device.text()),
                );
                let each = |(cards, s): &(u32, f64)| format!("{} on {}", clock(*s), number::count(*cards as usize, "card"));
                let all: Vec<String> = self.least.iter().map(each).collect();
                line("least", &format!("{}: one task on a card at a time, whatever the policy", all.join(", ")));
                if let Some(shared_s) = self.least_shared_s {
                    line("", &format!("{} where cards are shared: nobody is faster than alone", clock(shared_s)));
                }
            }
            _ => {
                let unknown = self.kinds.iter().filter(|kind| kind.alone_s.is_none()).count();
                let what =
                    format!("unknown: {unknown} of its {} distinct tasks were never measured alone here", self.kinds.len());
                line("work", &what);
            }
        }
        text
    }

    /// Arrivals over time, and below them the work that arrives, where it is known.
    fn drawn(&self, line: &mut impl FnMut(&str, &str)) {
        let column_ms = column_ms(self.last_s());
        let column = |task: &CellTask| (task.arrives_ns / 1_000_000 / column_ms) as usize;
        let columns = self.tasks.last().map_or(1, |task| column(task) + 1);
        let (mut arrivals, mut work) = (vec![0.0; columns], vec![0.0; columns]);
        for task in self.tasks {
            arrivals[column(task)] += 1.0;
            work[column(task)] += alone_s(self.measured, task).unwrap_or(0.0);
        }
        let each = duration_text(Duration::from_millis(column_ms));
        let most = arrivals.iter().fold(0.0, |a: f64, b| a.max(*b));
        let columns_are = if columns == 1 { String::new() } else { format!(", a column for each {each}") };
        line("arrivals", &format!("{}  at most {most}{columns_are}", bars(&arrivals)));
        if self.work_s.is_some() {
            let most = work.iter().fold(0.0, |a: f64, b| a.max(*b));
            line("work", &format!("{}  at most {} of one card", bars(&work), clock(most)));
        }
        let end = clock(self.last_s());
        line("", &format!("0:00{end:>room$}", room = columns.saturating_sub(4).max(end.len() + 1)));
    }

    fn table(&self, width: usize) -> String {
        let mut table = Table::new(&["task", "#epochs", "#cards", "#count", "#alone", "#work"], 1);
        for TaskKind { task, count, alone_s } in &self.kinds {
            table.values([
                Some(label(task)),
                Some(task.epochs.to_string()),
                Some(task.cards.to_string()),
                Some(count.to_string()),
                alone_s.map(clock),
                alone_s.map(|s| clock(s * *count as f64)),
            ]);
        }
        table.render(width)
    }

    fn keys(&self) -> Json {
        let kind = |TaskKind { task, count, alone_s }: &TaskKind<'_>| {
            json!({"task": label(task), "workload": task.member.workload().name, "batch_size": task.member.batch_size(),
                "settings": task.member.settings(), "epochs": task.epochs, "cards": task.cards, "count": count, "alone_s": alone_s})
        };
        let task = |task: &CellTask| json!({"arrives_s": task.arrives_ns as f64 / 1e9, "task": label(task)});
        let least: Vec<Json> = self.least.iter().map(|(cards, s)| json!({"cards": cards, "least_s": s})).collect();
        json!({"trace": self.name, "description": self.trace.description, "source": self.trace.source,
            "order": self.order, "scale": self.scale.by(), "tasks": self.tasks.iter().map(task).collect::<Vec<_>>(),
            "distinct": self.kinds.iter().map(kind).collect::<Vec<_>>(), "last_arrival_s": self.last_s(), "work_s": self.work_s,
            "device": self.measured.map(|measured| &measured.device), "stored_runs": self.measured.map(|measured| measured.stored_runs),
            "least": least, "least_shared_s": self.least_shared_s})
    }
}

/// One task alone on one card.
fn alone_s(measured: Option<&MeasuredTasks>, task: &CellTask) -> Option<f64> {
    Some(measured?.alone(&task.member)?.of_epochs_s(task.epochs))
}

/// The width of a column, so that all arrivals have room.
fn column_ms(last_s: f64) -> u64 {
    let last_ms = (last_s * 1e3) as u64;
    let fits = |column_ms: &u64| last_ms / column_ms < MOST_COLUMNS;
    let longest = COLUMNS_MS[COLUMNS_MS.len() - 1];
    COLUMNS_MS.into_iter().find(fits).unwrap_or_else(|| longest * (last_ms / MOST_COLUMNS / longest + 1))
}

/// A column for each value, the largest eight eighths high; nothing is a point, and something never is.
fn bars(values: &[f64]) -> String {
    const EIGHTHS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = values.iter().fold(0.0, |a: f64, b| a.max(*b));
    let bar = |value: &f64| match *value > 0.0 {
        true => EIGHTHS[((value / most * 8.0).ceil() as usize).clamp(1, 8) - 1],
        false => '·',
    };
    values.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_in_eighths_of_the_highest_and_nothing_is_a_point() {
        assert_eq!(bars(&[0.0, 8.0, 4.0, 1.0, 0.1]), "·█▄▁▁");
        assert_eq!(bars(&[]), "");
    }

    #[test]
    fn a_trace_of_a_minute_and_one_of_a_year_have_room() {
        for (last_s, column) in [(0.0, "100ms"), (55.0, "1s"), (60.0, "2s"), (12_514.0, "5m")] {
            assert_eq!(duration_text(Duration::from_millis(column_ms(last_s))), column, "{last_s}");
        }
        let year_s = 365.0 * 86_400.0;
        assert!((year_s * 1e3) as u64 / column_ms(year_s) < MOST_COLUMNS);
    }
}
