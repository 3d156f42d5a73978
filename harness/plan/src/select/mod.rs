//! Selects cells by an expression over their axes: `sharing == "naive" && degree <= 2`.
//!
//! In: a text, and the axes of a cell by name. Out: whether the cell is selected, or what is wrong with the text. It knows
//! values, not what the axes mean.

mod parse;

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use collo_store::AfterMeasured;
use collo_text::{Diagnostic, Source, nearest, quoted};
use regex::Regex;
use serde_json::Value as Json;

use crate::sharing;
use collo_gpus::mig::GpuModel;
use collo_text::fields::{listed, listed_all};

/// A condition on a cell.
#[derive(Debug, Clone)]
pub struct Expression {
    source: Arc<Source>,
    condition: Condition,
}

#[derive(Debug, Clone)]
enum Condition {
    All(Vec<Condition>),
    Any(Vec<Condition>),
    Not(Box<Condition>),
    Test(Test),
}

/// An axis compared with a value, or `baseline` by itself.
#[derive(Debug, Clone)]
struct Test {
    axis: String,
    axis_span: Range<usize>,
    value_span: Range<usize>,
    against: Against,
}

#[derive(Debug, Clone)]
enum Against {
    True,
    Compared(Comparison, Json),
    OneOf(Vec<Json>),
    Matches(Regex),
}

impl Against {
    /// The texts that a value is compared with.
    fn texts(&self) -> impl Iterator<Item = &str> {
        let values = match self {
            Against::Compared(_, value) => std::slice::from_ref(value),
            Against::OneOf(values) => values,
            Against::True | Against::Matches(_) => &[],
        };
        values.iter().filter_map(Json::as_str)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    AtMost,
    More,
    AtLeast,
}

/// The selected cells of an experiment.
#[derive(Debug, Clone)]
pub enum Selection {
    /// Those satisfying a condition.
    Where(Expression),
    /// Those with these labels.
    Cells(BTreeSet<String>),
}

impl Selection {
    /// The text typed, or the labels as one would type them.
    pub fn text(&self) -> String {
        match self {
            Selection::Where(condition) => condition.text().to_string(),
            Selection::Cells(labels) => {
                let quote = |label: &String| if label.contains('"') { '\'' } else { '"' };
                let written: Vec<String> = labels.iter().map(|label| format!("{0}{label}{0}", quote(label))).collect();
                format!("cell in [{}]", written.join(", "))
            }
        }
    }

    /// Let shares of a GPU mean what they do in an experiment: the profiles of this model.
    pub fn resolve_shares(&mut self, gpu: &GpuModel) {
        match self {
            Selection::Where(condition) => condition.resolve_shares(gpu),
            Selection::Cells(labels) => *labels = labels.iter().map(|label| sharing::resolve_shares(label, gpu)).collect(),
        }
    }

    /// Check that every axis in it exists. `settings` are the names beyond [`AXES`].
    pub fn check(&self, settings: &BTreeSet<String>) -> Result<(), Diagnostic> {
        match self {
            Selection::Where(condition) => condition.check(settings),
            Selection::Cells(_) => Ok(()),
        }
    }

    /// Whether a cell with these axes is selected.
    pub fn holds(&self, axis: &dyn Fn(&str) -> Option<Json>) -> bool {
        match self {
            Selection::Where(condition) => condition.holds(axis),
            Selection::Cells(labels) => axis("cell").as_ref().and_then(Json::as_str).is_some_and(|label| labels.contains(label)),
        }
    }
}

/// The axes that every cell has; settings come on top.
pub const AXES: [&str; 8] = ["workload", "sharing", "degree", "batch_size", "baseline", "after_measured", "observe", "cell"];

impl Expression {
    /// Read an expression given as an argument, `--where` for example.
    pub fn parse(argument: &str, text: &str) -> Result<Expression, Diagnostic> {
        Expression::read(&Source::argument(argument, text))
    }

    pub fn read(source: &Arc<Source>) -> Result<Expression, Diagnostic> {
        Ok(Expression { source: source.clone(), condition: parse::condition(source, &parse::OF_AXES)? })
    }

    /// One whose names are tags, as an argument has it.
    pub fn of_tags(argument: &str, text: &str) -> Result<Expression, Diagnostic> {
        let source = Source::argument(argument, text);
        let condition = parse::condition(&source, &parse::OF_TAGS)?;
        Ok(Expression { source, condition })
    }

    pub fn text(&self) -> &str {
        self.source.text()
    }

    /// Check that every axis in it exists. `settings` are the names beyond [`AXES`].
    pub fn check(&self, settings: &BTreeSet<String>) -> Result<(), Diagnostic> {
        let mut tests = Vec::new();
        collect(&self.condition, &mut tests);
        for test in tests {
            let known: Vec<&str> =
                AXES.into_iter().chain(settings.iter().map(String::as_str).filter(|s| !AXES.contains(s))).collect();
            if !known.contains(&test.axis.as_str()) {
                let mistake =
                    Diagnostic::new(format!("unknown axis {}", quoted(&test.axis))).at(&self.source, test.axis_span.clone());
                return Err(match nearest(&test.axis, known.iter().copied()) {
                    Some(near) => mistake.note(format!("did you mean `{near}`?")),
                    None => mistake.hint(format!("axes are {}", listed_all(&known))),
                });
            }
            self.check_type(test)?;
        }
        Ok(())
    }

    /// The fixed axes have fixed types; a comparison with another type would silently never be true.
    fn check_type(&self, test: &Test) -> Result<(), Diagnostic> {
        let (is, fits): (&str, fn(&Json) -> bool) = match test.axis.as_str() {
            "degree" | "batch_size" => ("a number", Json::is_number),
            "baseline" => ("`true` or `false`", Json::is_boolean),
            "workload" | "sharing" | "after_measured" | "observe" | "cell" => ("a quoted string", Json::is_string),
            _ => return Ok(()),
        };
        let wrong = match &test.against {
            Against::True => is != "`true` or `false`",
            Against::Compared(_, value) => !fits(value),
            Against::OneOf(values) => !values.iter().all(fits),
            Against::Matches(_) => is != "a quoted string",
        };
        let mistake = |what: String| Diagnostic::new(what).at(&self.source, test.value_span.clone());
        if wrong {
            return Err(mistake(format!("`{}` is {is}", test.axis)));
        }
        // Another word would silently never hold.
        if test.axis == "after_measured"
            && let Some(word) = test.against.texts().find(|word| AfterMeasured::parse(word).is_none())
        {
            return Err(mistake(format!("unknown after_measured {}", quoted(word)))
                .note(format!("one of {}", listed(AfterMeasured::WORDS))));
        }
        Ok(())
    }

    /// Replace shares of a GPU in modes and cells by the profiles of this model; its text stays as it was typed.
    pub fn resolve_shares(&mut self, gpu: &GpuModel) {
        self.condition.resolve_shares(gpu);
    }

    /// Whether a cell with these axes is selected. An axis that a cell lacks equals nothing.
    pub fn holds(&self, axis: &dyn Fn(&str) -> Option<Json>) -> bool {
        self.condition.holds(axis)
    }
}

fn collect<'a>(condition: &'a Condition, tests: &mut Vec<&'a Test>) {
    match condition {
        Condition::All(parts) | Condition::Any(parts) => parts.iter().for_each(|part| collect(part, tests)),
        Condition::Not(part) => collect(part, tests),
        Condition::Test(test) => tests.push(test),
    }
}

impl Condition {
    fn resolve_shares(&mut self, gpu: &GpuModel) {
        let test = match self {
            Condition::All(parts) | Condition::Any(parts) => return parts.iter_mut().for_each(|part| part.resolve_shares(gpu)),
            Condition::Not(part) => return part.resolve_shares(gpu),
            Condition::Test(test) if ["sharing", "cell"].contains(&test.axis.as_str()) => test,
            Condition::Test(_) => return,
        };
        let values = match &mut test.against {
            Against::Compared(_, value) => std::slice::from_mut(value),
            Against::OneOf(values) => values,
            Against::True | Against::Matches(_) => return,
        };
        for value in values {
            if let Json::String(label) = value {
                *label = sharing::resolve_shares(label, gpu);
            }
        }
    }

    fn holds(&self, axis: &dyn Fn(&str) -> Option<Json>) -> bool {
        match self {
            Condition::All(parts) => parts.iter().all(|part| part.holds(axis)),
            Condition::Any(parts) => parts.iter().any(|part| part.holds(axis)),
            Condition::Not(part) => !part.holds(axis),
            Condition::Test(test) => test.holds(axis(&test.axis)),
        }
    }
}

impl Test {
    fn holds(&self, found: Option<Json>) -> bool {
        match &self.against {
            Against::True => found == Some(Json::Bool(true)),
            Against::OneOf(values) => values.iter().any(|value| found.as_ref().is_some_and(|f| equal(&self.axis, f, value))),
            Against::Matches(pattern) => found.as_ref().and_then(Json::as_str).is_some_and(|text| pattern.is_match(text)),
            Against::Compared(comparison, value) => {
                let Some(found) = &found else { return *comparison == Comparison::NotEqual };
                let order = || match (found.as_f64(), value.as_f64()) {
                    (Some(a), Some(b)) => a.partial_cmp(&b),
                    _ => Some(found.as_str()?.cmp(value.as_str()?)),
                };
                match comparison {
                    Comparison::Equal => equal(&self.axis, found, value),
                    Comparison::NotEqual => !equal(&self.axis, found, value),
                    Comparison::Less => order().is_some_and(|o| o.is_lt()),
                    Comparison::AtMost => order().is_some_and(|o| o.is_le()),
                    Comparison::More => order().is_some_and(|o| o.is_gt()),
                    Comparison::AtLeast => order().is_some_and(|o| o.is_ge()),
                }
            }
        }
    }
}

fn equal(axis: &str, found: &Json, value: &Json) -> bool {
    match (found.as_f64(), value.as_f64()) {
        (Some(a), Some(b)) => a == b,
        // The study's word for naive is understood here as everywhere.
        _ if axis == "sharing" && value.as_str() == Some("streams") => found.as_str() == Some("naive"),
        _ => found == value,
    }
}

#[cfg(test)]
mod tests;
