//! `history.json`. In: a history. Out: an object that names every cell's standing, and its nights.

use serde_json::{Value, json};

use super::story::{Class, History, Row};
use super::track::Step;

/// The version of `history.json`.
pub const SCHEMA: u32 = 1;

/// The history as JSON.
pub fn json(history: &History) -> Value {
    let tonight = history.tonight();
    let (able, all) = history.could_show();
    let shown = history.first_shown();
    let nights = history.nights.iter().zip(&history.judged).skip(shown).map(|(n, j)| {
        json!({ "campaign": n.id, "created_utc": n.created_utc, "whole": j.whole, "incomplete": n.incomplete, "device": n.device,
                "common_change": j.common.as_ref().map(|c| c.ratio), "machine_moved": j.common.as_ref().is_some_and(|c| c.moved),
                "scatter": j.disturbed, "judged": j.judged, "learning": j.learning,
                "suspicious": j.suspects.iter().map(|s| s.cell.as_str()).collect::<Vec<_>>() })
    });
    json!({
        "schema": SCHEMA,
        "experiment": history.experiment,
        "device": tonight.map(|(n, _)| n.device.as_str()),
        "simulated": tonight.is_some_and(|(n, _)| n.simulated),
        "regression": history.has_regression(),
        "cells_that_could_show_five_percent": able,
        "cells": all,
        "nights": nights.collect::<Vec<_>>(),
        "rows": history.rows().iter().map(|r| row(history, r)).collect::<Vec<_>>(),
        "problems": history.problems,
    })
}

fn row(history: &History, row: &Row) -> Value {
    let track = &history.judge.tracks[row.track];
    let id = |night: usize| history.nights.get(night).map(|n| n.id.as_str());
    let step = |s: &Step| {
        json!({ "confirmed": id(s.night), "since": id(s.since), "ratio": s.ratio.estimate, "low": s.ratio.low, "high": s.ratio.high,
                "p": s.p, "repetitions_added": s.again, "worse": s.is_worse(), "environment": history.explains(s.since) })
    };
    let (class, reason) = match &row.class {
        Class::Stepped(_) => ("stepped", None),
        Class::Unstable(why) => ("unstable", Some(why.clone())),
        Class::Gone { outcome, .. } => ("gone", Some(outcome.clone())),
        Class::Learning(_) => ("learning", None),
        Class::Quiet => ("quiet", None),
    };
    let points = track.points.iter().filter(|p| p.night >= history.first_shown());
    json!({
        "cell": track.cell,
        "sharing": track.sharing,
        "quantity": track.quantity,
        "class": class,
        "reason": reason,
        "since": match &row.class { Class::Gone { since, .. } => id(*since), _ => None },
        "steps": track.steps.iter().map(step).collect::<Vec<_>>(),
        "detectable_step": row.detectable,
        "nights": points.map(|p| json!({ "campaign": id(p.night), "time_s": p.x.exp(), "repetitions": p.n })).collect::<Vec<_>>(),
    })
}
