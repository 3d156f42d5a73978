//! Experiments by name or tag, and what is done with each of several.

use collo_plan::experiment::{Experiment, Overrides, TagFilter, tags_of};
use collo_plan::project::Project;
use collo_plan::workload::Workloads;
use collo_text::{Diagnostic, Diagnostics, ExitClass, shown};

use super::Ended;
use crate::{exit, output};

/// An experiment as the command line takes it: the name of its file, whatever name the file contains, or its path.
pub fn as_named(project: &Project, experiment: &Experiment) -> String {
    let stem = experiment.path.file_stem().and_then(|stem| stem.to_str());
    let is_of_project = |stem: &&str| project.experiments().join(format!("{stem}.toml")) == experiment.path;
    stem.filter(is_of_project).map_or_else(|| shown(&experiment.path), String::from)
}

/// Something by its name, or why it cannot be had.
pub type Named<T> = (String, Result<T, Diagnostics>);

/// Do something with each of several experiments; one that is wrong, or cannot be done here, stops none but itself, and the worst code
/// is the verb's.
pub fn each<T>(all: Vec<Named<T>>, mut once: impl FnMut(T) -> Ended) -> Ended {
    let several = all.len() > 1;
    let mut worst = exit::DONE;
    for (name, one) in all {
        match one.and_then(&mut once) {
            Ok(code) if matches!(code, exit::INTERRUPTED | exit::INCOMPLETE) => return Ok(code),
            Ok(code) => worst = worst.max(code),
            Err(wrong) if several && matches!(wrong.class(), ExitClass::Usage | ExitClass::Machine) => {
                output::failure(&wrong);
                output::warning(format!("`{name}` is left out"));
                worst = worst.max(wrong.class().code());
            }
            Err(wrong) => return Err(wrong),
        }
    }
    Ok(worst)
}

/// The experiments that a name or a tag stands for, sorted by name; with those whose file has errors and, as far as it can be read, the tag.
pub fn experiments(
    project: &Project,
    workloads: &Workloads,
    name: Option<&str>,
    tag: Option<&str>,
    overrides: &Overrides,
) -> Result<Vec<Named<Experiment>>, Diagnostics> {
    if let Some(name) = name {
        return Ok(vec![(name.to_string(), Ok(Experiment::resolve_with(project, name, workloads, overrides)?))]);
    }
    let Some(tag) = tag else {
        let all = collo_plan::experiment::all(project, workloads, overrides)?;
        let mut names: Vec<String> = all.iter().filter_map(|(path, _)| Some(path.file_stem()?.to_str()?.to_string())).collect();
        names.sort();
        let known =
            if names.is_empty() { "experiments/ has none".into() } else { format!("experiments are {}", names.join(", ")) };
        let wrong = Diagnostic::new("no experiment is named").caused_by(known);
        return Err(wrong
            .hint("name one, or several by a tag: `--tag TAG`; what each measures: `collo list experiments`")
            .into());
    };
    let filter = TagFilter::parse(tag)?;
    let mut found = Vec::new();
    for (path, experiment) in collo_plan::experiment::all(project, workloads, overrides)? {
        match experiment {
            Ok(experiment) if filter.selects(&experiment.tags) => found.push((experiment.name.clone(), Ok(experiment))),
            Err(wrong) if tags_of(&path).is_none_or(|tags| filter.selects(&tags)) => found.push((shown(&path), Err(wrong))),
            Ok(_) | Err(_) => {}
        }
    }
    if found.is_empty() {
        let all = "tags are in `collo list experiments`; several of them: `--tag 'gpu && quick'`";
        return Err(Diagnostic::new(format!("no experiment has the tag `{tag}`")).hint(all).into());
    }
    Ok(found)
}
