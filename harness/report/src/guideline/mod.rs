//! Guidelines: advice that rests on named cells. In: an analysis. Out: statements with verdict, evidence and what is published. A
//! guideline reads valid cells only; where they do not suffice it says so, with the command that would bring the evidence.
//!
//! To add one: a file here, and its line in [`all`], which is also the order of the page.

mod collocate;
mod fairness;
mod memory;
mod naive;

use crate::analysis::{Analysis, Cell};
use crate::stats::Quantity;

pub(crate) use collocate::capital;
pub use collocate::{Knee, knees};

/// What the evidence says of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Supported,
    Contradicted,
    NotEnoughEvidence,
}

impl Verdict {
    /// As JSON has it.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Supported => "supported",
            Verdict::Contradicted => "contradicted",
            Verdict::NotEnoughEvidence => "not_enough_evidence",
        }
    }

    /// As people read it.
    pub fn text(self) -> &'static str {
        match self {
            Verdict::Supported => "supported",
            Verdict::Contradicted => "contradicted",
            Verdict::NotEnoughEvidence => "not enough evidence",
        }
    }

    /// The sign before the word.
    pub fn sign(self) -> &'static str {
        match self {
            Verdict::Supported => "✓",
            Verdict::Contradicted => "✕",
            Verdict::NotEnoughEvidence => "?",
        }
    }
}

/// A number behind a guideline.
#[derive(Debug, Clone)]
pub struct Evidence {
    pub cell: String,
    /// The quantity's name in JSON.
    pub quantity: &'static str,
    pub value: Quantity,
}

impl Evidence {
    /// A cell's quantity as evidence.
    pub fn of(cell: &Cell, quantity: &'static str) -> Option<Evidence> {
        Some(Evidence { cell: cell.name().to_string(), quantity, value: cell.get(quantity)?.clone() })
    }
}

/// What the literature says, never ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Published {
    pub statement: &'static str,
    /// A few words for the column beside our number.
    pub short: &'static str,
    pub source: &'static str,
}

/// The study that this project repeats.
pub const STUDY: &str = "collocation study on an A100-40GB, EuroMLSys 2024";

/// One piece of advice.
#[derive(Debug, Clone)]
pub struct Guideline {
    pub id: &'static str,
    /// An imperative clause that says what holds here.
    pub statement: String,
    /// One sentence with what was found.
    pub finding: String,
    /// The number that carries it, and the cell it is from.
    pub key: Option<Evidence>,
    /// What was tested, with the threshold.
    pub tested: String,
    pub verdict: Verdict,
    pub evidence: Vec<Evidence>,
    pub published: Option<Published>,
    /// What would bring the missing evidence.
    pub command: Option<String>,
}

/// Every guideline, in the order in which the page prints them.
pub fn all(analysis: &Analysis) -> Vec<Guideline> {
    vec![collocate::guideline(analysis), naive::guideline(analysis), memory::guideline(analysis), fairness::guideline(analysis)]
}

/// The command that measures what is missing: failed runs again, more repetitions, or groups where there are none.
fn command(analysis: &Analysis) -> Option<String> {
    let name = &analysis.campaign.experiment;
    if analysis.count("missing") + analysis.count("interrupted") > 0 {
        Some(format!("collo run {name}"))
    } else if analysis.planned > 0 && analysis.groups().next().is_none() {
        Some("collo run quickstart".into())
    } else if analysis.groups().any(|c| !c.counted.is_empty()) {
        Some(format!("collo run {name} --more 3"))
    } else if analysis.planned > 0 {
        Some(format!("collo run {name} --only failed"))
    } else {
        Some("collo run quickstart".into())
    }
}

/// The clause that says why nothing can be said.
fn without(analysis: &Analysis, what: &str) -> String {
    if analysis.groups().next().is_none() {
        "This experiment has no group of two or more members.".into()
    } else if analysis.groups().any(|c| c.counted.len() == 1) && analysis.groups().all(|c| c.counted.len() < 2) {
        "One repetition carries no interval: raise `repetitions` first.".into()
    } else {
        format!("No valid group has {what} with an interval.")
    }
}
