//! JSON Schemas for editors, generated from the lists of keys that the readers use, so that the two always agree.

use serde_json::{Map, Value as Json, json};

use crate::experiment::Experiment;
use crate::host::HostFile;
use crate::observer::Observer;
use crate::workload::Workload;
use collo_gpus::GpuModel;
use collo_text::fields::{Shape, ValueKind};

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// The schema of `experiments/NAME.toml`.
pub fn experiment() -> Json {
    document("An experiment of collo", Experiment::KEYS, &[])
}

/// The schema of `workloads/NAME/workload.toml`.
pub fn workload() -> Json {
    document("A workload of collo", Workload::KEYS, &["command"])
}

/// The schema of `mig-profiles/NAME.toml`.
pub fn gpu() -> Json {
    document("A GPU model of collo, with MIG or without", GpuModel::KEYS, &[])
}

/// The schema of `traces/NAME.toml`.
pub fn trace() -> Json {
    document("Tasks that arrive, for collo to play", &collo_schedule::trace::TRACE, &[])
}

/// The schema of `observers/NAME.toml`.
pub fn observer() -> Json {
    document("A program that watches what collo measures", Observer::KEYS, &[])
}

/// The schema of `collo.toml`.
pub fn host() -> Json {
    document("A machine that collo measures on", HostFile::KEYS, &[])
}

fn document(title: &str, shape: &Shape, required: &[&str]) -> Json {
    let mut schema = json!({"$schema": DIALECT, "title": title});
    merge(&mut schema, table(shape));
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn merge(schema: &mut Json, more: Json) {
    if let (Json::Object(schema), Json::Object(more)) = (schema, more) {
        schema.extend(more);
    }
}

fn table(shape: &Shape) -> Json {
    let mut properties = Map::new();
    for key in shape.keys {
        let mut schema = json!({"description": key.about});
        merge(&mut schema, kind(&key.kind));
        if let Some(default) = key.default.and_then(|text| serde_json::from_str::<Json>(text).ok()) {
            schema["default"] = default;
        }
        properties.insert(key.name.to_string(), schema);
    }
    let others = shape.others.map_or(json!(false), kind);
    json!({"type": "object", "properties": properties, "additionalProperties": others})
}

/// A number, or a text that computes one; ranges do not apply to texts.
fn or_sum(mut number: Json) -> Json {
    number["type"] = json!([number["type"], "string"]);
    number["pattern"] = json!(r"^[-+*/()0-9._eE\s]+$");
    number
}

fn kind(of: &ValueKind) -> Json {
    match of {
        ValueKind::Text | ValueKind::Size => json!({"type": "string"}),
        // TOML's whole numbers end at 2⁶³.
        ValueKind::Whole(range) if *range.end() > i64::MAX as u64 => or_sum(json!({"type": "integer", "minimum": range.start()})),
        ValueKind::Whole(range) => or_sum(json!({"type": "integer", "minimum": range.start(), "maximum": range.end()})),
        ValueKind::Number(range) if range.end().is_infinite() => or_sum(json!({"type": "number", "minimum": range.start()})),
        ValueKind::Number(range) => or_sum(json!({"type": "number", "minimum": range.start(), "maximum": range.end()})),
        ValueKind::DurationOr(word) => {
            json!({"anyOf": [kind(&ValueKind::Duration), {"type": "string", "pattern": format!("^{word}")}]})
        }
        ValueKind::Duration => json!({"type": "string", "pattern": "^[0-9]+(\\.[0-9]+)?(ms|s|m|h)$"}),
        ValueKind::Ratio => {
            json!({"oneOf": [{"type": "string", "pattern": "^[0-9]+(\\.[0-9]+)?%$"}, {"type": "number", "minimum": 0, "maximum": 10}]})
        }
        ValueKind::Choice(words) => json!({"enum": words}),
        ValueKind::Setting => json!({"type": ["string", "number", "boolean"]}),
        ValueKind::OneOrMore(of) => json!({"oneOf": [kind(of), {"type": "array", "items": kind(of), "minItems": 1}]}),
        ValueKind::List(of) => json!({"type": "array", "items": kind(of)}),
        ValueKind::Axis(of, _) => {
            json!({"oneOf": [kind(of), {"type": "array", "items": kind(of), "minItems": 1, "uniqueItems": true}]})
        }
        ValueKind::Table(_) | ValueKind::Map(_) => of.shape().map(|shape| table(&shape)).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use collo_text::Source;

    use super::*;
    use collo_text::fields::read;

    fn agrees(schema: &Json, shape: &Shape, path: &str) {
        let properties = schema["properties"].as_object().expect("properties");
        for key in shape.keys {
            let described = &properties[key.name];
            assert_eq!(described["description"], key.about, "{path}{}", key.name);
            // The written default is a value that the reader takes, and the schema shows.
            if let Some(default) = key.default {
                assert!(!described["default"].is_null(), "{path}{}: the schema lacks the default", key.name);
                let text = format!("{} = {default}", key.name);
                let (_, mistakes) = read(&Source::file("default", text), shape);
                assert!(mistakes.is_empty(), "{path}{}: {mistakes}", key.name);
            }
        }
    }

    #[test]
    fn every_key_of_the_reader_is_in_the_schema_and_every_default_can_be_written() {
        let experiment = experiment();
        agrees(&experiment, Experiment::KEYS, "");
        for key in Experiment::KEYS.keys {
            if let ValueKind::Table(shape) = key.kind {
                agrees(&experiment["properties"][key.name], shape, key.name);
            }
        }
        agrees(&workload(), Workload::KEYS, "");
        agrees(&gpu(), GpuModel::KEYS, "");
        agrees(&observer(), Observer::KEYS, "");
        agrees(&host(), HostFile::KEYS, "");
        agrees(&trace(), &collo_schedule::trace::TRACE, "");
        agrees(&gpu()["properties"]["profiles"]["items"], collo_gpus::Profile::KEYS, "profiles");
    }

    #[test]
    fn an_editor_hears_of_unknown_keys_and_of_the_settings_among_the_axes() {
        let schema = experiment();
        assert_eq!(schema["additionalProperties"], false);
        assert_eq!(
            schema["properties"]["axes"]["additionalProperties"]["oneOf"][0]["type"],
            json!(["string", "number", "boolean"])
        );
        assert_eq!(schema["properties"]["repetitions"]["maximum"], 1000);
        assert_eq!(workload()["required"], json!(["command"]));
    }
}
