//! Whether a rule holds here. In: how many groups confirm it, contradict it, and could still do either. Out: yes, no or open.

use collo_figures::document::{Badge, Tone};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether a guideline holds here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Holds {
    Yes,
    No,
    /// There is not enough evidence.
    #[default]
    Open,
}

impl Holds {
    /// As people read it, and as JSON has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Holds::Yes => "yes",
            Holds::No => "no",
            Holds::Open => "open",
        }
    }

    fn tone(self) -> (Tone, &'static str) {
        match self {
            Holds::Yes => (Tone::Good, "✓"),
            Holds::No => (Tone::Bad, "✕"),
            Holds::Open => (Tone::Open, "?"),
        }
    }

    /// For the column that asks for it.
    pub fn answer(self) -> Badge {
        let (tone, sign) = self.tone();
        Badge::new(tone, sign, self.as_str())
    }
}

/// Where no column asks.
impl From<Holds> for Badge {
    fn from(holds: Holds) -> Badge {
        let (tone, sign) = holds.tone();
        let text = match holds {
            Holds::Yes => "holds here",
            Holds::No => "does not hold here",
            Holds::Open => "open",
        };
        Badge::new(tone, sign, text)
    }
}

/// The answer to a rule about all groups: one group that contradicts it is enough for *no*, and *yes* requires that every group confirms
/// it. `open` counts groups that are undecided or could not be judged: while there is one, it could overturn a yes.
pub fn of_all(confirmed: usize, contradicted: usize, open: usize) -> Holds {
    match (confirmed, contradicted, open) {
        (_, 1.., _) => Holds::No,
        (1.., 0, 0) => Holds::Yes,
        _ => Holds::Open,
    }
}

/// The answer to a rule about some group: one that confirms it is enough for *yes*, and *no* requires that every group contradicts it.
pub fn of_some(confirmed: usize, contradicted: usize, open: usize) -> Holds {
    match (confirmed, contradicted, open) {
        (1.., _, _) => Holds::Yes,
        (0, 1.., 0) => Holds::No,
        _ => Holds::Open,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_about_all_is_open_while_one_group_could_overturn_it() {
        assert_eq!([of_all(4, 0, 0), of_all(4, 0, 1), of_all(0, 0, 0)], [Holds::Yes, Holds::Open, Holds::Open]);
        assert_eq!([of_all(4, 1, 0), of_all(0, 1, 9)], [Holds::No, Holds::No], "what contradicts it cannot be taken back");
    }

    #[test]
    fn a_rule_about_some_needs_one_and_is_refused_only_by_all() {
        assert_eq!([of_some(1, 9, 9), of_some(0, 9, 0)], [Holds::Yes, Holds::No]);
        assert_eq!([of_some(0, 9, 1), of_some(0, 0, 0)], [Holds::Open, Holds::Open]);
    }
}
