//! The messages of an incomplete measurement: what is stored, and the command that resumes it.

use collo_measure::campaign::{CampaignEnd, Finished};
use collo_measure::observe::ObserveError;
use collo_measure::{RunError, Selection, Unfinished, shown};

use collo_store::{Diagnostic, ExitClass};

use crate::args::{self, Foreign, Services};
use crate::exit;
use crate::output;
use crate::progress::words;

/// The full command that resumes this.
pub fn resume(verb: &str, experiment: &str, selection: Option<&Selection>, a: &args::Measure) -> String {
    let condition = selection.map(|s| format!(" --where '{}'", s.text())).unwrap_or_default();
    let python = a.python.as_ref().map(|p| format!(" --python {}", p.display())).unwrap_or_default();
    let gpu = a.gpu.as_ref().map(|gpu| format!(" --gpu {gpu}")).unwrap_or_default();
    let found = if a.as_found { " --as-found" } else { "" };
    let exclusive = if a.exclusive { " --exclusive" } else { "" };
    let foreign = if a.foreign == Foreign::Allow { " --foreign allow" } else { "" };
    let services = if a.services == Services::Stop { " --services stop" } else { "" };
    format!("collo {verb} {experiment}{condition}{python}{gpu}{found}{exclusive}{foreign}{services}")
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
    matches!(e, RunError::Store(e) | RunError::Observe(ObserveError::Store(e)) if e.is_full_disk())
}

/// If a campaign stopped before its last run, report it; returns the exit code.
pub fn stopped(finished: &Finished, resume: &str) -> Option<u8> {
    let total = finished.campaign.manifest().plan.order.len();
    let stored = format!("{} of {total} runs stored", finished.stored);
    output::note(match finished.end {
        CampaignEnd::Complete => return None,
        CampaignEnd::Interrupted { killed: true } => format!("killed: {stored}, this one is dropped; no process is left"),
        CampaignEnd::TimeOver => format!("time limit reached: {stored}"),
        CampaignEnd::DeviceLost => format!("the GPU was lost: {stored}; no process is left"),
        CampaignEnd::Interrupted { killed: false } | CampaignEnd::Terminated => {
            let after = finished.stopping.map(|d| format!(" after {:.1} s", d.as_secs_f64())).unwrap_or_default();
            format!("stopped{after}: {stored}, the current run is recorded as interrupted; no process is left")
        }
    });
    output::note(format!("resume: {resume}          {}", words::runs(total - finished.stored)));
    Some(if matches!(finished.end, CampaignEnd::Interrupted { .. }) { exit::INTERRUPTED } else { exit::INCOMPLETE })
}
