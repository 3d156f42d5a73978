//! Columns for people: text left, numbers right, two spaces between, one header line, no rules.
//!
//! In: titles and values. Out: lines no wider than asked for, where columns go from the right if they do not fit. It does not know
//! what the values mean, nor colours.

use collo_store::text::line;

/// On which side the values of a column stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

/// What is printed where there is no value.
pub const ABSENT: &str = "–";

pub struct Table {
    columns: Vec<(&'static str, Align)>,
    /// How many columns from the left are never dropped.
    kept: usize,
    rows: Vec<Vec<String>>,
    /// The last column holds sentences: it is cut before it is dropped.
    prose: bool,
}

/// A last column of prose with less room than this is dropped after all.
const LEAST_PROSE: usize = 12;

impl Table {
    /// `kept` columns from the left stay, however narrow the screen is: labels are never dropped.
    pub fn new(columns: &[(&'static str, Align)], kept: usize) -> Table {
        Table { columns: columns.to_vec(), kept, rows: Vec::new(), prose: false }
    }

    /// The last column holds sentences, which may end in `…`.
    pub fn with_prose_last(mut self) -> Table {
        self.prose = true;
        self
    }

    /// A row; an absent value is printed as `–`.
    pub fn row(&mut self, values: impl IntoIterator<Item = Option<String>>) {
        let mut row: Vec<String> =
            values.into_iter().map(|value| value.map_or_else(|| ABSENT.into(), |v| line(&v).into_owned())).collect();
        row.resize(self.columns.len(), String::new());
        self.rows.push(row);
    }

    /// All lines, at most so many columns of the screen wide.
    pub fn render(&self, width: usize) -> String {
        let mut widths: Vec<usize> = (0..self.columns.len())
            .map(|i| {
                self.rows
                    .iter()
                    .map(|row| row[i].as_str())
                    .chain([self.columns[i].0])
                    .map(|t| t.chars().count())
                    .max()
                    .unwrap_or(0)
            })
            .collect();
        if self.prose
            && let Some((last, others)) = widths.split_last_mut()
        {
            let room = width.saturating_sub(others.iter().map(|w| w + 2).sum());
            if room >= LEAST_PROSE {
                *last = room.min(*last);
            }
        }
        let mut shown = self.columns.len();
        while shown > self.kept && widths[..shown].iter().sum::<usize>() + 2 * (shown - 1) > width {
            shown -= 1;
        }
        let titles: Vec<String> = self.columns.iter().map(|(title, _)| title.to_string()).collect();
        let lines = [&titles].into_iter().chain(&self.rows).map(|row| {
            let cells: Vec<String> = (0..shown)
                .map(|i| {
                    let text = cut(&row[i], widths[i]);
                    let pad = " ".repeat(widths[i] - text.chars().count());
                    if self.columns[i].1 == Align::Left { format!("{text}{pad}") } else { format!("{pad}{text}") }
                })
                .collect();
            format!("{}\n", cells.join("  ").trim_end())
        });
        lines.collect()
    }
}

/// A text of at most so many characters, ending with `…` at a word where it was longer.
fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_string();
    }
    let begin: String = text.chars().take(most.saturating_sub(1)).collect();
    let whole = begin.rsplit_once(' ').map_or(begin.as_str(), |(whole, _)| whole);
    format!("{}…", whole.trim_end_matches([',', ':', ';']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&[("cell", Align::Left), ("runs", Align::Right), ("against", Align::Left)], 1);
        table.row([Some("tiny×2 naive b32".into()), Some("3".into()), Some("1".into())]);
        table.row([Some("tiny solo b32".into()), None, Some("baseline".into())]);
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
    fn prose_in_the_last_column_is_cut_at_a_word() {
        let mut table = Table::new(&[("mode", Align::Left), ("about", Align::Left)], 1).with_prose_last();
        table.row(["naive".to_string(), "each member by itself, and the device slices the time".into()].map(Some));
        insta::assert_snapshot!(table.render(40), @r"
        mode   about
        naive  each member by itself, and the…
        ");
        insta::assert_snapshot!(table.render(12), @r"
        mode
        naive
        ");
    }

    #[test]
    fn a_narrow_screen_loses_columns_from_the_right_but_never_the_label() {
        insta::assert_snapshot!(table().render(25), @r"
        cell              runs
        tiny×2 naive b32     3
        tiny solo b32        –
        ");
        insta::assert_snapshot!(table().render(5), @r"
        cell
        tiny×2 naive b32
        tiny solo b32
        ");
        assert_eq!(table().render(32), table().render(100));
        assert_ne!(table().render(31), table().render(100));
    }
}
