//! Predictions compared with measurements. In: measured rows. Out: scores of every estimator, for each who measured; where rows are fitted,
//! each is predicted by a fit that has not seen its architecture.

mod binned;
mod company;
mod memnet;
mod memory;
mod utilisation;

use collo_figures::document::{Align, Table};
use collo_predict::Quantity;
use collo_prepare::memnet::MemnetOptions;
use collo_text::{Diagnostics, Remark};
use serde_json::{Value as Json, json};

use crate::caller::{Caller, Request};

/// Which predictions are compared with measurements, and how.
#[derive(Debug, Clone, Copy)]
pub struct Comparison<'a> {
    pub rows: Request<'a>,
    pub quantity: Quantity,
    /// Of memory: estimators as classifiers into bins of so many MiB, too.
    pub bins: &'a [u32],
    /// Of memory: GPUMemNet's ensembles, too.
    pub memnet: Option<MemnetOptions>,
    /// Of groups: the name of a predictor that is scored as it is.
    pub predictor: Option<&'a str>,
    /// Of utilisation: the regressors of HotCloud'20, too, by the median of so many shuffles.
    pub seeds: Option<u64>,
}

/// The scores, for people in their order, and for programs.
#[derive(Debug)]
pub struct Evaluation {
    pub shown: Vec<Shown>,
    pub value: Json,
}

/// A part of what people read.
#[derive(Debug)]
pub enum Shown {
    Lines(String),
    Table(Table),
    Remark(Remark),
}

/// The scores as they grow.
#[derive(Default)]
struct Scores {
    shown: Vec<Shown>,
    /// Those of each who measured.
    measured: Vec<Json>,
}

/// The scores of every estimator.
pub fn evaluate(caller: &dyn Caller, asked: &Comparison<'_>) -> Result<Evaluation, Diagnostics> {
    let mut scores = Scores::default();
    let further_keys = match asked.quantity {
        Quantity::Memory => memory::evaluate(caller, asked, &mut scores),
        Quantity::Utilisation => utilisation::evaluate(caller, asked, &mut scores),
        Quantity::Company => company::evaluate(caller, asked, &mut scores),
    }?;
    let Scores { shown, measured } = scores;
    let value = with(json!({"schema": 1, "quantity": asked.quantity, "measured": measured}), further_keys);
    Ok(Evaluation { shown, value })
}

impl Scores {
    fn lines(&mut self, text: impl Into<String>) {
        self.shown.push(Shown::Lines(text.into()));
    }

    /// Rows of one who measured, by a table.
    fn table(&mut self, table: Table) {
        self.shown.push(Shown::Table(table));
        self.lines("");
    }

    fn note(&mut self, text: impl Into<String>) {
        self.shown.push(Shown::Remark(Remark::Note(text.into())));
    }

    /// Those of one who measured.
    fn add(&mut self, value: Json) {
        self.measured.push(value);
    }
}

/// A line for each estimator: its name, numbers, and at the end a text if there is a head for one.
fn table(
    name: &str,
    numbers: &[&str],
    text: Option<&str>,
    kept: usize,
    lines: impl IntoIterator<Item = Vec<Option<String>>>,
) -> Table {
    let mut columns = vec![(name, Align::Left)];
    columns.extend(numbers.iter().map(|head| (*head, Align::Right)));
    columns.extend(text.map(|head| (head, Align::Left)));
    let mut table = Table::new(&columns, kept);
    lines.into_iter().for_each(|line| table.values(line));
    table
}

/// An object with further keys.
fn with(mut value: Json, more: Json) -> Json {
    if let (Some(object), Json::Object(more)) = (value.as_object_mut(), more) {
        object.extend(more);
    }
    value
}

/// A score, as it is in JSON, under the name of its estimator.
fn named(name: &str, score: serde_json::Result<Json>) -> Json {
    with(json!({"estimator": name}), score.unwrap_or_default())
}

/// What a person should know meanwhile.
fn note(caller: &dyn Caller, text: String) {
    caller.remark(Remark::Note(text));
}
