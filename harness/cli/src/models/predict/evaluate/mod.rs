//! Predictions compared with measurements. In: measured rows. Out: scores of every estimator, for each who measured; where rows are fitted,
//! each is predicted by a fit that has not seen its architecture.

mod binned;
mod company;
mod memnet;
mod memory;
mod utilisation;

use collo_figures::document::{Align, Table};
use collo_predict::Quantity;
use collo_text::Diagnostics;
use serde_json::{Value as Json, json};

use crate::args::EvaluateOptions;
use crate::context::{Context, Ended};
use crate::{exit, output};

/// Scores as they come: printed, or kept for one answer in JSON.
struct Scores {
    json: bool,
    measured: Vec<Json>,
}

/// What stands below the scores: keys of the answer in JSON, else notes.
struct Below {
    keys: Json,
    notes: Vec<String>,
}

pub fn evaluate(context: &Context<'_>, asked: &EvaluateOptions) -> Ended {
    let quantity = super::quantity(context, &asked.rows)?;
    let mut scores = Scores { json: context.arguments.json, measured: Vec::new() };
    let below: Result<Below, Diagnostics> = match quantity {
        Quantity::Memory => memory::evaluate(context, asked, &mut scores),
        Quantity::Utilisation => utilisation::evaluate(context, asked, &mut scores),
        Quantity::Company => company::evaluate(context, asked, &mut scores),
    };
    let Below { keys, notes } = below?;
    if scores.json {
        output::json(&with(json!({"schema": 1, "quantity": quantity, "measured": scores.measured}), keys));
    } else {
        notes.iter().for_each(output::note);
    }
    Ok(exit::DONE)
}

impl Scores {
    fn text(&self, text: &str) {
        if !self.json {
            output::result(text);
        }
    }

    fn table(&self, table: &Table) {
        self.text(&format!("{}\n", table.render(output::width()).trim_end()));
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
