//! What `collo run` takes, and what it has in common with `collo nightly`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use collo_store::Shard;

use super::{Selection, Services};
use crate::complete;

/// Runs to do again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Only {
    /// What is not stored, or was interrupted
    Missing,
    /// What failed; out of memory is a result, not a failure
    Failed,
}

/// What to do if other processes compute on the GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Foreign {
    /// Measure nothing
    Refuse,
    /// Measure anyway and mark the results as indicative
    Allow,
}

#[derive(Debug, Args)]
pub struct Run {
    /// An experiment of experiments/, a path to one, or a campaign to finish; several are measured one after the other
    #[arg(value_name = "NAME", add = complete::runnable())]
    pub names: Vec<String>,
    /// Every experiment with this tag, one after the other; or an expression: `gpu && !slow`
    #[arg(long, value_name = "TAG", conflicts_with = "names", add = complete::tags())]
    pub tag: Option<String>,
    #[command(flatten)]
    pub selection: Selection,
    /// Measure only this part of the experiment, as in 1/4; `collo merge` combines them
    #[arg(long, value_name = "I/N")]
    pub shard: Option<Shard>,
    #[command(flatten)]
    pub measure: Measure,
    /// Which runs of the campaign to do
    #[arg(long, value_name = "WHICH")]
    pub only: Option<Only>,
    /// Start a new campaign, even if one is unfinished
    #[arg(long, conflicts_with_all = ["only", "force"])]
    pub new: bool,
    /// Continue although ingredients changed; the campaign is marked indicative
    #[arg(long)]
    pub force: bool,
    /// Add this many repetitions to the newest campaign, complete or not; with --where, of these cells and their baselines
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1000), conflicts_with_all = ["new", "only"])]
    pub more: Option<u32>,
    /// Stop after the first failed run; what is missing can be resumed
    #[arg(long, conflicts_with_all = ["max_failures", "keep_going"])]
    pub fail_fast: bool,
    /// Stop after this many failed runs. Out of memory is no failure, nor is one that the experiment expects
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "keep_going")]
    pub max_failures: Option<u32>,
    /// Provide Python and data, then stop
    #[arg(long, display_order = 91)]
    pub prepare: bool,
    /// Do not write the report at the end
    #[arg(long, display_order = 93)]
    pub no_report: bool,
}

/// How something is measured. The orders are places on a help page.
#[derive(Debug, Args)]
pub struct Measure {
    /// Measure on this GPU: its index, its UUID, its PCI id, or `auto`
    #[arg(long, value_name = "GPU", add = complete::gpus())]
    pub gpu: Option<String>,
    /// Use the current MIG configuration; do not change it
    #[arg(long)]
    pub as_found: bool,
    /// Under MPS, set exclusive-process mode so that only its server uses the GPU (needs root; restored afterwards)
    #[arg(long)]
    pub exclusive: bool,
    /// What to do if other processes compute on the GPU; by default `refuse`, or what collo.toml says
    #[arg(long, value_name = "WHAT")]
    pub foreign: Option<Foreign>,
    /// Wait for at most this long while another collo uses the GPU, or measures this CPU
    #[arg(long, value_name = "TIME", value_parser = super::duration)]
    pub wait: Option<Duration>,
    /// What to do with services that have the GPU open when its MIG mode must change; stopping them needs root
    #[arg(long, value_name = "WHAT", default_value = "leave")]
    pub services: Services,
    /// Do not stop when the first runs all fail for the same cause before they train
    #[arg(long)]
    pub keep_going: bool,
    /// Do not predict the memory of the members first, and refuse no cell by it
    #[arg(long)]
    pub no_predict: bool,
    /// Use this Python, which must have torch, instead of the provided one
    #[arg(long, value_name = "PATH", env = "COLLO_PYTHON", display_order = 90)]
    pub python: Option<PathBuf>,
    /// Start no further run after this long, as in 8h
    #[arg(long = "for", value_name = "TIME", value_parser = super::duration, display_order = 92)]
    pub time_limit: Option<Duration>,
    /// The command that measures what is missing, if it is not this one: scripts of `collo slurm` give their own
    #[arg(long, value_name = "COMMAND", hide = true)]
    pub resume_with: Option<String>,
}
