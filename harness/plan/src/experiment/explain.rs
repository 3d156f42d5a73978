//! Where each value of an experiment comes from: a line of a file, an option, or the default.

use std::sync::Arc;

use collo_text::Source;

use super::{Experiment, explain_settings};
use crate::host::{self, HostFile};
use collo_text::fields::{self, Fields, Located, Shape, Value, ValueKind};

/// One value and its origin.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Origin {
    /// `repetitions`, `axes.degree`.
    pub key: String,
    /// As it is, or would be, written.
    pub value: String,
    /// `experiments/mine.toml:4`, `--set`; absent for a default.
    pub place: Option<String>,
}

impl Experiment {
    /// Every value of the experiment in the order of the reference, then those of its workloads, then those of the machine.
    pub fn explain(&self) -> Vec<Origin> {
        let (source, fields, _) = self.layers.read();
        let mut all = Vec::new();
        explain(&source, &fields, Experiment::KEYS, "", &mut all);
        explain_settings::explain(self, &source, &fields, &mut all);
        if let Some(source) = self.layers.host().source() {
            let (fields, _) = fields::read(source, HostFile::KEYS);
            explain(source, &fields.without(host::OF_EXPERIMENTS), HostFile::KEYS, "", &mut all);
        }
        all
    }
}

/// The same of a text, as far as it can be read.
pub(super) fn of(source: &Arc<Source>) -> Vec<Origin> {
    let (fields, _) = fields::read(source, Experiment::KEYS);
    let mut all = Vec::new();
    explain(source, &fields, Experiment::KEYS, "", &mut all);
    all
}

fn explain(source: &Arc<Source>, fields: &Fields, shape: &Shape, within: &str, all: &mut Vec<Origin>) {
    // What the shape does not name is a setting, and stands behind what it names.
    let named: Vec<&str> = shape.keys.iter().map(|key| key.name).collect();
    let others = fields.in_order().into_iter().map(|(name, ..)| name).filter(|name| !named.contains(name));
    for name in named.iter().copied().chain(others) {
        let key = shape.keys.iter().find(|key| key.name == name);
        if let Some(inner) = key.and_then(|key| key.kind.shape()) {
            let empty = Fields::default();
            explain(source, fields.table(name).unwrap_or(&empty), &inner, &format!("{within}{name}."), all);
            continue;
        }
        if let Some(ValueKind::List(ValueKind::Table(inner))) = key.map(|key| &key.kind) {
            for (i, table) in fields.tables(name).enumerate() {
                // The members of a group are with the settings.
                explain(source, &table.clone().without(&["members"]), inner, &format!("{within}{name}[{i}]."), all);
            }
            continue;
        }
        let value = match (fields.found(name), key.and_then(|key| key.default)) {
            (Some(found), _) => written(source, found),
            (None, Some(default)) if within.is_empty() && name == "set_up_timeout" => {
                format!("{default}, or more if members take turns")
            }
            (None, Some(default)) => default.to_string(),
            (None, None) => continue,
        };
        all.push(Origin {
            key: format!("{within}{name}"),
            value,
            place: fields.key_span(name).map(|span| source.line_of(span.start)),
        });
    }
}

/// A value as it is written, in one line; after a number written as a sum, its result.
pub(super) fn written(source: &Source, found: &Located) -> String {
    let text = source.text().get(found.span.clone()).unwrap_or_default();
    let result = match &found.value {
        _ if !text.starts_with(['"', '\'']) || text.contains('%') => String::new(),
        Value::Whole(n) => format!(" = {n}"),
        Value::Number(n) => format!(" = {n}"),
        _ => String::new(),
    };
    text.split_whitespace().collect::<Vec<_>>().join(" ") + &result
}
