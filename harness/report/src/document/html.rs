//! A document as a page: one file that works offline. Every text is escaped by the template engine; only drawings, which escape
//! their own texts, are placed as they are.

use askama::Template;

use super::model::{Block, Chip, Column, Document, Line, Look, Table, TableCell, Tone};
use crate::Result;
use crate::plot::{Canvas, family, shape};

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
}

/// The whole document.
pub fn document(d: &Document) -> Result<String> {
    let page = Page { d, style: include_str!("../../templates/page.css"), script: include_str!("../../templates/page.js") };
    Ok(page.render()?)
}

/// A block as markup, also where it lies in another.
fn block(b: &Block) -> impl std::fmt::Display {
    BlockView { b }
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

impl Chip {
    fn class(&self) -> &'static str {
        self.tone.class()
    }
}

impl Line {
    fn is_strip(&self) -> bool {
        matches!(self, Line::Strip(..))
    }
}

impl Table {
    fn is_interactive(&self) -> bool {
        self.look == Look::Interactive
    }

    fn class(&self) -> &'static str {
        match self.look {
            Look::Values => "scroll",
            Look::Interactive => "scroll tall",
            Look::Narrow => "scroll narrow",
            Look::Prose => "scroll stack",
            Look::Joined => "scroll stack joined",
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

/// A mode's mark beside its name, as markup. Only the family's class and fixed shapes go in, never a label.
fn mark(sharing: &str) -> String {
    let mut c = Canvas::default();
    c.open(family(sharing));
    c.shape(shape(sharing), "mk", (6.0, 6.0));
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
