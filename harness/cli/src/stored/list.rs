//! `collo list`: campaigns, or what can be measured, and on what.

use collo_figures::document::{Align, Table};
use collo_plan::experiment::{Overrides, TagFilter};
use collo_plan::observer::Observers;
use collo_plan::project::Project;
use collo_plan::sharing;
use collo_plan::workload::Workloads;
use collo_schedule::policy;
use collo_store::{COLLO_SAMPLES, Foreign, NOBODY_WATCHES};
use collo_text::shown;
use collo_text::{Diagnostic, Diagnostics};
use serde_json::json;

use super::prune;
use crate::args::{self, What};
use crate::context::{Context, Ended};
use crate::machine::cards;
use crate::project::{trace, workload};
use crate::{exit, output};

pub fn run(context: &Context<'_>, a: &args::List) -> Ended {
    if a.gpu.is_some() && !matches!(a.what, What::Gpus | What::Layouts) {
        let why = "`--gpu` is for `list gpus` and `list layouts`";
        return Err(Diagnostic::new(why).hint("`collo list layouts --gpu NAME`").into());
    }
    match a.what {
        What::Campaigns => campaigns(context, a),
        What::Experiments => experiments(context, a),
        What::Workloads => workloads(context),
        What::Modes => modes(context),
        What::Observers => observers(context),
        What::Gpus => cards::gpus(context, a.gpu.as_deref()),
        What::Layouts => cards::layouts(context, a.gpu.as_deref()),
        What::Policies => policies(context),
        What::Traces => trace::list(context),
    }
}

/// The orders over cards; their parameters are their admission.
fn policies(context: &Context<'_>) -> Ended {
    let columns = [
        ("policy", Align::Left),
        ("parameters", Align::Left),
        ("in the study", Align::Left),
        ("which card a task gets", Align::Left),
    ];
    let mut table = Table::new(&columns, 1).with_prose_last();
    let mut list = Vec::new();
    for order in policy::ORDERS {
        let name = if order.numbered { format!("{}:3", order.name) } else { order.name.to_string() };
        let parameters = order.parameters.join(", ");
        table.values([Some(name), Some(parameters), order.study.map(String::from), Some(order.about.into())]);
        list.push(json!({"policy": order.name, "parameters": order.parameters, "study": order.study, "about": order.about}));
    }
    if context.arguments.json {
        output::json(&json!({"schema": 1, "policies": list}));
    } else {
        output::result(table.render(output::width()).trim_end());
    }
    Ok(exit::DONE)
}

fn campaigns(context: &Context<'_>, a: &args::List) -> Ended {
    let runs = context.runs()?;
    let (mut campaigns, foreign) = runs.campaigns()?;
    if let Some(filter) = a.tag.as_deref().map(TagFilter::parse).transpose()? {
        campaigns.retain(|c| filter.selects(&c.manifest().tags));
    }
    let mut columns = vec![
        ("campaign", Align::Left),
        ("experiment", Align::Left),
        ("device", Align::Left),
        ("runs", Align::Right),
        ("state", Align::Left),
    ];
    let commented = campaigns.iter().any(|c| !c.comments().is_empty());
    columns.extend(Some(("comment", Align::Left)).filter(|_| commented));
    let mut table = Table::new(&columns, 2);
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
        let row = [m.id.clone(), of, m.device.text(), count, state.text()].map(Some);
        table.values(row.into_iter().chain(Some(last).filter(|_| commented)));
        list.push(json!({"campaign": m.id, "experiment": m.experiment, "device": m.device, "planned": m.plan.order.len(),
            "stored": state.stored, "failed": state.failed, "state": state.text(), "folder": campaign.path(), "comments": comments, "shard": m.shard.map(|s| s.to_string()),
            "merged_from": m.origins.iter().map(|o| &o.campaign).collect::<Vec<_>>()}));
    }
    if context.arguments.json {
        output::json(&json!({"schema": 1, "campaigns": list}));
    } else if let (true, Some(tag)) = (campaigns.is_empty(), &a.tag) {
        output::note(format!("no stored campaign has the tag `{tag}`"));
    } else if campaigns.is_empty() {
        output::note("no campaign is stored yet");
        output::note("next: collo run quickstart");
    } else {
        output::result(table.render(output::width()).trim_end());
    }
    broken.iter().for_each(output::warning);
    left_alone(&foreign);
    Ok(exit::DONE)
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

/// Report the entries of `runs/` that are not readable campaigns.
pub fn left_alone(foreign: &[Foreign]) {
    for f in foreign {
        output::warning(format!("`{}` {}, left alone", shown(&f.path), f.reason));
    }
}

fn loaded(context: &Context<'_>) -> Result<(Project, Workloads), Diagnostics> {
    let project = context.project()?;
    let workloads = Workloads::load(&project.workloads())?;
    Ok((project, workloads))
}

fn experiments(context: &Context<'_>, a: &args::List) -> Ended {
    let (project, workloads) = loaded(context)?;
    let mut table =
        Table::new(&[("experiment", Align::Left), ("tags", Align::Left), ("what it measures", Align::Left)], 1).with_prose_last();
    let filter = a.tag.as_deref().map(TagFilter::parse).transpose()?;
    let mut list = Vec::new();
    let mut broken = Vec::new();
    for (path, experiment) in collo_plan::experiment::all(&project, &workloads, &Overrides::default())? {
        match experiment {
            Ok(e) if filter.as_ref().is_none_or(|filter| filter.selects(&e.tags)) => {
                table.values([Some(e.name.clone()), Some(e.tags.join(", ")), e.description.clone()]);
                list.push(json!({"experiment": e.name, "tags": e.tags, "description": e.description, "path": path}));
            }
            Ok(_) => {}
            Err(mistakes) => broken.push(mistakes),
        }
    }
    if context.arguments.json {
        output::json(&json!({"schema": 1, "experiments": list}));
    } else if let (true, Some(tag)) = (list.is_empty(), &a.tag) {
        output::note(format!("no experiment has the tag `{tag}`"));
    } else {
        output::result(table.render(output::width()).trim_end());
    }
    for mistakes in broken {
        output::failure(&mistakes);
    }
    Ok(exit::DONE)
}

fn workloads(context: &Context<'_>) -> Ended {
    let (_, workloads) = loaded(context)?;
    workload::list(context, &workloads)
}

/// Who can watch: nobody, collo itself, and the files of `observers/`.
fn observers(context: &Context<'_>) -> Ended {
    let observers = Observers::load(&context.project()?.observers());
    let mut table =
        Table::new(&[("observer", Align::Left), ("runs", Align::Left), ("lacks", Align::Left), ("what it is", Align::Left)], 1)
            .with_prose_last();
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
    if context.arguments.json {
        output::json(&json!({"schema": 1, "observers": list}));
    } else {
        output::result(table.render(output::width()).trim_end());
    }
    observers.broken().values().for_each(output::failure);
    Ok(exit::DONE)
}

const NOBODY: &str = "nobody, not even collo: what the others are compared with";
const COLLO: &str = "collo's own sampling, as the experiment says, or at a rate: `collo:100Hz`";

fn modes(context: &Context<'_>) -> Ended {
    let mut table =
        Table::new(&[("mode", Align::Left), ("syntax", Align::Left), ("how members share", Align::Left)], 1).with_prose_last();
    let mut list = Vec::new();
    for family in sharing::MODES {
        table.values([family.name.to_string(), family.examples.join("  "), family.about.to_string()].map(Some));
        list.push(json!({"mode": family.name, "examples": family.examples, "about": family.about}));
    }
    if context.arguments.json {
        output::json(&json!({"schema": 1, "modes": list}));
    } else {
        output::result(table.render(output::width()).trim_end());
    }
    Ok(exit::DONE)
}
