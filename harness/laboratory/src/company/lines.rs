//! Tables with comments: lines that begin with `#` say where figures are from. In: the text of a CSV file. Out: its rows, each with its
//! place in the file.

use std::collections::BTreeMap;
use std::sync::Arc;

use collo_text::nearest;
use collo_text::quoted;
use collo_text::{Diagnostic, Diagnostics, Source};

use crate::table::Row;

/// With so many mistakes the rest is not read.
const MOST_MISTAKES: usize = 1000;

/// The first line that is neither empty nor a comment.
pub struct Header {
    places: BTreeMap<&'static str, usize>,
}

/// The names of its columns, whatever they are.
pub fn columns(text: &str) -> Vec<String> {
    lines(text).next().and_then(|(_, line)| fields(line).ok()).map_or(Vec::new(), |r| r.iter().map(String::from).collect())
}

/// Every row, in order. A row that is wrong is said with its line, and the next is read.
pub fn read(
    source: &Arc<Source>,
    known: &[&'static str],
    needed: &[&'static str],
    warnings: &mut Vec<String>,
    mut each: impl FnMut(&Row<'_>) -> Result<(), Diagnostic>,
) -> Result<(), Diagnostics> {
    let text = source.text();
    let mut lines = lines(text);
    let (_, head) = lines.next().ok_or_else(|| Diagnostic::new(format!("{} is empty", source.name())))?;
    let head = fields(head).map_err(|e| broken(source, e))?;
    let header = Header::of(source, &head, known, needed, warnings)?;
    let mut mistakes = Diagnostics::default();
    let mut counted = 0;
    for (start, line) in lines {
        let found = match fields(line) {
            Ok(record) if record.len() == head.len() => each(&Row { source, start, places: &header.places, record: &record }),
            Ok(record) => {
                Err(Diagnostic::new(format!("the row has {} fields, but {} columns are named", record.len(), head.len()))
                    .at(source, start..start + line.len()))
            }
            Err(e) => Err(broken(source, e)),
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

impl Header {
    fn of(
        source: &Source,
        head: &csv::StringRecord,
        known: &[&'static str],
        needed: &[&'static str],
        warnings: &mut Vec<String>,
    ) -> Result<Header, Diagnostic> {
        let mut places = BTreeMap::new();
        for (place, name) in head.iter().enumerate() {
            let Some(column) = known.iter().find(|column| **column == name) else {
                let meant = nearest(name, known.iter().copied()).map(|near| format!("; did you mean `{near}`?"));
                warnings.push(format!("the column {} is not read{}", quoted(name), meant.unwrap_or_default()));
                continue;
            };
            if places.insert(*column, place).is_some() {
                return Err(Diagnostic::new(format!("{} has the column `{column}` twice", source.name())));
            }
        }
        match needed.iter().find(|column| !places.contains_key(**column)) {
            Some(lacking) => {
                let all = needed.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
                let what = Diagnostic::new(format!("{} has no column `{lacking}`", source.name()));
                Err(what.hint(format!("such a table needs {all}")))
            }
            None => Ok(Header { places }),
        }
    }
}

/// Lines with their places; no comments, no empty ones.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let begin = text.len() - text.trim_start_matches('\u{feff}').len();
    let mut start = begin;
    text[begin..].split_inclusive('\n').filter_map(move |line| {
        let at = start;
        start += line.len();
        let line = line.trim_end_matches(['\n', '\r']);
        (!line.trim().is_empty() && !line.starts_with('#')).then_some((at, line))
    })
}

fn fields(line: &str) -> Result<csv::StringRecord, csv::Error> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).trim(csv::Trim::All).from_reader(line.as_bytes());
    reader.records().next().unwrap_or_else(|| Ok(csv::StringRecord::new()))
}

fn broken(source: &Source, error: csv::Error) -> Diagnostic {
    Diagnostic::new(format!("{} is not a CSV table", source.name())).caused_by(error)
}
