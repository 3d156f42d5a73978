//! The messages of an incomplete measurement: what is stored, and the command that resumes it.

use std::collections::BTreeSet;

use collo_measure::campaign::{CampaignEnd, Finished};
use collo_measure::error::RunError;
use collo_measure::session::Unfinished;
use collo_plan::experiment::Experiment;
use collo_plan::select::Selection;
use collo_quantity::number;
use collo_text::{Diagnostic, ExitClass, shown};

use collo_store::{Outcome, Shard, StoredRun};

use crate::args::{self, Foreign, Services};
use crate::shell::quoted;
use crate::{exit, output};

/// The full command that resumes this.
pub fn resume(
    verb: &str,
    name: &str,
    experiment: &Experiment,
    selection: Option<&Selection>,
    shard: Option<Shard>,
    a: &args::Measure,
) -> String {
    if let Some(command) = &a.resume_with {
        return command.clone();
    }
    let set = set(experiment);
    let shard = shard.map(|s| format!(" --shard {s}")).unwrap_or_default();
    let condition = selection.map(|s| format!(" --where {}", quoted(s.text()))).unwrap_or_default();
    // What the environment says is said there the next time, too.
    let typed = |python: &&std::path::PathBuf| std::env::var_os("COLLO_PYTHON").is_none_or(|set| set != python.as_os_str());
    let python = a.python.as_ref().filter(typed).map(|p| format!(" --python {}", quoted(p))).unwrap_or_default();
    let gpu = a.gpu.as_ref().map(|gpu| format!(" --gpu {}", quoted(gpu))).unwrap_or_default();
    let found = if a.as_found { " --as-found" } else { "" };
    let exclusive = if a.exclusive { " --exclusive" } else { "" };
    let foreign = match a.foreign {
        Some(Foreign::Allow) => " --foreign allow",
        Some(Foreign::Refuse) => " --foreign refuse",
        None => "",
    };
    let services = if a.services == Services::Stop { " --services stop" } else { "" };
    let keep_going = if a.keep_going { " --keep-going" } else { "" };
    format!("collo {verb} {name}{shard}{condition}{set}{python}{gpu}{found}{exclusive}{foreign}{services}{keep_going}")
}

/// The options that set keys of an experiment, as they are typed.
pub fn set(experiment: &Experiment) -> String {
    experiment.layers.set().iter().map(|text| format!(" --set {}", quoted(text))).collect()
}

/// An error during a campaign leaves it resumable, and what is stored is safe.
pub fn failure(Unfinished { error, campaign }: Unfinished, resume: &str) -> Diagnostic {
    let Some(campaign) = campaign else { return error.into() };
    let folder = shown(campaign.path());
    let safe = match campaign.progress() {
        Ok(progress) => format!("{} of {} runs are safe", progress.stored, campaign.manifest().plan.order.len()),
        Err(_) => "what is stored is safe".into(),
    };
    let what = if no_room(&error) { format!("no space in {folder}; {safe}") } else { format!("cannot continue; {safe}") };
    Diagnostic::from(error).under(what).of(ExitClass::Incomplete).resume(resume)
}

fn no_room(e: &RunError) -> bool {
    matches!(e, RunError::Store(e) if e.is_full_disk())
}

/// Which card was lost: `GPU 1 was`.
fn lost(finished: &Finished) -> String {
    let m = finished.campaign.manifest();
    let stored = finished.campaign.runs().map(|(runs, _)| runs).unwrap_or_default();
    let is_lost = |folder: &String| stored.get(folder).is_some_and(|r| matches!(r.record.outcome, Outcome::DeviceLost { .. }));
    let on_lost = m.plan.order.iter().filter(|planned| is_lost(&m.plan.folder(planned))).filter_map(|planned| planned.card);
    let cards: BTreeSet<u32> = on_lost.filter_map(|card| Some(m.machine.gpus.get(card as usize)?.index)).collect();
    match cards.iter().map(|index| format!("GPU {index}")).collect::<Vec<_>>().as_slice() {
        [] => "the GPU was".into(),
        [one] => format!("{one} was"),
        several => format!("{} were", several.join(", ")),
    }
}

/// Whether a run is stored as interrupted: between two runs there is none.
fn was_interrupted(finished: &Finished) -> bool {
    let is_interrupted = |run: &StoredRun| run.record.outcome == Outcome::Interrupted;
    finished.campaign.runs().is_ok_and(|(runs, _)| runs.values().any(is_interrupted))
}

/// If a campaign stopped before its last run, report it; returns the exit code.
pub fn stopped(finished: &Finished, resume: &str) -> Option<u8> {
    let total = finished.campaign.manifest().plan.order.len();
    let stored = format!("{} of {total} runs stored", finished.stored);
    output::note(match &finished.end {
        CampaignEnd::Complete => return None,
        // With the last run there is nothing left to resume.
        CampaignEnd::TooManyFailures { .. } if finished.stored >= total => return None,
        CampaignEnd::Interrupted { killed: true } => format!("killed: {stored}, this one is dropped; no process is left"),
        CampaignEnd::TimeOver => format!("time limit reached: {stored}"),
        CampaignEnd::TooManyFailures { failures, cause: Some(_) } => {
            format!("stopped, since the first {failures} runs failed alike before they trained: {stored}")
        }
        CampaignEnd::TooManyFailures { failures: 1, .. } => format!("stopped after 1 failed run: {stored}"),
        CampaignEnd::TooManyFailures { failures, .. } => format!("stopped after {failures} failed runs: {stored}"),
        CampaignEnd::DeviceLost => format!("{} lost: {stored}; no process is left", lost(finished)),
        CampaignEnd::Interrupted { killed: false } | CampaignEnd::Terminated => {
            let after = finished.stopping.map(|d| format!(" after {:.1} s", d.as_secs_f64())).unwrap_or_default();
            let current = if was_interrupted(finished) { ", the current run is recorded as interrupted" } else { "" };
            format!("stopped{after}: {stored}{current}; no process is left")
        }
    });
    if let CampaignEnd::TooManyFailures { cause: Some(cause), .. } = &finished.end {
        output::note(format!("cause:  {}", cause.lines().next().unwrap_or_default()));
        let id = finished.campaign.manifest().short_id();
        let again = format!("`collo run {id} --only failed` measures what failed again");
        output::hint(format!("once it is removed, resume, and {again}; `--keep-going` measures the others in spite of it"));
    }
    // A signal has no reason with it; Slurm sends SIGTERM at the time that `--signal` of the job's script gives.
    if matches!(finished.end, CampaignEnd::Terminated) && std::env::var_os("SLURM_JOB_ID").is_some() {
        output::hint(
            "Slurm sends this signal before the time limit of a job, and at `scancel`: a longer `--time` leaves more of it to measure",
        );
    }
    // A run that lost its device is stored as one that did.
    output::note(match total - finished.stored {
        0 => format!("again:  collo run {} --only failed", finished.campaign.manifest().short_id()),
        left => format!("resume: {resume}          {}", number::runs(left)),
    });
    Some(match finished.end {
        CampaignEnd::Interrupted { .. } => exit::INTERRUPTED,
        CampaignEnd::TooManyFailures { .. } => exit::FAILED,
        _ => exit::INCOMPLETE,
    })
}
