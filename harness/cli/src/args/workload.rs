//! The arguments of `collo workload` and `collo data`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::complete;

#[derive(Debug, Args)]
pub struct Data {
    #[command(subcommand)]
    pub what: DataVerb,
    /// Use this Python, which must have torch, instead of the provided one
    #[arg(long, value_name = "PATH", env = "COLLO_PYTHON", global = true)]
    pub python: Option<PathBuf>,
}

/// What to do with a data set.
#[derive(Debug, Subcommand)]
pub enum DataVerb {
    /// List the data sets, their formats, and where they are found
    List,
    /// Verify a data set's files, sizes, counts and checksums
    Check {
        /// A data set of `collo data list`
        #[arg(value_name = "NAME")]
        name: String,
        /// Its folder, if not data/NAME
        // A name of its own, as in `Init`.
        #[arg(value_name = "DIR")]
        place: Option<PathBuf>,
    },
    /// Write a seeded, learnable stand-in in the same format, marked synthetic
    Synthesize {
        /// A data set of `collo data list`
        #[arg(value_name = "NAME")]
        name: String,
        /// Its size relative to the real data set, as in 0.01
        #[arg(long, value_name = "SHARE")]
        scale: f64,
        /// Write it here instead of data/synthetic/NAME
        #[arg(long, value_name = "DIR")]
        to: Option<PathBuf>,
        /// Another seed gives other items
        #[arg(long, value_name = "NUMBER")]
        seed: Option<u64>,
        /// Which format, where the data set has several
        #[arg(long, value_name = "FORMAT")]
        format: Option<String>,
    },
}

#[derive(Debug, Args)]
pub struct Workload {
    #[command(subcommand)]
    pub what: WorkloadVerb,
}

/// What to do with workloads.
#[derive(Debug, Subcommand)]
pub enum WorkloadVerb {
    /// List the workloads and what they train
    List,
    /// Show a workload: its command, data, needs and settings
    Show {
        /// A workload of `collo workload list`
        #[arg(value_name = "NAME", add = complete::workloads())]
        name: String,
    },
    /// Train two tiny epochs of a workload, and check that it follows the protocol
    Check(WorkloadCheck),
}

#[derive(Debug, Args)]
pub struct WorkloadCheck {
    /// A workload of `collo workload list`
    #[arg(value_name = "NAME", add = complete::workloads())]
    pub name: String,
    /// A setting other than its default, as in --set model=resnet18
    #[arg(long = "set", value_name = "SETTING=VALUE")]
    pub settings: Vec<String>,
    /// Use this Python, which must have torch, instead of the provided one
    #[arg(long, value_name = "PATH", env = "COLLO_PYTHON")]
    pub python: Option<PathBuf>,
    /// If progress is found only in its output, put the pattern of those lines into its workload.toml, and check it again
    #[arg(long)]
    pub write: bool,
}
