//! Recommendations: the guidelines, then the decision per workload, then how the numbers were made.

use std::collections::HashMap;

use collo_analysis::campaign::{Analysis, limitation};
use collo_analysis::cell::Cell;
use collo_figures::document::{Block, Section, Table, TableCell};
use collo_figures::modes::{mode_label, mode_order};
use collo_guidelines::groups::collocate::{knees, rank_by_gain};
use collo_guidelines::groups::energy::rank_by_energy;
use collo_guidelines::verdict::{self, Cause, Groups, Ranking};
use collo_quantity::Key;
use collo_quantity::number;
use collo_quantity::stats::RatioVerdict;

use crate::parts::absent::nothing;
use crate::parts::figure::tags;
use crate::report::Report;

/// Maximum rows of the decision table: more would not fit the first screen.
const ROWS: usize = 14;

/// The scope of every sentence.
const NO_FURTHER: &str = "Everything here is about what was measured: nothing follows for other models, batch sizes, devices or drivers. Each interval contains \
                          its truth in 95 of 100 cases, by itself; of many intervals some miss.";

/// The caveat of a verdict on a simulated GPU.
const CIRCULAR: &str =
    "The simulated GPU is calibrated on the published study, so that agreement with it would be circular and is not judged.";

pub fn section(report: &Report) -> Section {
    let analysis = &report.analysis;
    let mut blocks: Vec<Block> = limitation::sentence(analysis).map(Block::Text).into_iter().collect();
    blocks.extend(super::advice::blocks(analysis, &report.guidelines));
    // What keeps a group from a decision is read in its runs.
    let decides = nothing(analysis).is_none() && !analysis.is_reported();
    if decides && analysis.groups().any(|c| c.record.degree > 1 && !c.serves()) {
        blocks.push(Block::Table(decisions(analysis)));
    }
    let circular = analysis.campaign.device.simulated && analysis.campaign.device.kind == "gpu";
    let notes: Vec<String> = crate::parts::notes::notes(analysis).into_iter().chain(circular.then(|| CIRCULAR.into())).collect();
    if !notes.is_empty() {
        blocks.push(Block::Notes(notes));
    }
    if nothing(analysis).is_none() {
        blocks.push(Block::Remark(NO_FURTHER.into()));
    }
    let finding = nothing(analysis).unwrap_or_default().to_string();
    let what = if analysis.campaign.device.kind == "cpu" { "How to use these cores" } else { "How to use this GPU" };
    Section { title: what, finding, blocks, ..Section::default() }
}

/// No group beats running in turn: shown with the runner-up.
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
        let (name, what) = crate::parts::panels::describe(analysis, workload);
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

/// Workload against aim. A mode is named only if it is shown to be better than running in turn; modes that tie are all named, the simplest
/// first. *In turn* is named only if every group was shown not to be better; else the aim is open.
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
    TableCell { mode: cell.record.sharing.clone(), ..TableCell::with_note(place(cell), number) }
}

/// What is known is not enough: the group that comes nearest, and why it decides nothing.
fn open(nearest: Option<String>, cause: Option<&Cause>) -> TableCell {
    let nearest = nearest.map(|text| format!("nearest: {text}"));
    let cause = cause.map(|cause| cause.reason().map_or_else(|| cause.text(), |why| format!("{}: {why}", cause.text())));
    let note: Vec<String> = nearest.into_iter().chain(cause).collect();
    TableCell::with_note("open", note.join("; "))
}

/// The leaders of a ranking, the simplest mode first.
fn ranked(analysis: &Analysis, ranking: &Ranking, quantity: Key, what: &str) -> TableCell {
    let leaders = ranking.leaders();
    let Some(tie) = ranking.tie(analysis.campaign.thresholds.relevant_ratio) else {
        return named(ranking.first, quantity, what);
    };
    let names: Vec<String> = leaders.iter().map(|c| place(c)).collect();
    let numbers: Vec<String> = leaders.iter().filter_map(|c| c.get(quantity)).map(number::with_interval).collect();
    let note = format!("{what} {}; {tie}", numbers.join(", "));
    TableCell { mode: leaders[0].record.sharing.clone(), ..TableCell::with_note(names.join(" or "), note) }
}

/// `MPS ×7`.
fn place(cell: &Cell) -> String {
    format!("{} ×{}", mode_label(&cell.record.sharing), cell.record.degree)
}

fn throughput(analysis: &Analysis, subject: &DecisionSubject) -> TableCell {
    let threshold = analysis.campaign.thresholds.relevant_ratio;
    let here: Vec<&Cell> = subject.for_throughput.iter().copied().filter(|c| c.gain_verdict.is_some()).collect();
    let is_better = |c: &&Cell| c.is_valid() && c.gain_verdict.as_ref().is_some_and(|v| v.verdict == RatioVerdict::Better);
    let better: Vec<&Cell> = here.iter().copied().filter(is_better).collect();
    if let Some(ranking) = rank_by_gain(&better, threshold) {
        return ranked(analysis, &ranking, Key::ThroughputGain, Key::ThroughputGain.head());
    }
    let groups = Groups::of(analysis, subject.groups.iter().copied(), Key::ThroughputGain);
    let gain = |c: &Cell| c.get(Key::ThroughputGain).map_or(f64::NEG_INFINITY, |q| q.estimate);
    let next = here.iter().max_by(|a, b| gain(a).total_cmp(&gain(b)));
    let next = next.and_then(|c| Some(format!("{}, gain {}", place(c), number::with_interval(c.get(Key::ThroughputGain)?))));
    let is_not =
        |c: &&&Cell| c.gain_verdict.as_ref().is_some_and(|v| matches!(v.verdict, RatioVerdict::Same | RatioVerdict::Worse));
    let refused = groups.judged.iter().filter(is_not).count();
    answer(&groups, refused, next)
}

/// *In turn*, if every group was shown not to be better; else open.
fn answer(groups: &Groups, refused: usize, next: Option<String>) -> TableCell {
    match verdict::of_some(0, refused, groups.judged.len() - refused + groups.missing()) {
        verdict::Holds::No => in_turn(next.map_or_else(String::new, |next| format!("next: {next}"))),
        _ => open(next, groups.cause()),
    }
}

/// The largest group whose slowest member is certainly within the experiment's threshold.
fn gentle(analysis: &Analysis, subject: &DecisionSubject) -> TableCell {
    let limit = analysis.campaign.thresholds.slowdown;
    let slowest = |c: &Cell, high: bool| {
        let bound = |m: &collo_analysis::cell::Member| m.get(Key::Slowdown).and_then(|q| if high { q.high } else { q.low });
        let bounds: Option<Vec<f64>> = c.members.iter().map(bound).collect();
        bounds.and_then(|b| b.into_iter().reduce(f64::max))
    };
    let groups = Groups::of(analysis, subject.groups.iter().copied(), Key::Slowdown);
    let fits = |c: &&&Cell| slowest(c, true).is_some_and(|s| s <= limit);
    let simple = |c: &Cell| std::cmp::Reverse(mode_order(&c.record.sharing).0);
    if let Some(cell) = groups.judged.iter().filter(fits).max_by_key(|c| (c.record.degree, simple(c))) {
        return named(cell, Key::Slowdown, Key::Slowdown.head());
    }
    let slowdown = |c: &Cell| c.get(Key::Slowdown).map_or(f64::INFINITY, |q| q.estimate);
    let with = subject.groups.iter().filter(|c| c.get(Key::Slowdown).is_some());
    let next = with.min_by(|a, b| slowdown(a).total_cmp(&slowdown(b)));
    let next = next.and_then(|c| Some(format!("{}, slowdown {}", place(c), number::with_interval(c.get(Key::Slowdown)?))));
    let refused = groups.judged.iter().filter(|c| slowest(c, false).is_some_and(|s| s > limit)).count();
    answer(&groups, refused, next)
}

fn energy(analysis: &Analysis, subject: &DecisionSubject) -> TableCell {
    let threshold = analysis.campaign.thresholds.relevant_ratio;
    let groups = Groups::of(analysis, subject.groups.iter().copied(), Key::EnergyOfSolo);
    let least = 1.0 / (1.0 + threshold);
    let bounds = |c: &Cell| c.get(Key::EnergyOfSolo).and_then(|q| q.low.zip(q.high));
    let saving: Vec<&Cell> = groups.judged.iter().copied().filter(|c| bounds(c).is_some_and(|(_, high)| high < least)).collect();
    if let Some(ranking) = rank_by_energy(&saving, threshold) {
        return ranked(analysis, &ranking, Key::EnergyOfSolo, "÷ in turn");
    }
    let joules = |c: &Cell| c.get(Key::EnergyOfSolo).map_or(f64::INFINITY, |q| q.estimate);
    let with: Vec<&&Cell> = subject.groups.iter().filter(|c| c.get(Key::EnergyOfSolo).is_some()).collect();
    if with.is_empty() {
        let why = subject.groups.iter().find_map(|c| c.absent.get(&Key::EnergyPerEpoch));
        return TableCell::with_note("–", why.map_or(Key::EnergyOfSolo.absent, String::as_str));
    }
    let next = with.into_iter().min_by(|a, b| joules(a).total_cmp(&joules(b)));
    let next =
        next.and_then(|c| Some(format!("{}, {} of its joules", place(c), number::with_interval(c.get(Key::EnergyOfSolo)?))));
    let refused = groups.judged.iter().filter(|c| bounds(c).is_some_and(|(low, _)| low >= least)).count();
    answer(&groups, refused, next)
}

/// The group on instances with most throughput whose members certainly do not disturb each other.
fn isolation(analysis: &Analysis, subject: &DecisionSubject) -> TableCell {
    let on_slices: Vec<&Cell> = subject.groups.iter().copied().filter(|c| c.is_separated()).collect();
    if on_slices.is_empty() {
        return TableCell::with_note("–", "no group on slices");
    }
    let groups = Groups::of(analysis, on_slices.iter().copied(), Key::SlowdownOnSlice);
    let limit = 1.0 + analysis.campaign.thresholds.relevant_ratio;
    let bounds = |c: &Cell| c.get(Key::SlowdownOnSlice).and_then(|q| q.low.zip(q.high));
    let apart = |c: &&&Cell| bounds(c).is_some_and(|(_, high)| high <= limit);
    let gain = |c: &Cell| c.get(Key::ThroughputGain).map_or(f64::NEG_INFINITY, |q| q.estimate);
    match groups.judged.iter().filter(apart).max_by(|a, b| gain(a).total_cmp(&gain(b))) {
        Some(cell) => named(cell, Key::SlowdownOnSlice, "÷ alone there"),
        None => {
            let disturbed = groups.judged.iter().filter(|c| bounds(c).is_some_and(|(low, _)| low > limit)).count();
            let with = on_slices.iter().filter_map(|c| Some((c, c.get(Key::SlowdownOnSlice)?)));
            let least = with.min_by(|a, b| a.1.estimate.total_cmp(&b.1.estimate));
            let next = least.map(|(cell, q)| format!("{}, {} ÷ alone there", place(cell), number::with_interval(q)));
            answer(&groups, disturbed, next)
        }
    }
}
