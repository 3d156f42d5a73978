//! The parts of a document, before it is HTML, Markdown or lines of a terminal. Its producers know no markup; its renderers know
//! no campaign.
//!
//! To add a kind of block: a variant of [`Block`], and what `markdown.rs`, `terminal.rs` and `figures/templates/block.html` make
//! of it.

use crate::draw::{Drawing, Panel};
use std::borrow::Cow;

/// One document: a page, and the same as Markdown.
#[derive(Debug, Default)]
pub struct Document {
    /// In the window's title: `collo report: quickstart on cpu`.
    pub name: String,
    pub title: String,
    /// Beside the title: caveats about its numbers.
    pub tags: Vec<String>,
    /// The simulated parts, if any.
    pub simulated: Option<String>,
    pub subtitle: String,
    pub facts: Vec<Fact>,
    /// Other forms of the same beside it: name and file.
    pub files: Vec<(&'static str, &'static str)>,
    /// A sentence about the links to files, for readers who have the page alone.
    pub alone: String,
    /// The folder of the figures as files, relative to the document; `None` if it stands alone.
    pub plots: Option<String>,
    /// The folder of the runs, relative to the document; `None` if it is not where reports are.
    pub runs: Option<String>,
    pub warnings: Vec<String>,
    pub sections: Vec<Section>,
    /// What else a reader may look for, and why it is not here.
    pub left_out: String,
    /// Where it is served while it fills.
    pub live: Option<Live>,
    /// A navigation beside the sections, and a script for tips, filters and copying.
    pub interactive: bool,
}

/// A document that is served while it fills.
#[derive(Debug)]
pub struct Live {
    /// How far it is, in a sentence without its full stop.
    pub text: String,
    /// What the server answers at `/state` as long as the page is up to date.
    pub state: String,
}

impl Document {
    /// Every figure in it.
    pub fn figures(&self) -> Vec<&Figure> {
        self.sections.iter().flat_map(|s| &s.blocks).flat_map(Block::figures).collect()
    }

    /// The same, with the simulated parts set, if any.
    pub fn simulated(mut self, what: Option<&str>) -> Self {
        self.tags.extend(what.map(|_| "simulated".into()));
        self.simulated = what.map(String::from);
        self
    }
}

/// A name and its value, in the head of a document.
#[derive(Debug)]
pub struct Fact {
    pub name: String,
    pub lines: Vec<FactLine>,
}

/// A line of a fact.
#[derive(Debug)]
pub enum FactLine {
    Text(String),
    Code(String),
    /// A text that links to a section.
    Link(String, &'static str),
    /// Shares of a whole as a strip, each with its class, and their description.
    Strip(Vec<(&'static str, usize)>, String),
}

impl Fact {
    /// A fact in one line.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Fact { name: name.into(), lines: vec![FactLine::Text(text.into())] }
    }

    /// A campaign: its start time, and its id.
    pub fn campaign(name: &str, created_utc: &str, id: &str) -> Self {
        let when = created_utc.replace('T', " ").replace('Z', " UTC");
        Fact { name: name.into(), lines: vec![FactLine::Text(when), FactLine::Code(id.into())] }
    }
}

/// One section.
#[derive(Debug, Default)]
pub struct Section {
    /// The anchor: `gain`.
    pub id: &'static str,
    /// In the navigation.
    pub title: &'static str,
    pub chip: Option<Badge>,
    /// The finding, or why there is none: at most two sentences.
    pub finding: String,
    pub blocks: Vec<Block>,
    /// It has no content; its finding says why.
    pub left_out: bool,
    /// Its finding is the answer of a document in which nothing else is decided.
    pub answers: bool,
    /// On a page its blocks are folded under its title and its finding.
    pub folded: bool,
    /// The anchor of the term that its title names, if it is defined on the page.
    pub term: String,
}

impl Section {
    /// The same, whose finding answers where nothing else is decided.
    pub fn answering(self) -> Self {
        Section { answers: true, ..self }
    }
}

/// How a word is highlighted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    Good,
    Bad,
    Open,
    #[default]
    Plain,
}

/// A verdict, or a count of them: a sign and words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Badge {
    pub tone: Tone,
    pub sign: &'static str,
    pub text: String,
}

impl Badge {
    pub fn new(tone: Tone, sign: &'static str, text: impl Into<String>) -> Self {
        Badge { tone, sign, text: text.into() }
    }

    /// The sign and the words.
    pub fn to_text(&self) -> String {
        format!("{} {}", self.sign, self.text).trim().to_string()
    }
}

/// The content of a section.
#[derive(Debug)]
pub enum Block {
    Figure(Figure),
    Table(Table),
    /// A sentence.
    Text(String),
    /// A sentence about what is above it, smaller.
    Remark(String),
    /// A list of sentences.
    Notes(Vec<String>),
    /// Names and their values.
    Facts(Vec<(String, String)>),
    /// Terms that other parts link to: their anchors, names and meanings.
    Terms(Vec<[String; 3]>),
    /// A verbatim text, folded: its name, and its content.
    Verbatim(String, String),
    Chips(Vec<Badge>),
    /// A command to copy, and what it does.
    Command(&'static str, String),
    Advice(Vec<Advice>),
    Answer(Answer),
    /// Blocks folded under a title.
    Folded(String, Vec<Block>),
}

impl Block {
    /// Its figures, those of folded blocks included.
    pub fn figures(&self) -> Vec<&Figure> {
        match self {
            Block::Figure(figure) => vec![figure],
            Block::Folded(_, blocks) => blocks.iter().flat_map(Block::figures).collect(),
            _ => Vec::new(),
        }
    }
}

/// The answer of a document, and why it may be doubted.
#[derive(Debug)]
pub struct Answer {
    pub paragraphs: Vec<String>,
    pub doubts: Vec<Doubt>,
}

/// A threat to the validity of a document's numbers: its name, and what it is here.
#[derive(Debug)]
pub struct Doubt {
    pub name: String,
    pub text: String,
    /// `Bad` where the numbers must not be used without it.
    pub tone: Tone,
}

/// The title of a list of doubts.
pub const DOUBTS: &str = "Why you may doubt this";

/// A piece of advice with its evidence.
#[derive(Debug)]
pub struct Advice {
    pub id: String,
    /// Whether it holds here, and whether what was published agrees.
    pub holds: Badge,
    pub agrees: Badge,
    pub statement: String,
    pub finding: String,
    /// The key number, its interval, and its cell.
    pub key: Option<[String; 3]>,
    pub published: String,
    /// What it is based on; empty for rules that are not about groups.
    pub scope: String,
    pub command: Option<String>,
    /// Shown when it is opened.
    pub evidence: Vec<Block>,
    /// Terms that its sentences use, with their anchors on the page.
    pub terms: Vec<(String, String)>,
}

/// One figure with its values.
#[derive(Debug)]
pub struct Figure {
    /// File name without its extension.
    pub id: Cow<'static, str>,
    pub title: String,
    /// Sharing modes and their labels.
    pub legend: Vec<(String, String)>,
    pub panels: Vec<Panel>,
    pub caption: String,
    pub values: Table,
    /// The values as CSV with whole names, where those of the document are shorter.
    pub csv: Option<String>,
    pub simulated: bool,
    /// Caveats about its numbers: `simulated`, `synthetic data`, `indicative`.
    pub tags: Vec<String>,
}

impl Figure {
    /// True if its table stands open beside its only panel; the fields of the map of gains have their numbers already.
    pub fn is_open(&self) -> bool {
        self.panels.len() == 1 && self.values.rows.len() <= 24 && !self.long() && self.id != "gain-by-mode"
    }

    /// True if its panels are as wide as the page, below each other.
    pub fn long(&self) -> bool {
        self.panels.first().is_some_and(|p| p.drawing.width > crate::draw::WIDTH)
    }

    /// True if four panels are beside each other instead of three.
    pub fn narrow(&self) -> bool {
        self.panels.first().is_some_and(|p| p.drawing.width < crate::draw::WIDTH)
    }
}

/// The layout of a table on a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TableLayout {
    #[default]
    Values,
    /// Can be sorted and filtered; there is one such table on a page.
    Interactive,
    /// As wide as its text.
    Narrow,
    /// Of sentences: on a phone its columns are below each other.
    Prose,
    /// Rows whose drawings make one plot.
    Joined,
}

/// One table.
#[derive(Debug, Default)]
pub struct Table {
    pub caption: String,
    pub columns: Vec<Column>,
    pub rows: Vec<Row>,
    /// Rows that people are shown, if not all; programs get all.
    pub shown: Option<usize>,
    pub look: TableLayout,
    /// Sharing modes and their labels, if the rows are drawn.
    pub legend: Vec<(String, String)>,
    pub tags: Vec<String>,
    /// Everything about a row, shown when it is asked for: the anchor of the row, and a text as a terminal prints it.
    pub details: Vec<(String, String)>,
}

/// The alignment of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Align {
    #[default]
    Left,
    Right,
    /// On the decimal points of estimates.
    Point,
    /// On the decimal points, with aligned intervals.
    Interval,
}

/// The head of a column.
#[derive(Debug, Clone, Default)]
pub struct Column {
    pub name: String,
    pub align: Align,
    /// If space is short, the columns of the highest rank are dropped first; those of rank 0 stay.
    pub rank: usize,
    /// An axis above the column's drawings.
    pub axis: Option<Drawing>,
    /// Its sentences take several lines where space is short.
    pub prose: bool,
    /// The anchor of the term that it names, if it is defined on the page.
    pub term: String,
}

impl Column {
    /// True if the page aligns it to the right.
    pub fn is_numeric(&self) -> bool {
        self.align != Align::Left
    }
}

impl From<(&str, Align)> for Column {
    fn from((name, align): (&str, Align)) -> Column {
        Column { name: name.into(), align, ..Column::default() }
    }
}

/// A head that begins with `#` is numeric.
impl From<&str> for Column {
    fn from(head: &str) -> Column {
        let align = if head.starts_with('#') { Align::Right } else { Align::Left };
        (head.trim_start_matches('#'), align).into()
    }
}

/// One row of a table; the first cell is its head.
#[derive(Debug, Default)]
pub struct Row {
    /// The anchor, if something links here.
    pub id: String,
    /// Another workload than in the row before: a stronger line is drawn above it.
    pub begins: bool,
    /// A bar is drawn before it.
    pub marked: bool,
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
    /// Both ends of an interval, for programs; the text has them for people.
    pub ends: Option<(f64, f64)>,
    /// The row that it links to.
    pub link: String,
    /// The page that it links to, relative to the document.
    pub page: String,
    /// Links to files of the runs: a text, and the place below the folder of the runs.
    pub files: Vec<(String, String)>,
    /// A ratio drawn beside the text, on a logarithmic axis with a line at 1.
    pub ratio: Option<f64>,
    /// The sharing mode whose mark is drawn before it.
    pub mode: String,
    /// Drawn in place of the text, which is read to those who cannot see it.
    pub drawing: Option<Drawing>,
    pub tone: Tone,
    pub chip: Option<Badge>,
}

impl TableCell {
    /// A field with a text.
    pub fn text(text: impl Into<String>) -> Self {
        TableCell { text: text.into(), ..Default::default() }
    }

    /// A number as it is read, and in full.
    pub fn number(text: impl Into<String>, value: f64) -> Self {
        TableCell { text: text.into(), sort: Some(value), ..Default::default() }
    }

    /// A field with a smaller second line.
    pub fn with_note(text: impl Into<String>, note: impl Into<String>) -> Self {
        TableCell { text: text.into(), note: note.into(), ..Default::default() }
    }
}

/// A column by its head, and its field in the row of a subject.
pub type TableColumn<'f, T> = (&'f str, &'f dyn Fn(&T) -> TableCell);

impl Table {
    /// A table from its heads.
    pub fn with(heads: &[&str]) -> Self {
        Table { columns: heads.iter().map(|head| Column::from(*head)).collect(), ..Default::default() }
    }

    /// A row for each subject; heads are those of [`Table::with`].
    pub fn of<T>(columns: &[TableColumn<T>], subjects: impl IntoIterator<Item = T>) -> Self {
        let mut table = Table::with(&columns.iter().map(|column| column.0).collect::<Vec<_>>());
        for subject in subjects {
            table.row(columns.iter().map(|(_, field)| field(&subject)).collect());
        }
        table
    }

    /// The rows for people.
    pub fn shown_rows(&self) -> &[Row] {
        &self.rows[..self.shown.unwrap_or(usize::MAX).min(self.rows.len())]
    }

    /// None where it has no row: heads over nothing say nothing.
    pub fn if_any(self) -> Option<Block> {
        (!self.rows.is_empty()).then_some(Block::Table(self))
    }

    /// The same, set in another way.
    pub fn looking(self, look: TableLayout) -> Self {
        Table { look, ..self }
    }

    /// Add a row.
    pub fn row(&mut self, cells: Vec<TableCell>) {
        self.rows.push(Row { cells, ..Default::default() });
    }

    /// Add a row of texts.
    pub fn texts(&mut self, texts: impl IntoIterator<Item = impl Into<String>>) {
        self.row(texts.into_iter().map(TableCell::text).collect());
    }
}
