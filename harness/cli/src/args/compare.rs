//! The arguments of `collo compare`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::complete;

#[derive(Debug, Args)]
pub struct Compare {
    /// The campaigns to compare: `last-1 last` (the newest campaign and the one before it of the same experiment), `NAME`,
    /// `NAME/last-1`, a folder, the beginning of an id, a report.json, `published:study`
    #[arg(value_name = "SIDE", required = true, num_args = 2.., add = complete::campaigns())]
    pub sides: Vec<String>,
    /// Compare this quantity of report.json instead of times; slowdown and throughput_gain do not see what moves all cells
    #[arg(long, value_name = "NAME")]
    pub quantity: Option<String>,
    /// Count verdicts by mode or by workload, too
    #[arg(long, value_name = "WHAT")]
    pub by: Option<By>,
    /// Exit with 1 if a matched cell is worse, or no longer runs, or all cells together are worse
    #[arg(long, value_name = "WHAT")]
    pub fail_on: Option<FailOn>,
    /// Write the page, Markdown and JSON into this folder
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,
    /// Compare two or more GPU models: which guidelines changed, and what each gains
    #[arg(long, conflicts_with_all = ["by", "fail_on"])]
    pub generations: bool,
    /// With `--generations`: the price of an hour on each side, in their order; the table then has the cost of a million items
    #[arg(long, value_name = "PRICE,…", value_delimiter = ',', value_parser = price, requires = "generations")]
    pub price_per_hour: Vec<f64>,
}

/// A price that can be paid.
fn price(text: &str) -> Result<f64, String> {
    let price: f64 = text.trim().parse().map_err(|_| format!("`{text}` is not a number"))?;
    if price.is_finite() && price > 0.0 { Ok(price) } else { Err(format!("`{text}` is not a price above 0")) }
}

/// What verdicts are counted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum By {
    Mode,
    Workload,
}

/// What makes a comparison fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    Worse,
}
