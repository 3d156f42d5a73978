//! A campaign compared with published results. In: a side, and the study's figures. Out: each figure that is about one of its
//! cells beside the cell's own number, as text, JSON, Markdown and a page. There is never a verdict: only whether the published
//! value is inside our interval.

use std::collections::BTreeSet;

use collo_figures::document::{Block, Document, Fact, Present, Section, Table, TableCell, TableLayout};
use collo_guidelines::published::conditions::Conditions;
use collo_guidelines::published::position::Position;
use collo_guidelines::published::study::{Other, PublishedFigure, is_card, study};
use collo_guidelines::report_json::CellJson;
use collo_quantity::stats::Quantity;
use collo_quantity::{Key, key, number};
use serde_json::{Value, json};

use crate::side::lines::{ROWS, more, with_article};
use crate::side::{ComparedReport, Head};

/// One figure beside a cell.
#[derive(Debug)]
pub struct PublishedRow {
    pub cell: String,
    pub figure: &'static PublishedFigure,
    pub ours: Option<Quantity>,
    pub outcome: String,
    pub validity: String,
    pub place: Option<Position>,
    /// The published training conditions, compared with our members' own.
    pub conditions: Conditions,
    mixed: bool,
}

/// A campaign compared with the study.
#[derive(Debug)]
pub struct PublishedComparison {
    pub head: Head,
    pub rows: Vec<PublishedRow>,
    pub warnings: Vec<String>,
    /// Cells of the campaign without a published figure.
    pub others: usize,
}

/// Compare a side with the study.
pub fn beside(side: &ComparedReport) -> PublishedComparison {
    let study = study();
    let same_card = is_card(&side.device.name);
    let mut warnings: Vec<String> = side.indicative.iter().map(|why| format!("all of it is indicative: {why}")).collect();
    if side.device.simulated {
        warnings.push("the device is simulated and was calibrated on these figures: agreement is circular".to_string());
    }
    if !same_card {
        warnings.push(format!(
            "the devices differ ({} published, {} here): ratios are compared, times are not",
            collo_gpus::without_vendor(&study.device),
            side.device_said()
        ));
    }
    if !side.synthetic.is_empty() {
        warnings.push(format!("trained on stand-ins for {}; the study used the real data", side.synthetic.join(", ")));
    }
    if !side.shortened.is_empty() {
        warnings.push("epochs were shortened here; those of the study were whole".into());
    }
    let (mut rows, mut others) = (Vec::new(), 0);
    for cell in &side.cells {
        let members: Vec<(&str, Option<u64>)> = cell.members.iter().map(|m| (m.workload.as_str(), m.batch_size)).collect();
        let about = study.figures.iter().filter(|f| f.is_about(&cell.sharing, &members) && (same_card || !f.is_absolute()));
        let whole = |f: &&PublishedFigure| side.shortened.is_empty() || f.quantity != Key::EpochTime.name;
        let before = rows.len();
        rows.extend(about.filter(whole).map(|figure| {
            let ours = value_of(cell, figure);
            let conditions = figure.conditions(cell.members.iter().map(|m| (m.workload.as_str(), m.regime.as_ref())));
            let place = match &figure.outcome {
                _ if !conditions.differ.is_empty() => Some(Position::OtherConditions),
                Some(outcome) => Some(if *outcome == cell.outcome { Position::Same } else { Position::Other }),
                None => ours.as_ref().and_then(|q| figure.place(q)),
            };
            PublishedRow {
                cell: cell.label.clone(),
                figure,
                ours,
                outcome: collo_analysis::words::outcome(&cell.outcome),
                validity: cell.validity.clone(),
                place: place
                    .filter(|_| !matches!(cell.validity.as_str(), "discarded" | "out_of_memory") || figure.outcome.is_some()),
                conditions,
                mixed: cell.members.windows(2).any(|pair| pair[0].workload != pair[1].workload),
            }
        }));
        others += usize::from(rows.len() == before);
    }
    let silent = rows.iter().filter(|r| !r.conditions.not_told.is_empty()).flat_map(|r| &r.conditions.not_told);
    let silent: BTreeSet<String> = silent.map(|name| name.replace('_', " ")).collect();
    if !silent.is_empty() {
        let names = silent.into_iter().collect::<Vec<_>>().join(", ");
        warnings.push(format!("not reported by members here, may differ from the study: {names}"));
    }
    PublishedComparison { head: Head::of(side), rows, warnings, others }
}

/// The cell's own number for a figure.
fn value_of(cell: &CellJson, figure: &PublishedFigure) -> Option<Quantity> {
    if figure.quantity != "progress" {
        return cell.get(&figure.quantity);
    }
    // Normalised progress is one over the slowdown.
    let slowdown = cell.of_member(figure.member_of(cell.members.iter().map(|m| m.workload.as_str()))?, Key::Slowdown.name)?;
    Some(slowdown.inverse())
}

impl PublishedRow {
    /// The differing conditions; empty if there are none.
    pub fn differs(&self) -> String {
        self.conditions.text(self.mixed)
    }

    fn ours_text(&self) -> String {
        let (_, unit, factor) = key::column(&self.figure.quantity);
        match &self.ours {
            _ if self.figure.outcome.is_some() => self.outcome.clone(),
            Some(q) => format!("{} {unit}", number::scaled(q, factor)).trim().to_string(),
            None if self.outcome == "completed" => number::ABSENT.into(),
            None => self.outcome.clone(),
        }
    }

    /// Ours ÷ published, if the published figure is one value.
    fn ratio(&self) -> Option<f64> {
        let (low, high) = self.figure.range()?;
        (low == high).then_some(())?;
        Some(self.ours.as_ref()?.estimate / low)
    }

    fn place_text(&self) -> String {
        let text = self.place.as_ref().map_or_else(|| "nothing to compare".into(), Position::text);
        // Out of memory is said by the outcome.
        if matches!(self.validity.as_str(), "valid" | "out_of_memory") { text } else { format!("{text} ({})", self.validity) }
    }

    fn quantity(&self) -> &str {
        match self.figure.quantity.as_str() {
            "progress" => "speed ÷ alone",
            name => key::column(name).0,
        }
    }

    fn texts(&self) -> [String; 6] {
        let ratio = self.ratio().map_or_else(|| number::ABSENT.into(), |r| format!("{r:.2}"));
        let name = self.quantity().to_string();
        [self.cell.clone(), name, self.figure.value_text(), self.ours_text(), ratio, self.place_text()]
    }
}

const HEADS: [&str; 6] = ["cell", "quantity", "published", "here", "ratio", "the published value is"];

impl PublishedComparison {
    fn title(&self) -> String {
        format!("published:study → {} {}, on {}", self.head.experiment, self.head.campaign, with_article(&self.head.device))
    }

    fn counts(&self) -> String {
        let of = |word: &str| self.rows.iter().filter(|r| r.place.as_ref().is_some_and(|p| p.as_str() == word)).count();
        let judged = self.rows.iter().filter(|r| r.place.is_some()).count();
        let inside = of("inside") + of("same");
        let otherwise = match of("other_conditions") {
            0 => String::new(),
            n => format!(", {n} published under other conditions"),
        };
        let about = number::count(self.rows.len(), "published figure");
        format!(
            "{about} for cells of this campaign: {inside} inside our interval or the same outcome, {} outside or another outcome, {} without an interval or a number{otherwise}; nothing was published for {}",
            of("outside") + of("other"),
            of("no_interval") + self.rows.len() - judged,
            number::count(self.others, "cell")
        )
    }

    fn note(&self) -> String {
        let mut sources: Vec<&str> = self.rows.iter().map(|r| r.figure.source.as_str()).collect();
        sources.dedup();
        sources.sort_unstable();
        sources.dedup();
        format!("published by others, without intervals, so no verdict is given: {}", sources.join("; "))
    }

    /// Each cell whose conditions differ from the published ones, with the differences: once for all its figures.
    fn otherwise(&self) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for row in self.rows.iter().filter(|r| !r.conditions.differ.is_empty()) {
            let line = format!("{}: {}", row.cell, row.differs());
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        lines
    }
}

impl Present for PublishedComparison {
    const NAME: &'static str = "published";

    fn json(&self) -> Value {
        let study = study();
        let row = |r: &PublishedRow| {
            let f = r.figure;
            json!({ "cell": r.cell, "quantity": f.quantity, "member": f.member, "id": f.id,
                    "published": { "low": f.range().map(|v| v.0), "high": f.range().map(|v| v.1), "outcome": f.outcome,
                                   "text": f.published, "conditions": f.conditions, "source": f.source },
                    "here": r.ours, "outcome": r.outcome, "validity": r.validity,
                    "ratio": r.ratio(), "place": r.place.as_ref().map(Position::as_str), "text": r.place_text(), "conditions": r.conditions.json() })
        };
        json!({
            "schema": 2,
            "published": { "name": "study", "device": study.device, "software": study.software },
            "campaign": self.head.campaign, "experiment": self.head.experiment, "device": self.head.device,
            "simulated": self.head.simulated,
            "warnings": self.warnings,
            "figures": self.rows.iter().map(row).collect::<Vec<_>>(),
            "cells_without_figure": self.others,
            "held_against_no_cell": study.others,
        })
    }

    fn brief(&self) -> Vec<Block> {
        let lines = [self.title()].into_iter().chain(self.warnings.iter().map(|w| format!("warning: {w}")));
        let mut blocks = vec![Block::Notes(lines.collect())];
        if !self.rows.is_empty() {
            let mut table = Table::with(&HEADS);
            self.rows.iter().take(ROWS).for_each(|r| table.texts(r.texts()));
            blocks.push(Block::Table(table));
        }
        blocks.extend(more(self.rows.len(), ROWS, "").map(Block::Text));
        let otherwise = self.otherwise();
        if !otherwise.is_empty() {
            let shown = otherwise.into_iter().take(ROWS).collect();
            blocks.extend([Block::Text("conditions that differ from the published ones:".into()), Block::Notes(shown)]);
        }
        let study = "the study measured small, medium, large and others (`collo list workloads`): collo run study-uniform";
        let last = if self.rows.is_empty() { study.into() } else { self.note() };
        blocks.push(Block::Notes(vec![self.counts(), last]));
        blocks
    }

    fn document(&self) -> Document {
        let study = study();
        let mut figures = Vec::new();
        if !self.rows.is_empty() {
            let mut table = Table::with(&HEADS).looking(TableLayout::Prose);
            for row in &self.rows {
                let mut cells = row.texts().map(TableCell::text);
                cells[2].note = format!("“{}”; {}", row.figure.published, row.figure.conditions);
                cells[5].note = row.differs();
                table.row(cells.into());
            }
            figures.extend([Block::Table(table), Block::Remark(format!("{}.", self.note()))]);
        }
        let about = |o: &Other| format!("“{}”: {} ({}).", o.published, o.why, o.source);
        let others = vec![Block::Notes(study.others.iter().map(about).collect())];
        Document {
            name: format!("collo compare: {}", self.title()),
            title: "Compared with published results".into(),
            subtitle: self.title(),
            facts: vec![Fact::new("The study", format!("{}, {}", study.device, study.software))],
            files: vec![("Markdown", "published.md"), ("JSON", "published.json")],
            warnings: self.warnings.clone(),
            sections: vec![
                Section {
                    id: "figures",
                    title: "Figures",
                    finding: format!("{}.", self.counts()),
                    blocks: figures,
                    ..Section::default()
                },
                Section { id: "others", title: "Without a matching cell", blocks: others, ..Section::default() },
            ],
            ..Document::default()
        }
        .simulated(self.head.simulated.then_some("The device's model was calibrated on these figures: agreement is circular."))
    }
}
