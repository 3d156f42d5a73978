//! A temporary project to measure in: the checkout's workloads and the benchmarks' own, generated experiments, runs that are
//! deleted.
//!
//! Runs take the same path as in `collo run`: an experiment is read, expanded, planned, and its campaign measured.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, ensure};
use collo_measure::campaign::CampaignOptions;
use collo_measure::events::Event;
use collo_measure::observe::View;
use collo_measure::session::{Request, Session};
use collo_plan::cell::Member;
use collo_plan::experiment::Experiment;
use collo_plan::project::Project;
use collo_plan::workload::Workloads;
use collo_prepare::data;
use collo_prepare::interpreters::Interpreters;
use collo_store::{CellRecord, Outcome, StoredRun, monotonic_ns};
use fs_err as fs;
use tempfile::TempDir;

use crate::nap;

pub struct ScratchProject {
    /// Removed on drop.
    folder: TempDir,
    checkout: Project,
    project: Project,
    workloads: Workloads,
    pub interpreters: Interpreters,
}

/// A stored run, and when it began and when its record was on disk.
pub struct Timed {
    pub begun_ns: u64,
    pub recorded_ns: u64,
    pub run: StoredRun,
}

/// Moments between and inside runs at which a benchmark may act.
pub enum Moment<'a> {
    /// A run is about to begin; counted from 0.
    Before(usize),
    Stands(&'a View),
    After(usize),
}

impl ScratchProject {
    /// Beside the checkout's other build results, on the same disk as real runs.
    pub fn new(checkout: &Project) -> Result<ScratchProject> {
        let place = checkout.root().join("target/bench");
        fs::create_dir_all(&place)?;
        let folder = tempfile::Builder::new().prefix("ground-").tempdir_in(place)?;
        let root = folder.path();
        fs::create_dir(root.join("experiments"))?;
        copy(&checkout.workloads(), &root.join("workloads"))?;
        copy(&checkout.root().join("harness/bench/workloads"), &root.join("workloads"))?;
        nap::write_workload(&root.join("workloads"))?;
        copy(&checkout.mig_profiles(), &root.join("mig-profiles"))?;
        // Data sets are large and the same for all.
        fs::create_dir_all(checkout.data())?;
        fs_err::os::unix::fs::symlink(checkout.data(), root.join("data"))?;
        let project = Project::at(root);
        let workloads = Workloads::load(&project.workloads()).map_err(|e| anyhow!("{e}"))?;
        let interpreters = Interpreters::ready(&project)?;
        Ok(ScratchProject { folder, checkout: checkout.clone(), project, workloads, interpreters })
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn checkout(&self) -> &Project {
        &self.checkout
    }

    /// Write an experiment on the CPU; it is read by its name.
    pub fn write_experiment(&self, name: &str, lines: &str) -> Result<PathBuf> {
        let path = self.project.experiments().join(format!("{name}.toml"));
        fs::write(&path, format!("name = \"{name}\"\ndevice = \"cpu\"\ncooldown = \"0s\"\n{lines}\n"))?;
        Ok(path)
    }

    /// Write a workload's data set if it is missing.
    pub fn prepare(&self, workload: &str) -> Result<()> {
        let workload = self.workloads.find(workload).map_err(|e| anyhow!("{e}"))?;
        let member = Member::new(workload, []).map_err(|e| anyhow!("{e}"))?;
        data::prepare(&self.project, &member, &self.interpreters).map_err(|e| anyhow!("{e}"))?;
        Ok(())
    }

    /// Measure the cells of an experiment selected by `keep` (and their baselines), all repetitions, in a new campaign.
    pub fn measure(
        &self,
        experiment: &str,
        keep: impl Fn(&CellRecord) -> bool,
        at: &mut (dyn FnMut(Moment<'_>) -> Result<()> + Send),
    ) -> Result<Vec<Timed>> {
        let experiment = Experiment::resolve(&self.project, experiment, &self.workloads).map_err(|e| anyhow!("{e}"))?;
        let request = Request { choice: CampaignOptions { new: true, ..CampaignOptions::default() }, ..Request::of(experiment) };
        let mut session = Session::plan(&self.project, request).map_err(|e| anyhow!("{e}"))?;
        session.keep(|_, cell| keep(&cell.record));
        session.prepared_with(self.interpreters.clone());
        let plan = session.planned();
        let (name, planned) = (session.experiment().name.clone(), plan.order.len());
        let refused = plan.refusals.first().map(|r| format!(": {}", r.record.reason)).unwrap_or_default();
        ensure!(planned > 0, "no cell of `{name}` can run here{refused}");
        let mut runs: Vec<Timed> = Vec::new();
        let mut begun_ns = 0;
        let mut failed = None;
        let finished = session.measure(&mut |event| {
            let index = runs.len();
            let told = match event {
                Event::Begins { .. } => {
                    let told = at(Moment::Before(index));
                    begun_ns = monotonic_ns();
                    told
                }
                Event::Stands { view, .. } => at(Moment::Stands(&view)),
                Event::Ends { run, .. } => {
                    runs.push(Timed { begun_ns, recorded_ns: monotonic_ns(), run: run.clone() });
                    at(Moment::After(index))
                }
                _ => Ok(()),
            };
            failed = failed.take().or(told.err());
        });
        finished.map_err(|unfinished| unfinished.error)?;
        if let Some(error) = failed {
            return Err(error);
        }
        for Timed { run, .. } in &runs {
            let tail = run.record.members.iter().flat_map(|m| &m.log_tail).last().map(|l| format!(": {l}")).unwrap_or_default();
            ensure!(run.record.outcome == Outcome::Completed, "a run of `{name}` ended as {}{tail}", run.record.outcome.text());
        }
        ensure!(runs.len() == planned, "`{name}` was interrupted");
        Ok(runs)
    }

    /// The command of a workload as a user would type it, at its default settings, followed by `arguments`.
    pub fn by_hand(&self, workload: &str, settings: &[(&str, String)], arguments: &[String]) -> Result<duct::Expression> {
        let workload = self.workloads.find(workload).map_err(|e| anyhow!("{e}"))?;
        let given = settings.iter().map(|(name, value)| (*name, value.parse::<f64>().map_or(value.clone().into(), number)));
        let member = Member::new(workload, given).map_err(|e| anyhow!("{e}"))?;
        let mut words = workload.command_for(&member.spec()).map_err(|e| anyhow!("{e}"))?;
        self.interpreters.put_into(&mut words, workload);
        let (program, rest) = words.split_first().context("a workload has a command")?;
        let command = duct::cmd(program, rest.iter().chain(arguments)).dir(&workload.folder).stdin_null().unchecked();
        // What matters of a member's environment to the time that it takes; nothing that makes it a member.
        let threads = ["COLLO_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"];
        let command = threads.iter().fold(command, |command, name| command.env(name, "1"));
        Ok(command
            .env("COLLO_DATA", self.project.data())
            .env("PYTHONPATH", self.interpreters.search_path(&self.project, workload))
            .env("PYTHONNOUSERSITE", "1")
            .env("CUDA_VISIBLE_DEVICES", ""))
    }
}

/// Whole numbers are written as such, as in an experiment.
fn number(v: f64) -> serde_json::Value {
    if v.fract() == 0.0 { (v as i64).into() } else { v.into() }
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        if name.to_string_lossy().starts_with('.') || name == "__pycache__" {
            continue;
        }
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to.join(&name))?;
        } else {
            fs::copy(entry.path(), to.join(&name))?;
        }
    }
    Ok(())
}
