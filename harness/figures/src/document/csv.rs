//! A figure's values as CSV, for other programs to draw. In: the table beside the figure. Out: a head, then a line per row, with
//! full numbers where the table has them; an interval is two columns, and a third one where some row has a reason in its place:
//! `OOM`. Absent is empty.

use super::model::{Table, TableCell};
use crate::document::quoted::quoted;

/// What becomes of a column.
enum Split {
    Value,
    Interval { reason: bool },
}

/// The table as CSV.
pub fn table(table: &Table) -> String {
    let any = |i: usize, is: &dyn Fn(&TableCell) -> bool| table.rows.iter().any(|r| r.cells.get(i).is_some_and(is));
    // The columns that each becomes: a value, or both ends, and the reason if there is one.
    let split: Vec<Split> = (0..table.columns.len())
        .map(|i| match any(i, &|c| c.ends.is_some()) {
            false => Split::Value,
            true => Split::Interval { reason: any(i, &|c| c.ends.is_none() && !c.text.is_empty()) },
        })
        .collect();
    let mut before = String::new();
    let mut heads = Vec::new();
    for (column, split) in table.columns.iter().zip(&split) {
        if let Split::Interval { reason } = split {
            let parts = ["low", "high", "reason"].into_iter().take(if *reason { 3 } else { 2 });
            heads.extend(parts.map(|part| quoted(format!("{before} {part}").trim())));
        } else {
            heads.push(quoted(&column.name));
            before.clone_from(&column.name);
        }
    }
    let mut out = heads.join(",") + "\n";
    for row in &table.rows {
        let fields = row.cells.iter().zip(&split).flat_map(|(cell, split)| {
            let Split::Interval { reason } = split else { return vec![field(cell)] };
            let mut fields = match cell.ends {
                Some((low, high)) => vec![low.to_string(), high.to_string()],
                None => vec![String::new(), String::new()],
            };
            fields.extend(reason.then(|| if cell.ends.is_none() { quoted(&cell.text) } else { String::new() }));
            fields
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
    fn numbers_are_whole_intervals_two_columns_and_what_is_absent_has_its_reason() {
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
            "cell,seconds,seconds low,seconds high,seconds reason,runs\n\"a, \"\"b\"\"\",1.987654321,1.2345678,2.5,,3\n'=1+1,,,,OOM,\n"
        );
    }

    #[test]
    fn what_the_page_leaves_out_is_not_left_out_here() {
        let mut t = Table { shown: Some(1), ..Table::with(&["cell"]) };
        for name in ["a", "b", "c"] {
            t.texts([name]);
        }
        assert_eq!((t.shown_rows().len(), table(&t).as_str()), (1, "cell\na\nb\nc\n"));
    }
}
