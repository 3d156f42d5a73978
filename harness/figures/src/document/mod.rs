//! Documents for people. In: a title, findings, tables, figures, still without markup. Out: the same as a page, as Markdown, and
//! as lines of a terminal. Only this module knows HTML and Markdown; a report, comparisons and a history of nights produce
//! documents.
//!
//! To add another printed result: implement [`Present`] for it; page, Markdown, JSON and terminal follow.

pub mod csv;
pub mod html;
pub mod markdown;
mod model;
mod page_text;
pub mod plots;
pub mod quoted;
pub mod serve;
mod shorten;
pub mod terminal;
mod texts;
mod write;

pub use model::{
    Advice, Align, Answer, Badge, Block, Column, DOUBTS, Document, Doubt, Fact, FactLine, Figure, Live, Row, Section, Table,
    TableCell, TableColumn, TableLayout, Tone,
};
pub use page_text::page_text;
pub use shorten::{common_settings, shorten};
pub use terminal::LONGEST_LINE;
pub use texts::{TextKind, begin_commands_with};
pub use write::{Written, replace, write};

/// Anything shown in every form: lines of a terminal, a page, Markdown, JSON.
pub trait Present {
    /// Of its files, without an extension.
    const NAME: &'static str;
    /// Of its page, if it has another name.
    const PAGE: &'static str = Self::NAME;

    /// For programs.
    fn json(&self) -> serde_json::Value;

    /// The version for a terminal: shorter than the document.
    fn brief(&self) -> Vec<Block>;

    /// For page and Markdown.
    fn document(&self) -> Document;

    /// Lines of at most `width` columns, without colour.
    fn text(&self, width: usize) -> String {
        terminal::text(&self.brief(), width)
    }

    /// Write page, Markdown and JSON into a folder, and figures into `plots/` in it.
    fn write(&self, folder: &std::path::Path) -> crate::Result<Written> {
        let mut document = self.document();
        let plots = plots::write(&folder.join("plots"), &document.figures())?;
        document.plots = (!plots.is_empty()).then(|| "plots/".into());
        Ok(Written { plots, ..write(folder, (Self::PAGE, Self::NAME), &document, &self.json())? })
    }
}
