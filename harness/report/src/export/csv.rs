//! A table as CSV: RFC 4180 quoting, lines that end in a line feed, UTF-8. In: a table. Out: text. Text that a spreadsheet would
//! interpret as a formula gets an apostrophe before it; a number never does.

use collo_figures::document::quoted::quoted;
use collo_guidelines::report_json::table::{ExportTable, ExportValue};

/// The whole file.
pub fn text(table: &ExportTable) -> String {
    let mut out = String::new();
    let mut line = |fields: &mut dyn Iterator<Item = String>| {
        out.push_str(&fields.collect::<Vec<String>>().join(","));
        out.push('\n');
    };
    line(&mut table.heads.iter().map(|(name, _)| quoted(name)));
    for row in &table.rows {
        line(&mut row.iter().map(field));
    }
    out
}

fn field(value: &ExportValue) -> String {
    match value {
        ExportValue::Absent => String::new(),
        ExportValue::Text(text) => quoted(text),
        ExportValue::Number(number) => number.to_string(),
        ExportValue::Whole(whole) => whole.to_string(),
        ExportValue::Flag(flag) => flag.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use collo_guidelines::report_json::table::ColumnKind;

    use super::*;

    #[test]
    fn what_is_absent_is_an_empty_field_and_never_zero() {
        let row = vec![
            ExportValue::Absent,
            ExportValue::from(0.0),
            ExportValue::from(f64::NAN),
            ExportValue::from(None::<u32>),
            ExportValue::from(false),
        ];
        let heads = ["a", "b", "c", "d", "e"].map(|n| (n.to_string(), ColumnKind::Number)).to_vec();
        assert_eq!(text(&ExportTable { heads, rows: vec![row] }), "a,b,c,d,e\n,0,,,false\n");
    }

    #[test]
    fn a_label_cannot_become_a_formula_and_a_negative_number_stays_one() {
        assert_eq!(quoted("=1+2"), "'=1+2");
        assert_eq!(quoted(" @SUM(A1)"), "' @SUM(A1)");
        assert_eq!(quoted("＝cmd"), "'＝cmd");
        assert_eq!(quoted("\t=x"), r"'\t=x");
        assert_eq!(quoted("-2, \"x\""), "\"'-2, \"\"x\"\"\"");
        assert_eq!(field(&ExportValue::from(-0.25)), "-0.25");
    }
}
