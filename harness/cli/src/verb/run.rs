//! `collo run`: measure an experiment, or finish an unfinished campaign.

use collo_measure::campaign::{self, CampaignOptions, Finished, Only};
use collo_measure::{Experiment, Project, Request, Session, Workloads, shown};
use collo_store::{CampaignFolder, Diagnostics};
use serde_json::json;

use super::{Context, Ended, Named, ending, measuring};
use crate::args::{self, Only as OnlyArgument};
use crate::exit;
use crate::{output, progress};

pub fn run(context: &Context<'_>, a: &args::Run) -> Ended {
    let project = context.project()?;
    let workloads = Workloads::load(&project.workloads())?;
    super::end_left_behind();
    let requests = requests(context, a, &project, &workloads)?;
    super::each(requests, |request| one(context, a, &project, request))
}

/// Experiments by name, path or tag; or the experiment of a campaign to finish.
fn requests(
    context: &Context<'_>,
    a: &args::Run,
    project: &Project,
    workloads: &Workloads,
) -> Result<Vec<Named<Request>>, Diagnostics> {
    let no_experiment = match super::experiments(project, workloads, a.name.as_deref(), a.tag.as_deref()) {
        Ok(found) => {
            let asked = |(name, experiment): Named<Experiment>| (name, experiment.and_then(|e| request(a, e, None)));
            return Ok(found.into_iter().map(asked).collect());
        }
        Err(failure) => failure,
    };
    // Perhaps it is a campaign. If it is neither, what was said about the experiment tells more.
    let is_name = a.name.as_deref().is_some_and(|n| !project.experiments().join(format!("{n}.toml")).exists());
    let campaign = a.name.as_deref().filter(|_| is_name).map(|n| context.runs()?.find(n).map_err(Diagnostics::from));
    match campaign {
        Some(Ok(campaign)) => {
            let experiment = Experiment::resolve(project, &campaign.manifest().experiment, workloads)?;
            Ok(vec![(experiment.name.clone(), request(a, experiment, Some(campaign)))])
        }
        _ => Err(no_experiment),
    }
}

fn request(a: &args::Run, experiment: Experiment, campaign: Option<CampaignFolder>) -> Result<Request, Diagnostics> {
    let selection = match (a.selection.parse()?, &campaign) {
        // The selection is part of what the campaign is.
        (None, Some(campaign)) => campaign::selection(campaign.manifest())?,
        (selection, _) => selection,
    };
    let only = match a.only {
        Some(OnlyArgument::Failed) => Only::Failed,
        Some(OnlyArgument::Missing) | None => Only::Missing,
    };
    let request = measuring::request(experiment, selection, &a.measure);
    let choice = CampaignOptions { new: a.new, campaign, force: a.force, only, more: a.more, ..request.choice };
    Ok(Request { choice, ..request })
}

fn one(context: &Context<'_>, a: &args::Run, project: &Project, request: Request) -> Ended {
    let resume = ending::resume("run", &request.experiment.name, request.selection.as_ref(), &a.measure);
    let session = measuring::planned(project, request, a.prepare)?;
    if a.prepare {
        return prepare(context, session, &resume);
    }
    let finished = measuring::measured(context, session, &resume)?;
    // Repetitions that were added belong to that campaign, whatever selected them.
    let resume = a.more.map_or(resume, |_| format!("collo run {}", finished.campaign.manifest().short_id()));
    match ending::stopped(&finished, &resume) {
        Some(code) => Ok(code),
        None => conclude(context, a, project, &finished, &resume),
    }
}

/// Only Python and data.
fn prepare(context: &Context<'_>, mut session: Session, next: &str) -> Ended {
    let mut display = progress::display(context.arguments.quiet);
    let prepared = session.prepare(&mut |event| display.show(event));
    display.end();
    prepared?;
    output::note("Python and data are ready");
    output::note(format!("next: {next}"));
    Ok(exit::DONE)
}

fn conclude(context: &Context<'_>, a: &args::Run, project: &Project, finished: &Finished, resume: &str) -> Ended {
    let campaign = &finished.campaign;
    let total = campaign.manifest().plan.order.len();
    finished.answers.iter().for_each(output::line);
    let (runs, _) = campaign.runs()?;
    let failed = runs.values().filter(|r| r.record.outcome.is_failure()).count();
    if a.no_report && context.arguments.json {
        output::json(&json!({"schema": 1, "campaign": campaign.manifest().id, "folder": campaign.path(),
            "planned": total, "accounted": total, "failed": failed}));
    } else if a.no_report {
        output::line(format!("{total} of {total} runs accounted for in {}", shown(campaign.path())));
    } else {
        let (made, written) = super::report::of_new_runs(campaign, &project.reports(), total)?;
        if context.arguments.json {
            output::json(&collo_report::json(&made));
        } else {
            output::result(collo_report::terminal(&made, output::width()).trim_end());
        }
        output::note(format!("report: {}", shown(&written.html)));
    }
    if failed > 0 {
        output::note(format!("again:  {resume} --only failed"));
        return Ok(exit::FAILED);
    }
    output::note("next:   collo show last     collo verify last");
    // What stands in the way was reported when it was tried.
    Ok(if finished.put_back { exit::DONE } else { exit::INCOMPLETE })
}
