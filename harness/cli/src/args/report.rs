//! The words of `collo report`.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, ValueEnum};
use collo_report::export::{FORMATS, TABLES};

use crate::complete;

#[derive(Debug, Args)]
pub struct Report {
    /// `last`, `last-1`, `NAME`, `NAME/last-1`, a folder, or the beginning of an id; several of the same ingredients become one report.
    /// A report.json, from anywhere, is rendered again without the runs
    #[arg(value_name = "CAMPAIGN", default_value = "last", add = complete::campaigns())]
    pub campaigns: Vec<String>,
    /// Compare groups without a baseline of their own with those of this campaign on the same GPU; by default with those of the newest
    /// stored one that fits
    #[arg(long, value_name = "CAMPAIGN", add = complete::campaigns())]
    pub baseline: Option<String>,
    /// Print it in this format, for other programs, and write nothing else
    #[arg(long, value_name = "FORMAT", value_parser = words(FORMATS.iter().map(|f| (f.word, f.about))))]
    pub format: Option<String>,
    /// The table of csv and parquet, `cells` by default
    #[arg(long, value_name = "TABLE", requires = "format", value_parser = words(TABLES.iter().map(|t| (t.name, t.about))))]
    pub table: Option<String>,
    /// Write it here instead of reports/; with --format, to this file (of mlflow, folder) instead of printing it
    #[arg(long, value_name = "PATH")]
    pub to: Option<PathBuf>,
    /// Divide the measured energy among members by a model, which is named with every number: page and Markdown only
    #[arg(long, value_name = "MODEL")]
    pub energy_model: Option<MemberEnergy>,
    /// Leave out the names of host and user, paths, variables with paths, the commit and the identities of GPUs: for a double-blind review
    #[arg(long, requires = "to", conflicts_with = "format")]
    pub anonymous: bool,
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

/// Words and what each means.
fn words(of: impl Iterator<Item = (&'static str, &'static str)>) -> PossibleValuesParser {
    PossibleValuesParser::new(of.map(|(word, about)| PossibleValue::new(word).help(about)))
}
