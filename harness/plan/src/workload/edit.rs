//! Puts a line into `[epochs]` of a `workload.toml`. In: its text. Out: its text with that line; all others stay as they were typed. Pure.

use toml::de::{DeTable, DeValue};

/// The text with `line`, a `pattern` or a `preset`, in place of the one in its `[epochs]`, or with a table `[epochs]` at its end; `None` if
/// the text is no TOML, or its `[epochs]` has neither.
pub fn with_epochs(text: &str, line: &str) -> Option<String> {
    let table = DeTable::parse(text).ok()?;
    let edited = match table.get_ref().get("epochs").map(|epochs| epochs.get_ref()) {
        None => format!("{}\n[epochs]\n{line}\n", if text.ends_with('\n') { text.to_string() } else { format!("{text}\n") }),
        Some(DeValue::Table(epochs)) => {
            let is_named = |key: &str| key == "pattern" || key == "preset";
            let (key, value) = epochs.iter().find(|(key, _)| is_named(key.get_ref()))?;
            format!("{}{line}{}", &text[..key.span().start], &text[value.span().end..])
        }
        Some(_) => return None,
    };
    DeTable::parse(&edited).is_ok().then_some(edited)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOUND: &str = r"pattern = '^Epoch (?P<epoch>\d+)\b'";

    #[test]
    fn a_file_without_epochs_gets_a_table_at_its_end() {
        let text = "command = [\"python\", \"a.py\"]\n\n[settings]\nwidth = 3 # wide";
        assert_eq!(with_epochs(text, FOUND), Some(format!("{text}\n\n[epochs]\n{FOUND}\n")));
    }

    #[test]
    fn what_does_not_match_is_replaced_and_the_rest_stays_as_it_was_typed() {
        let around =
            |line: &str| format!("command = [\"a\"]\n[epochs] # ours\nitems = 5\n{line} # of 2025\n\n[settings]\nx = 1\n");
        for before in ["pattern = '^epoch (?P<epoch>\\d+)'", "preset   = \"lightning\"", "pattern = \"\"\"a\nb\"\"\""] {
            assert_eq!(with_epochs(&around(before), FOUND), Some(around(FOUND)), "{before}");
        }
        let inline = |line: &str| format!("epochs = {{ items = 5, {line} }}\n");
        assert_eq!(with_epochs(&inline("preset = 'timm'"), FOUND), Some(inline(FOUND)));
        assert_eq!(with_epochs("epochs.pattern = 'a'\n", FOUND), Some(format!("epochs.{FOUND}\n")));
    }

    #[test]
    fn what_has_no_place_for_the_line_is_left_alone() {
        for text in ["epochs = 3\n", "[epochs]\nitems = 3\n", "[epochs\n"] {
            assert_eq!(with_epochs(text, FOUND), None, "{text}");
        }
    }
}
