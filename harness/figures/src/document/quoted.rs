//! A text as one field of a CSV file.

/// First characters that a spreadsheet interprets as a formula.
const FORMULA: [char; 8] = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];

/// Text as one field of one line: control characters, which end a line or a file for some readers and move a terminal's cursor,
/// are escaped, `\n`, `\0`, `\u{1b}`.
pub fn quoted(text: &str) -> String {
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

    #[test]
    fn commas_and_quotes_stay_inside_their_field_and_a_row_is_one_line() {
        assert_eq!(quoted("a, \"b\""), "\"a, \"\"b\"\"\"");
        assert_eq!(quoted("two\nlines\r\0"), r"two\nlines\r\0");
        assert_eq!(quoted("\u{1b}]0;title\u{7}\u{85}\u{2028}\u{202e}"), r"\u{1b}]0;title\u{7}\u{85}\u{2028}\u{202e}");
        assert_eq!(quoted("tiny×2 naive b32"), "tiny×2 naive b32");
    }
}
