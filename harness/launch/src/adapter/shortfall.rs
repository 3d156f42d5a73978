//! The lines of a script whose pattern matched none of them, in a sentence: how many there were, and which is the nearest. Pure.

use std::collections::VecDeque;
use std::sync::LazyLock;

use regex::Regex;

use crate::protocol::shorten;

/// Lines that are compared with the pattern; those after them are only counted.
const COMPARED: u64 = 10_000;
/// The newest lines that are kept.
const KEPT: usize = 5;

/// What of a regular expression is no text of the lines that it matches: classes, names of groups, flags, counts.
static SYNTAX: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\\.|\(\?P?<\w+>|\(\?[\w-]*:?|\[\^?\]?[^\]]*\]|\{[\d,]*\}").ok());

/// The lines that the pattern did not match, as long as it matched none.
#[derive(Debug)]
pub struct Unmatched {
    lines: u64,
    /// The words in the pattern, in lower case.
    words: Vec<String>,
    nearest: Option<(usize, String)>,
    /// The pattern without its `^`, and a line that it matches.
    unanchored: Option<Regex>,
    behind: Option<String>,
    newest: VecDeque<String>,
}

impl Unmatched {
    pub fn new(pattern: &str) -> Self {
        let text = SYNTAX.as_ref().map_or(pattern.into(), |syntax| syntax.replace_all(pattern, " "));
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.chars().count() > 1);
        Unmatched {
            lines: 0,
            words: words.map(str::to_lowercase).collect(),
            nearest: None,
            unanchored: pattern.strip_prefix('^').and_then(|rest| Regex::new(rest).ok()),
            behind: None,
            newest: VecDeque::new(),
        }
    }

    pub fn add(&mut self, line: &str) {
        self.lines += 1;
        if self.newest.len() == KEPT {
            self.newest.pop_front();
        }
        self.newest.push_back(shorten(line));
        if self.lines > COMPARED {
            return;
        }
        if self.behind.is_none() && self.unanchored.as_ref().is_some_and(|pattern| pattern.is_match(line)) {
            self.behind = Some(shorten(line));
        }
        let lower = line.to_lowercase();
        let words = self.words.iter().filter(|word| lower.contains(word.as_str())).count();
        let rank = 2 * words + usize::from(lower.contains(|c: char| c.is_ascii_digit()));
        if words > 0 && self.nearest.as_ref().is_none_or(|(best, _)| rank > *best) {
            self.nearest = Some((rank, shorten(line)));
        }
    }

    /// The newest lines, the last one last.
    pub fn newest(&self) -> impl Iterator<Item = &String> {
        self.newest.iter()
    }

    /// `0 of its 312 lines match the pattern; the nearest: …`; of this preset, if it is one's pattern.
    pub fn text(&self, preset: Option<&str>) -> String {
        let what = preset.map_or("the pattern".into(), |preset| format!("the preset `{preset}`"));
        let way_out = if preset.is_some() { "write a `pattern` without `^`" } else { "leave out `^`" };
        let count = match self.lines {
            0 => return "it printed no line".into(),
            1 => format!("its only line does not match {what}"),
            n => format!("0 of its {n} lines match {what}"),
        };
        let hint = match (&self.behind, &self.nearest, self.newest.back()) {
            (Some(line), ..) => format!("other text stands before it on its line, so {way_out}: `{line}`"),
            (None, Some((_, line)), _) => format!("the nearest: `{line}`"),
            (None, None, Some(line)) => format!("the last: `{line}`"),
            (None, None, None) => return count,
        };
        format!("{count}; {hint}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(pattern: &str, lines: &[&str]) -> String {
        let mut unmatched = Unmatched::new(pattern);
        lines.iter().for_each(|line| unmatched.add(line));
        unmatched.text(None)
    }

    #[test]
    fn the_line_with_most_words_of_the_pattern_and_a_number_is_the_nearest() {
        let lines = ["loading 3 files", "Epoch begins", "Epoch 1/4000 loss 0.1", "Epoch 2/4000 loss 0.1", "bye"];
        insta::assert_snapshot!(text(r"^epoch (?P<epoch>\d+) took", &lines), @"0 of its 5 lines match the pattern; the nearest: `Epoch 1/4000 loss 0.1`");
        insta::assert_snapshot!(text(r"^\d+ [A-Z]+$", &lines), @"0 of its 5 lines match the pattern; the last: `bye`");
        insta::assert_snapshot!(text("^x", &["\x1b hello"]), @r"its only line does not match the pattern; the last: `\x1b hello`");
        insta::assert_snapshot!(text("^x", &[]), @"it printed no line");
        assert_eq!(Unmatched::new(r"^(?i)Train: (?P<epoch>[1-9]\d*) \[ *0/{2,3}").words, ["train"]);
    }

    #[test]
    fn text_before_a_line_is_named_as_the_cause() {
        let glued = "[25%] 1 of 4 epoch 1 took 0.4 s";
        insta::assert_snapshot!(text(r"^epoch (?P<epoch>\d+) took", &["epoch", glued]), @"0 of its 2 lines match the pattern; other text stands before it on its line, so leave out `^`: `[25%] 1 of 4 epoch 1 took 0.4 s`");
        let mut unmatched = Unmatched::new("^epoch");
        unmatched.add("0: epoch 1");
        insta::assert_snapshot!(unmatched.text(Some("lightning")), @"its only line does not match the preset `lightning`; other text stands before it on its line, so write a `pattern` without `^`: `0: epoch 1`");
    }

    #[test]
    fn of_a_flood_only_the_beginning_is_compared_and_the_end_is_kept() {
        let mut unmatched = Unmatched::new("^epoch");
        (0..COMPARED + 7).for_each(|n| unmatched.add(&format!("line {n}")));
        unmatched.add("Epoch 1");
        assert_eq!(unmatched.nearest, None);
        assert_eq!(unmatched.newest().collect::<Vec<_>>(), ["line 10003", "line 10004", "line 10005", "line 10006", "Epoch 1"]);
    }
}
