//! Words that `docs/style.md` forbids. In: sources and documents. Out: how often each package uses them, and the documents.
//!
//! Counted in comments and strings of all Rust of `src`, tests included, and in README, CHANGELOG and `docs`. Not counted are names: what
//! stands between backticks or braces, in a block of code, or in a string without blanks. A phrase is found within a line.

use std::collections::BTreeMap;

use crate::checkout::Checkout;
use crate::ratchet::{Count, Counts};
use crate::tokens::{Kind, tokens};

/// The name under which README, CHANGELOG and `docs` are counted.
pub const DOCUMENTS: &str = "documents";

/// The *not* column of each row of the table in `docs/style.md`, and the words of it that can be counted. The others mean something else
/// too: `say` and `word` (the words of a table), `cut` (a log, a circle), `done` (a message of members), `none` (in Rust and in tables),
/// `hold` and `held` (a guideline, a value), `card` (a subject in reports and files).
pub const TABLE: [(&str, &[&str]); 9] = [
    ("tell, say, word", &["tell", "tells", "telling", "told", "says", "said"]),
    ("cut, bring", &["bring", "brings", "brought"]),
    ("done", &[]),
    ("none, nobody", &["nobody"]),
    ("look at, hold against", &["looks at", "looked at", "hold against", "holds against", "held against"]),
    ("hold against, put beside", &["put beside", "puts beside"]),
    ("put back", &["put back", "puts back", "putting back"]),
    ("hold, held", &[]),
    ("card, graphics card", &["graphics card", "graphics cards"]),
];

/// Words without a row that can be counted as they stand.
pub const OTHERS: [&str; 4] = ["whoever", "whomever", "somebody", "anew"];

/// The files that list the words.
const LISTS: [&str; 2] = ["docs/style.md", "harness/house/src/words.rs"];

/// The row of the table that is about sentences, not about words that can be counted: its `whoever` is among the others.
pub const OF_SENTENCES: &str = "for whoever, who …";

/// A word with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use {
    pub place: String,
    pub line: usize,
    pub word: &'static str,
}

/// All uses by package, and of the documents.
pub fn uses(checkout: &Checkout) -> BTreeMap<String, Vec<Use>> {
    let mut found: BTreeMap<String, Vec<Use>> = BTreeMap::new();
    let mut add = |of: &str, place: String, words: Vec<(usize, &'static str)>| {
        if !LISTS.contains(&place.as_str()) {
            let uses = words.into_iter().map(|(line, word)| Use { place: place.clone(), line, word });
            found.entry(of.to_string()).or_default().extend(uses);
        }
    };
    for package in &checkout.packages {
        for file in &package.files {
            add(package.name, package.place(file), in_rust(file.text));
        }
    }
    for (path, text) in &checkout.texts.documents {
        add(DOCUMENTS, path.clone(), in_markdown(text));
    }
    found
}

pub fn counts(checkout: &Checkout) -> Counts {
    let count = |(name, uses): (String, Vec<Use>)| {
        let mut by_word: BTreeMap<&str, usize> = BTreeMap::new();
        for use_ in &uses {
            *by_word.entry(use_.word).or_default() += 1;
        }
        let words: Vec<String> = by_word.iter().map(|(word, n)| format!("{word} {n}")).collect();
        (name, Count { number: uses.len(), places: vec![words.join(", ")] })
    };
    uses(checkout).into_iter().filter(|(_, uses)| !uses.is_empty()).map(count).collect()
}

/// Whether words may have moved: between packages, with the rooms they stand in.
pub fn moved(new: &str, old: &str) -> bool {
    (new == DOCUMENTS) == (old == DOCUMENTS)
}

/// The words in comments and strings, with their lines.
pub fn in_rust(source: &str) -> Vec<(usize, &'static str)> {
    let is_text = |kind, text: &str| kind == Kind::Comment || kind == Kind::Text && text.contains(char::is_whitespace);
    let mut found = Vec::new();
    for token in tokens(source).into_iter().filter(|t| is_text(t.kind, t.text)) {
        for (at, line) in token.text.lines().enumerate() {
            let line = line.replace("\\n", " ").replace("\\t", " ");
            found.extend(in_line(&line).into_iter().map(|word| (token.line + at, word)));
        }
    }
    found
}

/// The words outside of code, with their lines.
pub fn in_markdown(text: &str) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    let mut is_code = false;
    for (at, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            found.extend(in_line(line).into_iter().map(|word| (at + 1, word)));
        }
    }
    found
}

fn in_line(line: &str) -> Vec<&'static str> {
    let line = without(&without(line, '`', '`'), '{', '}');
    let is_apart = |c: char| !c.is_alphanumeric() && !"-_/.'’".contains(c);
    let words = line.split(is_apart).map(|w| w.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase());
    let words = words.map(|w| w.trim_end_matches("'s").trim_end_matches("’s").to_string());
    let text = format!(" {} ", words.filter(|w| !w.is_empty()).collect::<Vec<_>>().join(" "));
    let forbidden = TABLE.iter().flat_map(|(_, words)| *words).chain(&OTHERS);
    let times = |word: &str| {
        // Each blank belongs to two words: the text is searched from the word's own end on.
        let sought = format!(" {word} ");
        let mut rest = text.as_str();
        let mut times = 0;
        while let Some(at) = rest.find(&sought) {
            times += 1;
            rest = &rest[at + sought.len() - 1..];
        }
        times
    };
    forbidden.flat_map(|word| std::iter::repeat_n(*word, times(word))).collect()
}

/// A line without what stands between two marks.
fn without(line: &str, open: char, close: char) -> String {
    let mut kept = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once(open) {
        let Some((_, behind)) = after.split_once(close) else { break };
        kept += before;
        kept.push('x');
        rest = behind;
    }
    kept + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_counted_in_comments_and_strings_and_names_are_not() {
        let source =
            "/// Told by nobody.\nfn told() { says(\"nobody told it\\nanew\"); let k = \"nobody\"; }\n// `told` in {tells}\n";
        assert_eq!(in_rust(source), [(1, "told"), (1, "nobody"), (2, "told"), (2, "nobody"), (2, "anew")]);
    }

    #[test]
    fn documents_are_counted_without_their_code() {
        let text =
            "*Nobody's* told told.\n```text\nnobody\n```\n[x](decisions/0015-an-unread-list-is-not-nobody.md) it put back\n";
        assert_eq!(in_markdown(text), [(1, "told"), (1, "told"), (1, "nobody"), (5, "put back")]);
    }

    #[test]
    fn parts_of_words_are_no_words() {
        assert!(in_rust("// untold foretells, renew, nobody_else").is_empty());
    }
}
