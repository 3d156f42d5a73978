//! Training beside serving: may something train on a GPU that answers requests, and under which mode?
//!
//! Requests must be answered: with a limit, 99 % of them within it, which is a p99 within the limit; without one, the p99 must
//! not be more than twice the solo p99. The operator chooses by the modes that satisfy this, and by the training speed in each.

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::server::Server;
use collo_analysis::cell::verdict::CellVerdict;
use collo_analysis::cell::{Cell, Member};
use collo_quantity::{Key, number};

use super::collocate::mode_name;
use crate::published::Published;
use crate::rule::evidence::Evidence;
use crate::rule::{Claim, Guideline, nothing, on_a_card};
use crate::verdict::{self, Agreement, Groups, Holds, Next};

/// The share of the requests that must be answered within the limit.
pub const IN_TIME_RATIO: f64 = 0.99;
/// Without a limit: the accepted ratio of the p99 to the solo p99.
pub const LATER: f64 = 2.0;

const PUBLISHED: Published = Published::new(
    "A scheduler that delays training kernels by their resource demands (Orion) gives a serving job a better tail latency than earlier methods, and saves up to 1.49 times the cost of training on a GPU of its own.",
    "kernel scheduler: up to 1.49× cheaper training",
    "Strati et al., EuroSys 2024, doi 10.1145/3627703.3629578",
);

/// Whether the requirement on requests is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promise {
    /// Certainly: by the whole interval.
    Kept,
    /// Certainly not.
    Missed,
    Open,
}

/// The quantity by which a server is judged.
pub fn criterion(server: &Server) -> Key {
    if server.serving.slo_s.is_some() { Key::WithinSlo } else { Key::LatencyP99OfSolo }
}

/// Does it meet the requirement? Without the quantity that is open in a report: whether requests were left unanswered is read in runs.
pub fn kept(server: &Server) -> Promise {
    let Some(q) = server.get(criterion(server)) else {
        // The p99 lies among requests that were never answered: there is no later.
        let lost = server.leaves_unanswered() && server.cell.count() > 1;
        return if lost { Promise::Missed } else { Promise::Open };
    };
    let limited = server.serving.slo_s.is_some();
    match q.low.zip(q.high) {
        Some((low, _)) if limited && low >= IN_TIME_RATIO => Promise::Kept,
        Some((_, high)) if limited && high < IN_TIME_RATIO => Promise::Missed,
        Some((_, high)) if !limited && high <= LATER => Promise::Kept,
        Some((low, _)) if !limited && low > LATER => Promise::Missed,
        // In some repetition nobody was answered in time: that has no interval, and needs none.
        None if limited && q.n > 1 && q.estimate < IN_TIME_RATIO => Promise::Missed,
        _ => Promise::Open,
    }
}

/// Of all servers of a cell.
pub fn all_kept(cell: &Cell) -> Promise {
    let each: Vec<Promise> = cell.servers().iter().map(kept).collect();
    match () {
        () if each.contains(&Promise::Missed) => Promise::Missed,
        () if !each.is_empty() && each.iter().all(|k| *k == Promise::Kept) => Promise::Kept,
        () => Promise::Open,
    }
}

/// The training members' throughput: the sum of their progress relative to running alone; `None` if one of them has no slowdown.
fn progress(cell: &Cell) -> Option<f64> {
    let each = cell.trainers().map(|m| Some(1.0 / m.get(Key::Slowdown)?.estimate));
    each.sum::<Option<f64>>().filter(|p| *p > 0.0)
}

fn evidence(server: &Server, name: Key) -> Option<Evidence> {
    let value = server.get(name)?.clone();
    Some(Evidence::new(server.cell.name(), None, name, value))
}

/// The server of a cell that is furthest from meeting the requirement.
fn weakest(cell: &Cell) -> Option<Server<'_>> {
    let rank = |s: &Server| match kept(s) {
        Promise::Missed => 0,
        Promise::Open => 1,
        Promise::Kept => 2,
    };
    cell.servers().into_iter().min_by_key(rank)
}

/// `answers 99.8 ±0.1 % of the requests within 100 ms`, or `has a p99 of 1.42 ±0.11 times that alone`.
fn said(server: &Server) -> String {
    let q = server.get(criterion(server));
    match (server.serving.slo_s, q) {
        (Some(slo), Some(q)) => {
            format!("answers {} % of the requests within {}", number::scaled(q, 100.0), number::duration(slo))
        }
        (None, Some(q)) => format!("has a p99 of {} times that alone", number::with_interval(q)),
        (_, None) => format!("cannot be judged: {}", server.absent(criterion(server)).unwrap_or("it has no usable run")),
    }
}

/// `tiny` takes 1.31 ±0.02 times as long as alone; the slowest of equal ones.
fn trained(cell: &Cell) -> Option<String> {
    let slowdown = |m: &&Member| m.get(Key::Slowdown).map(|q| q.estimate);
    let known = cell.trainers().filter_map(|m| Some((slowdown(&m)?, m)));
    let (_, slowest) = known.max_by(|a, b| a.0.total_cmp(&b.0))?;
    let name = &slowest.spec.workload;
    let who = if cell.trainers().count() > 1 { format!("the slowest training member, `{name}`,") } else { format!("`{name}`") };
    Some(format!("{who} takes {} times as long as alone", number::with_interval(slowest.get(Key::Slowdown)?)))
}

/// The server of a cell that misses the requirement even when alone, as the cell in which it does.
fn missed_alone<'a>(analysis: &'a Analysis, cell: &Cell) -> Option<&'a Cell> {
    let alone = |s: &Server| analysis.solo(s.solo).filter(|c| c.is_valid() && all_kept(c) == Promise::Missed);
    cell.servers().iter().find_map(alone)
}

/// The groups that train beside serving, divided by whether they can be judged.
fn beside(analysis: &Analysis) -> Groups<'_> {
    let mut found = Groups { judged: Vec::new(), unjudged: Vec::new(), out_of_memory: Vec::new() };
    for cell in analysis.groups().filter(|c| c.serves() && c.trainers().count() > 0) {
        let cause = || verdict::Cause::of(analysis, cell, criterion(cell.servers().first()?));
        match cause() {
            _ if cell.is_valid() => found.judged.push(cell),
            _ if cell.verdict() == CellVerdict::OutOfMemory => found.out_of_memory.push(cell),
            Some(cause) => found.unjudged.push((cell, cause)),
            None => {}
        }
    }
    found
}

/// How many times as long a window has the requests that every server of these groups needs; `None` where they are there.
fn lacks_times(groups: &[&Cell]) -> Option<usize> {
    groups.iter().flat_map(|c| c.servers()).filter_map(|s| s.lacks_times()).max()
}

/// The command that measures training beside serving if it is missing.
fn measured_by(analysis: &Analysis) -> String {
    format!("collo run {}", if on_a_card(analysis) { "training-beside-serving" } else { "serve-cpu" })
}

pub fn guideline(analysis: &Analysis) -> Option<Guideline> {
    if !analysis.cells.iter().any(Cell::serves) {
        return None;
    }
    let scope = beside(analysis);
    let groups = scope.judged.clone();
    let of = |wanted: Promise| groups.iter().copied().filter(move |c| all_kept(c) == wanted);
    let best = of(Promise::Kept).max_by(|a, b| progress(a).unwrap_or(0.0).total_cmp(&progress(b).unwrap_or(0.0)));
    // What a server does alone decides nothing about the groups of another one. Where no group trains beside one, the servers are asked.
    let asked: Vec<&Cell> = match groups.len() + scope.missing() + scope.out_of_memory.len() {
        0 => analysis.cells.iter().filter(|c| c.is_solo() && c.serves()).collect(),
        _ => groups.iter().copied().chain(scope.unjudged.iter().map(|(c, _)| *c)).collect(),
    };
    let misses = |c: &&&Cell| c.is_valid() && all_kept(c) == Promise::Missed || missed_alone(analysis, c).is_some();
    let missed = asked.iter().filter(misses).count();
    let holds = match best {
        Some(_) => Holds::Yes,
        None => verdict::of_some(0, missed, asked.len() - missed),
    };
    // Less load is the answer only where every server is asked for too much.
    let each_alone: Option<Vec<&Cell>> = asked.iter().map(|c| missed_alone(analysis, c)).collect();
    let alone = each_alone.and_then(|cells| cells.first().copied());
    // Of those that miss it, the one that comes nearest.
    let share = |c: &Cell| {
        let q = weakest(c).and_then(|s| Some((s.serving.slo_s.is_some(), s.get(criterion(&s))?.estimate)));
        q.map_or(f64::NEG_INFINITY, |(limit, x)| if limit { x } else { -x })
    };
    let nearest = groups.iter().copied().max_by(|a, b| share(a).total_cmp(&share(b)));
    let shown = best.or(alone.filter(|_| holds == Holds::No)).or(nearest);
    let advice = best
        .map_or_else(String::new, |c| format!("Train beside serving under {}: `{}`.", mode_name(&c.record.sharing), c.name()));
    let otherwise = if alone.is_some() { "reduce the serving load first." } else { "do not train beside serving here." };
    let finding = match (shown, holds) {
        (None, _) => nothing(&scope, "its requests", "No member trains beside a serving one in this experiment."),
        (Some(cell), _) => {
            let server = weakest(cell);
            let first = server.map_or_else(String::new, |s| format!("`{}` {}", cell.name(), said(&s)));
            let alone = if cell.is_solo() { ", with nothing beside it" } else { "" };
            let beside = trained(cell).map_or_else(String::new, |t| format!("; {t}"));
            let kept = match (groups.len(), of(Promise::Kept).count()) {
                (0 | 1, _) => String::new(),
                (all, 0) => format!("; none of {} certainly meets the requirement", number::count(all, "group")),
                (all, 1) => format!("; 1 of {} certainly meets the requirement", number::count(all, "group")),
                (all, n) => format!("; {n} of {} certainly meet the requirement", number::count(all, "group")),
            };
            let short = lacks_times(&groups).filter(|_| holds == Holds::Open).map_or_else(String::new, |times| {
                format!("; the window of a run has too few requests for a p99: one {times} times as long has them (`window`)")
            });
            format!("{first}{alone}{beside}{kept}{short}.")
        }
    };
    let quantities =
        groups.iter().flat_map(|c| c.servers()).flat_map(|s| [evidence(&s, criterion(&s)), evidence(&s, Key::LatencyP99)]);
    let again = groups.iter().map(|c| c.count()).max();
    // More repetitions of a window that is too short are no answer.
    let next = if lacks_times(&groups).is_some() {
        Next::default()
    } else {
        verdict::next(analysis, &scope, again, || measured_by(analysis))
    };

    Some(
        Claim {
            id: "serving",
            question: "May training run beside serving?",
            advice,
            otherwise: otherwise.into(),
            finding,
            holds,
            // It is about a scheduler of kernels, which no mode here is.
            agrees: Agreement::NotComparable,
            key: shown.and_then(weakest).and_then(|s| evidence(&s, criterion(&s))),
            tested: format!(
                "some group that trains beside serving answers {} of the requests within the limit (`slo`), by the whole interval; without a limit its p99 \
                 is at most {LATER} times that alone; a group misses it if its server does so alone",
                number::percent(IN_TIME_RATIO)
            ),
            evidence: quantities.flatten().collect(),
            published: Some(PUBLISHED),
            scope: Some(scope.scope(analysis)),
            next,
        }
        .conclude(),
    )
}
