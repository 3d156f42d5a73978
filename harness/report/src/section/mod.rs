//! The sections of a report. In: a report. Out: headings, findings, figures and tables, still without markup; HTML and Markdown
//! are made from the same. A section without data says in one sentence why and keeps its place.
//!
//! To add one: a file here, and its line in [`all`], which is the order of the page.

mod cells;
mod common;
mod cpu;
mod energy;
mod epoch_time;
mod fairness;
mod feasibility;
mod frontier;
mod gain;
mod latency;
mod memory;
mod mixed;
pub mod notes;
mod over_time;
mod pairs;
mod pcie;
mod provenance;
mod quality;
mod sm_activity;
mod summary;
mod threshold;
mod timeline;

use crate::Report;
use crate::guideline::Verdict;
use crate::plot::Panel;

pub use common::{cell_id, tags};
pub use gain::findings;

/// One section.
#[derive(Debug)]
pub struct Section {
    /// The anchor: `gain`.
    pub id: &'static str,
    /// In the navigation.
    pub title: &'static str,
    /// The verdict of the guideline that it carries.
    pub chip: Option<Verdict>,
    /// What is found, or why there is nothing: at most two sentences.
    pub finding: String,
    pub blocks: Vec<Block>,
}

/// What a section shows.
#[derive(Debug)]
pub enum Block {
    Figure(Figure),
    Table(Table),
    /// A list of sentences.
    Notes(Vec<String>),
    /// Names and what they are.
    Facts(Vec<(String, String)>),
    /// A text, word for word, folded: its name, and it.
    Verbatim(String, String),
}

/// One figure with its values.
#[derive(Debug)]
pub struct Figure {
    /// File name without its ending.
    pub id: &'static str,
    pub title: String,
    /// Sharing modes and their labels.
    pub legend: Vec<(String, String)>,
    pub panels: Vec<Panel>,
    pub caption: String,
    pub values: Table,
    pub simulated: bool,
    /// What its numbers are not: `simulated`, `synthetic data`, `informative`.
    pub tags: Vec<String>,
}

impl Figure {
    /// True where four panels stand beside each other instead of three.
    pub fn narrow(&self) -> bool {
        self.panels.first().is_some_and(|p| p.drawing.width < crate::plot::WIDTH)
    }
}

/// One table.
#[derive(Debug, Default)]
pub struct Table {
    pub caption: String,
    pub columns: Vec<Column>,
    pub rows: Vec<Row>,
    /// Can be sorted and filtered; there is one such table on a page.
    pub interactive: bool,
    pub tags: Vec<String>,
}

/// The head of a column.
#[derive(Debug, Clone)]
pub struct Column {
    pub name: String,
    pub numeric: bool,
}

/// One row of a table; the first cell is its head.
#[derive(Debug, Default)]
pub struct Row {
    /// The anchor, where something points here.
    pub id: String,
    /// Another workload than the row before: a stronger line stands above it.
    pub begins: bool,
    pub cells: Vec<TableCell>,
}

/// One field of a table. An absent value is an empty text.
#[derive(Debug, Clone, Default)]
pub struct TableCell {
    pub text: String,
    /// The full number, for sorting.
    pub sort: Option<f64>,
    /// A second line, smaller.
    pub note: String,
    /// The row that it points to.
    pub link: String,
    /// A ratio drawn beside the text, on a logarithmic axis with a line at 1.
    pub ratio: Option<f64>,
    /// The sharing mode whose mark stands before it.
    pub mode: String,
}

impl TableCell {
    /// A field with a text.
    pub fn text(text: impl Into<String>) -> Self {
        TableCell { text: text.into(), ..Default::default() }
    }

    /// A field with a smaller second line.
    pub fn with_note(text: impl Into<String>, note: impl Into<String>) -> Self {
        TableCell { text: text.into(), note: note.into(), ..Default::default() }
    }
}

impl Table {
    /// A table by its heads; a head that begins with `#` is numeric.
    pub fn with(heads: &[&str]) -> Self {
        let columns =
            heads.iter().map(|h| Column { name: h.trim_start_matches('#').to_string(), numeric: h.starts_with('#') }).collect();
        Table { columns, ..Default::default() }
    }

    /// Add a row.
    pub fn row(&mut self, cells: Vec<TableCell>) {
        self.rows.push(Row { cells, ..Default::default() });
    }
}

/// Every section, in print order.
pub fn all(report: &Report) -> Vec<Section> {
    let analysis = &report.analysis;
    vec![
        summary::section(analysis),
        epoch_time::section(analysis),
        gain::section(report),
        threshold::section(report),
        sm_activity::section(analysis),
        memory::section(report),
        cpu::section(analysis),
        pcie::section(analysis),
        energy::section(analysis),
        mixed::section(analysis),
        latency::section(report),
        timeline::section(analysis),
        feasibility::section(analysis),
        fairness::section(report),
        cells::section(analysis),
        quality::section(analysis),
        provenance::section(analysis),
    ]
}
