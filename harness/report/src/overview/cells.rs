//! Every cell in one table, in the order of the plan.

use std::collections::HashMap;

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_analysis::reading::repetition::Repetition;
use collo_analysis::words;
use collo_figures::document::{Block, Row, Section, Table, TableCell, TableLayout};
use collo_figures::modes::mode_label;
use collo_quantity::stats::Quantity;
use collo_quantity::{Key, number};

use crate::parts::absent::{Content, nothing};
use crate::parts::anchor::{REASONS, TOO_MANY, cell_id, with_reasons};
use crate::parts::figure::tags;
use crate::parts::values::reading;

/// More rows would make the page slow: the rest is in `report.json`.
const ROWS: usize = 500;

/// Columns that are read in runs.
const ATTESTED: &str = "attested";
const RUNS: &str = "runs";

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

pub fn section(analysis: &Analysis) -> Content {
    if analysis.cells.is_empty() {
        return Err(nothing(analysis).unwrap_or("The plan has no cells.").into());
    }
    let chosen = chosen(analysis, if analysis.cells.len() > TOO_MANY { ROWS } else { analysis.cells.len() });
    let table = table(analysis, &chosen);
    let all = number::count(analysis.cells.len(), "cell");
    let finding = if chosen.len() < analysis.cells.len() {
        format!(
            "{} of {all}: those that failed, then those furthest from running in turn; all of them are in `report.csv` and `report.json`.",
            chosen.len()
        )
    } else {
        format!("{all}, in the order of the plan.")
    };
    Ok(Section { finding, blocks: vec![Block::Table(table)], ..Section::default() })
}

/// The table with at most so many rows, the most informative ones; `None` without a row.
pub fn brief(analysis: &Analysis, rows: usize) -> Option<Block> {
    let mut table = table(analysis, &chosen(analysis, rows));
    table.caption = String::new();
    // Links to files lead nowhere from elsewhere.
    table.columns.retain(|column| column.name != RUNS);
    table.if_any()
}

fn table(analysis: &Analysis, chosen: &[&Cell]) -> Table {
    let mut numbers = numbers(analysis);
    // A column that nobody fills says nothing.
    numbers.retain(|n| analysis.cells.iter().any(|c| (n.get)(c).is_some()));
    let mut heads: Vec<String> = ["cell", "mode", "outcome", ATTESTED, "#reps"].map(String::from).to_vec();
    heads.extend(numbers.iter().map(|n| format!("#{}", n.head)));
    heads.push("validity".into());
    heads.push(RUNS.into());
    let mut table = Table::with(&heads.iter().map(String::as_str).collect::<Vec<_>>());
    table.look = TableLayout::Interactive;
    table.tags = tags(analysis);
    table.caption = "Time: one member's epoch; the makespan of mixed groups; absent where a member serves. Slowdown: mean over members, with the half-width of its \
                     95 % interval; the plot is logarithmic, its line marks 1. \
                     Empty: absent, reason in report.json; 0 is printed only when measured"
        .into();
    let reasons: HashMap<&str, usize> = with_reasons(analysis)
        .iter()
        .take(REASONS)
        .enumerate()
        .flat_map(|(i, group)| group.cells.iter().map(move |c| (c.name(), i)))
        .collect();
    let mut before = None;
    for cell in chosen {
        let row = row(analysis, cell, &numbers, reasons.get(cell.name()).copied());
        let workload = cell.workload();
        table.rows.push(Row { begins: before.is_some_and(|b| b != workload), ..row });
        before = Some(workload);
    }
    if analysis.is_reported() {
        let of_runs = |place: &usize| [ATTESTED, RUNS].contains(&heads[*place].as_str());
        for place in (0..heads.len()).rev().filter(of_runs) {
            table.columns.remove(place);
            table.rows.iter_mut().for_each(|row| drop(row.cells.remove(place)));
        }
    }
    table
}

fn numbers(analysis: &Analysis) -> Vec<Numbers> {
    // Equal members have a makespan even if none of their epochs counts: it is no epoch time.
    let time = |c: &Cell| c.get(Key::EpochTime).or_else(|| c.get(Key::Makespan).filter(|_| !c.record.is_uniform())).cloned();
    let (factor, unit) = match analysis.cells.iter().filter_map(time).map(|q| q.estimate).reduce(f64::max) {
        Some(longest) if longest < 1.0 => (1e3, "ms"),
        _ => (1.0, "s"),
    };
    let (kilo, energy) = words::energy_unit(analysis.cells.iter().filter_map(|c| c.get(Key::EnergyPerEpoch)));
    let column = |head: &str, get: GetQuantity, text: Text| Numbers { head: head.into(), get, text, drawn: false };
    let of = |key: Key| -> GetQuantity { Box::new(move |c| reading(c, key)) };
    let plain = |key: Key, text: Text| column(key.head(), of(key), text);
    let percent = |q: &Quantity| number::percent(q.estimate);
    let two = |q: &Quantity| format!("{:.2}", q.estimate);
    let mut all = vec![
        plain(Key::Overlap, Box::new(percent)),
        column(
            &format!("time {unit}"),
            Box::new(time),
            Box::new(move |q| number::estimate(&crate::parts::values::times(q, factor))),
        ),
        Numbers { head: Key::Slowdown.head().into(), get: of(Key::Slowdown), text: Box::new(with_percent), drawn: true },
        column(
            &format!("{} ms", Key::LatencyP99.head()),
            of(Key::LatencyP99),
            Box::new(|q| number::estimate(&crate::parts::values::times(q, 1e3))),
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
    let text = move |q: &Quantity| number::estimate(&crate::parts::values::times(q, kilo));
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

/// All cells, or the most informative ones of more than `rows`.
fn chosen(analysis: &Analysis, rows: usize) -> Vec<&Cell> {
    let mut cells: Vec<&Cell> = analysis.cells.iter().collect();
    if cells.len() > rows {
        let failed = |c: &Cell| !c.counts() && c.ran();
        let told = |c: &Cell| c.get(Key::ThroughputGain).map_or(0.0, |q| q.estimate.ln().abs());
        cells.sort_by(|a, b| failed(b).cmp(&failed(a)).then(told(b).total_cmp(&told(a))));
        // Failures are told first, but they leave room for the rest.
        let failures = cells.iter().filter(|c| failed(c)).count();
        let most = (rows / 2).max(rows.saturating_sub(cells.len() - failures));
        if failures > most {
            cells.drain(most..failures);
        }
        cells.truncate(rows);
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
    let outcome = if !cell.ran() { "not run".into() } else { words::outcome(cell.outcome()) };
    let mut cells = vec![
        TableCell::text(cell.name()),
        TableCell { mode: cell.record.sharing.clone(), ..TableCell::text(mode_label(&cell.record.sharing)) },
        TableCell::text(outcome),
        TableCell::text(attested),
        TableCell::number(cell.count().to_string(), cell.count() as f64),
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
    cells.push(TableCell { link, ..TableCell::text(cell.verdict().text()) });
    cells.push(TableCell { files: files(cell), ..TableCell::default() });
    Row { id: cell_id(analysis, cell.name()), cells, ..Row::default() }
}

/// The folder of each run, and the log that tells most: of the member that failed, else of the first.
fn files(cell: &Cell) -> Vec<(String, String)> {
    let mut links: Vec<(String, String)> = cell
        .repetitions
        .iter()
        .map(|r| (r.record().repetition.to_string(), format!("{}-{}/", cell.record.slug, r.record().repetition)))
        .collect();
    let ended = |r: &&Repetition| r.record().outcome.as_str() != "completed";
    let telling = cell.repetitions.iter().find(ended).or(cell.repetitions.first());
    links.extend(telling.map(|r| {
        let log = r.record().log_of(r.record().outcome.member().unwrap_or(0) as usize);
        ("log".to_string(), format!("{}-{}/{log}", cell.record.slug, r.record().repetition))
    }));
    links
}
