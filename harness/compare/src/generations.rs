//! Compares several GPU models. In: one side per model. Out: which guidelines changed, and the gain of each group on each model,
//! with slices matched by their share. Times of different GPU models are not compared.

use collo_figures::document::{Badge, Block, Document, Fact, FactLine, Present, Row, Section, Table, TableCell, TableLayout};
use collo_guidelines::report_json::CellJson;
use collo_guidelines::rule::Guideline;
use collo_guidelines::verdict::Holds;
use collo_quantity::key;
use collo_quantity::number;
use collo_quantity::stats::Quantity;
use serde::Serialize;
use serde_json::{Value, json};

use crate::side::lines::more;
use crate::side::{ComparedReport, Head};
use crate::side::{cards, matching, quantity};
use crate::{Error, Result};

/// Maximum rows in a terminal, and on a page.
const ROWS: usize = 40;
const PAGE_ROWS: usize = 500;

/// The comparison of several GPU models.
#[derive(Debug)]
pub struct Generations {
    pub cards: Vec<ModelColumn>,
    /// The quantity of the cells, by its name in JSON.
    pub quantity: String,
    /// Changed ones first.
    pub guidelines: Vec<GuidelineRow>,
    pub cells: Vec<CellRow>,
    pub warnings: Vec<String>,
}

/// One GPU model of the table.
#[derive(Debug)]
pub struct ModelColumn {
    pub head: Head,
    /// SMs of the whole GPU, if known.
    pub sms: Option<String>,
}

/// One guideline on every GPU model.
#[derive(Debug, Serialize)]
pub struct GuidelineRow {
    pub id: String,
    pub changed: bool,
    /// By GPU model; `None` where the report has not got it.
    pub on: Vec<Option<GuidelineAnswer>>,
}

/// The verdict of a guideline on one GPU model.
#[derive(Debug, Serialize)]
pub struct GuidelineAnswer {
    pub holds: Holds,
    pub statement: String,
    pub finding: String,
}

/// One group on every GPU model.
#[derive(Debug, Serialize)]
pub struct CellRow {
    /// The label on the first GPU model that has it.
    #[serde(rename = "cell")]
    pub label: String,
    pub on: Vec<Option<Share>>,
}

/// A group's slice on a GPU model.
#[derive(Debug, Serialize)]
pub struct Share {
    #[serde(rename = "cell")]
    pub label: String,
    pub value: Option<Quantity>,
    pub outcome: String,
    pub validity: String,
    pub sms: Option<String>,
}

impl CellRow {
    /// Largest ÷ smallest value over the GPU models.
    fn spread(&self) -> f64 {
        let values = || self.on.iter().flatten().filter_map(|s| s.value.as_ref()).map(|q| q.estimate);
        match (values().reduce(f64::min), values().reduce(f64::max)) {
            (Some(low), Some(high)) => high / low,
            _ => 1.0,
        }
    }
}

/// Compare sides by a quantity that has no unit; the throughput gain by default.
pub fn generations(sides: &[ComparedReport], asked: Option<&str>) -> Result<Generations> {
    let name = asked.unwrap_or(quantity::ACROSS.name).to_string();
    if let [first, .., last] = sides
        && key::is_absolute(&name)
    {
        return Err(Error::AcrossDevices { quantity: name, left: first.device_said(), right: last.device_said() });
    }
    let known: Vec<Option<cards::GpuModel>> = sides.iter().map(|s| cards::card(&s.device.name, s.device.memory_bytes)).collect();
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
        return Err(crate::side::nothing_in_common(left, right));
    }
    let mut warnings = Vec::new();
    for (i, side) in sides.iter().enumerate() {
        if sides[..i].iter().any(|other| other.device == side.device) {
            warnings.push(format!("{} appears more than once", side.device_said()));
        }
        warnings.extend(side.indicative.iter().map(|why| format!("{} is indicative: {why}", side.device_said())));
    }
    if sides.iter().any(|s| s.device.simulated) && sides.iter().any(|s| !s.device.simulated) {
        warnings.push("some of these GPUs are simulated: a model invented their numbers".into());
    }
    if sides.iter().any(|s| s.synthetic != sides[0].synthetic) {
        warnings.push("the GPUs trained on different data, real and stand-ins".into());
    }
    let cards = sides.iter().map(|s| ModelColumn { head: Head::of(s), sms: s.fact("SMs").map(str::to_string) }).collect();
    Ok(Generations { cards, quantity: name, guidelines, cells, warnings })
}

fn share(cell: &CellJson, name: &str, card: Option<&cards::GpuModel>) -> Share {
    let text = cell.slots.as_deref().unwrap_or(&cell.sharing);
    Share {
        label: cell.label.clone(),
        value: cell.get(name),
        outcome: cell.outcome.clone(),
        validity: cell.validity.clone(),
        sms: card.and_then(|c| c.sms_of(text)),
    }
}

/// Guidelines of all sides: those whose answer differs first, then in the order of the first report.
fn guidelines(sides: &[ComparedReport]) -> Vec<GuidelineRow> {
    let mut ids: Vec<&str> = Vec::new();
    for advice in sides.iter().flat_map(|s| &s.guidelines) {
        if !ids.contains(&advice.id.as_str()) {
            ids.push(&advice.id);
        }
    }
    let of = |id: &str| {
        let answer =
            |g: &Guideline| GuidelineAnswer { holds: g.holds, statement: g.statement.clone(), finding: g.finding.clone() };
        let on: Vec<_> = sides.iter().map(|s| s.guidelines.iter().find(|g| g.id == id).map(answer)).collect();
        let mut answers: Vec<Holds> = on.iter().flatten().map(|answer| answer.holds).collect();
        answers.dedup();
        GuidelineRow { id: id.into(), changed: answers.len() > 1, on }
    };
    let mut rows: Vec<GuidelineRow> = ids.into_iter().map(of).collect();
    rows.sort_by_key(|row| !row.changed);
    rows
}

impl Share {
    fn to_text(&self) -> String {
        let value = match &self.value {
            Some(q) => number::with_interval(q),
            None if self.outcome == "completed" => number::ABSENT.into(),
            None => collo_analysis::words::outcome(&self.outcome),
        };
        if self.validity == "valid" || self.value.is_none() { value } else { format!("{value} {}", self.validity) }
    }
}

impl Generations {
    /// True if numbers of a GPU come from a model.
    pub fn simulated(&self) -> bool {
        self.cards.iter().any(|c| c.head.simulated)
    }

    fn to_text(&self) -> &str {
        key::column(&self.quantity).0
    }

    fn note(&self) -> String {
        format!(
            "cells: {} with 95 % intervals, each GPU against its own baseline; slices are matched by their share of the GPU; times are not compared",
            self.to_text()
        )
    }
}

impl ModelColumn {
    /// Its device without the maker's name.
    fn name(&self) -> String {
        self.head.device.replace("NVIDIA ", "")
    }
}

impl Present for Generations {
    const NAME: &'static str = "generations";

    fn json(&self) -> Value {
        json!({
            "schema": 2,
            "quantity": self.quantity,
            "cards": self.cards.iter().map(|c| json!({ "device": c.head.device, "simulated": c.head.simulated,
                "experiment": c.head.experiment, "campaign": c.head.campaign, "sms": c.sms })).collect::<Vec<_>>(),
            "warnings": self.warnings,
            "guidelines": self.guidelines,
            "cells": self.cells,
        })
    }

    fn brief(&self) -> Vec<Block> {
        let mut lines: Vec<String> = Vec::new();
        for card in &self.cards {
            let sms = card.sms.as_ref().map_or(String::new(), |n| format!(", {n} SMs"));
            lines.push(format!("{}{sms}: {} {}", card.name(), card.head.experiment, card.head.campaign));
        }
        lines.extend(self.warnings.iter().map(|w| format!("warning: {w}")));
        let open = |row: &&GuidelineRow| !row.changed && row.on.iter().flatten().all(|answer| answer.holds == Holds::Open);
        let missing = || "not in this report".to_string();
        for row in self.guidelines.iter().filter(|row| !open(row)) {
            lines.push(format!("{}: {}", row.id, if row.changed { "changed" } else { "the same" }));
            for (card, on) in self.cards.iter().zip(&row.on) {
                let said = on.as_ref().map_or_else(missing, |GuidelineAnswer { holds, statement, finding }| {
                    format!("{}: {statement} {finding}", Badge::from(*holds).to_text()).replace('`', "")
                });
                lines.push(format!("  {}: {said}", card.name()));
            }
        }
        let without: Vec<&str> = self.guidelines.iter().filter(open).map(|row| row.id.as_str()).collect();
        if !without.is_empty() {
            lines.push(format!("open on every GPU: {}", without.join(", ")));
        }
        for row in self.cells.iter().take(ROWS) {
            lines.push(row.label.clone());
            for (card, on) in self.cards.iter().zip(&row.on) {
                let said = on.as_ref().map_or_else(missing, |share| {
                    let own = if share.label == row.label { String::new() } else { format!(" as {}", share.label) };
                    let sms = share.sms.as_ref().map_or(String::new(), |s| format!(", {s}"));
                    format!("{}{own}{sms}", share.to_text())
                });
                lines.push(format!("  {}: {said}", card.name()));
            }
        }
        lines.extend(more(self.cells.len(), ROWS, " cells"));
        lines.push(self.note());
        vec![Block::Notes(lines)]
    }

    fn document(&self) -> Document {
        let devices: Vec<&str> = self.cards.iter().map(|c| c.head.device.as_str()).collect();
        let fact = |c: &ModelColumn| {
            let sms = c.sms.as_ref().map_or(String::new(), |n| format!("{n} SMs, "));
            let lines = vec![FactLine::Text(format!("{sms}{}", c.head.experiment)), FactLine::Code(c.head.campaign.clone())];
            Fact { name: c.head.device.clone(), lines }
        };
        Document {
            name: "collo compare: generations".into(),
            title: format!("What changed: {}", devices.join(" → ")),
            facts: self.cards.iter().map(fact).collect(),
            files: vec![("Markdown", "generations.md"), ("JSON", "generations.json")],
            warnings: self.warnings.clone(),
            sections: vec![self.advice(), self.shares()],
            ..Document::default()
        }
        .simulated(self.simulated().then_some("A model invented the numbers of every GPU marked simulated."))
    }
}

impl Generations {
    /// A table with a column for each GPU model.
    fn table(&self, first: &str) -> Table {
        let heads: Vec<&str> = [first].into_iter().chain(self.cards.iter().map(|c| c.head.device.as_str())).collect();
        Table::with(&heads).looking(TableLayout::Prose)
    }

    fn advice(&self) -> Section {
        let mut table = self.table("guideline");
        for row in &self.guidelines {
            let mut cells = vec![TableCell::with_note(&row.id, if row.changed { "changed" } else { "" })];
            cells.extend(row.on.iter().map(|on| match on {
                None => TableCell::default(),
                Some(GuidelineAnswer { holds, statement, finding }) => TableCell {
                    chip: Some(Badge::from(*holds)),
                    ..TableCell::with_note(statement.replace('`', ""), finding.replace('`', ""))
                },
            }));
            table.rows.push(Row { marked: row.changed, cells, ..Row::default() });
        }
        let none = if self.guidelines.is_empty() { "None of these reports has a guideline." } else { "" };
        Section {
            id: "guidelines",
            title: "Guidelines",
            finding: none.into(),
            blocks: table.if_any().into_iter().collect(),
            ..Section::default()
        }
    }

    fn shares(&self) -> Section {
        let mut table = self.table("cell");
        let shown = &self.cells[..self.cells.len().min(PAGE_ROWS)];
        for row in shown {
            let mut cells = vec![TableCell::text(&row.label)];
            cells.extend(row.on.iter().map(|on| match on {
                None => TableCell::default(),
                Some(share) => {
                    let own = (share.label != row.label).then(|| share.label.clone());
                    let note: Vec<String> = own.into_iter().chain(share.sms.clone()).collect();
                    TableCell::with_note(share.to_text(), note.join(", "))
                }
            }));
            table.row(cells);
        }
        let left_out = self.cells.len() - shown.len();
        let none = if shown.is_empty() { " No group is in two of these reports." } else { "" };
        let mut blocks: Vec<Block> = table.if_any().into_iter().collect();
        if left_out > 0 {
            blocks.push(Block::Remark(format!("{left_out} more, which differ least, are in generations.json.")));
        }
        let finding = format!("{}.{none}", self.note());
        Section { id: "cells-by-share", title: "Cells by share of the GPU", finding, blocks, ..Section::default() }
    }
}
