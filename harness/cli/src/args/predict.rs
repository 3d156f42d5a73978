//! The arguments of `collo predict`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::complete;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, subcommand_value_name = "VERB")]
pub struct Predict {
    #[command(subcommand)]
    pub verb: Option<PredictVerb>,
    /// A workload of `collo workload list`, or an experiment of experiments/; `./NAME` if it has the name of a verb below
    #[arg(value_name = "WORKLOAD|EXPERIMENT", required = true, add = complete::workloads())]
    target: Option<String>,
    /// A workload's setting, as in --set model=resnet18; or a key of an experiment, as in --set epochs=3
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
    /// The batch size of a workload; by default its own
    #[arg(long, value_name = "ITEMS", value_parser = clap::value_parser!(u32).range(1..))]
    pub batch: Option<u32>,
    /// For this GPU model of `collo list gpus`; by default this machine's GPU, if it has one
    #[arg(long, value_name = "GPU", add = complete::gpu_models())]
    pub gpu: Option<String>,
    /// Compare with the estimators of the literature
    #[arg(long)]
    pub peers: bool,
    /// A predictor of memory or of utilisation: a name of `collo predict list`, or a file; by default the one fitted nearest to the GPU
    #[arg(long, value_name = "PREDICTOR")]
    pub predictor: Option<String>,
    /// Of an experiment: csv, a row for each cell
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<PredictFormat>,
    /// Trace the training step again, whatever is in the cache
    #[arg(long)]
    pub fresh: bool,
    /// Start the scripts that are predicted also in a project in which you ran nothing yet
    #[arg(long)]
    pub describe: bool,
    /// Use this Python, which must have torch, instead of the provided one
    #[arg(long, value_name = "PATH", env = "COLLO_PYTHON")]
    pub python: Option<PathBuf>,
}

/// How predictions are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PredictFormat {
    Text,
    Json,
    Csv,
}

impl Predict {
    /// The name of a workload or an experiment, or a path. `./` before a name sets it apart from the verbs, and is no part of it.
    pub fn target(&self) -> &str {
        let given = self.target.as_deref().unwrap_or_default();
        given.strip_prefix("./").filter(|name| !name.contains('/') && !name.ends_with(".toml")).unwrap_or(given)
    }
}

/// What to do with predictors.
#[derive(Debug, Subcommand)]
pub enum PredictVerb {
    /// List the predictors, what each was fitted on, and how wrong it was on architectures that it had not seen
    List,
    /// Show a predictor: its formula, coefficients, intervals, conditions and sources
    Show {
        /// A predictor of `collo predict list`, or a file
        #[arg(value_name = "PREDICTOR")]
        name: String,
    },
    /// Compare predictions with measurements, each architecture predicted without having been seen
    Evaluate(EvaluateOptions),
    /// Fit a predictor on measurements, and write it to a file
    Fit {
        #[command(flatten)]
        rows: Evaluate,
        /// The file to write, as in predictors/mine.json
        #[arg(long, value_name = "FILE")]
        to: PathBuf,
    },
}

impl PredictVerb {
    pub const ALL: [&str; 4] = ["list", "show", "evaluate", "fit"];

    pub fn as_str(&self) -> &'static str {
        match self {
            PredictVerb::List => "list",
            PredictVerb::Show { .. } => "show",
            PredictVerb::Evaluate(_) => "evaluate",
            PredictVerb::Fit { .. } => "fit",
        }
    }
}

#[derive(Debug, Args)]
#[group(skip)] // it flattens groups
pub struct EvaluateOptions {
    #[command(flatten)]
    pub rows: Evaluate,
    #[command(flatten)]
    pub classify: Classify,
    /// Groups only: score this predictor unchanged, instead of fits that have not seen the families of a group
    #[arg(long, value_name = "PREDICTOR")]
    pub predictor: Option<String>,
    #[command(flatten)]
    pub like: Like,
}

#[derive(Debug, Args)]
#[group(skip)] // the verb's own group has this name
pub struct Evaluate {
    /// Stored campaigns, as `collo report` names them; tables FILE.csv or FILE.parquet, of `collo report --format csv --table
    /// dataset` or with the columns workload or model, batch_size, memory_bytes, measured_by (of utilisation sm_active_ratio
    /// …; of company a table of pairs and one of profiles); or `published:estimators`
    #[arg(value_name = "CAMPAIGN|FILE", required = true)]
    pub rows: Vec<String>,
    /// What is predicted: by default memory, or of a table what its columns tell
    #[arg(long, value_name = "QUANTITY")]
    pub quantity: Option<PredictedQuantity>,
    /// Only the rows of this `measured_by`, as printed above each table
    #[arg(long, value_name = "WHO")]
    pub measured_by: Option<String>,
    /// Trace the training steps again, whatever is in the cache
    #[arg(long)]
    pub fresh: bool,
    /// Start the scripts that are described also in a project in which you ran nothing yet
    #[arg(long)]
    pub describe: bool,
    /// Use this Python, which must have torch, instead of the provided one
    #[arg(long, value_name = "PATH", env = "COLLO_PYTHON")]
    pub python: Option<PathBuf>,
}

/// What a predictor is fitted to predict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PredictedQuantity {
    /// The bytes of a member
    Memory,
    /// How busy a member alone keeps its device, and how long its step takes
    Utilisation,
    /// What members that share a device cost one another
    Company,
}

/// Estimators as classifiers into bins of memory.
#[derive(Debug, Args)]
pub struct Classify {
    /// Also how often each estimator finds the bin of memory, in bins of so many MiB: 1000 and 8000 are the thesis'; repeatable
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(100..))]
    pub bins: Vec<u32>,
    /// Also train GPUMemNet's two ensembles on these rows, and judge them on rows kept apart; takes minutes
    #[arg(long)]
    pub memnet: bool,
    /// Its features in deviations from their mean, instead of raw as published
    #[arg(long, requires = "memnet")]
    pub scaled: bool,
    /// What is kept apart: rows at random, or each family in turn, which of generated nets is their shape
    #[arg(long, value_enum, value_name = "BY", requires = "memnet", default_value = "random")]
    pub split: MemnetSplitBy,
}

/// Estimators by the protocol of a paper.
#[derive(Debug, Args)]
#[group(skip)] // it has a field of its own name
pub struct Like {
    /// Also the regressors of a paper on its features, by its protocol and with architectures left out, for utilisation
    #[arg(long, value_enum, value_name = "PAPER")]
    pub like: Option<Paper>,
    /// How many shuffles, of which the median counts
    #[arg(long, value_name = "N", requires = "like", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub seeds: u64,
}

/// A paper on predicting utilisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Paper {
    /// Yeung and others, HotCloud'20: seven features, four regressors
    Hotcloud20,
}

/// How rows are kept apart from GPUMemNet's training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MemnetSplitBy {
    Random,
    Shape,
}
