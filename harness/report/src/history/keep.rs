//! A night as JSON: the summary that outlives its campaign. In: a night. Out: an object; and back.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::night::{CellNight, Mean, Night};

/// The version of a kept night.
const SCHEMA: u32 = 1;

/// A night with the stamp of what it was made from.
pub fn json(stamp: &str, night: &Night) -> Value {
    let mean = |m: &Option<Mean>| m.map(|m| json!([m.log_mean, m.n, m.variance]));
    let cells: Vec<Value> = night
        .cells
        .iter()
        .map(|c| {
            json!({ "cell": c.cell, "sharing": c.sharing, "content": c.content, "quantity": c.quantity, "outcome": c.outcome,
                    "against": c.against, "first": mean(&c.first), "again": mean(&c.again) })
        })
        .collect();
    json!({ "schema": SCHEMA, "stamp": stamp, "id": night.id, "created_utc": night.created_utc, "place": night.place,
            "device": night.device, "simulated": night.simulated, "incomplete": night.incomplete,
            "environment": night.environment, "cells": cells })
}

/// The stamp and the night of such an object; none if it is none, or of another version.
pub fn night(value: &Value) -> Option<(String, Night)> {
    let o = value.as_object()?;
    if o.get("schema")?.as_u64()? != u64::from(SCHEMA) {
        return None;
    }
    let night = Night {
        id: text(o, "id")?,
        created_utc: text(o, "created_utc")?,
        place: text(o, "place")?,
        device: text(o, "device")?,
        simulated: o.get("simulated")?.as_bool()?,
        incomplete: text(o, "incomplete"),
        environment: o
            .get("environment")?
            .as_object()?
            .iter()
            .map(|(name, value)| Some((name.clone(), value.as_str()?.to_string())))
            .collect::<Option<BTreeMap<_, _>>>()?,
        cells: o.get("cells")?.as_array()?.iter().map(cell).collect::<Option<_>>()?,
    };
    Some((text(o, "stamp")?, night))
}

fn cell(value: &Value) -> Option<CellNight> {
    let o = value.as_object()?;
    Some(CellNight {
        cell: text(o, "cell")?,
        sharing: text(o, "sharing")?,
        content: text(o, "content")?,
        quantity: text(o, "quantity")?,
        outcome: text(o, "outcome")?,
        against: o.get("against")?.as_array()?.iter().map(|a| a.as_str().map(str::to_string)).collect::<Option<_>>()?,
        first: mean(o.get("first")),
        again: mean(o.get("again")),
    })
}

fn text(o: &Map<String, Value>, name: &str) -> Option<String> {
    o.get(name)?.as_str().map(str::to_string)
}

fn mean(value: Option<&Value>) -> Option<Mean> {
    let parts = value?.as_array()?;
    let n = parts.get(1)?.as_u64()? as usize;
    Some(Mean { log_mean: parts.first()?.as_f64()?, n, variance: parts.get(2)?.as_f64() }).filter(|m| m.n > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_night_comes_back_as_it_was() {
        let mean = Mean { log_mean: 0.1 + 0.2, n: 3, variance: Some(1e-4) };
        let cell = CellNight {
            cell: "<b>×2".into(),
            first: Some(mean),
            again: None,
            outcome: "completed".into(),
            ..CellNight::default()
        };
        let night = Night {
            id: "n".into(),
            incomplete: Some("cut".into()),
            environment: BTreeMap::from([("driver".into(), "570".into())]),
            cells: vec![cell],
            ..Night::default()
        };
        let read: Value = serde_json::from_str(&json("s", &night).to_string()).unwrap();
        assert_eq!(super::night(&read), Some(("s".into(), night)));
    }

    #[test]
    fn what_is_half_written_or_newer_is_none() {
        assert_eq!(night(&json!({})), None);
        assert_eq!(night(&json!({ "schema": 2, "stamp": "s" })), None);
        assert_eq!(night(&json!([1])), None);
    }
}
