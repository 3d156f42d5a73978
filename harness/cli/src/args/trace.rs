//! The arguments of `collo trace`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use collo_schedule::trace::make::Log;

use crate::complete;

#[derive(Debug, Args)]
pub struct Trace {
    #[command(subcommand)]
    pub what: TraceVerb,
}

/// What to do with traces.
#[derive(Debug, Subcommand)]
pub enum TraceVerb {
    /// List the traces, how many tasks each has, and within what time they arrive
    List,
    /// Show a trace: its tasks, when they arrive, their work, and the least time that so many cards need for it
    Show {
        /// A trace of `collo trace list`
        #[arg(value_name = "NAME", add = complete::traces())]
        name: String,
        /// The seed of the order that is shown
        #[arg(long, value_name = "SEED", default_value_t = 1)]
        order: u64,
        /// The least time on so many cards; by default on 1, 2, 4 and 8
        #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=100_000))]
        cards: Option<u32>,
        /// At this scale, as an experiment has it: 1:100 divides arrivals and epochs
        #[arg(long, value_name = "SCALE", default_value = "1:1")]
        scale: String,
    },
    /// Cut a window out of a cluster's log, and draw tasks by shares for its arrivals
    Make {
        /// Its name, for `name` of `[trace]`
        #[arg(value_name = "NAME")]
        name: String,
        /// Whose log it is
        #[arg(long, value_name = "LOG")]
        from: TraceLog,
        /// The log: `cluster_job_log` of Philly, `cluster_log.csv` of Helios
        #[arg(long, value_name = "FILE")]
        log: PathBuf,
        /// Begin so long after the first submission of the log
        #[arg(long, value_name = "TIME", value_parser = super::duration)]
        after: Option<Duration>,
        /// Only what was submitted within this time, as in 4h
        #[arg(long, value_name = "TIME", value_parser = super::duration)]
        window: Option<Duration>,
        /// At most so many tasks
        #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
        tasks: Option<u32>,
        /// A class of tasks: its share, and what is drawn, as in '65=resnet18:b32 20e, resnet34:b64 20e'; once for each class
        #[arg(long = "class", value_name = "SHARE=TASKS", required = true)]
        classes: Vec<String>,
        /// Replace a trace of this name
        #[arg(long)]
        force: bool,
    },
    /// Make a trace of a table `submit_time_s,task`, or of a script that sleeps and submits .rad files
    Import {
        /// Its name, for `name` of `[trace]`
        #[arg(value_name = "NAME")]
        name: String,
        /// The table (.csv), or the script; its .rad files are found in its folder and those above it, or named here
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
        /// The workload that a task is here, as in 'Inception*=inception-v3', where `*` is any text; once for each name, the first that fits
        #[arg(long = "map", value_name = "NAME=WORKLOAD")]
        map: Vec<String>,
        /// Replace a trace of this name
        #[arg(long)]
        force: bool,
    },
}

/// Logs that traces are cut from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceLog(pub Log);

impl ValueEnum for TraceLog {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [TraceLog; Log::ALL.len()] = [TraceLog(Log::ALL[0]), TraceLog(Log::ALL[1])];
        &ALL
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(clap::builder::PossibleValue::new(self.0.name()).help(self.0.source()))
    }
}
