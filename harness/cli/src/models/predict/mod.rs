//! `collo predict`: what a workload, or each cell of an experiment, will need of a GPU, before it is run.

mod alone;
mod experiment;
mod serving;
mod workload;

use collo_plan::workload::Workloads;

use crate::args;
use crate::context::{Context, Ended};

pub fn run(context: &Context<'_>, a: &args::Predict) -> Ended {
    let project = context.project()?;
    let workloads = Workloads::load(&project.workloads())?;
    // A workload's name goes first; an experiment of the same name has a path.
    let is_path = a.name.contains('/') || a.name.ends_with(".toml");
    let is_experiment = is_path || project.experiments().join(format!("{}.toml", a.name)).is_file();
    match workloads.get(&a.name).filter(|_| !is_path) {
        None if is_experiment => experiment::run(context, a, &project, &workloads),
        _ => workload::run(context, a, &project, &workloads),
    }
}
