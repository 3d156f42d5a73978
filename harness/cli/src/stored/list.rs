//! `collo list`: campaigns, or what can be measured, and on what.

use std::collections::BTreeMap;

use collo_analysis::cell::verdict::CellVerdict;
use collo_figures::document::Table;
use collo_guidelines::report_json::ListedReport;
use collo_plan::experiment::{Overrides, TagFilter};
use collo_plan::observer::Observers;
use collo_plan::project::Project;
use collo_plan::sharing;
use collo_plan::workload::Workloads;
use collo_schedule::policy;
use collo_store::{COLLO_SAMPLES, Campaign, Foreign, NOBODY_WATCHES, Runs};
use collo_text::{Diagnostic, Diagnostics, Remark, shown};
use serde_json::json;

use super::prune;
use crate::answer::{Answer, Answered};
use crate::args::{self, What};
use crate::context::Context;
use crate::machine::cards;
use crate::project::{trace, workload};

pub fn run(context: &Context<'_>, a: &args::List) -> Answered {
    if a.gpu.is_some() && !matches!(a.what, What::Gpus | What::Layouts) {
        let why = "`--gpu` is for `list gpus` and `list layouts`";
        return Err(Diagnostic::new(why).hint("`collo list layouts --gpu NAME`").into());
    }
    match a.what {
        What::Campaigns => campaigns(context, a),
        What::Experiments => experiments(context, a),
        What::Workloads => workloads(context),
        What::Modes => Ok(modes()),
        What::Observers => observers(context),
        What::Gpus => cards::gpus(context, a.gpu.as_deref()),
        What::Layouts => cards::layouts(context, a.gpu.as_deref()),
        What::Policies => Ok(policies()),
        What::Traces => trace::list(context),
    }
}

/// The orders over cards; their parameters are their admission.
fn policies() -> Answer {
    let mut table = Table::new(&["policy", "parameters", "in the study", "which card a task gets"], 1).with_prose_last();
    let mut list = Vec::new();
    for order in policy::ORDERS {
        let name = if order.numbered { format!("{}:3", order.name) } else { order.name.to_string() };
        let parameters = order.parameters.join(", ");
        table.values([Some(name), Some(parameters), order.study.map(String::from), Some(order.about.into())]);
        list.push(json!({"policy": order.name, "parameters": order.parameters, "study": order.study, "about": order.about}));
    }
    Answer::list("policies", &list, &table, None)
}

fn campaigns(context: &Context<'_>, a: &args::List) -> Answered {
    let runs = context.runs()?;
    let (mut campaigns, foreign) = runs.campaigns()?;
    if let Some(filter) = a.tag.as_deref().map(TagFilter::parse).transpose()? {
        campaigns.retain(|c| filter.selects(&c.manifest().tags));
    }
    let commented = campaigns.iter().any(|c| !c.comments().is_empty());
    let heads = ["campaign", "experiment", "device", "#runs", "state", "comment"];
    let mut table = Table::new(&heads[..5 + usize::from(commented)], 2).with_prose(2);
    let (mut list, mut broken) = (Vec::new(), Vec::new());
    for campaign in &campaigns {
        let m = campaign.manifest();
        let state = match campaign.progress() {
            Ok(state) => state,
            Err(e) => {
                broken.push(format!("`{}` cannot be read: {e}", shown(campaign.path())));
                continue;
            }
        };
        if prune::age_s(&m.created_utc).is_some_and(|age| age < -TO_COME_S) {
            let when = "the clock was or is wrong; campaigns begun later count as newer anyway";
            broken.push(format!("{} has a date in the future, {}: {when}", m.id, m.created_utc));
        }
        let count = format!("{}/{}", state.stored, m.plan.order.len());
        let of = match (m.shard, m.origins.len()) {
            (Some(shard), _) => format!("{} {shard}", m.experiment),
            (None, 0) => m.experiment.clone(),
            (None, parts) => format!("{}, {parts} merged", m.experiment),
        };
        let comments = campaign.comments();
        let last = comments.last().map(|c| shortened(&c.text));
        let no_valid = state.is_complete() && has_no_valid_cell(&runs, m);
        let text = if no_valid { format!("{}, no valid cell", state.text()) } else { state.text() };
        let row = [m.id.clone(), of, m.device.text(), count, text].map(Some);
        table.values(row.into_iter().chain(Some(last).filter(|_| commented)));
        list.push(json!({"campaign": m.id, "experiment": m.experiment, "device": m.device, "planned": m.plan.order.len(),
            "stored": state.stored, "failed": state.failed, "state": state.text(), "folder": campaign.path(), "comments": comments, "shard": m.shard.map(|s| s.to_string()),
            "merged_from": m.origins.iter().map(|o| &o.campaign).collect::<Vec<_>>()}));
    }
    let none = match (&a.tag, foreign.is_empty()) {
        (Some(tag), _) => format!("no stored campaign has the tag `{tag}`"),
        (None, true) => "no campaign is stored yet".into(),
        (None, false) => NONE_READABLE.into(),
    };
    let mut answer = Answer::list("campaigns", &list, &table, Some(none).filter(|_| campaigns.is_empty()));
    if campaigns.is_empty() && a.tag.is_none() && foreign.is_empty() {
        answer.note(if context.is_in_project()? { "next: collo run quickstart" } else { "next: collo init DIR" });
    }
    answer.after(broken.into_iter().map(Remark::Warning).chain(left_alone(&foreign)));
    Ok(answer)
}

/// What is known where every entry of `runs/` was left alone.
pub const NONE_READABLE: &str = "no campaign can be read";

/// Whether the report of a complete campaign has cells, and none of them is valid; false where it has no report.
fn has_no_valid_cell(runs: &Runs, m: &Campaign) -> bool {
    let reports = runs.path().parent().map(|project| project.join("reports")).unwrap_or_default();
    let Ok(report) = ListedReport::read(&reports.join(&m.experiment).join(&m.id).join("report.json")) else { return false };
    report.validities().next().is_some() && report.validities().all(|word| word != CellVerdict::Valid.as_str())
}

/// The beginning of a comment, as far as a table has room for it.
fn shortened(text: &str) -> String {
    const ROOM: usize = 40;
    match text.chars().count() > ROOM {
        true => text.chars().take(ROOM - 1).chain(['…']).collect(),
        false => text.into(),
    }
}

/// Maximum difference between the clocks of machines that share a folder.
const TO_COME_S: f64 = 300.0;

/// Warnings about the entries of `runs/` that are not readable campaigns.
pub fn left_alone(foreign: &[Foreign]) -> impl Iterator<Item = Remark> {
    foreign.iter().map(|f| Remark::Warning(format!("`{}` {}, left alone", shown(&f.path), f.reason)))
}

fn loaded(context: &Context<'_>) -> Result<(Project, Workloads), Diagnostics> {
    let project = context.project()?;
    let workloads = Workloads::load(&project.workloads())?;
    Ok((project, workloads))
}

fn experiments(context: &Context<'_>, a: &args::List) -> Answered {
    let (project, workloads) = loaded(context)?;
    let mut table = Table::new(&["experiment", "tags", "what it measures"], 1).with_prose_last();
    let filter = a.tag.as_deref().map(TagFilter::parse).transpose()?;
    let mut list = Vec::new();
    let (mut broken, mut files) = (Vec::new(), BTreeMap::<String, Vec<String>>::new());
    for (path, experiment) in collo_plan::experiment::all(&project, &workloads, &Overrides::default())? {
        match experiment {
            Ok(e) if filter.as_ref().is_none_or(|filter| filter.selects(&e.tags)) => {
                table.values([Some(e.name.clone()), Some(e.tags.join(", ")), e.description.clone()]);
                files.entry(e.name.clone()).or_default().push(shown(&path));
                list.push(json!({"experiment": e.name, "tags": e.tags, "description": e.description, "path": path}));
            }
            Ok(_) => {}
            Err(mistakes) => broken.push(mistakes),
        }
    }
    let none = a.tag.as_ref().map(|tag| format!("no experiment has the tag `{tag}`"));
    let mut answer = Answer::list("experiments", &list, &table, none);
    answer.failed(&broken);
    let namesakes = |(name, paths): (String, Vec<String>)| {
        let what = format!(
            "{} experiments are called `{name}`: {}; rename all but one, or give the path",
            paths.len(),
            paths.join(", ")
        );
        (paths.len() > 1).then_some(Remark::Warning(what))
    };
    answer.after(files.into_iter().filter_map(namesakes));
    Ok(answer)
}

fn workloads(context: &Context<'_>) -> Answered {
    let (_, workloads) = loaded(context)?;
    Ok(workload::list(&workloads))
}

/// Who can watch: nobody, collo itself, and the files of `observers/`.
fn observers(context: &Context<'_>) -> Answered {
    let observers = Observers::load(&context.project()?.observers());
    let mut table = Table::new(&["observer", "runs", "lacks", "what it is"], 1).with_prose_last();
    let mut list = vec![json!({"observer": NOBODY_WATCHES, "about": NOBODY}), json!({"observer": COLLO_SAMPLES, "about": COLLO})];
    let row = |name: &str, about: &str| [Some(name.to_string()), None, None, Some(about.to_string())];
    table.values(row(NOBODY_WATCHES, NOBODY));
    table.values(row(COLLO_SAMPLES, COLLO));
    for o in observers.iter() {
        table.values([Some(o.name.clone()), Some(o.place.as_str().into()), o.lacks.clone(), o.about.clone()]);
        list.push(json!({"observer": o.name, "kind": o.kind, "runs": o.place.as_str(), "command": o.command, "needs": o.programs, "gpu": o.needs_gpu,
            "lacks": o.lacks, "hint": o.hint, "rate_hz": o.rate_hz, "writes": o.writes, "most_bytes": o.most_bytes, "daemons": o.daemons,
            "disturbs": o.disturbs, "about": o.about, "source": o.source}));
    }
    let mut answer = Answer::list("observers", &list, &table, None);
    answer.failed(observers.broken().values());
    Ok(answer)
}

const NOBODY: &str = "nobody, not even collo: what the others are compared with";
const COLLO: &str = "collo's own sampling, as the experiment says, or at a rate: `collo:100Hz`";

fn modes() -> Answer {
    let mut table = Table::new(&["mode", "syntax", "how members share"], 1).with_prose(1).with_prose_last();
    let mut list = Vec::new();
    for family in sharing::MODES {
        table.values([family.name.to_string(), family.examples.join("  "), family.about.to_string()].map(Some));
        list.push(json!({"mode": family.name, "examples": family.examples, "about": family.about}));
    }
    Answer::list("modes", &list, &table, None)
}
