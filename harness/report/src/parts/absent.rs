//! Sections without content, and why.

use collo_analysis::campaign::Analysis;
use collo_analysis::words::capital;
use collo_figures::document::Section;
use collo_quantity::Key;

/// A section without its anchor and title, which are in the list of `sections.rs`; or why there is none.
pub type Content = Result<Section, String>;

/// A section without content: the document leaves it out, and says so at its end.
pub fn without(id: &'static str, title: &'static str, why: impl Into<String>) -> Section {
    Section { id, title, finding: why.into(), left_out: true, ..Section::default() }
}

/// Sections with content, and a sentence about those without: each reason once.
pub fn apart(sections: Vec<Section>) -> (Vec<Section>, String) {
    let (left_out, kept): (Vec<Section>, Vec<Section>) = sections.into_iter().partition(|s| s.left_out);
    let mut reasons: Vec<(String, Vec<&str>)> = Vec::new();
    for section in &left_out {
        match reasons.iter_mut().find(|(why, _)| *why == section.finding) {
            Some((_, titles)) => titles.push(section.title),
            None => reasons.push((section.finding.clone(), vec![section.title])),
        }
    }
    let said = reasons.iter().map(|(why, titles)| format!("{}: {why}", titles.join(", ")));
    let said = said.collect::<Vec<_>>().join(" ");
    (kept, if said.is_empty() { said } else { format!("Left out, having nothing to show. {said}") })
}

/// What is said where a campaign compares observers alone.
pub const ONLY_WATCHED: &str = "Every cell is watched, or the baseline of watched ones: see The cost of watching.";

/// Why a section that shows single runs is absent in a report that was read.
pub const NO_RUNS: &str = "It needs the stored runs, and a report.json has none.";

/// Where runs should have ended, in a report that does not have it.
pub const NO_ENDS: &str = "how its runs ended is not in the file";

/// Why a report that was read lacks a quantity everywhere, by its own words; `None` where the runs are here, which show why.
pub fn of_file(analysis: &Analysis, key: Key) -> Option<String> {
    let why = analysis.cells.iter().filter(|c| c.counts()).find_map(|c| c.absent.get(&key));
    let label = capital(key.label);
    let said = why.map_or_else(|| format!("{label} is not in the file."), |why| format!("{label} is absent: {why}."));
    analysis.is_reported().then_some(said)
}

/// Refuse an analysis of which no cell has numbers.
pub fn numbers(analysis: &Analysis) -> Result<(), &'static str> {
    nothing(analysis).map_or(Ok(()), Err)
}

/// Why no cell of an analysis has numbers at all, if so.
pub fn nothing(analysis: &Analysis) -> Option<&'static str> {
    if analysis.cells.is_empty() && !analysis.watching.is_empty() {
        Some(ONLY_WATCHED)
    } else if analysis.cells.is_empty() {
        Some("The plan has no cells.")
    } else if analysis.cells.iter().all(|c| !c.ran()) {
        Some("Nothing has run yet.")
    } else if analysis.cells.iter().all(|c| !c.counts()) {
        Some("No run completed with a usable number; see Feasibility for how each cell ended.")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_without_content_are_named_once_with_their_reason() {
        let with = Section { id: "gain", title: "Gain", finding: "2×".into(), ..Section::default() };
        let all = vec![
            without("pcie", "PCIe", "A CPU has none."),
            with,
            without("energy", "Energy", "Nothing was read."),
            without("sm", "SM activity", "A CPU has none."),
            Section { left_out: false, ..without("cells", "All cells", "The plan has no cells.") },
        ];
        let (kept, said) = apart(all);
        assert_eq!(kept.iter().map(|s| s.id).collect::<Vec<_>>(), ["gain", "cells"]);
        assert_eq!(said, "Left out, having nothing to show. PCIe, SM activity: A CPU has none. Energy: Nothing was read.");
        assert_eq!(apart(Vec::new()).1, "");
    }
}
