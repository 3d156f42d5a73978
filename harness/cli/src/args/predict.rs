//! The arguments of `collo predict` and `collo predictor`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::complete;

#[derive(Debug, Args)]
pub struct Predict {
    /// A workload of `collo workload list`
    #[arg(value_name = "WORKLOAD", add = complete::workloads())]
    pub workload: String,
    /// A setting other than its default, as in --set model=resnet18
    #[arg(long = "set", value_name = "SETTING=VALUE")]
    pub settings: Vec<String>,
    /// The batch size; by default the workload's own
    #[arg(long, value_name = "ITEMS", value_parser = clap::value_parser!(u32).range(1..))]
    pub batch: Option<u32>,
    /// For this GPU model of `collo list gpus`; by default this machine's GPU, if it has one
    #[arg(long, value_name = "GPU", add = complete::gpu_models())]
    pub gpu: Option<String>,
    /// Compare with the estimators of the literature
    #[arg(long)]
    pub peers: bool,
    /// A predictor of `collo predictor list`, or a file
    #[arg(long, value_name = "PREDICTOR", default_value = "published-a100")]
    pub predictor: String,
    /// Trace the training step again, whatever is in the cache
    #[arg(long)]
    pub fresh: bool,
    /// Use this Python, which must have torch, instead of the provided one
    #[arg(long, value_name = "PATH", env = "COLLO_PYTHON")]
    pub python: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Predictor {
    #[command(subcommand)]
    pub what: PredictorVerb,
}

/// What to do with predictors.
#[derive(Debug, Subcommand)]
pub enum PredictorVerb {
    /// List the predictors, what each was fitted on, and how wrong it was on architectures that it had not seen
    List,
    /// Show a predictor: its formula, coefficients, intervals, conditions and sources
    Show {
        /// A predictor of `collo predictor list`, or a file
        #[arg(value_name = "PREDICTOR")]
        name: String,
    },
    /// Compare predictions with measurements, each architecture predicted without having been seen
    Evaluate(Evaluate),
    /// Fit a predictor on measurements, and write it to a file
    Fit {
        #[command(flatten)]
        rows: Evaluate,
        /// The file to write, as in predictors/mine.json
        #[arg(long, value_name = "FILE")]
        to: PathBuf,
    },
}

#[derive(Debug, Args)]
pub struct Evaluate {
    /// `published:estimators`, or a table FILE.csv with the columns workload or model, batch_size, memory_bytes, measured_by
    #[arg(value_name = "MEASUREMENTS")]
    pub rows: String,
    /// Only the rows of this `measured_by`
    #[arg(long, value_name = "WHO")]
    pub measured_by: Option<String>,
    /// Trace the training steps again, whatever is in the cache
    #[arg(long)]
    pub fresh: bool,
    /// Use this Python, which must have torch, instead of the provided one
    #[arg(long, value_name = "PATH", env = "COLLO_PYTHON")]
    pub python: Option<PathBuf>,
}
