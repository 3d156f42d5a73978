//! From stored runs to guidelines. In: a campaign folder. Out: numbers with intervals, guidelines with evidence, and these as
//! text for a terminal, JSON, Markdown and one self-contained page with its figures.
//!
//! `analysis` computes, `guideline` concludes, `section` words, `plot` draws, `render` writes. Nothing here touches a GPU or a
//! process, and nothing prints. Modes, workloads and metrics are text columns: a new one appears without a change here.

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod analysis;
pub mod compare;
pub mod document;
mod error;
pub mod export;
mod format;
mod guideline;
pub mod history;
mod plot;
#[cfg(test)]
#[path = "../../quantity/tests/support/random.rs"]
pub mod random;
mod render;
pub mod report_json;
mod section;
mod verdict;

pub use analysis::{Analysis, Cell, CellVerdict, Member, ReferenceCheck, ReferenceVerdict, WidthVerdict};
pub use document::Written;
pub use error::{Error, Result};
pub use guideline::{Evidence, Guideline};
pub use report_json::{ReportJson, schema as json_schema};
pub use section::EnergyModel;
pub use verdict::{Agreement, Holds, Scope};

/// The contents of a report, before wording: what was measured, and what follows from it.
#[derive(Debug)]
pub struct Report {
    pub analysis: Analysis,
    /// In print order.
    pub guidelines: Vec<Guideline>,
    /// Divide the energy among members by this model; not at all if absent.
    pub energy_model: Option<EnergyModel>,
    /// The folder of the campaign.
    pub folder: std::path::PathBuf,
}

impl Report {
    /// Of a stored campaign.
    pub fn of(campaign: &collo_store::CampaignFolder) -> Result<Report> {
        Report::beside(campaign, None)
    }

    /// Of a stored campaign whose groups are compared with the baselines of another where they have none of their own.
    pub fn beside(campaign: &collo_store::CampaignFolder, lender: Option<&collo_store::CampaignFolder>) -> Result<Report> {
        let analysis = analysis::analyse(campaign, lender)?;
        Ok(Report { guidelines: guideline::all(&analysis), analysis, energy_model: None, folder: campaign.path().to_path_buf() })
    }

    /// The guideline with this id, if it applies here.
    pub fn guideline(&self, id: &str) -> Option<&Guideline> {
        self.guidelines.iter().find(|g| g.id == id)
    }
}

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
    report_json::cell(report, label)
}

/// The report as JSON.
pub fn json(report: &Report) -> serde_json::Value {
    serde_json::json!(ReportJson::from(report))
}
