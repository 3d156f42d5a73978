//! Recommendations: the guidelines, then the decision per workload, then how the numbers were made.

use std::collections::HashMap;

use super::absent::nothing;
use super::figure::tags;
use crate::Report;
use crate::analysis::{Analysis, Cell, limitation};
use crate::document::{Block, Section, Table, TableCell};
use crate::guideline::{advantage, knees, separated};
use crate::number;
use crate::plot::{mode_label, mode_order};
use crate::quantity::Key;
use crate::stats::{Quantity, RatioVerdict};

/// Maximum rows of the decision table: more would not fit the first screen.
const ROWS: usize = 14;

/// The caveat of a verdict on a simulated GPU.
const CIRCULAR: &str = "The simulated GPU is calibrated on the published study: where a verdict agrees with the study, that is circular; where it does not, the model is simpler than a GPU.";

pub fn section(report: &Report) -> Section {
    let analysis = &report.analysis;
    let mut blocks: Vec<Block> = limitation::sentence(analysis).map(Block::Text).into_iter().collect();
    blocks.extend(super::advice::blocks(analysis, &report.guidelines));
    if nothing(analysis).is_none() && analysis.groups().any(|c| c.record.degree > 1 && !c.serves()) {
        blocks.push(Block::Table(decisions(analysis)));
    }
    let circular = analysis.campaign.device.simulated && analysis.campaign.device.kind == "gpu";
    let notes: Vec<String> =
        crate::section::notes::notes(analysis).into_iter().chain(circular.then(|| CIRCULAR.into())).collect();
    if !notes.is_empty() {
        blocks.push(Block::Notes(notes));
    }
    let finding = nothing(analysis).unwrap_or_default().to_string();
    let what = if analysis.campaign.device.kind == "cpu" { "How to use these cores" } else { "How to use this GPU" };
    Section { id: "summary", title: what, finding, blocks, ..Section::default() }
}

/// Nothing beats running in turn: shown with the runner-up.
fn in_turn(note: String) -> TableCell {
    TableCell { mode: "solo".into(), ..TableCell::with_note("in turn", note) }
}

/// A subject of a decision: a workload, or a mix of several.
struct DecisionSubject<'a> {
    name: String,
    what: String,
    /// Its groups, and of them the candidates for throughput: a workload's knees, all of a mix.
    groups: Vec<&'a Cell>,
    for_throughput: Vec<&'a Cell>,
}

/// Workloads in the order of the plan, then mixes.
fn subjects(analysis: &Analysis) -> Vec<DecisionSubject<'_>> {
    let mut at_knees = HashMap::<&str, Vec<&Cell>>::new();
    for knee in knees(analysis) {
        at_knees.entry(knee.workload).or_default().push(knee.groups[knee.at]);
    }
    let uniform = analysis.workloads().into_iter().map(|workload| {
        let (name, what) = super::panels::describe(analysis, workload);
        let groups: Vec<&Cell> = analysis.of_workload(workload).filter(|c| c.record.degree > 1 && !c.serves()).collect();
        let for_throughput = at_knees.remove(workload).unwrap_or_default();
        DecisionSubject { name, what, groups, for_throughput }
    });
    let mut found: Vec<DecisionSubject> = uniform.filter(|s| !s.groups.is_empty()).collect();
    let mut places = HashMap::<Vec<&str>, usize>::new();
    for cell in analysis.groups().filter(|c| !c.record.is_uniform() && !c.serves()) {
        let who: Vec<&str> = cell.record.members.iter().map(|m| m.solo.as_str()).collect();
        match places.get(&who) {
            Some(at) => {
                found[*at].groups.push(cell);
                found[*at].for_throughput.push(cell);
            }
            None => {
                places.insert(who, found.len());
                let name = collo_store::without_mode(cell.name());
                found.push(DecisionSubject { name, what: "mixed".into(), groups: vec![cell], for_throughput: vec![cell] });
            }
        }
    }
    found
}

/// Workload against aim. A mode is named only if it beats the simpler ones by more than the threshold; if none beats running in
/// turn, that is named.
fn decisions(analysis: &Analysis) -> Table {
    let within = number::percent(analysis.campaign.thresholds.slowdown - 1.0);
    let gentle_head = format!("slowest member within {within}");
    let on_a_card = analysis.campaign.device.kind == "gpu";
    let mut heads = vec!["workload", "most throughput", gentle_head.as_str(), "least energy"];
    if on_a_card {
        heads.push("isolation");
    }
    let mut table = Table::with(&heads);
    table.caption = "What to run".into();
    table.tags = tags(analysis);
    let subjects = subjects(analysis);
    if subjects.len() > ROWS {
        table.caption = format!("What to run: the first {ROWS} of {}; all cells are below", subjects.len());
    }
    for subject in subjects.iter().take(ROWS) {
        let mut row = vec![
            TableCell::with_note(subject.name.clone(), subject.what.clone()),
            throughput(analysis, subject),
            gentle(analysis, subject),
            energy(analysis, subject),
        ];
        if on_a_card {
            row.push(isolation(analysis, subject));
        }
        table.row(row);
    }
    table
}

fn named(cell: &Cell, quantity: Key, what: &str) -> TableCell {
    let number = cell.get(quantity).map_or_else(String::new, |q| format!("{what} {}", number::with_interval(q)));
    let text = format!("{} ×{}", mode_label(&cell.record.sharing), cell.record.degree);
    TableCell { mode: cell.record.sharing.clone(), ..TableCell::with_note(text, number) }
}

/// Of these cells the one of the simplest mode that no other beats: `beats(a, b)` says that `a` is better than `b`, beyond the
/// threshold and its interval.
fn simplest(mut cells: Vec<&Cell>, beats: impl Fn(&Cell, &Cell) -> bool) -> Option<&Cell> {
    cells.sort_by_key(|c| (mode_order(&c.record.sharing).0, c.record.sharing.as_str(), c.record.degree));
    cells.iter().copied().find(|c| !cells.iter().any(|other| beats(other, c)))
}

/// True if a ratio is above 1 by more than the threshold, by the whole interval.
fn clearly(ratio: Option<Quantity>, analysis: &Analysis) -> bool {
    let relevant = 1.0 + analysis.campaign.thresholds.relevant_ratio;
    ratio.is_some_and(|q| q.estimate > relevant && q.low.is_some_and(|low| low > 1.0))
}

fn throughput(analysis: &Analysis, subject: &DecisionSubject) -> TableCell {
    let gain = |c: &Cell| c.get(Key::ThroughputGain).map_or(f64::NEG_INFINITY, |q| q.estimate);
    let here: Vec<&Cell> = subject.for_throughput.iter().copied().filter(|c| c.gain_verdict.is_some()).collect();
    let better = |c: &&Cell| c.is_valid() && c.gain_verdict.as_ref().is_some_and(|v| v.verdict == RatioVerdict::Better);
    let ahead: Vec<&Cell> = here.iter().copied().filter(better).collect();
    // Of one degree the times are compared, else the gains.
    let beats = |a: &Cell, b: &Cell| {
        let same = a.record.degree == b.record.degree;
        let ratio = if same {
            advantage(a, b)
        } else {
            a.get(Key::ThroughputGain).zip(b.get(Key::ThroughputGain)).and_then(|(a, b)| a.over(b))
        };
        clearly(ratio, analysis)
    };
    if let Some(best) = simplest(ahead, beats) {
        return named(best, Key::ThroughputGain, Key::ThroughputGain.head());
    }
    match here.iter().max_by(|a, b| gain(a).total_cmp(&gain(b))) {
        Some(next) => {
            let q = next.get(Key::ThroughputGain).map_or_else(String::new, number::with_interval);
            in_turn(format!("next: {} ×{}, gain {q}", mode_label(&next.record.sharing), next.record.degree))
        }
        None => TableCell::with_note("–", "no group with an interval"),
    }
}

/// The largest group whose slowest member is certainly within the experiment's threshold.
fn gentle(analysis: &Analysis, subject: &DecisionSubject) -> TableCell {
    let limit = analysis.campaign.thresholds.slowdown;
    let slowest = |c: &Cell| {
        let bounds: Option<Vec<f64>> = c.members.iter().map(|m| m.get(Key::Slowdown)?.high).collect();
        bounds.and_then(|b| b.into_iter().reduce(f64::max))
    };
    let groups: Vec<&Cell> = subject.groups.iter().copied().filter(|c| slowest(c).is_some()).collect();
    let fits = |c: &&&Cell| c.is_valid() && slowest(c).is_some_and(|s| s <= limit);
    let simple = |c: &Cell| std::cmp::Reverse(mode_order(&c.record.sharing).0);
    if let Some(cell) = groups.iter().filter(fits).max_by_key(|c| (c.record.degree, simple(c))) {
        return named(cell, Key::Slowdown, Key::Slowdown.head());
    }
    let slowdown = |c: &Cell| c.get(Key::Slowdown).map_or(f64::INFINITY, |q| q.estimate);
    match groups.iter().min_by(|a, b| slowdown(a).total_cmp(&slowdown(b))) {
        Some(next) => {
            let q = next.get(Key::Slowdown).map_or_else(String::new, number::with_interval);
            in_turn(format!("next: {} ×{}, slowdown {q}", mode_label(&next.record.sharing), next.record.degree))
        }
        None => TableCell::with_note("–", "no group with an interval"),
    }
}

fn energy(analysis: &Analysis, subject: &DecisionSubject) -> TableCell {
    let joules = |c: &Cell| c.get(Key::EnergyOfSolo).cloned();
    let groups: Vec<&Cell> = subject.groups.iter().copied().filter(|c| joules(c).is_some()).collect();
    let relevant = 1.0 + analysis.campaign.thresholds.relevant_ratio;
    let saves = |q: &Quantity| q.estimate * relevant < 1.0 && q.high.is_some_and(|high| high < 1.0);
    let saving: Vec<&Cell> = groups.iter().copied().filter(|c| c.is_valid() && joules(c).is_some_and(|q| saves(&q))).collect();
    let beats = |a: &Cell, b: &Cell| clearly(joules(b).zip(joules(a)).and_then(|(b, a)| b.over(&a)), analysis);
    if let Some(best) = simplest(saving, beats) {
        return named(best, Key::EnergyOfSolo, "÷ in turn");
    }
    let least = |c: &Cell| joules(c).map_or(f64::INFINITY, |q| q.estimate);
    match groups.iter().min_by(|a, b| least(a).total_cmp(&least(b))) {
        Some(next) => {
            let q = joules(next).as_ref().map_or_else(String::new, number::with_interval);
            in_turn(format!("next: {} ×{}, {q} of its joules", mode_label(&next.record.sharing), next.record.degree))
        }
        None => {
            let why = subject.groups.iter().find_map(|c| c.absent.get(&Key::EnergyPerEpoch));
            TableCell::with_note("–", why.map_or(Key::EnergyOfSolo.absent, String::as_str))
        }
    }
}

/// The group on instances with most throughput whose members certainly do not disturb each other.
fn isolation(analysis: &Analysis, subject: &DecisionSubject) -> TableCell {
    let of_slices = |c: &&Cell| separated(c) && c.get(Key::SlowdownOnSlice).is_some_and(|q| q.high.is_some());
    let groups: Vec<&Cell> = subject.groups.iter().copied().filter(of_slices).collect();
    let limit = 1.0 + analysis.campaign.thresholds.relevant_ratio;
    let apart = |c: &&&Cell| c.is_valid() && c.get(Key::SlowdownOnSlice).and_then(|q| q.high).is_some_and(|high| high <= limit);
    let gain = |c: &Cell| c.get(Key::ThroughputGain).map_or(f64::NEG_INFINITY, |q| q.estimate);
    match groups.iter().filter(apart).max_by(|a, b| gain(a).total_cmp(&gain(b))) {
        Some(cell) => named(cell, Key::SlowdownOnSlice, "÷ alone there"),
        None if groups.is_empty() => TableCell::with_note("–", "no group on slices"),
        None => in_turn("no group on slices is certainly undisturbed".into()),
    }
}
