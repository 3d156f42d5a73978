//! Every cell in one table, in the order of the plan.

use std::collections::HashMap;

use super::absent::without;
use super::anchor::{TOO_MANY, cell_id, with_reasons};
use super::figure::tags;
use super::values::reading;
use crate::analysis::{Analysis, Cell};
use crate::document::{Block, Row, Section, Table, TableCell, TableLayout};
use crate::format::words;
use crate::number;
use crate::plot::mode_label;
use crate::quantity::Key;
use crate::stats::Quantity;

const ID: &str = "cells";
const TITLE: &str = "All cells";

/// More rows would make the page slow: the rest is in `report.json`.
const ROWS: usize = 500;

type GetQuantity = Box<dyn Fn(&Cell) -> Option<Quantity>>;
type Text = Box<dyn Fn(&Quantity) -> String>;

/// A column of numbers: its head, its value, and its format.
struct Numbers {
    head: String,
    get: GetQuantity,
    text: Text,
    /// A ratio, drawn beside the digits.
    drawn: bool,
}

pub fn section(analysis: &Analysis) -> Section {
    if analysis.cells.is_empty() {
        return without(ID, TITLE, "The plan has no cells.");
    }
    let mut numbers = numbers(analysis);
    // A column that nobody fills says nothing.
    numbers.retain(|n| analysis.cells.iter().any(|c| (n.get)(c).is_some()));
    let mut heads: Vec<String> = ["cell", "mode", "outcome", "attested", "#reps"].map(String::from).to_vec();
    heads.extend(numbers.iter().map(|n| format!("#{}", n.head)));
    heads.push("validity".into());
    let mut table = Table::with(&heads.iter().map(String::as_str).collect::<Vec<_>>());
    table.look = TableLayout::Interactive;
    table.tags = tags(analysis);
    table.caption = "Time: one member's epoch; the makespan of mixed groups; absent where a member serves. Slowdown: mean over members, with the half-width of its \
                     95 % interval; the plot is logarithmic, its line marks 1. \
                     Empty: absent, reason in report.json; 0 is printed only when measured"
        .into();
    let reasons: HashMap<&str, usize> = with_reasons(analysis).enumerate().map(|(i, c)| (c.name(), i)).collect();
    let chosen = chosen(analysis);
    let mut before = None;
    for cell in &chosen {
        let row = row(analysis, cell, &numbers, reasons.get(cell.name()).copied());
        let workload = cell.workload();
        table.rows.push(Row { begins: before.is_some_and(|b| b != workload), ..row });
        before = Some(workload);
    }
    let all = number::count(analysis.cells.len(), "cell");
    let finding = if chosen.len() < analysis.cells.len() {
        format!(
            "{} of {all}: those that failed, then those furthest from running in turn; all of them are in `report.csv` and `report.json`.",
            chosen.len()
        )
    } else {
        format!("{all}, in the order of the plan.")
    };
    Section { id: ID, title: TITLE, chip: None, finding, blocks: vec![Block::Table(table)] }
}

fn numbers(analysis: &Analysis) -> Vec<Numbers> {
    let time = |c: &Cell| c.get(Key::EpochTime).or_else(|| c.get(Key::Makespan)).cloned();
    let (factor, unit) = match analysis.cells.iter().filter_map(time).map(|q| q.estimate).reduce(f64::max) {
        Some(longest) if longest < 1.0 => (1e3, "ms"),
        _ => (1.0, "s"),
    };
    let joules = analysis.cells.iter().filter_map(|c| c.get(Key::EnergyPerEpoch)).map(|q| q.estimate).fold(0.0, f64::max);
    let (kilo, energy) = if joules >= 2000.0 { (1e-3, "kJ") } else { (1.0, "J") };
    let column = |head: &str, get: GetQuantity, text: Text| Numbers { head: head.into(), get, text, drawn: false };
    let of = |key: Key| -> GetQuantity { Box::new(move |c| reading(c, key)) };
    let plain = |key: Key, text: Text| column(key.head(), of(key), text);
    let percent = |q: &Quantity| number::percent(q.estimate);
    let two = |q: &Quantity| format!("{:.2}", q.estimate);
    let mut all = vec![
        plain(Key::Overlap, Box::new(percent)),
        column(&format!("time {unit}"), Box::new(time), Box::new(move |q| number::estimate(&super::values::times(q, factor)))),
        Numbers { head: Key::Slowdown.head().into(), get: of(Key::Slowdown), text: Box::new(with_percent), drawn: true },
        column(
            &format!("{} ms", Key::LatencyP99.head()),
            of(Key::LatencyP99),
            Box::new(|q| number::estimate(&super::values::times(q, 1e3))),
        ),
        plain(Key::LatencyP99OfSolo, Box::new(number::estimate)),
        plain(Key::WithinSlo, Box::new(percent)),
        plain(Key::SlowdownOnSlice, Box::new(two)),
        plain(Key::ThroughputGain, Box::new(number::estimate)),
        plain(Key::SmActive, Box::new(two)),
    ];
    if analysis.campaign.device.kind == "cpu" {
        all.push(column(&format!("{} %", Key::Cpu.label), of(Key::Cpu), Box::new(|q| format!("{:.0}", q.estimate * 100.0))));
    }
    all.push(column(Key::Memory.unit.symbol, of(Key::Memory), Box::new(|q| number::gib_number(q.estimate))));
    let text = move |q: &Quantity| number::estimate(&super::values::times(q, kilo));
    all.push(column(energy, of(Key::EnergyPerEpoch), Box::new(text)));
    all
}

/// `1.32 ±2.4 %`.
fn with_percent(q: &Quantity) -> String {
    match q.low.zip(q.high) {
        Some((low, high)) if high > low => {
            let half = (high - low) / 2.0 / q.estimate * 100.0;
            format!("{:.2} ±{} %", q.estimate, number::fixed(half, if half < 9.95 { 1 } else { 0 }))
        }
        Some(_) if q.df.is_none() => "1".into(),
        _ => format!("{:.2}", q.estimate),
    }
}

/// All cells, or the most informative ones of very many.
fn chosen(analysis: &Analysis) -> Vec<&Cell> {
    let mut cells: Vec<&Cell> = analysis.cells.iter().collect();
    if cells.len() > TOO_MANY {
        let failed = |c: &Cell| c.counted.is_empty() && !c.repetitions.is_empty();
        let told = |c: &Cell| c.get(Key::ThroughputGain).map_or(0.0, |q| q.estimate.ln().abs());
        cells.sort_by(|a, b| failed(b).cmp(&failed(a)).then(told(b).total_cmp(&told(a))));
        // Failures are told first, but they leave room for the rest.
        let failures = cells.iter().filter(|c| failed(c)).count();
        if failures > ROWS / 2 {
            cells.drain(ROWS / 2..failures);
        }
        cells.truncate(ROWS);
    }
    cells
}

fn row(analysis: &Analysis, cell: &Cell, numbers: &[Numbers], reason: Option<usize>) -> Row {
    let completed = cell.repetitions.iter().filter(|r| r.record().outcome.as_str() == "completed");
    let verdicts: Vec<_> = completed.map(|r| r.record().attestation.verdict).collect();
    let attested = verdicts.iter().filter(|v| **v == collo_store::AttestationVerdict::Attested).count();
    let attested = match verdicts.len() {
        0 => String::new(),
        all if all == attested => "✓".into(),
        all => format!("{attested}/{all}"),
    };
    let outcome = if cell.repetitions.is_empty() { "not run".into() } else { words::outcome(cell.outcome()) };
    let mut cells = vec![
        TableCell::text(cell.name()),
        TableCell { mode: cell.record.sharing.clone(), ..TableCell::text(mode_label(&cell.record.sharing)) },
        TableCell::text(outcome),
        TableCell::text(attested),
        TableCell { text: cell.counted.len().to_string(), sort: Some(cell.counted.len() as f64), ..Default::default() },
    ];
    cells.extend(numbers.iter().map(|n| match (n.get)(cell) {
        Some(q) => TableCell {
            text: (n.text)(&q),
            sort: Some(q.estimate),
            ratio: Some(q.estimate).filter(|_| n.drawn),
            mode: if n.drawn { cell.record.sharing.clone() } else { String::new() },
            ..Default::default()
        },
        None => TableCell::default(),
    }));
    let link = reason.map_or_else(String::new, |i| format!("why-{i}"));
    cells.push(TableCell { link, ..TableCell::text(words::verdict(cell.validity.verdict)) });
    Row { id: cell_id(analysis, cell.name()), cells, ..Row::default() }
}
