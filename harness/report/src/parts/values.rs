//! The values of a figure as a table, and the readings of a cell that they come from.

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_figures::document::{Table, TableCell};
use collo_quantity::Key;
use collo_quantity::number;
use collo_quantity::stats::Quantity;

use super::anchor::cell_id;
use super::figure::{failure, tags};
use super::panels::by_workload;

/// A reading of a cell.
pub type Reading<'a> = &'a dyn Fn(&Cell) -> Option<Quantity>;

/// A quantity after multiplying by `factor`.
pub fn times(q: &Quantity, factor: f64) -> Quantity {
    Quantity { estimate: q.estimate * factor, low: q.low.map(|x| x * factor), high: q.high.map(|x| x * factor), ..q.clone() }
}

/// A cell's reading, among its quantities or the means of the GPU.
pub fn reading(cell: &Cell, key: Key) -> Option<Quantity> {
    cell.get(key).or_else(|| cell.metric(key)).cloned()
}

/// Maximum rows of a figure's table on the page: more are in its CSV.
pub const VALUES: usize = 240;

/// The head of every figure's table: the cell, with a link to its row.
pub fn label(analysis: &Analysis, cell: &Cell) -> TableCell {
    TableCell { link: cell_id(analysis, cell.name()), ..TableCell::text(cell.name()) }
}

/// Let people see the first rows of a long table, and its caption say so; a figure's CSV has all.
pub fn cut_rows(table: &mut Table) {
    let all = table.rows.len();
    if all > VALUES {
        table.shown = Some(VALUES);
        table.caption = format!("The first {VALUES} of {all} rows; a figure's CSV has all of them, report.json all cells");
    }
}

/// Value, interval and repetitions of one quantity for the uniform cells of every workload that has it.
pub fn values(analysis: &Analysis, what: &str, get: Reading, factor: f64) -> Table {
    values_of(analysis, &[(what, get, factor)], &|c| c.record.is_uniform())
}

/// The same for several quantities side by side, for the selected cells.
pub fn values_of(analysis: &Analysis, wanted: &[(&str, Reading, f64)], of: &dyn Fn(&Cell) -> bool) -> Table {
    let mut heads = vec!["cell".to_string()];
    heads.extend(wanted.iter().flat_map(|(what, ..)| [format!("#{what}"), "95 % interval".into()]));
    heads.extend(["#runs".to_string(), "validity".into()]);
    let mut table = Table::with(&heads.iter().map(String::as_str).collect::<Vec<_>>());
    // A workload of which nothing was read has no panel, and no rows.
    let read: Vec<&str> = by_workload(analysis)
        .into_iter()
        .filter(|(_, cells)| wanted.first().is_some_and(|(_, get, _)| cells.iter().any(|c| get(c).is_some())))
        .map(|(w, _)| w)
        .collect();
    let of = |c: &Cell| of(c) && c.workload().is_none_or(|w| read.contains(&w));
    for cell in analysis.cells.iter().filter(|c| of(c)) {
        let mut row = vec![label(analysis, cell)];
        let mut runs = String::new();
        for (i, (_, get, factor)) in wanted.iter().enumerate() {
            let Some(q) = get(cell) else {
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
    cut_rows(&mut table);
    table.tags = tags(analysis);
    table
}
