//! The arguments of `collo import`.
//!
//! To add another program: a room like `radt`, its variant of [`ImportFrom`]. Results set `measured_by` and `indicative` of
//! `ReportJson`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub struct Import {
    #[command(subcommand)]
    pub from: ImportFrom,
}

/// Programs whose files are read.
#[derive(Debug, Subcommand)]
pub enum ImportFrom {
    /// A schedule of radT becomes an experiment; runs that it tracked become a report.json for `collo compare`
    Radt {
        /// radT's schedule, a .csv; or the store of its runs: the folder `mlruns`, one experiment in it, or the database `mlflow.db`
        #[arg(value_name = "FILE|DIR")]
        from: PathBuf,
        /// The name of the new experiment, or the report.json to write; by default the schedule's name, radt-EXPERIMENT.json
        #[arg(long, value_name = "NAME|FILE")]
        to: Option<String>,
        /// The GPU of the tracked runs, as its driver names it: radT does not, and only reports of one GPU can be compared in full
        #[arg(long, value_name = "NAME")]
        gpu: Option<String>,
        /// The experiment of the store, by its name or number; by default the only one with runs of radT's
        #[arg(long, value_name = "NAME")]
        experiment: Option<String>,
    },
}
