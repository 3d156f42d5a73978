//! What was published of policies. In: `reports/published/manager.json`, embedded in the binary: figures with their conditions and
//! sources. Out: each beside the arm that it is about. None of them has a spread, so that nothing is judged by them.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use collo_analysis::trace::Arm;
use collo_quantity::Key;
use serde::Deserialize;

use crate::published::Published;

/// The published results.
#[derive(Debug, Default, Deserialize)]
pub struct Manager {
    pub device: String,
    pub cards: u32,
    pub conditions: String,
    /// Full citations, by their short names.
    sources: BTreeMap<String, String>,
    pub figures: Vec<PolicyFigure>,
    /// Statements about no arm, with the reason.
    pub others: Vec<Unplaced>,
    claims: BTreeMap<String, ManagerClaim>,
}

/// A figure of one policy.
#[derive(Debug, Deserialize)]
pub struct PolicyFigure {
    pub id: String,
    /// Tasks of its trace, as its name there: `90`.
    pub trace: String,
    /// As the source calls the policy.
    pub name: String,
    /// In our words.
    pub policy: String,
    pub estimate: String,
    pub sharing: String,
    quantity: String,
    /// In the unit of the quantity's name.
    pub value: Option<f64>,
    pub ratio_to_exclusive: Option<f64>,
    /// In the words of the source.
    pub published: String,
    /// In full after reading.
    pub source: String,
}

/// A statement about no arm.
#[derive(Debug, Deserialize)]
pub struct Unplaced {
    pub published: String,
    pub why: String,
    /// In full after reading.
    pub source: String,
}

/// A statement that a guideline judges.
#[derive(Debug, Deserialize)]
struct ManagerClaim {
    statement: String,
    short: String,
    /// In full after reading.
    source: String,
}

/// The figures; a test compares the file with its reader.
pub fn manager() -> &'static Manager {
    static MANAGER: OnceLock<Manager> = OnceLock::new();
    MANAGER.get_or_init(|| {
        let text = include_str!("../../../../reports/published/manager.json");
        serde_json::from_str(text).ok().and_then(Manager::resolved).unwrap_or_default()
    })
}

impl Manager {
    /// Replace every short name of a source by the source; `None` if one is undefined.
    fn resolved(mut self) -> Option<Manager> {
        let named = self.figures.iter_mut().map(|f| &mut f.source).chain(self.others.iter_mut().map(|o| &mut o.source));
        for source in named.chain(self.claims.values_mut().map(|c| &mut c.source)) {
            *source = self.sources.get(source.as_str())?.clone();
        }
        Some(self)
    }

    /// True if a figure can be read beside a trace of so many tasks: where the study has a trace as long, those of that one alone.
    pub fn is_beside(&self, figure: &PolicyFigure, tasks: u32) -> bool {
        let tasks = tasks.to_string();
        figure.trace == tasks || self.figures.iter().all(|other| other.trace != tasks)
    }

    /// What was published about the claim of a guideline.
    pub fn claim(&'static self, guideline: &str) -> Option<Published> {
        let claim = self.claims.get(guideline)?;
        Some(Published::new(&claim.statement, &claim.short, &claim.source))
    }
}

impl PolicyFigure {
    /// The quantity that it is about.
    pub fn key(&self) -> Option<Key> {
        Key::find(&self.quantity)
    }

    /// True if an arm is of the same policy, estimate and mode; `exclusive` knows no company, so that its mode says nothing.
    pub fn is_of(&self, arm: &Arm) -> bool {
        let alike = self.policy == arm.policy && self.estimate == arm.estimate;
        alike && (self.sharing == arm.sharing || arm.is_exclusive())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_trace_as_long_as_one_of_the_study_is_beside_the_figures_of_that_one_alone() {
        let manager = manager();
        let beside = |tasks: u32| {
            let figures = manager.figures.iter().filter(|figure| manager.is_beside(figure, tasks));
            figures.map(|figure| figure.trace.as_str()).collect::<BTreeSet<_>>()
        };
        assert_eq!(beside(60), BTreeSet::from(["60"]));
        assert_eq!(beside(90), BTreeSet::from(["90"]));
        assert_eq!(beside(12), BTreeSet::from(["60", "90"]), "of no other is there a nearer one");
    }

    #[test]
    fn the_file_is_read_whole_and_each_figure_has_a_value_of_a_quantity() {
        let manager = manager();
        assert_eq!((manager.cards, manager.figures.len(), manager.others.len()), (4, 32, 9));
        for figure in &manager.figures {
            assert!(figure.key().is_some(), "{}", figure.id);
            assert!(figure.value.is_some() || figure.ratio_to_exclusive.is_some(), "{}", figure.id);
            assert!(figure.source.contains("thesis"), "{}", figure.source);
        }
        let mut ids: Vec<&str> = manager.figures.iter().map(|f| f.id.as_str()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), manager.figures.len());
    }
}
