//! The report for other programs: spreadsheets, papers, CI systems, monitoring, predictors. In: a report and a format. Out: the
//! bytes of one file. Absent values stay absent in each, and each has the caveats about its numbers or, as a table, whether they are simulated.
//!
//! To add a format: a file here, its line in [`FORMATS`], a paragraph in the guide to exports. To add a table: its line in
//! [`TABLES`].

mod caveats;
pub(crate) mod cells;
mod comment;
pub mod csv;
pub mod dataset;
mod junit;
mod latex;
pub mod mlflow;
mod observers;
mod openmetrics;
mod parquet;
mod sqlite;
mod stored;
mod traces;

use std::borrow::Cow;
use std::path::Path;

use collo_analysis::campaign::Analysis;
use collo_figures::document::markdown;
use collo_guidelines::report_json::table::ExportTable;
use collo_quantity::{Key, Trait};

use crate::report::Report;
use crate::{Error, Result, sections};

pub use parquet::csv_of as csv_of_parquet;

/// A table of a report.
pub struct ReportTable {
    pub name: &'static str,
    /// What it has.
    pub about: &'static str,
    pub rows: fn(&Analysis) -> ExportTable,
    /// It has what is read in runs: a report that was read has none of these.
    needs_runs: bool,
}

const fn table(name: &'static str, about: &'static str, rows: fn(&Analysis) -> ExportTable) -> ReportTable {
    ReportTable { name, about, rows, needs_runs: false }
}

impl ReportTable {
    const fn needs_runs(self) -> ReportTable {
        ReportTable { needs_runs: true, ..self }
    }
}

/// Every table.
pub static TABLES: &[ReportTable] = &[
    table("campaign", "The campaign, with its experiment as read", stored::campaign).needs_runs(),
    table("cells", "A row per cell, with intervals", cells::table),
    table("quantities", "A row per quantity of a cell or a member", stored::quantities),
    table("runs", "A row per run", stored::runs).needs_runs(),
    table("epochs", "A row per epoch of a member", stored::epochs).needs_runs(),
    table("policies", "A row per policy of a trace, with its ratios to the reference", traces::policies),
    table("tasks", "A row per task of each run of a trace", traces::tasks).needs_runs(),
    table("attempts", "A row per attempt of each run of a trace", traces::attempts).needs_runs(),
    table("observers", "A row per observer of each watched group, with its ratio to the unobserved run", observers::table)
        .needs_runs(),
    table("dataset", "A row per member and repetition, as training data for predictors", dataset::table).needs_runs(),
];

/// Refuse a format, or its table, that needs runs, for a report that was read without them.
pub fn check(report: &Report, format: &Format, table: &ReportTable) -> Result<()> {
    let Some(read) = &report.analysis.report else { return Ok(()) };
    let (needs_runs, what) = match format.writer {
        Writer::Table(_) => (table.needs_runs, format!("`--table {}`", table.name)),
        _ => (format.needs_runs, format!("`--format {}`", format.word)),
    };
    if needs_runs { Err(Error::NoRuns { what, path: read.path.clone() }) } else { Ok(()) }
}

/// What writes a format.
pub enum Writer {
    /// The whole report as text in UTF-8.
    Text(fn(&Report) -> Result<String>),
    /// The whole report as another file.
    File(fn(&Report) -> Result<Vec<u8>>),
    /// One table.
    Table(fn(&ExportTable) -> Result<Vec<u8>>),
    /// A folder; returns the number of runs added to it.
    Folder(fn(&Report, &Path) -> Result<usize>),
}

use Writer::{File, Folder, Table, Text};

/// A format that a report can be exported to.
pub struct Format {
    pub word: &'static str,
    pub about: &'static str,
    pub writer: Writer,
    /// What it is, if it is not printed: `a database`.
    pub unprinted: Option<&'static str>,
    /// It has what is read in runs.
    needs_runs: bool,
}

const fn format(word: &'static str, about: &'static str, writer: Writer) -> Format {
    Format { word, about, writer, unprinted: None, needs_runs: false }
}

impl Format {
    const fn unprinted(self, what: &'static str) -> Format {
        Format { unprinted: Some(what), ..self }
    }

    const fn needs_runs(self) -> Format {
        Format { needs_runs: true, ..self }
    }
}

/// Every format.
pub static FORMATS: &[Format] = &[
    format("csv", "One table as text, cells unless --table names another", Table(|table| Ok(csv::text(table).into_bytes()))),
    format("parquet", "The same with types; needs --to", Table(parquet::bytes)).unprinted("a Parquet file"),
    format("latex", "booktabs tables", Text(|r| Ok(latex::tables(&r.analysis)))),
    format("latex-macros", "A macro for each number, and for its interval", Text(|r| Ok(latex::macros(&r.analysis)))),
    format("junit", "A test case per cell, for CI systems", Text(|r| junit::suite(&r.analysis))).needs_runs(),
    format("openmetrics", "Gauges, for monitoring", Text(|r| Ok(openmetrics::exposition(&r.analysis)))),
    format("sqlite", "A database of all tables but dataset; needs --to", File(sqlite::database))
        .unprinted("a database")
        .needs_runs(),
    format("mlflow", "A file store for `mlflow ui`; --to names its folder", Folder(mlflow::write)).needs_runs(),
    format("json", "report.json", Text(json)),
    format("markdown", "The text without its figures", Text(|r| Ok(markdown::document(&sections::shortened(r))))),
    format(
        "comment",
        "The first screen, the gains and as many cells as fit a comment on GitHub",
        Text(|r| Ok(comment::report(r))),
    ),
];

/// The name of a metric among quantities: one with the name of a quantity of cells, as the host's `cpu_ratio` has that of the members,
/// is `metrics.cpu_ratio`, as in `cells`.
fn metric_name(name: &str) -> Cow<'_, str> {
    match Key::find(name).filter(|key| key.has(Trait::Cell)) {
        Some(_) => format!("metrics.{name}").into(),
        None => name.into(),
    }
}

fn json(report: &Report) -> Result<String> {
    let json = serde_json::to_string_pretty(&crate::json::json(report));
    Ok(json.map_err(|e| Error::Io(e.into()))? + "\n")
}
