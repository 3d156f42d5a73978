//! A table as CSV: RFC 4180 quoting, lines that end in a line feed, UTF-8. In: a table. Out: text. Text that a spreadsheet would
//! take for a formula gets an apostrophe before it; a number never does.

use super::table::{Table, Value};

/// What a spreadsheet takes for the beginning of a formula.
const FORMULA: [char; 8] = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];

/// The whole file.
pub fn text(table: &Table) -> String {
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

fn field(value: &Value) -> String {
    match value {
        Value::Absent => String::new(),
        Value::Text(text) => quoted(text),
        Value::Number(number) => number.to_string(),
        Value::Whole(whole) => whole.to_string(),
        Value::Flag(flag) => flag.to_string(),
    }
}

/// Text as one field. A null byte ends a file for some readers, so it is written out.
fn quoted(text: &str) -> String {
    let mut text = text.replace('\0', "\\0");
    let formula = text.trim_start().starts_with(FORMULA) || text.starts_with(['\t', '\r', '\n']);
    if formula {
        text.insert(0, '\'');
    }
    // A lone empty field would make an empty line, which readers skip; no table here has one column.
    if text.contains([',', '"', '\n', '\r']) || text.starts_with(' ') || text.ends_with(' ') {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::table::Kind;

    #[test]
    fn what_is_absent_is_an_empty_field_and_never_zero() {
        let row = vec![Value::Absent, Value::from(0.0), Value::from(f64::NAN), Value::from(None::<u32>), Value::from(false)];
        let heads = ["a", "b", "c", "d", "e"].map(|n| (n.to_string(), Kind::Number)).to_vec();
        assert_eq!(text(&Table { heads, rows: vec![row] }), "a,b,c,d,e\n,0,,,false\n");
    }

    #[test]
    fn commas_quotes_and_lines_stay_inside_their_field() {
        assert_eq!(quoted("a, \"b\""), "\"a, \"\"b\"\"\"");
        assert_eq!(quoted("two\nlines"), "\"two\nlines\"");
        assert_eq!(quoted("tiny×2 naive b32"), "tiny×2 naive b32");
    }

    #[test]
    fn a_label_cannot_become_a_formula_and_a_negative_number_stays_one() {
        assert_eq!(quoted("=1+2"), "'=1+2");
        assert_eq!(quoted(" @SUM(A1)"), "' @SUM(A1)");
        assert_eq!(quoted("＝cmd"), "'＝cmd");
        assert_eq!(quoted("\t=x"), "'\t=x");
        assert_eq!(quoted("-2, \"x\""), "\"'-2, \"\"x\"\"\"");
        assert_eq!(field(&Value::from(-0.25)), "-0.25");
    }
}
