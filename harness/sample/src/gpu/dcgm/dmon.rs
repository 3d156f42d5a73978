//! Parses `dcgmi dmon`, line by line.
//!
//! In: one line after the other. Out: a [`Row`] of values, or why the line is [`NotARow`]. Columns are identified by their heads,
//! so their order does not matter. A row with empty cells (DCGM 4 leaves the cell of a field that the entity does not have empty)
//! is read by the position of its values under the heads, and refused if they are under none: a value is never guessed into a
//! column.
//!
//! Layouts, by dcgmi/DeviceMonitor.cpp of the tags v2.1.4 to v4.6.0: right-aligned and packed until 2.3.4 (`# Entity`);
//! left-aligned and packed after a first column of 10 in 2.4.7 to 3.3.9 (`#Entity`); left-aligned with empty cells after one of
//! 11 in 4.0 to 4.4.2, of 16 from 4.5 on.

use super::super::gpm_metrics::{Level, Profiled};

/// A line with values.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub level: Level,
    /// DCGM's own number of the entity.
    pub entity: u32,
    /// By column, in the order printed; columns of other fields are left out. `None` if the cell is empty or says `N/A`.
    pub values: Vec<(&'static Profiled, Option<f64>)>,
}

/// A line without usable values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotARow {
    /// An empty line.
    Blank,
    /// The heads of the columns; they are remembered.
    Heads,
    /// The units of the columns.
    Units,
    /// It does not begin with a GPU or a part of one.
    Other,
    /// A row before the heads of its columns.
    NoHeads,
    /// It has fewer values than heads, and its layout shifts those after a missing one: their columns are unknown.
    Short,
    /// Its values are not under the heads.
    Misaligned,
    /// A cell is not a number.
    Garbled,
}

impl NotARow {
    /// Whether such a line is part of dmon's normal output.
    pub fn is_expected(self) -> bool {
        matches!(self, NotARow::Blank | NotARow::Heads | NotARow::Units)
    }
}

/// Reads lines; remembers the last heads.
#[derive(Debug, Default)]
pub struct Parser {
    heads: Vec<Head>,
    /// A missing value leaves no empty cell, as before DCGM 4.
    is_packed: bool,
}

/// Width of the first column in the packed, left-aligned layout.
const PACKED_FIRST: usize = 10;

#[derive(Debug)]
struct Head {
    start: usize,
    /// `None` for a column that was not requested.
    profiled: Option<&'static Profiled>,
}

/// A word of a line and its position, in bytes.
#[derive(Debug, Clone, Copy)]
struct DmonWord<'a> {
    text: &'a str,
    start: usize,
}

fn words(line: &str) -> impl Iterator<Item = DmonWord<'_>> {
    let base = line.as_ptr() as usize;
    line.split_ascii_whitespace().map(move |text| DmonWord { text, start: text.as_ptr() as usize - base })
}

impl Parser {
    /// Read one line, without its end.
    pub fn line(&mut self, line: &str) -> Result<Row, NotARow> {
        let mut rest = words(line);
        let first = rest.next().ok_or(NotARow::Blank)?;
        if first.text.starts_with('#') {
            self.remember(line);
            return Err(NotARow::Heads);
        }
        let level = match first.text {
            "ID" | "Id" => return Err(NotARow::Units),
            "GPU" => Level::Gpu,
            "GPU-I" => Level::GpuInstance,
            "GPU-CI" => Level::ComputeInstance,
            _ => return Err(NotARow::Other),
        };
        // `GPU 0 LINK 3` and the like are no entities of ours: what follows the number must be values.
        let entity = rest.next().and_then(|w| whole(w.text)).ok_or(NotARow::Other)?;
        if self.heads.is_empty() {
            return Err(NotARow::NoHeads);
        }
        let cells: Vec<DmonWord> = rest.collect();
        let columns = self.columns(&cells)?;
        let mut values = Vec::with_capacity(self.heads.len());
        for (column, head) in self.heads.iter().enumerate() {
            let cell = columns.iter().position(|c| *c == column).map(|i| cells[i].text);
            if let Some(profiled) = head.profiled {
                values.push((profiled, cell.map_or(Ok(None), |text| value(text, profiled))?));
            }
        }
        Ok(Row { level, entity, values })
    }

    /// `#Entity  GRACT  SMACT`, or `# Entity  GRACT`: everything after the word `Entity` is the head of a column.
    fn remember(&mut self, line: &str) {
        self.heads.clear();
        let is_entity = |text: &str| matches!(text.trim_start_matches('#'), "" | "Entity" | "ID" | "Id");
        for word in words(line).skip_while(|w| is_entity(w.text)) {
            let profiled = Profiled::of_tag(word.text);
            self.heads.push(Head { start: word.start, profiled });
        }
        let stands_right = words(line).next().is_some_and(|w| w.text == "#");
        self.is_packed = stands_right || self.heads.first().is_some_and(|h| h.start == PACKED_FIRST);
        // The same head twice: it cannot be told which is which.
        let tags: Vec<&str> = self.heads.iter().filter_map(|h| h.profiled).map(|p| p.tag).collect();
        if (1..tags.len()).any(|i| tags[..i].contains(&tags[i])) {
            self.heads.clear();
        }
    }

    /// The column of each cell.
    fn columns(&self, cells: &[DmonWord]) -> Result<Vec<usize>, NotARow> {
        if cells.len() == self.heads.len() {
            return Ok((0..cells.len()).collect());
        }
        if self.is_packed {
            return Err(if cells.len() < self.heads.len() { NotARow::Short } else { NotARow::Misaligned });
        }
        // Some cells are empty, and every value stands to the left of its column.
        let found = cells.iter().map(|c| self.heads.iter().position(|h| h.start == c.start));
        found.collect::<Option<Vec<usize>>>().ok_or(NotARow::Misaligned)
    }
}

/// The number in a cell; `None` if DCGM has none.
fn value(text: &str, profiled: &Profiled) -> Result<Option<f64>, NotARow> {
    if text == "N/A" {
        return Ok(None);
    }
    // Digits with a point among them, and nothing else: what was cut ends in `...`, and `inf` or `1e9` is none of dmon's.
    let is_plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.') && text.as_bytes()[0].is_ascii_digit();
    let number: f64 = is_plain.then(|| text.parse().ok()).flatten().ok_or(NotARow::Garbled)?;
    // DCGM's marks for "blank" (and the few numbers after each of them: not found, not supported, not permitted).
    const BLANKS: [f64; 2] = [140_737_488_355_328.0, 9_223_372_036_854_775_792.0];
    // That of a whole number of 32 bits lies where a bus may be: only shares are never taken for it.
    let is_small_blank = !profiled.is_ratio && (2_147_483_632.0..=2_147_483_647.0).contains(&number);
    let is_blank = BLANKS.iter().any(|blank| (number - blank).abs() <= 16.0) || is_small_blank;
    // A share above 1 is passed on as it was said (DCGM #152 saw 1.294): what is made of it is decided where numbers are made.
    Ok((!is_blank).then_some(number))
}

/// A whole number without a sign.
pub(super) fn whole(text: &str) -> Option<u32> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
#[path = "dmon_tests.rs"]
mod tests;
