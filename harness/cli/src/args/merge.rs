//! The arguments of `collo merge`.

use clap::Args;

use crate::complete;

#[derive(Debug, Args)]
pub struct Merge {
    /// The campaigns to merge, as in `collo list`; with --shards, the experiment whose shards are merged
    #[arg(value_name = "CAMPAIGN", required = true, add = complete::runnable())]
    pub campaigns: Vec<String>,
    /// Merge the newest campaign of every shard of an experiment
    #[arg(long)]
    pub shards: bool,
    /// Merge although ingredients differ; the campaign is marked indicative
    #[arg(long)]
    pub force: bool,
    /// Merge although runs are missing
    #[arg(long)]
    pub unfinished: bool,
}
