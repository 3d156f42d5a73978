//! What was read of a table: its fields, each with its place.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use serde_json::Value as Json;

/// A value with its place.
#[derive(Debug, Clone)]
pub struct Located {
    pub span: Range<usize>,
    pub value: Value,
}

#[derive(Debug, Clone)]
pub enum Value {
    Text(String),
    Whole(u64),
    Number(f64),
    Duration(Duration),
    Setting(Json),
    List(Vec<Located>),
    Table(Fields),
}

/// The fields of one table.
#[derive(Debug, Clone, Default)]
pub struct Fields {
    pub span: Range<usize>,
    pub(super) found: BTreeMap<String, (Range<usize>, Located)>,
}

impl Fields {
    pub fn found(&self, key: &str) -> Option<&Located> {
        self.found.get(key).map(|(_, found)| found)
    }

    /// The place of a key's name.
    pub fn key_span(&self, key: &str) -> Option<Range<usize>> {
        self.found.get(key).map(|(span, _)| span.clone())
    }

    /// The same without these keys.
    pub fn without(mut self, keys: &[&str]) -> Fields {
        self.found.retain(|key, _| !keys.contains(&key.as_str()));
        self
    }

    /// The same with these keys alone.
    pub fn only(mut self, keys: &[&str]) -> Fields {
        self.found.retain(|key, _| keys.contains(&key.as_str()));
        self
    }

    /// Add what only another table has; tables in both are merged key by key.
    pub fn complete_from(&mut self, other: Fields) {
        if self.found.is_empty() && self.span.is_empty() {
            self.span = other.span;
        }
        for (key, (span, theirs)) in other.found {
            match (self.found.get_mut(&key), theirs) {
                (Some((_, Located { value: Value::Table(own), .. })), Located { value: Value::Table(more), .. }) => {
                    own.complete_from(more);
                }
                (Some(_), _) => {}
                (None, theirs) => drop(self.found.insert(key, (span, theirs))),
            }
        }
    }

    /// All fields in the order of the file.
    pub fn in_order(&self) -> Vec<(&str, &Range<usize>, &Located)> {
        let mut all: Vec<_> = self.found.iter().map(|(key, (span, found))| (key.as_str(), span, found)).collect();
        all.sort_by_key(|(_, span, _)| span.start);
        all
    }

    pub fn text(&self, key: &str) -> Option<&str> {
        self.found(key)?.text()
    }

    pub fn list(&self, key: &str) -> Option<&[Located]> {
        match &self.found(key)?.value {
            Value::List(all) => Some(all),
            _ => None,
        }
    }

    pub fn table(&self, key: &str) -> Option<&Fields> {
        match &self.found(key)?.value {
            Value::Table(fields) => Some(fields),
            _ => None,
        }
    }

    /// The tables of a `[[key]]`.
    pub fn tables(&self, key: &str) -> impl Iterator<Item = &Fields> {
        self.list(key).unwrap_or_default().iter().filter_map(|f| match &f.value {
            Value::Table(fields) => Some(fields),
            _ => None,
        })
    }
}

impl Located {
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}
