//! A line of output as numbers and the texts between them, and what a text calls a number: a unit of time, a duration.

use regex::Regex;

/// A part of a line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Piece<'a> {
    Text(&'a str),
    Number(&'a str),
}

/// A unit of time right behind a number, but not a rate.
pub fn unit_after() -> Option<Regex> {
    Regex::new(r"^(\s?)(ms|s|sec|secs|seconds|min|minutes)\b(?:[^/]|$)").ok()
}

/// Whether a text begins with a unit of time.
pub fn is_unit(text: &str) -> bool {
    Regex::new(r"(?i)^\s?(?:days?|d|hours?|h|m|mins?|minutes?|s|secs?|seconds?|ms)\b(?:[^/]|$)")
        .is_ok_and(|unit| unit.is_match(text))
}

/// Whether a text between two numbers is a unit of time and nothing else.
pub fn is_whole_unit(text: &str) -> bool {
    Regex::new(r"(?i)^\s?(?:days?|d|hours?|h|m|mins?|minutes?|s|secs?|seconds?|ms)[\s,]*$").is_ok_and(|unit| unit.is_match(text))
}

/// Whether a number of a line is a time.
pub fn is_time(pieces: &[Piece<'_>], slot: usize) -> bool {
    is_unit(&text_after(pieces, slot)) || names_time(&word_before(pieces, slot))
}

/// Whether a text before a number announces a time.
pub fn names_time(text: &str) -> bool {
    // `time_elapsed`, `train_time_s` and `wall` as well: `_` is no boundary of a word.
    Regex::new(r"(?i)(?:(?:\b|_)(?:time|took|elapsed|duration|wall|seconds|secs)(?:_(?:s|secs?|seconds|ms))?|\bin)\W*$")
        .is_ok_and(|word| word.is_match(text))
}

/// The pieces of a line: numbers as people write them, and the texts between.
pub fn pieces(line: &str) -> Vec<Piece<'_>> {
    let (mut pieces, mut begun, mut at) = (Vec::new(), 0, 0);
    let bytes = line.as_bytes();
    while at < bytes.len() {
        if !bytes[at].is_ascii_digit() {
            at += 1;
            continue;
        }
        let start = at;
        while at < bytes.len()
            && (bytes[at].is_ascii_digit()
                || matches!(bytes[at], b'.' | b':') && bytes.get(at + 1).is_some_and(u8::is_ascii_digit))
        {
            at += 1;
        }
        if start > begun {
            pieces.push(Piece::Text(&line[begun..start]));
        }
        pieces.push(Piece::Number(&line[start..at]));
        begun = at;
    }
    if begun < line.len() {
        pieces.push(Piece::Text(&line[begun..]));
    }
    pieces
}

pub fn numbers(pieces: &[Piece<'_>]) -> usize {
    pieces.iter().filter(|piece| matches!(piece, Piece::Number(_))).count()
}

/// The pattern of the beginning of a line, to the end of as many texts with words; all of the line if that is no more than those.
pub fn beginning(pieces: &[Piece<'_>], words: usize) -> Option<String> {
    let has_words = |piece: &Piece<'_>| matches!(piece, Piece::Text(text) if text.contains(char::is_alphabetic));
    let last = pieces.iter().enumerate().filter(|(_, piece)| has_words(piece)).nth(words - 1)?.0;
    let end = if last + 1 == pieces.len() { "$" } else { "" };
    Some(format!("^{}{end}", pattern_of(&pieces[..=last])))
}

/// The pattern of these pieces: their texts, and any numbers.
pub fn pattern_of(pieces: &[Piece<'_>]) -> String {
    let one = |piece: &Piece<'_>| match piece {
        Piece::Text(text) => padded(text),
        Piece::Number(_) => r"[\d.:,]+".to_string(),
    };
    pieces.iter().map(one).collect()
}

/// A text before a number; two spaces or more are padding, of which a longer number has less.
fn padded(text: &str) -> String {
    let bare = text.trim_end_matches(' ');
    match text.len() - bare.len() {
        0 | 1 => regex::escape(text),
        _ => regex::escape(bare) + r"\s*",
    }
}

/// The place of a number among the pieces.
pub fn place(pieces: &[Piece<'_>], slot: usize) -> Option<usize> {
    pieces.iter().enumerate().filter(|(_, piece)| matches!(piece, Piece::Number(_))).nth(slot).map(|(place, _)| place)
}

pub fn number<'a>(pieces: &[Piece<'a>], slot: usize) -> Option<&'a str> {
    match pieces.get(place(pieces, slot)?) {
        Some(Piece::Number(number)) => Some(number),
        _ => None,
    }
}

/// Everything before a number.
pub fn before(pieces: &[Piece<'_>], slot: usize) -> String {
    let Some(place) = place(pieces, slot) else { return String::new() };
    pieces[..place]
        .iter()
        .map(|piece| match piece {
            Piece::Text(text) | Piece::Number(text) => *text,
        })
        .collect()
}

/// The text right before a number, from its last word on.
pub fn word_before(pieces: &[Piece<'_>], slot: usize) -> String {
    let before = place(pieces, slot).and_then(|place| place.checked_sub(1));
    let Some(Piece::Text(text)) = before.and_then(|place| pieces.get(place)) else { return String::new() };
    let trimmed = text.trim_end_matches(|c: char| !c.is_alphanumeric());
    let before_it = trimmed.char_indices().rfind(|(_, c)| !c.is_alphanumeric() && *c != '_');
    let from = before_it.map_or(0, |(at, c)| at + c.len_utf8());
    text[from..].trim_start().to_string()
}

/// The text right after a number.
pub fn text_after(pieces: &[Piece<'_>], slot: usize) -> String {
    match place(pieces, slot).and_then(|place| pieces.get(place + 1)) {
        Some(Piece::Text(text)) => text.to_string(),
        _ => String::new(),
    }
}
