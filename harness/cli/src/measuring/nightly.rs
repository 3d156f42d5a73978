//! `collo nightly`: measures, compares each cell with its own history, re-measures suspicious ones the same night, and reports
//! what is confirmed.

use collo_compare::history::{self, History, NightlySummary, Rules, Suspect};
use collo_figures::document::Present;
use collo_measure::campaign::{CampaignEnd, CampaignOptions, Finished};
use collo_measure::session::Request;
use collo_plan::experiment::{Experiment, Overrides};
use collo_plan::project::Project;
use collo_plan::select::Selection;
use collo_plan::workload::Workloads;
use collo_store::{CampaignFolder, Runs, Thresholds};
use collo_text::{Diagnostic, Diagnostics, Remark};

use super::{ending, notice, steps, until};
use crate::answer::{Answer, Answered};
use crate::context::{Context, end_left_behind};
use crate::stored::prune::age_s;
use crate::stored::report;
use crate::{args, exit, output};

/// How a night ended, which its exit code does not decide: a night that stopped after failed runs ends with that of a regression.
#[derive(Clone, Copy)]
pub enum NightResult {
    NoRegression,
    /// A cell, or all together, became slower, or a cell no longer runs.
    Regression,
    Incomplete,
}

impl NightResult {
    /// For a subject line.
    pub fn text(self) -> &'static str {
        match self {
            NightResult::NoRegression => "no regression",
            NightResult::Regression => "regression",
            NightResult::Incomplete => "incomplete",
        }
    }
}

/// What the verb answers of a night, and how it ended.
pub struct JudgedNight {
    pub result: NightResult,
    pub answer: Answer,
}

/// An interrupted night is resumed within this time; after it, a new campaign is started.
const NIGHT_S: f64 = 18.0 * 3600.0;
/// Maximum number of suspicious cells to re-measure, or a fifth of all: a night must end.
const AGAIN: usize = 10;

pub fn run(context: &Context<'_>, a: &args::Nightly) -> Answered {
    let judged = judge(context, a);
    match &a.notify {
        Some(command) => notice::send(command, &a.name, judged),
        None => judged.map(|judged| judged.answer),
    }
}

/// Measure a night, unless only stored ones are to be judged, and judge it.
fn judge(context: &Context<'_>, a: &args::Nightly) -> Result<JudgedNight, Diagnostics> {
    let runs = context.runs()?;
    let reports = runs.path().parent().map(|p| p.join("reports")).unwrap_or_else(|| "reports".into());
    if a.judge_only {
        // The experiment's own name, whether it is given by name or by path; of one that is gone its nights are still there.
        let name = context.project().map_err(Diagnostics::from).and_then(|p| experiment(&p, a));
        let name = name.map_or_else(|_| a.name.clone(), |experiment| experiment.name);
        let found = history::read(&runs, &reports, &name, None)?;
        if found.nights.is_empty() {
            found.problems.iter().for_each(output::warning);
            let failure = Diagnostic::new(format!("no night of `{name}` is stored"));
            return Err(failure.hint(format!("`collo nightly {name}` measures one")).into());
        }
        let rules = rules(a, newest(&runs, &name)?.as_ref());
        return conclude(context, &reports, History::of(&name, found, rules));
    }
    let project = context.project()?;
    let experiment = experiment(&project, a)?;
    let name = experiment.name.clone();
    let selection = a.selection.parse()?;
    let resume = ending::resume("nightly", &name, &experiment, selection.as_ref(), None, &a.measure);
    let resumed = newest(&runs, &name)?.as_ref().map(is_tonight).transpose()?.unwrap_or(false);
    end_left_behind();
    let night = steps::request(experiment, selection, &a.measure);
    let planned = Request { choice: CampaignOptions { new: !resumed, ..night.choice.clone() }, ..night.clone() };
    let mut tonight = measured(context, &project, planned, &resume)?;
    let id = tonight.campaign.manifest().id.clone();
    let rules = rules(a, Some(&tonight.campaign));
    let found = history::read(&runs, &reports, &name, Some(&id))?;
    if is_whole(&tonight) && !a.no_rerun && found.nights.last().is_some_and(|n| n.incomplete.is_none()) {
        let suspects = to_measure(&found, rules);
        if !suspects.is_empty() {
            let cells: Vec<String> = suspects.iter().map(|s| format!("`{}`", s.cell)).collect();
            let more = a.more;
            output::note(format!("re-measuring, {more} more repetitions and their baselines: {}", cells.join(", ")));
            let again = Request {
                selection: Some(Selection::Cells(suspects.into_iter().map(|s| s.cell).collect())),
                choice: CampaignOptions {
                    campaign: Some(tonight.campaign),
                    more: Some(more),
                    spent: tonight.spent,
                    ..night.choice.clone()
                },
                ..night.clone()
            };
            tonight = measured(context, &project, again, &resume)?;
        }
    }
    // Last, since the judgement is of the planned repetitions, and of those of the cells that they made suspicious.
    if is_whole(&tonight) {
        tonight = until::narrow(context, &project, &night, tonight, &resume)?;
    }
    let stopped = ending::stopped(&tonight, &resume).or((!tonight.put_back).then_some(exit::INCOMPLETE));
    let found = history::read(&runs, &reports, &name, Some(&id))?;
    let campaign = runs.find(&id)?;
    let runs = campaign.manifest().plan.order.len();
    let (_, written) = report::of_new_runs(&campaign, &reports, runs)?;
    output::note(format!("report:  {}", collo_text::shown(&written.html)));
    let mut judged = conclude(context, &reports, History::of(&name, found, rules))?;
    // How it stopped decides the exit code, and no verdict on an unfinished night is sent.
    if let Some(code) = stopped {
        (judged.result, judged.answer.code) = (NightResult::Incomplete, code);
    }
    Ok(judged)
}

fn experiment(project: &Project, a: &args::Nightly) -> Result<Experiment, Diagnostics> {
    let overrides = Overrides::of(project, &a.selection.set)?;
    Experiment::resolve_with(project, &a.name, &Workloads::load(&project.workloads())?, &overrides)
}

fn measured(context: &Context<'_>, project: &Project, request: Request, resume: &str) -> Result<Finished, Diagnostics> {
    let session = steps::planned(project, request, false)?;
    let finished = steps::measured(context, session, resume)?;
    finished.answers.iter().for_each(output::line);
    Ok(finished)
}

/// It did not stop early, and the GPU is as found.
fn is_whole(finished: &Finished) -> bool {
    finished.end == CampaignEnd::Complete && finished.put_back
}

fn newest(runs: &Runs, name: &str) -> Result<Option<CampaignFolder>, Diagnostics> {
    Ok(runs.campaigns()?.0.into_iter().find(|c| {
        let m = c.manifest();
        m.experiment == name && m.shard.is_none() && !m.is_merged()
    }))
}

/// Unfinished, and recent enough to be of the same night.
fn is_tonight(campaign: &CampaignFolder) -> Result<bool, Diagnostics> {
    let begun = age_s(&campaign.manifest().created_utc);
    Ok(!campaign.progress()?.is_complete() && begun.is_some_and(|age| age.abs() < NIGHT_S))
}

/// The suspicious cells not yet re-measured, the most suspicious first.
fn to_measure(found: &NightlySummary, rules: Rules) -> Vec<Suspect> {
    let cells = found.nights.last().map(|n| &n.cells[..]).unwrap_or_default();
    let again = |s: &Suspect| cells.iter().any(|c| c.cell == s.cell && c.again.is_some_and(|m| m.n >= 2));
    let mut suspects = History::suspects(&found.nights, rules);
    suspects.retain(|s| !again(s));
    suspects.sort_by(|a, b| a.p.total_cmp(&b.p));
    suspects.truncate(AGAIN.max(cells.len() / 5));
    suspects
}

/// The threshold of relevance: from the arguments, the experiment, or 2 %.
fn rules(a: &args::Nightly, campaign: Option<&CampaignFolder>) -> Rules {
    let own = Rules::default();
    let said = campaign.map(|c| c.manifest().thresholds.relevant_ratio);
    let said = said.filter(|r| *r != Thresholds::default().relevant_ratio && *r > 0.0);
    let relevance = a.relevant.or(said).unwrap_or(own.relevance);
    Rules { relevance, more: a.more as usize, again: !a.no_rerun, ..own }
}

fn conclude(context: &Context<'_>, reports: &std::path::Path, history: History) -> Result<JudgedNight, Diagnostics> {
    let written = history.write(&history::folder(reports, &history.experiment))?;
    let mut answer = Answer::present(context, &history);
    answer.after([Remark::Note(format!("history: {}", collo_text::shown(&written.html)))]);
    let whole = history.nights.last().is_some_and(|n| n.incomplete.is_none());
    let (result, code) = match (history.has_regression(), whole) {
        (true, _) => (NightResult::Regression, exit::FAILED),
        (false, false) => (NightResult::Incomplete, exit::INCOMPLETE),
        (false, true) => (NightResult::NoRegression, exit::DONE),
    };
    answer.code = code;
    Ok(JudgedNight { result, answer })
}
