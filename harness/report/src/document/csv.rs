//! A figure's values as CSV, for other programs to draw. In: the table beside the figure. Out: a head, then a line per row, with
//! full numbers where the table has them; an interval is two columns. Absent is empty.

use super::model::{Table, TableCell};
use crate::format::quoted::quoted;

/// The table as CSV.
pub fn table(table: &Table) -> String {
    let is_interval = |i: usize| table.rows.iter().any(|r| r.cells.get(i).is_some_and(|c| c.ends.is_some()));
    let split: Vec<bool> = (0..table.columns.len()).map(is_interval).collect();
    let mut before = String::new();
    let mut heads = Vec::new();
    for (column, split) in table.columns.iter().zip(&split) {
        if *split {
            heads.extend(["low", "high"].map(|end| quoted(format!("{before} {end}").trim())));
        } else {
            heads.push(quoted(&column.name));
            before.clone_from(&column.name);
        }
    }
    let mut out = heads.join(",") + "\n";
    for row in &table.rows {
        let fields = row.cells.iter().zip(&split).flat_map(|(cell, split)| match (split, cell.ends) {
            (true, Some((low, high))) => vec![low.to_string(), high.to_string()],
            (true, None) => vec![String::new(), String::new()],
            (false, _) => vec![field(cell)],
        });
        out += &(fields.collect::<Vec<_>>().join(",") + "\n");
    }
    out
}

fn field(cell: &TableCell) -> String {
    cell.sort.map_or_else(|| quoted(&cell.text), |number| number.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_whole_intervals_two_columns_and_what_is_absent_is_empty() {
        let mut t = Table::with(&["cell", "#seconds", "95 % interval", "#runs"]);
        let ends = Some((1.234_567_8, 2.5));
        t.row(vec![
            TableCell::text("a, \"b\""),
            TableCell { sort: Some(1.987_654_321), ..TableCell::text("1.99") },
            TableCell { ends, ..TableCell::text("[1.23, 2.50]") },
            TableCell::text("3"),
        ]);
        t.row(vec![TableCell::text("=1+1"), TableCell::default(), TableCell::text("OOM"), TableCell::default()]);
        assert_eq!(
            table(&t),
            "cell,seconds,seconds low,seconds high,runs\n\"a, \"\"b\"\"\",1.987654321,1.2345678,2.5,3\n'=1+1,,,,\n"
        );
    }
}
