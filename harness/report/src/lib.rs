//! From stored runs to guidelines. In: a campaign folder. Out: numbers with intervals, guidelines with evidence, and these as text
//! for a terminal, JSON, Markdown and one self-contained page with its figures.
//!
//! `analysis` computes, `guideline` concludes, `section` words, `plot` draws, `render` writes. Nothing here touches a GPU or a
//! process, and nothing prints. Modes, workloads and metrics are text columns: a new one appears without a change here.

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod analysis;
pub mod compare;
pub mod document;
mod error;
pub mod export;
mod guideline;
pub mod history;
pub mod number;
mod plot;
pub mod quantity;
mod render;
mod section;
pub mod stats;

pub use analysis::{Analysis, Cell, Member, analyse};
pub use document::Written;
pub use error::{Error, Result};
pub use guideline::{Evidence, Guideline, Verdict};

/// Write the report under `reports/NAME/CAMPAIGN/`, with copies of page, Markdown, JSON and CSV in `reports/NAME/`.
pub fn write(analysis: &Analysis, reports: &std::path::Path) -> Result<Written> {
    render::write(analysis, reports)
}

/// The end-of-run table with its notes and one or two findings, at most `width` columns wide, without colour.
pub fn terminal(analysis: &Analysis, width: usize) -> String {
    render::terminal::summary(analysis, width)
}

/// Everything about one cell, named by its label, its slug or a unique prefix of one; none if no cell answers to it.
pub fn terminal_cell(analysis: &Analysis, cell: &str) -> Option<String> {
    Some(render::terminal::cell(analysis, analysis.cell(cell)?))
}

/// The report as JSON.
pub fn json(analysis: &Analysis) -> serde_json::Value {
    render::json::report(analysis)
}

/// The JSON Schema of `report.json`.
pub fn json_schema() -> serde_json::Value {
    render::json::schema()
}
