//! The terms of the page with their meanings, from the glossary.

use collo_figures::document::{Block, Section};
use collo_guidelines::rule::STUDY;

/// One home for what a word means: the page quotes it.
const GLOSSARY: &str = include_str!("../../../../docs/glossary.md");

/// The terms that a reader of a page meets, as the glossary writes them, in the order in which they are met.
const TERMS: [&str; 20] = [
    "Cell",
    "Repetition",
    "Block",
    "Group",
    "Degree",
    "Sharing mode",
    "Instance",
    "Solo",
    "Baseline",
    "Slowdown, normalised progress",
    "Gain",
    "STP, ANTT",
    "Fairness",
    "Overlap",
    "Makespan",
    "Latency",
    "SLO",
    "GRACT, SMACT, SMOCC",
    "Attest",
    "Validity",
];

/// The meaning of a term in the glossary's table.
fn meaning(term: &str) -> Option<&'static str> {
    let head = format!("| **{term}** | ");
    let row = GLOSSARY.lines().find_map(|line| line.strip_prefix(head.as_str()))?;
    row.split(" | ").next()
}

/// Markdown without its marks.
fn plain(text: &str) -> String {
    text.replace(['*', '`'], "")
}

pub fn section() -> Section {
    let known = TERMS.iter().filter_map(|term| Some((plain(term), plain(meaning(term)?))));
    let terms = known.chain([("The study".to_string(), STUDY.to_string())]).collect();
    let finding = "The main terms of this page; quantities and statistics are defined in `collo help metrics`.";
    Section { finding: finding.into(), blocks: vec![Block::Facts(terms)], ..Section::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_term_is_in_the_glossary() {
        let unknown: Vec<&str> = TERMS.into_iter().filter(|term| meaning(term).is_none_or(str::is_empty)).collect();
        assert!(unknown.is_empty(), "docs/glossary.md has no row for {unknown:?}");
        assert_eq!(meaning("Degree"), Some("the number of members"));
    }
}
