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

use collo_analysis::cell::{Cell, Member};
use collo_analysis::words;
use collo_device::lease::lock::CardLock;
use collo_device::select_gpu::GpuSelector;
use collo_figures::modes::mode_label;
use collo_plan::experiment::Experiment;
use collo_plan::facts::Gpu;
use collo_plan::project::Project;
use collo_plan::workload::Workloads;
use collo_prepare::python;
use collo_quantity::stats::{Quantity, RatioVerdict};
use collo_quantity::{Key, number};
use collo_store::{DeviceRecord, Outcome, Standing, StoredRun, utc_id};
use collo_text::{Diagnostic, Diagnostics, shown};

use self::files::{Script, scripts};
use super::{ending, steps};
use crate::context::{Context, Ended, end_left_behind};
use crate::stored::report;
use crate::{args, exit, output};

pub fn run(context: &Context<'_>, a: &args::Try) -> Ended {
    let began = Instant::now();
    let scripts = scripts(&a.commands, a.degree)?;
    let folder = std::path::absolute(context.folder()?)?;
    let root = root(&folder, a)?;
    end_left_behind();
    let gpu = gpu(context, a)?;
    let uuid = gpu.as_ref().and_then(|gpu| Some(gpu.at.as_ref()?.uuid.clone()));
    let looks = {
        // So that a first look disturbs no measurement.
        let _lock = gpu.as_ref().zip(uuid.as_ref()).map(|(gpu, uuid)| CardLock::take(uuid, &gpu.label())).transpose()?;
        let at_most = budget::first_look(a.time_limit, scripts.len());
        let mut looks = Vec::new();
        for script in &scripts {
            output::note(format!("{}: looking for its progress, for at most {} s", script.named(), at_most.as_secs()));
            let found = look::at(script, &folder, uuid.as_deref(), at_most, budget::going_on(a.time_limit))?;
            output::note(format!("{}: {}", script.named(), found.found()));
            looks.push(found);
        }
        looks
    };
    let left = a.time_limit.saturating_sub(began.elapsed());
    let plan = budget::plan(&looks, &scripts, if gpu.is_some() { 2 } else { 1 }, left);
    files::write(&root, &folder, &scripts, &looks, &plan, gpu.is_some())?;
    output::work_in(&root);
    let project = Project::at(&root);
    let experiment = Experiment::resolve(&project, files::NAME, &Workloads::load(&project.workloads())?)?;
    let measure = args::Measure {
        gpu: uuid,
        // Nothing that needs rights is changed.
        as_found: true,
        exclusive: false,
        foreign: None,
        wait: None,
        services: args::Services::Leave,
        keep_going: true,
        no_predict: true,
        python: None,
        time_limit: Some(left),
        resume_with: None,
    };
    let resume = ending::resume("run", files::NAME, &experiment, None, None, &measure);
    let inside = context.inside(root.clone());
    let session = steps::planned(&project, steps::request(experiment, None, &measure), false)?;
    let finished = steps::measured(&inside, session, &resume)?;
    let (runs, _) = finished.campaign.runs()?;
    let stopped = || ending::stopped(&finished, &resume);
    if runs.is_empty() {
        return Ok(stopped().unwrap_or(exit::INCOMPLETE));
    }
    let (made, written) = report::of_new_runs(&finished.campaign, &project.reports(), runs.len())?;
    if !context.arguments.json {
        let together = made.analysis.cells.iter().filter(|cell| !cell.is_solo());
        let failed = |cell: &Cell| {
            let of = |run: &&StoredRun| run.record.cell.cell == cell.record.cell && run.record.outcome != Outcome::Completed;
            runs.values().find(of).map(|run| words::outcome_in_full(&run.record.outcome))
        };
        together.for_each(|cell| {
            output::line(sentence(cell, &scripts, failed(cell)));
            competition(cell, &made.analysis.cells, &made.analysis.campaign.device).into_iter().for_each(output::line);
        });
        output::line("");
    }
    report::answer(context, &made).print(context);
    output::note(format!("report: {}", shown(&written.html)));
    let code = stopped();
    output::note(format!("next:   {resume} --more 3"));
    if a.save.is_none() {
        output::note(format!("this project stays in {} until you delete it", shown(&root)));
    }
    let has_failed = runs.values().any(|run| run.record.standing() == Standing::Failed);
    Ok(code.unwrap_or(if has_failed { exit::FAILED } else { exit::DONE }))
}

/// The GPU to measure on, if there is one and it is not declined.
fn gpu(context: &Context<'_>, a: &args::Try) -> Result<Option<Gpu>, Diagnostics> {
    if a.gpu.as_deref() == Some("cpu") || a.gpu.is_none() && !collo_device::has_gpu() {
        return Ok(None);
    }
    let driver = crate::context::gpus::driver(context, "try --gpu").map_err(|e| e.hint("`--gpu cpu` measures without a GPU"))?;
    let chosen = GpuSelector::parse(a.gpu.as_deref().unwrap_or("auto")).of(&driver)?;
    match <[Gpu; 1]>::try_from(chosen) {
        Ok([gpu]) => Ok(Some(gpu)),
        Err(_) => Err(Diagnostic::new("`collo try` measures on one GPU").hint("name one with `--gpu`").into()),
    }
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
    // In a folder of another project, such as its `experiments`, this one's files would be taken for that one's.
    if save.exists() && !save.read_dir().is_ok_and(|mut entries| entries.next().is_none()) {
        let what = format!("{} is there already, and is not an empty folder", shown(&save));
        return Err(Diagnostic::new(what).hint("name a new folder with `--save`").into());
    }
    Ok(save)
}

/// More than this part of its cores is more than a CPU has: readings have a tolerance.
const MOST_USED: f64 = 1.1;

/// Why the members of a group may be slow beside each other on a CPU.
fn competition(group: &Cell, cells: &[Cell], device: &DeviceRecord) -> Option<String> {
    let cores = device.cores_at_a_time().filter(|_| device.kind == "cpu")?;
    let alone = |member: &Member| {
        let solo = cells.iter().find(|cell| cell.is_solo() && cell.members[0].spec.workload == member.spec.workload)?;
        Some(solo.get(Key::Cpu)?.estimate)
    };
    let used = group.members.iter().map(alone).sum::<Option<f64>>()?;
    competing_threads(group.get(Key::ThroughputGain)?.estimate, used, cores, group.members.len())
}

/// That so many members compete for cores, where they do less work per second than in turn, and alone use more cores in all than there are.
fn competing_threads(gain: f64, used: f64, cores: f64, members: usize) -> Option<String> {
    let threads = (cores / members as f64).max(1.0) as u32;
    (gain < 1.0 && used > MOST_USED * cores).then(|| {
        format!(
            "alone they use {used:.1} cores in all, and there are {cores}, for which they compete; `OMP_NUM_THREADS={threads} collo try …` \
             limits the threads of PyTorch to {threads} each"
        )
    })
}

/// What came of a group, in one sentence; `failed` is the outcome of a run of it that is not complete.
fn sentence(cell: &Cell, scripts: &[Script], failed: Option<String>) -> String {
    let (mode, outcome) = (mode_label(&cell.record.sharing), failed.unwrap_or_else(|| words::outcome(cell.outcome())));
    let slower = |q: &Quantity| format!("{}×", number::with_interval(q));
    let slowdowns: Vec<String> = match scripts {
        [one] => {
            cell.get(Key::Slowdown).map(|q| format!("each copy of `{}` takes {}", one.text, slower(q))).into_iter().collect()
        }
        _ => {
            let of = |script: &Script| {
                let member = cell.members.iter().find(|m| m.spec.workload == script.name)?;
                Some(format!("`{}` takes {}", script.text, slower(member.get(Key::Slowdown)?)))
            };
            scripts.iter().filter_map(of).collect()
        }
    };
    let is_completed = cell.outcome() == Outcome::Completed.as_str();
    let (Some(gain), false) = (cell.get(Key::ThroughputGain), slowdowns.is_empty()) else {
        return match is_completed {
            true => format!("under {mode} sharing the slowdown is not known; the report has the reason"),
            false => format!("under {mode} sharing they have no result together: {outcome}"),
        };
    };
    let advice = match cell.gain_verdict.as_ref().map(|test| &test.verdict) {
        _ if !is_completed => format!("no advice, since some runs are missing or failed ({outcome})"),
        _ if !cell.is_valid() => format!("no advice: {}", cell.validity.reasons.join("; ")),
        Some(RatioVerdict::Better) => "run them together".into(),
        Some(RatioVerdict::Worse) => "run them in turn".into(),
        Some(RatioVerdict::Same) => "it makes no difference whether they run together or in turn".into(),
        Some(RatioVerdict::CannotTell { .. }) | None => "too few repetitions to decide".into(),
    };
    format!(
        "under {mode} sharing {} as long as alone; together they do {}× the work per second of running in turn: {advice}",
        slowdowns.join(", "),
        number::with_interval(gain)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_that_use_more_cores_than_there_are_and_do_less_than_in_turn_compete() {
        let two = competing_threads(0.33, 3.9, 2.0, 2).expect("they compete");
        assert_eq!(
            two,
            "alone they use 3.9 cores in all, and there are 2, for which they compete; `OMP_NUM_THREADS=1 collo try …` limits the threads \
             of PyTorch to 1 each"
        );
        assert!(competing_threads(0.9, 24.0, 16.0, 3).is_some_and(|text| text.contains("OMP_NUM_THREADS=5 ")));
        assert_eq!(competing_threads(1.9, 3.9, 2.0, 2), None, "they gain from sharing all the same");
        assert_eq!(competing_threads(0.9, 2.1, 2.0, 2), None, "cores are not what they lack");
    }
}
