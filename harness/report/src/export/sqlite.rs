//! The report as an SQLite database. In: a report. Out: the bytes of a file with every table but the data set. Absent is NULL,
//! and every table has `simulated`.

use collo_guidelines::report_json::table::{ColumnKind, ExportTable, ExportValue};
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::{ReportTable, TABLES, cells};
use crate::report::Report;
use crate::{Error, Result};

/// `PRAGMA user_version`.
const SCHEMA: i64 = 1;

/// The database.
pub fn database(report: &Report) -> Result<Vec<u8>> {
    let wrong = |e: rusqlite::Error| Error::Database(e.to_string());
    let mut to = Connection::open_in_memory().map_err(wrong)?;
    let transaction = to.transaction().map_err(wrong)?;
    for ReportTable { name, rows, .. } in TABLES.iter().filter(|table| table.name != "dataset") {
        // Quantities of cells have a table of their own.
        let rows = if *name == "cells" { cells::labels_only(&report.analysis) } else { rows(&report.analysis) };
        write(&transaction, name, rows).map_err(wrong)?;
    }
    transaction.commit().map_err(wrong)?;
    to.pragma_update(None, "user_version", SCHEMA).map_err(wrong)?;
    Ok(to.serialize("main").map_err(wrong)?.to_vec())
}

/// Names of tables and columns are ours; a value is never part of a statement.
fn write(to: &Connection, name: &str, table: ExportTable) -> rusqlite::Result<()> {
    let kind = |kind: ColumnKind| match kind {
        ColumnKind::Text => "TEXT",
        ColumnKind::Number => "REAL",
        ColumnKind::Whole => "INTEGER",
        // SQLite has no booleans: 0 and 1 (https://www.sqlite.org/datatype3.html, 2.1).
        ColumnKind::Flag => "INTEGER",
    };
    let columns: Vec<String> = table.heads.iter().map(|(name, k)| format!("\"{name}\" {}", kind(*k))).collect();
    to.execute(&format!("CREATE TABLE {name} ({})", columns.join(", ")), [])?;
    let places = vec!["?"; columns.len()].join(", ");
    let mut insert = to.prepare(&format!("INSERT INTO {name} VALUES ({places})"))?;
    for row in table.rows {
        insert.execute(params_from_iter(row.into_iter().map(value)))?;
    }
    Ok(())
}

fn value(value: ExportValue) -> Value {
    match value {
        ExportValue::Absent => Value::Null,
        ExportValue::Text(text) => Value::Text(text),
        ExportValue::Number(number) => Value::Real(number),
        ExportValue::Whole(whole) => Value::Integer(whole),
        ExportValue::Flag(flag) => Value::Integer(flag.into()),
    }
}
