//! `collo nightly`: measure the night, hold each cell against its own history, measure the suspicious ones again the same night, and
//! say what is left.

use collo_measure::{Experiment, Workloads};
use collo_report::document::Present;
use collo_report::history::{self, History, Nights, Rules, Suspect};
use collo_store::{CampaignFolder, Runs, Thresholds};

use super::list::State;
use super::prune::age_s;
use super::{Context, Ended};
use crate::args;
use crate::exit::{self, Failure};
use crate::say;

/// A night that was cut short is resumed for so long; later it is another night, and a new campaign.
const NIGHT_S: f64 = 18.0 * 3600.0;
/// So many suspicious cells are measured again at most, or a fifth of all: a night has an end.
const AGAIN: usize = 10;

pub fn run(context: &Context<'_>, a: &args::Nightly) -> Ended {
    let runs = context.runs()?;
    let reports = runs.path().parent().map(|p| p.join("reports")).unwrap_or_else(|| "reports".into());
    if a.judge_only {
        let name = named(context, &a.name).unwrap_or_else(|_| a.name.clone());
        let found = history::read(&runs, &reports, &name, None)?;
        if found.nights.is_empty() {
            found.problems.iter().for_each(say::warning);
            let failure = Failure::new(exit::USAGE, format!("no night of `{name}` is stored"));
            return Err(failure.hint(format!("`collo nightly {name}` measures one")));
        }
        let rules = rules(a, newest(&runs, &name)?.as_ref());
        return conclude(context, &reports, History::of(&name, found, rules));
    }
    let name = named(context, &a.name)?;
    let before = newest(&runs, &name)?;
    let resumed = before.as_ref().map(is_tonight).transpose()?.unwrap_or(false);
    let mut worst = super::run::run(context, &night(a, !resumed, None))?;
    let Some(tonight) = measured(&runs, &name, before.filter(|_| resumed))? else {
        return Ok(worst);
    };
    let id = tonight.manifest().id.clone();
    let rules = rules(a, Some(&tonight));
    let mut found = history::read(&runs, &reports, &name, Some(&id))?;
    if !stopped(worst) && !a.no_rerun && found.nights.last().is_some_and(|n| n.incomplete.is_none()) {
        let suspects = to_measure(&found, rules);
        if !suspects.is_empty() {
            let cells: Vec<String> = suspects.iter().map(|s| format!("`{}`", s.cell)).collect();
            let more = a.more;
            say::remark(format!("measuring again, {more} repetitions more and their baselines: {}", cells.join(", ")));
            let again =
                args::Run { name: Some(campaign_or_experiment(context, a, &name, &id)), ..night(a, false, condition(&suspects)) };
            worst = super::run::run(context, &again)?;
            found = history::read(&runs, &reports, &name, Some(&id))?;
        }
    }
    let campaign = runs.find(&id)?;
    let runs = campaign.manifest().plan.order.len();
    let (_, written) = super::report::of_new_runs(&campaign, &reports, runs)?;
    say::remark(format!("report:  {}", super::run::shown(&written.html)));
    let verdict = conclude(context, &reports, History::of(&name, found, rules))?;
    Ok(if stopped(worst) { worst } else { verdict })
}

fn stopped(code: u8) -> bool {
    matches!(code, exit::INTERRUPTED | exit::INCOMPLETE)
}

/// The experiment's own name, whether it was given by name or by path.
fn named(context: &Context<'_>, asked: &str) -> Result<String, Failure> {
    let project = context.project()?;
    let workloads = Workloads::load(&project.workloads())?;
    Ok(Experiment::resolve(&project, asked, &workloads)?.name)
}

fn newest(runs: &Runs, name: &str) -> Result<Option<CampaignFolder>, Failure> {
    Ok(runs.campaigns()?.0.into_iter().find(|c| c.manifest().experiment == name))
}

/// The campaign that was just measured: the one that was resumed, else the newest that changed last.
fn measured(runs: &Runs, name: &str, resumed: Option<CampaignFolder>) -> Result<Option<CampaignFolder>, Failure> {
    let mut all = runs.campaigns()?.0;
    all.retain(|c| c.manifest().experiment == name);
    let touched = |c: &CampaignFolder| fs_err::metadata(c.path().join("journal.jsonl")).and_then(|m| m.modified()).ok();
    all.sort_by_key(touched);
    Ok(all.pop().or(resumed))
}

/// Unfinished, and begun so lately that it still is the same night.
fn is_tonight(campaign: &CampaignFolder) -> Result<bool, Failure> {
    let state = State::of(campaign)?;
    let begun = age_s(&campaign.manifest().created_utc);
    Ok(state.stored < campaign.manifest().plan.order.len() && begun.is_some_and(|age| age.abs() < NIGHT_S))
}

/// The run that this night is: the planned one, or more of the cells that a condition selects.
fn night(a: &args::Nightly, new: bool, again: Option<String>) -> args::Run {
    args::Run {
        name: Some(a.name.clone()),
        tag: None,
        more: again.is_some().then_some(a.more),
        selection: args::Selection { condition: again.or_else(|| a.selection.condition.clone()) },
        gpu: a.gpu.clone(),
        as_found: a.as_found,
        exclusive: a.exclusive,
        foreign: a.foreign,
        services: a.services,
        only: None,
        new,
        force: false,
        python: a.python.clone(),
        prepare: false,
        time_limit: a.time_limit,
        no_report: true,
        of_a_night: true,
    }
}

/// The campaign by its id, so that whatever the clock says the repetitions join it; an experiment that lies elsewhere is found by its
/// path alone, and then its newest campaign gets them.
fn campaign_or_experiment(context: &Context<'_>, a: &args::Nightly, name: &str, id: &str) -> String {
    let here = context.project().is_ok_and(|p| p.experiments().join(format!("{name}.toml")).is_file());
    if here { id.to_string() } else { a.name.clone() }
}

/// The suspicious cells that were not measured again yet, the most suspicious first.
fn to_measure(found: &Nights, rules: Rules) -> Vec<Suspect> {
    let cells = found.nights.last().map(|n| &n.cells[..]).unwrap_or_default();
    let again = |s: &Suspect| cells.iter().any(|c| c.cell == s.cell && c.again.is_some_and(|m| m.n >= 2));
    let mut suspects = History::suspects(&found.nights, rules);
    suspects.retain(|s| !again(s) && !s.cell.contains('"'));
    suspects.sort_by(|a, b| a.p.total_cmp(&b.p));
    suspects.truncate(AGAIN.max(cells.len() / 5));
    suspects
}

/// These cells; their baselines come along by themselves.
fn condition(suspects: &[Suspect]) -> Option<String> {
    let cells: Vec<String> = suspects.iter().map(|s| format!("\"{}\"", s.cell)).collect();
    Some(format!("cell in [{}]", cells.join(", ")))
}

/// What counts as relevant: what was asked for, what the experiment says, or 2 %.
fn rules(a: &args::Nightly, campaign: Option<&CampaignFolder>) -> Rules {
    let own = Rules::default();
    let said = campaign.map(|c| c.manifest().thresholds.relevant_ratio);
    let said = said.filter(|r| *r != Thresholds::default().relevant_ratio && *r > 0.0);
    let relevance = a.relevant.or(said).unwrap_or(own.relevance);
    Rules { relevance, more: a.more as usize, again: !a.no_rerun, ..own }
}

fn conclude(context: &Context<'_>, reports: &std::path::Path, history: History) -> Ended {
    let written = history.write(&history::folder(reports, &history.experiment))?;
    if context.arguments.json {
        say::json(&history.json());
    } else {
        say::result(history.text(say::width()).trim_end());
    }
    say::remark(format!("history: {}", super::run::shown(&written.html)));
    let whole = history.nights.last().is_some_and(|n| n.incomplete.is_none());
    Ok(match (history.has_regression(), whole) {
        (true, _) => exit::FAILED,
        (false, false) => exit::INCOMPLETE,
        (false, true) => exit::DONE,
    })
}
