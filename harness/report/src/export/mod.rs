//! The report for other programs: spreadsheets, papers, CI systems, monitoring, predictors. In: a report and a format. Out: the
//! bytes of one file. Absent values stay absent in each, and each states the caveats about its numbers.
//!
//! To add a format: a file here, its variant of [`Format`], its line in [`export`]; its word in `cli/src/args/report.rs`, and
//! `target` in `cli/src/stored/report.rs`. One that is a folder is written as `mlflow` is, with `Target::Store` there.

mod caveats;
mod cells;
mod comment;
pub mod csv;
mod dataset;
mod junit;
mod latex;
mod markdown;
pub mod mlflow;
mod observers;
mod openmetrics;
mod parquet;
mod sqlite;
mod traces;

use collo_guidelines::report_json::ReportJson;

use crate::report::Report;
use crate::{Error, Result};

/// A format that a report can be exported to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One row per cell.
    Csv,
    /// Tables for a paper.
    Latex,
    /// The same numbers as macros.
    LatexMacros,
    /// One test case per cell.
    Junit,
    /// Gauges.
    Openmetrics,
    /// One row per member of each repetition, as CSV.
    Dataset,
    /// The same rows as Parquet.
    DatasetParquet,
    /// One row per policy of a trace, as CSV.
    Policies,
    /// One row per task of each run of a trace, as CSV.
    Tasks,
    /// One row per attempt of each run of a trace, as CSV.
    Attempts,
    /// One row per observer of each watched group, as CSV.
    Observers,
    /// An SQLite database.
    Sqlite,
    /// `report.json`.
    Json,
    /// The report's text without its figures.
    Markdown,
    /// Of that what fits a comment below a pull request.
    Comment,
}

/// The report in a format: text in UTF-8, but for Parquet and SQLite.
pub fn export(report: &Report, format: Format) -> Result<Vec<u8>> {
    let analysis = &report.analysis;
    let text = match format {
        Format::Csv => csv::text(&cells::table(analysis)),
        Format::Latex => latex::tables(analysis),
        Format::LatexMacros => latex::macros(analysis),
        Format::Junit => junit::suite(analysis)?,
        Format::Openmetrics => openmetrics::exposition(analysis),
        Format::Dataset => csv::text(&dataset::table(analysis)),
        Format::DatasetParquet => return parquet::bytes(dataset::table(analysis)),
        Format::Policies => csv::text(&traces::policies(analysis)),
        Format::Tasks => csv::text(&traces::tasks(analysis)),
        Format::Attempts => csv::text(&traces::attempts(analysis)),
        Format::Observers => csv::text(&observers::table(analysis)),
        Format::Sqlite => return sqlite::database(analysis),
        Format::Json => {
            serde_json::to_string_pretty(&ReportJson::new(analysis, &report.guidelines)).map_err(|e| Error::Io(e.into()))? + "\n"
        }
        Format::Markdown => markdown::report(report),
        Format::Comment => comment::report(report),
    };
    Ok(text.into_bytes())
}

/// A table in Parquet, an exported data set or another, as CSV.
pub fn csv_of_parquet(path: &std::path::Path) -> Result<String> {
    parquet::csv_of(path)
}

/// The columns of the data set, in order, each with its type: `text`, `number`, `whole` or `flag`.
pub fn dataset_columns() -> Vec<(&'static str, &'static str)> {
    dataset::columns().map(|c| (c.name, c.kind.as_str())).collect()
}
