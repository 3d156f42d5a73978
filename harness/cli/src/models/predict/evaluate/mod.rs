//! Predictions compared with measurements. In: measured rows. Out: scores of every estimator, for each who measured; where rows are fitted,
//! each is predicted by a fit that has not seen its architecture.

mod binned;
mod company;
mod memnet;
mod memory;
mod utilisation;

use collo_figures::document::{Align, Table};
use collo_predict::Quantity;
use serde_json::{Value as Json, json};

use crate::answer::{Answer, Answered};
use crate::args::EvaluateOptions;
use crate::context::Context;

/// The answer as it grows: for people, and for programs the scores of each who measured.
#[derive(Default)]
struct Scores {
    answer: Answer,
    measured: Vec<Json>,
}

pub fn evaluate(context: &Context<'_>, asked: &EvaluateOptions) -> Answered {
    let quantity = super::quantity(context, &asked.rows)?;
    let mut scores = Scores::default();
    let further_keys = match quantity {
        Quantity::Memory => memory::evaluate(context, asked, &mut scores),
        Quantity::Utilisation => utilisation::evaluate(context, asked, &mut scores),
        Quantity::Company => company::evaluate(context, asked, &mut scores),
    }?;
    let Scores { mut answer, measured } = scores;
    answer.object(with(json!({"schema": 1, "quantity": quantity, "measured": measured}), further_keys));
    Ok(answer)
}

impl Scores {
    /// Rows of one who measured, by a table.
    fn table(&mut self, table: &Table) {
        self.answer.table(table);
        self.answer.lines("");
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
