//! Tables in CSV, with semicolons or tabs where their first line has no comma; lines that begin with `#` are comments. In: the text of a
//! file. Out: its rows, each with its place in the file; or every mistake with its line.

use std::collections::BTreeMap;
use std::sync::Arc;

use collo_text::{Diagnostic, Diagnostics, Source, nearest, quoted};
use csv::StringRecord;

/// With so many mistakes the rest is not read.
const MOST_MISTAKES: usize = 1000;

/// The place of each column that is known, by its name.
pub type Places = BTreeMap<&'static str, usize>;

/// A row as written.
pub struct Row<'a> {
    source: &'a Arc<Source>,
    /// The place of its first byte.
    start: usize,
    places: &'a Places,
    record: &'a StringRecord,
    separator: u8,
}

fn reader(text: &str) -> csv::Reader<&[u8]> {
    let text = text.trim_start_matches('\u{feff}');
    let mut builder = csv::ReaderBuilder::new();
    builder.delimiter(separator(text)).comment(Some(b'#')).flexible(true).trim(csv::Trim::All).from_reader(text.as_bytes())
}

/// What is between the fields: spreadsheets write semicolons where the comma is that of decimals.
fn separator(text: &str) -> u8 {
    let lines = || text.trim_start_matches('\u{feff}').lines();
    let head = lines().find(|line| !line.trim().is_empty() && !line.starts_with('#')).unwrap_or_default();
    if head.contains(',') {
        return b',';
    }
    [b';', b'\t'].into_iter().find(|other| head.contains(char::from(*other))).unwrap_or(b',')
}

/// The names of its columns, whatever they are.
pub fn columns(text: &str) -> Vec<String> {
    reader(text).headers().map_or(Vec::new(), |head| head.iter().map(String::from).collect())
}

/// Every row, in order. A row that is wrong is reported with its line, and the next is read. `places`: of the first line the columns that
/// are read.
pub fn read(
    source: &Arc<Source>,
    places: impl FnOnce(&StringRecord) -> Result<Places, Diagnostics>,
    mut each: impl FnMut(&Row<'_>) -> Result<(), Diagnostic>,
) -> Result<(), Diagnostics> {
    let text = source.text();
    let (mut reader, separator) = (reader(text), separator(text));
    let begin = text.len() - text.trim_start_matches('\u{feff}').len();
    let broken = |e: csv::Error| Diagnostic::new(format!("{} is not a CSV table", source.name())).caused_by(e);
    let head = reader.headers().map_err(broken)?.clone();
    let places = places(&head)?;
    let mut mistakes = Diagnostics::default();
    let (mut record, mut counted) = (StringRecord::new(), 0);
    while reader.read_record(&mut record).map_err(broken)? {
        // A line of blanks is no row.
        if record.iter().all(|field| field.trim().is_empty()) && record.len() == 1 {
            continue;
        }
        let start = begin + record.position().map_or(0, |p| p.byte() as usize);
        let row = Row { separator, ..Row::at(source, start, &places, &record) };
        let found = match record.len() == head.len() {
            true => each(&row),
            false => {
                let what = format!("the row has {} fields, but {} columns are named", record.len(), head.len());
                let hint = match separator {
                    b';' => "a field with a semicolon is in double quotes",
                    b'\t' => "a field with a tab is in double quotes",
                    _ => "a field with a comma is in double quotes",
                };
                Err(Diagnostic::new(what).at(source, row.start..row.start + row.text().len()).hint(hint))
            }
        };
        if let Err(mistake) = found {
            mistakes.push(mistake);
            counted += 1;
            if counted == MOST_MISTAKES {
                break;
            }
        }
    }
    mistakes.into_result(())
}

/// The places of known columns; one that is there twice is a mistake, and of each that is not known a warning is left.
pub fn places(
    source: &Source,
    head: &StringRecord,
    known: &[&'static str],
    mut unknown: impl FnMut(String),
) -> Result<Places, Diagnostics> {
    let mut places = BTreeMap::new();
    let mut mistakes = Diagnostics::default();
    for (place, name) in head.iter().enumerate() {
        let Some(column) = known.iter().find(|column| **column == name) else {
            let meant = nearest(name, known.iter().copied()).map(|near| format!("; did you mean `{near}`?"));
            unknown(format!("the column {} is not read{}", quoted(name), meant.unwrap_or_default()));
            continue;
        };
        if places.insert(*column, place).is_some() {
            mistakes.push(Diagnostic::new(format!("{} has the column `{column}` twice", source.name())));
        }
    }
    mistakes.into_result(places)
}

/// The places of known columns, some of which a table needs.
pub fn places_with(
    source: &Source,
    head: &StringRecord,
    known: &[&'static str],
    needed: &[&'static str],
    unknown: impl FnMut(String),
) -> Result<Places, Diagnostics> {
    let places = places(source, head, known, unknown)?;
    match needed.iter().find(|column| !places.contains_key(**column)) {
        Some(lacking) => {
            let all = needed.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            let what = Diagnostic::new(format!("{} has no column `{lacking}`", source.name()));
            Err(what.hint(format!("such a table needs {all}")).into())
        }
        None => Ok(places),
    }
}

impl<'a> Row<'a> {
    /// The reader's place may be that of comments before it.
    fn at(source: &'a Arc<Source>, start: usize, places: &'a Places, record: &'a StringRecord) -> Row<'a> {
        let is_before = |line: &&str| line.trim().is_empty() || line.starts_with('#');
        let skipped: usize = source.text()[start..].split_inclusive('\n').take_while(is_before).map(str::len).sum();
        Row { source, start: start + skipped, places, record, separator: b',' }
    }

    fn text(&self) -> &str {
        self.source.text()[self.start..].lines().next().unwrap_or_default()
    }

    /// A field; empty if it is absent.
    pub fn get(&self, column: &str) -> &str {
        self.places.get(column).and_then(|place| self.record.get(*place)).unwrap_or_default()
    }

    /// Its file and line.
    pub fn place(&self) -> String {
        format!("{}:{}", self.source.name(), 1 + self.source.text()[..self.start].matches('\n').count())
    }

    /// A mistake in a column, underlined.
    pub fn wrong(&self, column: &str, what: impl Into<String>) -> Diagnostic {
        let line = self.text();
        let after = |n: usize| line.match_indices(char::from(self.separator)).nth(n.wrapping_sub(1)).map_or(0, |(i, _)| i + 1);
        let before: usize = self.places.get(column).copied().map_or(0, after);
        let value = self.get(column);
        let at = line[before..].find(value).map_or(0, |i| before + i);
        Diagnostic::new(what).at(self.source, self.start + at..self.start + at + value.len().max(1))
    }

    pub fn number(&self, column: &str) -> Result<Option<u32>, Diagnostic> {
        let text = self.get(column);
        let wrong = || self.wrong(column, format!("`{column}` is {}, not a whole number above 0", quoted(text)));
        if text.is_empty() { Ok(None) } else { text.parse().ok().filter(|n| *n > 0).map(Some).ok_or_else(wrong) }
    }
}
