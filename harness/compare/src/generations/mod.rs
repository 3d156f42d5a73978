//! Compares several GPU models. In: one side per model. Out: the best way to run each workload on each model with its throughput, which
//! guidelines changed, and the gain of each group, with slices matched by their share.

mod best;
mod brief;
mod page;
mod summary;
mod throughput;

pub use best::{Best, BestRow, MemberItems};

use collo_figures::document::{Block, Document, Present, common_settings};
use collo_guidelines::report_json::CellJson;
use collo_guidelines::rule::Guideline;
use collo_guidelines::verdict::Holds;
use collo_quantity::stats::Quantity;
use collo_quantity::{Key, key, number};
use serde::Serialize;
use serde_json::{Value, json};

use crate::side::{ComparedReport, Head, cards, matching, quantity};
use crate::{Error, Result};

use throughput::Throughput;

/// Facts of the environment besides the GPU on which a throughput depends.
const SOFTWARE: [&str; 5] = ["driver", "CUDA", "torch", "kernel", "CPU"];

/// The comparison of several GPU models.
#[derive(Debug)]
pub struct Generations {
    pub cards: Vec<ModelColumn>,
    /// The quantity of the cells, by its name in JSON.
    pub quantity: String,
    /// What to run of each workload and mix.
    pub best: Vec<BestRow>,
    /// Whether a million items have a cost: the price of an hour is known of each GPU.
    has_prices: bool,
    /// Changed ones first.
    pub guidelines: Vec<GuidelineRow>,
    pub cells: Vec<CellRow>,
    throughput: Throughput,
    /// The settings that all cells have in common.
    common: String,
    pub warnings: Vec<String>,
}

/// One GPU model of the table.
#[derive(Debug)]
pub struct ModelColumn {
    pub head: Head,
    /// SMs of the whole GPU, if known.
    pub sms: Option<String>,
    /// Its report has groups that trained and no decisions, as earlier versions wrote it.
    is_older: bool,
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

/// Compare sides by a quantity that has no unit; the throughput gain by default. Prices are of an hour on each, if they are known.
pub fn generations(sides: &[ComparedReport], asked: Option<&str>, prices: &[f64]) -> Result<Generations> {
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
    warnings.extend(other_software(sides));
    let card = |s: &ComparedReport| ModelColumn {
        head: Head::of(s),
        sms: s.fact("SMs").map(str::to_string),
        is_older: s.decisions.is_empty() && s.cells.iter().any(trained_together),
    };
    let cards: Vec<ModelColumn> = sides.iter().map(card).collect();
    let best = best::rows(sides, prices);
    let names: Vec<String> = cards.iter().map(ModelColumn::name).collect();
    let throughput = Throughput::of(sides, &best, &names);
    let common = common_settings(sides.iter().flat_map(|s| &s.cells).map(|cell| cell.label.as_str()));
    let has_prices = !prices.is_empty();
    Ok(Generations { cards, quantity: name, best, has_prices, guidelines, cells, throughput, common, warnings })
}

/// True for a group of which a report of this version decides.
fn trained_together(cell: &CellJson) -> bool {
    cell.degree > 1 && [Key::ThroughputGain, Key::Items].iter().any(|key| cell.get(key.name).is_some())
}

/// What else differs between the machines, and is in a ratio of throughputs.
fn other_software(sides: &[ComparedReport]) -> Option<String> {
    let differs = |name: &&str| sides.iter().any(|side| side.fact(name) != sides[0].fact(name));
    let names: Vec<&str> = SOFTWARE.into_iter().filter(differs).collect();
    (!names.is_empty()).then(|| format!("besides the GPU these differ, and every ratio includes it: {}", names.join(", ")))
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

impl GuidelineRow {
    /// The statement that every GPU model has, if it is the same.
    fn common_statement(&self) -> Option<&str> {
        let (first, others) = self.on.split_first()?;
        let first = first.as_ref()?;
        let is_same = |other: &Option<GuidelineAnswer>| {
            other.as_ref().is_some_and(|answer| (answer.holds, &answer.statement) == (first.holds, &first.statement))
        };
        others.iter().all(is_same).then_some(first.statement.as_str())
    }

    /// True if no GPU model has an answer.
    fn is_open(&self) -> bool {
        !self.changed && self.on.iter().flatten().all(|answer| answer.holds == Holds::Open)
    }
}

impl Generations {
    /// The caveat about the origin of the numbers, where some are simulated.
    fn simulated(&self) -> Option<&'static str> {
        let simulated = self.cards.iter().filter(|c| c.head.simulated).count();
        match simulated {
            0 => None,
            n if n == self.cards.len() => Some("Nothing here was measured: a model invented the numbers of every GPU."),
            _ => Some("A model invented the numbers of every GPU marked simulated; those of the others were measured."),
        }
    }

    /// True if all numbers are simulated.
    fn all_simulated(&self) -> bool {
        self.cards.iter().all(|c| c.head.simulated)
    }

    /// True if the energy of some best way rests on too few steps of the counter.
    fn has_few_energy_steps(&self) -> bool {
        self.best.iter().flat_map(|row| row.on.iter().flatten()).any(|best| best.few_energy_steps)
    }

    /// Caveats of its tables and figures.
    fn tags(&self) -> Vec<String> {
        let text = if self.all_simulated() { "simulated" } else { "partly simulated" };
        self.simulated().map(|_| text.to_string()).into_iter().collect()
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
        self.head.device_short.clone()
    }
}

impl Present for Generations {
    const NAME: &'static str = "generations";

    fn json(&self) -> Value {
        json!({
            "schema": 2,
            "summary": summary::sentences(self),
            "quantity": self.quantity,
            "cards": self.cards.iter().map(|c| json!({ "device": c.head.device, "simulated": c.head.simulated,
                "experiment": c.head.experiment, "campaign": c.head.campaign, "sms": c.sms })).collect::<Vec<_>>(),
            "warnings": self.warnings,
            "best": self.best,
            "guidelines": self.guidelines,
            "cells": self.cells,
        })
    }

    fn brief(&self) -> Vec<Block> {
        brief::blocks(self)
    }

    fn document(&self) -> Document {
        page::document(self)
    }
}
