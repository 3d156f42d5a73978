//! The words of `collo report`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::complete;

#[derive(Debug, Args)]
pub struct Report {
    /// `last`, `last-1`, `NAME`, `NAME/last-1`, a folder, or the beginning of an id; several of the same ingredients become one report
    #[arg(value_name = "CAMPAIGN", default_value = "last", add = complete::campaigns())]
    pub campaigns: Vec<String>,
    /// Compare groups without a baseline of their own with those of this campaign on the same GPU; by default with those of the newest
    /// stored one that fits
    #[arg(long, value_name = "CAMPAIGN", add = complete::campaigns())]
    pub baseline: Option<String>,
    /// Print it in this format, for other programs, and write nothing else
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<ReportFormat>,
    /// Write it here instead of reports/; with --format, to this file (of mlflow, folder) instead of printing it
    #[arg(long, value_name = "PATH")]
    pub to: Option<PathBuf>,
    /// Divide the measured energy among members by a model, which is named with every number: page and Markdown only
    #[arg(long, value_name = "MODEL")]
    pub energy_model: Option<MemberEnergy>,
    /// Open the page in a browser
    #[arg(long, conflicts_with = "format")]
    pub open: bool,
}

/// Models that divide energy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MemberEnergy {
    /// Idle power equally; above idle by SM activity alone × progress
    SmShare,
}

/// Formats of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// A row per cell, with intervals
    Csv,
    /// booktabs tables
    Latex,
    /// A macro for each number, and for its interval
    LatexMacros,
    /// A test case per cell, for CI systems
    Junit,
    /// Gauges, for monitoring
    Openmetrics,
    /// A row per member and repetition, as training data for predictors; Parquet if --to ends in .parquet
    Dataset,
    /// A row per policy of a trace, with its ratios to the reference
    Policies,
    /// A row per task of each run of a trace
    Tasks,
    /// A row per attempt of each run of a trace
    Attempts,
    /// A row per observer of each watched group, with its ratio to nobody
    Observers,
    /// A database with the tables campaign, cells, quantities, runs, epochs, policies, tasks, attempts and observers; needs --to
    Sqlite,
    /// A file store for `mlflow ui`; --to names its folder
    Mlflow,
    /// report.json
    Json,
    /// The text without its figures
    Markdown,
    /// The first screen, the gains and as many cells as fit a comment on GitHub
    Comment,
}
