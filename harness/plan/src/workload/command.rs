//! The command of a workload: words with placeholders for its settings.

use std::collections::BTreeMap;

use serde_json::Value as Json;

/// A piece of a word: text, or the name of a setting.
#[derive(Debug, PartialEq)]
pub enum Piece<'a> {
    Text(&'a str),
    Setting(&'a str),
}

/// The word that stands for every setting without a placeholder of its own.
pub const ALL_OTHERS: &str = "{settings}";

/// `--batch-size=32` for every setting that no other word places.
pub fn options(words: &[String], values: &BTreeMap<String, Json>) -> Vec<String> {
    let placed: Vec<Piece<'_>> = words.iter().flat_map(|word| pieces(word)).collect();
    let others = values.iter().filter(|(name, _)| !placed.contains(&Piece::Setting(name)));
    others.map(|(name, value)| format!("--{}={}", name.replace('_', "-"), plain(value))).collect()
}

/// Split a word at its placeholders. A brace without a name inside is text, so that JSON and shell words stay as they are.
pub fn pieces(word: &str) -> Vec<Piece<'_>> {
    let mut all = Vec::new();
    let (mut rest, mut from) = (word, 0);
    while let Some(open) = rest[from..].find('{').map(|i| i + from) {
        let name_end = rest[open + 1..].find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-').map(|i| i + open + 1);
        match name_end {
            Some(end) if end > open + 1 && rest[end..].starts_with('}') => {
                if open > 0 {
                    all.push(Piece::Text(&rest[..open]));
                }
                all.push(Piece::Setting(&rest[open + 1..end]));
                rest = &rest[end + 1..];
                from = 0;
            }
            _ => from = open + 1,
        }
    }
    if !rest.is_empty() {
        all.push(Piece::Text(rest));
    }
    all
}

/// The word with its settings filled in; the error is a name without a value.
pub fn fill<'a>(word: &'a str, values: &BTreeMap<String, Json>) -> Result<String, &'a str> {
    pieces(word)
        .into_iter()
        .map(|piece| match piece {
            Piece::Text(text) => Ok(text.to_string()),
            Piece::Setting(name) => values.get(name).map(plain).ok_or(name),
        })
        .collect()
}

/// A setting as an argument: text without quotes.
pub fn plain(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn placeholders_are_names_in_braces() {
        assert_eq!(pieces("--n={n}x{m}"), [Piece::Text("--n="), Piece::Setting("n"), Piece::Text("x"), Piece::Setting("m")]);
        assert_eq!(pieces("{\"a\": {n}}"), [Piece::Text("{\"a\": "), Piece::Setting("n"), Piece::Text("}")]);
        assert_eq!(pieces("{} { a }"), [Piece::Text("{} { a }")]);
    }

    proptest! {
        #[test]
        fn a_word_without_names_stays_as_it_is(word in "[^{]*|\\PC*\\{ \\PC*") {
            let names = pieces(&word).into_iter().any(|p| matches!(p, Piece::Setting(_)));
            let filled = fill(&word, &BTreeMap::new());
            prop_assert_eq!(filled.is_err(), names);
            if let Ok(filled) = filled {
                prop_assert_eq!(filled, word);
            }
        }
    }
}
