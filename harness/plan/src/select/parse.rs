//! Parses an expression: words with their places, then the grammar
//!
//! ```text
//! any  = all *( "||" all )      all = one *( "&&" one )      one = "!" one / "(" any ")" / test
//! test = axis [ compare value / "in" "[" value *( "," value ) "]" / "=~" text ]
//! ```

use std::ops::Range;
use std::sync::Arc;

use collo_text::{Diagnostic, Source, quoted};
use regex::Regex;
use serde_json::Value as Json;

use super::{Against, Comparison, Condition, Test};

/// Maximum nesting: more would overflow the stack.
const DEEPEST: usize = 100;

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Name(String),
    Value(Json),
    Sign(&'static str),
}

const SIGNS: [&str; 15] = ["==", "!=", "<=", ">=", "=~", "&&", "||", "<", ">", "!", "(", ")", "[", "]", ","];

/// What an expression consists of, for users who write something else.
pub struct Written {
    /// What it begins with.
    first: &'static str,
    whole: &'static str,
}

pub const OF_AXES: Written =
    Written { first: "an axis, as in `degree <= 2`", whole: "as in `sharing == \"naive\" && degree <= 2`" };
pub const OF_TAGS: Written = Written { first: "a tag, as in `gpu && !slow`", whole: "as in `gpu && !slow`" };

pub fn condition(source: &Arc<Source>, written: &Written) -> Result<Condition, Diagnostic> {
    let words = words(source, written)?;
    let mut reader = ExpressionReader { source, written, words, next: 0, depth: 0 };
    let condition = reader.any()?;
    match reader.peek() {
        None => Ok(condition),
        Some(_) => Err(reader.expected("`&&`, `||` or the end")),
    }
}

fn words(source: &Arc<Source>, written: &Written) -> Result<Vec<(Token, Range<usize>)>, Diagnostic> {
    let text = source.text();
    let mut words = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let (word, length) = if c.is_whitespace() {
            at += c.len_utf8();
            continue;
        } else if let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
            (Token::Sign(sign), sign.len())
        } else if c == '"' || c == '\'' {
            let Some(end) = rest[1..].find(c) else {
                return Err(Diagnostic::new("string without its closing quote").at(source, at..text.len()));
            };
            (Token::Value(rest[1..=end].into()), end + 2)
        } else if c.is_ascii_digit() || (c == '-' && rest[1..].starts_with(|c: char| c.is_ascii_digit())) {
            let length = rest[1..].find(|c: char| !c.is_ascii_alphanumeric() && c != '.').map_or(rest.len(), |i| i + 1);
            let number: Option<Json> = rest[..length]
                .parse::<i64>()
                .map(Json::from)
                .ok()
                .or_else(|| rest[..length].parse::<f64>().ok().filter(|n| n.is_finite()).map(Json::from));
            let wrong = || Diagnostic::new(format!("invalid number {}", quoted(&rest[..length]))).at(source, at..at + length);
            (Token::Value(number.ok_or_else(|| wrong().note("strings must be quoted"))?), length)
        } else if c.is_alphabetic() || c == '_' {
            let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '-').unwrap_or(rest.len());
            let word = match &rest[..length] {
                "true" => Token::Value(true.into()),
                "false" => Token::Value(false.into()),
                name => Token::Name(name.to_string()),
            };
            (word, length)
        } else {
            let note = match c {
                '=' => "equal is `==`",
                '&' => "and is `&&`",
                '|' => "or is `||`",
                _ => written.whole,
            };
            let what = format!("unexpected {}", quoted(&c.to_string()));
            return Err(Diagnostic::new(what).at(source, at..at + c.len_utf8()).note(note));
        };
        words.push((word, at..at + length));
        at += length;
    }
    Ok(words)
}

struct ExpressionReader<'a> {
    source: &'a Arc<Source>,
    written: &'a Written,
    words: Vec<(Token, Range<usize>)>,
    next: usize,
    depth: usize,
}

impl ExpressionReader<'_> {
    fn peek(&self) -> Option<&Token> {
        self.words.get(self.next).map(|(word, _)| word)
    }

    fn span(&self) -> Range<usize> {
        let end = self.source.text().len();
        self.words.get(self.next).map_or(end..end, |(_, span)| span.clone())
    }

    fn take(&mut self, sign: &str) -> bool {
        let is = self.peek() == Some(&Token::Sign(SIGNS.into_iter().find(|s| *s == sign).unwrap_or_default()));
        self.next += usize::from(is);
        is
    }

    fn expected(&self, what: &str) -> Diagnostic {
        Diagnostic::new(format!("expected {what}")).at(self.source, self.span())
    }

    fn any(&mut self) -> Result<Condition, Diagnostic> {
        let mut parts = vec![self.all()?];
        while self.take("||") {
            parts.push(self.all()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Condition::Any(parts) })
    }

    fn all(&mut self) -> Result<Condition, Diagnostic> {
        let mut parts = vec![self.one()?];
        while self.take("&&") {
            parts.push(self.one()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Condition::All(parts) })
    }

    fn one(&mut self) -> Result<Condition, Diagnostic> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(Diagnostic::new(format!("more than {DEEPEST} levels of `!` and `(`")).at(self.source, self.span()));
        }
        let condition = if self.take("!") {
            Condition::Not(Box::new(self.one()?))
        } else if self.take("(") {
            let inner = self.any()?;
            if !self.take(")") {
                return Err(self.expected("`)`"));
            }
            inner
        } else {
            Condition::Test(self.test()?)
        };
        self.depth -= 1;
        Ok(condition)
    }

    fn test(&mut self) -> Result<Test, Diagnostic> {
        let Some(Token::Name(axis)) = self.peek().cloned() else { return Err(self.expected(self.written.first)) };
        let axis_span = self.span();
        self.next += 1;
        let comparison = match self.peek() {
            Some(Token::Sign("==")) => Comparison::Equal,
            Some(Token::Sign("!=")) => Comparison::NotEqual,
            Some(Token::Sign("<")) => Comparison::Less,
            Some(Token::Sign("<=")) => Comparison::AtMost,
            Some(Token::Sign(">")) => Comparison::More,
            Some(Token::Sign(">=")) => Comparison::AtLeast,
            Some(Token::Sign("=~")) => {
                self.next += 1;
                return self.pattern(axis, axis_span);
            }
            Some(Token::Name(name)) if name == "in" => {
                self.next += 1;
                return self.list(axis, axis_span);
            }
            _ => return Ok(Test { axis, value_span: axis_span.clone(), axis_span, against: Against::True }),
        };
        self.next += 1;
        let value_span = self.span();
        let value = self.value()?;
        Ok(Test { axis, axis_span, value_span, against: Against::Compared(comparison, value) })
    }

    fn value(&mut self) -> Result<Json, Diagnostic> {
        match self.peek().cloned() {
            Some(Token::Value(value)) => {
                self.next += 1;
                Ok(value)
            }
            Some(Token::Name(name)) => Err(self.expected("a value").note(format!("strings must be quoted: `\"{name}\"`"))),
            _ => Err(self.expected("a value").note("a number, `true`, `false`, or a quoted string")),
        }
    }

    fn pattern(&mut self, axis: String, axis_span: Range<usize>) -> Result<Test, Diagnostic> {
        let value_span = self.span();
        let value = self.value()?;
        let wrong = |why: &str| Diagnostic::new(format!("invalid regular expression: {why}")).at(self.source, value_span.clone());
        let text = value.as_str().ok_or_else(|| wrong("it must be quoted"))?;
        let last_line =
            |e: regex::Error| e.to_string().lines().last().unwrap_or_default().trim_start_matches("error: ").to_string();
        let pattern = Regex::new(text).map_err(|e| wrong(&last_line(e)))?;
        Ok(Test { axis, axis_span, value_span, against: Against::Matches(pattern) })
    }

    fn list(&mut self, axis: String, axis_span: Range<usize>) -> Result<Test, Diagnostic> {
        let start = self.span().start;
        if !self.take("[") {
            return Err(self.expected("`[`").note("as in `degree in [1, 2]`"));
        }
        let mut values = vec![self.value()?];
        while self.take(",") {
            values.push(self.value()?);
        }
        let end = self.span().end;
        if !self.take("]") {
            return Err(self.expected("`,` or `]`"));
        }
        Ok(Test { axis, axis_span, value_span: start..end, against: Against::OneOf(values) })
    }
}
