//! What an experiment expects of a cell that it knows to fail, and how an outcome compares with it.

use serde::{Deserialize, Serialize};

use crate::{CellRecord, Outcome, RunRecord};

/// The outcome that every run of a cell is expected to have, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expectation {
    /// The keyword of an outcome: `out_of_memory`.
    pub outcome: String,
    pub reason: String,
}

/// An outcome compared with what was expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// A number, a result, or interrupted; nothing else was expected.
    Fine,
    /// As expected.
    Expected,
    /// A failure, which was not expected.
    Failed,
    /// Not the outcome expected, though it would be no failure elsewhere: the run completed.
    Unexpected,
}

impl Standing {
    /// True for what an exit code reports: a failure, or an expectation that no longer holds.
    pub fn is_bad(self) -> bool {
        matches!(self, Standing::Failed | Standing::Unexpected)
    }
}

impl CellRecord {
    /// An outcome of a run of this cell compared with what is expected of it.
    pub fn standing(&self, outcome: &Outcome) -> Standing {
        match &self.expect {
            _ if *outcome == Outcome::Interrupted => Standing::Fine,
            Some(expected) if expected.outcome == outcome.as_str() => Standing::Expected,
            _ if outcome.is_failure() => Standing::Failed,
            Some(_) => Standing::Unexpected,
            None => Standing::Fine,
        }
    }
}

impl RunRecord {
    /// This run compared with what is expected of its cell.
    pub fn standing(&self) -> Standing {
        self.cell.standing(&self.outcome)
    }

    /// In words, if anything was expected: `expected to end out of memory (REASON)`, `completed, although …`.
    pub fn expectation(&self) -> Option<String> {
        let expected = self.cell.expect.as_ref()?;
        let (what, why) = (expected.outcome.replace('_', " "), &expected.reason);
        match self.standing() {
            Standing::Expected => Some(format!("as expected: {why}")),
            Standing::Failed | Standing::Unexpected => {
                Some(format!("{}, although `{what}` is expected: {why}", self.outcome.text()))
            }
            Standing::Fine => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expected_failure_is_none_and_a_pass_that_was_not_expected_is_one() {
        let cell: CellRecord = serde_json::from_value(serde_json::json!({
            "cell": "a", "slug": "a", "sharing": "naive", "degree": 1, "members": [], "baseline": false, "against": [],
            "repetitions": 1, "after_measured": "exit"
        }))
        .expect("a cell of an earlier version");
        let crashed = Outcome::Crashed { member: 0, status: "exited with 1".into(), message: String::new(), place_alone: false };
        let full = Outcome::OutOfMemory { member: 0, message: String::new() };
        let outcomes = [Outcome::Completed, full, crashed, Outcome::Interrupted];
        let standings = |expect: Option<&str>| {
            let expect = expect.map(|outcome| Expectation { outcome: outcome.into(), reason: "known".into() });
            let cell = CellRecord { expect, ..cell.clone() };
            outcomes.each_ref().map(|outcome| cell.standing(outcome))
        };
        use Standing::{Expected, Failed, Fine, Unexpected};
        assert_eq!(standings(None), [Fine, Fine, Failed, Fine]);
        assert_eq!(standings(Some("out_of_memory")), [Unexpected, Expected, Failed, Fine]);
        assert_eq!(standings(Some("crashed")), [Unexpected, Unexpected, Expected, Fine]);
    }
}
