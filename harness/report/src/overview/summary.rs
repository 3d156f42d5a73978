//! The first screen: the answer for each workload or mix, why it may be doubted, the table of what to run, and the map of gains.

use collo_analysis::campaign::{Analysis, limitation};
use collo_analysis::cell::Cell;
use collo_figures::document::{Answer, Block, Section, Table, TableCell};
use collo_guidelines::report_json::{Decided, DecisionJson};
use collo_quantity::{Key, number};

use super::decision::{Choice, Subject, subjects};
use super::{advice, answer, doubts};
use crate::parts::absent::nothing;
use crate::parts::figure::tags;
use crate::parts::panels::mode_and_degree;
use crate::report::Report;
use crate::time::matrix;

/// Maximum rows of the decision table: more would not fit the first screen.
const ROWS: usize = 14;
/// Maximum paragraphs of the answer, and of those of the other subjects, which are folded.
const PARAGRAPHS: usize = 4;
const FOLDED: usize = 40;

/// True if a campaign has groups to decide about. What keeps a group from a decision is read in its runs.
fn decides(analysis: &Analysis) -> bool {
    let has_groups = || analysis.groups().any(|c| c.record.degree > 1 && !c.serves());
    nothing(analysis).is_none() && !analysis.is_reported() && has_groups()
}

/// What is decided about, if anything is.
fn decided(analysis: &Analysis) -> Vec<Subject<'_>> {
    if decides(analysis) { subjects(analysis) } else { Vec::new() }
}

/// What its workloads and mixes decide, as `report.json` has it.
pub fn decisions_json(analysis: &Analysis) -> Vec<DecisionJson> {
    decided(analysis).iter().map(|subject| subject.json(analysis)).collect()
}

/// Every sentence of the answer, those that the page folds included.
pub fn answer(report: &Report) -> Vec<String> {
    let (shown, folded) = paragraphs(report, &decided(&report.analysis));
    shown.into_iter().chain(folded).collect()
}

pub fn section(report: &Report) -> Section {
    let analysis = &report.analysis;
    let subjects = decided(analysis);
    let (paragraphs, others) = paragraphs(report, &subjects);
    // Where something answers, nothing is missing.
    let finding = nothing(analysis).filter(|_| paragraphs.is_empty()).unwrap_or_default().to_string();
    let mut blocks = vec![Block::Answer(Answer { paragraphs, doubts: doubts::all(analysis) })];
    if !others.is_empty() {
        let title = match report.read {
            // What its sentences are about is not in the file.
            Some(_) => number::count(others.len(), "more sentence"),
            None => format!("{} about other workloads and mixes", number::count(others.len(), "more answer")),
        };
        let rest = others.len().saturating_sub(FOLDED);
        let rest = (rest > 0).then(|| Block::Remark(format!("{rest} more follow from the gains in All cells.")));
        blocks.push(Block::Folded(title, others.into_iter().take(FOLDED).map(Block::Text).chain(rest).collect()));
    }
    if !subjects.is_empty() {
        blocks.push(Block::Table(decisions(analysis, &subjects)));
    }
    blocks.extend(report.read.as_ref().and_then(|read| stored(analysis, &read.decisions).if_any()));
    blocks.extend(matrix::of(analysis).map(Block::Figure));
    let what = match analysis.campaign.device.kind.as_str() {
        _ if analysis.cells.is_empty() && !analysis.watching.is_empty() => "Which observer to use",
        "cpu" => "How to use these cores",
        _ => "How to use this GPU",
    };
    Section { title: what, finding, blocks, ..Section::default() }
}

/// The sentences of the answer: those that the page shows, and those that it folds.
fn paragraphs(report: &Report, subjects: &[Subject]) -> (Vec<String>, Vec<String>) {
    if let Some(read) = report.read.as_ref().filter(|read| !read.answer.is_empty()) {
        let mut stored = read.answer.clone();
        let others = stored.split_off(stored.len().min(PARAGRAPHS));
        return (stored, others);
    }
    let mut paragraphs = answer::paragraphs(&report.analysis, subjects);
    let others = paragraphs.split_off(paragraphs.len().min(PARAGRAPHS));
    if subjects.is_empty() {
        paragraphs = advice::statements(&report.guidelines);
    }
    paragraphs.extend(limitation::sentence(&report.analysis));
    (paragraphs, others)
}

/// Workload against aim. A mode is named only if it is shown to be better than running in turn; modes that tie are all named, the simplest
/// first. *In turn* is named only if every group was shown not to be better; else the aim is open.
fn decisions(analysis: &Analysis, subjects: &[Subject]) -> Table {
    let within = number::percent_as_written(analysis.campaign.thresholds.slowdown - 1.0);
    let gentle_head = format!("slowest member within {within}");
    let on_a_card = analysis.campaign.device.kind == "gpu";
    let mut heads = vec!["workload", "most throughput", gentle_head.as_str(), "least energy"];
    if on_a_card {
        heads.push("isolation");
    }
    let mut table = Table::with(&heads);
    table.caption = "What to run".into();
    table.tags = tags(analysis);
    if subjects.len() > ROWS {
        table.caption = format!("What to run: the first {ROWS} of {}; all cells are below", subjects.len());
    }
    if subjects.iter().any(|subject| subject.groups.len() > 1) {
        table.caption.push_str("; intervals allow for the group being picked from several");
    }
    for subject in subjects.iter().take(ROWS) {
        let mut row = vec![
            TableCell::with_note(subject.name.clone(), subject.what.clone()),
            field(subject, &subject.throughput(analysis), Key::ThroughputGain, &|n| {
                format!("{} {n}", Key::ThroughputGain.head())
            }),
            field(subject, &subject.gentle(analysis), Key::Slowdown, &|n| format!("{} {n}", Key::Slowdown.head())),
            field(subject, &subject.energy(analysis), Key::EnergyOfSolo, &|n| format!("{n} of the energy in turn")),
        ];
        if on_a_card {
            let alone = |n: &str| format!("{n} of the time alone there");
            row.push(field(subject, &subject.isolation(analysis), Key::SlowdownOnSlice, &alone));
        }
        table.row(row);
    }
    table
}

/// What a report that was read decided.
fn stored(analysis: &Analysis, decisions: &[DecisionJson]) -> Table {
    let mut table = Table::with(&["workload", "most throughput"]);
    table.caption = "What to run".into();
    table.tags = tags(analysis);
    if decisions.len() > ROWS {
        table.caption = format!("What to run: the first {ROWS} of {}; all are in report.json", decisions.len());
    }
    for decision in decisions.iter().take(ROWS) {
        let cells: Vec<&Cell> = decision.cells.iter().filter_map(|label| analysis.cell(label)).collect();
        let (way, mode) = match (decision.throughput, cells.first()) {
            (Decided::Run, Some(first)) => {
                let names: Vec<String> = cells.iter().map(|cell| mode_and_degree(cell)).collect();
                (names.join(" or "), first.record.sharing.clone())
            }
            (Decided::Run, None) => (decision.cells.join(" or "), String::new()),
            (Decided::InTurn, _) => ("in turn".into(), "solo".into()),
            (Decided::Open, _) => ("open".into(), String::new()),
        };
        let note = decision.reason.clone().unwrap_or_default();
        table.row(vec![TableCell::text(&decision.subject), TableCell { mode, ..TableCell::with_note(way, note) }]);
    }
    table
}

/// A decision, with the numbers that it rests on as a sentence has them.
fn field(subject: &Subject, choice: &Choice, key: Key, sentence: &dyn Fn(&str) -> String) -> TableCell {
    let number = |cell: &Cell| subject.picked(cell, key).as_ref().map(number::with_interval);
    let nearest =
        |cell: &Option<&Cell>| cell.and_then(|cell| Some(format!("{}, {}", mode_and_degree(cell), sentence(&number(cell)?))));
    match choice {
        Choice::Run { leaders, tie } => {
            let names: Vec<String> = leaders.iter().map(|c| mode_and_degree(c)).collect();
            let numbers: Vec<String> = leaders.iter().filter_map(|c| number(c)).collect();
            let numbers = Some(numbers.join(", ")).filter(|n| !n.is_empty()).map(|n| sentence(&n));
            let note: Vec<String> = numbers.into_iter().chain(tie.clone()).collect();
            let mode = leaders.first().map(|c| c.record.sharing.clone()).unwrap_or_default();
            TableCell { mode, ..TableCell::with_note(names.join(" or "), note.join("; ")) }
        }
        Choice::InTurn { nearest: cell } => {
            let note = nearest(cell).map_or_else(String::new, |text| format!("nearest: {text}"));
            TableCell { mode: "solo".into(), ..TableCell::with_note("in turn", note) }
        }
        Choice::Open { nearest: cell, cause } => {
            let nearest = nearest(cell).map(|text| format!("nearest: {text}"));
            let cause =
                cause.as_ref().map(|cause| cause.reason().map_or_else(|| cause.text(), |why| format!("{}: {why}", cause.text())));
            TableCell::with_note("open", nearest.into_iter().chain(cause).collect::<Vec<_>>().join("; "))
        }
        Choice::Absent(why) => TableCell::with_note("–", why.clone()),
    }
}
