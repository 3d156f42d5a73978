//! A table of measurements, a row for each training: as documented, or as the data set of a campaign is exported. In: its text. Out: the
//! rows that can be compared with a prediction; or every mistake with its line.
//!
//! To add a column: `COLUMNS` of a reading in `table/`.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use collo_plan::workload::Workloads;
use collo_predict::{Conditions, TargetDevice};
use collo_text::nearest;
use collo_text::quoted;
use collo_text::{Diagnostic, Diagnostics, Source};

use crate::measurements::{Measurement, Measurements, Measurer, Subject};

/// With so many mistakes the rest is not read.
const MOST_MISTAKES: usize = 1000;
/// The columns that tell what was trained, but for the batch size.
const NAMING: [&str; 8] = ["workload", "settings", "model", "input", "classes", "optimizer", "precision", "family"];
/// Under which conditions; and of a data set how it was read, under which sharing, and which rows are of one run.
const CONDITIONS: [&str; 18] = [
    "batch_size",
    "measured_by",
    "state",
    "device",
    "device_architecture",
    "driver",
    "torch",
    "simulated",
    "device_kind",
    "sharing",
    "degree",
    "outcome",
    "validity",
    "experiment",
    "campaign",
    "cell",
    "repetition",
    "serving_rate_per_s",
];
/// What only a data set has, and always.
const OF_DATASET: [&str; 4] = ["memory_kind", "outcome", "validity", "cell"];

/// What a table is read for: its own columns, and what each row says in them.
pub trait Reading: Copy {
    /// Of a table; those of a data set among them.
    const COLUMNS: &'static [&'static str];
    /// A first line, as an example.
    const EXAMPLE: &'static str;

    /// The columns that are missing, in words.
    fn lacking(has: impl Fn(&str) -> bool, is_dataset: bool) -> Vec<String>;
    /// Why a member of a stored run, which completed and was not discarded, is no measurement.
    fn unmeasured(row: &Row<'_>) -> Option<&'static str>;
    fn of(row: &Row<'_>, is_dataset: bool, batch_size: u64) -> Result<Self, Diagnostic>;
    /// Of a data set: what read it, for people, and whether its members needed less than alone.
    fn read_by(row: &Row<'_>, is_cpu: bool) -> (String, bool);
    /// The mean of this, which is one of so many alike, and a further one.
    fn with_one_more(self, alike: f64, more: Self) -> Self;
    /// The name of who measured where none is given; none: it has to be.
    fn measured_by() -> Option<&'static str>;
}

/// Adds the rows of a table, as those of the source that was named last.
pub fn read<R: Reading>(source: &Arc<Source>, workloads: &Workloads, all: &mut Measurements<R>) -> Result<(), Diagnostics> {
    let text = source.text();
    let begin = text.len() - text.trim_start_matches('\u{feff}').len();
    let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).trim(csv::Trim::All).from_reader(&text.as_bytes()[begin..]);
    let broken = |e: csv::Error| {
        let hint = "each row has as many fields as the first line; a field with a comma is in double quotes";
        Diagnostic::new(format!("{} is not a CSV table", source.name())).caused_by(e).hint(hint)
    };
    let header = reader.headers().map_err(broken)?.clone();
    let is_dataset = OF_DATASET.iter().all(|name| header.iter().any(|column| column == *name));
    let places = columns(source, &header, is_dataset, all)?;
    let mut rows = Rows { workloads, is_dataset, known: HashMap::new(), of_run: BTreeMap::new() };
    let mut mistakes = Diagnostics::default();
    let (mut record, mut counted) = (csv::StringRecord::new(), 0);
    while reader.read_record(&mut record).map_err(broken)? {
        let start = begin + record.position().map_or(0, |p| p.byte() as usize);
        let row = Row { source, start, places: &places, record: &record };
        if let Err(mistake) = rows.row(&row, all) {
            mistakes.push(mistake);
            counted += 1;
            if counted == MOST_MISTAKES {
                break;
            }
        }
    }
    mistakes.into_result(())
}

/// The place of each known column; what is missing, twice or unknown is said.
fn columns<R: Reading>(
    source: &Arc<Source>,
    header: &csv::StringRecord,
    is_dataset: bool,
    all: &mut Measurements<R>,
) -> Result<BTreeMap<&'static str, usize>, Diagnostics> {
    let mut places = BTreeMap::new();
    let mut mistakes = Diagnostics::default();
    let known = || NAMING.iter().chain(&CONDITIONS).chain(R::COLUMNS).copied();
    for (index, name) in header.iter().enumerate() {
        let Some(known) = known().find(|known| *known == name) else {
            // A data set has a hundred columns for others.
            if is_dataset {
                continue;
            }
            let meant = nearest(name, known()).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            all.warnings.push(format!("the column {} is not read{meant}", quoted(name)));
            continue;
        };
        if places.insert(known, index).is_some() {
            mistakes.push(Diagnostic::new(format!("{} has the column `{known}` twice", source.name())));
        }
    }
    let mut lacking = R::lacking(|name| places.contains_key(name), is_dataset);
    if !places.contains_key("workload") && !places.contains_key("model") {
        lacking.insert(0, "`workload` (or `model`)".into());
    }
    if !lacking.is_empty() {
        let what = Diagnostic::new(format!("{} has no column {}", source.name(), lacking.join(", ")));
        let what = match all.warnings.iter().find(|w| w.contains("did you mean")) {
            Some(near) => what.note(near.clone()),
            None => what,
        };
        let what = match header.iter().any(|name| name == "key") && !places.contains_key("model") {
            true => what.note("a `key` of another's table does not tell what was trained"),
            false => what,
        };
        mistakes.push(what.hint(format!("the first line of a table names its columns: `{}`", R::EXAMPLE)));
    }
    mistakes.into_result(places)
}

/// A row as written.
pub struct Row<'a> {
    pub source: &'a Arc<Source>,
    /// The place of its first byte.
    pub start: usize,
    pub places: &'a BTreeMap<&'static str, usize>,
    pub record: &'a csv::StringRecord,
}

impl Row<'_> {
    /// A field; empty if it is absent.
    pub fn get(&self, column: &str) -> &str {
        self.places.get(column).and_then(|place| self.record.get(*place)).unwrap_or_default()
    }

    /// Its line, from 1.
    pub fn line(&self) -> usize {
        1 + self.source.text()[..self.start].matches('\n').count()
    }

    /// A mistake in a column, underlined.
    pub fn wrong(&self, column: &str, what: impl Into<String>) -> Diagnostic {
        let rest = &self.source.text()[self.start..];
        let is_before = |line: &&str| line.trim().is_empty() || line.starts_with('#');
        let skipped: usize = rest.split_inclusive('\n').take_while(is_before).map(str::len).sum();
        let line = rest[skipped..].lines().next().unwrap_or_default();
        let before: usize =
            self.places.get(column).map_or(0, |n| line.match_indices(',').nth(n.wrapping_sub(1)).map_or(0, |(i, _)| i + 1));
        let value = self.get(column);
        let at = line[before..].find(value).map_or(0, |i| before + i);
        let start = self.start + skipped + at;
        Diagnostic::new(what).at(self.source, start..start + value.len().max(1))
    }

    pub fn number(&self, column: &str) -> Result<Option<u32>, Diagnostic> {
        let text = self.get(column);
        let wrong = || self.wrong(column, format!("`{column}` is {}, not a whole number above 0", quoted(text)));
        if text.is_empty() { Ok(None) } else { text.parse().ok().filter(|n| *n > 0).map(Some).ok_or_else(wrong) }
    }
}

/// The rows of one table, one after the other.
struct Rows<'a> {
    workloads: &'a Workloads,
    is_dataset: bool,
    /// What was trained, by the fields that name it: the subject, and the batch size that it has by default.
    known: HashMap<Vec<String>, (usize, Option<u32>)>,
    /// Of a data set: the place of the row of each distinct member of a run, and of how many alike it is the mean.
    of_run: BTreeMap<(String, usize, u64), (usize, f64)>,
}

impl Rows<'_> {
    fn row<R: Reading>(&mut self, row: &Row<'_>, all: &mut Measurements<R>) -> Result<(), Diagnostic> {
        let left_out = match self.is_dataset {
            true => unmeasured::<R>(row),
            false => state(row)?,
        };
        if let (true, Some(reason)) = (self.is_dataset, left_out) {
            all.leave_out(reason);
            return Ok(());
        }
        let key: Vec<String> = NAMING.iter().map(|column| row.get(column).to_string()).collect();
        let (subject, usual_batch) = match self.known.get(&key) {
            Some(known) => *known,
            None => {
                let (subject, batch): (Subject, Option<u32>) = subjects::find(row, self.workloads)?;
                let found = (all.subject(subject), batch);
                self.known.insert(key, found);
                found
            }
        };
        let batch_size = row.number("batch_size")?.or(usual_batch);
        let batch_size = batch_size.ok_or_else(|| row.wrong("batch_size", "`batch_size` is absent, and has no default here"))?;
        let batch_size = u64::from(batch_size);
        let reading = R::of(row, self.is_dataset, batch_size)?;
        let by = all.by(measurer::<R>(row, self.is_dataset)?);
        if let Some(reason) = left_out {
            all.leave_out(reason);
            return Ok(());
        }
        let source = all.sources.len().saturating_sub(1);
        let measurement = Measurement { subject, batch_size, reading, by, source };
        if self.is_dataset {
            // Members alike in one run are one measurement.
            let run = ["experiment", "campaign", "cell", "repetition"].map(|column| row.get(column)).join(" ");
            if let Some((place, alike)) = self.of_run.get_mut(&(run.clone(), subject, measurement.batch_size)) {
                let mean = &mut all.rows[*place].reading;
                *mean = mean.with_one_more(*alike, reading);
                *alike += 1.0;
                return Ok(());
            }
            self.of_run.insert((run, subject, measurement.batch_size), (all.rows.len(), 1.0));
        }
        all.rows.push(measurement);
        Ok(())
    }
}

const NO_MEMORY: &str = "ran out of memory: what was read is the card's size, not the training's need";

/// Why a row of a table is not compared.
fn state(row: &Row<'_>) -> Result<Option<&'static str>, Diagnostic> {
    match row.get("state") {
        "" | "ok" => Ok(None),
        "out-of-memory" => Ok(Some(NO_MEMORY)),
        "search-spike" => Ok(Some("held a search of cuDNN: many times the training's need, for a moment")),
        other => {
            let what = format!("`state` is {}, not `ok`, `out-of-memory` or `search-spike`", quoted(other));
            Err(row.wrong("state", what))
        }
    }
}

/// Why a member of a stored run is no measurement.
fn unmeasured<R: Reading>(row: &Row<'_>) -> Option<&'static str> {
    match (row.get("outcome"), row.get("validity")) {
        ("out_of_memory", _) => Some(NO_MEMORY),
        ("completed", "discarded") => Some("is of a run that was discarded"),
        ("completed", _) if !row.get("serving_rate_per_s").is_empty() => Some("serves, and has no training step"),
        ("completed", _) => R::unmeasured(row),
        _ => Some("is of a run that did not complete"),
    }
}

/// Who measured a row, under its conditions.
fn measurer<R: Reading>(row: &Row<'_>, is_dataset: bool) -> Result<Measurer, Diagnostic> {
    let simulated = match row.get("simulated") {
        "" | "false" => false,
        "true" => true,
        other => return Err(row.wrong("simulated", format!("`simulated` is {}, not `true` or `false`", quoted(other)))),
    };
    let given = |column: &str| Some(row.get(column)).filter(|text| !text.is_empty()).map(String::from);
    let is_cpu = row.get("device_kind") == "cpu";
    let conditions = Conditions {
        device: if is_cpu { TargetDevice::Cpu } else { TargetDevice::Gpu },
        gpu: given("device").filter(|_| !is_cpu),
        architecture: given("device_architecture"),
        driver: given("driver").filter(|_| !is_cpu),
        torch: given("torch"),
        sharing: given("sharing"),
        ..Conditions::default()
    };
    if !is_dataset {
        let Some(name) = given("measured_by").or_else(|| R::measured_by().map(String::from)) else {
            let what =
                row.wrong("measured_by", "`measured_by` is empty: figures of two sources cannot be compared as if they were one");
            return Err(what.hint("what was read, and on what: `nvidia-smi a100`"));
        };
        // A name as collo gives it to a simulated device is never taken for a real one's.
        let simulated = simulated || name.to_lowercase().starts_with("simulated");
        return Ok(Measurer { name, simulated, conditions, while_training: false, shares: false });
    }
    let (what, shares) = R::read_by(row, is_cpu);
    let said = if simulated { "simulated " } else { "" };
    let name = format!("{said}{}, {what}", row.get("device"));
    Ok(Measurer { name, simulated, conditions, while_training: true, shares })
}

mod memory;
mod profile;
mod subjects;

pub use profile::Profile;
pub use subjects::{family_of, value_of};

#[cfg(test)]
mod tests;
