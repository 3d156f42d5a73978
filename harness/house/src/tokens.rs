//! Rust source as tokens. In: a text. Out: its words, strings, comments and symbols, with lines.
//!
//! Enough of the grammar for counting: strings of all kinds, nested comments, and lifetimes as against characters.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An identifier or a keyword.
    Word,
    /// What stands between the quotes of a string literal, escapes as written.
    Text,
    /// A comment without its marks.
    Comment,
    /// `::`, or a single character.
    Symbol,
    /// A number, a character, a lifetime.
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'a> {
    pub kind: Kind,
    pub text: &'a str,
    /// Of its first character, from 1.
    pub line: usize,
    /// Of its last character.
    pub last_line: usize,
}

impl Token<'_> {
    pub fn is(&self, text: &str) -> bool {
        matches!(self.kind, Kind::Word | Kind::Symbol) && self.text == text
    }
}

/// All tokens of a text, comments included.
pub fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut reader = Reader { source, at: 0, line: 1 };
    let mut tokens = Vec::new();
    while let Some(token) = reader.token() {
        tokens.push(token);
    }
    tokens
}

struct Reader<'a> {
    source: &'a str,
    at: usize,
    line: usize,
}

impl<'a> Reader<'a> {
    fn token(&mut self) -> Option<Token<'a>> {
        let blank = self.rest().len() - self.rest().trim_start().len();
        self.pass(blank);
        let rest = self.rest();
        let first = rest.chars().next()?;
        let (kind, length, text) = if rest.starts_with("//") {
            let length = rest.find('\n').unwrap_or(rest.len());
            (Kind::Comment, length, rest[..length].trim_start_matches('/').trim_start_matches('!'))
        } else if rest.starts_with("/*") {
            let length = block_comment(rest);
            (Kind::Comment, length, rest[..length].trim_start_matches("/*").trim_end_matches("*/"))
        } else if let Some((length, text)) = string(rest) {
            (Kind::Text, length, text)
        } else if first == '\'' {
            let length = quote(rest);
            (Kind::Other, length, &rest[..length])
        } else if first.is_ascii_digit() {
            let length = number(rest);
            (Kind::Other, length, &rest[..length])
        } else if first == '_' || first.is_alphabetic() {
            let length = word(rest);
            (Kind::Word, length, rest[..length].trim_start_matches("r#"))
        } else {
            let length = if rest.starts_with("::") { 2 } else { first.len_utf8() };
            (Kind::Symbol, length, &rest[..length])
        };
        let line = self.line;
        self.pass(length);
        Some(Token { kind, text, line, last_line: self.line })
    }

    fn rest(&self) -> &'a str {
        &self.source[self.at..]
    }

    fn pass(&mut self, length: usize) {
        self.line += self.rest()[..length].matches('\n').count();
        self.at += length;
    }
}

/// The length of a nested comment.
fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

/// The length and the contents of a string literal, if one begins here.
fn string(rest: &str) -> Option<(usize, &str)> {
    let prefix = ["br", "cr", "b", "c", "r", ""].into_iter().find(|p| {
        let after = rest.strip_prefix(p).unwrap_or_default();
        after.starts_with('"') || p.ends_with('r') && after.trim_start_matches('#').starts_with('"')
    })?;
    let hashes = rest[prefix.len()..].find('"')?;
    let start = prefix.len() + hashes + 1;
    let body = &rest[start..];
    let length = if prefix.ends_with('r') {
        let end = format!("\"{}", "#".repeat(hashes));
        body.find(&end).unwrap_or(body.len())
    } else {
        closing_quote(body)
    };
    Some(((start + length + 1 + hashes).min(rest.len()), &body[..length]))
}

fn closing_quote(body: &str) -> usize {
    let mut escaped = false;
    for (at, character) in body.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at,
            _ => {}
        }
    }
    body.len()
}

/// The length of a character literal or a lifetime.
fn quote(rest: &str) -> usize {
    let mut characters = rest.char_indices().skip(1);
    match (characters.next(), characters.next()) {
        (Some((_, '\\')), Some((at, escaped))) => {
            let from = at + escaped.len_utf8();
            rest[from..].find('\'').map_or(rest.len(), |end| from + end + 1)
        }
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 1 + word(&rest[1..]),
    }
}

fn number(rest: &str) -> usize {
    let digits = word(rest);
    let after = rest[digits..].strip_prefix('.').filter(|r| r.starts_with(|c: char| c.is_ascii_digit()));
    digits + after.map_or(0, |after| 1 + word(after))
}

fn word(rest: &str) -> usize {
    let raw = if rest.starts_with("r#") { 2 } else { 0 };
    rest[raw..].find(|c: char| c != '_' && !c.is_alphanumeric()).map_or(rest.len(), |end| raw + end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str, kind: Kind) -> Vec<&str> {
        tokens(source).into_iter().filter(|t| t.kind == kind).map(|t| t.text).collect()
    }

    #[test]
    fn strings_of_all_kinds_are_no_words() {
        let source = r####"let a = "x \" y"; let b = r#"use "crate::z""#; let c = b"q"; let d = r"\"; r#type"####;
        assert_eq!(texts(source, Kind::Text), [r#"x \" y"#, r#"use "crate::z""#, "q", r"\"]);
        assert_eq!(texts(source, Kind::Word), ["let", "a", "let", "b", "let", "c", "let", "d", "type"]);
    }

    #[test]
    fn quotes_in_characters_and_lifetimes_open_no_string() {
        let source = r#"fn f<'a>(c: char) -> &'a str { if c == '"' || c == '\'' || c == '\u{1F}' { "in" } else { 'é'; "out" } }"#;
        assert_eq!(texts(source, Kind::Text), ["in", "out"]);
    }

    #[test]
    fn comments_nest_and_have_lines() {
        let source = "/* one /* two */\n still */ a // it's `c`\n/// doc\nb";
        assert_eq!(texts(source, Kind::Comment), [" one /* two */\n still ", " it's `c`", " doc"]);
        let lines: Vec<_> = tokens(source).iter().map(|t| (t.line, t.last_line)).collect();
        assert_eq!(lines, [(1, 2), (2, 2), (2, 2), (3, 3), (4, 4)]);
    }

    #[test]
    fn ranges_are_no_numbers_with_fractions() {
        assert_eq!(texts("0..10 1.5e3 x.0.y", Kind::Symbol), [".", ".", ".", "."]);
    }
}
