//! Where each setting of an experiment's workloads comes from: its axis, a preset, a recipe, or the default of its `workload.toml`.

use std::collections::BTreeSet;
use std::sync::Arc;

use collo_text::{Source, fields, shown};
use serde_json::Value as Json;

use super::explain::{Origin, written};
use super::{Axes, Experiment};
use crate::workload::{RECIPE, Workload, plain};
use collo_text::fields::{Fields, Located};

/// Every setting of every workload; under each recipe that some member has.
pub(super) fn explain(experiment: &Experiment, source: &Arc<Source>, fields: &Fields, all: &mut Vec<Origin>) {
    let of_matrix: BTreeSet<&str> = experiment.axes.workloads().map(|w| w.name.as_str()).collect();
    for (workload, recipes) in in_use(experiment) {
        let file = WorkloadFile::of(&workload);
        let several = recipes.len() > 1;
        for recipe in recipes {
            let of_recipe = recipe.as_ref().filter(|_| several).map(|r| format!(" ({})", plain(r))).unwrap_or_default();
            for (setting, value) in workload.under(recipe.as_ref()) {
                let axis = axis(fields, setting).filter(|_| of_matrix.contains(workload.name.as_str()));
                let (value, place) = match axis {
                    Some((span, found)) => (written(source, found), Some(source.line_of(span.start))),
                    None => (plain(value), file.place(&workload, setting, recipe.as_ref())),
                };
                all.push(Origin { key: format!("{}.{setting}{of_recipe}", workload.name), value, place });
            }
        }
    }
    for (g, group) in fields.tables("group").enumerate() {
        for (m, member) in group.tables("members").enumerate() {
            for (key, span, found) in member.in_order() {
                let key = format!("group[{g}].members[{m}].{key}");
                all.push(Origin { key, value: written(source, found), place: Some(source.line_of(span.start)) });
            }
        }
    }
}

/// The workloads in the order of the experiment, each with the recipes that its members have.
fn in_use(experiment: &Experiment) -> Vec<(Arc<Workload>, Vec<Option<Json>>)> {
    let mut all: Vec<(Arc<Workload>, Vec<Option<Json>>)> = Vec::new();
    let mut add = |workload: &Arc<Workload>, recipe: Option<Json>| {
        let recipe = recipe.or_else(|| workload.settings.get(RECIPE).cloned());
        match all.iter_mut().find(|(known, _)| known.name == workload.name) {
            Some((_, recipes)) if recipes.contains(&recipe) => {}
            Some((_, recipes)) => recipes.push(recipe),
            None => all.push((workload.clone(), vec![recipe])),
        }
    };
    let axes: Vec<&Axes> = std::iter::once(&experiment.axes).chain(&experiment.axes.zips).collect();
    let recipes: Vec<&Json> =
        axes.iter().flat_map(|axes| &axes.settings).filter(|(name, _)| name == RECIPE).flat_map(|(_, values)| values).collect();
    for workload in experiment.axes.workloads() {
        if recipes.is_empty() {
            add(workload, None);
        }
        recipes.iter().for_each(|recipe| add(workload, Some((*recipe).clone())));
    }
    for (member, _) in experiment.groups.iter().flat_map(|group| &group.members) {
        add(member.workload(), member.settings().get(RECIPE).cloned());
    }
    all
}

/// The axis that gives a setting, if one does.
fn axis<'a>(fields: &'a Fields, setting: &str) -> Option<(std::ops::Range<usize>, &'a Located)> {
    let mut tables = fields.table("axes").into_iter().chain(fields.tables("zip"));
    tables.find_map(|table| Some((table.key_span(setting)?, table.found(setting)?)))
}

/// A `workload.toml`, for the places of its settings.
struct WorkloadFile {
    source: Arc<Source>,
    fields: Fields,
}

impl WorkloadFile {
    fn of(workload: &Workload) -> WorkloadFile {
        let path = workload.folder.join("workload.toml");
        let text = collo_text::read_small_text(&path, fields::LARGEST).unwrap_or_default();
        let source = Source::file(shown(&path), text);
        let (fields, _) = fields::read(&source, Workload::KEYS);
        WorkloadFile { source, fields }
    }

    /// `workloads/small/workload.toml:12, recipe timm`.
    fn place(&self, workload: &Workload, setting: &str, recipe: Option<&Json>) -> Option<String> {
        let preset = workload.preset_of.as_ref().map(|_| workload.name.as_str());
        let of_preset = || self.fields.table("presets")?.table(preset?)?.table("settings")?.key_span(setting);
        let recipe = recipe.and_then(Json::as_str);
        let of_recipe = || self.fields.table("recipes")?.table(recipe?)?.key_span(setting);
        let (span, by) = of_preset()
            .map(|span| (span, format!(", preset {}", preset.unwrap_or_default())))
            .or_else(|| Some((of_recipe()?, format!(", recipe {}", recipe.unwrap_or_default()))))
            .or_else(|| Some((self.fields.table("settings")?.key_span(setting)?, String::new())))?;
        Some(self.source.line_of(span.start) + &by)
    }
}

#[cfg(test)]
mod tests {
    use crate::fixture::experiment;

    #[test]
    fn a_setting_without_a_file_is_a_default_and_an_axis_is_where_it_stands() {
        let e = experiment(
            "[axes]\nworkload = [\"tiny\", \"cooked\"]\nbatch_size = 64\n[[group]]\nmembers = [{ workload = \"small\", amp = \"bf16\" }]\n",
        );
        let rows: Vec<String> =
            e.explain().into_iter().map(|o| format!("{} = {} @ {}", o.key, o.value, o.place.unwrap_or_default())).collect();
        let has = |row: &str| assert!(rows.iter().any(|r| r == row), "{row}: {rows:#?}");
        has("tiny.batch_size = 64 @ experiments/mine.toml:5");
        has("tiny.images = 1024 @ ");
        has("cooked.workers = 0 @ ");
        has("group[0].members[0].amp = \"bf16\" @ experiments/mine.toml:7");
        has("small.batch_size = 32 @ ");
    }
}
