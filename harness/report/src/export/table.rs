//! A table with typed columns, before it is CSV or Parquet. In: heads and rows. It knows no format.

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Text,
    Number,
    Whole,
    Flag,
}

impl Kind {
    pub fn word(self) -> &'static str {
        match self {
            Kind::Text => "text",
            Kind::Number => "number",
            Kind::Whole => "whole",
            Kind::Flag => "flag",
        }
    }
}

/// One field.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Absent,
    Text(String),
    Number(f64),
    Whole(i64),
    Flag(bool),
}

impl Value {
    pub fn text(text: impl Into<String>) -> Self {
        Value::Text(text.into())
    }

    /// Several texts in one field; none of them is absent.
    pub fn list<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Self {
        let texts: Vec<T> = texts.into_iter().collect();
        if texts.is_empty() {
            return Value::Absent;
        }
        Value::Text(texts.iter().map(T::as_ref).collect::<Vec<&str>>().join("; "))
    }
}

/// A reading that is not finite is absent.
impl From<f64> for Value {
    fn from(number: f64) -> Self {
        if number.is_finite() { Value::Number(number) } else { Value::Absent }
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Value::Flag(flag)
    }
}

impl From<u32> for Value {
    fn from(whole: u32) -> Self {
        Value::Whole(i64::from(whole))
    }
}

/// A count that exceeds 63 bits is not a reading.
impl From<u64> for Value {
    fn from(whole: u64) -> Self {
        i64::try_from(whole).map_or(Value::Absent, Value::Whole)
    }
}

impl From<usize> for Value {
    fn from(whole: usize) -> Self {
        Value::from(whole as u64)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::text(text)
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::Text(text)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Absent, Into::into)
    }
}

/// Rows are as long as `heads`.
#[derive(Debug, Default)]
pub struct Table {
    pub heads: Vec<(String, Kind)>,
    pub rows: Vec<Vec<Value>>,
}
