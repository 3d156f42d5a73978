//! `collo try`: measures commands alone and together, without a project and without a file.
//!
//! In: commands as they are typed. Out: a project that measures them ([`files`]), in which an experiment is run and reported as any other.
//! Each command is started once before that, and its output is searched until its lines of progress are found ([`look`]); how long is
//! measured follows from their times and from the time that may be spent ([`budget`]).

mod budget;
mod files;
mod look;

use std::path::{Path, PathBuf};
use std::time::Instant;

use collo_analysis::cell::Cell;
use collo_device::lease::lock::CardLock;
use collo_plan::experiment::Experiment;
use collo_plan::project::Project;
use collo_plan::workload::Workloads;
use collo_prepare::python;
use collo_quantity::stats::RatioVerdict;
use collo_quantity::{Key, number};
use collo_report::Report;
use collo_store::{Outcome, utc_id};
use collo_text::{Diagnostic, Diagnostics, shown};

use self::files::{Script, scripts};
use super::{ending, steps};
use crate::args;
use crate::context::{Context, Ended, end_left_behind};
use crate::exit;
use crate::stored::report;
use crate::{output, shell};

pub fn run(context: &Context<'_>, a: &args::Try) -> Ended {
    let began = Instant::now();
    let scripts = scripts(&a.commands, a.degree)?;
    let folder = std::path::absolute(context.folder()?)?;
    let root = root(&folder, a)?;
    end_left_behind();
    files::write_commands(&root, &folder, &scripts)?;
    let on_gpu = a.gpu.as_deref() != Some("cpu") && collo_device::has_gpu();
    let looks = {
        let _locks = locks(context, on_gpu)?;
        let each = budget::first_look(a.time_limit, scripts.len());
        let mut looks = Vec::new();
        for script in &scripts {
            output::note(format!("{}: looking for its progress, for at most {} s", script.named(), each.as_secs()));
            let found = look::at(script, &files::workload_folder(&root, script), on_gpu, each)?;
            let line = found.progress.lines.last().cloned().unwrap_or_default();
            output::note(format!("{}: a line such as `{}` ends {}", script.named(), line.trim(), found.unit()));
            looks.push(found);
        }
        looks
    };
    let left = a.time_limit.saturating_sub(began.elapsed());
    let plan = budget::plan(&looks, &scripts, if on_gpu { 2 } else { 1 }, left);
    files::write_experiment(&root, &scripts, &looks, &plan, on_gpu)?;
    let project = Project::at(&root);
    let experiment = Experiment::resolve(&project, files::NAME, &Workloads::load(&project.workloads())?)?;
    let measure = args::Measure {
        gpu: a.gpu.clone().filter(|gpu| gpu != "cpu"),
        // Nothing that needs rights is changed.
        as_found: true,
        exclusive: false,
        foreign: None,
        services: args::Services::Leave,
        keep_going: true,
        no_predict: true,
        python: None,
        time_limit: Some(left),
        resume_with: None,
    };
    let place = shell::quoted(&root);
    let resume = format!("collo -C {place} run {}", files::NAME);
    let inside = context.inside(root.clone());
    let session = steps::planned(&project, steps::request(experiment, None, &measure), false)?;
    let finished = steps::measured(&inside, session, &resume)?;
    let (runs, _) = finished.campaign.runs()?;
    if runs.is_empty() {
        return Ok(ending::stopped(&finished, &resume).unwrap_or(exit::INCOMPLETE));
    }
    let (made, written) = report::of_new_runs(&finished.campaign, &project.reports(), runs.len())?;
    if !context.arguments.json {
        let together = made.analysis.cells.iter().filter(|cell| !cell.is_solo());
        together.for_each(|cell| output::line(sentence(cell, &scripts)));
        output::line("");
    }
    report::answer(context, &made).print(context);
    output::note(format!("report: {}", shown(&written.html)));
    let stopped = ending::stopped(&finished, &resume);
    if a.save.is_some() {
        output::note(format!("next:   {resume} --more 3"));
    }
    Ok(stopped.unwrap_or_else(|| ended(&made)))
}

/// The code of a report: members that failed are no result.
fn ended(made: &Report) -> u8 {
    let completed = Outcome::Completed.as_str();
    let is_result = |cell: &Cell| cell.outcome() == completed || cell.outcome() == "out_of_memory";
    if made.analysis.cells.iter().all(is_result) { exit::DONE } else { exit::FAILED }
}

/// The folder to write to: the one that is asked for, which must have no other project, or a new one in the cache.
fn root(folder: &Path, a: &args::Try) -> Result<PathBuf, Diagnostics> {
    let Some(save) = &a.save else {
        let cache = python::cache_folder()?;
        python::make_cache(&cache)?;
        let place = format!("{}-{}", utc_id(std::time::SystemTime::now()), std::process::id());
        return Ok(cache.join("try").join(place));
    };
    let save = folder.join(save);
    if save.join("experiments").exists() || save.join("workloads").exists() {
        let what = format!("{} is a project already, and nothing in it is replaced", shown(&save));
        return Err(Diagnostic::new(what).hint("name a new folder with `--save`").into());
    }
    Ok(save)
}

/// Locks of all GPUs, so that a first look disturbs no measurement.
fn locks(context: &Context<'_>, on_gpu: bool) -> Result<Vec<CardLock>, Diagnostics> {
    if !on_gpu {
        return Ok(Vec::new());
    }
    let driver = crate::context::gpus::driver(context, "try")?;
    let addressed = driver.gpus.iter().filter_map(|gpu| Some((gpu, gpu.at.as_ref()?)));
    Ok(addressed.map(|(gpu, at)| CardLock::take(&at.uuid, &gpu.label())).collect::<Result<_, Diagnostic>>()?)
}

/// What came of a group, in one sentence.
fn sentence(cell: &Cell, scripts: &[Script]) -> String {
    let mode = &cell.record.sharing;
    let completed = Outcome::Completed.as_str();
    if cell.outcome() != completed && cell.get(Key::ThroughputGain).is_none() {
        let why = match cell.outcome() {
            "missing" => "the time was over".to_string(),
            outcome => outcome.replace('_', " "),
        };
        return format!("under {mode} sharing they did not run together: {why}");
    }
    let slower = |key: Option<&collo_quantity::stats::Quantity>| key.map(|q| format!("{}×", number::with_interval(q)));
    let slowdowns: Vec<String> = match scripts {
        [one] => slower(cell.get(Key::Slowdown)).map(|times| format!("each `{}` takes {times}", one.text)).into_iter().collect(),
        _ => {
            let of = |script: &Script| {
                let member = cell.members.iter().find(|m| m.spec.workload == script.name)?;
                Some(format!("`{}` takes {}", script.text, slower(member.get(Key::Slowdown))?))
            };
            scripts.iter().filter_map(of).collect()
        }
    };
    let gain = cell.get(Key::ThroughputGain);
    let (Some(gain), false) = (gain, slowdowns.is_empty()) else {
        return format!("under {mode} sharing no slowdown is known: the report says why");
    };
    let verdict = match cell.gain_verdict.as_ref().map(|test| &test.verdict) {
        Some(RatioVerdict::Better) => "run them together",
        Some(RatioVerdict::Worse) => "run them in turn",
        Some(RatioVerdict::Same) => "it makes no difference whether they run together or in turn",
        Some(RatioVerdict::CannotTell { .. }) | None => "too few repetitions to decide",
    };
    format!(
        "{mode} sharing: {} as long as alone; together they do {}× the work per second of running in turn: {verdict}",
        slowdowns.join(", "),
        number::with_interval(gain)
    )
}
