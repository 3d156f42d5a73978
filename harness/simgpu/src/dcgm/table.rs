//! The layout of `dmon`, which three generations of DCGM print in three ways.
//!
//! | until  | first column | columns | a field that the entity does not have |
//! |--------|--------------|---------|----------------------------------------|
//! | 2.3.4  | `# Entity`, to the right | to the right | is left out: those after it move up |
//! | 3.3.9  | `#Entity`, 10 wide | to the left | is left out: those after it move up |
//! | 4.4.2  | 11 wide | to the left | leaves its column empty |
//! | 4.6.0  | 16 wide | to the left | leaves its column empty |

use super::field::{Cell, Field};
use super::version::Version;

/// What a column of values has to its left or right.
const PADDING: usize = 2;

/// How rows look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// To the right, packed.
    Right,
    /// To the left, behind a first column of 10, packed.
    Packed,
    /// To the left, behind a first column that wide, with holes.
    Holes { first: usize },
}

fn cut(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_string();
    }
    text.chars().take(room.saturating_sub(3)).chain("...".chars()).collect()
}

impl Layout {
    pub fn of(version: Version) -> Layout {
        match version {
            v if v < Version(2, 4, 0) => Layout::Right,
            v if v < Version(4, 0, 0) => Layout::Packed,
            v if v < Version(4, 5, 0) => Layout::Holes { first: 11 },
            _ => Layout::Holes { first: 16 },
        }
    }

    /// Of the first column, where it stands to the left.
    fn first(self) -> usize {
        if let Layout::Holes { first } = self { first } else { 10 }
    }

    /// The two lines of the header.
    pub fn header(self, fields: &[Field]) -> String {
        if self == Layout::Right {
            let cells = |of: fn(&Field) -> &'static str| -> String {
                fields.iter().map(|f| format!("{:>width$}", of(f), width = f.width + PADDING)).collect()
            };
            return format!("#{:>7}{}\n{:>8}{}", "Entity", cells(|f| f.tag), "Id", cells(|f| f.unit));
        }
        let line = |first: &str, of: fn(&Field) -> &'static str| -> String {
            let cells: String =
                fields.iter().map(|f| format!("{:<width$}", cut(of(f), f.width + 6), width = f.width + 6 + PADDING)).collect();
            format!("{first:<width$}{cells}", width = self.first())
        };
        format!("{}\n{}", line("#Entity", |f| f.tag), line("ID", |f| f.unit))
    }

    /// A row: the group of an entity, its number and its cells.
    pub fn row(self, group: &str, number: u32, cells: &[(Field, Cell)]) -> String {
        let text = |cell: &Cell| match cell {
            Cell::Text(text) => Some(text.clone()),
            Cell::Blank => Some("N/A".to_string()),
            Cell::Absent => None,
        };
        let mut line = match self {
            // Its width is that of the group alone: the number stands behind it.
            Layout::Right => format!("{group:>8} {number}"),
            _ => format!("{:<width$}", format!("{group} {number}"), width = self.first()),
        };
        let mut columns = cells.iter().map(|(field, _)| field);
        for (field, cell) in cells {
            let text = text(cell);
            if text.is_none() && !matches!(self, Layout::Holes { .. }) {
                continue;
            }
            // Packed values stand in the columns of whatever fields come first.
            let field = if matches!(self, Layout::Holes { .. }) { field } else { columns.next().unwrap_or(field) };
            let text = text.unwrap_or_default();
            match self {
                Layout::Right => {
                    let width = field.width + PADDING;
                    line.push_str(if text.len() >= width { " " } else { "" });
                    line.push_str(&format!("{text:>width$}"));
                }
                _ => line.push_str(&format!("{:<width$}", cut(&text, field.width + 6), width = field.width + 6 + PADDING)),
            }
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::super::field::find;
    use super::*;

    fn of(version: Version) -> (String, String) {
        let fields = [find(1001).unwrap(), find(1009).unwrap(), find(155).unwrap()];
        let cells =
            [(fields[0], Cell::Text("0.412".into())), (fields[1], Cell::Absent), (fields[2], Cell::Text("141.250".into()))];
        let layout = Layout::of(version);
        (layout.header(&fields).lines().next().unwrap().to_string(), layout.row("GPU", 0, &cells))
    }

    #[test]
    fn columns_of_dcgm_4_are_as_wide_as_its_source_says_and_have_holes() {
        for (version, first) in [(Version(4, 6, 0), 16), (Version(4, 2, 3), 11)] {
            let (header, row) = of(version);
            let heads = ["GRACT", "PCITX", "POWER"].map(|tag| header.find(tag));
            assert_eq!(heads, [0, 13, 41].map(|at| Some(first + at)));
            assert_eq!((row.find("0.412"), row.find("141.250")), (Some(first), Some(first + 41)));
        }
    }

    #[test]
    fn values_of_dcgm_3_move_up_where_one_is_missing() {
        let (header, row) = of(Version(3, 3, 9));
        assert_eq!((header.find("GRACT"), header.find("PCITX"), header.find("POWER")), (Some(10), Some(23), Some(51)));
        assert_eq!((row.find("0.412"), row.find("141.250")), (Some(10), Some(23)), "under another head");
    }

    #[test]
    fn dcgm_2_3_stands_to_the_right_with_rows_two_wider_than_their_heads() {
        let (header, row) = of(Version(2, 3, 4));
        assert!(header.starts_with("# Entity  GRACT"), "{header}");
        assert!(row.starts_with("     GPU 0  0.412"), "{row}");
        assert_eq!((header.find("PCITX").map(|at| at + 5), row.find("141.250").map(|at| at + 7)), (Some(37), Some(39)));
    }
}
