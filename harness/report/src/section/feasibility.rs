//! What ran, what ran out of memory, what was refused.

use super::common::{tags, without};
use super::{Block, Section, Table, TableCell};
use crate::analysis::{Analysis, Cell};
use crate::number;
use crate::plot::mode_order;
use crate::render::words;

const ID: &str = "feasibility";
const TITLE: &str = "Feasibility";

pub fn section(analysis: &Analysis) -> Section {
    let refusals = &analysis.campaign.plan.refusals;
    if analysis.cells.is_empty() && refusals.is_empty() {
        return without(ID, TITLE, "The plan has no cell and no refusal.");
    }
    let mut blocks = vec![];
    if !analysis.cells.is_empty() {
        blocks.push(Block::Table(frontier(analysis)));
    }
    let failed = failures(analysis);
    if !failed.is_empty() {
        blocks.push(Block::Notes(failed));
    }
    if !refusals.is_empty() {
        let mut table = Table::with(&["refused cell", "sharing", "reason", "hint"]);
        table.caption = "Cells that cannot run here".into();
        for r in refusals {
            let hint = r.hint.clone().unwrap_or_default();
            table.row([&r.cell, &r.sharing, &r.reason, &hint].map(TableCell::text).to_vec());
        }
        blocks.push(Block::Table(table));
    }
    Section { id: ID, title: TITLE, chip: None, finding: finding(analysis), blocks }
}

/// Every way in which the runs of a cell ended otherwise, with how many did.
fn failures(analysis: &Analysis) -> Vec<String> {
    let mut found: Vec<(&str, String, usize)> = Vec::new();
    for r in analysis.cells.iter().flat_map(|c| &c.repetitions).filter(|r| r.record().outcome.word() != "completed") {
        let log = r.record().members.iter().find_map(|m| m.log_tail.last());
        let log = log.map_or_else(String::new, |l| format!("; last line of its log: {l}"));
        let (cell, how) = (r.record().cell.cell.as_str(), format!("{}{log}", why(r)));
        match found.iter_mut().find(|(c, h, _)| *c == cell && *h == how) {
            Some((_, _, n)) => *n += 1,
            None => found.push((cell, how, 1)),
        }
    }
    found.into_iter().map(|(cell, how, n)| format!("`{cell}`, {}: {how}", number::runs(n))).collect()
}

fn why(r: &crate::analysis::Repetition) -> String {
    use collo_store::Outcome as O;
    let word = words::outcome(r.record().outcome.word());
    match &r.record().outcome {
        O::OutOfMemory { member, message } => format!("{word}, member {member}: {message}"),
        O::Crashed { member, status, message } => format!("{word}, member {member} {status} {message}"),
        O::TimedOut { member, phase, message } => format!("{word} in {phase}, member {member}: {message}"),
        O::ProtocolError { member, message } => format!("{word}, member {member}: {message}"),
        O::ModeLost { reason } | O::NotStaged { reason } | O::DeviceLost { reason } => format!("{word}: {reason}"),
        O::Completed | O::Interrupted => word,
    }
}

/// Workload and mode down, degree across.
fn frontier(analysis: &Analysis) -> Table {
    let mut degrees: Vec<u32> = analysis.cells.iter().map(|c| c.record.degree).collect();
    degrees.sort_unstable();
    degrees.dedup();
    let mut rows: Vec<(String, String)> = Vec::new();
    for cell in &analysis.cells {
        let key = (group(cell), cell.record.sharing.clone());
        if !rows.contains(&key) {
            rows.push(key);
        }
    }
    rows.sort_by(|a, b| a.0.cmp(&b.0).then(mode_order(&a.1).cmp(&mode_order(&b.1))));
    let heads: Vec<String> =
        ["workload".into(), "sharing".into()].into_iter().chain(degrees.iter().map(|d| format!("×{d}"))).collect();
    let mut table = Table::with(&heads.iter().map(String::as_str).collect::<Vec<_>>());
    table.caption = "✓ ran, ✕ did not, empty: not planned".into();
    table.tags = tags(analysis);
    for (workload, sharing) in rows {
        let mut cells = vec![TableCell::text(workload.clone()), TableCell::text(sharing.clone())];
        for degree in &degrees {
            let here = analysis
                .cells
                .iter()
                .filter(|c| group(c) == workload && c.record.sharing == sharing && c.record.degree == *degree);
            let marks: Vec<String> = here.map(mark).collect();
            cells.push(TableCell::text(marks.join(", ")));
        }
        table.row(cells);
    }
    table
}

/// A workload by its solo cell, a mixed group by its members.
fn group(cell: &Cell) -> String {
    match cell.workload() {
        Some(solo) => words::workload(solo),
        None => {
            let mut names: Vec<&str> = cell.record.members.iter().map(|m| m.workload.as_str()).collect();
            names.dedup();
            names.join("+")
        }
    }
}

fn mark(cell: &Cell) -> String {
    match cell.outcome() {
        "completed" if cell.repetitions.is_empty() => "not run".into(),
        "completed" => "✓".into(),
        "missing" if cell.repetitions.is_empty() => "not run".into(),
        other => {
            let completed = cell.outcomes.get("completed").copied().unwrap_or(0);
            let all: usize = cell.outcomes.values().sum();
            format!("✕ {} ({completed} of {} completed)", words::outcome(other), number::runs(all))
        }
    }
}

fn finding(analysis: &Analysis) -> String {
    let (oom, refused) = (analysis.count("out_of_memory"), analysis.campaign.plan.refusals.len());
    let ran = analysis.cells.iter().filter(|c| !c.counted.is_empty()).count();
    let mut text = format!("{ran} of {} ran", number::count(analysis.cells.len(), "planned cell"));
    if oom > 0 {
        text += &format!("; {} ran out of memory, which is a result", number::runs(oom));
    }
    match refused {
        0 => text += "; none was refused.",
        n => text += &format!("; {} beside them {} refused.", number::count(n, "cell"), if n == 1 { "was" } else { "were" }),
    }
    text
}
