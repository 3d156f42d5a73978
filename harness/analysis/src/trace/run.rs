//! One run of a trace. In: its record and tables. Out: the numbers of its tasks, attempts, decisions and cards, each absent if
//! unknown.

use std::collections::{BTreeMap, BTreeSet};

use collo_quantity::{Key, stats};
use collo_store::{
    AttemptRecord, DecisionRecord, MemberRecord, TaskEnd, TaskRecord, TaskTimes, TraceCard, TraceCell, TraceNumbers, Validity,
    read_attempts, read_decisions, read_tasks,
};

use super::queue::{self, Steps};
use super::readings::SiteReadings;
use crate::cell::Cell;
use crate::reading::repetition::Repetition;
use crate::reading::samples::Window;

/// Nanoseconds as seconds.
fn seconds(ns: u64) -> f64 {
    ns as f64 * 1e-9
}

/// Decisions of a run for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecisionCount {
    /// `placed`, `waits`, `never`.
    pub decided: String,
    /// In words.
    pub why: String,
    pub times: usize,
    /// How many tasks they are about.
    pub tasks: usize,
    /// Until the next decision about the same task; absent for what is no wait, or was the last about its task.
    pub waited_ns: Option<u64>,
}

impl DecisionCount {
    fn of(made: &[&DecisionRecord]) -> Vec<DecisionCount> {
        let mut found = BTreeMap::<(&str, &str), (usize, BTreeSet<u32>, Option<u64>)>::new();
        let mut later = BTreeMap::<u32, u64>::new();
        for decision in made.iter().rev() {
            let (times, tasks, waited_ns) = found.entry((&decision.decided, &decision.why)).or_default();
            *times += 1;
            tasks.insert(decision.task);
            if let Some(next_ns) = later.insert(decision.task, decision.at_ns).filter(|_| decision.decided == "waits") {
                *waited_ns = Some(waited_ns.unwrap_or(0) + next_ns.saturating_sub(decision.at_ns));
            }
        }
        let mut all: Vec<DecisionCount> = Vec::with_capacity(found.len());
        for ((decided, why), (times, tasks, waited_ns)) in found {
            all.push(DecisionCount { decided: decided.into(), why: why.into(), times, tasks: tasks.len(), waited_ns });
        }
        all.sort_by_key(|count| std::cmp::Reverse(count.times));
        all
    }
}

/// A run of a trace that completed.
#[derive(Debug, Clone)]
pub struct TraceRun {
    /// The label of its cell.
    pub cell: String,
    pub repetition: u32,
    /// Index of the merged campaign that it comes from.
    pub origin: usize,
    pub of: TraceCell,
    pub sharing: String,
    pub validity: Validity,
    /// By card number.
    pub cards: Vec<TraceCard>,
    /// What makes it indicative at best, in words.
    pub remarks: Vec<String>,
    /// The first arrival that was due, nanoseconds of `CLOCK_MONOTONIC`: times of figures are counted from here.
    pub first_ns: u64,
    pub numbers: TraceNumbers,
    /// In the order of the trace, as [`TraceNumbers::tasks`].
    pub tasks: Vec<TaskRecord>,
    /// In the order of their start.
    pub attempts: Vec<AttemptRecord>,
    /// By task: execution of the attempt that completed ÷ the same alone; absent without a baseline, and for tasks of several cards.
    pub stretch: Vec<Option<f64>>,
    pub queue: Steps,
    pub readings: SiteReadings,
    pub decisions: usize,
    /// The same by what was decided and why, the most frequent first.
    pub decided: Vec<DecisionCount>,
    /// Its values of the quantities of traces; what is unknown is absent.
    pub values: BTreeMap<Key, f64>,
}

impl TraceRun {
    /// Read the tables of a run, or why they cannot be used.
    pub(super) fn read(repetition: &Repetition) -> std::result::Result<TraceRun, String> {
        let record = repetition.record();
        let folder = &repetition.run.path;
        let (Some(of), Some(trace)) = (&record.cell.trace, &record.trace) else {
            return Err("it is a run of a trace without the record of one".into());
        };
        let told = |what: &'static str| move |e: collo_store::Error| format!("its {what} cannot be read: {e}");
        let tasks = read_tasks(folder).map_err(told("tasks"))?;
        let attempts = read_attempts(folder).map_err(told("attempts"))?;
        let decisions = read_decisions(folder).map_err(told("decisions"))?;
        let numbers = TraceNumbers::of(trace, &tasks, &attempts);
        let first_ns = tasks.iter().map(|t| trace.began_ns.saturating_add(t.arrives_ns)).min();
        let total = first_ns.zip(numbers.total_ns).and_then(|(first, total)| Window::new(first, first.saturating_add(total)));
        let Some(total) = total else { return Err("nothing of its trace ran".into()) };
        let readings = match repetition.run.table("samples.parquet") {
            Some(path) => SiteReadings::read(record, &trace.cards, &path, total).unwrap_or_default(),
            None => SiteReadings::default(),
        };
        let queue = queue::steps(trace.began_ns, &tasks, &attempts);
        let mut run = TraceRun {
            cell: record.cell.cell.clone(),
            repetition: record.repetition,
            origin: repetition.device,
            of: of.clone(),
            sharing: record.cell.sharing.clone(),
            validity: repetition.validity.clone(),
            cards: trace.cards.clone(),
            remarks: trace.remarks.clone(),
            first_ns: total.start_ns,
            stretch: vec![None; tasks.len()],
            decisions: 0,
            decided: Vec::new(),
            values: BTreeMap::new(),
            numbers,
            tasks,
            attempts,
            queue,
            readings,
        };
        run.take_values(total, &decisions);
        Ok(run)
    }

    /// True if another run is of the same tasks in the same order, on as many cards of the same machine.
    pub fn plays_as(&self, other: &TraceRun) -> bool {
        let of = |run: &TraceRun| (run.of.trace.clone(), run.of.order, run.of.scale, run.of.cards, run.origin);
        of(self) == of(other)
    }

    /// Tasks that were done, each with its times.
    pub fn done(&self) -> impl Iterator<Item = (&TaskRecord, &TaskTimes)> {
        self.tasks.iter().zip(&self.numbers.tasks).filter(|(task, _)| task.end == TaskEnd::Done)
    }

    /// Its total time.
    pub fn total_s(&self) -> f64 {
        self.numbers.total_ns.map_or(0.0, seconds)
    }

    /// Names of the cards that an attempt was given.
    pub fn cards_of<'a>(&'a self, attempt: &'a AttemptRecord) -> impl Iterator<Item = &'a str> {
        attempt.cards.iter().filter_map(|card| Some(self.cards.get(*card as usize)?.name.as_str()))
    }

    /// Seconds from the first arrival.
    pub fn since_s(&self, at_ns: u64) -> f64 {
        (at_ns as f64 - self.first_ns as f64) * 1e-9
    }

    fn take_values(&mut self, total: Window, decisions: &[DecisionRecord]) {
        let mut values = BTreeMap::new();
        let of = |get: &dyn Fn(&TaskTimes) -> u64| -> Vec<f64> { self.done().map(|(_, times)| seconds(get(times))).collect() };
        let mean = |all: &[f64]| (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64);
        let mut put = |key: Key, value: Option<f64>| values.extend(value.map(|value| (key, value)));
        let mut waits = of(&|t| t.wait_ns);
        put(Key::WaitMean, mean(&waits));
        put(Key::WaitMedian, stats::nearest_rank(&mut waits, 0.5));
        put(Key::WaitP95, stats::nearest_rank(&mut waits, 0.95));
        put(Key::ExecutionMean, mean(&of(&|t| t.execution_ns)));
        let mut completions = of(&|t| t.completion_ns.unwrap_or(0));
        put(Key::CompletionMean, mean(&completions));
        put(Key::CompletionP95, stats::nearest_rank(&mut completions, 0.95));
        let numbers = &self.numbers;
        put(Key::Total, numbers.total_ns.map(seconds));
        put(Key::TasksDone, Some(completions.len() as f64));
        put(Key::OutOfMemory, Some(f64::from(numbers.out_of_memory_newcomers + numbers.out_of_memory_residents)));
        put(Key::OutOfMemoryNewcomers, Some(f64::from(numbers.out_of_memory_newcomers)));
        put(Key::OutOfMemoryResidents, Some(f64::from(numbers.out_of_memory_residents)));
        put(Key::Recoveries, Some(f64::from(numbers.recoveries)));
        put(Key::RecoveryWait, Some(seconds(numbers.recovery_wait_ns)));
        put(Key::Lost, Some(seconds(numbers.lost_ns)));
        put(Key::Blocked, Some(seconds(numbers.blocked_ns)));
        put(Key::SiteEnergy, self.readings.energy_j);
        put(Key::SiteActive, SiteReadings::mean(&self.readings.active));
        put(Key::SiteMemory, SiteReadings::mean(&self.readings.memory));
        put(Key::QueueLength, queue::mean(&self.queue, total.start_ns, total.end_ns));
        put(Key::ArrivalLateness, numbers.latest_arrival_ns.map(seconds));
        // A decision is as many rows as it saw cards.
        let made = decisions.chunk_by(|a, b| (a.at_ns, a.task, a.attempt) == (b.at_ns, b.task, b.attempt));
        let made: Vec<&DecisionRecord> = made.map(|rows| &rows[0]).collect();
        put(Key::DecisionsPerS, Some(made.len() as f64 / total.seconds()));
        let age = |d: &DecisionRecord| Some(seconds(d.at_ns.saturating_sub(d.card.as_ref()?.read_ns?)));
        let mut ages: Vec<f64> = decisions.iter().filter_map(age).collect();
        put(Key::ReadingAge, stats::nearest_rank(&mut ages, 0.95));
        (self.values, self.decisions) = (values, made.len());
        self.decided = DecisionCount::of(&made);
    }

    /// Stretch needs what the same tasks take alone: the median of the baselines' measured epochs on the same machine. A baseline has one
    /// card, and says nothing of a task on several.
    pub(super) fn take_baselines(&mut self, baselines: &[Cell]) {
        // A baseline has the whole device: an instance is less, and so is a set of cores for a member with more threads than it has.
        let on_instances = self.cards.iter().any(|card| card.scope.starts_with("mig:"));
        let cores = self.cards.iter().map(|card| card.cores.len() as u64).filter(|cores| *cores > 0).min();
        let is_wide = |r: &Repetition| {
            let threads = |m: &MemberRecord| m.hello.as_ref()?.get("threads")?.as_u64();
            cores.is_some_and(|cores| r.record().members.iter().filter_map(threads).any(|threads| threads > cores))
        };
        let epoch_s = |solo: &str| {
            let cell = baselines.iter().find(|c| c.is_solo() && c.name() == solo)?;
            if on_instances || cell.counted().any(is_wide) {
                return None;
            }
            let runs = cell.counted().filter(|r| r.device == self.origin);
            let epochs = runs.flat_map(|r| &r.epochs).filter(|e| e.measured && e.end_ns > e.start_ns);
            stats::median(&mut epochs.map(|e| seconds(e.end_ns - e.start_ns)).collect::<Vec<_>>())
        };
        let mut known = BTreeMap::<&str, Option<f64>>::new();
        for task in &self.tasks {
            known.entry(&task.solo).or_insert_with_key(|solo| epoch_s(solo));
        }
        let of = |task: &TaskRecord, times: &TaskTimes| {
            if task.cards != 1 {
                return None;
            }
            let alone_s = f64::from(task.epochs) * known.get(task.solo.as_str()).copied()??;
            Some(seconds(times.completing_ns?) / alone_s).filter(|stretch| stretch.is_finite())
        };
        let stretch: Vec<Option<f64>> = self.tasks.iter().zip(&self.numbers.tasks).map(|(task, times)| of(task, times)).collect();
        let mut told: Vec<f64> = stretch.iter().flatten().copied().collect();
        if !told.is_empty() {
            self.values.insert(Key::StretchMean, told.iter().sum::<f64>() / told.len() as f64);
        }
        if let Some(p95) = stats::nearest_rank(&mut told, 0.95) {
            self.values.insert(Key::StretchP95, p95);
        }
        self.stretch = stretch;
    }
}
