//! The terms of the page with their meanings, from the glossary.

use collo_figures::document::{Block, Section};
use collo_guidelines::rule::STUDY;

/// One home for what a word means: the page quotes it.
const GLOSSARY: &str = include_str!("../../../../docs/glossary.md");

/// The terms that a reader of a page meets, as the glossary writes them, in the order in which they are met, each with the words by which
/// heads and sentences use it. Where several are used in a head, the first counts.
const TERMS: [(&str, &[&str]); 20] = [
    ("Cell", &["cell", "cells"]),
    ("Repetition", &["repetition", "repetitions"]),
    ("Block", &["block", "blocks"]),
    ("Group", &["group", "groups"]),
    ("Degree", &["degree", "degrees"]),
    ("Sharing mode", &["sharing", "mode", "modes"]),
    ("Instance", &["instance", "instances", "slice"]),
    ("Solo", &["solo"]),
    ("Baseline", &["baseline", "baselines"]),
    ("Slowdown, normalised progress", &["slowdown", "progress", "slowest"]),
    ("Gain", &["gain", "gains", "throughput"]),
    ("STP, ANTT", &["stp", "antt"]),
    ("Fairness", &["fairness", "fair"]),
    ("Overlap", &["overlap"]),
    ("Makespan", &["makespan"]),
    ("Latency", &["latency", "p99", "p95"]),
    ("SLO", &["slo"]),
    ("GRACT, SMACT, SMOCC", &["gract", "smact", "smocc", "sm"]),
    ("Attest", &["attested"]),
    ("Validity", &["validity", "valid", "indicative", "discarded"]),
];

/// The anchor of a term on the page.
fn anchor(term: &str) -> String {
    let first = term.split([' ', ',']).next().unwrap_or_default();
    format!("term-{}", first.to_lowercase())
}

/// Terms that some text uses, as its words name them.
fn of(text: &str) -> impl Iterator<Item = &'static str> {
    let words: Vec<String> = text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase).collect();
    TERMS.into_iter().filter(move |(_, names)| words.iter().any(|word| names.contains(&word.as_str()))).map(|(term, _)| term)
}

/// The terms that these sentences use, with their anchors.
fn used<const N: usize>(sentences: [&str; N]) -> Vec<(String, String)> {
    of(&sentences.join(" ")).map(|term| (term.to_lowercase(), anchor(term))).collect()
}

/// Link titles of sections and heads of columns to the terms that they name.
pub fn link(sections: &mut [Section]) {
    for section in sections.iter_mut().filter(|section| section.id != "terms") {
        section.term = of(section.title).next().map(anchor).unwrap_or_default();
        section.blocks.iter_mut().for_each(link_in);
    }
}

fn link_in(block: &mut Block) {
    let table = match block {
        Block::Table(table) => table,
        Block::Figure(figure) => &mut figure.values,
        Block::Folded(_, blocks) => return blocks.iter_mut().for_each(link_in),
        Block::Advice(advice) => {
            for a in advice {
                a.terms = used([&a.statement, &a.finding]);
                a.evidence.iter_mut().for_each(link_in);
            }
            return;
        }
        _ => return,
    };
    for column in &mut table.columns {
        column.term = of(&column.name).next().map(anchor).unwrap_or_default();
    }
}

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
    let known = TERMS.into_iter().filter_map(|(term, _)| Some([anchor(term), plain(term), plain(meaning(term)?)]));
    let terms = known.chain([["term-study".into(), "The study".into(), STUDY.into()]]).collect();
    let finding = "The main terms of this page; quantities and statistics are defined in `collo help metrics`.";
    Section { finding: finding.into(), blocks: vec![Block::Terms(terms)], ..Section::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_term_is_in_the_glossary() {
        let unknown: Vec<&str> =
            TERMS.into_iter().map(|(term, _)| term).filter(|term| meaning(term).is_none_or(str::is_empty)).collect();
        assert!(unknown.is_empty(), "docs/glossary.md has no row for {unknown:?}");
        assert_eq!(meaning("Degree"), Some("the number of members"));
    }

    #[test]
    fn each_term_has_an_anchor_of_its_own_and_is_found_by_its_words() {
        let anchors: std::collections::BTreeSet<String> = TERMS.iter().map(|(term, _)| anchor(term)).collect();
        assert_eq!(anchors.len(), TERMS.len());
        assert_eq!(of("SM activity").collect::<Vec<_>>(), ["GRACT, SMACT, SMOCC"]);
        assert_eq!(used(["Slowest member within 10 %", "a group's gain"]).len(), 3);
        assert_eq!(of("memory GiB").next(), None);
    }
}
