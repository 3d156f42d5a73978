//! Why a group cannot be judged. In: a cell, and the quantity that a rule needs of it. Out: the cause, which decides what to do next.
//!
//! To add a cause: a variant of [`Cause`]; what to do about it, in `next.rs`.

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::verdict::CellVerdict;
use collo_analysis::cell::{Cell, suspect};
use collo_analysis::reading::check::OTHERS_RATIO;
use collo_analysis::words;
use collo_quantity::{Key, Trait};

/// Why a group cannot be judged, in the order in which causes are worth removing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Some of its runs, or all, were not made.
    NotRun,
    /// Its runs ended in this way, and none counts.
    Failed(String),
    /// A baseline of it has no usable run.
    NoBaseline(String),
    /// Other processes used the machine.
    Busy,
    /// Its numbers are indicative or discarded for this reason.
    Lowered(String),
    /// Its energy rests on too few steps of the counter.
    FewSteps,
    /// The quantity was not read.
    NoReading(String),
    /// One run has no interval.
    OneRun,
}

impl Cause {
    /// Why this cell cannot be judged by a quantity; `None` if it can.
    pub fn of(analysis: &Analysis, cell: &Cell, key: Key) -> Option<Cause> {
        let known = cell.reading(key);
        match known {
            _ if !cell.counts() => Some(without_runs(cell)),
            Some(q) if cell.is_valid() && q.low.is_some() && key == Key::EnergyOfSolo => few_steps(analysis, cell),
            Some(q) if cell.is_valid() && q.low.is_some() => None,
            _ if cell.count() == 1 => Some(Cause::OneRun),
            Some(_) if !cell.is_valid() => Some(lowered(analysis, cell)),
            Some(_) => Some(Cause::OneRun),
            None => Some(unread(cell, key)),
        }
    }

    /// `not run`, `no baseline`, for a count of groups.
    pub fn text(&self) -> String {
        match self {
            Cause::NotRun => "not run".into(),
            Cause::Failed(outcome) => words::outcome(outcome),
            Cause::NoBaseline(_) => "without a baseline".into(),
            Cause::Busy => "measured beside other processes".into(),
            Cause::Lowered(_) => "indicative".into(),
            Cause::FewSteps => "with too few steps of the energy counter".into(),
            Cause::NoReading(_) => "without the reading".into(),
            Cause::OneRun => "with one run".into(),
        }
    }

    /// The reason in full, where there is more to say than [`Cause::text`].
    pub fn reason(&self) -> Option<&str> {
        match self {
            Cause::NoBaseline(why) | Cause::Lowered(why) | Cause::NoReading(why) => Some(why),
            _ => None,
        }
    }
}

/// Whether the energy of a cell, or of a baseline that it is compared with, rests on too few steps of the counter.
fn few_steps(analysis: &Analysis, cell: &Cell) -> Option<Cause> {
    let solos = cell.record.members.iter().filter_map(|m| analysis.solo_beside(cell.counted(), &m.solo));
    [cell].into_iter().chain(solos).find_map(suspect::short_of_energy).map(|_| Cause::FewSteps)
}

/// Why a cell has no run that counts.
fn without_runs(cell: &Cell) -> Cause {
    let failed = cell.outcomes.iter().filter(|(word, n)| **n > 0 && !["missing", "interrupted", "completed"].contains(word));
    match failed.max_by_key(|(_, n)| **n) {
        Some((word, _)) => Cause::Failed((*word).into()),
        None if cell.outcomes.get("completed").is_some_and(|n| *n > 0) => {
            Cause::Lowered(cell.validity.reasons.first().cloned().unwrap_or_else(|| "its runs are discarded".into()))
        }
        None => Cause::NotRun,
    }
}

/// Why a cell is indicative.
fn lowered(analysis: &Analysis, cell: &Cell) -> Cause {
    let busy = analysis.others_ratio.is_some_and(|ratio| ratio > OTHERS_RATIO);
    let why = cell.validity.reasons.first().cloned().unwrap_or_else(|| CellVerdict::Indicative.text().into());
    if busy || why.starts_with("other processes used") { Cause::Busy } else { Cause::Lowered(why) }
}

/// Why a cell that counts lacks a quantity.
fn unread(cell: &Cell, key: Key) -> Cause {
    match cell.no_baseline.clone().filter(|_| key.has(Trait::NeedsBaseline)) {
        Some(why) => Cause::NoBaseline(why),
        None => Cause::NoReading(cell.absent.get(&key).map_or(key.absent, String::as_str).to_string()),
    }
}
