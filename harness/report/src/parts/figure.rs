//! Common parts of figures: tags, legends, captions, hover texts.

use std::borrow::Cow;

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_analysis::words;
use collo_figures::chart::RowMark;
use collo_figures::document::{Figure, Table};
use collo_figures::draw::Panel;
use collo_figures::modes::{family, in_order, mode_label};
use collo_quantity::number;
use collo_quantity::stats::Quantity;
use collo_store::Verdict;

use super::places::drawn_as;

/// Caveats that every presentation of these numbers must show.
pub fn tags(analysis: &Analysis) -> Vec<String> {
    let mut tags = Vec::new();
    if analysis.campaign.device.simulated {
        tags.push("simulated".to_string());
    }
    if !analysis.synthetic.is_empty() {
        tags.push("synthetic data".into());
    }
    if !analysis.shortened.is_empty() {
        tags.push("shortened epochs".into());
    }
    if !analysis.campaign.indicative.is_empty() {
        tags.push("indicative".into());
    }
    tags.extend(measured_by(analysis).map(|program| format!("measured by {program}")));
    tags
}

/// The program that measured what was imported.
pub fn measured_by(analysis: &Analysis) -> Option<&str> {
    analysis.report.as_ref()?.measured_by.as_deref()
}

/// Modes of a set of cells in their order, with the label that legends print.
pub fn legend<'a>(cells: impl Iterator<Item = &'a Cell>) -> Vec<(String, String)> {
    let modes: Vec<String> = cells.map(drawn_as).collect();
    legend_of(modes.iter().map(String::as_str))
}

/// The same from the modes themselves.
pub fn legend_of<'a>(of: impl Iterator<Item = &'a str>) -> Vec<(String, String)> {
    in_order(of).into_iter().map(|m| (m.to_string(), mode_label(m))).collect()
}

/// The same, with another name for solo.
pub fn legend_with<'a>(of: impl Iterator<Item = &'a str>, solo: &str) -> Vec<(String, String)> {
    let named = |(mode, label): (String, String)| if mode == "solo" { (mode, solo.to_string()) } else { (mode, label) };
    legend_of(of).into_iter().map(named).collect()
}

/// Both ends of an interval.
pub fn interval(q: &Quantity, factor: f64) -> Option<(f64, f64)> {
    Some((q.low? * factor, q.high? * factor))
}

/// Why a cell has no number, in the space of a bar.
pub fn failure(cell: &Cell) -> Option<String> {
    if cell.counts() {
        // It ran and has numbers; this one was not measured.
        return None;
    }
    match cell.outcome() {
        "completed" if cell.validity.verdict == Verdict::Discarded => Some("discarded".into()),
        "completed" => None,
        "out_of_memory" => Some("OOM".into()),
        "process_ended" | "ended_early" => Some("ended".into()),
        other => Some(words::outcome(other)),
    }
}

/// The hover text of a mark.
pub fn hover(cell: &Cell, what: &str, q: Option<&Quantity>, factor: f64, unit: &str) -> String {
    let mut text = cell.name().to_string();
    match q {
        Some(q) => text += &told(what, q, factor, unit),
        None => text += &format!("\n{}", failure(cell).unwrap_or_else(|| "absent".into())),
    }
    if let Some(lender) = &cell.lender {
        text += &format!("\nbaseline of campaign {}", lender.short_id());
    }
    if cell.validity.verdict != Verdict::Valid {
        text += &format!("\n{}: {}", cell.verdict().text(), cell.validity.reasons.join("; "));
    }
    text
}

/// A value on hover: itself, its interval, and the repetitions that it comes from.
pub fn told(what: &str, q: &Quantity, factor: f64, unit: &str) -> String {
    let scaled = super::values::times(q, factor);
    let interval = if q.low.is_some() { format!("95 % interval {}", number::bounds(&scaled)) } else { "no interval".into() };
    format!("\n{what} {}{unit}\n{interval}, {}", number::estimate(&scaled), number::count(q.n, "repetition"))
}

/// A value of a cell as a mark in a row.
pub fn mark(cell: &Cell, what: &str, q: Option<&Quantity>, factor: f64, unit: &str) -> RowMark {
    RowMark {
        sharing: cell.record.sharing.clone(),
        value: q.map(|q| q.estimate * factor),
        interval: q.and_then(|q| interval(q, factor)),
        failure: failure(cell),
        indicative: !cell.is_valid(),
        title: hover(cell, what, q, factor, unit),
    }
}

/// The sentence of a caption about how intervals were made.
pub fn whiskers(analysis: &Analysis) -> &'static str {
    match crate::parts::notes::method(analysis) {
        Some(_) => "Whiskers: 95 % intervals.",
        // What another program measured has intervals of another kind.
        None if measured_by(analysis).is_some() => "Whiskers: 95 % interval, each cell by its own spread.",
        None => "One repetition carries no interval.",
    }
}

/// The meaning of open bars, if there are any.
pub fn indicative_note<'a>(cells: impl Iterator<Item = &'a Cell>) -> &'static str {
    if cells.into_iter().any(|c| c.validity.verdict == Verdict::Indicative) {
        " Pale, dashed: indicative, no guideline rests on it."
    } else {
        ""
    }
}

/// A figure whose tags and look follow from the analysis.
pub fn figure(
    analysis: &Analysis,
    id: impl Into<Cow<'static, str>>,
    title: &str,
    panels: Vec<Panel>,
    caption: String,
    values: Table,
) -> Figure {
    // Most figures have a panel per workload; those of mixed groups say their own modes.
    let shown = analysis.cells.iter().filter(|c| c.record.is_uniform() && c.ran());
    Figure {
        id: id.into(),
        title: title.into(),
        legend: legend(shown).into_iter().filter(|(mode, _)| !family(mode).is_empty()).collect(),
        panels,
        caption,
        values,
        csv: None,
        simulated: analysis.campaign.device.simulated,
        tags: tags(analysis),
    }
}
