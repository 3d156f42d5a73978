//! A table as Parquet, each column with its type and absent as null. In: a table. Out: the bytes of a file.

use polars::prelude::*;

use super::table::{Kind, Table, Value};
use crate::{Error, Result};

/// The whole file.
pub fn bytes(table: Table) -> Result<Vec<u8>> {
    write(table).map_err(|e| Error::Io(std::io::Error::other(e)))
}

fn write(table: Table) -> PolarsResult<Vec<u8>> {
    let Table { heads, rows } = table;
    let height = rows.len();
    let columns = heads.iter().enumerate().map(|(at, (name, kind))| {
        let name = PlSmallStr::from_str(name);
        let values = rows.iter().map(|row| &row[at]);
        match kind {
            Kind::Text => {
                let all: Vec<Option<&str>> =
                    values.map(|v| if let Value::Text(t) = v { Some(t.as_str()) } else { None }).collect();
                Column::new(name, all)
            }
            Kind::Number => Column::new(name, values.map(number).collect::<Vec<_>>()),
            Kind::Whole => {
                let all: Vec<Option<i64>> = values.map(|v| if let Value::Whole(w) = v { Some(*w) } else { None }).collect();
                Column::new(name, all)
            }
            Kind::Flag => {
                let all: Vec<Option<bool>> = values.map(|v| if let Value::Flag(f) = v { Some(*f) } else { None }).collect();
                Column::new(name, all)
            }
        }
    });
    let mut frame = DataFrame::new(height, columns.collect())?;
    let mut out = Vec::new();
    ParquetWriter::new(&mut out).finish(&mut frame)?;
    Ok(out)
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(n) => Some(*n),
        Value::Whole(w) => Some(*w as f64),
        _ => None,
    }
}
