//! A report in words, figures and files.
//!
//! In: a campaign folder, analysed, or a `report.json` that was read, with the guidelines that follow. Out: text for a terminal, JSON, Markdown and one self-contained page
//! with its figures, and the same numbers for other programs. No number is computed here, nothing touches a GPU or a process, and nothing
//! prints.
//!
//! ```text
//! runs/ ──analyse──▶ Analysis ──conclude──▶ Report ──▶ sections ──▶ document ──▶ report.html, report.md, terminal
//!                                             ├──▶ export: csv, parquet, latex, junit, openmetrics, …
//!                                             └──▶ report.json ──▶ package `compare`
//! ```
//! - `report` has the contents before wording: a [`Report`].
//! - `parts` has what sections share: notes, findings, tags, captions, values in tables.
//! - `overview`, `time`, `resources`, `trace`, `watching` and `prediction` have the sections, by what they show.
//! - `sections` puts them in the order of the page.
//! - [`export`] has lists of tables and of formats: CSV, Parquet, LaTeX, gauges, databases, comments.
//! - `json` is a report as `report.json` has it; `render` writes the terminal's text and the report's files, `index` the list of reports.

#![warn(clippy::print_stdout, clippy::print_stderr)]

use collo_figures::document::{Live, Written};

mod anonymous;
mod error;
pub mod export;
mod index;
mod json;
mod overview;
mod parts;
mod prediction;
mod render;
mod report;
mod resources;
mod sections;
mod time;
mod trace;
mod watching;

pub use anonymous::Anonymity;
pub use error::{Error, Result};
pub use report::{EnergyModel, Report};

/// Write the report under `reports/NAME/CAMPAIGN/`, with copies of page, Markdown, JSON and CSV in `reports/NAME/`.
pub fn write(report: &Report, reports: &std::path::Path) -> Result<Written> {
    render::write(report, reports)
}

/// The page alone, for a server that shows it while it fills.
pub fn live(report: &Report, live: Live) -> Result<String> {
    render::live(report, live)
}

/// Write `index.html` into a folder of reports: a list of all of them with their answers. A page of that name that collo did not write
/// stays.
pub fn write_index(reports: &std::path::Path) -> Result<()> {
    index::write(reports)
}

/// The end-of-run table with its notes and one or two findings, at most `width` columns wide, without colour.
pub fn terminal(report: &Report, width: usize) -> String {
    render::terminal::summary(&report.analysis, width)
}

/// Where the numbers come from, and how they were measured, at most `width` columns wide.
pub fn terminal_provenance(report: &Report, width: usize) -> String {
    render::terminal::provenance(&report.analysis, width)
}

/// Everything about one cell, named by its label, its slug or a unique prefix of one; `None` if no cell matches. Tables of a
/// trace's tasks are at most `width` columns wide.
pub fn terminal_cell(report: &Report, cell: &str, width: usize) -> Option<String> {
    Some(render::terminal::cell(&report.analysis, report.analysis.cell(cell)?, width))
}

/// The same as JSON, by the cell's label: of a trace with the tasks, attempts and decisions of each run.
pub fn json_cell(report: &Report, label: &str) -> Option<serde_json::Value> {
    collo_guidelines::report_json::cell(&report.analysis, label)
}

/// The report as JSON.
pub fn json(report: &Report) -> serde_json::Value {
    serde_json::json!(json::json(report))
}
