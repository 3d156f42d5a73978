//! A campaign beside what was published. In: a side, and the study's figures. Out: each figure that is about one of its cells beside
//! the cell's own number, as text, JSON, Markdown and a page. There is never a verdict: only whether the published value lies
//! inside our interval.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Head;
use super::conditions::Conditions;
use super::page::{Written, plain, put, style};
use super::published::{Figure, Study, bare, is_card, study};
use super::quantity;
use super::side::Side;
use super::text::{printable, wrap};
use crate::number;
use crate::quantity::Key;
use crate::render::json::quantity as quantity_json;
use crate::stats::Quantity;
use crate::{Error, Result};

/// Rows that a terminal is given.
const ROWS: usize = 60;

/// Where the published value lies.
#[derive(Debug, Clone, PartialEq)]
pub enum Place {
    /// Inside our interval.
    Inside,
    /// Outside of it: our nearest end ÷ the published value.
    Outside(f64),
    /// Our number has no interval.
    NoInterval,
    /// An outcome: the same, or another.
    Same,
    Other,
    /// It was published under conditions that were others here.
    OtherConditions,
}

impl Place {
    /// As people read it.
    pub fn text(&self) -> String {
        match self {
            Place::Inside => "inside our interval".into(),
            Place::Outside(by) if *by > 1.0 => format!("outside: ours is at least {:.1} % more", (by - 1.0) * 100.0),
            Place::Outside(by) => format!("outside: ours is at least {:.1} % less", (1.0 - by) * 100.0),
            Place::NoInterval => "one run has no interval".into(),
            Place::Same => "the same outcome".into(),
            Place::Other => "another outcome".into(),
            Place::OtherConditions => "not held against it: other conditions".into(),
        }
    }

    /// As JSON has it.
    pub fn word(&self) -> &'static str {
        match self {
            Place::Inside => "inside",
            Place::Outside(_) => "outside",
            Place::NoInterval => "no_interval",
            Place::Same => "same",
            Place::Other => "other",
            Place::OtherConditions => "other_conditions",
        }
    }
}

/// One figure beside a cell.
#[derive(Debug)]
pub struct Row {
    pub cell: String,
    pub figure: &'static Figure,
    pub ours: Option<Quantity>,
    pub outcome: String,
    pub validity: String,
    pub place: Option<Place>,
    /// What was published of how it was trained, beside what our members told.
    pub conditions: Conditions,
    mixed: bool,
}

/// A campaign beside the study.
#[derive(Debug)]
pub struct Beside {
    pub head: Head,
    pub rows: Vec<Row>,
    pub warnings: Vec<String>,
    /// Cells of the campaign that nothing was published of.
    pub others: usize,
}

/// Hold a side against the study.
pub fn beside(side: &Side) -> Beside {
    let study = study();
    let same_card = is_card(&side.device.name);
    let mut warnings = Vec::new();
    if side.device.simulated {
        warnings.push("the device is simulated and was calibrated on these figures: agreement is circular".to_string());
    }
    if !same_card {
        warnings.push(format!(
            "the study measured a {}, this is a {}: times are left out, ratios stand beside each other all the same",
            bare(&study.device),
            side.device_said()
        ));
    }
    if !side.synthetic.is_empty() {
        warnings.push(format!("trained on stand-ins for {}, the study on the data themselves", side.synthetic.join(", ")));
    }
    if !side.shortened.is_empty() {
        warnings.push("epochs were cut short here; those of the study were whole".into());
    }
    let (mut rows, mut others) = (Vec::new(), 0);
    for cell in &side.cells {
        let members: Vec<(&str, Option<u64>)> = cell.members.iter().map(|m| (m.workload.as_str(), m.batch_size)).collect();
        let about = study.figures.iter().filter(|f| f.is_about(&cell.sharing, &members) && (same_card || !f.is_absolute()));
        let whole = |f: &&Figure| side.shortened.is_empty() || f.quantity != Key::EpochTime.name;
        let before = rows.len();
        rows.extend(about.filter(whole).map(|figure| {
            let ours = figure.value(cell);
            let conditions = figure.conditions(cell.members.iter().map(|m| (m.workload.as_str(), m.regime.as_ref())));
            let place = match &figure.outcome {
                _ if !conditions.differ.is_empty() => Some(Place::OtherConditions),
                Some(outcome) => Some(if *outcome == cell.outcome { Place::Same } else { Place::Other }),
                None => ours.as_ref().and_then(|q| figure.place(q)),
            };
            Row {
                cell: cell.label.clone(),
                figure,
                ours,
                outcome: crate::render::words::outcome(&cell.outcome),
                validity: cell.validity.clone(),
                place: place.filter(|_| cell.validity != "void" || figure.outcome.is_some()),
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
        warnings.push(format!("not told by members here, so it may differ from the study's: {names}"));
    }
    Beside { head: Head::of(side), rows, warnings, others }
}

impl Row {
    /// What differs in the conditions; empty where nothing does.
    pub fn differs(&self) -> String {
        self.conditions.text(self.mixed)
    }

    fn ours_text(&self) -> String {
        let (_, unit, factor) = quantity::unit(&self.figure.quantity);
        match &self.ours {
            _ if self.figure.outcome.is_some() => self.outcome.clone(),
            Some(q) => format!("{} {unit}", number::scaled(q, factor)).trim().to_string(),
            None if self.outcome == "completed" => number::ABSENT.into(),
            None => self.outcome.clone(),
        }
    }

    /// Ours ÷ published, where the published is one value.
    fn ratio(&self) -> Option<f64> {
        let (low, high) = self.figure.range?;
        (low == high).then_some(())?;
        Some(self.ours.as_ref()?.estimate / low)
    }

    fn place_text(&self) -> String {
        let text = self.place.as_ref().map_or_else(|| "nothing to hold against it".into(), Place::text);
        if self.validity == "valid" { text } else { format!("{text} ({})", self.validity) }
    }

    fn quantity(&self) -> &str {
        match self.figure.quantity.as_str() {
            "progress" => "speed ÷ alone",
            name => quantity::unit(name).0,
        }
    }

    fn texts(&self) -> [String; 6] {
        let ratio = self.ratio().map_or_else(|| number::ABSENT.into(), |r| format!("{r:.2}"));
        let name = self.quantity().to_string();
        [self.cell.clone(), name, self.figure.value_text(), self.ours_text(), ratio, self.place_text()]
    }
}

const HEADS: [&str; 6] = ["cell", "quantity", "published", "here", "ratio", "the published value lies"];

impl Beside {
    fn title(&self) -> String {
        format!(
            "published:study → {} {}, on {}",
            self.head.experiment,
            self.head.campaign,
            super::text::with_article(&self.head.device)
        )
    }

    fn counts(&self) -> String {
        let of = |word: &str| self.rows.iter().filter(|r| r.place.as_ref().is_some_and(|p| p.word() == word)).count();
        let judged = self.rows.iter().filter(|r| r.place.is_some()).count();
        let inside = of("inside") + of("same");
        let otherwise = match of("other_conditions") {
            0 => String::new(),
            n => format!(", {n} published under other conditions"),
        };
        let about = number::count(self.rows.len(), "published figure");
        format!(
            "{about} about cells of this campaign: {inside} inside our interval or the same, {} outside or another, {} without an interval or a number{otherwise}; nothing was published of {}",
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
        format!("published by others, without intervals, so that no verdict is given: {}", sources.join("; "))
    }

    /// Each cell whose conditions are others than the published ones, with what differs: once for all its figures.
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

    /// For a terminal.
    pub fn text(&self, width: usize) -> String {
        let mut out = vec![printable(&self.title())];
        out.extend(self.warnings.iter().flat_map(|w| wrap(&printable(&format!("warning: {w}")), width)));
        let mut rows: Vec<[String; 6]> = vec![HEADS.map(String::from)];
        rows.extend(self.rows.iter().take(ROWS).map(|r| r.texts().map(|t| printable(&t))));
        if !self.rows.is_empty() {
            let widths: Vec<usize> = (0..6).map(|i| rows.iter().map(|r| r[i].chars().count()).max().unwrap_or(0)).collect();
            for row in &rows {
                let cells = row.iter().zip(&widths).map(|(t, w)| format!("{t}{}", " ".repeat(w - t.chars().count())));
                out.push(cells.collect::<Vec<_>>().join("  ").trim_end().to_string());
            }
        }
        if self.rows.len() > ROWS {
            out.push(format!("… {} more: `--json` has them all, `--to DIR` writes the page", self.rows.len() - ROWS));
        }
        let otherwise = self.otherwise();
        if !otherwise.is_empty() {
            out.push("other conditions than the published:".into());
            out.extend(otherwise.iter().take(ROWS).flat_map(|line| wrap(&printable(line), width)));
        }
        out.extend(wrap(&self.counts(), width));
        if !self.rows.is_empty() {
            out.extend(wrap(&self.note(), width));
        } else {
            out.extend(wrap(
                "the study measured small, medium, large and others of `collo list workloads`: collo run study-uniform",
                width,
            ));
        }
        out.join("\n") + "\n"
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        let study = study();
        let row = |r: &Row| {
            let f = r.figure;
            json!({ "cell": r.cell, "quantity": f.quantity, "member": f.member, "id": f.id,
                    "published": { "low": f.range.map(|v| v.0), "high": f.range.map(|v| v.1), "outcome": f.outcome,
                                   "text": f.published, "conditions": f.conditions, "source": f.source },
                    "here": quantity_json(r.ours.as_ref()), "outcome": r.outcome, "validity": r.validity,
                    "ratio": r.ratio(), "place": r.place.as_ref().map(Place::word), "text": r.place_text(), "conditions": r.conditions.json() })
        };
        json!({
            "schema": 1,
            "published": { "name": "study", "device": study.device, "software": study.software },
            "campaign": self.head.campaign, "experiment": self.head.experiment, "device": self.head.device,
            "simulated": self.head.simulated,
            "warnings": self.warnings,
            "figures": self.rows.iter().map(row).collect::<Vec<_>>(),
            "cells_without_figure": self.others,
            "held_against_no_cell": study.others.iter().map(|o| json!({ "published": o[0], "why": o[1], "source": o[2] })).collect::<Vec<_>>(),
        })
    }

    /// Write `published.html`, `.md` and `.json`.
    pub fn write(&self, folder: &std::path::Path) -> Result<Written> {
        fs_err::create_dir_all(folder)?;
        let mut data = serde_json::to_string_pretty(&self.json()).map_err(|e| Error::Io(e.into()))?;
        data.push('\n');
        let names = ["published.html", "published.md", "published.json"];
        let page = Page {
            b: self,
            study: study(),
            heads: HEADS,
            style: style(),
            title: self.title(),
            note: self.note(),
            counts: self.counts(),
        };
        put(folder, &[(names[0], askama::Template::render(&page)?), (names[1], self.markdown()), (names[2], data)])?;
        let [html, markdown, json] = names.map(|n| folder.join(n));
        Ok(Written { html, markdown, json })
    }

    fn markdown(&self) -> String {
        let mut out = vec![format!("# {}", plain(&self.title())), String::new()];
        out.extend(self.warnings.iter().map(|w| format!("> **Warning:** {}\n", plain(w))));
        out.push(format!("| {} | in the source's words |\n|---|---|---|---|--:|---|---|", HEADS.join(" | ")));
        for row in &self.rows {
            let said = format!("{} ({})", row.figure.published, row.figure.conditions);
            out.push(format!("| {} | {} |", row.texts().map(|t| plain(&t)).join(" | "), plain(&said)));
        }
        let otherwise = self.otherwise();
        if !otherwise.is_empty() {
            out.push("\nOther conditions than the published:\n".into());
            out.extend(otherwise.iter().map(|line| format!("- {}", plain(line))));
        }
        out.extend([String::new(), format!("{}. {}.", self.counts(), self.note())]);
        out.join("\n") + "\n"
    }
}

#[derive(askama::Template)]
#[template(path = "compare_published.html")]
struct Page<'a> {
    b: &'a Beside,
    study: &'static Study,
    heads: [&'static str; 6],
    style: String,
    title: String,
    note: String,
    counts: String,
}
