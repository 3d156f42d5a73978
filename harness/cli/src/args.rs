//! The command line, as people type it.

pub mod compare;
mod gpu;
mod nightly;
mod report;
mod run;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use collo_measure::Expression;
use collo_store::Diagnostic;

pub use gpu::{Doctor, Format, Mig, MigVerb, Need, Restore, Services};
pub use nightly::{Nightly, Prune};
pub use report::{Report, ReportFormat};
pub use run::{Foreign, Measure, Only, Run};

/// Verbs by what they are for, in the order of the help page; a test compares them with the verbs that there are.
const GROUPS: [(&str, &[&str]); 4] = [
    ("Measure", &["plan", "run", "status", "restore"]),
    ("Conclude", &["report", "compare", "nightly"]),
    ("Stored", &["list", "show", "verify", "prune"]),
    ("This machine", &["doctor", "mig", "data", "workload", "init", "schema", "completions"]),
];

/// The page of `--help`, each verb with its own first line.
fn page(command: &clap::Command) -> String {
    let about = |verb: &str| command.find_subcommand(verb)?.get_about().map(ToString::to_string);
    let line = |verb: &&str| format!("  {verb:<12} {}\n", about(verb).unwrap_or_default());
    let group = |(name, verbs): &(&str, &[&str])| format!("{name}\n{}", verbs.iter().map(line).collect::<String>());
    let verbs: String = GROUPS.iter().map(group).collect();
    format!("{{about}}\n\n{{usage-heading}} {{usage}}\n\n{verbs}\nOptions:\n{{options}}\n\nStart with: collo run quickstart")
}

/// The command line.
#[derive(Debug, Parser)]
#[command(name = "collo", version, about, disable_help_subcommand = true, infer_subcommands = false)]
pub struct Arguments {
    /// Work in this folder
    #[arg(short = 'C', value_name = "DIR", global = true)]
    pub folder: Option<PathBuf>,
    /// Print one JSON object instead of a table
    #[arg(long, global = true)]
    pub json: bool,
    /// When to colour
    #[arg(long, value_name = "WHEN", default_value = "auto", global = true)]
    pub color: Colour,
    /// Print only results and errors
    #[arg(short, long, global = true)]
    pub quiet: bool,
    #[command(subcommand)]
    pub verb: Verb,
}

impl Arguments {
    /// Read the command line.
    pub fn read() -> Result<Self, clap::Error> {
        let command = Self::command();
        let page = page(&command);
        let mut command = command.help_template(page);
        let read = command.try_get_matches_from_mut(std::env::args_os()).and_then(|m| Self::from_arg_matches(&m));
        read.map_err(|e| e.format(&mut command))
    }
}

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    Auto,
    Always,
    Never,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Show the cells of an experiment, their order, the forecast, and what cannot run here
    Plan(Plan),
    /// Measure an experiment, or finish an unfinished campaign
    Run(Run),
    /// Show progress, and whether each GPU is in its original state
    Status(Status),
    /// Restore a GPU's original MIG and MPS state after a crash
    Restore(Restore),
    /// Write the guideline report of a campaign
    Report(Report),
    /// Compare two campaigns, or GPU generations, with a verdict per cell
    Compare(compare::Compare),
    /// Run an experiment and compare it with its own history
    Nightly(Nightly),
    /// List campaigns; or experiments, workloads, modes, gpus, layouts
    List(List),
    /// Show a campaign, or one of its cells in full
    Show(Show),
    /// Check that a campaign is complete, attested and intact
    Verify(Verify),
    /// Delete old campaigns, never baselines
    Prune(Prune),
    /// Check this machine: GPUs, driver, MPS, MIG, permissions
    Doctor(Doctor),
    /// Export, assert, apply or clear a MIG layout
    Mig(Mig),
    /// Check a data set, or synthesize a stand-in
    Data(Data),
    /// List, show or check workloads
    Workload(Workload),
    /// Write the built-in experiments, workloads and MIG profiles
    Init(Init),
    /// Print a JSON Schema, for editors and programs
    Schema(Schema),
    /// Print completions for a shell
    Completions(Completions),
}

/// Which part of an experiment.
#[derive(Debug, Clone, Default, Args)]
pub struct Selection {
    /// Only cells for which this holds, with their baselines, as in 'degree <= 2 && sharing == "naive"'
    #[arg(long = "where", value_name = "EXPR")]
    pub condition: Option<String>,
}

impl Selection {
    /// What it means; none is all cells.
    pub fn parse(&self) -> Result<Option<collo_measure::Selection>, Diagnostic> {
        let condition = self.condition.as_deref().map(|text| Expression::parse("--where", text)).transpose()?;
        Ok(condition.map(collo_measure::Selection::Where))
    }
}

#[derive(Debug, Args)]
pub struct Plan {
    /// An experiment of experiments/, or a path to one
    #[arg(value_name = "NAME", required_unless_present = "tag")]
    pub name: Option<String>,
    /// Every experiment with this tag; or an expression: `gpu && !slow`
    #[arg(long, value_name = "TAG", conflicts_with = "name")]
    pub tag: Option<String>,
    #[command(flatten)]
    pub selection: Selection,
    /// Plan for this GPU: one of this machine, or a model of `collo list gpus`
    #[arg(long, value_name = "GPU")]
    pub gpu: Option<String>,
    /// Use the current MIG configuration; do not change it
    #[arg(long)]
    pub as_found: bool,
    /// List every repetition in the order in which it will run
    #[arg(long)]
    pub order: bool,
    /// Show where each value comes from: a line of the experiment, or the default
    #[arg(long)]
    pub explain: bool,
}

fn duration(text: &str) -> Result<Duration, String> {
    collo_measure::units::duration(text).ok_or_else(|| "units are ms, s, m, h, as in `8h`".into())
}

#[derive(Debug, Args)]
pub struct Status {
    /// A campaign; the newest if none is named
    #[arg(value_name = "CAMPAIGN")]
    pub campaign: Option<String>,
}

/// Things to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum What {
    Campaigns,
    Experiments,
    Workloads,
    Modes,
    /// Known GPU models, with their MIG profiles
    Gpus,
    /// Named MIG layouts of each GPU
    Layouts,
}

#[derive(Debug, Args)]
pub struct List {
    /// What to list
    #[arg(value_name = "WHAT", default_value = "campaigns")]
    pub what: What,
    /// Only what has this tag; or an expression: `gpu && !slow`
    #[arg(long, value_name = "TAG")]
    pub tag: Option<String>,
    /// Only this GPU of `collo list gpus`, or its layouts
    #[arg(long, value_name = "GPU")]
    pub gpu: Option<String>,
}

#[derive(Debug, Args)]
pub struct Show {
    /// `last`, `last-1`, `NAME`, `NAME/last-1`, a folder, or the beginning of an id
    #[arg(value_name = "CAMPAIGN", default_value = "last")]
    pub campaign: String,
    /// A cell's label or folder, or the beginning of one
    #[arg(value_name = "CELL")]
    pub cell: Option<String>,
    /// Show what a crash interrupted
    #[arg(long, conflicts_with = "cell")]
    pub partial: bool,
}

#[derive(Debug, Args)]
pub struct Verify {
    /// `last`, `last-1`, `NAME`, `NAME/last-1`, a folder, or the beginning of an id
    #[arg(value_name = "CAMPAIGN", default_value = "last")]
    pub campaign: String,
}

#[derive(Debug, Args)]
pub struct Data {
    #[command(subcommand)]
    pub what: DataVerb,
    /// Use this Python, which must have torch, instead of the provided one
    #[arg(long, value_name = "PATH", env = "COLLO_PYTHON", global = true)]
    pub python: Option<PathBuf>,
}

/// What to do with a data set.
#[derive(Debug, Subcommand)]
pub enum DataVerb {
    /// List the data sets, their formats, and where they are found
    List,
    /// Verify a data set's files, sizes, counts and checksums
    Check {
        /// A data set of `collo data list`
        #[arg(value_name = "NAME")]
        name: String,
        /// Its folder, if not data/NAME
        // A name of its own, as in `Init`.
        #[arg(value_name = "DIR")]
        place: Option<PathBuf>,
    },
    /// Write a seeded, learnable stand-in in the same format, marked synthetic
    Synthesize {
        /// A data set of `collo data list`
        #[arg(value_name = "NAME")]
        name: String,
        /// Its size relative to the real data set, as in 0.01
        #[arg(long, value_name = "SHARE")]
        scale: f64,
        /// Write it here instead of data/synthetic/NAME
        #[arg(long, value_name = "DIR")]
        to: Option<PathBuf>,
        /// Another seed gives other items
        #[arg(long, value_name = "NUMBER")]
        seed: Option<u64>,
        /// Which format, where the data set has several
        #[arg(long, value_name = "FORMAT")]
        format: Option<String>,
    },
}

#[derive(Debug, Args)]
pub struct Workload {
    #[command(subcommand)]
    pub what: WorkloadVerb,
}

/// What to do with workloads.
#[derive(Debug, Subcommand)]
pub enum WorkloadVerb {
    /// List the workloads and what they train
    List,
    /// Show a workload: its command, data, needs and settings
    Show {
        /// A workload of `collo workload list`
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Train two tiny epochs of a workload, and check that it follows the protocol
    Check {
        /// A workload of `collo workload list`
        #[arg(value_name = "NAME")]
        name: String,
        /// A setting other than its default, as in --set model=resnet18
        #[arg(long = "set", value_name = "SETTING=VALUE")]
        settings: Vec<String>,
        /// Use this Python, which must have torch, instead of the provided one
        #[arg(long, value_name = "PATH", env = "COLLO_PYTHON")]
        python: Option<PathBuf>,
    },
}

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
    Gpu,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_page_lists_every_verb_once() {
        let command = Arguments::command();
        command.clone().debug_assert();
        let mut listed: Vec<&str> = GROUPS.iter().flat_map(|(_, verbs)| verbs.iter().copied()).collect();
        let mut verbs: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        listed.sort_unstable();
        verbs.sort_unstable();
        assert_eq!(listed, verbs);
        assert!(page(&command).contains("\n  restore      Restore a GPU's original MIG and MPS state after a crash\n"));
    }
}
