//! The position of a published value relative to ours.

/// The position of the published value.
#[derive(Debug, Clone, PartialEq)]
pub enum Position {
    /// Inside our interval.
    Inside,
    /// Outside of it: our nearest end ÷ the published value.
    Outside(f64),
    /// Our number has no interval.
    NoInterval,
    /// The outcome is the same, or differs.
    Same,
    Other,
    /// The published conditions differ from those here.
    OtherConditions,
}

impl Position {
    /// As people read it.
    pub fn text(&self) -> String {
        match self {
            Position::Inside => "inside our interval".into(),
            Position::Outside(by) if *by > 1.0 => format!("outside: ours is at least {:.1} % higher", (by - 1.0) * 100.0),
            Position::Outside(by) => format!("outside: ours is at least {:.1} % lower", (1.0 - by) * 100.0),
            Position::NoInterval => "one run has no interval".into(),
            Position::Same => "the same outcome".into(),
            Position::Other => "another outcome".into(),
            Position::OtherConditions => "not compared: other conditions".into(),
        }
    }

    /// As JSON has it.
    pub fn as_str(&self) -> &'static str {
        match self {
            Position::Inside => "inside",
            Position::Outside(_) => "outside",
            Position::NoInterval => "no_interval",
            Position::Same => "same",
            Position::Other => "other",
            Position::OtherConditions => "other_conditions",
        }
    }
}
