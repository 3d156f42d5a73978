//! A table as CSV: RFC 4180 quoting, lines that end in a line feed, UTF-8. In: a table. Out: text. Text that a spreadsheet would
//! interpret as a formula gets an apostrophe before it; a number never does.

use super::table::{ExportTable, ExportValue};

/// First characters that a spreadsheet interprets as a formula.
const FORMULA: [char; 8] = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];

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

/// Text as one field of one line: control characters, which end a line or a file for some readers and move a terminal's cursor,
/// are escaped, `\n`, `\0`, `\u{1b}`.
fn quoted(text: &str) -> String {
    let formula = text.trim_start().starts_with(FORMULA) || text.starts_with(['\t', '\r', '\n']);
    let mut text = text.chars().map(printed).collect::<String>();
    if formula {
        text.insert(0, '\'');
    }
    // A lone empty field would make an empty line, which readers skip; no table here has one column.
    if text.contains([',', '"']) || text.starts_with(' ') || text.ends_with(' ') {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}

fn printed(c: char) -> String {
    match c {
        '\0' => "\\0".into(),
        // Beside control characters those that break a line by Unicode, and those that turn the direction of what follows.
        c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') => {
            c.escape_default().to_string()
        }
        c => c.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::table::ColumnKind;

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
    fn commas_and_quotes_stay_inside_their_field_and_a_row_is_one_line() {
        assert_eq!(quoted("a, \"b\""), "\"a, \"\"b\"\"\"");
        assert_eq!(quoted("two\nlines\r\0"), r"two\nlines\r\0");
        assert_eq!(quoted("\u{1b}]0;title\u{7}\u{85}\u{2028}\u{202e}"), r"\u{1b}]0;title\u{7}\u{85}\u{2028}\u{202e}");
        assert_eq!(quoted("tiny×2 naive b32"), "tiny×2 naive b32");
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
