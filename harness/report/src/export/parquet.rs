//! A table as Parquet, each column with its type and absent values as null. In: a table. Out: the bytes of a file; and back, as CSV.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use collo_figures::document::quoted::quoted;
use collo_guidelines::report_json::table::{ColumnKind, ExportTable, ExportValue};
use collo_store::BoundedFile;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

use crate::Result;

/// The whole file.
pub fn bytes(table: &ExportTable) -> Result<Vec<u8>> {
    Ok(write(table).map_err(std::io::Error::other)?)
}

/// A file of one row a line, whoever wrote it, as CSV of at most so many bytes.
pub fn csv_of(path: &Path, most_bytes: u64) -> Result<String> {
    let file = collo_text::open_regular(path)?;
    Ok(read(BoundedFile(file.into_file()), most_bytes).map_err(std::io::Error::other)?)
}

fn read(file: BoundedFile, most_bytes: u64) -> Result<String, ParquetError> {
    let too_large = || ParquetError::General(format!("it unpacks to more than {most_bytes} bytes"));
    let reader = SerializedFileReader::new(file)?;
    let groups = reader.metadata().row_groups().iter();
    let unpacked = groups.map(|group| u64::try_from(group.total_byte_size()).unwrap_or(u64::MAX)).fold(0, u64::saturating_add);
    if unpacked > most_bytes {
        return Err(too_large());
    }
    let columns = reader.metadata().file_metadata().schema().get_fields();
    let mut text = columns.iter().map(|column| quoted(column.name())).collect::<Vec<String>>().join(",") + "\n";
    for row in reader.get_row_iter(None)? {
        let fields: Vec<String> = row?.get_column_iter().map(|(_, field)| text_of(field)).collect();
        text += &fields.join(",");
        text.push('\n');
        // Its header may be wrong.
        if text.len() as u64 > most_bytes {
            return Err(too_large());
        }
    }
    Ok(text)
}

fn text_of(field: &Field) -> String {
    match field {
        Field::Null => String::new(),
        Field::Str(text) => quoted(text),
        Field::Float(number) => number.to_string(),
        Field::Double(number) => number.to_string(),
        other => other.to_string(),
    }
}

fn write(ExportTable { heads, rows }: &ExportTable) -> Result<Vec<u8>, ParquetError> {
    let columns = heads.iter().enumerate().map(|(at, (name, kind))| {
        let values = rows.iter().map(|row| &row[at]);
        let column: ArrayRef = match kind {
            ColumnKind::Text => Arc::new(values.map(text).collect::<StringArray>()),
            ColumnKind::Number => Arc::new(values.map(number).collect::<Float64Array>()),
            ColumnKind::Whole => Arc::new(values.map(whole).collect::<Int64Array>()),
            ColumnKind::Flag => Arc::new(values.map(flag).collect::<BooleanArray>()),
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

fn text(value: &ExportValue) -> Option<&str> {
    if let ExportValue::Text(t) = value { Some(t) } else { None }
}

fn number(value: &ExportValue) -> Option<f64> {
    match value {
        ExportValue::Number(n) => Some(*n),
        ExportValue::Whole(w) => Some(*w as f64),
        _ => None,
    }
}

fn whole(value: &ExportValue) -> Option<i64> {
    if let ExportValue::Whole(w) = value { Some(*w) } else { None }
}

fn flag(value: &ExportValue) -> Option<bool> {
    if let ExportValue::Flag(f) = value { Some(*f) } else { None }
}
