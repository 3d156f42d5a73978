//! What a document consists of, before it is HTML, Markdown or lines of a terminal. Whoever makes one knows no markup; whoever
//! writes one knows no campaign.

use crate::plot::{Drawing, Panel};

/// One document: a page, and the same as Markdown.
#[derive(Debug, Default)]
pub struct Document {
    /// In the window's title: `collo report: quickstart on cpu`.
    pub name: String,
    pub title: String,
    /// Beside the title: what its numbers are not.
    pub tags: Vec<String>,
    /// What a model invented, where it did.
    pub simulated: Option<String>,
    pub subtitle: String,
    pub facts: Vec<Fact>,
    /// Other forms of the same beside it: name and file.
    pub files: Vec<(&'static str, &'static str)>,
    /// The folder of the figures as files, seen from the document; none where it stands alone.
    pub plots: Option<String>,
    pub warnings: Vec<String>,
    pub sections: Vec<Section>,
    /// A navigation beside the sections, and a script for tips, filters and copying.
    pub interactive: bool,
}

impl Document {
    /// The same, with what a model invented of it, where it did.
    pub fn simulated(mut self, what: Option<&str>) -> Self {
        self.tags.extend(what.map(|_| "simulated".into()));
        self.simulated = what.map(String::from);
        self
    }
}

/// A name with what it is, in the head of a document.
#[derive(Debug)]
pub struct Fact {
    pub name: String,
    pub lines: Vec<Line>,
}

/// A line of a fact.
#[derive(Debug)]
pub enum Line {
    Text(String),
    Code(String),
    /// A text that leads to a section.
    Link(String, &'static str),
    /// Shares of a whole as a strip, each with its class, and what they are.
    Strip(Vec<(&'static str, usize)>, String),
}

impl Fact {
    /// A fact in one line.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Fact { name: name.into(), lines: vec![Line::Text(text.into())] }
    }

    /// A campaign: when it began, and its id.
    pub fn campaign(name: &str, created_utc: &str, id: &str) -> Self {
        let when = created_utc.replace('T', " ").replace('Z', " UTC");
        Fact { name: name.into(), lines: vec![Line::Text(when), Line::Code(id.into())] }
    }
}

/// One section.
#[derive(Debug, Default)]
pub struct Section {
    /// The anchor: `gain`.
    pub id: &'static str,
    /// In the navigation.
    pub title: &'static str,
    pub chip: Option<Chip>,
    /// What is found, or why there is nothing: at most two sentences.
    pub finding: String,
    pub blocks: Vec<Block>,
}

/// How a word is set off.
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
pub struct Chip {
    pub tone: Tone,
    pub sign: &'static str,
    pub text: String,
}

impl Chip {
    pub fn new(tone: Tone, sign: &'static str, text: impl Into<String>) -> Self {
        Chip { tone, sign, text: text.into() }
    }

    /// The sign and the words.
    pub fn said(&self) -> String {
        format!("{} {}", self.sign, self.text).trim().to_string()
    }
}

/// What a section shows.
#[derive(Debug)]
pub enum Block {
    Figure(Figure),
    Table(Table),
    /// A sentence.
    Text(String),
    /// A sentence about what stands above it, smaller.
    Remark(String),
    /// A list of sentences.
    Notes(Vec<String>),
    /// Names and what they are.
    Facts(Vec<(String, String)>),
    /// A text, word for word, folded: its name, and it.
    Verbatim(String, String),
    Chips(Vec<Chip>),
    /// A command to copy, and what it does.
    Command(&'static str, String),
    Advice(Vec<Advice>),
    /// Blocks behind a title.
    Folded(String, Vec<Block>),
}

/// A piece of advice with what it rests on.
#[derive(Debug)]
pub struct Advice {
    pub id: String,
    pub verdict: Chip,
    pub statement: String,
    pub finding: String,
    /// The number that carries it, its interval, and the cell it is from.
    pub key: Option<[String; 3]>,
    pub published: String,
    pub command: Option<String>,
    /// Shown when it is opened.
    pub evidence: Vec<Block>,
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

/// How a page sets a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Look {
    #[default]
    Values,
    /// Can be sorted and filtered; there is one such table on a page.
    Interactive,
    /// As wide as its text.
    Narrow,
    /// Of sentences: on a phone its columns stand below each other.
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
    pub look: Look,
    /// Sharing modes and their labels, where the rows are drawn.
    pub legend: Vec<(String, String)>,
    pub tags: Vec<String>,
}

/// Where the values of a column stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Align {
    #[default]
    Left,
    Right,
    /// On the decimal points of estimates.
    Point,
    /// On the decimal points, and the intervals below each other.
    Interval,
}

/// The head of a column.
#[derive(Debug, Clone, Default)]
pub struct Column {
    pub name: String,
    pub align: Align,
    /// Where there is no room for all, the columns of the highest rank go first; those of rank 0 stay.
    pub rank: usize,
    /// An axis above the column's drawings.
    pub axis: Option<Drawing>,
    /// Its last column's sentences end in `…` rather than make a line too long.
    pub prose: bool,
}

impl Column {
    /// True where the page sets it to the right.
    pub fn is_numeric(&self) -> bool {
        self.align != Align::Left
    }
}

/// One row of a table; the first cell is its head.
#[derive(Debug, Default)]
pub struct Row {
    /// The anchor, where something points here.
    pub id: String,
    /// Another workload than the row before: a stronger line stands above it.
    pub begins: bool,
    /// A bar stands before it.
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
    /// The row that it points to.
    pub link: String,
    /// A ratio drawn beside the text, on a logarithmic axis with a line at 1.
    pub ratio: Option<f64>,
    /// The sharing mode whose mark stands before it.
    pub mode: String,
    /// Drawn in the text's place, which says the same to those who cannot see it.
    pub drawing: Option<Drawing>,
    pub tone: Tone,
    pub chip: Option<Chip>,
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
        let align = |head: &str| if head.starts_with('#') { Align::Right } else { Align::Left };
        let column = |h: &&str| Column { name: h.trim_start_matches('#').to_string(), align: align(h), ..Default::default() };
        Table { columns: heads.iter().map(column).collect(), ..Default::default() }
    }

    /// The same, set in another way.
    pub fn looking(self, look: Look) -> Self {
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
