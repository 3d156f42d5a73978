//! The position of a published value relative to ours.

/// The position of the published value.
#[derive(Debug, Clone, PartialEq)]
pub enum Place {
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

impl Place {
    /// As people read it.
    pub fn text(&self) -> String {
        match self {
            Place::Inside => "inside our interval".into(),
            Place::Outside(by) if *by > 1.0 => format!("outside: ours is at least {:.1} % higher", (by - 1.0) * 100.0),
            Place::Outside(by) => format!("outside: ours is at least {:.1} % lower", (1.0 - by) * 100.0),
            Place::NoInterval => "one run has no interval".into(),
            Place::Same => "the same outcome".into(),
            Place::Other => "another outcome".into(),
            Place::OtherConditions => "not compared: other conditions".into(),
        }
    }

    /// As JSON has it.
    pub fn word(&self) -> &'static str {
        match self {
            Place::Inside => "inside",
            Place::Outside(_) => "outside",
            Place::NoInterval => "no_interval",
            Place::Same => "same",
            Place::Other => "other",
            Place::OtherConditions => "other_conditions",
        }
    }
}
