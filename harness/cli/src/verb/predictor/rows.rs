//! Measured memory, a row for each training: a CSV table, or the published jobs. In: a file. Out: what was trained, each once, and the
//! rows that can be compared with a prediction; or every mistake with its line.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use collo_measure::{Member, NamedModel, Workload, Workloads, nearest};
use collo_predict::published;
use collo_store::text::quoted;
use collo_store::{Diagnostic, Diagnostics, Source};
use serde_json::Value as Json;

/// A million rows have a fifth of this.
const LARGEST: u64 = 512 << 20;
/// With so many mistakes the rest is not read.
const MOST_MISTAKES: usize = 1000;
/// No training needs as little: a number below is one of MiB, or of GB.
const LEAST_BYTES: f64 = 1e6;

const COLUMNS: [&str; 12] = [
    "workload",
    "settings",
    "model",
    "input",
    "classes",
    "optimizer",
    "precision",
    "batch_size",
    "memory_bytes",
    "measured_by",
    "family",
    "state",
];
const NEEDED: [&str; 2] = ["memory_bytes", "measured_by"];

/// A training without its batch size.
#[derive(Debug, Clone)]
pub struct Subject {
    pub what: Trained,
    /// Architectures of one family are predicted by what was fitted on the others.
    pub family: String,
}

#[derive(Debug, Clone)]
pub enum Trained {
    Member(Arc<Member>),
    Model(NamedModel),
}

/// One measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measurement {
    /// An index of the subjects.
    pub subject: usize,
    pub batch_size: u64,
    pub memory_bytes: f64,
    /// An index of `measured_by`.
    pub by: usize,
}

/// A table of measurements.
#[derive(Debug, Default)]
pub struct Measurements {
    pub subjects: Vec<Subject>,
    pub rows: Vec<Measurement>,
    /// Who measured, or what: figures of two sources are never mixed.
    pub measured_by: Vec<String>,
    /// Rows that are not compared, by their reason.
    pub left_out: BTreeMap<&'static str, usize>,
    pub warnings: Vec<String>,
}

impl Subject {
    /// `tiny`, `timm:resnet50`.
    pub fn name(&self) -> &str {
        match &self.what {
            Trained::Member(member) => &member.workload().name,
            Trained::Model(model) => &model.model,
        }
    }

    /// Equal for two subjects that are one.
    fn key(&self) -> String {
        match &self.what {
            Trained::Member(member) => format!("w {}", member.key()),
            Trained::Model(model) => format!("m {model:?}"),
        }
    }
}

impl Measurements {
    /// Of the published jobs, both measurements.
    pub fn published() -> Measurements {
        let mut all = Measurements::default();
        for job in &published::estimators().jobs {
            let model = NamedModel {
                model: job.model.clone(),
                input: job.input.clone(),
                classes: job.classes,
                optimizer: job.optimizer.clone(),
                precision: "fp32".into(),
            };
            let subject = all.subject(Subject { what: Trained::Model(model), family: job.family.clone() });
            for (who, mib) in &job.measured_mib {
                let by = all.by(who);
                let memory_bytes = mib * published::MIB;
                all.rows.push(Measurement { subject, batch_size: u64::from(job.batch_size), memory_bytes, by });
            }
        }
        all
    }

    pub fn read(path: &Path, workloads: &Workloads) -> Result<Measurements, Diagnostics> {
        let name = collo_measure::shown(path);
        let text = collo_store::read_small_text(path, LARGEST)
            .map_err(|e| Diagnostic::new(format!("{} cannot be read", quoted(&name))).caused_by(e))?;
        Measurements::parse(&Source::file(name, text), workloads)
    }

    fn parse(source: &Arc<Source>, workloads: &Workloads) -> Result<Measurements, Diagnostics> {
        let text = source.text();
        let begin = text.len() - text.trim_start_matches('\u{feff}').len();
        let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(&text.as_bytes()[begin..]);
        let broken = |e: csv::Error| {
            let hint = "each row has as many fields as the first line; a field with a comma is in double quotes";
            Diagnostic::new(format!("{} is not a CSV table", source.name())).caused_by(e).hint(hint)
        };
        let header = reader.headers().map_err(broken)?.clone();
        let mut all = Measurements::default();
        let places = columns(source, &header, &mut all)?;
        let (mut subjects, mut mistakes) = (Subjects { workloads, known: HashMap::new() }, Diagnostics::default());
        let (mut record, mut counted) = (csv::StringRecord::new(), 0);
        while reader.read_record(&mut record).map_err(broken)? {
            let start = begin + record.position().map_or(0, |p| p.byte() as usize);
            let row = Row { source, start, places: &places, record: &record };
            if let Err(mistake) = subjects.row(&row, &mut all) {
                mistakes.push(mistake);
                counted += 1;
                if counted == MOST_MISTAKES {
                    break;
                }
            }
        }
        if mistakes.is_empty() && all.rows.is_empty() {
            let what = format!("{} has no row that can be compared", source.name());
            mistakes.push(
                Diagnostic::new(what).hint("a row is a training whose memory was measured: `collo predictor evaluate --help`"),
            );
        }
        let mut all = mistakes.into_result(all)?;
        all.shrinking();
        Ok(all)
    }

    fn subject(&mut self, subject: Subject) -> usize {
        let key = subject.key();
        self.subjects.iter().position(|known| known.key() == key).unwrap_or_else(|| {
            self.subjects.push(subject);
            self.subjects.len() - 1
        })
    }

    fn by(&mut self, who: &str) -> usize {
        self.measured_by.iter().position(|known| known == who).unwrap_or_else(|| {
            self.measured_by.push(who.to_string());
            self.measured_by.len() - 1
        })
    }

    /// Only the rows of one source.
    pub fn of(mut self, who: &str) -> Result<Measurements, Diagnostic> {
        let Some(by) = self.measured_by.iter().position(|known| known == who) else {
            let what = Diagnostic::new(format!("no row was measured by {}", quoted(who)));
            return Err(what.hint(format!("`--measured-by` is one of {}", self.measured_by.join(", "))));
        };
        self.rows.retain(|row| row.by == by);
        Ok(self)
    }

    /// Memory that shrinks as the batch grows is that of a training that ended early: an undeclared want of memory.
    fn shrinking(&mut self) {
        let mut by_job: BTreeMap<(usize, usize), Vec<(u64, f64)>> = BTreeMap::new();
        for row in &self.rows {
            by_job.entry((row.by, row.subject)).or_default().push((row.batch_size, row.memory_bytes));
        }
        let mut found = BTreeSet::new();
        for ((_, subject), mut rows) in by_job {
            rows.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
            // Within 2 % it is the noise of a reading.
            if rows.windows(2).any(|pair| pair[1].0 > pair[0].0 && pair[1].1 < 0.98 * pair[0].1) {
                found.insert(self.subjects[subject].name().to_string());
            }
        }
        if !found.is_empty() {
            let few: Vec<&str> = found.iter().take(5).map(String::as_str).collect();
            let more = if found.len() > few.len() { " …" } else { "" };
            self.warnings.push(format!(
                "of {} ({}{more}) a larger batch took less memory: where a run ended for lack of it, write `out-of-memory` under `state`",
                if found.len() == 1 { "a training".to_string() } else { format!("{} trainings", found.len()) },
                few.join(", ")
            ));
        }
    }
}

/// The place of each known column; what is missing, twice or unknown is said.
fn columns(
    source: &Arc<Source>,
    header: &csv::StringRecord,
    all: &mut Measurements,
) -> Result<BTreeMap<&'static str, usize>, Diagnostics> {
    let mut places = BTreeMap::new();
    let mut mistakes = Diagnostics::default();
    for (index, name) in header.iter().enumerate() {
        let Some(known) = COLUMNS.iter().find(|known| **known == name) else {
            let meant = nearest(name, COLUMNS).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            all.warnings.push(format!("the column {} is not read{meant}", quoted(name)));
            continue;
        };
        if places.insert(*known, index).is_some() {
            mistakes.push(Diagnostic::new(format!("{} has the column `{known}` twice", source.name())));
        }
    }
    let mut lacking: Vec<String> =
        NEEDED.iter().filter(|name| !places.contains_key(**name)).map(|name| format!("`{name}`")).collect();
    if !places.contains_key("workload") && !places.contains_key("model") {
        lacking.insert(0, "`workload` (or `model`)".into());
    }
    if !lacking.is_empty() {
        let what = Diagnostic::new(format!("{} has no column {}", source.name(), lacking.join(", ")));
        let what = match all.warnings.iter().find(|w| w.contains("did you mean")) {
            Some(near) => what.note(near.clone()),
            None => what,
        };
        mistakes.push(what.hint("the first line of a table names its columns: `workload,batch_size,memory_bytes,measured_by`"));
    }
    mistakes.into_result(places)
}

/// A row as written.
struct Row<'a> {
    source: &'a Arc<Source>,
    start: usize,
    places: &'a BTreeMap<&'static str, usize>,
    record: &'a csv::StringRecord,
}

impl Row<'_> {
    /// A field; empty if it is absent.
    fn get(&self, column: &str) -> &str {
        self.places.get(column).and_then(|place| self.record.get(*place)).unwrap_or_default()
    }

    /// A mistake in a column, underlined.
    fn wrong(&self, column: &str, what: impl Into<String>) -> Diagnostic {
        let rest = &self.source.text()[self.start..];
        let skipped = rest.len() - rest.trim_start_matches(['\n', '\r']).len();
        let line = rest[skipped..].lines().next().unwrap_or_default();
        let before: usize =
            self.places.get(column).map_or(0, |n| line.match_indices(',').nth(n.wrapping_sub(1)).map_or(0, |(i, _)| i + 1));
        let value = self.get(column);
        let at = line[before..].find(value).map_or(0, |i| before + i);
        let start = self.start + skipped + at;
        Diagnostic::new(what).at(self.source, start..start + value.len().max(1))
    }

    fn number(&self, column: &str) -> Result<Option<u32>, Diagnostic> {
        let text = self.get(column);
        let wrong = || self.wrong(column, format!("`{column}` is {}, not a whole number above 0", quoted(text)));
        if text.is_empty() { Ok(None) } else { text.parse().ok().filter(|n| *n > 0).map(Some).ok_or_else(wrong) }
    }
}

/// What was trained, found once for many rows.
struct Subjects<'a> {
    workloads: &'a Workloads,
    /// By the fields that name it: the subject, and the batch size that it has by default.
    known: HashMap<Vec<String>, (usize, Option<u32>)>,
}

impl Subjects<'_> {
    fn row(&mut self, row: &Row<'_>, all: &mut Measurements) -> Result<(), Diagnostic> {
        let left_out = match row.get("state") {
            "" | "ok" => None,
            "out-of-memory" => Some("ran out of memory: what was read is the card's size, not the training's need"),
            "search-spike" => Some("held a search of cuDNN: many times the training's need, for a moment"),
            other => {
                let what = format!("`state` is {}, not `ok`, `out-of-memory` or `search-spike`", quoted(other));
                return Err(row.wrong("state", what));
            }
        };
        let key: Vec<String> = COLUMNS[..7].iter().chain(["family"].iter()).map(|column| row.get(column).to_string()).collect();
        let (subject, usual_batch) = match self.known.get(&key) {
            Some(known) => *known,
            None => {
                let (subject, batch) = self.find(row)?;
                let found = (all.subject(subject), batch);
                self.known.insert(key, found);
                found
            }
        };
        let batch_size = row.number("batch_size")?.or(usual_batch);
        let batch_size = batch_size.ok_or_else(|| row.wrong("batch_size", "`batch_size` is absent, and has no default here"))?;
        let text = row.get("memory_bytes");
        let bytes = text.parse::<f64>().ok().filter(|n| n.is_finite());
        let bytes = bytes.ok_or_else(|| {
            row.wrong("memory_bytes", format!("`memory_bytes` is {}, not a number of bytes", quoted(text)))
                .hint("an absent reading is no row")
        })?;
        if bytes < LEAST_BYTES {
            let what = format!("{} bytes are less than any training needs", quoted(text));
            return Err(row.wrong("memory_bytes", what).hint("nvidia-smi counts in MiB: 6684 MiB are 7008681984 bytes"));
        }
        let who = row.get("measured_by");
        if who.is_empty() {
            let what =
                row.wrong("measured_by", "`measured_by` is empty: figures of two sources cannot be compared as if they were one");
            return Err(what.hint("what was read, and on what: `nvidia-smi a100`"));
        }
        let by = all.by(who);
        match left_out {
            Some(reason) => *all.left_out.entry(reason).or_default() += 1,
            None => all.rows.push(Measurement { subject, batch_size: u64::from(batch_size), memory_bytes: bytes, by }),
        }
        Ok(())
    }

    fn find(&self, row: &Row<'_>) -> Result<(Subject, Option<u32>), Diagnostic> {
        let (workload, model) = (row.get("workload"), row.get("model"));
        match (workload.is_empty(), model.is_empty()) {
            (false, true) => self.member(row, workload),
            (true, false) => Ok((named(row, model)?, None)),
            (true, true) => Err(row.wrong("workload", "the row names neither a `workload` nor a `model`")),
            (false, false) => Err(row.wrong("model", "the row names both a `workload` and a `model`")),
        }
    }

    fn member(&self, row: &Row<'_>, name: &str) -> Result<(Subject, Option<u32>), Diagnostic> {
        let workload = match self.workloads.get(name) {
            Some(workload) => workload,
            None => {
                let known: Vec<&str> = self.workloads.iter().map(|w| w.name.as_str()).collect();
                let wrong = row.wrong("workload", format!("no workload is called {}", quoted(name)));
                return Err(match nearest(name, known) {
                    Some(near) => wrong.note(format!("did you mean `{near}`?")),
                    None => wrong.hint("`collo workload list`"),
                });
            }
        };
        let mut given = Vec::new();
        for text in row.get("settings").split(';').map(str::trim).filter(|text| !text.is_empty()) {
            let Some((setting, value)) = text.split_once('=') else {
                return Err(row
                    .wrong("settings", format!("{} is not NAME=VALUE", quoted(text)))
                    .hint("several are separated by `;`"));
            };
            given.push((setting.trim(), value_of(workload, setting.trim(), value.trim())));
        }
        let wrong = |e: Diagnostic| row.wrong("settings", e.what().to_string());
        let member = Arc::new(Member::new(workload, given).map_err(wrong)?);
        let model = member.settings().get("model").and_then(Json::as_str).unwrap_or(name);
        let family = family_of(row, model);
        let batch = member.batch_size();
        Ok((Subject { what: Trained::Member(member), family }, batch))
    }
}

/// A value of the type that a workload expects.
pub fn value_of(workload: &Workload, setting: &str, text: &str) -> Json {
    match workload.settings.get(setting) {
        Some(default) if !default.is_string() => serde_json::from_str(text).unwrap_or_else(|_| text.into()),
        _ => text.into(),
    }
}

fn named(row: &Row<'_>, model: &str) -> Result<Subject, Diagnostic> {
    let known =
        model.split_once(':').is_some_and(|(library, name)| ["timm", "torchvision"].contains(&library) && !name.is_empty());
    if !known {
        let what = format!("{} is not a model by name", quoted(model));
        return Err(row.wrong("model", what).hint("as in `timm:resnet50` or `torchvision:vgg16`"));
    }
    let text = row.get("input");
    let input: Option<Vec<u32>> = text.split('x').map(|n| n.parse().ok().filter(|n| *n > 0)).collect();
    let wrong = || {
        let is = if text.is_empty() { "absent".to_string() } else { format!("{}, not the shape of an item", quoted(text)) };
        row.wrong("input", format!("`input` is {is}")).hint("as in `3x224x224`")
    };
    let or = |column: &str, default: &str| Some(row.get(column)).filter(|t| !t.is_empty()).unwrap_or(default).to_string();
    let model = NamedModel {
        model: model.into(),
        input: input.ok_or_else(wrong)?,
        classes: row.number("classes")?.unwrap_or(1000),
        optimizer: or("optimizer", "adam"),
        precision: or("precision", "fp32"),
    };
    Ok(Subject { family: family_of(row, &model.model), what: Trained::Model(model) })
}

/// As written, else the letters that a model's name begins with: `resnet` of `timm:resnet50`.
fn family_of(row: &Row<'_>, model: &str) -> String {
    let name = model.rsplit(':').next().unwrap_or(model);
    let letters: String = name.chars().take_while(char::is_ascii_alphabetic).collect();
    let written = row.get("family");
    if !written.is_empty() {
        written.into()
    } else if letters.is_empty() {
        name.into()
    } else {
        letters.to_lowercase()
    }
}

#[cfg(test)]
mod tests;
