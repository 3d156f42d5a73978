//! The layout of `dmon`: of DCGM 4, left-aligned columns; of DCGM 3, right-aligned ones.

use super::field::{Cell, Field};

const FIRST: usize = 16;

/// How rows look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    Four,
    Three,
}

fn cut(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_string();
    }
    text.chars().take(room.saturating_sub(3)).chain("...".chars()).collect()
}

impl Layout {
    fn width(field: &Field) -> usize {
        field.width + 8
    }

    /// The two lines of the header.
    pub fn header(self, fields: &[Field]) -> String {
        let (mut tags, mut units) = match self {
            Layout::Four => (format!("{:<FIRST$}", "#Entity"), format!("{:<FIRST$}", "ID")),
            Layout::Three => ("# Entity".to_string(), "      Id".to_string()),
        };
        for field in fields {
            let width = Layout::width(field);
            match self {
                Layout::Four => {
                    tags.push_str(&format!("{:<width$}", field.tag));
                    units.push_str(&format!("{:<width$}", field.unit));
                }
                Layout::Three => {
                    let width = field.width + 2;
                    tags.push_str(&format!("{:>width$}", field.tag));
                    units.push_str(&format!("{:>width$}", field.unit));
                }
            }
        }
        format!("{tags}\n{units}")
    }

    /// A row: an entity and its cells.
    pub fn row(self, entity: &str, cells: &[(Field, Cell)]) -> String {
        let mut line = match self {
            Layout::Four => format!("{entity:<FIRST$}"),
            Layout::Three => format!("{entity:>9}"),
        };
        for (field, cell) in cells {
            let text = match cell {
                Cell::Text(text) => cut(text, field.width + 6),
                Cell::Blank => "N/A".to_string(),
                Cell::Absent => String::new(),
            };
            match self {
                Layout::Four => line.push_str(&format!("{text:<width$}", width = Layout::width(field))),
                Layout::Three => line.push_str(&format!("{text:>width$}", width = field.width + 2)),
            }
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::super::field::find;
    use super::*;

    #[test]
    fn columns_of_dcgm_4_are_left_aligned_and_as_wide_as_its_source_says() {
        let fields = [find(1001).unwrap(), find(1009).unwrap(), find(155).unwrap()];
        let header = Layout::Four.header(&fields);
        let first = header.lines().next().unwrap();
        assert_eq!((first.find("GRACT"), first.find("PCITX"), first.find("POWER")), (Some(16), Some(29), Some(57)));
        let cells =
            [(fields[0], Cell::Text("0.412".into())), (fields[1], Cell::Blank), (fields[2], Cell::Text("141.250".into()))];
        let row = Layout::Four.row("GPU 0", &cells);
        assert_eq!(&row[16..21], "0.412");
        assert_eq!(&row[29..32], "N/A");
        assert_eq!(&row[57..64], "141.250");
    }
}
