//! The command line, as people type it.

pub mod compare;
mod gpu;
mod nightly;
mod report;
mod run;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use collo_measure::Expression;
use collo_store::Diagnostic;

pub use gpu::{Doctor, Format, Mig, MigVerb, Need, Restore, Services};
pub use nightly::{Nightly, Prune};
pub use report::{Report, ReportFormat};
pub use run::{Foreign, Measure, Only, Run};

/// Verbs by what they are for; a test holds this page against the verbs that there are.
const HELP: &str = "\
{about}

{usage-heading} {usage}

Measure
  plan         Show the cells of an experiment, their order, the forecast, and what cannot run here
  run          Measure an experiment, or finish an unfinished campaign
  status       Show what is running, and whether each GPU is as it was found
  restore      Put a GPU back after a crash
Conclude
  report       Write the guideline report of a campaign
  compare      Compare two campaigns, or GPU generations, with a verdict per cell
  nightly      Run an experiment and hold it against its own history
Stored
  list         List campaigns; or experiments, workloads, modes, gpus, layouts
  show         Show a campaign, or one of its cells in full
  verify       Check that a campaign is complete, attested and intact
  prune        Delete old campaigns, never baselines
This machine
  doctor       Say what this machine can measure, and what is missing
  mig          Export, assert, apply or clear a MIG layout
  data         Check a data set, or synthesize a stand-in
  workload     List, show or check workloads
  init         Write the experiments, workloads and MIG profiles that collo carries
  schema       Print a JSON Schema, for editors and programs
  completions  Print completions for a shell

Options:
{options}

Start with: collo run quickstart";

/// Measure deep-learning training processes that share one GPU, and say how they should share it
#[derive(Debug, Parser)]
#[command(name = "collo", version, about, help_template = HELP, disable_help_subcommand = true, infer_subcommands = false)]
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
    /// Say nothing but results and errors
    #[arg(short, long, global = true)]
    pub quiet: bool,
    #[command(subcommand)]
    pub verb: Verb,
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
    /// Show what is running, and whether each GPU is as it was found
    Status(Status),
    /// Put a GPU back after a crash
    Restore(Restore),
    /// Write the guideline report of a campaign
    Report(Report),
    /// Compare two campaigns, or GPU generations, with a verdict per cell
    Compare(compare::Compare),
    /// Run an experiment and hold it against its own history
    Nightly(Nightly),
    /// List campaigns; or experiments, workloads, modes, gpus, layouts
    List(List),
    /// Show a campaign, or one of its cells in full
    Show(Show),
    /// Check that a campaign is complete, attested and intact
    Verify(Verify),
    /// Delete old campaigns, never baselines
    Prune(Prune),
    /// Say what this machine can measure, and what is missing
    Doctor(Doctor),
    /// Export, assert, apply or clear a MIG layout
    Mig(Mig),
    /// Check a data set, or synthesize a stand-in
    Data(Data),
    /// List, show or check workloads
    Workload(Workload),
    /// Write the experiments, workloads and MIG profiles that collo carries
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
    /// Every experiment with this tag
    #[arg(long, value_name = "TAG", conflicts_with = "name")]
    pub tag: Option<String>,
    #[command(flatten)]
    pub selection: Selection,
    /// Plan for this GPU: one of this machine, or a model of `collo list gpus`
    #[arg(long, value_name = "GPU")]
    pub gpu: Option<String>,
    /// Use the MIG state that is there, and change nothing
    #[arg(long)]
    pub as_found: bool,
    /// List every repetition in the order in which it will run
    #[arg(long)]
    pub order: bool,
    /// Say of every value which line of the experiment it comes from, or that it is a default
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
    /// GPUs that are known, with their MIG profiles
    Gpus,
    /// What each of them can be cut into, by name
    Layouts,
}

#[derive(Debug, Args)]
pub struct List {
    /// What to list
    #[arg(value_name = "WHAT", default_value = "campaigns")]
    pub what: What,
    /// Only what has this tag
    #[arg(long, value_name = "TAG")]
    pub tag: Option<String>,
    /// Only this GPU of `collo list gpus`, or its layouts
    #[arg(long, value_name = "GPU")]
    pub gpu: Option<String>,
}

#[derive(Debug, Args)]
pub struct Show {
    /// `last`, `last-1`, `NAME/last`, a folder, or the beginning of an id
    #[arg(value_name = "CAMPAIGN", default_value = "last")]
    pub campaign: String,
    /// A cell's label or folder, or the beginning of one
    #[arg(value_name = "CELL")]
    pub cell: Option<String>,
    /// Show what was cut off by a crash
    #[arg(long, conflicts_with = "cell")]
    pub partial: bool,
}

#[derive(Debug, Args)]
pub struct Verify {
    /// `last`, `last-1`, `NAME/last`, a folder, or the beginning of an id
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
    /// Hold a data set against what is published of it: files, sizes, counts, checksums
    Check {
        /// A data set of `collo data list`
        #[arg(value_name = "NAME")]
        name: String,
        /// Where it lies, if not in data/NAME
        // A name of its own, as in `Init`.
        #[arg(value_name = "DIR")]
        place: Option<PathBuf>,
    },
    /// Write a seeded, learnable stand-in in the same format, marked synthetic
    Synthesize {
        /// A data set of `collo data list`
        #[arg(value_name = "NAME")]
        name: String,
        /// Its size as a share of the real one's, as in 0.01
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
    /// Train two tiny epochs of a workload, and say whether it speaks the protocol
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
    /// Where to write them; made if it is not there
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
    /// Of what
    #[arg(value_name = "KIND")]
    pub kind: Kind,
}

#[derive(Debug, Args)]
pub struct Completions {
    /// For which shell
    #[arg(value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_help_page_names_every_verb_with_its_own_words() {
        let command = Arguments::command();
        command.clone().debug_assert();
        for verb in command.get_subcommands() {
            let about = verb.get_about().unwrap().to_string();
            let line = HELP.lines().find(|l| l.trim_start().starts_with(verb.get_name())).unwrap_or_default();
            assert!(line.ends_with(&about), "`{}`: {line:?} does not end with {about:?}", verb.get_name());
        }
        let listed = HELP.lines().filter(|l| l.starts_with("  ")).count();
        assert_eq!(listed, command.get_subcommands().count());
    }
}
