//! What is said below predictions: who made them and when, from what, and what could not be compared.

use std::collections::BTreeMap;

use collo_predict::FEWEST_FAMILIES;
use collo_store::{AloneFrom, Predicted, PredictorRecord};

use crate::analysis::{Analysis, PredictedQuantity, Uncompared};
use crate::number;
use crate::quantity::Key;

/// Who predicted what, when, and what the intervals rest on.
pub fn provenance(analysis: &Analysis, quantities: &[PredictedQuantity]) -> Vec<String> {
    let Some(predicted) = &analysis.campaign.predicted else { return Vec::new() };
    let made = predicted.made_utc.replace('T', " ").replace('Z', " UTC");
    let compared: Vec<&PredictedQuantity> = quantities.iter().filter(|quantity| !quantity.points.is_empty()).collect();
    let mut notes = Vec::new();
    for by_one in compared.chunk_by(|a, b| a.by == b.by) {
        let labels: Vec<&str> = by_one.iter().map(|quantity| quantity.key.label).collect();
        notes.extend(predictor(by_one[0].by, &labels, &made));
    }
    notes.extend(company(predicted));
    notes.extend(compared.iter().filter(|quantity| quantity.key == Key::Memory).flat_map(|memory| inexact(memory)));
    notes
}

/// Who predicted these quantities, and from whose measurements.
fn predictor(by: &PredictorRecord, labels: &[&str], made: &str) -> [String; 2] {
    let (fitted_on, by_whom) = match by.fitted_on.as_str() {
        "published" => ("published measurements of", ", none of them made by collo"),
        "simulated" => ("simulated runs on", ""),
        "own" => ("runs measured by collo on", ""),
        _ => ("measurements of unknown origin on", ""),
    };
    let device = by.device.as_ref().map_or_else(|| "an unknown device".into(), |device| format!("`{}`", device.replace('`', "")));
    let what = labels.join(", ");
    let families = number::count(by.families, "architecture");
    let promise = if by.families < FEWEST_FAMILIES { ", too few to promise a share" } else { "" };
    let widened = if by.widened > 1.0 {
        let times = (by.widened * 100.0).round() / 100.0;
        format!("; as logarithms they are {times} times as wide, because it was fitted under other conditions")
    } else {
        String::new()
    };
    [
        format!("Predicted {made} by `{}`, fitted on {fitted_on} {device}{by_whom}: {what}.", by.name.replace('`', "")),
        format!("Its intervals have their width from {families}{promise}{widened}."),
    ]
}

/// What groups were predicted from, and of which it goes beyond what was fitted.
fn company(predicted: &Predicted) -> Vec<String> {
    let groups = || predicted.cells.iter().filter_map(|cell| Some((cell, cell.company.as_ref()?)));
    let (all, unmeasured) = (groups().count(), groups().filter(|(_, group)| group.from == AloneFrom::Predicted).count());
    let mut notes = Vec::new();
    if all > 0 {
        notes.push(match unmeasured {
            0 => "What company costs was predicted from members that had been measured alone.".to_string(),
            _ => format!("In {unmeasured} of {}, what a member does alone was itself predicted.", number::count(all, "group")),
        });
    }
    let mut beyond = BTreeMap::<&str, usize>::new();
    groups().flat_map(|(_, group)| &group.extrapolated).for_each(|why| *beyond.entry(why).or_default() += 1);
    notes.extend(beyond.iter().map(|(why, n)| format!("{}: extrapolated, {why}.", number::count(*n, "group"))));
    let mut assumed = BTreeMap::<&str, usize>::new();
    groups().flat_map(|(_, group)| &group.assumed).for_each(|what| *assumed.entry(what).or_default() += 1);
    notes.extend(assumed.iter().map(|(what, n)| format!("{}: {what}.", number::count(*n, "group"))));
    notes
}

/// Where the context of processes is from, and which predictions of memory are no exact replay.
fn inexact(quantity: &PredictedQuantity) -> Vec<String> {
    let mut notes = Vec::new();
    let mut claims: Vec<_> = quantity.points.iter().filter_map(|point| point.of).collect();
    claims.sort_by_key(|of| (&of.solo, of.mps));
    claims.dedup_by_key(|of| (&of.solo, of.mps));
    let contexts: Vec<usize> = claims.iter().filter_map(|of| Some(of.memory.as_ref()?.context_runs)).collect();
    let measured = contexts.iter().filter(|runs| **runs > 0).count();
    if !contexts.is_empty() {
        notes.push(match measured {
            0 => "What a process holds outside its allocator is the predictor's: no stored run had measured it here.".into(),
            _ => format!(
                "What a process holds outside its allocator was measured here before, in up to {}, for {measured} of {}.",
                number::count(contexts.iter().copied().max().unwrap_or(0), "stored run"),
                number::count(contexts.len(), "prediction")
            ),
        });
    }
    let mut inexact = BTreeMap::<&str, usize>::new();
    claims.iter().filter_map(|of| of.memory.as_ref()).flat_map(|memory| &memory.approximate).for_each(|why| {
        *inexact.entry(why).or_default() += 1;
    });
    notes.extend(inexact.iter().map(|(why, n)| format!("{}: no exact replay, {why}.", number::count(*n, "prediction"))));
    notes
}

/// Members without a point: each reason once.
pub fn left_out(uncompared: &[Uncompared]) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for one in uncompared {
        match reasons.iter_mut().find(|(why, _)| *why == one.why) {
            Some((_, cells)) => cells.push(one.cell.name()),
            None => reasons.push((&one.why, vec![one.cell.name()])),
        }
    }
    let said = |(why, cells): (&str, Vec<&str>)| match cells[..] {
        [one] => format!("`{one}` is not compared: {why}."),
        [first, ..] => format!("`{first}` and {} more are not compared: {why}.", cells.len() - 1),
        [] => String::new(),
    };
    reasons.into_iter().map(said).collect()
}
