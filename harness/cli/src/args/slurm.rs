//! The arguments of `collo slurm`.

use std::path::PathBuf;

use clap::Args;

use super::Selection;
use crate::complete;

#[derive(Debug, Args)]
pub struct Slurm {
    /// An experiment of experiments/, or a path to one
    #[arg(value_name = "NAME", add = complete::experiments())]
    pub name: String,
    #[command(flatten)]
    pub selection: Selection,
    /// Divide the experiment into this many array tasks
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub shards: u32,
    /// The partition to submit to
    #[arg(long, value_name = "NAME")]
    pub partition: Option<String>,
    /// The account to charge
    #[arg(long, value_name = "NAME")]
    pub account: Option<String>,
    /// The time limit of each task, as Slurm writes it: 08:00:00
    #[arg(long, value_name = "TIME")]
    pub time: Option<String>,
    /// The GPU of each task, as Slurm writes it: gpu:a100:1. None is requested for an experiment on the CPU
    #[arg(long, value_name = "GRES", default_value = "gpu:1")]
    pub gres: String,
    /// Let other jobs run on the node meanwhile
    #[arg(long)]
    pub shared: bool,
    /// Use this Python, which must have torch, instead of the provided one
    #[arg(long, value_name = "PATH", env = "COLLO_PYTHON")]
    pub python: Option<PathBuf>,
    /// A further option of sbatch, as in --sbatch=--qos=long
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    pub sbatch: Vec<String>,
    /// Write the scripts into this folder instead of slurm/NAME
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,
    /// Submit them
    #[arg(long)]
    pub submit: bool,
}
