//! Workloads: the folders of `workloads/`, each with its `workload.toml`, and the presets in them.
//!
//! In: a folder. Out: workloads with their command, settings and forecast, and the mistakes in their files. It starts nothing.

pub mod adapters;
mod catalogue;
mod command;
mod edit;
mod keys;
mod limit;
mod read;
mod recipes;

use std::collections::BTreeMap;
use std::path::PathBuf;

use collo_store::MemberSpec;
use collo_text::{Diagnostic, fields, nearest, quoted};
use regex::Regex;
use serde_json::Value as Json;

pub use catalogue::Workloads;
pub use command::plain;
pub use edit::with_epochs;
pub use keys::{Requirement, Workload, WorkloadForecast};
pub use limit::{LIMIT_BATCHES, Limit, is_fraction};
pub use read::{is_name, is_setting_name};
pub use recipes::RECIPE;

/// Which Python runs a workload.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkloadPython {
    /// The one that collo provides, with torch.
    #[default]
    Torch,
    /// The system's `python3`.
    System,
    /// The workload's own: an interpreter, or the folder of an environment.
    Own(PathBuf),
}

/// How to read the epochs of a foreign script from its output.
#[derive(Debug, Clone)]
pub struct EpochsAdapter {
    /// With groups of [`adapters::GROUPS`].
    pub pattern: Regex,
    /// The preset that it is, if it is one.
    pub preset: Option<&'static adapters::Preset>,
    pub items: Option<u64>,
}

impl Workload {
    /// The words to run for a member, placeholders filled in.
    pub fn command_for(&self, member: &MemberSpec) -> Result<Vec<String>, Diagnostic> {
        self.filled(&self.command, &self.values(member)?)
    }

    /// The words that prepare the data of a member.
    pub fn prepare_for(&self, member: &MemberSpec) -> Result<Option<Vec<String>>, Diagnostic> {
        let values = self.values(member)?;
        self.prepare.as_ref().map(|words| self.filled(words, &values)).transpose()
    }

    /// The environment variables of a member.
    pub fn variables_for(&self, member: &MemberSpec) -> Result<BTreeMap<String, String>, Diagnostic> {
        let values = self.values(member)?;
        self.variables.iter().map(|(name, text)| Ok((name.clone(), self.fill(text, &values)?))).collect()
    }

    /// Every setting of a member by name.
    fn values(&self, member: &MemberSpec) -> Result<BTreeMap<String, Json>, Diagnostic> {
        let mut values = self.settings.clone();
        values.extend(member.settings.clone());
        values.extend(member.batch_size.map(|b| ("batch_size".to_string(), b.into())));
        match values.keys().find(|name| !self.settings.contains_key(*name)) {
            Some(unknown) => Err(self.unknown_setting(unknown)),
            None => Ok(values),
        }
    }

    fn filled(&self, words: &[String], values: &BTreeMap<String, Json>) -> Result<Vec<String>, Diagnostic> {
        let mut filled = Vec::new();
        for word in words {
            if word == command::ALL_OTHERS {
                filled.extend(command::options(words, values));
            } else {
                filled.push(self.fill(word, values)?);
            }
        }
        Ok(filled)
    }

    fn fill(&self, word: &str, values: &BTreeMap<String, Json>) -> Result<String, Diagnostic> {
        command::fill(word, values)
            .map_err(|name| Diagnostic::new(format!("`{{{name}}}` in the command of `{}` has no value", self.name)))
    }

    /// A setting that this workload does not have.
    pub fn unknown_setting(&self, setting: &str) -> Diagnostic {
        let mistake = Diagnostic::new(format!("workload `{}` has no setting {}", self.name, quoted(setting)));
        let known: Vec<&str> = self.settings.keys().map(String::as_str).collect();
        match nearest(setting, known.iter().copied()) {
            Some(near) => mistake.note(format!("did you mean `{near}`?")),
            None if known.is_empty() => mistake.note("it has none"),
            None => mistake.note(format!("it has {}", fields::listed_all(&known))),
        }
    }

    /// What is wrong with a value of a setting: it must be of its default's type.
    pub fn wrong_value(&self, setting: &str, value: &Json) -> Option<Diagnostic> {
        let Some(default) = self.settings.get(setting) else { return Some(self.unknown_setting(setting)) };
        if setting == LIMIT_BATCHES && default.is_number() && value.is_f64() && !Limit::is_share(setting, value) {
            let what = format!("`{setting}` of `{}` is a number of batches, or a share of the epoch between 0 and 1", self.name);
            return Some(Diagnostic::new(what).note("a number of batches is whole; 0 is the whole epoch"));
        }
        let is_number = default.is_number() && value.is_number();
        if type_word(default) == type_word(value) || is_number && (default.is_f64() || Limit::is_share(setting, value)) {
            return self.unknown_recipe(setting, value);
        }
        let what = format!("`{setting}` of `{}` must be {}, not {}", self.name, type_word(default), type_word(value));
        Some(Diagnostic::new(what).note(format!("its default is `{}`", plain(default))))
    }
}

fn type_word(value: &Json) -> &'static str {
    match value {
        Json::Bool(_) => "`true` or `false`",
        Json::Number(n) if n.is_f64() => "a fraction",
        Json::Number(_) => "a whole number",
        _ => "text",
    }
}

#[cfg(test)]
mod tests;
