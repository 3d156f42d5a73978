//! Recipes: one word for the settings of a whole regime, such as that of a published study.
//!
//! In: the tables `[recipes.NAME]` of a `workload.toml`. Out: every setting under each recipe, so that the plan, the stored
//! record and a comparison see the values in force. Defaults have the lowest precedence, then the recipe, then the preset, then
//! the experiment.

use std::collections::BTreeMap;
use std::sync::Arc;

use collo_text::{Diagnostic, Diagnostics, Source, fields, nearest, quoted};
use serde_json::Value as Json;

use super::read::given;
use super::{Workload, is_fraction};
use collo_text::fields::{Fields, Value};

/// The setting that names a recipe.
pub const RECIPE: &str = "recipe";

impl Workload {
    /// All settings under a recipe; without one, or under an unknown one, the defaults.
    pub fn under(&self, recipe: Option<&Json>) -> &BTreeMap<String, Json> {
        recipe.and_then(Json::as_str).and_then(|name| self.recipes.get(name)).unwrap_or(&self.settings)
    }

    /// A value of a setting, in the form of its default: so that `1` and `1.0` are one cell.
    pub fn as_default(&self, setting: &str, value: Json) -> Json {
        let fraction = self.settings.get(setting).is_some_and(|default| is_fraction(setting, default));
        if fraction { value.as_f64().map_or(value, Json::from) } else { value }
    }

    /// What is wrong with the name of a recipe.
    pub(super) fn unknown_recipe(&self, setting: &str, value: &Json) -> Option<Diagnostic> {
        let name =
            value.as_str().filter(|name| setting == RECIPE && !self.recipes.is_empty() && !self.recipes.contains_key(*name))?;
        let known: Vec<&str> = self.recipes.keys().map(String::as_str).collect();
        let note = match nearest(name, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("it has {}", fields::listed_all(&known)),
        };
        Some(Diagnostic::new(format!("workload `{}` has no recipe {}", self.name, quoted(name))).note(note))
    }

    /// Apply own settings over the defaults, and over those of every recipe.
    pub(super) fn cook(&mut self, own: BTreeMap<String, Json>) {
        for (name, settings) in &mut self.recipes {
            settings.extend(own.clone());
            settings.insert(RECIPE.into(), name.as_str().into());
        }
        let recipe = own.get(RECIPE).or_else(|| self.settings.get(RECIPE)).cloned();
        self.settings.extend(own);
        self.settings = self.under(recipe.as_ref()).clone();
    }
}

/// The recipes of a file, whose defaults were read before.
pub fn read(workload: &mut Workload, source: &Arc<Source>, fields: &Fields, mistakes: &mut Diagnostics) {
    let Some(table) = fields.table("recipes") else { return };
    let Some(usual) = workload.settings.get(RECIPE).and_then(Json::as_str).map(str::to_string) else {
        let what = Diagnostic::new("`recipes` without a setting `recipe` to choose one");
        let place = table.span.start..table.span.start + 1;
        mistakes.push(what.at(source, place).note("add `recipe = \"NAME\"` to `[settings]`: NAME is the name of the defaults"));
        return;
    };
    let mut recipes = BTreeMap::from([(usual.clone(), workload.settings.clone())]);
    for (name, span, found) in table.in_order() {
        let Value::Table(values) = &found.value else { continue };
        if let Some(at) = values.key_span(RECIPE) {
            mistakes.push(Diagnostic::new("a recipe cannot name another").at(source, at));
        }
        if name == usual {
            let what = Diagnostic::new(format!("the recipe `{name}` is already that of `[settings]`"));
            mistakes.push(what.at(source, span.clone()).note("leave it out, or rename it"));
        }
        let mut settings = workload.settings.clone();
        settings.extend(given(workload, Some(values), source, mistakes));
        settings.insert(RECIPE.into(), name.into());
        recipes.insert(name.to_string(), settings);
    }
    workload.recipes = recipes;
}
