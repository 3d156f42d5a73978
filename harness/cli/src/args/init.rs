//! The arguments of the verbs that write what others read: `collo init`, `schema`, `completions`, `man`, `help`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::complete;

#[derive(Debug, Args)]
pub struct Init {
    /// Where to write them; created if missing
    // A name of its own: clap would take `folder` for the `-C DIR` that every verb has.
    #[arg(value_name = "DIR", default_value = ".")]
    pub place: PathBuf,
}

/// Things that have a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    Experiment,
    Workload,
    /// traces/NAME.toml: tasks that arrive
    Trace,
    Gpu,
    /// observers/NAME.toml: a program that watches members
    Observer,
    /// collo.toml: this machine's GPU, Python, cores and price
    Host,
    Report,
}

#[derive(Debug, Args)]
pub struct Schema {
    /// Which schema
    #[arg(value_name = "KIND")]
    pub kind: Kind,
}

#[derive(Debug, Args)]
pub struct Completions {
    /// Shell
    #[arg(value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub struct Man {
    /// Where to write them, as in ~/.local/share/man/man1; created if missing
    // A name of its own, as in `Init`.
    #[arg(value_name = "DIR")]
    pub place: PathBuf,
}

#[derive(Debug, Args)]
pub struct Help {
    /// A command, `all` for the list of commands, a page of the guide, or `topics` for the list of pages
    #[arg(value_name = "TOPIC", add = complete::topics())]
    pub topic: Vec<String>,
}
