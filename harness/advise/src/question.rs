//! What `collo advise` is asked: a task, and cards as they are seen. In: JSON. Out: a question in which nothing contradicts itself.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use collo_predict::{JsonKind, read_json};
use collo_text::{Diagnostic, Source, quoted};
use serde::Deserialize;
use serde_json::Value as Json;

const KIND: JsonKind =
    JsonKind { name: "a question of `collo advise`", way_out: "`collo help advising` has one of each kind", newest_schema: 1 };

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    #[serde(default = "one")]
    schema: u32,
    /// A policy by its label.
    #[serde(default = "default_policy")]
    pub policy: String,
    /// Readings older than this do not count.
    pub window_s: Option<f64>,
    pub task: AskedTask,
    pub cards: Vec<SeenCard>,
}

/// A task that is to be placed, or that runs on a card already. What is not given is taken from the project's reports.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskedTask {
    pub id: Option<String>,
    /// A workload of the project.
    pub workload: Option<String>,
    #[serde(default)]
    pub settings: BTreeMap<String, Json>,
    /// On so many cards at once; of a task that runs, 1.
    #[serde(default = "one")]
    pub cards: u32,
    /// What its process holds of a card.
    pub memory_bytes: Option<u64>,
    /// Alone on the card, each.
    pub sm_active_ratio: Option<f64>,
    pub gpu_utilization_ratio: Option<f64>,
    pub step_s: Option<f64>,
}

/// A whole GPU, with what was read of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeenCard {
    pub id: String,
    pub node: Option<String>,
    /// A model of `collo list gpus`, or the name that the driver gives it.
    pub gpu: String,
    #[serde(default)]
    pub simulated: bool,
    #[serde(default)]
    pub sharing: SharedBy,
    /// By default that of the model.
    pub memory_bytes: Option<u64>,
    /// Kept free for what drivers and contexts use outside of any estimate.
    #[serde(default)]
    pub reserve_bytes: u64,
    pub free_bytes: Option<u64>,
    /// Means over the window.
    pub sm_active_ratio: Option<f64>,
    pub sm_occupancy_ratio: Option<f64>,
    pub dram_active_ratio: Option<f64>,
    /// How long ago it was read.
    #[serde(default)]
    pub age_s: f64,
    #[serde(default)]
    pub tasks: Vec<AskedTask>,
}

/// How tasks share a card. A partitioned one is another matter: which instance fits is for its layout to say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SharedBy {
    #[default]
    Naive,
    Mps,
}

fn default_policy() -> String {
    "magm:sm=80%".into()
}

fn one() -> u32 {
    1
}

impl SharedBy {
    pub fn as_str(self) -> &'static str {
        match self {
            SharedBy::Naive => "naive",
            SharedBy::Mps => "mps",
        }
    }
}

impl Question {
    pub fn read(source: &Arc<Source>) -> Result<Question, Diagnostic> {
        let question: Question = read_json(source, &KIND)?;
        question.check().map_err(|wrong| Diagnostic::new(format!("{}: {wrong}", source.name())))?;
        Ok(question)
    }

    fn check(&self) -> Result<(), String> {
        if self.schema != KIND.newest_schema {
            return Err(format!("its schema is {}, and this collo reads {}", self.schema, KIND.newest_schema));
        }
        if self.cards.is_empty() {
            return Err("`cards` is empty: there is nothing to choose from".into());
        }
        positive("window_s", self.window_s)?;
        let mut ids = BTreeSet::new();
        for card in &self.cards {
            let at = format!("card {}", quoted(&card.id));
            if !ids.insert(&card.id) {
                return Err(format!("{at} is there twice"));
            }
            card.check().map_err(|wrong| format!("{at}: {wrong}"))?;
        }
        self.task.check()
    }
}

impl SeenCard {
    fn check(&self) -> Result<(), String> {
        let ratios = [
            ("sm_active_ratio", self.sm_active_ratio),
            ("sm_occupancy_ratio", self.sm_occupancy_ratio),
            ("dram_active_ratio", self.dram_active_ratio),
        ];
        ratios.into_iter().try_for_each(|(key, value)| ratio(key, value))?;
        if !(self.age_s >= 0.0 && self.age_s.is_finite()) {
            return Err(format!("`age_s` is {}, not a number of seconds", self.age_s));
        }
        if let Some((free, all)) = self.free_bytes.zip(self.memory_bytes).filter(|(free, all)| free > all) {
            return Err(format!("`free_bytes` {free} is more than `memory_bytes` {all}"));
        }
        self.tasks.iter().try_for_each(AskedTask::check)?;
        match self.tasks.iter().find(|task| task.cards != 1) {
            Some(task) => {
                Err(format!("{} runs on {} cards: give it with each of them, and without `cards`", task.name(), task.cards))
            }
            None => Ok(()),
        }
    }
}

impl AskedTask {
    pub fn name(&self) -> String {
        let known = self.id.as_deref().or(self.workload.as_deref());
        known.map_or_else(|| "a task without `id` and `workload`".into(), |name| format!("task {}", quoted(name)))
    }

    fn check(&self) -> Result<(), String> {
        let of = |checked: Result<(), String>| checked.map_err(|wrong| format!("{}: {wrong}", self.name()));
        of(ratio("sm_active_ratio", self.sm_active_ratio))?;
        of(ratio("gpu_utilization_ratio", self.gpu_utilization_ratio))?;
        of(positive("step_s", self.step_s))?;
        if self.workload.is_none() && !self.settings.is_empty() {
            return of(Err("`settings` are those of a `workload`, and none is given".into()));
        }
        match (self.cards, self.memory_bytes) {
            (0, _) => of(Err("`cards` is 0".into())),
            (_, Some(0)) => of(Err("`memory_bytes` is 0: leave it out if it is not known".into())),
            _ => Ok(()),
        }
    }
}

fn ratio(key: &str, value: Option<f64>) -> Result<(), String> {
    match value {
        Some(value) if !(0.0..=1.0).contains(&value) => Err(format!("`{key}` is {value}, not from 0 to 1")),
        _ => Ok(()),
    }
}

fn positive(key: &str, value: Option<f64>) -> Result<(), String> {
    match value {
        Some(value) if !(value > 0.0 && value.is_finite()) => Err(format!("`{key}` is {value}, not above 0")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> String {
        Question::read(&Source::file("question.json", text)).expect_err("it is wrong").to_string()
    }

    #[test]
    fn a_question_that_contradicts_itself_is_refused_by_its_place() {
        let of_card = |keys: &str| format!(r#"{{"task": {{}}, "cards": [{{"id": "a", "gpu": "a100-40gb"{keys}}}]}}"#);
        let refused = |keys: &str| wrong(&of_card(keys));
        assert!(refused(r#", "sm_active_ratio": 80"#).contains("card `a`: `sm_active_ratio` is 80, not from 0 to 1"));
        assert!(refused(r#", "memory_bytes": 1, "free_bytes": 2"#).contains("`free_bytes` 2 is more than `memory_bytes` 1"));
        assert!(refused(r#", "tasks": [{"id": "t", "cards": 2}]"#).contains("task `t` runs on 2 cards"));
        assert!(refused(r#", "sharing": "mig""#).contains("unknown variant `mig`"));
        assert!(wrong(r#"{"schema": 2, "task": {}, "cards": []}"#).contains("its schema is 2, and this collo reads 1"));
        assert!(wrong(r#"{"task": {}, "cards": []}"#).contains("there is nothing to choose from"));
        assert!(wrong(r#"{"task": {"memory_bytes": 0}, "cards": [{"id": "a", "gpu": "l4"}]}"#).contains("leave it out"));
        assert!(wrong("{").contains("not a question of `collo advise`"));
        Question::read(&Source::file("question.json", of_card(""))).expect("it is right");
    }
}
