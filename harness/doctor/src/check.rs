//! The result of a check: what was found, how good that is, and what helps.

use serde::Serialize;

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// As it should be.
    Good,
    #[serde(rename = "affects results")]
    Changes,
    /// Can be fixed.
    Fixable,
    /// Unavailable here.
    Absent,
}

impl Mark {
    fn sign(self) -> char {
        match self {
            Mark::Good => '✓',
            Mark::Changes => '!',
            Mark::Fixable => '✗',
            Mark::Absent => '–',
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    #[serde(rename = "check")]
    pub subject: &'static str,
    pub mark: Mark,
    pub text: String,
    pub hint: Option<String>,
}

impl Check {
    pub fn new(mark: Mark, subject: &'static str, text: impl Into<String>) -> Self {
        Check { mark, subject, text: text.into(), hint: None }
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub fn is_good(&self) -> bool {
        self.mark == Mark::Good
    }
}

/// A line for each check, and its hint below.
pub fn lines(checks: &[Check]) -> Vec<String> {
    // What is simulated is no subject among others: it is said of all that follows.
    let subjects = checks.iter().filter(|c| c.subject != "simulated").map(|c| c.subject.chars().count());
    let width = subjects.max().unwrap_or(0).max(8);
    let mut all = Vec::new();
    for c in checks {
        all.push(match c.subject {
            "simulated" => format!("{} simulated: {}", c.mark.sign(), c.text),
            subject => format!("{} {subject:<width$} {}", c.mark.sign(), c.text),
        });
        all.extend(c.hint.as_ref().map(|hint| format!("{}hint: {hint}", " ".repeat(width + 3))));
    }
    all
}
