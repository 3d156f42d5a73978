//! The report for other programs: spreadsheets, papers, CI systems, monitoring, predictors. In: a report and a format. Out: the
//! bytes of one file. Absent values stay absent in each, and each states the caveats about its numbers.

mod caveats;
mod cells;
mod csv;
mod dataset;
mod junit;
mod latex;
mod markdown;
mod openmetrics;
mod parquet;
mod table;

use crate::report_json::ReportJson;
use crate::{Error, Report, Result};

/// A format that a report can be exported to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One row per cell.
    Csv,
    /// A table for a paper.
    Latex,
    /// One test case per cell.
    Junit,
    /// Gauges.
    Openmetrics,
    /// One row per member of each repetition, as CSV.
    Dataset,
    /// The same rows as Parquet.
    DatasetParquet,
    /// `report.json`.
    Json,
    /// The report's text without its figures.
    Markdown,
}

/// The report in a format: text in UTF-8, but for Parquet.
pub fn export(report: &Report, format: Format) -> Result<Vec<u8>> {
    let analysis = &report.analysis;
    let text = match format {
        Format::Csv => csv::text(&cells::table(analysis)),
        Format::Latex => latex::tables(analysis),
        Format::Junit => junit::suite(analysis)?,
        Format::Openmetrics => openmetrics::exposition(analysis),
        Format::Dataset => csv::text(&dataset::table(analysis)),
        Format::DatasetParquet => return parquet::bytes(dataset::table(analysis)),
        Format::Json => serde_json::to_string_pretty(&ReportJson::from(report)).map_err(|e| Error::Io(e.into()))? + "\n",
        Format::Markdown => markdown::report(report),
    };
    Ok(text.into_bytes())
}

/// The columns of the data set, in order, each with its type: `text`, `number`, `whole` or `flag`.
pub fn dataset_columns() -> Vec<(&'static str, &'static str)> {
    dataset::columns().map(|c| (c.name, c.kind.as_str())).collect()
}
