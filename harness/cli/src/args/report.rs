//! The words of `collo report`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub struct Report {
    /// `last`, `last-1`, `NAME`, `NAME/last-1`, a folder, or the beginning of an id
    #[arg(value_name = "CAMPAIGN", default_value = "last")]
    pub campaign: String,
    /// Print it in this format, for other programs, and write nothing else
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<ReportFormat>,
    /// Write it here instead of reports/; with --format, to this file instead of printing it
    #[arg(long, value_name = "PATH")]
    pub to: Option<PathBuf>,
}

/// Formats of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// A row per cell, with intervals
    Csv,
    /// booktabs tables
    Latex,
    /// A test case per cell, for CI systems
    Junit,
    /// Gauges, for monitoring
    Openmetrics,
    /// A row per member and repetition, as training data for predictors; Parquet if --to ends in .parquet
    Dataset,
    /// report.json
    Json,
    /// The text without its figures
    Markdown,
}
