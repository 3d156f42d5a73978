//! The command line, as people type it.
//!
//! To add a verb: a variant of [`Verb`] and its place in `GROUPS`, its arguments in a file below `args/`, a file in the room of what it
//! is about that returns an [`Answer`](crate::answer::Answer), its line in `main.rs`, a row in `docs/guide/commands.md`.

mod advise;
pub mod compare;
mod gpu;
mod import;
mod init;
mod merge;
mod nightly;
mod predict;
mod report;
mod run;
mod slurm;
mod stored;
mod trace;
mod try_scripts;
mod way_out;
mod workload;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use collo_figures::document::Table;
use collo_plan::select::Expression;
use collo_store::Shard;
use collo_text::Diagnostic;

use crate::complete;

pub use advise::Advise;
pub use gpu::{Doctor, Format, Mig, MigVerb, Need, Restore, Services};
pub use import::{Import, ImportFrom};
pub use init::{Completions, Help, Init, Kind, Man, Schema};
pub use merge::Merge;
pub use nightly::{Nightly, Prune};
pub use predict::{Evaluate, EvaluateOptions, MemnetSplitBy, Predict, PredictFormat, PredictVerb, PredictedQuantity};
pub use report::{MemberEnergy, Report};
pub use run::{Foreign, Measure, Only, Run};
pub use slurm::Slurm;
pub use stored::{Bundle, List, Show, Status, Verify, What};
pub use trace::{Trace, TraceVerb};
pub use try_scripts::Try;
pub use way_out::{add_way_out, of_value};
pub use workload::{Data, DataVerb, Workload, WorkloadCheck, WorkloadVerb};

/// Verbs by what they are for, in the order of the help page; a test compares them with the verbs that there are.
/// `--help` lists the first group, `collo help all` every one.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Every day", &["try", "init", "plan", "run", "report", "compare", "list", "show", "doctor"]),
    ("Measure", &["status", "restore", "nightly", "slurm", "merge"]),
    ("Predict", &["predict", "advise"]),
    ("Stored", &["verify", "bundle", "import", "prune"]),
    ("Project and machine", &["workload", "data", "trace", "schema", "mig", "completions", "man", "help"]),
];

/// Groups of verbs, each verb with its own first line.
fn listed(command: &clap::Command, groups: &[(&str, &[&str])], width: usize) -> String {
    let about = |verb: &str| command.find_subcommand(verb)?.get_about().map(ToString::to_string);
    let group = |(name, verbs): &(&str, &[&str])| {
        let mut table = Table::new(&["", ""], 1).with_prose_last();
        verbs.iter().for_each(|verb| table.texts([format!("  {verb:<11}"), about(verb).unwrap_or_default()]));
        format!("{name}\n{}", table.render(width))
    };
    groups.iter().map(group).collect()
}

/// The page of `--help`.
fn page(command: &clap::Command, width: usize) -> String {
    let daily = listed(command, &GROUPS[..1], width);
    format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n\n{daily}\nAll commands: collo help all\nThe guide: collo help topics\n\nOptions:\n{{options}}\n\n\
         Start with: collo run quickstart"
    )
}

/// What every verb takes stands at the end of its help.
const GLOBAL: &str = "Global options";

/// The command line.
#[derive(Debug, Parser)]
#[command(name = "collo", version, about, infer_subcommands = false, disable_help_subcommand = true)]
pub struct Arguments {
    /// Work in this folder
    #[arg(short = 'C', value_name = "DIR", global = true, help_heading = GLOBAL, display_order = 900)]
    pub folder: Option<PathBuf>,
    /// Print one JSON object instead of a table
    #[arg(long, global = true, help_heading = GLOBAL, display_order = 901)]
    pub json: bool,
    /// When to colour
    #[arg(long, value_name = "WHEN", default_value = "auto", global = true, help_heading = GLOBAL, display_order = 902)]
    pub color: Colour,
    /// Print only results and errors
    #[arg(short, long, global = true, help_heading = GLOBAL, display_order = 903)]
    pub quiet: bool,
    /// Use a simulated GPU of this model, which invents every number: `a100-40gb`, or with faults `h100-80gb,gpus=2,lost@5s`
    #[arg(long, value_name = "MODEL", global = true, help_heading = GLOBAL, display_order = 904, add = complete::gpu_models())]
    pub simulate: Option<String>,
    #[command(subcommand)]
    pub verb: Verb,
}

impl Arguments {
    /// Read the command line.
    pub fn read(width: usize) -> Result<Self, clap::Error> {
        let mut command = Self::with_page(width);
        let read = command.try_get_matches_from_mut(std::env::args_os()).and_then(|m| Self::from_arg_matches(&m));
        read.map_err(|e| e.format(&mut command))
    }

    /// The command line with the page of `--help`.
    pub fn with_page(width: usize) -> clap::Command {
        let command = Self::command();
        let page = page(&command, width);
        command.help_template(page)
    }

    /// Every verb, by what it is for.
    pub fn all_verbs(width: usize) -> String {
        listed(&Self::command(), &GROUPS, width)
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
    /// Run commands of your own alone and together, and report whether they should share this machine's GPU or CPU
    Try(Try),
    /// Show the cells of an experiment, their order, the forecast, and what cannot run here
    Plan(Plan),
    /// Measure an experiment, or finish an unfinished campaign
    Run(Run),
    /// Show progress, and whether each GPU is in its original state
    Status(Status),
    /// Restore a GPU's original MIG and MPS state after a crash
    Restore(Restore),
    /// Write the scripts of a Slurm job that measures an experiment, divided among GPUs; --submit submits them
    Slurm(Slurm),
    /// Predict the memory of a workload, or of an experiment's cells, before it is run, without a GPU; list, show, evaluate or fit predictors
    Predict(Predict),
    /// Decide which of the given GPUs one task should go to, and what sharing it is expected to cost: JSON in, JSON out
    Advise(Advise),
    /// Combine the shards of an experiment, from several GPUs or machines, into one campaign
    Merge(Merge),
    /// Write the guideline report of a campaign
    Report(Report),
    /// Compare two campaigns, or GPU generations, with a verdict per cell
    Compare(compare::Compare),
    /// Run an experiment and compare it with its own history
    Nightly(Nightly),
    /// List campaigns; or experiments, workloads, modes, observers, gpus, layouts, policies, traces
    List(List),
    /// Show a campaign, or one of its cells in full; --comment adds a comment
    Show(Show),
    /// Check that a campaign is complete, attested and intact
    Verify(Verify),
    /// Pack a campaign with all that is needed to run it again elsewhere
    Bundle(Bundle),
    /// Make an experiment of another program's schedule, or a report of its results
    Import(Import),
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
    /// List or show traces, cut one out of a cluster's log, or import a table or a script
    Trace(Trace),
    /// Write the built-in experiments, workloads and MIG profiles, and a justfile
    Init(Init),
    /// Print a JSON Schema, for editors and programs
    Schema(Schema),
    /// Print completions for a shell
    Completions(Completions),
    /// Write the manual pages
    Man(Man),
    /// Explain a command, or print a page of the guide: `collo help topics` lists them
    Help(Help),
}

/// Which part of an experiment.
#[derive(Debug, Clone, Default, Args)]
pub struct Selection {
    /// Only cells that match this expression (their baselines are kept), e.g. 'degree <= 2 && sharing == "naive"'
    #[arg(long = "where", value_name = "EXPR")]
    pub condition: Option<String>,
    /// Another value for a key of the experiment, as in repetitions=5 or 'degree=[1, 2]'; once for each key
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

impl Selection {
    /// What it means; none is all cells.
    pub fn parse(&self) -> Result<Option<collo_plan::select::Selection>, Diagnostic> {
        let condition = self.condition.as_deref().map(|text| Expression::parse("--where", text)).transpose()?;
        Ok(condition.map(collo_plan::select::Selection::Where))
    }
}

#[derive(Debug, Args)]
pub struct Plan {
    /// An experiment of experiments/, or a path to one
    #[arg(value_name = "NAME", add = complete::experiments())]
    pub name: Option<String>,
    /// Every experiment with this tag; or an expression: `gpu && !slow`
    #[arg(long, value_name = "TAG", conflicts_with = "name", add = complete::tags())]
    pub tag: Option<String>,
    #[command(flatten)]
    pub selection: Selection,
    /// Only this part of the experiment, as in 1/4: what `collo run --shard` would measure
    #[arg(long, value_name = "I/N")]
    pub shard: Option<Shard>,
    /// Plan for this GPU: one of this machine, or a model of `collo list gpus`
    #[arg(long, value_name = "GPU", add = complete::gpu_models())]
    pub gpu: Option<String>,
    /// Use the current MIG configuration; do not change it
    #[arg(long)]
    pub as_found: bool,
    /// List every repetition in the order in which it will run
    #[arg(long)]
    pub order: bool,
    /// List everything that will be executed, in order: partitions, MPS daemons, each member's command and environment
    #[arg(long)]
    pub commands: bool,
    /// Show where each value comes from: a line of a file, an option, or the default
    #[arg(long)]
    pub explain: bool,
    /// Do not predict the memory of the members, and refuse no cell by it
    #[arg(long)]
    pub no_predict: bool,
    /// Predict by starting the workloads' scripts, also in a project in which you ran nothing yet
    #[arg(long, conflicts_with = "no_predict")]
    pub describe: bool,
    /// With --commands, and to predict: use this Python instead of the provided one
    #[arg(long, value_name = "PATH", env = "COLLO_PYTHON")]
    pub python: Option<PathBuf>,
}

fn duration(text: &str) -> Result<Duration, String> {
    collo_text::units::duration(text).ok_or_else(|| "units are ms, s, m, h, as in `8h`".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_page_lists_every_verb_once() {
        let command = Arguments::command();
        command.clone().debug_assert();
        let mut listed: Vec<&str> = GROUPS.iter().flat_map(|(_, verbs)| verbs.iter().copied()).collect();
        let shown = command.get_subcommands().filter(|verb| !verb.is_hide_set());
        let mut verbs: Vec<&str> = shown.map(clap::Command::get_name).collect();
        listed.sort_unstable();
        verbs.sort_unstable();
        assert_eq!(listed, verbs);
        let restore = "\n  restore      Restore a GPU's original MIG and MPS state after a crash\n";
        let all = self::listed(&command, &GROUPS, 200);
        assert!(all.contains(restore) && !page(&command, 200).contains(restore));
        assert!(page(&command, 200).contains("\n  plan         Show the cells of an experiment"));
        let narrow = self::listed(&command, &GROUPS, 80);
        assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
    }
}
