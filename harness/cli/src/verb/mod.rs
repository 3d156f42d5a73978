//! One file per verb.

pub mod bundle;
pub mod cards;
pub mod ci;
pub mod comment;
pub mod compare;
pub mod completions;
pub mod data;
pub mod doctor;
mod ending;
pub mod import;
pub mod init;
pub mod list;
pub mod man;
mod measuring;
pub mod merge;
pub mod mig;
pub mod nightly;
pub mod plan;
pub mod predict;
pub mod predictor;
pub mod prune;
pub mod report;
pub mod restore;
pub mod run;
pub mod schema;
pub mod show;
pub mod slurm;
pub mod status;
pub mod trace;
mod trial;
mod until;
pub mod verify;
pub mod whatif;
pub mod workload;

use collo_device::gpu;
use std::path::PathBuf;

use collo_device::trust;
use collo_gpus::mig::Cards;
use collo_launch::mark;
use collo_plan::experiment::Experiment;
use collo_plan::experiment::{Overrides, TagFilter, tags_of};
use collo_plan::facts::Driver;
use collo_plan::project::Project;
use collo_plan::workload::Workloads;
use collo_store::{CampaignFolder, Runs};
use collo_text::shown;
use collo_text::{Diagnostic, Diagnostics, ExitClass, Source};

use crate::args::Arguments;
use crate::{exit, output};

/// The result of a verb: its exit code.
pub type Ended = Result<u8, Diagnostics>;

/// What every verb may need.
pub struct Context<'a> {
    pub arguments: &'a Arguments,
    /// The folder of an unpacked bundle, in place of the one that was given.
    unpacked: Option<PathBuf>,
}

impl<'a> Context<'a> {
    pub fn of(arguments: &'a Arguments) -> Context<'a> {
        Context { arguments, unpacked: None }
    }

    /// The same in another folder.
    pub fn inside(&self, folder: PathBuf) -> Context<'a> {
        Context { arguments: self.arguments, unpacked: Some(folder) }
    }

    /// The stored campaign that a text names, or that of a bundle, which is there as long as the second is.
    pub fn campaign(&self, asked: &str) -> Result<(CampaignFolder, Option<tempfile::TempDir>), Diagnostics> {
        let path = self.folder()?.join(asked);
        if bundle::is_bundle(&path) && path.is_file() {
            let (campaign, scratch) = bundle::read(&path)?;
            return Ok((campaign, Some(scratch)));
        }
        Ok((self.runs()?.find(asked)?, None))
    }

    /// The folder that collo works in.
    pub fn folder(&self) -> Result<PathBuf, Diagnostic> {
        match self.unpacked.as_ref().or(self.arguments.folder.as_ref()) {
            Some(folder) if !folder.is_dir() => {
                let what = if folder.exists() { "is not a folder" } else { "does not exist" };
                Err(Diagnostic::new(format!("`-C {}`: it {what}", folder.display())))
            }
            Some(folder) => Ok(folder.clone()),
            None => std::env::current_dir().map_err(|e| {
                Diagnostic::new("the folder in which collo was started no longer exists")
                    .of_machine()
                    .caused_by(e)
                    .hint("`cd` to an existing one, or name it with `-C DIR`")
            }),
        }
    }

    /// The project that contains the folder.
    pub fn project(&self) -> Result<Project, Diagnostic> {
        Project::find(&self.folder()?)
    }

    /// The stored campaigns; a folder of results alone, without a project around it, is enough.
    pub fn runs(&self) -> Result<Runs, Diagnostic> {
        let folder = self.folder()?;
        Ok(Runs::at(Project::find(&folder).map_or_else(|_| folder.join("runs"), |p| p.runs())))
    }
}

/// An experiment as the command line takes it: the name of its file, whatever name the file contains, or its path.
pub fn as_named(project: &Project, experiment: &Experiment) -> String {
    let stem = experiment.path.file_stem().and_then(|stem| stem.to_str());
    let is_of_project = |stem: &&str| project.experiments().join(format!("{stem}.toml")) == experiment.path;
    stem.filter(is_of_project).map_or_else(|| shown(&experiment.path), String::from)
}

/// Something by its name, or why it cannot be had.
pub type Named<T> = (String, Result<T, Diagnostics>);

/// Do something with each of several experiments; one that is wrong, or cannot be done here, stops none but itself, and the worst code
/// is the verb's.
pub fn each<T>(all: Vec<Named<T>>, mut once: impl FnMut(T) -> Ended) -> Ended {
    let several = all.len() > 1;
    let mut worst = exit::DONE;
    for (name, one) in all {
        match one.and_then(&mut once) {
            Ok(code) if matches!(code, exit::INTERRUPTED | exit::INCOMPLETE) => return Ok(code),
            Ok(code) => worst = worst.max(code),
            Err(wrong) if several && matches!(wrong.class(), ExitClass::Usage | ExitClass::Machine) => {
                output::failure(&wrong);
                output::warning(format!("`{name}` is left out"));
                worst = worst.max(wrong.class().code());
            }
            Err(wrong) => return Err(wrong),
        }
    }
    Ok(worst)
}

/// End processes left behind by collos that were killed together with their supervisors, before they disturb anything, and report
/// them.
pub fn end_left_behind() {
    let left = mark::end_left_behind();
    let named: Vec<String> = left.iter().take(5).map(|l| format!("{} `{}`", l.pid, l.name)).collect();
    let more = if left.len() > named.len() { " …" } else { "" };
    match left.len() {
        0 => {}
        1 => output::warning(format!("ended a process left behind by a killed collo: {}", named.join(", "))),
        n => output::warning(format!("ended {n} processes left behind by a killed collo: {}{more}", named.join(", "))),
    }
}

/// The GPU models for a verb that changes a machine: for root, those of the project only if nobody else could have written them.
/// `sudo collo mig apply NAME` runs in the caller's folder, which must not redefine a name.
fn believed_cards(context: &Context<'_>) -> Cards {
    let Ok(project) = context.project() else { return carried_cards() };
    let folder = project.mig_profiles();
    match nix::unistd::geteuid().is_root().then(|| trust::files(&folder, "toml")) {
        None | Some(Ok(())) => project.cards(),
        Some(Err(why)) => {
            output::note(format!("{} is not used by root: {why}; the built-in layouts are", folder.display()));
            carried_cards()
        }
    }
}

/// The GPU models embedded in this binary, as `collo init` writes them.
fn carried_cards() -> Cards {
    let named = init::CARRIED.iter().filter_map(|(name, content)| {
        let card = name.strip_prefix("mig-profiles/")?.strip_suffix(".toml")?;
        Some((card.to_string(), Source::file(*name, std::str::from_utf8(content).ok()?)))
    });
    Cards::of(named)
}

/// The driver of this machine with its GPUs, for a verb that needs them; works outside a project.
pub fn driver(context: &Context<'_>, verb: &str) -> Result<Driver, Diagnostic> {
    gpu::ask(&believed_cards(context)).map_err(|e| {
        Diagnostic::new(format!("`collo {verb}` needs an NVIDIA GPU: {e}"))
            .of_machine()
            .hint(e.hint().unwrap_or("check this machine: `collo doctor`"))
    })
}

/// The experiments that a name or a tag stands for, sorted by name; with those whose file has errors and, as far as it can be read, the tag.
pub fn experiments(
    project: &Project,
    workloads: &Workloads,
    name: Option<&str>,
    tag: Option<&str>,
    overrides: &Overrides,
) -> Result<Vec<Named<Experiment>>, Diagnostics> {
    if let Some(name) = name {
        return Ok(vec![(name.to_string(), Ok(Experiment::resolve_with(project, name, workloads, overrides)?))]);
    }
    let Some(tag) = tag else {
        let all = collo_plan::experiment::all(project, workloads, overrides)?;
        let mut names: Vec<String> = all.iter().filter_map(|(path, _)| Some(path.file_stem()?.to_str()?.to_string())).collect();
        names.sort();
        let known =
            if names.is_empty() { "experiments/ has none".into() } else { format!("experiments are {}", names.join(", ")) };
        let wrong = Diagnostic::new("no experiment is named").caused_by(known);
        return Err(wrong
            .hint("name one, or several by a tag: `--tag TAG`; what each measures: `collo list experiments`")
            .into());
    };
    let filter = TagFilter::parse(tag)?;
    let mut found = Vec::new();
    for (path, experiment) in collo_plan::experiment::all(project, workloads, overrides)? {
        match experiment {
            Ok(experiment) if filter.selects(&experiment.tags) => found.push((experiment.name.clone(), Ok(experiment))),
            Err(wrong) if tags_of(&path).is_none_or(|tags| filter.selects(&tags)) => found.push((shown(&path), Err(wrong))),
            Ok(_) | Err(_) => {}
        }
    }
    if found.is_empty() {
        let all = "tags are in `collo list experiments`";
        return Err(Diagnostic::new(format!("no experiment has the tag `{tag}`")).hint(all).into());
    }
    Ok(found)
}
