//! Renders a document as a page: one file that works offline. Every text is escaped by the template engine; only drawings, which
//! escape their own texts, are inserted as they are.

use askama::Template;

use super::model::{Badge, Block, Column, Document, Doubt, FactLine, Table, TableCell, TableLayout, Tone};
use crate::Result;

#[derive(Template)]
#[template(path = "document.html")]
struct Page<'a> {
    d: &'a Document,
    style: &'static str,
    script: &'static str,
}

#[derive(Template)]
#[template(path = "block.html")]
struct BlockView<'a> {
    b: &'a Block,
    beside: Beside<'a>,
}

/// The folders beside a document that its blocks link to.
#[derive(Clone, Copy)]
struct Beside<'a> {
    plots: Option<&'a str>,
    runs: Option<&'a str>,
}

/// The whole document.
pub fn document(d: &Document) -> Result<String> {
    let script = concat!(
        include_str!("../../templates/page.js"),
        include_str!("../../templates/cells.js"),
        include_str!("../../templates/figures.js"),
        include_str!("../../templates/live.js")
    );
    let page = Page { d, style: include_str!("../../templates/page.css"), script };
    Ok(page.render()?)
}

/// A block as markup, also when nested in another.
fn block<'a>(b: &'a Block, beside: &Beside<'a>) -> impl std::fmt::Display {
    BlockView { b, beside: *beside }
}

impl Document {
    fn beside(&self) -> Beside<'_> {
        Beside { plots: self.plots.as_deref(), runs: self.runs.as_deref() }
    }
}

impl Tone {
    fn class(self) -> &'static str {
        match self {
            Tone::Good => "sup",
            Tone::Bad => "con",
            Tone::Open => "not",
            Tone::Plain => "plain",
        }
    }
}

impl Badge {
    fn class(&self) -> &'static str {
        self.tone.class()
    }
}

impl Doubt {
    fn is_grave(&self) -> bool {
        self.tone == Tone::Bad
    }
}

impl FactLine {
    fn is_strip(&self) -> bool {
        matches!(self, FactLine::Strip(..))
    }
}

impl Table {
    fn is_interactive(&self) -> bool {
        self.look == TableLayout::Interactive
    }

    fn class(&self) -> &'static str {
        match self.look {
            TableLayout::Values => "scroll",
            TableLayout::Interactive => "scroll tall",
            TableLayout::Narrow => "scroll narrow",
            TableLayout::Prose => "scroll stack",
            TableLayout::Joined => "scroll stack joined",
        }
    }
}

impl TableCell {
    fn class(&self, column: &Column) -> &'static str {
        match self.tone {
            _ if self.drawing.is_some() => "pl",
            Tone::Good => "good",
            Tone::Bad => "bad",
            _ if column.is_numeric() => "n",
            _ => "",
        }
    }
}

/// What a part of a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartKind {
    Text,
    /// A name, which stands between backticks.
    Name,
    /// A digital object identifier, which follows the word `doi`.
    Doi,
}

/// A text in parts; a lone backtick is an ordinary character.
pub(crate) fn parts(text: &str) -> Vec<(PartKind, &str)> {
    if text.matches('`').count() % 2 == 1 {
        return with_links(text);
    }
    let of = |(i, part)| if i % 2 == 1 { vec![(PartKind::Name, part)] } else { with_links(part) };
    text.split('`').enumerate().flat_map(of).filter(|(_, part)| !part.is_empty()).collect()
}

/// A text with each identifier in a part of its own.
fn with_links(text: &str) -> Vec<(PartKind, &str)> {
    const BEFORE: &str = "doi ";
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("doi 10.") {
        let (before, from) = rest.split_at(at + BEFORE.len());
        let is_part = |c: char| c.is_ascii_alphanumeric() || "./-_".contains(c);
        let end = from.find(|c| !is_part(c)).unwrap_or(from.len());
        // A full stop ends the sentence.
        let doi = from[..end].trim_end_matches('.');
        found.extend([(PartKind::Text, before), (PartKind::Doi, doi)]);
        rest = &from[doi.len()..];
    }
    found.push((PartKind::Text, rest));
    found
}

#[cfg(test)]
mod tests {
    use super::PartKind::{Doi, Name, Text};

    #[test]
    fn names_stand_between_backticks_and_a_lone_one_is_text() {
        assert_eq!(super::parts("`a b` is `c`"), [(Name, "a b"), (Text, " is "), (Name, "c")]);
        assert_eq!(super::parts("5 ` 6"), [(Text, "5 ` 6")]);
    }

    #[test]
    fn an_identifier_of_a_paper_is_a_link_without_the_full_stop_behind_it() {
        assert_eq!(super::parts("as in x, doi 10.1145/36.5."), [(Text, "as in x, doi "), (Doi, "10.1145/36.5"), (Text, ".")]);
    }
}
