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
        include_str!("../../templates/figures.js")
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

/// A text in parts, those between backticks marked as names; a lone backtick is an ordinary character.
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
