//! A comparison as JSON. In: a comparison. Out: every row with both sides, ratio, interval, p and verdict; what is absent is null.

use serde_json::{Value, json};

use super::{Comparison, Finding, Group, Head, More, Only, Row};
use crate::render::json::quantity;

/// The version of this JSON.
const SCHEMA: u32 = 1;

/// The comparison as JSON.
pub fn json(comparison: &Comparison) -> Value {
    let environment = comparison
        .environment
        .different
        .iter()
        .map(|d| json!({ "name": d.name, "left": d.left, "right": d.right, "may_explain": comparison.may_explain(d) }));
    json!({
        "schema": SCHEMA,
        "left": head(&comparison.left),
        "right": head(&comparison.right),
        "different_devices": comparison.different_devices,
        "threshold": comparison.threshold,
        "method": "difference of logarithms, degrees of freedom of the weaker side, 95 % intervals, p by Holm",
        "judged": comparison.family,
        "warnings": comparison.warnings,
        "cells": comparison.rows.iter().map(row).collect::<Vec<_>>(),
        "only_left": comparison.only_left.iter().map(only).collect::<Vec<_>>(),
        "only_right": comparison.only_right.iter().map(only).collect::<Vec<_>>(),
        "environment": { "different": environment.collect::<Vec<_>>(), "alike": comparison.environment.alike },
        "counts": counts(&comparison.counts()),
        "groups": comparison.groups.iter().map(group).collect::<Vec<_>>(),
        "decide": comparison.decide,
    })
}

fn head(head: &Head) -> Value {
    json!({ "experiment": head.experiment, "campaign": head.campaign, "created_utc": head.created_utc,
            "device": head.device, "simulated": head.simulated })
}

fn row(row: &Row) -> Value {
    let (more, on) = match row.finding {
        Finding::CannotTell(More::Right(k)) => (Some(k), Some("right")),
        Finding::CannotTell(More::Each(k)) => (Some(k), Some("each")),
        _ => (None, None),
    };
    let reason = match &row.finding {
        Finding::NotJudged(why) | Finding::NoLongerRuns(why) | Finding::RunsNow(why) => Some(why),
        _ => None,
    };
    json!({
        "cell": row.label,
        "left_cell": row.left_label.as_ref().unwrap_or(&row.label),
        "sharing": row.sharing,
        "degree": row.degree,
        "workload": row.workload,
        "quantity": row.quantity,
        "left": quantity(row.left.as_ref()),
        "right": quantity(row.right.as_ref()),
        "ratio": quantity(row.ratio.as_ref()),
        "p": row.p,
        "p_adjusted": row.p_adjusted,
        "verdict": row.finding.word(),
        "text": row.finding.text(),
        "reason": reason,
        "more_repetitions": more,
        "more_repetitions_on": on,
        "notes": row.notes,
    })
}

fn only(only: &Only) -> Value {
    json!({ "cell": only.label, "reason": only.reason })
}

fn counts(counts: &[(&'static str, usize)]) -> Value {
    counts.iter().map(|(word, n)| (word.to_string(), json!(n))).collect::<serde_json::Map<_, _>>().into()
}

fn group(group: &Group) -> Value {
    json!({ "name": group.name, "counts": counts(&group.counts), "mean_ratio": group.mean_ratio, "cells": group.judged })
}
