//! Every cell in one table, in the order of the plan.

use super::common::{tags, without};
use super::{Block, Row, Section, Table, TableCell, cell_id};
use crate::analysis::{Analysis, Cell};
use crate::number;
use crate::render::words;
use crate::stats::Quantity;

const ID: &str = "cells";
const TITLE: &str = "All cells";

/// More rows than anybody reads make the page slow: the rest is in `report.json`.
const ROWS: usize = 500;
const TOO_MANY: usize = 2000;

pub fn section(analysis: &Analysis) -> Section {
    if analysis.cells.is_empty() {
        return without(ID, TITLE, "The plan has no cell.");
    }
    let (factor, unit) = words::time_unit(analysis.cells.iter().filter_map(|c| c.get("epoch_time_s")));
    let epoch = format!("#epoch {unit}");
    let mut heads = vec![
        "cell",
        "mode",
        "outcome",
        "attested",
        "#runs",
        &epoch,
        "#slowdown",
        "#gain",
        "#fairness",
        "#overlap",
        "#GiB",
        "#CPU %",
    ];
    let energy = analysis.cells.iter().any(|c| c.get("energy_j_per_epoch").is_some());
    if energy {
        heads.push("#J");
    }
    heads.push("validity");
    let mut table = Table::with(&heads);
    table.interactive = true;
    table.tags = tags(analysis);
    table.caption = "Empty: absent, with its reason in report.json; 0 is printed only when measured".into();
    let chosen = chosen(analysis);
    for cell in &chosen {
        table.rows.push(row(analysis, cell, factor, energy));
    }
    let finding = if chosen.len() < analysis.cells.len() {
        format!(
            "{} of {}: those furthest from their baseline; all of them are in report.json.",
            chosen.len(),
            number::count(analysis.cells.len(), "cell")
        )
    } else {
        format!("{}, in the order of the plan.", number::count(analysis.cells.len(), "cell"))
    };
    Section { id: ID, title: TITLE, chip: None, finding, blocks: vec![Block::Table(table)] }
}

/// All cells, or the most telling ones of very many.
fn chosen(analysis: &Analysis) -> Vec<&Cell> {
    let mut cells: Vec<&Cell> = analysis.cells.iter().collect();
    if cells.len() > TOO_MANY {
        let told = |c: &&Cell| c.get("throughput_gain").map_or(0.0, |q| q.estimate.ln().abs());
        cells.sort_by(|a, b| told(b).total_cmp(&told(a)));
        cells.truncate(ROWS);
    }
    cells
}

fn row(analysis: &Analysis, cell: &Cell, factor: f64, energy: bool) -> Row {
    let number_of = |q: Option<&Quantity>, text: &dyn Fn(&Quantity) -> String| match q {
        Some(q) => TableCell { text: text(q), sort: Some(q.estimate), ..Default::default() },
        None => TableCell::default(),
    };
    let with_interval: &dyn Fn(&Quantity) -> String = &number::with_interval;
    let percent: &dyn Fn(&Quantity) -> String = &|q| number::percent(q.estimate);
    let completed = cell.repetitions.iter().filter(|r| r.record().outcome.word() == "completed");
    let verdicts: Vec<_> = completed.map(|r| r.record().attestation.verdict).collect();
    let attested = verdicts.iter().filter(|v| **v == collo_store::AttestationVerdict::Attested).count();
    let attested = if verdicts.is_empty() { String::new() } else { format!("{attested}/{}", verdicts.len()) };
    let outcome = if cell.repetitions.is_empty() { "not run".into() } else { words::outcome(cell.outcome()) };
    let mut cells = vec![
        TableCell::text(cell.name()),
        TableCell::text(cell.record.sharing.clone()),
        TableCell::text(outcome),
        TableCell::text(attested),
        TableCell { text: cell.counted.len().to_string(), sort: Some(cell.counted.len() as f64), ..Default::default() },
        number_of(cell.get("epoch_time_s"), &|q| number::scaled(q, factor)),
        number_of(cell.get("slowdown"), with_interval),
        number_of(cell.get("throughput_gain"), with_interval),
        number_of(cell.get("fairness"), &|q| format!("{:.2}", q.estimate)),
        number_of(cell.get("overlap_ratio"), percent),
        number_of(cell.get("memory_bytes"), &|q| number::gib_number(q.estimate)),
        number_of(cell.get("cpu_ratio"), &|q| format!("{:.0}", q.estimate * 100.0)),
    ];
    if energy {
        cells.push(number_of(cell.get("energy_j_per_epoch"), with_interval));
    }
    cells.push(TableCell::with_note(words::verdict(cell.validity.verdict), cell.validity.reasons.join("; ")));
    Row { id: cell_id(analysis, cell.name()), cells }
}
