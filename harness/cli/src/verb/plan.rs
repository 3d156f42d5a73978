//! `collo plan`: the cells of an experiment, without touching anything.

use collo_measure::Workloads;

use super::{Context, Ended};
use crate::{args, exit, plan_text, say};

pub fn run(context: &Context<'_>, a: &args::Plan) -> Ended {
    let project = context.project()?;
    let workloads = Workloads::load(&project.workloads())?;
    let mut code = exit::DONE;
    for experiment in super::experiments(&project, &workloads, a.name.as_deref(), a.tag.as_deref())? {
        experiment.warnings.iter().for_each(say::warning);
        let planned = super::planned(experiment, &a.selection)?;
        if context.arguments.json {
            say::json(&planned.plan.json());
        } else {
            say::result(plan_text::text(&planned.plan, say::width()).trim_end());
            if a.order {
                say::result(plan_text::order(&planned.plan, say::width()).trim_end());
            }
            let condition = planned.selection.as_ref().map(|s| format!(" --where '{}'", s.text())).unwrap_or_default();
            say::remark(format!("{}{condition}", plan_text::next(&planned.plan).trim_end()));
        }
        if planned.plan.record.order.is_empty() {
            code = exit::MACHINE;
        }
    }
    Ok(code)
}
