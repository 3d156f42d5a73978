//! Words common to the terminal, the page, Markdown and exports. In: a keyword of the store or of JSON. Out: text for people.

use collo_store::Verdict;

use crate::stats::Quantity;

/// An outcome as people read it.
pub fn outcome(word: &str) -> String {
    if word == "missing" { "not run".into() } else { word.replace('_', " ") }
}

/// A validity as people read it, and as JSON has it.
pub fn verdict(v: Verdict) -> &'static str {
    match v {
        Verdict::Valid => "valid",
        Verdict::Informative => "informative",
        Verdict::Void => "void",
    }
}

/// A p-value: three decimals, `<0.001` below.
pub fn p(p: f64) -> String {
    if p < 0.001 { "<0.001".into() } else { format!("{p:.3}") }
}

/// Seconds, or milliseconds if every estimate is below one: the factor and the unit.
pub fn time_unit<'a>(quantities: impl Iterator<Item = &'a Quantity>) -> (f64, &'static str) {
    match quantities.map(|q| q.estimate).reduce(f64::max) {
        Some(largest) if largest < 1.0 => (1e3, "ms"),
        _ => (1.0, "s"),
    }
}
