//! The arguments of `collo try`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use collo_plan::cell::MOST_MEMBERS;

use crate::complete;

#[derive(Debug, Args)]
pub struct Try {
    /// Shell commands, quoted, such as 'python train.py --lr 0.1'; a single one runs as two copies, several run side by side
    #[arg(value_name = "COMMAND", required = true)]
    pub commands: Vec<String>,
    /// How many copies of a single command run at once; 2 by default
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(2..=MOST_MEMBERS as i64))]
    pub degree: Option<u32>,
    /// How long all of it may take, the search for progress lines included, which has at least 20 seconds for each command
    #[arg(long = "for", value_name = "TIME", value_parser = super::duration, default_value = "3m")]
    pub time_limit: Duration,
    /// Keep the workloads, the experiment and the results in this new folder, as a project
    #[arg(long, value_name = "DIR")]
    pub save: Option<PathBuf>,
    /// Measure on this GPU: its index, its UUID, its PCI id, or `auto`; `cpu` for none
    #[arg(long, value_name = "GPU", add = complete::gpus())]
    pub gpu: Option<String>,
}
