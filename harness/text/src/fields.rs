//! Reading a TOML text by a table of its keys.
//!
//! In: a text and a [`Shape`], the one list of keys that the reader, the JSON Schema and the hints share. Out: the fields found, each
//! with its place, and every mistake. It knows types, units and ranges, not what a key means.

mod arithmetic;
mod found;
mod keys;

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use crate::{Diagnostic, Diagnostics, Source, nearest, quoted, units};
use serde_json::Value as Json;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::nearest::abbreviated;

pub use arithmetic::sum;
pub use found::{Fields, Located, Value};
pub use keys::KeyType;

/// Maximum size of a file, in bytes; nothing written by hand is larger.
pub const LARGEST: u64 = 1_000_000;

/// The keys of a table, as [`keys!`](crate::keys) writes them.
#[derive(Clone, Copy)]
pub struct Shape {
    /// The command that lists the keys: `collo schema experiment`.
    pub help: &'static str,
    pub keys: &'static [Key],
    /// The kind of any other key; absent if all keys are known.
    pub others: Option<&'static ValueKind>,
}

pub struct Key {
    pub name: &'static str,
    pub kind: ValueKind,
    /// As it would be written; absent without a default.
    pub default: Option<&'static str>,
    pub about: &'static str,
}

/// The kind of a key's value.
pub enum ValueKind {
    Text,
    Whole(RangeInclusive<u64>),
    Number(RangeInclusive<f64>),
    Duration,
    /// A duration, or text that begins with this word, which is kept as text.
    DurationOr(&'static str),
    /// A number of bytes, as `"500MB"`.
    Size,
    /// `"5%"` or `0.05`.
    Ratio,
    Choice(&'static [&'static str]),
    /// Any text, number or flag: the setting of a workload.
    Setting,
    /// Any number of values.
    List(&'static ValueKind),
    /// A value, or a list of them.
    OneOrMore(&'static ValueKind),
    /// One or more distinct values: an axis of the matrix; and the way out if there is none.
    Axis(&'static ValueKind, &'static str),
    Table(&'static Shape),
    /// A table whose keys are the user's.
    Map(&'static ValueKind),
}

impl ValueKind {
    /// The keys of a table.
    pub fn shape(&self) -> Option<Shape> {
        match self {
            ValueKind::Table(shape) => Some(**shape),
            ValueKind::Map(of) => Some(Shape { help: "", keys: &[], others: Some(of) }),
            _ => None,
        }
    }
}

/// Read a text by its shape; the mistakes are collected, and the fields have the rest.
pub fn read(source: &Arc<Source>, shape: &Shape) -> (Fields, Diagnostics) {
    read_part(source, 0, shape)
}

/// The same for a text that begins at this offset of several joined ones: the places are those in all of them.
pub fn read_part(source: &Arc<Source>, shift: usize, shape: &Shape) -> (Fields, Diagnostics) {
    let mut reader = FieldReader { source, shift, mistakes: Diagnostics::default() };
    let fields = match DeTable::parse(source.text()) {
        Ok(table) => reader.table(table.get_ref(), table.span(), shape),
        Err(wrong) => {
            let span = wrong.span().unwrap_or(0..0);
            let title = format!("not valid TOML: {}", wrong.message().lines().collect::<Vec<_>>().join(", "));
            reader.mistakes.push(Diagnostic::new(title).at(source, span));
            Fields::default()
        }
    };
    (fields, reader.mistakes)
}

struct FieldReader<'a> {
    source: &'a Arc<Source>,
    /// What is added to the places of fields, not to those of mistakes.
    shift: usize,
    mistakes: Diagnostics,
}

impl FieldReader<'_> {
    fn shifted(&self, span: Range<usize>) -> Range<usize> {
        span.start + self.shift..span.end + self.shift
    }

    fn wrong(&mut self, what: String, span: Range<usize>, note: Option<String>) {
        let mistake = Diagnostic::new(what).at(self.source, span);
        self.mistakes.push(match note {
            Some(note) => mistake.note(note),
            None => mistake,
        });
    }

    fn table(&mut self, table: &DeTable<'_>, span: Range<usize>, shape: &Shape) -> Fields {
        let mut fields = Fields { span: self.shifted(span), found: BTreeMap::new() };
        for (key, value) in table.iter() {
            let name = key.get_ref().as_ref();
            let kind = shape.keys.iter().find(|k| k.name == name).map(|k| &k.kind).or(shape.others);
            let Some(kind) = kind else {
                let names = || shape.keys.iter().map(|k| k.name);
                let has_it = |kind: &ValueKind| matches!(kind, ValueKind::Table(of) if of.keys.iter().any(|k| k.name == name));
                let table = shape.keys.iter().find(|k| has_it(&k.kind));
                let note = match (table, nearest(name, names()).or_else(|| abbreviated(name, names()))) {
                    (Some(table), _) => format!("it belongs below `[{}]`", table.name),
                    (None, Some(near)) => format!("did you mean `{near}`?"),
                    (None, None) => format!("all keys: `{}`", shape.help),
                };
                self.wrong(format!("unknown key {}", quoted(name)), key.span(), Some(note));
                continue;
            };
            if let Some(found) = self.value(name, value, kind) {
                fields.found.insert(name.to_string(), (self.shifted(key.span()), found));
            }
        }
        fields
    }

    fn value(&mut self, name: &str, value: &Spanned<DeValue<'_>>, kind: &ValueKind) -> Option<Located> {
        let span = value.span();
        if let DeValue::String(text) = value.get_ref()
            && text.contains('\0')
        {
            // Neither a word of a command nor a variable can carry it.
            self.wrong(format!("`{name}` contains a NUL character"), span, Some("leave it out".into()));
            return None;
        }
        let value = match (kind, value.get_ref()) {
            (ValueKind::Text, DeValue::String(text)) => Value::Text(text.to_string()),
            (ValueKind::Whole(_) | ValueKind::Number(_), DeValue::String(text)) if sum(text).is_some() => {
                return self.computed(name, text, span, kind);
            }
            (ValueKind::Whole(range), DeValue::Integer(_)) => {
                let n = whole(value.get_ref()).and_then(|n| u64::try_from(n).ok()).filter(|n| range.contains(n));
                let Some(n) = n else {
                    self.wrong(format!("{name} {} is not {}", self.as_written(&span), within(kind)), span, None);
                    return None;
                };
                Value::Whole(n)
            }
            (ValueKind::Number(range), DeValue::Integer(_) | DeValue::Float(_)) => {
                let Some(n) = number(value.get_ref()).filter(|n| range.contains(n)) else {
                    self.wrong(format!("{name} {} is not {}", self.as_written(&span), within(kind)), span, None);
                    return None;
                };
                Value::Number(n)
            }
            (ValueKind::Size, DeValue::String(text)) => {
                let Some(bytes) = units::size_bytes(text) else {
                    self.wrong(format!("invalid size {}", quoted(text)), span, Some("as in `\"500MB\"`".into()));
                    return None;
                };
                Value::Whole(bytes)
            }
            (ValueKind::Ratio, DeValue::Integer(_) | DeValue::Float(_) | DeValue::String(_)) => {
                let ratio = match value.get_ref() {
                    DeValue::String(text) => units::percent_ratio(text),
                    // Five is 5 % to its writer, and 500 % without the sign.
                    other => number(other).filter(|share| *share <= 1.0),
                };
                let Some(ratio) = ratio.filter(|r| (0.0..=10.0).contains(r)) else {
                    self.wrong(format!("invalid share {}", self.shown(value)), span, Some("write `\"5%\"` or `0.05`".into()));
                    return None;
                };
                Value::Number(ratio)
            }
            (ValueKind::DurationOr(word), DeValue::String(text)) if text.starts_with(word) => Value::Text(text.to_string()),
            (ValueKind::Duration | ValueKind::DurationOr(_), DeValue::String(text)) => {
                let Some(duration) = units::duration(text) else {
                    let meant = units::duration_meant(text).unwrap_or_else(|| "30m".into());
                    let note = format!("write `\"{meant}\"`; {}", units::DURATION_HELP);
                    self.wrong(format!("invalid duration {}", quoted(text)), span, Some(note));
                    return None;
                };
                Value::Duration(duration)
            }
            (ValueKind::Choice(words), DeValue::String(text)) => {
                if !words.contains(&text.as_ref()) {
                    self.wrong(format!("unknown {name} {}", quoted(text)), span, Some(choices(text, words)));
                    return None;
                }
                Value::Text(text.to_string())
            }
            (ValueKind::Setting, value) if setting(value).is_some() => Value::Setting(setting(value)?),
            (ValueKind::Setting, DeValue::Float(_) | DeValue::Integer(_)) => {
                let what = format!("{} {} is not a finite number", quoted(name), self.as_written(&span));
                self.wrong(what, span, Some("write a finite one".into()));
                return None;
            }
            (ValueKind::List(of), DeValue::Array(items)) => Value::List(self.items(name, items, of)),
            (ValueKind::OneOrMore(of), DeValue::Array(items)) => Value::List(self.items(name, items, of)),
            (ValueKind::OneOrMore(of), _) => return self.value(name, value, of),
            (ValueKind::Axis(of, empty), DeValue::Array(items)) => {
                if items.is_empty() {
                    self.wrong(format!("axis `{name}` is empty, so there is no cell"), span, Some((*empty).into()));
                    return None;
                }
                let found = self.items(name, items, of);
                for (i, item) in found.iter().enumerate() {
                    if found[..i].iter().any(|before| same(&before.value, &item.value)) {
                        let span = item.span.start - self.shift..item.span.end - self.shift;
                        let text = self.as_written(&span).trim_matches(['"', '\'']).to_string();
                        self.wrong(format!("axis `{name}` has {text} twice"), span, Some("leave one out".into()));
                    }
                }
                Value::List(found)
            }
            (ValueKind::Axis(of, _), _) => Value::List(vec![self.value(name, value, of)?]),
            (ValueKind::Table(_) | ValueKind::Map(_), DeValue::Table(table)) => {
                Value::Table(self.table(table, span.clone(), &kind.shape()?))
            }
            (kind, other) => {
                let note = self.rewritten(kind, other);
                self.wrong(format!("{} must be {}, not {}", quoted(name), asked(kind), given(other)), span, note);
                return None;
            }
        };
        Some(Located { span: self.shifted(span), value })
    }

    /// A number written as `"7 * 0.1"`.
    fn computed(&mut self, name: &str, text: &str, span: Range<usize>, kind: &ValueKind) -> Option<Located> {
        let result = match sum(text)? {
            Ok(result) => result,
            Err(mistake) => {
                self.mistakes.push(placed(mistake, self.source, &span, text));
                return None;
            }
        };
        let (value, asked) = match kind {
            ValueKind::Whole(range) => {
                let whole = result.whole().and_then(|n| u64::try_from(n).ok()).filter(|n| range.contains(n));
                (whole.map(Value::Whole), format!("a whole number {}", within(kind)))
            }
            ValueKind::Number(range) => (Some(result.number()).filter(|n| range.contains(n)).map(Value::Number), within(kind)),
            _ => return None,
        };
        if value.is_none() {
            self.wrong(format!("{name} {} is {}, which is not {asked}", quoted(text), result.number()), span.clone(), None);
        }
        Some(Located { span: self.shifted(span), value: value? })
    }

    fn items(&mut self, name: &str, items: &[Spanned<DeValue<'_>>], of: &ValueKind) -> Vec<Located> {
        items.iter().filter_map(|item| self.value(name, item, of)).collect()
    }

    fn as_written(&self, span: &Range<usize>) -> &str {
        self.source.text().get(span.clone()).unwrap_or_default()
    }

    fn shown(&self, value: &Spanned<DeValue<'_>>) -> String {
        match value.get_ref() {
            DeValue::String(text) => quoted(text),
            _ => quoted(self.as_written(&value.span())),
        }
    }

    /// The same value in the form that the kind requires, if that is obvious.
    fn rewritten(&self, kind: &ValueKind, given: &DeValue<'_>) -> Option<String> {
        match (kind, given) {
            (ValueKind::Whole(_), DeValue::String(text)) if text.parse::<u64>().is_ok() => Some(format!("write `{text}`")),
            (ValueKind::Number(_), DeValue::String(text)) if text.parse::<f64>().is_ok() => Some(format!("write `{text}`")),
            (ValueKind::Text, DeValue::Integer(n)) => Some(format!("write `\"{n}\"`")),
            (ValueKind::Duration | ValueKind::DurationOr(_), DeValue::Integer(n)) => {
                Some(format!("write `\"{n}s\"`; {}", units::DURATION_HELP))
            }
            (ValueKind::Duration | ValueKind::DurationOr(_), _) => Some(format!("write `\"30m\"`; {}", units::DURATION_HELP)),
            (ValueKind::Size, DeValue::Integer(n)) => Some(format!("write `\"{n}B\"`")),
            (ValueKind::Size, _) => Some("write `\"500MB\"`".into()),
            (ValueKind::List(ValueKind::Table(_)), _) => None,
            (ValueKind::Table(shape), given) => {
                let (takes, written): (fn(&ValueKind) -> bool, String) = match given {
                    DeValue::String(text) => (|kind| matches!(kind, ValueKind::Text), Json::from(&**text).to_string()),
                    DeValue::Integer(n) => (|kind| matches!(kind, ValueKind::Whole(_)), n.to_string()),
                    _ => return None,
                };
                let key = shape.keys.iter().find(|key| takes(&key.kind))?.name;
                Some(format!("write `{{ {key} = {written} }}`"))
            }
            (ValueKind::List(_), DeValue::String(text)) => Some(format!("write `[\"{}\"]`", text.replace(' ', "\", \""))),
            (ValueKind::Choice(words), _) => Some(choices("", words)),
            _ => None,
        }
    }
}

/// Of so many words all are listed, of more only those that may be meant.
const LISTED: usize = 12;

/// What may stand in place of a word that is none of these.
fn choices(typed: &str, words: &[&str]) -> String {
    let part: Vec<&&str> = words.iter().filter(|word| typed.len() > 2 && word.contains(&typed.to_lowercase())).collect();
    match nearest(typed, words.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if !part.is_empty() => format!("did you mean {}?", listed(&part)),
        None if words.len() <= LISTED => format!("one of {}", listed(words)),
        None => format!("one of {}, as in `{}`: `collo schema experiment` lists them", words.len(), words[0]),
    }
}

/// A mistake inside a quoted text, where it stands in the file. A string without escapes holds its own text one character in, so
/// that the carets can point into it.
pub fn placed(mistake: Diagnostic, source: &Arc<Source>, span: &Range<usize>, text: &str) -> Diagnostic {
    let inside = span.start + 1..span.end.saturating_sub(1);
    let plain = source.text().get(inside.clone()) == Some(text);
    mistake.moved(source, span, plain.then_some(inside.start))
}

/// `"a"`, `"b"` or `"c"`, for a note.
pub fn listed<W: AsRef<str>>(words: &[W]) -> String {
    joined(words, "or")
}

/// `"a"`, `"b"` and `"c"`.
pub fn listed_all<W: AsRef<str>>(words: &[W]) -> String {
    joined(words, "and")
}

fn joined<W: AsRef<str>>(words: &[W], before_last: &str) -> String {
    let all: Vec<String> = words.iter().map(|w| format!("`{}`", w.as_ref())).collect();
    match all.split_last() {
        Some((last, before)) if !before.is_empty() => format!("{} {before_last} {last}", before.join(", ")),
        _ => all.concat(),
    }
}

/// The range of a number, for messages.
fn within(kind: &ValueKind) -> String {
    match kind {
        ValueKind::Whole(range) if *range.end() == u64::MAX => format!("{} or more", range.start()),
        ValueKind::Whole(range) => format!("between {} and {}", range.start(), range.end()),
        ValueKind::Number(range) if range.end().is_infinite() => format!("{} or more", range.start()),
        ValueKind::Number(range) => format!("between {} and {}", range.start(), range.end()),
        _ => String::new(),
    }
}

fn asked(kind: &ValueKind) -> &'static str {
    match kind {
        ValueKind::Text | ValueKind::Choice(_) | ValueKind::Size => "text",
        ValueKind::Whole(_) => "a whole number",
        ValueKind::Number(_) => "a number",
        ValueKind::Duration | ValueKind::DurationOr(_) => "a duration in quotes",
        ValueKind::Ratio => "a share, as `\"5%\"`",
        ValueKind::Setting => "text, a number, `true` or `false`",
        ValueKind::List(ValueKind::Table(_)) => "a list of tables",
        ValueKind::List(_) | ValueKind::OneOrMore(_) | ValueKind::Axis(..) => "a list",
        ValueKind::Table(_) | ValueKind::Map(_) => "a table",
    }
}

fn given(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a fraction",
        DeValue::Boolean(_) => "`true` or `false`",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

fn whole(value: &DeValue<'_>) -> Option<i64> {
    value.as_integer().and_then(|n| i64::from_str_radix(n.as_str(), n.radix()).ok())
}

fn number(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Float(f) => f.as_str().parse().ok().filter(|f: &f64| f.is_finite()),
        other => whole(other).map(|n| n as f64),
    }
}

fn setting(value: &DeValue<'_>) -> Option<Json> {
    match value {
        DeValue::String(text) => Some(text.as_ref().into()),
        DeValue::Boolean(flag) => Some((*flag).into()),
        DeValue::Integer(_) => whole(value).map(Json::from),
        DeValue::Float(_) => number(value).map(Json::from),
        _ => None,
    }
}

fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Text(a), Value::Text(b)) => a == b,
        (Value::Whole(a), Value::Whole(b)) => a == b,
        (Value::Setting(a), Value::Setting(b)) => a == b,
        _ => false,
    }
}
