//! `collo run`: measure an experiment, or finish an unfinished campaign.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use collo_measure::campaign::{self, Choice, End, Finished, Only, Order};
use collo_measure::experiment::Asked;
use collo_measure::frontier::Frontier;
use collo_measure::observe::ObserveError;
use collo_measure::python::PythonError;
use collo_measure::{Event, Experiment, Interpreters, Noted, Prepared, Project, RunError, Workload, Workloads, prepare_all};
use collo_store::CampaignFolder;

use super::list::State;
use super::{Context, Ended, Planned};
use crate::args::{self, Only as OnlyArgument};
use crate::exit::{self, Failure};
use crate::progress::{self, Display, words};
use crate::say;

pub fn run(context: &Context<'_>, a: &args::Run) -> Ended {
    let project = context.project()?;
    let workloads = Workloads::load(&project.workloads())?;
    super::end_left_behind();
    let mut worst = exit::DONE;
    for (experiment, campaign, condition) in what(context, a, &project, &workloads)? {
        let selection = args::Selection { condition: a.selection.condition.clone().or(condition) };
        let code = one(context, a, &project, experiment, campaign, &selection)?;
        if matches!(code, exit::INTERRUPTED | exit::INCOMPLETE) {
            return Ok(code);
        }
        worst = worst.max(code);
    }
    Ok(worst)
}

type Wanted = (Experiment, Option<CampaignFolder>, Option<String>);

/// Experiments by name, path or tag; or the experiment of a campaign that is to be finished.
fn what(context: &Context<'_>, a: &args::Run, project: &Project, workloads: &Workloads) -> Result<Vec<Wanted>, Failure> {
    let no_experiment = match super::experiments(project, workloads, a.name.as_deref(), a.tag.as_deref()) {
        Ok(found) => return Ok(found.into_iter().map(|e| (e, None, None)).collect()),
        Err(failure) => failure,
    };
    // Perhaps it is a campaign. If it is neither, what was said about the experiment tells more.
    let is_name = a.name.as_deref().is_some_and(|n| !project.experiments().join(format!("{n}.toml")).exists());
    let campaign = a.name.as_deref().filter(|_| is_name).map(|n| context.runs()?.find(n).map_err(Failure::from));
    match campaign {
        Some(Ok(campaign)) => {
            let m = campaign.manifest();
            let experiment = Experiment::resolve(project, &m.experiment, workloads)?;
            // The selection is part of what the campaign is.
            let condition = m.ingredients.get(campaign::SELECTION).and_then(|i| i.version.as_deref());
            let condition = condition.map(|c| c.trim_matches('`').to_string());
            Ok(vec![(experiment, Some(campaign), condition)])
        }
        _ => Err(no_experiment),
    }
}

fn one(
    context: &Context<'_>,
    a: &args::Run,
    project: &Project,
    mut experiment: Experiment,
    campaign: Option<CampaignFolder>,
    selection: &args::Selection,
) -> Ended {
    if let Some(more) = a.more {
        experiment.repetitions = more;
    }
    experiment.warnings.iter().for_each(say::warning);
    if experiment.search {
        return search(context, a, project, experiment, campaign, selection);
    }
    let asked = Asked { gpu: a.gpu.clone(), planning: false, as_found: a.as_found };
    let planned = match a.prepare {
        true => super::planned(project, experiment, selection, &asked)?,
        false => super::planned_to_run(project, experiment, selection, &asked, a.services.into())?,
    };
    check_plan(&planned)?;
    warn_of_scale(&planned);
    tell_withheld();
    let quiet = context.arguments.quiet;
    let cooldown_s = planned.experiment.cooldown.as_secs_f64();
    let mut display = progress::display(quiet, planned.plan.forecast.clone(), cooldown_s);
    let provided = provide(a, project, &planned, &mut *display);
    let (interpreters, facts, data) = provided.inspect_err(|_| display.end())?;
    let only = match a.only {
        Some(OnlyArgument::Failed) => Only::Failed,
        Some(OnlyArgument::Missing) | None => Only::Missing,
    };
    let order = Order {
        project,
        experiment: &planned.experiment,
        cells: &planned.cells,
        plan: &planned.plan,
        facts: &planned.facts,
        interpreters: &interpreters,
        python: facts,
        data,
        selection: planned.selection.as_ref().map(|s| s.text().to_string()),
        choice: Choice { campaign, only, ..choice(a) },
    };
    if a.prepare {
        display.end();
        say::remark("Python and data are ready");
        say::remark(format!("next: collo run {}", planned.experiment.name));
        return Ok(exit::DONE);
    }
    let resume = resume(a, &planned);
    let mut opened = None;
    let finished = measure(&order, &mut *display, &mut opened);
    display.end();
    let finished = finished.map_err(|e| match opened {
        Some(campaign) => incomplete(e, &campaign, &resume),
        None => e.into(),
    })?;
    // Repetitions that were added belong to that campaign, whatever selected them.
    let id = &finished.campaign.manifest().id;
    let resume = match (a.more, a.of_a_night) {
        (Some(_), true) => format!("collo nightly {}", planned.experiment.name),
        (Some(_), false) => format!("collo run {}", id.rsplit('-').next().unwrap_or(id)),
        (None, _) => resume,
    };
    conclude(context, a, project, &finished, &resume)
}

/// What somebody set for their own trainings and members do not get.
fn tell_withheld() {
    let names = collo_measure::sharing::withheld();
    if !names.is_empty() {
        let them = if names.len() == 1 { "is" } else { "are" };
        say::remark(format!(
            "{} {them} set here and not passed on to members; `[variables]` of a workload.toml sets theirs",
            names.join(", ")
        ));
    }
}

fn choice(a: &args::Run) -> Choice {
    Choice {
        new: a.new,
        force: a.force,
        time_limit: a.time_limit,
        more: a.more.is_some(),
        exclusive: a.exclusive,
        foreign: a.foreign == args::Foreign::Allow,
        services: a.services.into(),
        ..Choice::default()
    }
}

/// Find the largest degree that fits: a round of cells, what came of it, the next round, all in one campaign.
fn search(
    context: &Context<'_>,
    a: &args::Run,
    project: &Project,
    experiment: Experiment,
    campaign: Option<CampaignFolder>,
    selection: &args::Selection,
) -> Ended {
    let asked = Asked { gpu: a.gpu.clone(), planning: false, as_found: a.as_found };
    let mut planned = match a.prepare {
        true => super::planned(project, experiment, selection, &asked)?,
        false => super::planned_to_run(project, experiment, selection, &asked, a.services.into())?,
    };
    check_plan(&planned)?;
    tell_withheld();
    let mut display = progress::display(context.arguments.quiet, Default::default(), 0.0);
    let (interpreters, python, data) = provide(a, project, &planned, &mut *display).inspect_err(|_| display.end())?;
    display.end();
    let resume = resume(a, &planned);
    if a.prepare {
        say::remark("Python and data are ready");
        say::remark(format!("next: {resume}"));
        return Ok(exit::DONE);
    }
    let newest =
        || context.runs().ok()?.campaigns().ok()?.0.into_iter().find(|c| c.manifest().experiment == planned.experiment.name);
    let mut campaign = campaign.or_else(newest).filter(|_| !a.new);
    let mut finished: Option<Finished> = None;
    loop {
        let runs = campaign.as_ref().map(|c| c.runs()).transpose()?.map(|(runs, _)| runs).unwrap_or_default();
        let mut frontier = Frontier::of(runs.values());
        let Some(round) = frontier.round(&planned.experiment, planned.selection.as_ref(), &planned.facts)? else {
            let Some(finished) = finished else {
                // The newest one has all its answers: this is another search.
                campaign = None;
                if Frontier::default().round(&planned.experiment, planned.selection.as_ref(), &planned.facts)?.is_none() {
                    return Err(Failure::new(exit::MACHINE, "every cell of the search is refused here"));
                }
                continue;
            };
            frontier.answers().iter().for_each(say::line);
            return conclude(context, a, project, &finished, &resume);
        };
        (planned.cells, planned.plan) = (round.cells, round.plan);
        // What was cut off comes first; its cells are in the campaign's plan already.
        let unfinished = campaign.as_ref().is_some_and(|c| State::of(c).is_ok_and(|s| s.stored < c.manifest().plan.order.len()));
        let order = Order {
            project,
            experiment: &planned.experiment,
            cells: &planned.cells,
            plan: &planned.plan,
            facts: &planned.facts,
            interpreters: &interpreters,
            python: python.clone(),
            data: data.clone(),
            selection: planned.selection.as_ref().map(|s| s.text().to_string()),
            choice: Choice {
                new: campaign.is_none(),
                more: campaign.is_some() && !unfinished,
                campaign: campaign.clone(),
                ..choice(a)
            },
        };
        let mut opened = None;
        let mut display = progress::display(context.arguments.quiet, planned.plan.forecast.clone(), 0.0);
        let ended = measure(&order, &mut *display, &mut opened);
        display.end();
        let ended = ended.map_err(|e| match &opened {
            Some(campaign) => incomplete(e, campaign, &resume),
            None => e.into(),
        })?;
        if ended.end != End::Complete {
            return conclude(context, a, project, &ended, &resume);
        }
        campaign = Some(CampaignFolder::open(ended.campaign.path())?);
        finished = Some(ended);
    }
}

/// What resumes this, word for word.
fn resume(a: &args::Run, planned: &Planned) -> String {
    let condition = planned.selection.as_ref().map(|s| format!(" --where '{}'", s.text())).unwrap_or_default();
    let python = a.python.as_ref().map(|p| format!(" --python {}", p.display())).unwrap_or_default();
    let gpu = a.gpu.as_ref().map(|gpu| format!(" --gpu {gpu}")).unwrap_or_default();
    let found = if a.as_found { " --as-found" } else { "" };
    let exclusive = if a.exclusive { " --exclusive" } else { "" };
    let foreign = if a.foreign == args::Foreign::Allow { " --foreign allow" } else { "" };
    let services = if a.services == args::Services::Stop { " --services stop" } else { "" };
    let verb = if a.of_a_night { "nightly" } else { "run" };
    format!("collo {verb} {}{condition}{python}{gpu}{found}{exclusive}{foreign}{services}", planned.experiment.name)
}

fn check_plan(planned: &Planned) -> Result<(), Failure> {
    let plan = &planned.plan.record;
    for r in &plan.refusals {
        say::remark(format!("– {} is refused: {}", r.cell, r.reason));
        if let Some(hint) = &r.hint {
            say::hint(hint);
        }
    }
    if plan.order.is_empty() {
        let name = &planned.experiment.name;
        let (code, what, hint) = match (plan.refusals.len(), &planned.selection) {
            (0, Some(s)) => (exit::USAGE, format!("`{}` selects no cell of `{name}`", s.text()), "shows all of them"),
            (0, None) => (exit::USAGE, format!("`{name}` has no cell to run"), "shows what is left out"),
            (n, _) => (exit::MACHINE, format!("every cell of `{name}` is refused here, {n} of {n}"), "says why"),
        };
        return Err(Failure::new(code, what).hint(format!("`collo plan {name}` {hint}")));
    }
    Ok(())
}

/// A dev build samples and reports as well as a release build while there is little of it.
fn warn_of_scale(planned: &Planned) {
    const MEMBERS_HZ: f64 = 2_000.0;
    const SAMPLES: f64 = 2e6;
    if !cfg!(debug_assertions) {
        return;
    }
    let degree = planned.plan.record.cells.iter().map(|c| c.degree).max().unwrap_or(0);
    let load = f64::from(degree) * planned.experiment.sampling.rate_hz;
    let seconds = planned.plan.forecast.runs_s.unwrap_or(0.0);
    let samples = seconds * load * 7.0;
    if load > MEMBERS_HZ || samples > SAMPLES {
        say::warning("this is a dev build, and this campaign samples so much that a release build matters");
        say::hint("`just install`, or `cargo install --locked --path harness/cli`");
    }
}

/// The interpreters that the cells need, what is in them, and the data.
fn provide(a: &args::Run, project: &Project, planned: &Planned, display: &mut dyn Display) -> Result<Provided, Failure> {
    let noted = Noted::begin();
    let mut tell = |progress| display.show(Event::Python(progress));
    let (interpreters, facts) =
        Interpreters::provide(project, &workloads_of(planned), a.python.as_deref(), planned.facts.python_target(), &mut tell)?;
    let members = planned.cells.iter().flat_map(|e| e.cell.members());
    let data = prepare_all(project, members, &interpreters, &mut |prepared| display.show(Event::Data(prepared)))?;
    noted.go_on().map_err(PythonError::from)?;
    Ok((interpreters, facts, data))
}

type Provided = (Interpreters, BTreeMap<String, String>, Vec<Prepared>);

/// The workloads of the cells, each once.
fn workloads_of(planned: &Planned) -> Vec<Arc<Workload>> {
    let mut all: Vec<Arc<Workload>> = Vec::new();
    for member in planned.cells.iter().flat_map(|e| e.cell.members()) {
        if !all.iter().any(|w| w.name == member.workload().name) {
            all.push(member.workload().clone());
        }
    }
    all
}

/// Measure; `opened` is the campaign as soon as there is one, whatever happens to it then.
fn measure(order: &Order<'_>, display: &mut dyn Display, opened: &mut Option<CampaignFolder>) -> Result<Finished, RunError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(collo_store::Error::from)?;
    runtime.block_on(campaign::run(order, &mut |event| {
        if let Event::Opened { campaign, .. } = &event {
            *opened = Some((*campaign).clone());
        }
        display.show(event);
    }))
}

/// An error in the middle of a campaign leaves it resumable, and what is stored is safe.
fn incomplete(e: RunError, campaign: &CampaignFolder, resume: &str) -> Failure {
    let folder = shown(campaign.path());
    let state = State::of(campaign).ok();
    let safe = state.map(|s| format!("{} of {} runs are safe", s.stored, campaign.manifest().plan.order.len()));
    let safe = safe.unwrap_or_else(|| "what is stored is safe".into());
    let what = if no_room(&e) { format!("no room in {folder}; {safe}") } else { format!("cannot go on; {safe}") };
    let cause = Failure::from(e).text;
    let cause = cause.strip_prefix("error: ").unwrap_or(&cause).to_string();
    // The cause may have causes and hints of its own.
    let failure = Failure::new(exit::INCOMPLETE, what);
    Failure { text: format!("{}\n  caused by: {cause}\nresume: {resume}", failure.text), ..failure }
}

fn no_room(e: &RunError) -> bool {
    matches!(e, RunError::Store(e) | RunError::Observe(ObserveError::Store(e)) if e.is_full_disk())
}

fn conclude(context: &Context<'_>, a: &args::Run, project: &Project, finished: &Finished, resume: &str) -> Ended {
    let campaign = &finished.campaign;
    let total = campaign.manifest().plan.order.len();
    if finished.end != End::Complete {
        let after = finished.stopping.map(|d| format!(" after {:.1} s", d.as_secs_f64())).unwrap_or_default();
        let stored = format!("{} of {total} runs stored", finished.stored);
        say::remark(match finished.end {
            End::Interrupted { killed: true } => format!("killed: {stored}, this one is dropped; no process is left"),
            End::TimeOver => format!("the allowed time is over: {stored}"),
            End::DeviceLost => format!("the GPU went away: {stored}; no process is left"),
            _ => format!("stopped{after}: {stored}, what ran is recorded as interrupted; no process is left"),
        });
        say::remark(format!("resume: {resume}          {}", words::runs(total - finished.stored)));
        return Ok(match finished.end {
            End::Interrupted { .. } => exit::INTERRUPTED,
            _ => exit::INCOMPLETE,
        });
    }
    // What stands in the way was said when it was tried.
    let done = if finished.put_back { exit::DONE } else { exit::INCOMPLETE };
    let (runs, _) = campaign.runs()?;
    let failed = runs.values().filter(|r| r.record.outcome.is_failure()).count();
    if a.of_a_night {
        return Ok(done);
    }
    if a.no_report && context.arguments.json {
        say::json(&serde_json::json!({"schema": 1, "campaign": campaign.manifest().id, "folder": campaign.path(),
            "planned": total, "accounted": total, "failed": failed}));
    } else if a.no_report {
        say::line(format!("{total} of {total} runs accounted for in {}", shown(campaign.path())));
    } else {
        let (made, written) = super::report::of_new_runs(campaign, &project.reports(), total)?;
        if context.arguments.json {
            say::json(&collo_report::json(&made));
        } else {
            say::result(collo_report::terminal(&made, say::width()).trim_end());
        }
        say::remark(format!("report: {}", shown(&written.html)));
    }
    if failed > 0 {
        say::remark(format!("again:  {resume} --only failed"));
        return Ok(exit::FAILED);
    }
    say::remark("next:   collo show last     collo verify last");
    Ok(done)
}

/// A path as people see it: from where they stand, if it lies below.
pub fn shown(path: &Path) -> String {
    let here = std::env::current_dir().ok();
    let path = path.strip_prefix(".").unwrap_or(path);
    let below = here.and_then(|here| path.strip_prefix(here).ok().map(Path::to_path_buf));
    let text = below.unwrap_or_else(|| path.to_path_buf()).display().to_string();
    match std::env::var("HOME") {
        Ok(home) if !home.is_empty() && text.starts_with(&format!("{home}/")) => text.replacen(&home, "~", 1),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_below_here_is_shown_from_here() {
        let here = std::env::current_dir().unwrap();
        assert_eq!(shown(&here.join("runs/x")), "runs/x");
        assert_eq!(shown(Path::new("/proc/self")), "/proc/self");
    }
}
