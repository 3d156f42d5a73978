//! From stored runs to guidelines. In: a campaign folder. Out: numbers with intervals, guidelines with evidence, and these as
//! text for a terminal, JSON, Markdown and one self-contained page with its figures.
//!
//! `analysis` computes, `guideline` concludes, `section` words, `plot` draws, `render` writes. Nothing here touches a GPU or a
//! process, and nothing prints. Modes, workloads and metrics are text columns: a new one appears without a change here.

#![warn(clippy::print_stdout, clippy::print_stderr)]

use collo_figures::document::Written;

mod error;
pub mod export;
mod render;
mod report;
mod section;

pub use error::{Error, Result};
pub use report::{EnergyModel, Report};

/// Write the report under `reports/NAME/CAMPAIGN/`, with copies of page, Markdown, JSON and CSV in `reports/NAME/`.
pub fn write(report: &Report, reports: &std::path::Path) -> Result<Written> {
    render::write(report, reports)
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
    serde_json::json!(collo_guidelines::report_json::ReportJson::new(&report.analysis, &report.guidelines))
}
