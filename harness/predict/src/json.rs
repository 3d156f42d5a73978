//! JSON into a type. In: a text. Out: the value, or where and why it is none.

use std::sync::Arc;

use collo_text::{Diagnostic, Source};
use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned, de::Error};

/// A kind of JSON file: its name, `a description`, and what to do about a bad one.
pub struct JsonKind {
    pub name: &'static str,
    pub way_out: &'static str,
    pub newest_schema: u32,
}

pub fn read<T: DeserializeOwned>(source: &Arc<Source>, kind: &JsonKind) -> Result<T, Diagnostic> {
    serde_json::from_str(source.text()).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let message = error.to_string();
        let reason = message.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&message);
        let text = source.text();
        let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
        // serde_json counts columns in bytes.
        let at = (start + column.saturating_sub(1)).min(text.len());
        Diagnostic::new(format!("not {}: {reason}", kind.name)).at(source, at..at + 1).hint(kind.way_out)
    })
}

/// As files of ours stand: indented, with a newline at the end.
pub fn to_text(value: &impl Serialize) -> String {
    let text = serde_json::to_string_pretty(value).expect("numbers and texts only");
    format!("{text}\n")
}

/// The schema of a file, before anything else of it is read.
pub fn check_schema(source: &Arc<Source>, kind: &JsonKind) -> Result<(), Diagnostic> {
    #[derive(Deserialize)]
    struct Versioned {
        schema: u32,
    }
    let Versioned { schema } = read(source, kind)?;
    let (name, newest) = (source.name(), kind.newest_schema);
    match schema {
        0 => Err(Diagnostic::new(format!("{name} has schema 0, but the first schema is 1")).hint(kind.way_out)),
        _ if schema > newest => {
            let what = format!("{name} is {} of schema {schema}, but this collo reads up to {newest}", kind.name);
            Err(Diagnostic::new(what)
                .hint(format!("it was written by another version of collo: use that one, or {}", kind.way_out)))
        }
        _ => Ok(()),
    }
}

/// The largest whole number in a file: a pebibyte, far beyond any device, and exact as a float.
pub const LARGEST: u64 = 1 << 50;

pub fn whole_of(number: f64) -> Result<u64, String> {
    match number >= 0.0 && number <= LARGEST as f64 && number.fract() == 0.0 {
        true => Ok(number as u64),
        false => Err(format!("{number} is not a whole number from 0 to 2^50")),
    }
}

/// FLOPs of the largest trainings stay far below.
const LARGEST_AMOUNT: f64 = 1e24;

pub fn amount_of(number: f64) -> Result<f64, String> {
    match (0.0..=LARGEST_AMOUNT).contains(&number) {
        true => Ok(number),
        false => Err(format!("{number} is not a number from 0 to 1e24")),
    }
}

pub fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    whole_of(f64::deserialize(deserializer)?).map_err(D::Error::custom)
}

pub fn amount<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    amount_of(f64::deserialize(deserializer)?).map_err(D::Error::custom)
}
