//! The arguments of `collo try`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::complete;

#[derive(Debug, Args)]
pub struct Try {
    /// Commands as a shell takes them, such as 'python train.py --lr 0.1'; one command is run twice at once, several together
    #[arg(value_name = "COMMAND", required = true)]
    pub commands: Vec<String>,
    /// So many copies of the one command at once
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(2..=48))]
    pub degree: Option<u32>,
    /// The time that it may take, first looks included
    #[arg(long = "for", value_name = "TIME", value_parser = super::duration, default_value = "3m")]
    pub time_limit: Duration,
    /// Write the workloads, the experiment and the results to this folder, as a project
    #[arg(long, value_name = "DIR")]
    pub save: Option<PathBuf>,
    /// Measure on this GPU: its index, its UUID, its PCI id, or `auto`; `cpu` for none
    #[arg(long, value_name = "GPU", add = complete::gpus())]
    pub gpu: Option<String>,
}
