//! `collo plan`: the cells of an experiment, without touching anything.

use collo_figures::document::Table;
use collo_measure::session::{NotPredicted, PythonToPredict, Request, Session};
use collo_plan::experiment::{DeviceRequest, Experiment, Origin, Overrides};
use collo_plan::host::HostFile;
use collo_plan::project::Project;
use collo_plan::workload::Workloads;
use collo_prepare::consent::DescribeConsent;
use serde_json::json;

use super::{ending, steps};
use crate::answer::{Answer, Answered};
use crate::context::experiments::{as_named, each, experiments};
use crate::context::{Context, Ended};
use crate::shell::quoted;
use crate::{args, commands_text, exit, forecast_text, output, plan_text};

pub fn run(context: &Context<'_>, a: &args::Plan) -> Ended {
    let project = context.project()?;
    let workloads = Workloads::load(&project.workloads())?;
    let overrides = Overrides::of(&project, &a.selection.set)?;
    let experiments = experiments(&project, &workloads, a.name.as_deref(), a.tag.as_deref(), &overrides)?;
    each(experiments, |experiment| Ok(one(context, a, &project, experiment)?.print(context)))
}

fn one(context: &Context<'_>, a: &args::Plan, project: &Project, experiment: Experiment) -> Answered {
    experiment.warnings.iter().for_each(output::warning);
    let asked = DeviceRequest { gpu: a.gpu.clone(), planning: true, as_found: a.as_found };
    let python = a.python.clone().or_else(|| experiment.layers.host().python.clone());
    let selection = a.selection.parse()?;
    let describe = DescribeConsent::of(project, a.describe);
    let predict = !a.no_predict;
    let request = Request { selection, shard: a.shard, device: asked, python, predict, describe, ..Request::of(experiment) };
    let mut session = Session::plan(project, request)?;
    let why_not = steps::predicted(context, &mut session, PythonToPredict::Existing)?;
    let name = as_named(project, session.experiment());
    match why_not {
        Some(NotPredicted::NoPython) => {
            output::note(format!("memory is not predicted: Python is not set up; `collo predict {name}` does it"));
        }
        Some(NotPredicted::NotDescribed) => {
            let why = steps::undescribed("memory");
            output::note(why.what());
            why.way_out().into_iter().for_each(output::hint);
        }
        Some(NotPredicted::NotAsked | NotPredicted::NoPredictor) | None => {}
    }
    session.notes().iter().for_each(output::note);
    let (experiment, plan) = (session.experiment(), session.planned());
    let host = HostFile::of(project)?;
    // A GPU that is only planned for is in another machine.
    let is_here = session.facts().gpu().is_none_or(|gpu| gpu.at.is_some());
    let price = host.price.as_ref().filter(|_| is_here);
    let (mut answer, mut object) = (Answer::from(exit::DONE), plan.json());
    if a.explain {
        let all = explained(experiment, a);
        answer.lines(format!("{}\n", origins(&all)));
        object["origins"] = json!(all);
    }
    answer.lines(plan_text::text(plan, session.facts(), price, output::width()).trim_end());
    if experiment.search {
        let degrees = &experiment.axes.degree;
        let (least, most) = (degrees.iter().min().unwrap_or(&1), degrees.iter().max().unwrap_or(&1));
        answer.lines(format!(
            "search    the largest degree that fits, between {least} and {most}; above are the bounds, a run tries what it needs"
        ));
    }
    if a.order {
        answer.lines(plan_text::order(plan, session.facts(), output::width()).trim_end());
    }
    if a.commands {
        let steps = session.steps();
        if steps.is_err() && !context.arguments.json {
            std::mem::take(&mut answer).print(context);
        }
        let steps = steps?;
        answer.lines(commands_text::text(&steps).trim_end());
        object["steps"] = json!(steps);
    }
    if let Some(price) = price {
        let cost = forecast_text::price_of(plan, price);
        object["cost"] = json!(cost.map(|(amount, cells)| json!({"amount": amount, "currency": price.currency, "cells": cells})));
    }
    answer.object(object);
    // A model that was planned for cannot be run on.
    answer.note(match is_here {
        false => format!("this is a plan for another machine: `collo run` measures on one that has {}", plan.device.name),
        true => {
            let gpu = a.gpu.as_ref().filter(|_| session.facts().gpu().is_some());
            let gpu = gpu.map(|gpu| format!(" --gpu {}", quoted(gpu))).unwrap_or_default();
            let as_found = if a.as_found { " --as-found" } else { "" };
            let condition = session.selection().map(|s| format!(" --where {}", quoted(s.text()))).unwrap_or_default();
            let shard = a.shard.map(|s| format!(" --shard {s}")).unwrap_or_default();
            let set = ending::set(experiment);
            plan_text::next(
                plan,
                &format!("{}{gpu}{as_found}{set}", as_named(project, experiment)),
                &format!("{shard}{condition}"),
            )
        }
    });
    answer.code = match (plan.order.is_empty(), plan.refusals.is_empty()) {
        (false, _) => exit::DONE,
        (true, true) => exit::USAGE,
        (true, false) => exit::MACHINE,
    };
    Ok(answer)
}

/// Where every value comes from, with those of the command line.
fn explained(experiment: &Experiment, a: &args::Plan) -> Vec<Origin> {
    let mut all = experiment.explain();
    if let Some(gpu) = &a.gpu {
        all.retain(|origin| origin.key != "gpu");
        all.push(Origin { key: "gpu".into(), value: gpu.clone(), place: Some("--gpu".into()) });
    }
    all
}

/// Every value of the experiment, and the line or the default that it comes from.
fn origins(all: &[Origin]) -> String {
    let mut table = Table::new(&["key", "from", "value"], 3);
    let place = |origin: &Origin| origin.place.clone().unwrap_or_else(|| "default".into());
    let widest = |text: &dyn Fn(&Origin) -> usize| all.iter().map(text).max().unwrap_or(0);
    let taken = widest(&|o| o.key.chars().count()) + widest(&|o| place(o).chars().count()) + 4;
    for origin in all {
        // A long value goes on in further lines: none is cut.
        let lines = collo_text::wrapped(&origin.value, output::width().saturating_sub(taken).max(SHORTEST));
        for (i, line) in lines.into_iter().enumerate() {
            let first = |text: String| Some(if i == 0 { text } else { String::new() });
            table.values([first(origin.key.clone()), first(place(origin)), Some(line)]);
        }
    }
    table.render(output::width()).trim_end().to_string()
}

/// The least room for a value.
const SHORTEST: usize = 24;
