//! Exports by name. In: a report, and the word of a format or the name of a table: `cells` is CSV, `cells.parquet` Parquet.
//! Out: bytes.

use collo_report::Report;
use collo_report::export::{FORMATS, TABLES, Writer};

pub fn export(report: &Report, what: &str) -> collo_report::Result<Vec<u8>> {
    let (name, ending) = what.split_once('.').unwrap_or((what, "csv"));
    let table = TABLES.iter().find(|table| table.name == name);
    let word = if table.is_some() { ending } else { what };
    match (&FORMATS.iter().find(|format| format.word == word).expect("a format").writer, table) {
        (Writer::Text(write), None) => Ok(write(report)?.into_bytes()),
        (Writer::File(write), None) => write(report),
        (Writer::Table(write), Some(table)) => write(&(table.rows)(&report.analysis)),
        _ => panic!("`{what}` is no file"),
    }
}
