//! A table as Parquet, each column with its type and absent values as null. In: a table. Out: the bytes of a file.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use super::table::{Kind, Table, Value};
use crate::Result;

/// The whole file.
pub fn bytes(table: Table) -> Result<Vec<u8>> {
    Ok(write(table).map_err(std::io::Error::other)?)
}

fn write(Table { heads, rows }: Table) -> Result<Vec<u8>, ParquetError> {
    let columns = heads.iter().enumerate().map(|(at, (name, kind))| {
        let values = rows.iter().map(|row| &row[at]);
        let column: ArrayRef = match kind {
            Kind::Text => Arc::new(values.map(text).collect::<StringArray>()),
            Kind::Number => Arc::new(values.map(number).collect::<Float64Array>()),
            Kind::Whole => Arc::new(values.map(whole).collect::<Int64Array>()),
            Kind::Flag => Arc::new(values.map(flag).collect::<BooleanArray>()),
        };
        (name, column, true)
    });
    let batch = RecordBatch::try_from_iter_with_nullable(columns)?;
    let zstd = Compression::ZSTD(ZstdLevel::try_new(3)?);
    let properties = WriterProperties::builder().set_compression(zstd).build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties))?;
    writer.write(&batch)?;
    writer.into_inner()
}

fn text(value: &Value) -> Option<&str> {
    if let Value::Text(t) = value { Some(t) } else { None }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(n) => Some(*n),
        Value::Whole(w) => Some(*w as f64),
        _ => None,
    }
}

fn whole(value: &Value) -> Option<i64> {
    if let Value::Whole(w) = value { Some(*w) } else { None }
}

fn flag(value: &Value) -> Option<bool> {
    if let Value::Flag(f) = value { Some(*f) } else { None }
}
