//! The values of a figure as a table, and the readings of a cell that they come from.

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_figures::document::{Align, Column, Table, TableCell, TableLayout};
use collo_quantity::stats::Quantity;
use collo_quantity::{Key, number};

use super::anchor::cell_id;
use super::figure::{failure, tags};
use super::panels::by_workload;

/// A quantity after multiplying by `factor`.
pub fn times(q: &Quantity, factor: f64) -> Quantity {
    Quantity { estimate: q.estimate * factor, low: q.low.map(|x| x * factor), high: q.high.map(|x| x * factor), ..q.clone() }
}

/// A quantity of a cell, or of the GPU while it ran. What members use alone is added up only where there are several.
pub fn reading(cell: &Cell, key: Key) -> Option<Quantity> {
    cell.reading(key).filter(|_| key != Key::SoloSmActiveSum || cell.record.degree > 1).cloned()
}

/// True if some cell has a quantity.
pub fn has(analysis: &Analysis, key: Key) -> bool {
    analysis.cells.iter().any(|c| reading(c, key).is_some())
}

/// Maximum rows of a figure's table on the page: more are in its CSV.
pub const VALUES: usize = 240;

/// Add a column with what figures show by pale marks: the validity of the cell of each row, in their order. Left out where all are
/// valid.
pub fn with_validity<'a>(table: &mut Table, cells: impl IntoIterator<Item = &'a Cell>) {
    let cells: Vec<&Cell> = cells.into_iter().collect();
    if cells.iter().all(|cell| cell.is_valid()) {
        return;
    }
    table.columns.push("validity".into());
    for (row, cell) in table.rows.iter_mut().zip(cells) {
        row.cells.push(TableCell::text(cell.verdict().text()));
    }
}

/// The head of every figure's table: the cell, with a link to its row.
pub fn label(analysis: &Analysis, cell: &Cell) -> TableCell {
    TableCell { link: cell_id(analysis, cell.name()), ..TableCell::text(cell.name()) }
}

/// Mark a table with the caveats of its numbers. Of a long one people see the first rows, as its caption states; a figure's
/// CSV has all.
pub fn finish(analysis: &Analysis, mut table: Table) -> Table {
    table.tags = tags(analysis);
    let all = table.rows.len();
    if all > VALUES {
        table.shown = Some(VALUES);
        table.caption = format!("The first {VALUES} of {all} rows; a figure's CSV has all of them, report.json all cells");
    }
    table
}

/// A column of a narrow table: its head, and its field for each subject.
pub type NarrowColumn<'g, T> = (String, Box<dyn Fn(&T) -> TableCell + 'g>);

/// Set a table for a terminal, too: a row for each subject below the `head` of the first column. Empty columns are
/// left out; on a narrow terminal the last ones go first.
pub fn narrow<T>(head: &str, rows: &[(TableCell, &T)], columns: Vec<NarrowColumn<T>>) -> Table {
    let filled = |(_, get): &NarrowColumn<T>| rows.iter().any(|(_, of)| !get(of).text.is_empty());
    let columns: Vec<NarrowColumn<T>> = columns.into_iter().filter(filled).collect();
    let mut table = Table { look: TableLayout::Narrow, ..Table::default() };
    table.columns.push(Column { name: head.into(), ..Column::default() });
    for (rank, (name, _)) in columns.iter().enumerate() {
        let align = if name == "verdict" { Align::Left } else { Align::Right };
        table.columns.push(Column { name: name.clone(), align, rank: if rank < 3 { 0 } else { rank }, ..Column::default() });
    }
    for (first, of) in rows {
        table.row([first.clone()].into_iter().chain(columns.iter().map(|(_, get)| get(of))).collect());
    }
    table
}

/// Value, interval and repetitions of the uniform cells of every workload that has the first of these quantities, each under its
/// head and times a factor; of the others those that some cell has.
pub fn values(analysis: &Analysis, wanted: &[(&str, Key, f64)]) -> Table {
    let wanted: Vec<_> = wanted.iter().enumerate().filter(|(i, w)| *i == 0 || has(analysis, w.1)).map(|(_, w)| *w).collect();
    let mut heads = vec!["cell".to_string()];
    heads.extend(wanted.iter().flat_map(|(what, ..)| [format!("#{what}"), "95 % interval".into()]));
    heads.extend(["#runs".to_string(), "validity".into()]);
    let mut table = Table::with(&heads.iter().map(String::as_str).collect::<Vec<_>>());
    // A workload of which nothing was read has no panel, and no rows.
    let read: Vec<&str> = by_workload(analysis)
        .into_iter()
        .filter(|(_, cells)| wanted.first().is_some_and(|(_, key, _)| cells.iter().any(|c| reading(c, *key).is_some())))
        .map(|(w, _)| w)
        .collect();
    let of = |c: &Cell| c.record.is_uniform() && c.workload().is_none_or(|w| read.contains(&w));
    for cell in analysis.cells.iter().filter(|c| of(c)) {
        let mut row = vec![label(analysis, cell)];
        let mut runs = String::new();
        for (i, (_, key, factor)) in wanted.iter().enumerate() {
            let Some(q) = reading(cell, *key) else {
                let why = if i == 0 { failure(cell).unwrap_or_default() } else { String::new() };
                row.extend([TableCell::default(), TableCell::text(why)]);
                continue;
            };
            let scaled = times(&q, *factor);
            let bounds = if scaled.low.is_some() { number::bounds(&scaled) } else { "one run has none".into() };
            row.push(TableCell::number(number::estimate(&scaled), scaled.estimate));
            row.push(TableCell { ends: scaled.low.zip(scaled.high), ..TableCell::text(bounds) });
            if runs.is_empty() {
                runs = q.n.to_string();
            }
        }
        row.extend([TableCell::text(runs), TableCell::text(cell.verdict().text())]);
        table.row(row);
    }
    finish(analysis, table)
}
