//! What verbs answer with, and the one writer of it.
//!
//! In: keys and values for programs, text for people. Out: with `--json` one object with the version of its form, else the text.
//! A verb that goes on for long prints what it does meanwhile itself, and answers at its end.

use collo_figures::document::{Present, Table};
use collo_text::{Diagnostics, Remark};
use serde::Serialize;
use serde_json::Value;

use crate::context::Context;
use crate::{exit, output};

/// The version of the form of all answers.
const SCHEMA: u32 = 1;

/// The keys of an answer with the version of its form.
#[derive(Serialize)]
struct Versioned<'a, T> {
    schema: u32,
    #[serde(flatten)]
    keys: &'a T,
}

/// A part of the text.
enum Part {
    Lines(String),
    /// One line, whatever it contains.
    Line(String),
    Bytes(Vec<u8>),
    Json(Value),
    Hint(String),
    /// A note whose commands are for another machine.
    Elsewhere(String),
    Remark(Remark),
}

/// What a verb answers, and its exit code.
#[derive(Default)]
pub struct Answer {
    /// For programs; `None` if the verb has only text.
    object: Option<Value>,
    /// For people, in order.
    text: Vec<Part>,
    /// What comes after either.
    remarks: Vec<Remark>,
    pub code: u8,
}

/// The result of a verb.
pub type Answered = Result<Answer, Diagnostics>;

impl From<u8> for Answer {
    fn from(code: u8) -> Answer {
        Answer { code, ..Answer::default() }
    }
}

impl Answer {
    /// An answer with these keys.
    pub fn of(keys: impl Serialize) -> Answer {
        // A value in memory always is an object of JSON.
        let object = serde_json::to_value(Versioned { schema: SCHEMA, keys: &keys }).unwrap_or_default();
        Answer { object: Some(object), ..Answer::default() }
    }

    /// An object that has the version of its own form, in JSON whether that is asked for or not.
    pub fn json(object: Value) -> Answer {
        Answer { text: vec![Part::Json(object.clone())], object: Some(object), ..Answer::default() }
    }

    /// A list under its key, and its table, or what is noted in place of an empty one.
    pub fn list(key: &str, rows: &[impl Serialize], table: &Table, none: Option<String>) -> Answer {
        let mut answer = Answer::of(serde_json::json!({ key: rows }));
        match none.filter(|_| rows.is_empty()) {
            Some(none) => answer.note(none),
            None => answer.table(table),
        }
        answer
    }

    /// A document that has a form of its own: only what is asked for of it is made.
    pub fn either(context: &Context<'_>, object: impl FnOnce() -> Value, text: impl FnOnce(usize) -> String) -> Answer {
        let mut answer = Answer::from(exit::DONE);
        match context.arguments.json {
            true => answer.object = Some(object()),
            false => answer.lines(text(output::width()).trim_end()),
        }
        answer
    }

    /// A document as it is presented, its commands as the user would type them.
    pub fn present(context: &Context<'_>, document: &impl Present) -> Answer {
        Answer::either(context, || document.json(), |width| output::as_typed(&document.text(width)).into_owned())
    }

    /// Its lines for people, without notes, hints and remarks; its object, if only that was asked for.
    pub fn plain(&self) -> String {
        if let (true, Some(object)) = (self.text.is_empty(), &self.object) {
            return object.to_string();
        }
        let lines = self.text.iter().filter_map(|part| match part {
            Part::Lines(text) | Part::Line(text) => Some(text.as_str()),
            Part::Bytes(_) | Part::Json(_) | Part::Hint(_) | Part::Elsewhere(_) | Part::Remark(_) => None,
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// The keys for programs; `None` if the verb has only text.
    pub fn keys(&self) -> Option<&Value> {
        self.object.as_ref()
    }

    /// Set an object that has the version of its own form.
    pub fn object(&mut self, object: Value) {
        self.object = Some(object);
    }

    /// Lines of text, whose untrusted parts stay within one line each.
    pub fn lines(&mut self, text: impl Into<String>) {
        self.text.push(Part::Lines(text.into()));
    }

    pub fn line(&mut self, text: impl Into<String>) {
        self.text.push(Part::Line(text.into()));
    }

    pub fn table(&mut self, table: &Table) {
        self.lines(table.render(output::width()).trim_end());
    }

    pub fn bytes(&mut self, bytes: Vec<u8>) {
        self.text.push(Part::Bytes(bytes));
    }

    /// A note beside the text.
    pub fn note(&mut self, text: impl Into<String>) {
        self.text.push(Part::Remark(Remark::Note(text.into())));
    }

    /// A note beside the text whose commands are for another machine: they are typed as they stand.
    pub fn elsewhere(&mut self, text: impl Into<String>) {
        self.text.push(Part::Elsewhere(text.into()));
    }

    /// A hint beside the text.
    pub fn hint(&mut self, text: impl Into<String>) {
        self.text.push(Part::Hint(text.into()));
    }

    /// A warning or a failure beside the text.
    pub fn beside(&mut self, remark: Remark) {
        self.text.push(Part::Remark(remark));
    }

    /// What stands on stderr after text and object alike.
    pub fn after(&mut self, remarks: impl IntoIterator<Item = Remark>) {
        self.remarks.extend(remarks);
    }

    /// What failed of the answer, after text and object alike.
    pub fn failed<'a>(&mut self, failures: impl IntoIterator<Item = &'a Diagnostics>) {
        self.after(failures.into_iter().cloned().map(Remark::Failure));
    }

    /// That it ends with a failure, after text and object alike.
    pub fn fails(&mut self, failure: Diagnostics) {
        self.code = failure.class().code();
        self.failed([&failure]);
    }

    /// Print it as the command line asks; returns its exit code.
    pub fn print(self, context: &Context<'_>) -> u8 {
        match self.object.filter(|_| context.arguments.json) {
            Some(object) => output::json(&object),
            None => self.text.into_iter().for_each(Part::print),
        }
        self.remarks.iter().for_each(output::remark);
        self.code
    }
}

impl Part {
    fn print(self) {
        match self {
            Part::Lines(text) => output::result(text),
            Part::Line(text) => output::line(text),
            Part::Bytes(bytes) => output::bytes(&bytes),
            Part::Json(object) => output::json(&object),
            Part::Hint(text) => output::hint(text),
            Part::Elsewhere(text) => output::elsewhere(text),
            Part::Remark(remark) => output::remark(&remark),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_begins_with_the_version_of_its_form_and_keeps_the_order_of_its_keys() {
        let of = |answer: Answer| answer.object.map(|object| object.to_string());
        assert_eq!(of(Answer::of(json!({"b": 0.1, "a": null}))).as_deref(), Some(r#"{"schema":1,"b":0.1,"a":null}"#));
        let list = Answer::list("gpus", &[json!({"gpu": "a"})], &Table::new(&["gpu"], 1), None);
        assert_eq!(of(list).as_deref(), Some(r#"{"schema":1,"gpus":[{"gpu":"a"}]}"#));
        assert_eq!(of(Answer::from(exit::FAILED)), None);
    }
}
