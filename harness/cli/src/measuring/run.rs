//! `collo run`: measure an experiment, or finish an unfinished campaign.

use std::path::Path;

use collo_measure::campaign::{self, CampaignOptions, FailureLimit, Finished, Only};
use collo_measure::session::{Request, Session};
use collo_plan::experiment::{Experiment, Overrides, is_script};
use collo_plan::project::Project;
use collo_plan::workload::Workloads;
use collo_quantity::number;
use collo_store::{Campaign, CampaignFolder, Standing};
use collo_text::{Diagnostic, Diagnostics, shown, trust};
use serde_json::json;

use super::{ending, steps, until};
use crate::answer::Answer;
use crate::args::{self, Only as OnlyArgument};
use crate::bundled::is_bundle;
use crate::context::experiments::{Named, as_named, each, experiments};
use crate::context::{Context, Ended, end_left_behind};
use crate::stored::{bundle, report};
use crate::{exit, output, progress};

pub fn run(context: &Context<'_>, a: &args::Run) -> Ended {
    if let [name] = &a.names[..]
        && let bundle = context.folder()?.join(name)
        && is_bundle(&bundle)
        && bundle.is_file()
    {
        trust::program(&bundle).map_err(|why| {
            let what = format!("{} is not run as root: another user could have written it", shown(&bundle));
            Diagnostic::new(what).caused_by(why).hint("copy it, and run the copy; or run it as another user").of_machine()
        })?;
        let (folder, campaign) = bundle::opened(context, &bundle)?;
        return measure(&context.inside(folder), a, |_, project, workloads| {
            let mut request = of_campaign(a, project, workloads, campaign)?;
            // What is stored there was measured elsewhere.
            request.choice = CampaignOptions { new: true, campaign: None, ..request.choice };
            Ok(vec![(request.experiment.name.clone(), Ok(request))])
        });
    }
    measure(context, a, |context, project, workloads| {
        if a.names.is_empty() {
            return requests(context, a, None, project, workloads);
        }
        // Nothing is measured before every name is understood.
        let (scripts, experiments): (Vec<&String>, Vec<&String>) = a.names.iter().partition(|name| is_script(name));
        let each = scripts
            .into_iter()
            .chain(experiments)
            .map(|name| requests(context, a, Some(name), project, workloads).map_err(|e| misplaced(e, name)));
        Ok(each.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    })
}

/// What is meant by a word that is no experiment: `degree=2` is a selection, or a setting.
fn misplaced(wrong: Diagnostics, word: &str) -> Diagnostics {
    match args::of_value(word, true) {
        Some(hint) => Diagnostic::new(format!("`{word}` is no experiment")).hint(hint).into(),
        None => wrong,
    }
}

fn measure(
    context: &Context<'_>,
    a: &args::Run,
    requests: impl FnOnce(&Context<'_>, &Project, &Workloads) -> Result<Vec<Named<Request>>, Diagnostics>,
) -> Ended {
    let project = context.project()?;
    let workloads = Workloads::load(&project.workloads())?;
    end_left_behind();
    each(requests(context, &project, &workloads)?, |request| one(context, a, &project, request))
}

/// Experiments by name, path or tag; or the experiment of a campaign to finish.
fn requests(
    context: &Context<'_>,
    a: &args::Run,
    name: Option<&str>,
    project: &Project,
    workloads: &Workloads,
) -> Result<Vec<Named<Request>>, Diagnostics> {
    let overrides = Overrides::of(project, &a.selection.set)?;
    let no_experiment = match experiments(project, workloads, name, a.tag.as_deref(), &overrides) {
        Ok(found) => {
            let asked = |e: Experiment| request(a, e, None);
            return Ok(found.into_iter().map(|(name, experiment)| (name, experiment.and_then(asked))).collect());
        }
        Err(failure) => failure,
    };
    if let Some(name) = name.filter(|name| is_bundle(Path::new(name))) {
        return Err(Diagnostic::new(format!("no bundle at `{name}`")).hint("`collo bundle CAMPAIGN` writes one").into());
    }
    // Perhaps it is a campaign. If it is neither, what was said about the experiment tells more.
    let is_name = name.is_some_and(|n| !project.experiments().join(format!("{n}.toml")).exists());
    let campaign = name.filter(|_| is_name).map(|n| context.runs()?.find(n).map_err(Diagnostics::from));
    match campaign {
        Some(Ok(campaign)) => {
            not_merged(campaign.manifest())?;
            let request = of_campaign(a, project, workloads, campaign)?;
            Ok(vec![(request.experiment.name.clone(), Ok(request))])
        }
        Some(Err(no_campaign)) if name.is_some_and(counts_back) => Err(no_campaign),
        _ => Err(no_experiment),
    }
}

/// `last`, `last-2`, `NAME/last-2`, as no experiment is called.
fn counts_back(name: &str) -> bool {
    let word = name.rsplit('/').next().unwrap_or(name);
    word == "last" || word.strip_prefix("last-").is_some_and(|back| back.parse::<usize>().is_ok())
}

/// The request that leads to the plan of a stored campaign.
fn of_campaign(
    a: &args::Run,
    project: &Project,
    workloads: &Workloads,
    campaign: CampaignFolder,
) -> Result<Request, Diagnostics> {
    let mut overrides = Overrides::of(project, &a.selection.set)?;
    // What was set is part of what the campaign is, as is the selection.
    if overrides.set.is_empty() {
        overrides.set = campaign::set(campaign.manifest());
    }
    let experiment = Experiment::resolve_with(project, &campaign.manifest().experiment, workloads, &overrides)?;
    request(a, experiment, Some(campaign))
}

fn not_merged(m: &Campaign) -> Result<(), Diagnostic> {
    if !m.is_merged() {
        return Ok(());
    }
    let parts: Vec<&str> = m.origins.iter().map(|o| collo_store::last_part(&o.campaign)).collect();
    let what = format!("`{}` was merged from {}: it is not continued", m.id, parts.join(", "));
    Err(Diagnostic::new(what).hint("continue these, and merge again"))
}

fn request(a: &args::Run, experiment: Experiment, campaign: Option<CampaignFolder>) -> Result<Request, Diagnostics> {
    let selection = match (a.selection.parse()?, &campaign) {
        // The selection is part of what the campaign is.
        (None, Some(campaign)) => campaign::selection(campaign.manifest())?,
        (selection, _) => selection,
    };
    let shard = match (a.shard, campaign.as_ref().map(|c| c.manifest().shard)) {
        (Some(asked), Some(has)) if has != Some(asked) => {
            let is = has.map_or("the whole experiment".to_string(), |has| format!("shard {has}"));
            return Err(Diagnostic::new(format!("that campaign is {is}, not shard {asked}")).hint("leave `--shard` out").into());
        }
        (Some(asked), _) => Some(asked),
        (None, has) => has.flatten(),
    };
    let only = match a.only {
        Some(OnlyArgument::Failed) => Only::Failed,
        Some(OnlyArgument::Missing) | None => Only::Missing,
    };
    let request = steps::request(experiment, selection, &a.measure);
    let failures = match (a.fail_fast, a.max_failures) {
        (true, _) => FailureLimit::Count(1),
        (false, Some(most)) => FailureLimit::Count(most),
        (false, None) => request.choice.failures,
    };
    let choice = CampaignOptions { new: a.new, campaign, force: a.force, only, more: a.more, failures, ..request.choice };
    Ok(Request { shard, choice, ..request })
}

fn one(context: &Context<'_>, a: &args::Run, project: &Project, request: Request) -> Ended {
    let resume = ending::resume(
        "run",
        &as_named(project, &request.experiment),
        &request.experiment,
        request.selection.as_ref(),
        request.shard,
        &a.measure,
    );
    let planned = request.clone();
    let session = steps::planned(project, request, a.prepare)?;
    if a.prepare {
        return prepare(context, session, &resume);
    }
    let finished = steps::measured(context, session, &resume)?;
    let first = finished.campaign.manifest().plan.order.len();
    let finished = until::narrow(context, project, &planned, finished, &resume)?;
    // Repetitions that were added belong to that campaign, whatever selected them.
    let added = a.more.is_some() || finished.campaign.manifest().plan.order.len() > first;
    let resume = if added { format!("collo run {}", finished.campaign.manifest().short_id()) } else { resume };
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
    let (mut failed, mut unexpected) = (0, Vec::new());
    for run in runs.values().map(|run| &run.record) {
        match run.standing() {
            Standing::Failed => failed += 1,
            Standing::Unexpected => unexpected.push(run),
            Standing::Expected | Standing::Fine => {}
        }
    }
    if a.no_report {
        let mut answer = Answer::of(json!({"campaign": campaign.manifest().id, "folder": campaign.path(),
            "planned": total, "accounted": total, "failed": failed, "unexpected": unexpected.len()}));
        answer.line(format!("{total} of {total} runs accounted for in {}", shown(campaign.path())));
        answer.print(context);
    } else {
        let (made, written) = report::of_new_runs(campaign, &project.reports(), total)?;
        report::answer(context, &made).print(context);
        output::note(format!("report: {}", shown(&written.html)));
    }
    for run in &unexpected {
        let said = run.expectation().unwrap_or_default();
        output::warning(format!("`{}` {}/{} {said}", run.cell.cell, run.repetition, run.cell.repetitions));
    }
    if !unexpected.is_empty() {
        output::hint("if that is as it should be now, remove its `[[expect]]` from the experiment");
    }
    let missing = total.saturating_sub(finished.stored);
    if a.only == Some(OnlyArgument::Failed) && missing > 0 {
        output::note(format!("{} missing: {resume}", number::runs(missing)));
        return Ok(exit::INCOMPLETE);
    }
    if failed > 0 {
        output::note(format!("again:  {resume} --only failed"));
    }
    if failed + unexpected.len() > 0 {
        return Ok(exit::FAILED);
    }
    let shard = campaign.manifest().shard;
    output::note(match shard {
        Some(_) => format!("next:   after all shards: collo merge {} --shards", campaign.manifest().experiment),
        None => "next:   collo show last     collo verify last".into(),
    });
    // What stands in the way was reported when it was tried.
    Ok(if finished.put_back { exit::DONE } else { exit::INCOMPLETE })
}
