//! The groups that a rule is about. In: cells, and the quantity that judges them. Out: those that can be judged, and those that cannot,
//! each with its cause.

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_analysis::cell::verdict::CellVerdict;
use collo_quantity::Key;

use super::{Cause, Scope};

/// The groups that a rule is about, divided by whether they can be judged.
pub struct Groups<'a> {
    pub judged: Vec<&'a Cell>,
    pub unjudged: Vec<(&'a Cell, Cause)>,
    /// Groups that do not fit into memory: a result, which no repetition changes.
    pub out_of_memory: Vec<&'a Cell>,
}

impl<'a> Groups<'a> {
    /// Divide cells by whether a quantity of them may be used.
    pub fn of(analysis: &Analysis, cells: impl Iterator<Item = &'a Cell>, key: Key) -> Groups<'a> {
        let mut found = Groups { judged: Vec::new(), unjudged: Vec::new(), out_of_memory: Vec::new() };
        for cell in cells {
            match Cause::of(analysis, cell, key) {
                None => found.judged.push(cell),
                Some(_) if cell.verdict() == CellVerdict::OutOfMemory => found.out_of_memory.push(cell),
                Some(cause) => found.unjudged.push((cell, cause)),
            }
        }
        found
    }

    /// The number of groups that could still overturn a rule.
    pub fn missing(&self) -> usize {
        self.unjudged.len()
    }

    /// The first cause, in the order in which causes are worth removing.
    pub fn cause(&self) -> Option<&Cause> {
        self.unjudged.iter().map(|(_, cause)| cause).min()
    }

    /// What a sentence about these groups is based on.
    pub fn scope(&self, analysis: &Analysis) -> Scope {
        Scope::of(analysis, &self.judged, self.unjudged.iter().map(|(_, cause)| cause), self.out_of_memory.len())
    }

    /// Why none can be judged, as a sentence; `None` if there is no group at all.
    pub fn why_none(&self, what: &str) -> Option<String> {
        let n = self.unjudged.len() + self.out_of_memory.len();
        if n == 0 {
            return None;
        }
        Some(match self.cause() {
            Some(cause) => {
                let others = self.unjudged.iter().any(|(_, other)| other.reason().is_some() && other.reason() != cause.reason());
                let one = if others { "in one of them " } else { "" };
                let reason = cause.reason().map_or_else(String::new, |why| format!(" ({one}{why})"));
                format!("No group can be judged by {what}: {}{reason}.", super::scope::counted(&self.causes()))
            }
            None => format!("No group fits into memory ({}).", collo_quantity::number::count(n, "group")),
        })
    }

    fn causes(&self) -> Vec<(String, usize)> {
        super::scope::count(self.unjudged.iter().map(|(_, cause)| cause))
    }
}
