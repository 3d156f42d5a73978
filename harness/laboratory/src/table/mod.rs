//! A table of measurements, a row for each training: as documented, or as the data set of a campaign is exported. In: its text. Out: the
//! rows that can be compared with a prediction; or every mistake with its line.
//!
//! To add a column: `columns` of a reading in `table/`.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use collo_plan::workload::Workloads;
use collo_predict::{Conditions, TargetDevice};
use collo_text::{Diagnostic, Diagnostics, Source, quoted};

use crate::lines::{self, Places, Row};
use crate::measurements::{Measurement, Measurements, Measurer, Subject};

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
    /// A first line, as an example.
    const EXAMPLE: &'static str;

    /// Of a table; those of a data set among them.
    fn columns() -> Vec<&'static str>;
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
    let is_dataset = is_dataset(&lines::columns(source.text()));
    let mut rows = Rows { workloads, is_dataset, known: HashMap::new(), of_run: BTreeMap::new() };
    let mut unread = Vec::new();
    let places = |head: &csv::StringRecord| places::<R>(source, head, is_dataset, &mut unread);
    let read = lines::read(source, places, |row| rows.row(row, all));
    all.warnings.append(&mut unread);
    read
}

fn is_dataset(columns: &[String]) -> bool {
    OF_DATASET.iter().all(|name| columns.iter().any(|column| column == name))
}

/// The place of each known column; what is missing, twice or unknown is reported.
fn places<R: Reading>(
    source: &Arc<Source>,
    head: &csv::StringRecord,
    is_dataset: bool,
    unread: &mut Vec<String>,
) -> Result<Places, Diagnostics> {
    let known: Vec<&'static str> = NAMING.iter().chain(&CONDITIONS).copied().chain(R::columns()).collect();
    let places = lines::places(source, head, &known, |unknown| {
        // A data set has a hundred columns for others.
        if !is_dataset {
            unread.push(unknown);
        }
    })?;
    let mut lacking = R::lacking(|name| places.contains_key(name), is_dataset);
    if !places.contains_key("workload") && !places.contains_key("model") {
        lacking.insert(0, "`workload` (or `model`)".into());
    }
    if lacking.is_empty() {
        return Ok(places);
    }
    let mut what = Diagnostic::new(format!("{} has no column {}", source.name(), lacking.join(", ")));
    if let Some(near) = unread.iter().find(|unread| unread.contains("did you mean")) {
        what = what.note(near.clone());
    }
    if head.iter().any(|name| name == "key") && !places.contains_key("model") {
        what = what.note("a `key` of another's table does not tell what was trained");
    }
    Err(what.hint(format!("the first line of a table names its columns: `{}`", R::EXAMPLE)).into())
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

/// SMs are active only while something runs, so that their activity is no larger than the utilisation. Far above it, the utilisation is a
/// share in a column of percentages.
pub fn is_share_for_percent(sm_active: f64, utilisation: f64) -> bool {
    sm_active > 0.05 && sm_active > 10.0 * utilisation
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
        return Ok(Measurer { name, simulated, conditions, while_training: false, shares: false, is_table: true });
    }
    let (what, shares) = R::read_by(row, is_cpu);
    let said = if simulated { "simulated " } else { "" };
    let name = format!("{said}{}, {what}", row.get("device"));
    Ok(Measurer { name, simulated, conditions, while_training: true, shares, is_table: false })
}

mod memory;
mod profile;
mod subjects;

pub use memory::memory;
pub use profile::Profile;
pub use subjects::{family_of, value_of};

#[cfg(test)]
mod tests;
