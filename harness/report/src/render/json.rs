//! `report.json`, and the schema that describes it. In: an analysis. Out: JSON in which every measured quantity is an object with
//! `estimate`, `low`, `high`, `repetitions` and `df`, or null. `collo compare` reads nothing else.

use serde_json::{Map, Value, json};

use crate::analysis::{Analysis, Cell, GainBy, environment};
use crate::compare::conditions::{Regime, told};
use crate::guideline::{Evidence, Guideline};
use crate::quantity::Trait;
use crate::render::words;
use crate::stats::Quantity;

/// The version of `report.json`.
pub const SCHEMA: u32 = 1;

/// The report as JSON.
pub fn report(analysis: &Analysis) -> Value {
    let c = &analysis.campaign;
    let accounted: Map<String, Value> = analysis.accounted.iter().map(|(word, n)| (word.to_string(), json!(n))).collect();
    json!({
        "schema": SCHEMA,
        "experiment": c.experiment,
        "campaign": c.id,
        "created_utc": c.created_utc,
        "device": { "name": c.device.name, "kind": c.device.kind, "simulated": c.device.simulated,
                    "memory_bytes": c.device.memory_bytes, "cores": c.device.cores },
        "synthetic": analysis.synthetic,
        "shortened": analysis.shortened.iter().map(|(workload, batches)| json!({ "workload": workload, "limit_batches": batches })).collect::<Vec<_>>(),
        "informative": c.informative,
        "environment": environment::of(analysis).into_iter().map(|(name, text)| (name, text.into())).collect::<Map<String, Value>>(),
        "thresholds": { "relevant_ratio": c.thresholds.relevant_ratio, "slowdown": c.thresholds.slowdown,
                        "overlap_ratio": c.thresholds.overlap_ratio, "start_skew_s": c.thresholds.start_skew_s,
                        "baseline_drift_ratio": c.thresholds.baseline_drift_ratio },
        "method": analysis.method,
        "planned": analysis.planned,
        "accounted": accounted,
        "refusals": c.plan.refusals.iter().map(|r| json!({
            "cell": r.cell, "sharing": r.sharing, "reason": r.reason, "hint": r.hint })).collect::<Vec<_>>(),
        "cells": analysis.cells.iter().map(cell).collect::<Vec<_>>(),
        "guidelines": analysis.guidelines.iter().map(guideline).collect::<Vec<_>>(),
        "problems": analysis.problems,
    })
}

/// A quantity; a number that is not finite is no reading.
pub fn quantity(q: Option<&Quantity>) -> Value {
    match q {
        Some(q) if q.estimate.is_finite() => json!({
            "estimate": q.estimate, "low": q.low, "high": q.high, "repetitions": q.n, "df": q.df.filter(|df| df.is_finite()) }),
        _ => Value::Null,
    }
}

fn cell(c: &Cell) -> Value {
    let mut out = Map::new();
    out.insert("cell".into(), json!(c.name()));
    out.insert("sharing".into(), json!(c.record.sharing));
    out.insert("degree".into(), json!(c.record.degree));
    out.insert("baseline".into(), json!(c.record.baseline));
    out.insert("tail".into(), json!(c.record.tail));
    out.insert("slots".into(), json!(c.record.slots));
    out.insert("members".into(), c.members.iter().enumerate().map(|(i, m)| member(m, told(c, i))).collect());
    out.insert("repetitions".into(), json!(c.counted.len()));
    out.insert("outcome".into(), json!(c.outcome()));
    out.insert("outcomes".into(), json!(c.outcomes));
    out.insert("validity".into(), json!(words::verdict(c.validity.verdict)));
    out.insert("reasons".into(), json!(c.validity.reasons));
    out.insert("suspicious".into(), json!(c.suspicious));
    out.insert("slots".into(), json!(c.record.slots));
    for key in crate::quantity::all(Trait::Cell) {
        out.insert(key.name.into(), quantity(c.get(key)));
    }
    out.insert("throughput_gain_by".into(), json!(GainBy::of(&c.record).word()));
    out.insert(
        "throughput_gain_verdict".into(),
        match &c.gain_verdict {
            Some(g) => json!({ "p": g.p, "p_adjusted": g.p_adjusted, "verdict": g.verdict.word(), "text": g.verdict.text() }),
            None => Value::Null,
        },
    );
    out.insert("memory_kind".into(), json!(c.memory_kind.map(|k| k.word())));
    out.insert(
        "metrics".into(),
        c.metrics.iter().map(|(name, q)| (name.clone(), quantity(Some(q)))).collect::<Map<_, _>>().into(),
    );
    out.insert("absent".into(), json!(c.absent));
    Value::Object(out)
}

fn member(m: &crate::analysis::Member, regime: Option<&Regime>) -> Value {
    let mut out = Map::new();
    out.insert("workload".into(), json!(m.spec.workload));
    out.insert("batch_size".into(), json!(m.spec.batch_size));
    out.insert("settings".into(), json!(m.spec.settings));
    out.insert("regime".into(), json!(regime));
    out.insert("solo".into(), json!(m.spec.solo));
    out.insert("serving".into(), json!(m.serving));
    for key in crate::quantity::all(Trait::Member) {
        out.insert(key.name.into(), quantity(m.get(key)));
    }
    out.insert("absent".into(), json!(m.absent));
    out.insert("loss".into(), json!(m.loss.filter(|l| l.is_finite())));
    out.insert("features".into(), json!(m.features));
    Value::Object(out)
}

fn evidence(e: &Evidence) -> Value {
    json!({ "cell": e.cell, "against": e.against, "quantity": e.quantity, "value": quantity(Some(&e.value)), "repetitions": e.value.n })
}

fn guideline(g: &Guideline) -> Value {
    json!({
        "id": g.id,
        "statement": g.statement,
        "finding": g.finding,
        "verdict": g.verdict.word(),
        "tested": g.tested,
        "evidence": g.evidence.iter().map(evidence).collect::<Vec<_>>(),
        "published": g.published.map(|p| json!({ "statement": p.statement, "source": p.source })),
        "command": g.command,
        "summary": g.summary,
    })
}

/// The JSON Schema of `report.json`; a test keeps it true.
pub fn schema() -> Value {
    let text = json!({ "type": "string" });
    let maybe = |kind: &str| json!({ "type": [kind, "null"] });
    let list = |items: Value| json!({ "type": "array", "items": items });
    let quantity = json!({ "$ref": "#/$defs/quantity" });
    let object = |properties: Map<String, Value>| {
        let required: Vec<&String> = properties.keys().collect();
        json!({ "type": "object", "required": required, "properties": properties, "additionalProperties": false })
    };
    let fields = |pairs: &[(&str, Value)]| pairs.iter().map(|(k, v)| (k.to_string(), v.clone())).collect::<Map<_, _>>();
    let counts = json!({ "type": "object", "additionalProperties": { "type": "integer", "minimum": 0 } });

    let mut member = fields(&[
        ("workload", text.clone()),
        ("batch_size", maybe("integer")),
        ("settings", json!({ "type": "object" })),
        ("regime", json!({ "type": ["object", "null"] })),
        ("solo", text.clone()),
        ("serving", json!({ "type": ["object", "null"] })),
        ("absent", json!({ "type": "object", "additionalProperties": text })),
        ("loss", maybe("number")),
        ("features", json!({ "type": ["object", "null"] })),
    ]);
    member.extend(crate::quantity::all(Trait::Member).map(|key| (key.name.to_string(), quantity.clone())));
    let mut cell = fields(&[
        ("cell", text.clone()),
        ("sharing", text.clone()),
        ("degree", json!({ "type": "integer", "minimum": 1 })),
        ("baseline", json!({ "type": "boolean" })),
        ("tail", json!({ "enum": ["hold", "release"] })),
        ("slots", maybe("string")),
        ("members", list(object(member))),
        ("repetitions", json!({ "type": "integer", "minimum": 0 })),
        ("outcome", text.clone()),
        ("outcomes", counts.clone()),
        ("validity", json!({ "enum": ["valid", "informative", "void"] })),
        ("reasons", list(text.clone())),
        ("suspicious", list(text.clone())),
        ("slots", maybe("string")),
        ("throughput_gain_by", json!({ "enum": ["epoch_time", "makespan", "progress"] })),
        ("throughput_gain_verdict", json!({ "type": ["object", "null"] })),
        ("memory_kind", maybe("string")),
        ("metrics", json!({ "type": "object", "additionalProperties": quantity })),
        ("absent", json!({ "type": "object", "additionalProperties": text })),
    ]);
    cell.extend(crate::quantity::all(Trait::Cell).map(|key| (key.name.to_string(), quantity.clone())));
    let evidence = object(fields(&[
        ("cell", text.clone()),
        ("against", maybe("string")),
        ("quantity", text.clone()),
        ("value", quantity.clone()),
        ("repetitions", json!({ "type": "integer", "minimum": 1 })),
    ]));
    let guideline = object(fields(&[
        ("id", text.clone()),
        ("statement", text.clone()),
        ("finding", text.clone()),
        ("verdict", json!({ "enum": ["supported", "contradicted", "not_enough_evidence"] })),
        ("tested", text.clone()),
        ("evidence", list(evidence)),
        ("published", json!({ "type": ["object", "null"] })),
        ("command", maybe("string")),
        ("summary", json!({ "type": "boolean" })),
    ]));
    let device = object(fields(&[
        ("name", text.clone()),
        ("kind", text.clone()),
        ("simulated", json!({ "type": "boolean" })),
        ("memory_bytes", maybe("integer")),
        ("cores", maybe("integer")),
    ]));
    let refusal =
        object(fields(&[("cell", text.clone()), ("sharing", text.clone()), ("reason", text.clone()), ("hint", maybe("string"))]));
    let number = json!({ "type": "number" });
    let mut root = object(fields(&[
        ("schema", json!({ "const": SCHEMA })),
        ("experiment", text.clone()),
        ("campaign", text.clone()),
        ("created_utc", text.clone()),
        ("device", device),
        ("synthetic", list(text.clone())),
        (
            "shortened",
            list(object(fields(&[("workload", text.clone()), ("limit_batches", json!({ "type": "integer", "minimum": 1 }))]))),
        ),
        ("informative", list(text.clone())),
        ("environment", json!({ "type": "object", "additionalProperties": text })),
        ("thresholds", json!({ "type": "object", "additionalProperties": number })),
        ("method", maybe("string")),
        ("planned", json!({ "type": "integer", "minimum": 0 })),
        ("accounted", counts),
        ("refusals", list(refusal)),
        ("cells", list(object(cell))),
        ("guidelines", list(guideline)),
        ("problems", list(text)),
    ]));
    root["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    root["title"] = json!("collo report");
    root["$defs"] = json!({ "quantity": {
        "description": "A measured quantity: geometric mean over repetitions with its 95 % interval, the repetitions behind it and the interval's degrees of freedom; null where nothing was measured",
        "type": ["object", "null"],
        "required": ["estimate", "low", "high", "repetitions", "df"],
        "properties": { "estimate": { "type": "number" }, "low": { "type": ["number", "null"] }, "high": { "type": ["number", "null"] },
                        "repetitions": { "type": "integer", "minimum": 1 }, "df": { "type": ["number", "null"] } },
        "additionalProperties": false,
    } });
    root
}
