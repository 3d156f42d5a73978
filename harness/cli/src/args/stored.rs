//! The arguments of the verbs that look at what is there: `collo status`, `list`, `show`, `bundle`, `verify`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::complete;

#[derive(Debug, Args)]
pub struct Status {
    /// A campaign; the newest if none is named
    #[arg(value_name = "CAMPAIGN", add = complete::campaigns())]
    pub campaign: Option<String>,
    /// Keep showing the status until the campaign ends
    #[arg(long)]
    pub watch: bool,
    /// Serve the report of the stored runs to browsers on this machine until the campaign ends: a page that fills run by run. The port is a
    /// free one if none is given
    #[arg(long, value_name = "PORT", num_args = 0..=1, default_missing_value = "0", require_equals = true, conflicts_with = "watch")]
    pub serve: Option<u16>,
}

/// Things to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum What {
    Campaigns,
    Experiments,
    Workloads,
    Modes,
    /// Programs that watch members, as `observe` names them
    Observers,
    /// Known GPU models, with their MIG profiles
    Gpus,
    /// Named MIG layouts of each GPU
    Layouts,
    /// Who decides where the tasks of a trace go
    Policies,
    /// Tasks and their arrivals
    Traces,
}

#[derive(Debug, Args)]
pub struct List {
    /// What to list
    #[arg(value_name = "WHAT", default_value = "campaigns")]
    pub what: What,
    /// Only what has this tag; or an expression: `gpu && !slow`
    #[arg(long, value_name = "TAG", add = complete::tags())]
    pub tag: Option<String>,
    /// Only this GPU of `collo list gpus`, or its layouts
    #[arg(long, value_name = "GPU", add = complete::gpu_models())]
    pub gpu: Option<String>,
}

#[derive(Debug, Args)]
pub struct Show {
    /// `last`, `last-1`, `NAME`, `NAME/last-1`, a folder, or the beginning of an id
    #[arg(value_name = "CAMPAIGN", default_value = "last", add = complete::campaigns())]
    pub campaign: String,
    /// A cell's label or folder, the beginning of one, or its number in the plan
    #[arg(value_name = "CELL", add = complete::cells())]
    pub cell: Option<String>,
    /// Show how it was started and on what: command lines, variables, packages, machine, ingredients
    #[arg(long, conflicts_with_all = ["cell", "partial"])]
    pub provenance: bool,
    /// Show what a crash interrupted
    #[arg(long, conflicts_with = "cell")]
    pub partial: bool,
    /// Add a comment to the campaign, and show all of them
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["cell", "partial", "provenance"])]
    pub comment: Option<String>,
}

#[derive(Debug, Args)]
pub struct Bundle {
    /// `last`, `last-1`, `NAME`, `NAME/last-1`, a folder, or the beginning of an id
    #[arg(value_name = "CAMPAIGN", default_value = "last", add = complete::campaigns())]
    pub campaign: String,
    /// The file to write instead of NAME-ID.tar.gz
    #[arg(long, value_name = "FILE")]
    pub to: Option<PathBuf>,
    /// Pack the workloads as they are now, although they changed since
    #[arg(long)]
    pub force: bool,
}

#[derive(Debug, Args)]
pub struct Verify {
    /// `last`, `last-1`, `NAME`, `NAME/last-1`, a folder, or the beginning of an id
    #[arg(value_name = "CAMPAIGN", default_value = "last", add = complete::campaigns())]
    pub campaign: String,
}
