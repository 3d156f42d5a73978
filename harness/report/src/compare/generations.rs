//! Several cards beside each other. In: one side per card. Out: which guidelines changed, and what each group gains on each card,
//! with slices matched by their share. Times of different cards are not put beside each other.

use serde_json::{Value, json};

use super::page::{Written, plain, put, style};
use super::side::{Cell, Side};
use super::text::{printable, wrap};
use super::{Head, cards, matching, quantity};
use crate::number;
use crate::render::json::quantity as quantity_json;
use crate::stats::Quantity;
use crate::{Error, Result};

/// Rows of a terminal, and of a page.
const ROWS: usize = 40;
const PAGE_ROWS: usize = 500;

/// Cards beside each other.
#[derive(Debug)]
pub struct Generations {
    pub cards: Vec<Card>,
    /// The quantity of the cells, by its name in JSON.
    pub quantity: String,
    /// Changed ones first.
    pub guidelines: Vec<GuidelineRow>,
    pub cells: Vec<CellRow>,
    pub warnings: Vec<String>,
}

/// One card of the table.
#[derive(Debug)]
pub struct Card {
    pub head: Head,
    /// SMs of the whole card, where known.
    pub sms: Option<String>,
}

/// One guideline on every card.
#[derive(Debug)]
pub struct GuidelineRow {
    pub id: String,
    /// By card: verdict, statement and finding; none where the report has not got it.
    pub on: Vec<Option<(String, String, String)>>,
    pub changed: bool,
}

/// One group on every card.
#[derive(Debug)]
pub struct CellRow {
    /// The label on the first card that has it.
    pub label: String,
    pub on: Vec<Option<Share>>,
}

/// What a card has of a group.
#[derive(Debug)]
pub struct Share {
    pub label: String,
    pub value: Option<Quantity>,
    pub outcome: String,
    pub validity: String,
    pub sms: Option<String>,
}

impl CellRow {
    /// Largest ÷ smallest value over the cards.
    fn spread(&self) -> f64 {
        let values = || self.on.iter().flatten().filter_map(|s| s.value.as_ref()).map(|q| q.estimate);
        match (values().reduce(f64::min), values().reduce(f64::max)) {
            (Some(low), Some(high)) => high / low,
            _ => 1.0,
        }
    }
}

/// Put sides beside each other by a quantity that has no unit; the throughput gain if none is named.
pub fn generations(sides: &[Side], asked: Option<&str>) -> Result<Generations> {
    let name = asked.unwrap_or(quantity::ACROSS.name).to_string();
    if let [first, .., last] = sides
        && quantity::is_absolute(&name)
    {
        return Err(Error::AcrossDevices { quantity: name, left: first.device_said(), right: last.device_said() });
    }
    let known: Vec<Option<cards::Card>> = sides.iter().map(|s| cards::card(&s.device.name, s.device.memory_bytes)).collect();
    let mut rows: Vec<(String, CellRow)> = Vec::new();
    let mut place = std::collections::HashMap::new();
    for (i, side) in sides.iter().enumerate() {
        for cell in side.cells.iter().filter(|c| !c.is_solo()) {
            let key = matching::key(cell, known[i].as_ref());
            let at = *place.entry(key.clone()).or_insert_with(|| {
                rows.push((key, CellRow { label: cell.label.clone(), on: sides.iter().map(|_| None).collect() }));
                rows.len() - 1
            });
            rows[at].1.on[i].get_or_insert_with(|| share(cell, &name, known[i].as_ref()));
        }
    }
    let mut cells: Vec<CellRow> = rows.into_iter().map(|(_, row)| row).collect();
    cells.retain(|row| row.on.iter().flatten().count() > 1);
    cells.sort_by(|a, b| b.spread().total_cmp(&a.spread()));
    let guidelines = guidelines(sides);
    if cells.is_empty() && guidelines.is_empty() {
        let (left, right) = (&sides[0], &sides[sides.len() - 1]);
        return Err(super::nothing_in_common(left, right));
    }
    let mut warnings = Vec::new();
    for (i, side) in sides.iter().enumerate() {
        if sides[..i].iter().any(|other| other.device == side.device) {
            warnings.push(format!("{} is there more than once", side.device_said()));
        }
        warnings.extend(side.informative.iter().map(|why| format!("{} is informative: {why}", side.device_said())));
    }
    if sides.iter().any(|s| s.device.simulated) && sides.iter().any(|s| !s.device.simulated) {
        warnings.push("some of these cards are simulated: their numbers were invented by a model".into());
    }
    if sides.iter().any(|s| s.synthetic != sides[0].synthetic) {
        warnings.push("the cards trained on different data, real and stand-ins".into());
    }
    let cards = sides.iter().map(|s| Card { head: Head::of(s), sms: s.fact("SMs").map(str::to_string) }).collect();
    Ok(Generations { cards, quantity: name, guidelines, cells, warnings })
}

fn share(cell: &Cell, name: &str, card: Option<&cards::Card>) -> Share {
    let text = cell.slots.as_deref().unwrap_or(&cell.sharing);
    Share {
        label: cell.label.clone(),
        value: cell.get(name),
        outcome: cell.outcome.clone(),
        validity: cell.validity.clone(),
        sms: card.and_then(|c| c.sms_of(text)),
    }
}

/// Guidelines of all sides: those whose verdict differs first, then in the order of the first report.
fn guidelines(sides: &[Side]) -> Vec<GuidelineRow> {
    let mut ids: Vec<&str> = Vec::new();
    for advice in sides.iter().flat_map(|s| &s.advice) {
        if !ids.contains(&advice.id.as_str()) {
            ids.push(&advice.id);
        }
    }
    let of = |id: &str| {
        let on: Vec<_> = sides
            .iter()
            .map(|s| s.advice.iter().find(|a| a.id == id).map(|a| (a.verdict.clone(), a.statement.clone(), a.finding.clone())))
            .collect();
        let mut verdicts: Vec<&str> = on.iter().flatten().map(|(verdict, ..)| verdict.as_str()).collect();
        verdicts.dedup();
        GuidelineRow { id: id.into(), changed: verdicts.len() > 1, on }
    };
    let mut rows: Vec<GuidelineRow> = ids.into_iter().map(of).collect();
    rows.sort_by_key(|row| !row.changed);
    rows
}

/// A sentence without the backticks around its names.
pub fn bare(sentence: &str) -> String {
    sentence.replace('`', "")
}

/// The class, the sign and the words of a verdict.
pub fn chip(verdict: &str) -> (&'static str, &'static str, &'static str) {
    match verdict {
        "supported" => ("sup", "✓", "supported"),
        "contradicted" => ("con", "✕", "contradicted"),
        _ => ("not", "?", "not enough evidence"),
    }
}

impl Share {
    fn said(&self) -> String {
        let value = match &self.value {
            Some(q) => number::with_interval(q),
            None if self.outcome == "completed" => number::ABSENT.into(),
            None => crate::render::words::outcome(&self.outcome),
        };
        if self.validity == "valid" || self.value.is_none() { value } else { format!("{value} {}", self.validity) }
    }
}

impl Generations {
    /// True where a model invented numbers of a card.
    pub fn simulated(&self) -> bool {
        self.cards.iter().any(|c| c.head.simulated)
    }

    fn words(&self) -> &str {
        quantity::unit(&self.quantity).0
    }

    fn note(&self) -> String {
        format!(
            "cells: {} with 95 % intervals, each card against its own baseline; slices are matched by their share of the card; times are not compared",
            self.words()
        )
    }

    /// For a terminal.
    pub fn text(&self, width: usize) -> String {
        let name = |c: &Card| c.head.device.replace("NVIDIA ", "");
        let mut out: Vec<String> = Vec::new();
        for card in &self.cards {
            let sms = card.sms.as_ref().map_or(String::new(), |n| format!(", {n} SMs"));
            out.push(printable(&format!("{}{sms}: {} {}", name(card), card.head.experiment, card.head.campaign)));
        }
        out.extend(self.warnings.iter().flat_map(|w| wrap(&printable(&format!("warning: {w}")), width)));
        let open = |row: &&GuidelineRow| !row.changed && row.on.iter().flatten().all(|(v, ..)| v == "not_enough_evidence");
        for row in self.guidelines.iter().filter(|row| !open(row)) {
            out.push(printable(&format!("{}: {}", row.id, if row.changed { "changed" } else { "the same verdict" })));
            for (card, on) in self.cards.iter().zip(&row.on) {
                let said = on.as_ref().map_or_else(
                    || "not in this report".to_string(),
                    |(verdict, statement, finding)| {
                        let (_, sign, words) = chip(verdict);
                        format!("{sign} {words}: {} {}", bare(statement), bare(finding))
                    },
                );
                out.extend(wrap(&printable(&format!("  {}: {said}", name(card))), width));
            }
        }
        let without: Vec<&str> = self.guidelines.iter().filter(open).map(|row| row.id.as_str()).collect();
        if !without.is_empty() {
            out.extend(wrap(&printable(&format!("not enough evidence on any card: {}", without.join(", "))), width));
        }
        for row in self.cells.iter().take(ROWS) {
            out.push(printable(&row.label));
            for (card, on) in self.cards.iter().zip(&row.on) {
                let said = on.as_ref().map_or_else(
                    || "not in this report".into(),
                    |share| {
                        let own = if share.label == row.label { String::new() } else { format!(" as {}", share.label) };
                        let sms = share.sms.as_ref().map_or(String::new(), |s| format!(", {s}"));
                        format!("{}{own}{sms}", share.said())
                    },
                );
                out.push(printable(&format!("  {}: {said}", name(card))));
            }
        }
        if self.cells.len() > ROWS {
            out.push(format!("… {} more cells: `--json` has them all, `--to DIR` writes the page", self.cells.len() - ROWS));
        }
        out.extend(wrap(&self.note(), width));
        out.join("\n") + "\n"
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        let share = |s: &Option<Share>| match s {
            None => Value::Null,
            Some(s) => json!({ "cell": s.label, "value": quantity_json(s.value.as_ref()), "outcome": s.outcome,
                               "validity": s.validity, "sms": s.sms }),
        };
        let guideline = |on: &Option<(String, String, String)>| match on {
            None => Value::Null,
            Some((verdict, statement, finding)) => json!({ "verdict": verdict, "statement": statement, "finding": finding }),
        };
        json!({
            "schema": 1,
            "quantity": self.quantity,
            "cards": self.cards.iter().map(|c| json!({ "device": c.head.device, "simulated": c.head.simulated,
                "experiment": c.head.experiment, "campaign": c.head.campaign, "sms": c.sms })).collect::<Vec<_>>(),
            "warnings": self.warnings,
            "guidelines": self.guidelines.iter().map(|g| json!({ "id": g.id, "changed": g.changed,
                "on": g.on.iter().map(guideline).collect::<Vec<_>>() })).collect::<Vec<_>>(),
            "cells": self.cells.iter().map(|c| json!({ "cell": c.label,
                "on": c.on.iter().map(share).collect::<Vec<_>>() })).collect::<Vec<_>>(),
        })
    }

    /// Write `generations.html`, `.md` and `.json`.
    pub fn write(&self, folder: &std::path::Path) -> Result<Written> {
        fs_err::create_dir_all(folder)?;
        let mut data = serde_json::to_string_pretty(&self.json()).map_err(|e| Error::Io(e.into()))?;
        data.push('\n');
        let names = ["generations.html", "generations.md", "generations.json"];
        put(folder, &[(names[0], self.html()?), (names[1], self.markdown()), (names[2], data)])?;
        let [html, markdown, json] = names.map(|n| folder.join(n));
        Ok(Written { html, markdown, json })
    }

    fn html(&self) -> Result<String> {
        let page = Page { g: self, style: style(), note: self.note(), shown: &self.cells[..self.cells.len().min(PAGE_ROWS)] };
        Ok(askama::Template::render(&page)?)
    }

    fn markdown(&self) -> String {
        let devices: Vec<String> = self.cards.iter().map(|c| plain(&c.head.device)).collect();
        let mut out = vec![format!("# What changed between {}", devices.join(", ")), String::new()];
        out.extend(self.warnings.iter().map(|w| format!("> **Warning:** {}\n", plain(w))));
        let line = |first: &str| format!("| {first} | {} |\n|---|{}", devices.join(" | "), "---|".repeat(devices.len()));
        if !self.guidelines.is_empty() {
            out.push(line("guideline"));
            for row in &self.guidelines {
                let on = row
                    .on
                    .iter()
                    .map(|on| on.as_ref().map_or(String::new(), |(v, s, f)| format!("{}: {} {}", chip(v).2, plain(s), plain(f))));
                let changed = if row.changed { " (changed)" } else { "" };
                out.push(format!("| {}{changed} | {} |", plain(&row.id), on.collect::<Vec<_>>().join(" | ")));
            }
            out.push(String::new());
        }
        if !self.cells.is_empty() {
            out.push(line("cell"));
            for row in self.cells.iter().take(PAGE_ROWS) {
                let on = row.on.iter().map(|on| on.as_ref().map_or(String::new(), |s| plain(&s.said())));
                out.push(format!("| {} | {} |", plain(&row.label), on.collect::<Vec<_>>().join(" | ")));
            }
            out.push(String::new());
        }
        out.push(format!("{}.", self.note()));
        out.join("\n") + "\n"
    }
}

#[derive(askama::Template)]
#[template(path = "compare_generations.html")]
struct Page<'a> {
    g: &'a Generations,
    style: String,
    note: String,
    shown: &'a [CellRow],
}
