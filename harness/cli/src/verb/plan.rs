//! `collo plan`: the cells of an experiment, without touching anything.

use collo_measure::experiment::{DeviceRequest, Origin};
use collo_measure::{Experiment, Project, Request, Session, Workloads};
use collo_report::document::{Align, Table};
use serde_json::json;

use super::{Context, Ended};
use crate::{args, exit, output, plan_text};

pub fn run(context: &Context<'_>, a: &args::Plan) -> Ended {
    let project = context.project()?;
    let workloads = Workloads::load(&project.workloads())?;
    let experiments = super::experiments(&project, &workloads, a.name.as_deref(), a.tag.as_deref())?;
    super::each(experiments, |experiment| one(context, a, &project, experiment))
}

fn one(context: &Context<'_>, a: &args::Plan, project: &Project, experiment: Experiment) -> Ended {
    experiment.warnings.iter().for_each(output::warning);
    let asked = DeviceRequest { gpu: a.gpu.clone(), planning: true, as_found: a.as_found };
    let request = Request { selection: a.selection.parse()?, device: asked, ..Request::of(experiment) };
    let session = Session::plan(project, request)?;
    let (experiment, plan) = (session.experiment(), session.planned());
    if context.arguments.json {
        let mut json = plan.json();
        if a.explain {
            let value = |o: Origin| json!({"key": o.key, "value": o.value, "place": o.place});
            json["origins"] = experiment.explain().into_iter().map(value).collect();
        }
        output::json(&json);
    } else {
        if a.explain {
            output::result(format!("{}\n", origins(experiment)));
        }
        output::result(plan_text::text(plan, session.facts(), output::width()).trim_end());
        if experiment.search {
            let degrees = &experiment.axes.degree;
            let (least, most) = (degrees.iter().min().unwrap_or(&1), degrees.iter().max().unwrap_or(&1));
            output::result(format!(
                "search    the largest degree that fits, between {least} and {most}; above are the bounds, a run tries what it needs"
            ));
        }
        if a.order {
            output::result(plan_text::order(plan, output::width()).trim_end());
        }
        let condition = session.selection().map(|s| format!(" --where '{}'", s.text())).unwrap_or_default();
        // A model that was planned for cannot be run on.
        let gpu = a.gpu.as_ref().filter(|_| session.facts().gpu().is_some_and(|gpu| gpu.at.is_some()));
        let gpu = gpu.map(|gpu| format!(" --gpu {gpu}")).unwrap_or_default();
        let as_found = if a.as_found { " --as-found" } else { "" };
        let rest = format!("{gpu}{as_found}{condition}");
        let rest = if plan.cells.is_empty() { String::new() } else { rest };
        output::note(format!("{}{rest}", plan_text::next(plan).trim_end()));
    }
    Ok(if plan.order.is_empty() { exit::MACHINE } else { exit::DONE })
}

/// Every value of the experiment, and the line or the default that it comes from.
fn origins(experiment: &Experiment) -> String {
    let mut table = Table::new(&[("key", Align::Left), ("value", Align::Left), ("from", Align::Left)], 3).with_prose(1);
    for origin in experiment.explain() {
        table.values([Some(origin.key), Some(origin.value), Some(origin.place.unwrap_or_else(|| "default".into()))]);
    }
    table.render(output::width()).trim_end().to_string()
}
