//! `collo trace`: lists and shows traces, and makes them of the logs, tables and scripts of others. It plays none: `collo run` does.

mod show;
mod write;

use collo_figures::document::Table;
use collo_plan::traces;
use collo_text::units::clock;
use collo_text::{Diagnostics, shown};
use serde_json::json;

use crate::answer::{Answer, Answered};
use crate::args::{self, TraceVerb};
use crate::context::Context;

pub fn run(context: &Context<'_>, a: &args::Trace) -> Answered {
    match &a.what {
        TraceVerb::List => list(context),
        TraceVerb::Show { name, order, cards, scale } => show::show(context, name, *order, *cards, scale),
        TraceVerb::Make { .. } => write::make(context, &a.what),
        TraceVerb::Import { .. } => write::import(context, &a.what),
    }
}

/// All of them; `collo list traces` is the same.
pub fn list(context: &Context<'_>) -> Answered {
    let folder = context.project()?.traces();
    let mut table = Table::new(&["trace", "#tasks", "#arrivals", ""], 1).with_prose_last();
    let (mut list, mut broken) = (Vec::new(), Diagnostics::default());
    for (name, _) in traces::all(&folder) {
        match traces::find(&folder, &name) {
            Ok(trace) => {
                let last_s = trace.arrivals_ns().last().copied().unwrap_or_default() as f64 / 1e9;
                table.values([name.clone(), trace.tasks().to_string(), clock(last_s), trace.description.clone()].map(Some));
                list.push(json!({"trace": name, "tasks": trace.tasks(), "last_arrival_s": last_s,
                    "description": trace.description, "source": trace.source}));
            }
            Err(mistakes) => broken.extend(mistakes),
        }
    }
    let mut answer = Answer::list("traces", &list, &table, Some(format!("no trace in {}", shown(&folder))));
    if !broken.is_empty() {
        answer.fails(broken);
    }
    Ok(answer)
}
