//! `collo predict`: what a workload, or each cell of an experiment, will need of a GPU, before it is run; and by which predictors.

mod alone;
mod caller;
mod evaluate;
mod experiment;
mod fit;
mod list;
mod serving;
mod workload;

use collo_plan::project::Project;
use collo_plan::workload::Workloads;
use collo_predict::Quantity;
use collo_text::Diagnostic;

use crate::answer::Answered;
use crate::args::{self, Evaluate, PredictVerb, PredictedQuantity};
use crate::context::Context;
use crate::output;

pub fn run(context: &Context<'_>, a: &args::Predict) -> Answered {
    let project = context.project()?;
    let workloads = Workloads::load(&project.workloads());
    let Some(verb) = &a.verb else { return target(context, a, &project, &workloads?) };
    let word = verb.as_str();
    if workloads.is_ok_and(|workloads| workloads.get(word).is_some()) || is_experiment(&project, word) {
        output::note(format!(
            "`{word}` is a verb here; to predict the workload or experiment `{word}`: `collo predict ./{word}`"
        ));
    }
    match verb {
        PredictVerb::List => list::list(context),
        PredictVerb::Show { name } => list::show(context, name),
        PredictVerb::Evaluate(options) => evaluate::evaluate(context, options),
        PredictVerb::Fit { rows, to } => fit::fit(context, rows, to),
    }
}

/// A workload's name goes first; an experiment of the same name has a path.
fn target(context: &Context<'_>, a: &args::Predict, project: &Project, workloads: &Workloads) -> Answered {
    let name = a.target();
    let is_path = name.contains('/') || name.ends_with(".toml");
    if PredictVerb::ALL.contains(&name) && workloads.get(name).is_none() && !is_experiment(project, name) {
        let what = Diagnostic::new(format!("neither a workload nor an experiment is called `{name}`"));
        return Err(what.hint(format!("the verb stands before every option: `collo predict {name}`")).into());
    }
    match workloads.get(name).filter(|_| !is_path) {
        None if is_path || is_experiment(project, name) => experiment::run(context, a, project, workloads),
        _ => workload::run(context, a, project, workloads),
    }
}

fn is_experiment(project: &Project, name: &str) -> bool {
    project.experiments().join(format!("{name}.toml")).is_file()
}

/// As asked for, else as the columns of the tables tell.
fn quantity(context: &Context<'_>, asked: &Evaluate) -> Result<Quantity, Diagnostic> {
    match asked.quantity {
        Some(PredictedQuantity::Memory) => Ok(Quantity::Memory),
        Some(PredictedQuantity::Utilisation) => Ok(Quantity::Utilisation),
        Some(PredictedQuantity::Company) => Ok(Quantity::Company),
        None => collo_laboratory::quantity::of(context, &asked.rows),
    }
}
