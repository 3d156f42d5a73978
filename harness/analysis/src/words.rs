//! Words common to the terminal, the page, Markdown and exports. In: a keyword of the store or of JSON. Out: text for people.

use collo_quantity::stats::Quantity;
use collo_store::{Outcome, Verdict};

/// An outcome as people read it.
pub fn outcome(word: &str) -> String {
    if word == "missing" { "not run".into() } else { word.replace('_', " ") }
}

/// The outcome with its details.
pub fn outcome_in_full(outcome: &Outcome) -> String {
    let word = outcome.text();
    match outcome {
        Outcome::OutOfMemory { member, message }
        | Outcome::HostOutOfMemory { member, message }
        | Outcome::EndedEarly { member, message }
        | Outcome::ProtocolError { member, message } => format!("{word}, member {member}: {message}"),
        Outcome::Crashed { member, status, message, .. } => format!("{word}, member {member} {status}: {message}"),
        Outcome::ProcessEnded { status, message } => format!("{word}, {status}: {message}"),
        Outcome::TimedOut { member, phase, message } => format!("{word} in {phase}, member {member}: {message}"),
        Outcome::ModeLost { reason }
        | Outcome::ObserverLost { reason }
        | Outcome::NotStaged { reason }
        | Outcome::DeviceLost { reason } => format!("{word}: {reason}"),
        Outcome::Completed | Outcome::Interrupted => word,
    }
}

/// The validity of a run as people read it, and as JSON has it.
pub fn verdict(v: Verdict) -> &'static str {
    match v {
        Verdict::Valid => "valid",
        Verdict::Indicative => "indicative",
        Verdict::Discarded => "discarded",
    }
}

/// A p-value: three decimals, `<0.001` below.
pub fn p(p: f64) -> String {
    if p.is_nan() {
        // A report has none.
        return "–".into();
    }
    if p < 0.001 { "<0.001".into() } else { format!("{p:.3}") }
}

/// Seconds, or milliseconds if every estimate is below one: the factor and the unit.
pub fn time_unit<'a>(quantities: impl Iterator<Item = &'a Quantity>) -> (f64, &'static str) {
    match quantities.map(|q| q.estimate).reduce(f64::max) {
        Some(largest) if largest < 1.0 => (1e3, "ms"),
        _ => (1.0, "s"),
    }
}

/// Joules, or kilojoules if the largest estimate is some thousands: the factor and the unit.
pub fn energy_unit<'a>(quantities: impl Iterator<Item = &'a Quantity>) -> (f64, &'static str) {
    match quantities.map(|q| q.estimate).reduce(f64::max) {
        Some(largest) if largest >= 2000.0 => (1e-3, "kJ"),
        _ => (1.0, "J"),
    }
}

/// A sentence with a capital first letter.
pub fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |c| c.to_uppercase().collect::<String>() + chars.as_str())
}
