//! Where each value of an experiment comes from: a line of its file, or the default.

use collo_store::Source;

use super::{Experiment, keys};
use crate::fields::{self, Fields, Shape, ValueKind};
use crate::shown::shown;

/// One value and its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// `repetitions`, `axes.degree`.
    pub key: String,
    /// As it is, or would be, written.
    pub value: String,
    /// `experiments/mine.toml:4`; absent for a default.
    pub place: Option<String>,
}

impl Experiment {
    /// Every value that the file or a default gives, in the order of the reference.
    pub fn explain(&self) -> Vec<Origin> {
        let source = Source::file(shown(&self.path), self.source.as_str());
        let (fields, _) = fields::read(&source, &keys::EXPERIMENT);
        let mut all = Vec::new();
        explain(&source, &fields, &keys::EXPERIMENT, "", &mut all);
        all
    }
}

fn explain(source: &Source, fields: &Fields, shape: &Shape, within: &str, all: &mut Vec<Origin>) {
    // What the shape does not name is a setting, and stands behind what it names.
    let named: Vec<&str> = shape.keys.iter().map(|key| key.name).collect();
    let others = fields.in_order().into_iter().map(|(name, ..)| name).filter(|name| !named.contains(name));
    for name in named.iter().copied().chain(others) {
        let key = shape.keys.iter().find(|key| key.name == name);
        if let Some(ValueKind::Table(inner)) = key.map(|key| &key.kind) {
            let empty = Fields::default();
            explain(source, fields.table(name).unwrap_or(&empty), inner, &format!("{within}{name}."), all);
            continue;
        }
        let written = fields.found(name).and_then(|found| source.text().get(found.span.clone()));
        let value = match (written, key.and_then(|key| key.default)) {
            (Some(text), _) => text.split_whitespace().collect::<Vec<_>>().join(" "),
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
