//! Whether a guideline holds here, and whether that agrees with what was published.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::document::{Badge, Tone};

/// Whether a guideline holds here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Holds {
    #[serde(alias = "supported")]
    Yes,
    #[serde(alias = "contradicted")]
    No,
    /// There is not enough evidence.
    #[default]
    #[serde(alias = "not_enough_evidence")]
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

/// Whether what was found here agrees with what was published.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Agreement {
    Yes,
    No,
    /// In some groups, and not in others.
    Partly,
    /// There is not enough evidence here.
    Open,
    /// Published of another kind of device, or of another mode.
    NotComparable,
    #[default]
    NotStudied,
}

impl Agreement {
    /// As people read it.
    pub fn text(self) -> &'static str {
        match self {
            Agreement::Yes => "yes",
            Agreement::No => "no",
            Agreement::Partly => "partly",
            Agreement::Open => "open",
            Agreement::NotComparable => "not comparable",
            Agreement::NotStudied => "not studied",
        }
    }

    /// Partly, if it can be compared at all.
    pub(super) fn partly(self) -> Agreement {
        if self == Agreement::NotComparable { self } else { Agreement::Partly }
    }

    /// True if the published statement does not hold here, or not always.
    pub fn is_doubted(self) -> bool {
        matches!(self, Agreement::No | Agreement::Partly)
    }
}

impl From<Agreement> for Badge {
    fn from(agrees: Agreement) -> Badge {
        let (tone, sign) = match agrees {
            Agreement::Yes => (Tone::Good, "✓"),
            Agreement::No => (Tone::Bad, "✕"),
            Agreement::Partly => (Tone::Bad, "≈"),
            Agreement::Open => (Tone::Open, "?"),
            Agreement::NotComparable | Agreement::NotStudied => (Tone::Open, "–"),
        };
        Badge::new(tone, sign, agrees.text())
    }
}
