//! Renders blocks as lines of a terminal: without colour, at most as many columns as the screen is wide. Text from a member, a
//! file or other people's campaigns never reaches the terminal with its control characters.

use collo_quantity::number::ABSENT;
use collo_text::quoting::line;
use unicode_width::UnicodeWidthStr;

use super::model::{Align, Block, Column, DOUBTS, Table};

/// Columns of the names of facts, at least; a longer name than the second stands out.
const NAME: usize = 10;
const LONGEST_NAME: usize = 32;
/// A column of sentences is made no narrower than this, and that of the labels no narrower than the second.
const LEAST_PROSE: usize = 12;
const LEAST_LABEL: usize = 20;
/// Lines of a field at most.
const MOST_LINES: usize = 6;
/// The longest line of sentences, however wide the screen.
pub const LONGEST_LINE: usize = 100;

/// The blocks below each other.
pub fn text(blocks: &[Block], width: usize) -> String {
    blocks.iter().map(|b| block(b, width)).collect()
}

fn block(block: &Block, width: usize) -> String {
    let list = |texts: &[String]| texts.iter().map(|t| wrapped(t, width)).collect::<String>();
    match block {
        Block::Table(t) => t.render(width),
        Block::Figure(f) => f.values.render(width),
        Block::Text(text) | Block::Remark(text) => wrapped(text, width),
        Block::Notes(notes) => list(notes),
        Block::Facts(facts) => {
            let lengths = facts.iter().map(|(name, _)| name.chars().count()).filter(|length| *length <= LONGEST_NAME);
            let room = lengths.max().unwrap_or(0).max(NAME);
            facts.iter().map(|(name, what)| format!("{}\n", line(format!("  {name:<room$} {what}").trim_end()))).collect()
        }
        Block::Terms(terms) => terms.iter().map(|[_, name, meaning]| wrapped(&format!("{name}: {meaning}"), width)).collect(),
        Block::Chips(chips) => wrapped(&chips.iter().map(|c| c.to_text()).collect::<Vec<_>>().join(", "), width),
        // A command is copied whole.
        Block::Command(what, command) => format!("{}: {}\n", what.to_lowercase(), line(command)),
        Block::Advice(advice) => {
            let of = |a: &super::Advice| {
                format!("{} here, study {}: {} {} {}", a.holds.to_text(), a.agrees.to_text(), a.statement, a.finding, a.scope)
            };
            list(&advice.iter().map(of).collect::<Vec<_>>())
        }
        Block::Answer(answer) => {
            let doubts = answer.doubts.iter().map(|d| wrapped(&format!("  {}: {}", d.name, d.text), width)).collect::<String>();
            let heading = if doubts.is_empty() { String::new() } else { format!("{DOUBTS}:\n") };
            list(&answer.paragraphs) + &heading + &doubts
        }
        Block::Folded(title, blocks) => wrapped(&format!("{title}:"), width) + &text(blocks, width),
        Block::Verbatim(name, text) => format!("{}:\n{}\n", line(name), collo_text::quoting::lines(text)),
    }
}

/// Line breaks between words; continuation lines are indented by two, beyond the line's own indent.
fn wrapped(text: &str, width: usize) -> String {
    let (text, width) = (line(text), width.min(LONGEST_LINE));
    let own = text.len() - text.trim_start().len();
    let (first, next) = (" ".repeat(own), " ".repeat(own + 2));
    let options = options(width).initial_indent(&first).subsequent_indent(&next);
    textwrap::wrap(text.trim_start(), options).iter().map(|l| format!("{l}\n")).collect()
}

impl Table {
    /// A table for a terminal from its heads: if space is short, columns are dropped from the right, and the first `kept` never.
    pub fn new<Head: Copy + Into<Column>>(heads: &[Head], kept: usize) -> Table {
        let column = |(i, head): (usize, &Head)| Column { rank: (i + 1).saturating_sub(kept), ..(*head).into() };
        Table { columns: heads.iter().enumerate().map(column).collect(), ..Table::default() }
    }

    /// The last column has sentences, which take several lines where space is short.
    pub fn with_prose_last(self) -> Table {
        let last = self.columns.len().saturating_sub(1);
        self.with_prose(last)
    }

    /// This column has sentences, which take several lines where space is short.
    pub fn with_prose(mut self, column: usize) -> Table {
        self.columns.get_mut(column).into_iter().for_each(|c| c.prose = true);
        self
    }

    /// Add a row; what is absent is printed as `–`.
    pub fn values(&mut self, values: impl IntoIterator<Item = Option<String>>) {
        self.texts(values.into_iter().map(|v| v.unwrap_or_else(|| ABSENT.into())));
    }

    /// Text left-aligned, numbers right-aligned or on their points, two spaces between, one header line, no rules. If space is short,
    /// sentences take several lines, then the labels of the first column that is not of numbers; what has no room even so is left out, and
    /// named.
    pub fn render(&self, width: usize) -> String {
        let mut columns: Vec<Printed> = self
            .columns
            .iter()
            .enumerate()
            .map(|(i, column)| {
                let values = values(self, i);
                let width = values.iter().map(|v| v.width()).chain([column.name.width()]).max().unwrap_or(0);
                let least = values.iter().chain([&column.name]).flat_map(|text| text.split(' ')).map(|word| word.width()).max();
                Printed { column, values, width, widest: width, least: least.unwrap_or(0) }
            })
            .collect();
        let mut hidden: Vec<&str> = Vec::new();
        while !fit(&mut columns, width)
            && let Some(highest) = columns.iter().map(|c| c.column.rank).max().filter(|rank| *rank > 0)
        {
            let gone = columns.iter().filter(|c| c.column.rank == highest).map(|c| c.column.name.as_str());
            hidden.splice(0..0, gone.filter(|name| !name.is_empty()));
            columns.retain(|c| c.column.rank < highest);
            // The others may need less than they had given up for it.
            columns.iter_mut().for_each(|c| c.width = c.widest);
        }
        // No wider than the lines that it has.
        for column in columns.iter_mut().filter(|c| c.width < c.widest) {
            let texts = column.values.iter().chain([&column.column.name]).flat_map(|text| lines(text, column.width));
            column.width = texts.map(|line| line.width()).max().unwrap_or(0);
        }
        let row = |texts: Vec<&str>| {
            let cells: Vec<Vec<String>> = texts.iter().zip(&columns).map(|(text, c)| lines(text, c.width)).collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or(1);
            let line = |at: usize| {
                let padded = cells.iter().zip(&columns).map(|(cell, c)| {
                    let text = cell.get(at).map_or("", String::as_str);
                    let gap = " ".repeat(c.width.saturating_sub(text.width()));
                    if c.column.align == Align::Right { format!("{gap}{text}") } else { format!("{text}{gap}") }
                });
                format!("{}\n", padded.collect::<Vec<_>>().join("  ").trim_end())
            };
            (0..height).map(line).collect::<String>()
        };
        let named = columns.iter().any(|c| !c.column.name.is_empty());
        let head = named.then(|| row(columns.iter().map(|c| c.column.name.as_str()).collect()));
        let rows = (0..self.shown_rows().len()).map(|i| row(columns.iter().map(|c| c.values[i].as_str()).collect()));
        // A column that is missing without a word would be taken for one that does not exist.
        let hidden = (!hidden.is_empty()).then(|| wrapped(&format!("(not shown at this width: {})", hidden.join(", ")), width));
        head.into_iter().chain(rows).chain(hidden).collect()
    }
}

/// A column while it is laid out.
struct Printed<'t> {
    column: &'t Column,
    values: Vec<String>,
    width: usize,
    /// Columns that its longest text needs, and its longest word.
    widest: usize,
    least: usize,
}

/// Make the columns as narrow as the screen needs; true if they fit. Sentences give way first, then the labels.
fn fit(columns: &mut [Printed], width: usize) -> bool {
    let room = |columns: &[Printed]| columns.iter().map(|c| c.width + 2).sum::<usize>().saturating_sub(2);
    let prose: Vec<usize> = (0..columns.len()).filter(|i| columns[*i].column.prose).collect();
    // Before the labels there may be their numbers.
    let labels: Vec<usize> = columns.iter().position(|c| c.column.align == Align::Left).into_iter().collect();
    for (of, least) in [(prose, LEAST_PROSE), (labels, LEAST_LABEL)] {
        // The widest gives way first, so that short sentences stay on one line.
        while room(columns) > width
            && let Some(widest) = of.iter().copied().filter(|i| *i < columns.len()).max_by_key(|i| columns[*i].width)
            && columns[widest].column.align == Align::Left
            && columns[widest].width > least.max(columns[widest].least)
        {
            columns[widest].width -= 1;
        }
    }
    room(columns) <= width
}

/// A text in lines of at most so many columns; a word that is longer stays whole. Of many lines the last one shown ends in `…`.
fn lines(text: &str, width: usize) -> Vec<String> {
    if text.width() <= width {
        return vec![text.to_string()];
    }
    let all: Vec<String> = textwrap::wrap(text, options(width)).into_iter().map(|l| l.into_owned()).collect();
    if all.len() <= MOST_LINES {
        return all;
    }
    let rest = all[MOST_LINES - 1..].join(" ");
    all[..MOST_LINES - 1].iter().cloned().chain([cut(&rest, width)]).collect()
}

/// The values of a column, padded to their points where they have any.
fn values(t: &Table, column: usize) -> Vec<String> {
    let texts =
        t.shown_rows().iter().map(|r| r.cells.get(column).map_or_else(String::new, |c| line(&c.text).into_owned())).collect();
    match t.columns[column].align {
        Align::Left | Align::Right => texts,
        Align::Point => points(texts, false),
        Align::Interval => points(texts, true),
    }
}

/// Estimates aligned on their points; with `intervals` these are aligned too.
fn points(texts: Vec<String>, intervals: bool) -> Vec<String> {
    let split = |text: &str| {
        let at = text.find(['.', ' ']).unwrap_or(text.len());
        (at, text.find(' ').unwrap_or(text.len()) - at)
    };
    let is_number = |text: &&String| text.starts_with(|c: char| c.is_ascii_digit());
    let (before, after) = texts.iter().filter(is_number).map(|t| split(t)).fold((0, 0), |(b, a), (x, y)| (b.max(x), a.max(y)));
    let place = |text: &String| {
        if !is_number(&text) {
            return text.clone();
        }
        let (whole, fraction) = split(text);
        let (number, rest) = text.split_at(whole + fraction);
        let gap = if intervals { " ".repeat(after - fraction) } else { String::new() };
        format!("{}{number}{gap}{rest}", " ".repeat(before - whole)).trim_end().to_string()
    };
    texts.iter().map(place).collect()
}

/// A text of at most this many columns, truncated at a word with `…`.
fn cut(text: &str, most: usize) -> String {
    if text.width() <= most {
        return text.to_string();
    }
    let begin = textwrap::wrap(text, options(most.saturating_sub(1)).break_words(true)).into_iter().next().unwrap_or_default();
    format!("{}…", begin.trim_end_matches([',', ':', ';']))
}

/// Lines break only between words.
fn options<'a>(width: usize) -> textwrap::Options<'a> {
    textwrap::Options::new(width)
        .break_words(false)
        .word_separator(textwrap::WordSeparator::AsciiSpace)
        .word_splitter(textwrap::WordSplitter::NoHyphenation)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&[("cell", Align::Left), ("runs", Align::Right), ("against", Align::Left)], 1);
        table.values([Some("tiny×2 naive b32".into()), Some("3".into()), Some("1".into())]);
        table.values([Some("tiny solo b32".into()), None, Some("baseline".into())]);
        table
    }

    #[test]
    fn text_stands_left_numbers_right_and_what_is_absent_is_a_dash() {
        insta::assert_snapshot!(table().render(100), @r"
        cell              runs  against
        tiny×2 naive b32     3  1
        tiny solo b32        –  baseline
        ");
    }

    #[test]
    fn sentences_take_several_lines_where_space_is_short() {
        let mut table = Table::new(&[("mode", Align::Left), ("about", Align::Left)], 1).with_prose_last();
        table.values(["naive".to_string(), "each member by itself, and the device slices the time".into()].map(Some));
        insta::assert_snapshot!(table.render(40), @"
        mode   about
        naive  each member by itself, and the
               device slices the time
        ");
        insta::assert_snapshot!(table.render(12), @"
        mode
        naive
        (not shown
          at this
          width:
          about)
        ");
    }

    #[test]
    fn a_long_name_takes_two_lines_before_a_number_is_left_out() {
        let mut table = Table::new(&[("cell", Align::Left), ("slowdown", Align::Right), ("gain", Align::Right)], 1);
        table.values(["mobilenet-v3-small solo b32 limit_batches=0.2", "1.27", "5.49"].map(|text| Some(text.into())));
        insta::assert_snapshot!(table.render(50), @"
        cell                         slowdown  gain
        mobilenet-v3-small solo b32      1.27  5.49
        limit_batches=0.2
        ");
    }

    #[test]
    fn a_label_behind_its_number_takes_two_lines_as_well() {
        let heads = [("", Align::Right), ("cell", Align::Left), ("each", Align::Right), ("total", Align::Right)];
        let mut table = Table::new(&heads, 2);
        table.values(["1", "mobilenet-v3-small solo b32 limit_batches=0.2", "0:57", "5:42"].map(|text| Some(text.into())));
        insta::assert_snapshot!(table.render(50), @"
           cell                         each  total
        1  mobilenet-v3-small solo b32  0:57   5:42
           limit_batches=0.2
        ");
    }

    #[test]
    fn a_narrow_screen_loses_columns_from_the_right_but_never_the_label() {
        insta::assert_snapshot!(table().render(25), @"
        cell              runs
        tiny×2 naive b32     3
        tiny solo b32        –
        (not shown at this width:
          against)
        ");
        insta::assert_snapshot!(table().render(5), @"
        cell
        tiny×2 naive b32
        tiny solo b32
        (not
          shown
          at
          this
          width:
          runs,
          against)
        ");
        assert_eq!(table().render(32), table().render(100));
        assert_ne!(table().render(31), table().render(100));
    }

    #[test]
    fn estimates_stand_on_their_points_and_intervals_below_each_other() {
        let column = |align| Column { name: "time".into(), align, ..Column::default() };
        let mut table = Table { columns: [Align::Point, Align::Interval].map(column).into(), ..Table::default() };
        for text in ["28.9 ±0.5", "9.125 ±0.013", "crashed"] {
            table.texts([text, text]);
        }
        insta::assert_snapshot!(table.render(80), @r"
        time           time
        28.9 ±0.5      28.9   ±0.5
         9.125 ±0.013   9.125 ±0.013
        crashed        crashed
        ");
    }

    #[test]
    fn columns_of_the_highest_rank_go_together_and_wide_letters_take_two_columns() {
        let mut table = Table::with(&["cell", "left", "right", "verdict"]);
        table.columns[1].rank = 2;
        table.columns[2].rank = 2;
        table.texts(["学习×2 naive", "1.0", "2.0", "worse"]);
        insta::assert_snapshot!(table.render(23), @"
        cell          verdict
        学习×2 naive  worse
        (not shown at this
          width: left, right)
        ");
    }

    #[test]
    fn lines_break_between_words_and_say_what_a_terminal_would_obey() {
        let notes = Block::Notes(vec!["warning: one two".into(), "  `x\u{1b}[2J`: three four".into()]);
        insta::assert_snapshot!(text(&[notes], 16), @r"
        warning: one two
          `x\x1b[2J`:
            three four
        ");
    }
}
