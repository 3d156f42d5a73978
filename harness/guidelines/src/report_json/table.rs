//! A table with typed columns, before it is CSV or Parquet. In: heads and rows. It knows no format.

use collo_quantity::stats::Quantity;

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    Text,
    Number,
    Whole,
    Flag,
}

impl ColumnKind {
    pub fn as_str(self) -> &'static str {
        match self {
            ColumnKind::Text => "text",
            ColumnKind::Number => "number",
            ColumnKind::Whole => "whole",
            ColumnKind::Flag => "flag",
        }
    }
}

/// One field.
#[derive(Debug, Clone, PartialEq)]
pub enum ExportValue {
    Absent,
    Text(String),
    Number(f64),
    Whole(i64),
    Flag(bool),
}

impl ExportValue {
    pub fn text(text: impl Into<String>) -> Self {
        ExportValue::Text(text.into())
    }

    /// An estimate and both ends of its interval.
    pub fn with_ends(q: Option<&Quantity>) -> [Self; 3] {
        [q.map(|q| q.estimate), q.and_then(|q| q.low), q.and_then(|q| q.high)].map(Self::from)
    }

    /// Several texts in one field; none of them is absent.
    pub fn list<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Self {
        let texts: Vec<T> = texts.into_iter().collect();
        if texts.is_empty() {
            return ExportValue::Absent;
        }
        ExportValue::Text(texts.iter().map(T::as_ref).collect::<Vec<&str>>().join("; "))
    }
}

/// A reading that is not finite is absent.
impl From<f64> for ExportValue {
    fn from(number: f64) -> Self {
        if number.is_finite() { ExportValue::Number(number) } else { ExportValue::Absent }
    }
}

impl From<bool> for ExportValue {
    fn from(flag: bool) -> Self {
        ExportValue::Flag(flag)
    }
}

impl From<u32> for ExportValue {
    fn from(whole: u32) -> Self {
        ExportValue::Whole(i64::from(whole))
    }
}

/// A count that exceeds 63 bits is not a reading.
impl From<u64> for ExportValue {
    fn from(whole: u64) -> Self {
        i64::try_from(whole).map_or(ExportValue::Absent, ExportValue::Whole)
    }
}

impl From<usize> for ExportValue {
    fn from(whole: usize) -> Self {
        ExportValue::from(whole as u64)
    }
}

impl From<&str> for ExportValue {
    fn from(text: &str) -> Self {
        ExportValue::text(text)
    }
}

impl From<String> for ExportValue {
    fn from(text: String) -> Self {
        ExportValue::Text(text)
    }
}

impl<T: Into<ExportValue>> From<Option<T>> for ExportValue {
    fn from(value: Option<T>) -> Self {
        value.map_or(ExportValue::Absent, Into::into)
    }
}

/// A column: its name, its type, and its value in the row of a subject.
pub type ExportColumn<T> = (&'static str, ColumnKind, fn(&T) -> ExportValue);

/// Rows are as long as `heads`.
#[derive(Debug, Default)]
pub struct ExportTable {
    pub heads: Vec<(String, ColumnKind)>,
    pub rows: Vec<Vec<ExportValue>>,
}

impl ExportTable {
    /// A row for each subject.
    pub fn of<T, V>(columns: &[(&'static str, ColumnKind, V)], subjects: impl IntoIterator<Item = T>) -> Self
    where
        V: Fn(&T) -> ExportValue,
    {
        let heads = columns.iter().map(|(name, kind, _)| (name.to_string(), *kind)).collect();
        let row = |subject: T| columns.iter().map(|(.., value)| value(&subject)).collect();
        ExportTable { heads, rows: subjects.into_iter().map(row).collect() }
    }

    /// Columns of the same rows on the right.
    pub fn beside(mut self, right: ExportTable) -> Self {
        self.heads.extend(right.heads);
        self.rows.iter_mut().zip(right.rows).for_each(|(row, more)| row.extend(more));
        self
    }
}
