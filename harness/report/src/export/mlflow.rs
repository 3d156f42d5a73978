//! The report as an MLflow file store. In: a report and a folder. Out: an experiment with a run for each cell, which has the
//! quantities, and below it a run for each repetition, which has the epochs as histories.
//!
//! The layout is that of `mlflow/store/tracking/file_store.py` of MLflow 3.17: `EXPERIMENT/meta.yaml`, `EXPERIMENT/RUN/meta.yaml`,
//! below it `params/NAME` and `tags/NAME` with the text, `metrics/NAME` with lines of milliseconds, value and step. In MLflow 3.17
//! such a store is in maintenance mode: a client opens it with `MLFLOW_ALLOW_FILE_STORE=true`, and `mlflow migrate-filestore` puts
//! it into a database.
//!
//! Ids follow from what is exported, so that the same report written again replaces its own runs and a later one adds its own.

use std::borrow::Cow;
use std::path::Path;

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_analysis::reading::repetition::Repetition;
use collo_analysis::words;
use collo_quantity::Key;
use collo_store::{sha256_text, utc_seconds};
use collo_text::quoting;
use fs_err as fs;
use serde_json::{Value, json};

use super::{caveats, metric_name};
use crate::Result;
use crate::report::Report;

/// `RunStatus` and `SourceType` of MLflow, which it stores as numbers.
const FINISHED: u32 = 3;
const FAILED: u32 = 4;
const LOCAL: u32 = 4;
/// `MAX_PARAM_VAL_LENGTH` of `mlflow/utils/validation.py`; tags may be longer.
const LONGEST: usize = 6000;

/// The values of a metric: milliseconds, value, step.
type History = Vec<(u64, f64, u64)>;

/// One run to be written.
struct MlflowRun {
    id: String,
    name: String,
    status: u32,
    start_ms: u64,
    end_ms: u64,
    params: Vec<(&'static str, String)>,
    metrics: Vec<(String, History)>,
    tags: Vec<(&'static str, String)>,
}

/// Write the store, and return the number of runs.
pub fn write(report: &Report, folder: &Path) -> Result<usize> {
    let analysis = &report.analysis;
    let c = &analysis.campaign;
    fs::create_dir_all(folder)?;
    let root = fs::canonicalize(folder)?;
    // MLflow's own ids have 18 digits.
    let id = u64::from_str_radix(&sha256_text(&format!("collo {}", c.experiment))[..15], 16).unwrap_or_default();
    let id = format!("{:018}", id % 1_000_000_000_000_000_000);
    let experiment = root.join(&id);
    let uri = file_uri(&experiment);
    let created_ms = milliseconds(&c.created_utc);
    let mut runs = Vec::new();
    for cell in &analysis.cells {
        let parent = of_cell(analysis, cell, created_ms);
        let children = cell.repetitions.iter().map(|r| of_repetition(analysis, r, &parent.id, created_ms));
        runs.extend(children.collect::<Vec<_>>());
        runs.push(parent);
    }
    for run in &runs {
        write_run(run, &experiment.join(&run.id), &id, &uri)?;
    }
    // Without it MLflow sees no experiment.
    let meta = [
        ("artifact_location", json!(uri)),
        ("creation_time", json!(created_ms)),
        ("experiment_id", json!(id)),
        ("last_update_time", json!(created_ms)),
        ("lifecycle_stage", json!("active")),
        ("name", json!(format!("collo {}", plain(&c.experiment)))),
    ];
    fs::create_dir_all(&experiment)?;
    collo_store::place_file(&experiment.join("meta.yaml"), yaml(&meta).as_bytes())?;
    Ok(runs.len())
}

fn write_run(run: &MlflowRun, folder: &Path, experiment: &str, uri: &str) -> Result<()> {
    // What an earlier report said and this one does not would stay; artifacts are the user's.
    for part in ["metrics", "params", "tags"].map(|part| folder.join(part)).iter().filter(|part| part.exists()) {
        fs::remove_dir_all(part)?;
    }
    for part in ["metrics", "params", "tags", "artifacts"] {
        fs::create_dir_all(folder.join(part))?;
    }
    for (name, value) in &run.params {
        fs::write(folder.join("params").join(name), short(value))?;
    }
    for (name, value) in &run.tags {
        fs::write(folder.join("tags").join(name), short(value))?;
    }
    for (name, values) in &run.metrics {
        let lines = values.iter().filter(|(_, value, _)| value.is_finite());
        let lines: String = lines.map(|(at_ms, value, step)| format!("{at_ms} {value} {step}\n")).collect();
        // A metric without a value is malformed; absent is no file.
        if !lines.is_empty() {
            fs::write(folder.join("metrics").join(file_name(name)), lines)?;
        }
    }
    let meta = [
        ("artifact_uri", json!(format!("{uri}/{}/artifacts", run.id))),
        ("deleted_time", Value::Null),
        ("end_time", json!(run.end_ms)),
        ("entry_point_name", json!("")),
        ("experiment_id", json!(experiment)),
        ("lifecycle_stage", json!("active")),
        ("run_id", json!(run.id)),
        ("run_name", json!(run.name)),
        // Of MLflow before 3.
        ("run_uuid", json!(run.id)),
        ("source_name", json!("")),
        ("source_type", json!(LOCAL)),
        ("source_version", json!("")),
        ("start_time", json!(run.start_ms)),
        ("status", json!(run.status)),
        ("tags", json!([])),
        ("user_id", json!("")),
    ];
    Ok(collo_store::place_file(&folder.join("meta.yaml"), yaml(&meta).as_bytes())?)
}

/// A cell with its quantities, as of its last repetition.
fn of_cell(analysis: &Analysis, cell: &Cell, created_ms: u64) -> MlflowRun {
    let spans = cell.repetitions.iter().map(|r| span(r, created_ms));
    let (start_ms, end_ms) = spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).unwrap_or((created_ms, created_ms));
    let mut metrics = Vec::new();
    let named = cell.quantities.iter().map(|(key, q)| (Cow::Borrowed(key.name), q));
    for (name, q) in named.chain(cell.metrics.iter().map(|(name, q)| (metric_name(name), q))) {
        let one = |value: f64| vec![(end_ms, value, 0)];
        metrics.push((name.to_string(), one(q.estimate)));
        metrics.extend(q.low.map(|low| (format!("{name}_low"), one(low))));
        metrics.extend(q.high.map(|high| (format!("{name}_high"), one(high))));
        metrics.push((format!("{name}_repetitions"), one(q.n as f64)));
    }
    let name = plain(cell.name());
    let mut tags = tags(analysis, &name, cell.verdict().as_str(), &cell.validity.reasons);
    tags.push(("collo.outcome", cell.outcome().to_string()));
    if !cell.suspicious.is_empty() {
        tags.push(("collo.suspicious", cell.suspicious.join("; ")));
    }
    MlflowRun {
        id: run_id(analysis, cell.name(), 0),
        name,
        status: if !cell.counts() { FAILED } else { FINISHED },
        start_ms,
        end_ms,
        params: params(cell.record.members.first(), &cell.record),
        metrics,
        tags,
    }
}

/// One repetition: what the group did, and the epochs of its members.
fn of_repetition(analysis: &Analysis, r: &Repetition, parent: &str, created_ms: u64) -> MlflowRun {
    let record = r.record();
    let (start_ms, end_ms) = span(r, created_ms);
    let mut metrics: Vec<(String, History)> = Vec::new();
    // Numbers of a discarded run are nobody's; its tags say why.
    if r.counts() {
        let group = [
            (Key::Makespan.name, r.makespan_s),
            (Key::Overlap.name, r.overlap_ratio.filter(|_| record.members.len() > 1)),
            (Key::StartSkew.name, r.start_skew_s),
            ("energy_counter_w", r.energy.map(|e| e.power_w)),
        ];
        metrics.extend(group.into_iter().filter_map(|(name, value)| Some((name.to_string(), vec![(end_ms, value?, 0)]))));
        metrics.extend(r.metrics.iter().map(|(name, value)| (metric_name(name).into_owned(), vec![(end_ms, *value, 0)])));
        for member in 0..record.members.len() {
            let own = || r.epochs.iter().filter(|e| e.measured && e.member as usize == member && e.end_ns > e.start_ns);
            let at_ms = |ns: u64| start_ms + ns.saturating_sub(record.timeline.launched_ns) / 1_000_000;
            let times = own().map(|e| (at_ms(e.end_ns), (e.end_ns - e.start_ns) as f64 * 1e-9, u64::from(e.index)));
            metrics.push((format!("member_{member}.epoch_time_s"), times.collect()));
            let losses = own().filter_map(|e| Some((at_ms(e.end_ns), e.loss?, u64::from(e.index))));
            metrics.push((format!("member_{member}.loss"), losses.collect()));
        }
    }
    let name = format!("{} #{}", plain(&record.cell.cell), record.repetition);
    let mut tags = tags(analysis, &name, words::verdict(r.validity.verdict), &r.validity.reasons);
    tags.push(("collo.outcome", words::outcome_in_full(&record.outcome)));
    tags.push(("mlflow.parentRunId", parent.to_string()));
    let mut params = params(record.cell.members.first(), &record.cell);
    params.extend([("repetition", record.repetition.to_string()), ("block", record.block.to_string())]);
    MlflowRun {
        id: run_id(analysis, &record.cell.cell, record.repetition),
        name,
        status: if record.outcome.as_str() == "completed" { FINISHED } else { FAILED },
        start_ms,
        end_ms,
        params,
        metrics,
        tags,
    }
}

fn params(first: Option<&collo_store::MemberSpec>, record: &collo_store::CellRecord) -> Vec<(&'static str, String)> {
    let mut params =
        vec![("cell", record.cell.clone()), ("sharing", record.sharing.clone()), ("degree", record.degree.to_string())];
    // Of different members the label names each.
    if let Some(member) = first.filter(|_| record.is_uniform()) {
        params.push(("workload", member.workload.clone()));
        params.extend(member.batch_size.map(|b| ("batch_size", b.to_string())));
        params.push(("settings", json!(member.settings).to_string()));
    }
    params.extend(record.slots.clone().map(|slots| ("slots", slots)));
    params
}

fn tags(analysis: &Analysis, run_name: &str, validity: &str, reasons: &[String]) -> Vec<(&'static str, String)> {
    let c = &analysis.campaign;
    let said = caveats::sentences(analysis).join("; ");
    let mut tags = vec![
        ("mlflow.runName", run_name.into()),
        ("mlflow.source.name", "collo".into()),
        ("collo.campaign", c.id.clone()),
        ("collo.device", c.device.text()),
        ("collo.simulated", c.device.simulated.to_string()),
        ("collo.validity", validity.into()),
    ];
    if !reasons.is_empty() {
        tags.push(("collo.reasons", reasons.join("; ")));
    }
    if !said.is_empty() {
        tags.push(("mlflow.note.content", said));
    }
    tags
}

/// Wall-clock milliseconds from launch to end.
fn span(r: &Repetition, created_ms: u64) -> (u64, u64) {
    let timeline = &r.record().timeline;
    let start = utc_seconds(&r.record().started_utc).map_or(created_ms, |s| s * 1000);
    (start, start + timeline.ended_ns.saturating_sub(timeline.launched_ns) / 1_000_000)
}

fn milliseconds(utc: &str) -> u64 {
    utc_seconds(utc).unwrap_or_default() * 1000
}

/// 32 hexadecimal digits, as MLflow's own.
fn run_id(analysis: &Analysis, cell: &str, repetition: u32) -> String {
    sha256_text(&format!("{}\n{cell}\n{repetition}", analysis.campaign.id))[..32].to_string()
}

/// One line that nothing obeys.
fn plain(label: &str) -> String {
    quoting::line(&label.replace(['\n', '\r'], " ")).into_owned()
}

fn short(value: &str) -> String {
    value.chars().take(LONGEST).collect()
}

/// Metrics of samplers have any name; those of MLflow have letters, digits, `_`, `-`, `.` and no path.
fn file_name(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let name: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).take(200).collect();
    if name.chars().all(|c| c == '.') { format!("metric{name}") } else { name }
}

/// A JSON string is a YAML one, if control characters are escaped.
fn yaml(fields: &[(&str, Value)]) -> String {
    fields.iter().map(|(name, value)| format!("{name}: {value}\n")).collect()
}

/// RFC 8089, with everything that is not plain percent-encoded.
fn file_uri(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"/-_.~".contains(&b);
    let encoded: String = path
        .as_os_str()
        .as_bytes()
        .iter()
        .map(|b| if plain(*b) { char::from(*b).to_string() } else { format!("%{b:02X}") })
        .collect();
    format!("file://{encoded}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_s_name_is_no_path() {
        assert_eq!(["a/b", "..", "sm_active_ratio", "x y:中"].map(file_name), ["a_b", "metric..", "sm_active_ratio", "x_y__"]);
        assert_eq!(file_uri(Path::new("/a b/ü")), "file:///a%20b/%C3%BC");
    }
}
