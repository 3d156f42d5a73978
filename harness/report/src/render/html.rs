//! `report.html`: one file that works offline. In: sections. Out: a page whose every text is escaped by the template engine; only
//! drawings, which escape their own texts, are placed as they are.

use askama::Template;

use crate::Result;
use crate::analysis::Analysis;
use crate::guideline::{Evidence, Guideline};
use crate::number;
use crate::plot::{Canvas, Shape, family, shape};
use crate::render::words;
use crate::section::{Block, Section, cell_id, tags};

#[derive(Template)]
#[template(path = "page.html")]
struct Page<'a> {
    title: String,
    subtitle: String,
    analysis: &'a Analysis,
    device: String,
    created: String,
    strip: Vec<Part>,
    accounted: String,
    cells_by_validity: String,
    sections: &'a [Section],
    guidelines: Vec<Row<'a>>,
    notes: Vec<String>,
    accounted_for: usize,
    tags: Vec<String>,
    prefix: &'a str,
    style: &'static str,
    script: &'static str,
}

impl Page<'_> {
    /// Guidelines below the first screen.
    fn more_guidelines(&self) -> usize {
        self.guidelines.iter().filter(|g| !g.guideline.summary).count()
    }
}

/// A part of the strip that shows planned = accounted.
struct Part {
    class: &'static str,
    n: usize,
}

/// A guideline as the page prints it.
struct Row<'a> {
    guideline: &'a Guideline,
    class: &'static str,
    key: String,
    bounds: String,
    evidence: Vec<Item<'a>>,
    /// Evidence that the page does not list.
    left_out: usize,
}

struct Item<'a> {
    evidence: &'a Evidence,
    link: String,
    what: &'a str,
    value: String,
    bounds: String,
}

/// The report as a page; `prefix` leads from the file to the folder that holds `plots/`.
pub fn report(analysis: &Analysis, sections: &[Section], prefix: &str) -> Result<String> {
    let c = &analysis.campaign;
    let others: Vec<String> =
        analysis.accounted.iter().filter(|(_, n)| *n > 0).map(|(word, n)| format!("{n} {}", words::outcome(word))).collect();
    let mut strip: Vec<Part> = analysis
        .accounted
        .iter()
        .filter(|(_, n)| *n > 0)
        .map(|(word, n)| Part {
            class: if *word == "completed" {
                "c"
            } else if *word == "missing" {
                "r"
            } else {
                "o"
            },
            n: *n,
        })
        .collect();
    if strip.is_empty() {
        strip.push(Part { class: "r", n: 1 });
    }
    let of = |v: collo_store::Verdict| analysis.cells.iter().filter(|c| c.validity.verdict == v).count();
    let page = Page {
        title: title(analysis),
        subtitle: c.description.clone().unwrap_or_default(),
        analysis,
        device: c.device.text(),
        created: c.created_utc.replace('T', " ").replace('Z', " UTC"),
        strip,
        accounted: if others.is_empty() { "no run is planned".into() } else { others.join(", ") },
        cells_by_validity: format!(
            "{} valid, {} informative, {} void",
            number::count(of(collo_store::Verdict::Valid), "cell"),
            of(collo_store::Verdict::Informative),
            of(collo_store::Verdict::Void)
        ),
        sections,
        guidelines: analysis.guidelines.iter().map(|g| row(analysis, g)).collect(),
        notes: words::notes(analysis),
        accounted_for: analysis.planned - analysis.count("missing"),
        tags: tags(analysis),
        prefix,
        style: include_str!("../../templates/page.css"),
        script: include_str!("../../templates/page.js"),
    };
    Ok(page.render()?)
}

/// `How to share two cores`.
pub fn title(analysis: &Analysis) -> String {
    let device = &analysis.campaign.device;
    match (device.kind.as_str(), device.cores) {
        ("cpu", Some(1)) => "How to share one core".into(),
        ("cpu", Some(n)) => format!("How to share {} cores", number::word(n)),
        _ => format!("How to share the {}", device.name_said()),
    }
}

/// Rows of evidence on the page; all of them are in the JSON.
const SHOWN: usize = 40;

fn row<'a>(analysis: &Analysis, guideline: &'a Guideline) -> Row<'a> {
    let class = match guideline.verdict {
        crate::guideline::Verdict::Supported => "sup",
        crate::guideline::Verdict::Contradicted => "con",
        crate::guideline::Verdict::NotEnoughEvidence => "not",
    };
    let evidence = guideline.evidence.iter().take(SHOWN).map(|e| Item {
        link: cell_id(analysis, &e.cell),
        what: e.quantity.label,
        value: number::estimate(&e.value),
        bounds: number::bounds(&e.value),
        evidence: e,
    });
    Row {
        class,
        key: guideline.key.as_ref().map_or_else(|| "–".into(), Evidence::said),
        bounds: guideline.key.as_ref().map_or_else(String::new, |k| format!("{} {}", k.bounds(), k.name())),
        left_out: guideline.evidence.len().saturating_sub(SHOWN),
        evidence: evidence.collect(),
        guideline,
    }
}

/// A mode's mark beside its name, as markup. Only the family's class and fixed shapes go in, never a label.
fn mark(sharing: &str) -> String {
    let mut c = Canvas::default();
    let kind: Shape = shape(sharing);
    c.open(family(sharing));
    c.shape(kind, "mk", (6.0, 6.0));
    c.close();
    format!(r#"<svg class="mark" viewBox="0 0 12 12" aria-hidden="true">{}</svg>"#, c.into_markup())
}

/// A ratio on a logarithmic axis from a half to eight, with a line at 1. Digits stand beside it.
fn glyph(ratio: &f64, sharing: &str) -> String {
    let place = |x: f64| 4.0 + (x.clamp(0.5, 8.0) / 0.5).ln() / 16f64.ln() * 48.0;
    let mut c = Canvas::default();
    c.line("ref", (place(1.0), 1.0), (place(1.0), 13.0));
    c.open(family(sharing));
    c.shape(shape(sharing), "mk", (place(*ratio), 7.0));
    c.close();
    format!(r#"<svg class="glyph" viewBox="0 0 56 14" aria-hidden="true">{}</svg>"#, c.into_markup())
}

/// A text in parts, those between backticks marked as names; a lone backtick is a character like any other.
pub(crate) fn parts(text: &str) -> Vec<(bool, &str)> {
    if text.matches('`').count() % 2 == 1 {
        return vec![(false, text)];
    }
    text.split('`').enumerate().map(|(i, part)| (i % 2 == 1, part)).filter(|(_, part)| !part.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_stand_between_backticks_and_a_lone_one_is_text() {
        assert_eq!(super::parts("`a b` is `c`"), [(true, "a b"), (false, " is "), (true, "c")]);
        assert_eq!(super::parts("5 ` 6"), [(false, "5 ` 6")]);
    }
}
