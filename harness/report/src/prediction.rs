//! What was predicted before the campaign ran, compared with what was then measured: scores, each point with its interval, who
//! predicted it and from what.

use std::borrow::Cow;
use std::collections::BTreeMap;

use collo_analysis::campaign::Analysis;
use collo_analysis::campaign::predicted::{Claim, PredictedPoint, PredictedQuantity, PredictionScore, Uncompared};
use collo_figures::chart::{Calibrated, OrderedErrors, PredictedMeasured};
use collo_figures::document::{Block, Figure, Section, Table, TableCell, TableLayout};
use collo_figures::draw::Panel;
use collo_guidelines::groups::prediction;
use collo_predict::FEWEST_FAMILIES;
use collo_quantity::{Key, number};
use collo_store::{AloneFrom, MemberSpec, Predicted, PredictorRecord};

use crate::parts::absent::{Content, numbers};
use crate::parts::figure::{failure, figure, legend_of, tags};
use crate::parts::places::drawn_as;
use crate::parts::values::{finish, label};
use crate::report::Report;

/// Points that are named in the drawing, at most.
const NAMED: usize = 3;

pub fn section(report: &Report) -> Content {
    let analysis = &report.analysis;
    numbers(analysis)?;
    let quantities = analysis.predicted();
    if quantities.iter().all(|quantity| quantity.points.is_empty()) {
        return Err(nothing_compared(&quantities));
    }
    let mut blocks: Vec<Block> = vec![Block::Table(scores(analysis, &quantities))];
    blocks.extend(quantities.iter().filter(|q| !q.points.is_empty()).map(|q| Block::Figure(drawn(analysis, q))));
    let mut notes = provenance(analysis, &quantities);
    for note in quantities.iter().flat_map(|quantity| left_out(&quantity.uncompared)) {
        // Of one cell several quantities may be absent for one reason.
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    blocks.push(Block::Notes(notes));
    Ok(Section { blocks, ..report.judged("prediction") })
}

/// How memory compared with its prediction, for the end of a run; `None` if it was not predicted, or not read.
pub fn remark(analysis: &Analysis) -> Option<String> {
    let memory = analysis.predicted().into_iter().find(|quantity| quantity.key == Key::Memory)?;
    let (valid, others): (Vec<PredictedPoint>, Vec<PredictedPoint>) = memory.points.into_iter().partition(|p| p.cell.is_valid());
    let indicative = || Some(format!("{} (indicative)", prediction::sentence(analysis, Key::Memory, &others)?));
    prediction::sentence(analysis, Key::Memory, &valid).or_else(indicative)
}

/// Why no claim has a measurement beside it.
fn nothing_compared(quantities: &[PredictedQuantity]) -> String {
    let reasons = quantities.iter().flat_map(|quantity| left_out(&quantity.uncompared));
    let said = reasons.take(3).collect::<Vec<_>>().join(" ");
    if said.is_empty() { "Of no member anything was predicted.".into() } else { said }
}

/// A row for each quantity, those of indicative cells apart.
fn scores(analysis: &Analysis, quantities: &[PredictedQuantity]) -> Table {
    let heads = [
        "quantity",
        "#compared",
        "#median error %",
        "#bias %",
        "#inside 95 % interval",
        "#above upper bound",
        "#predicted too low",
    ];
    let mut table = Table::with(&heads).looking(TableLayout::Narrow);
    for quantity in quantities {
        for is_valid in [true, false] {
            let points = quantity.points.iter().filter(|point| point.cell.is_valid() == is_valid);
            let Some(score) = PredictionScore::of(points) else { continue };
            let of = |n: usize| format!("{n} of {}", score.points);
            let name = quantity.key.label;
            table.texts([
                if is_valid { name.to_string() } else { format!("{name}, indicative cells") },
                score.points.to_string(),
                percent(score.median_error_ratio),
                signed_percent(score.bias_ratio),
                of(score.covered),
                score.above_upper.map_or_else(|| "–".into(), of),
                of(score.too_low),
            ]);
        }
    }
    table.tags = tags(analysis);
    table
}

fn percent(ratio: f64) -> String {
    number::fixed(ratio * 100.0, 1)
}

fn signed_percent(ratio: f64) -> String {
    let text = percent(ratio.abs());
    match text.as_str() {
        "0.0" => text,
        _ if ratio < 0.0 => format!("−{text}"),
        _ => format!("+{text}"),
    }
}

/// The factor to the printed unit, and the unit.
fn scale(key: Key) -> (f64, &'static str) {
    (key.unit.factor, key.unit.symbol)
}

fn drawn(analysis: &Analysis, quantity: &PredictedQuantity) -> Figure {
    let (factor, unit) = scale(quantity.key);
    let name = quantity.key.label;
    let named = named(&quantity.points);
    let of_members = quantity.points.iter().any(|point| point.spec.is_some());
    let each = if of_members { "distinct member of each cell" } else { "cell" };
    let calibrated = |point: &PredictedPoint| Calibrated {
        sharing: drawn_as(point.cell),
        indicative: !point.cell.is_valid(),
        measured: point.measured * factor,
        predicted: point.claim.estimate * factor,
        interval: (point.claim.low * factor, point.claim.high * factor),
        label: if named.contains(&point.name()) { point.name() } else { String::new() },
        title: hover(point, factor, unit),
    };
    let points: Vec<Calibrated> = quantity.points.iter().map(calibrated).collect();
    let panel = |title: &str, subtitle: String, label: String, drawing| Panel { title: title.into(), subtitle, label, drawing };
    let (measured, predicted) = (caption_of("measured", unit), caption_of("predicted", unit));
    let measured = if of_members { format!("{measured}, each member") } else { measured };
    let panels = vec![
        panel(
            "Measured over predicted",
            format!("{name}, logarithmic"),
            format!("measured over predicted {name} of each {each}"),
            PredictedMeasured { caption: &measured, below: &predicted, points: &points }.draw(),
        ),
        panel(
            "Errors in order",
            "with the 95 % intervals".into(),
            format!("measured ÷ predicted {name}, in order, with the intervals of the predictions"),
            OrderedErrors {
                caption: "measured ÷ predicted",
                below: &format!("{}, by their error", number::count(points.len(), "point")),
                points: &points,
            }
            .draw(),
        ),
    ];
    let hollow = !analysis.campaign.device.simulated && points.iter().any(|point| point.indicative);
    let indicative = if hollow { " Hollow: indicative, no guideline rests on it." } else { "" };
    let caption = format!(
        "A mark for each {}{}. Marks are measured; bars and the grey area are predicted, the 95 % interval of each. The line is where both \
         are equal.{indicative}",
        if of_members { "distinct member of a cell: the median over its equals and their runs" } else { "cell" },
        read_as(quantity)
    );
    let mut fig = figure(
        analysis,
        id_of(quantity.key),
        &format!("Predicted and measured {name}"),
        panels,
        caption,
        values(analysis, quantity),
    );
    let modes: Vec<String> = points.iter().map(|point| point.sharing.clone()).collect();
    fig.legend = legend_of(modes.iter().map(String::as_str));
    fig
}

/// `measured, GiB`; of a ratio without a unit.
fn caption_of(what: &str, unit: &str) -> String {
    if unit.is_empty() { what.into() } else { format!("{what}, {unit}") }
}

/// Of the drawing, and its files: that of memory was the first.
fn id_of(key: Key) -> Cow<'static, str> {
    if key == Key::Memory { "prediction".into() } else { format!("prediction-{}", key.name.replace('_', "-")).into() }
}

/// How memory was read.
fn read_as(quantity: &PredictedQuantity) -> String {
    let kinds: Vec<&str> = match quantity.key {
        Key::Memory => quantity.points.iter().filter_map(|point| point.cell.memory_kind).map(|kind| kind.text()).collect(),
        _ => Vec::new(),
    };
    let kinds: std::collections::BTreeSet<&str> = kinds.into_iter().collect();
    if kinds.is_empty() { String::new() } else { format!(", read as {}", kinds.into_iter().collect::<Vec<_>>().join("; or as ")) }
}

/// Those outside their interval, else the two that are furthest off.
fn named(points: &[PredictedPoint]) -> Vec<String> {
    let mut furthest: Vec<&PredictedPoint> = points.iter().collect();
    furthest.sort_by(|a, b| b.error_log().total_cmp(&a.error_log()));
    let outside = furthest.iter().filter(|point| !point.is_covered()).count();
    furthest.iter().take(outside.clamp(NAMED - 1, NAMED)).map(|point| point.name()).collect()
}

fn hover(point: &PredictedPoint, factor: f64, unit: &str) -> String {
    let of = |value: f64| number::three(value * factor);
    let mut text = format!(
        "{}\nmeasured {} {unit}, {}\npredicted {} {unit}, 95 % interval {} to {}\n{}",
        point.name(),
        of(point.measured),
        number::count(point.repetitions, "repetition"),
        of(point.claim.estimate),
        of(point.claim.low),
        of(point.claim.high),
        if point.is_covered() { "inside" } else { "outside" },
    );
    if let Some(memory) = point.of.and_then(|of| of.memory.as_ref()) {
        memory.approximate.iter().for_each(|why| text += &format!("\nno exact replay: {why}"));
    }
    text
}

/// Every point, and every member without one.
fn values(analysis: &Analysis, quantity: &PredictedQuantity) -> Table {
    let (factor, unit) = scale(quantity.key);
    let heads = [
        "cell".to_string(),
        "member".into(),
        format!("#predicted {unit}").trim_end().into(),
        "95 % interval".into(),
        format!("#upper bound {unit}").trim_end().into(),
        format!("#measured {unit}").trim_end().into(),
        "#measured ÷ predicted".into(),
        "interval".into(),
        "#runs".into(),
        "validity".into(),
    ];
    let mut table = Table::with(&heads.iter().map(String::as_str).collect::<Vec<_>>());
    let number = |value: f64| TableCell::number(number::three(value), value);
    let interval = |claim: &Claim| {
        let (low, high) = (claim.low * factor, claim.high * factor);
        TableCell { ends: Some((low, high)), ..TableCell::text(format!("[{}, {}]", number::three(low), number::three(high))) }
    };
    let workload =
        |spec: Option<&MemberSpec>| spec.map_or_else(TableCell::default, |spec| TableCell::text(spec.workload.clone()));
    let upper_of = |claim: &Claim| claim.upper.map_or_else(TableCell::default, |upper| number(upper * factor));
    for point in &quantity.points {
        let claim = &point.claim;
        table.row(vec![
            label(analysis, point.cell),
            workload(point.spec),
            number(claim.estimate * factor),
            interval(claim),
            upper_of(claim),
            number(point.measured * factor),
            number(point.ratio()),
            TableCell::text(if point.is_covered() { "inside" } else { "outside" }),
            TableCell::text(point.repetitions.to_string()),
            TableCell::text(point.cell.verdict().text()),
        ]);
    }
    for Uncompared { cell, spec, claim, why } in &quantity.uncompared {
        let estimate = claim.as_ref().map_or_else(TableCell::default, |claim| number(claim.estimate * factor));
        let upper = claim.as_ref().map_or_else(TableCell::default, upper_of);
        let why = TableCell::text(failure(cell).unwrap_or_else(|| why.clone()));
        let interval = claim.as_ref().map_or_else(TableCell::default, interval);
        let verdict = TableCell::text(cell.verdict().text());
        let absent = TableCell::default;
        table.row(vec![
            label(analysis, cell),
            workload(*spec),
            estimate,
            interval,
            upper,
            absent(),
            absent(),
            why,
            absent(),
            verdict,
        ]);
    }
    finish(analysis, table)
}

/// Who predicted what, when, and what the intervals rest on.
fn provenance(analysis: &Analysis, quantities: &[PredictedQuantity]) -> Vec<String> {
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
fn left_out(uncompared: &[Uncompared]) -> Vec<String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bias_has_its_sign_and_none_where_it_rounds_to_nothing() {
        assert_eq!([0.0312, -0.0312, 0.0004, -0.0004].map(signed_percent), ["+3.1", "−3.1", "0.0", "0.0"]);
    }
}
