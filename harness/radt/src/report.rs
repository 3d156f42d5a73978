//! Tracked runs as a `report.json`: a cell for each group of equal runs, with what radT measured of the GPU. Everything else is
//! absent, and nothing is better than indicative: radT keeps no evidence of the mode that its runs were in.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use collo_analysis::cell::verdict::CellVerdict;
use collo_guidelines::Error;
use collo_guidelines::report_json::{CellJson, Device, MemberJson, ReportJson, SCHEMA};
use collo_plan::cell::{Cell, Member};
use collo_plan::sharing;
use collo_plan::workload::{Workload, WorkloadPython, Workloads};
use collo_quantity::stats::{self, Quantity, Term};
use collo_quantity::{Key, Trait};
use collo_store::AfterMeasured;
use collo_text::{Diagnostic, Diagnostics};
use serde_json::Value as Json;

use super::letter::Letter;
use super::metrics::{self, GroupMetrics};
use super::options::{self, setting_name};
use super::tracking::{TrackedExperiment, TrackedRun};
use super::{Collocation, Leftover, all_of, file_name, on_profile, workload_name};

/// On the face of every imported report, and of every comparison with one.
pub const IMPORTED: &str = "imported from radT, not measured by collo";
const NO_EVIDENCE: &str = "imported from radT, which keeps no evidence of its mode";
const WHOLE_RUN: &str = "its numbers are of whole runs, set-up and warm-up included";
const NOT_MEASURED: &str = "radT does not measure it";
/// The name of a device that nobody has named: radT keeps only nvidia-smi's table.
const UNKNOWN_GPU: &str = "GPU that radT does not name";

/// Parameters of a run that are no options of its script: `COMMAND` and `MLPROJECT_CONTENTS` in radt/constants.py, `start_run` in
/// radt/run/run.py.
const NO_OPTIONS: [&str; 9] =
    ["letter", "workload", "listeners", "params", "file", "workload_listener", "manual", "max_epoch", "max_time"];

/// How long radT lets a run train: no options of its script.
const LENGTHS: [&str; 2] = ["max_epoch", "max_time"];
/// What is of whole runs, and so as large as these are long.
const OF_WHOLE_RUNS: [&str; 2] = ["duration_s", "energy_j"];
const OTHER_LENGTHS: &str = "its groups have different `max_epoch` or `max_time`";

/// The numbers of one group.
struct Repetition {
    cell: Cell,
    /// radT's number of its GPU.
    device: String,
    metrics: GroupMetrics,
    duration_s: f64,
    /// Those of its runs.
    lengths: BTreeSet<[Option<String>; 2]>,
}

/// The number of each script whose workload would share its name with others, by the path that radT was given: 1 for the first that ran.
fn script_numbers(runs: &[TrackedRun]) -> BTreeMap<&str, usize> {
    let mut files: Vec<&str> = Vec::new();
    for run in runs {
        let file = run.params["file"].as_str();
        if !files.contains(&file) {
            files.push(file);
        }
    }
    let alike = |among: &[&str], file: &str| among.iter().filter(|other| workload_name(other) == workload_name(file)).count();
    let several = files.iter().enumerate().filter(|(_, file)| alike(&files, file) > 1);
    several.map(|(at, file)| (*file, 1 + alike(&files[..at], file))).collect()
}

/// A report of the experiment's groups, and the runs that are in none. `gpu` is the name of the GPU; `workloads` are those of the
/// project, if there is one.
pub fn of(
    tracked: &TrackedExperiment,
    workloads: Option<&Workloads>,
    gpu: Option<&str>,
) -> Result<(ReportJson, Vec<Leftover>), Diagnostics> {
    let mut leftovers = tracked.leftovers.clone();
    let mut cells: Vec<(String, Vec<Repetition>)> = Vec::new();
    let mut groups: Vec<(&str, Vec<&TrackedRun>)> = Vec::new();
    // radT makes the first run of a group the parent of the others: `execute_workload` in radt/schedule/schedule.py.
    for run in &tracked.runs {
        let root = run.parent.as_deref().unwrap_or(&run.id);
        match groups.iter_mut().find(|(own, _)| *own == root) {
            Some((_, runs)) => runs.push(run),
            None => groups.push((root, vec![run])),
        }
    }
    let numbers = script_numbers(&tracked.runs);
    for (root, runs) in &groups {
        match repetition(runs, workloads, &numbers)? {
            Ok(one) => {
                let label = one.cell.label();
                match cells.iter_mut().find(|(own, _)| *own == label) {
                    Some((_, all)) => all.push(one),
                    None => cells.push((label, vec![one])),
                }
            }
            Err(reason) => {
                let others = if runs.len() == 1 { String::new() } else { format!(" (a group of {})", runs.len()) };
                leftovers.push(Leftover { place: format!("run {root}{others}"), reason });
            }
        }
    }
    if cells.is_empty() {
        let what = format!("nothing of radT's experiment {} can be imported", tracked.name);
        let found = Diagnostic::new(what).hint("a group is imported if each of its runs is finished, and all are on one GPU");
        return Err(if leftovers.is_empty() { found } else { found.caused_by(all_of(&leftovers)) }.into());
    }
    let mut devices: Vec<&str> = cells.iter().flat_map(|(_, all)| all.iter().map(|one| one.device.as_str())).collect();
    devices.sort_unstable();
    devices.dedup();
    let mut indicative = vec![IMPORTED.to_string()];
    if devices.len() > 1 {
        indicative.push(format!("its groups ran on the GPUs {}, which are taken to be alike", devices.join(", ")));
    }
    let planned = cells.iter().map(|(_, all)| all.len()).sum();
    let newest_ms = tracked.runs.iter().filter_map(|run| run.end_ms).max().unwrap_or_default();
    let report = ReportJson {
        schema: SCHEMA,
        experiment: format!("radt-{}", file_name(&tracked.name)),
        campaign: format!("imported-from-radt-{}-{}", tracked.id, tracked.runs[0].id.chars().take(8).collect::<String>()),
        created_utc: collo_store::utc_text(UNIX_EPOCH + Duration::from_millis(newest_ms)),
        measured_by: Some("radT".into()),
        device: Device { name: gpu.unwrap_or(UNKNOWN_GPU).into(), kind: "gpu".into(), ..Device::default() },
        indicative,
        planned,
        accounted: [("completed", planned)].into_iter().collect(),
        cells: cells.iter().map(|(_, repetitions)| cell_json(repetitions)).collect(),
        problems: leftovers.iter().map(Leftover::text).collect(),
        ..ReportJson::default()
    };
    Ok((report, leftovers))
}

/// A group as a repetition of its cell, or why it is none.
fn repetition(
    runs: &[&TrackedRun],
    workloads: Option<&Workloads>,
    numbers: &BTreeMap<&str, usize>,
) -> Result<Result<Repetition, String>, Diagnostics> {
    if let Some(run) = runs.iter().find(|run| run.status != "FINISHED") {
        let whose = if runs.len() == 1 { "it".into() } else { format!("its run {}", run.id) };
        return Ok(Err(format!("{whose} is {}", run.status)));
    }
    let letters: Result<Vec<Letter>, String> = runs.iter().map(|run| Letter::parse(&run.params["letter"])).collect();
    let letters = match letters {
        Ok(letters) => letters,
        Err(why) => return Ok(Err(why)),
    };
    if let Some(why) = Letter::wrong(&letters) {
        return Ok(Err(why));
    }
    let device = letters.first().map(|letter| letter.devices.clone()).unwrap_or_default();
    let collocations: Vec<Collocation> = letters.into_iter().map(|letter| letter.collocation).collect();
    let Some(mode) = Collocation::together(&collocations) else {
        return Ok(Err("its runs are collocated in different ways".into()));
    };
    let start_ms = runs.iter().map(|run| run.start_ms).min().unwrap_or_default();
    let end_ms = runs.iter().map(|run| run.end_ms).collect::<Option<Vec<u64>>>().and_then(|all| all.into_iter().max());
    let Some(end_ms) = end_ms.filter(|end_ms| *end_ms > start_ms) else { return Ok(Err("its runs have no end".into())) };
    let mut members = Vec::new();
    for (run, collocation) in runs.iter().zip(&collocations) {
        let preset = match collocation {
            Collocation::Mig(profile) if mode == "mig" => Some(profile.as_str()),
            _ => None,
        };
        let number = numbers.get(run.params["file"].as_str()).copied();
        members.push((Arc::new(member(run, preset, workloads, number)?), 1));
    }
    let divided = matches!(collocations.first(), Some(Collocation::Mig(_)));
    Ok(Ok(Repetition {
        // Each of radT's runs ends when its script does, whatever the others do.
        cell: Cell::new(members, sharing::parse(&mode)?, Some(AfterMeasured::Exit)),
        device,
        metrics: metrics::of(runs, divided),
        duration_s: (end_ms - start_ms) as f64 * 1e-3,
        lengths: runs.iter().map(|run| LENGTHS.map(|name| run.params.get(name).cloned())).collect(),
    }))
}

/// The member that a run was: of the project's workload that calls this script with these options, so that cells have the labels of
/// an imported schedule; else of one that is made up of them. `number` is that of its script among several of one name: which of them
/// a workload calls cannot be seen from its command.
fn member(
    run: &TrackedRun,
    preset: Option<&str>,
    workloads: Option<&Workloads>,
    number: Option<usize>,
) -> Result<Member, Diagnostic> {
    let script = Path::new(&run.params["file"]).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let (values, flags) = options::logged(&options_of(run, &script));
    let is_it = |w: &&Arc<Workload>| {
        let fixed = options::fixed_options(&w.command);
        w.preset_of.is_none()
            && w.command.get(1) == Some(&script)
            && w.settings.keys().eq(sorted(&values).iter().map(|(name, _)| name))
            && fixed.len() == flags.len()
            && fixed.iter().all(|name| flags.contains(name))
    };
    let mut fitting = workloads.filter(|_| number.is_none()).into_iter().flat_map(|all| all.iter()).filter(is_it);
    let known = fitting.next().filter(|_| fitting.next().is_none());
    let own = known.and_then(|base| match preset {
        None => Some(base),
        Some(profile) => workloads?.get(&on_profile(&base.name, profile)),
    });
    if let Some(workload) = own {
        let given: Vec<(&str, Json)> =
            values.iter().map(|(name, text)| (name.as_str(), like(workload.settings.get(name), text))).collect();
        if let Ok(member) = Member::new(workload, given) {
            return Ok(member);
        }
    }
    let mut name = workload_name(&script);
    if let Some(number) = number.filter(|number| *number > 1) {
        name = format!("{name}-{number}");
    }
    // Another workload's cells must not seem to be these.
    if workloads.is_some_and(|all| all.get(&name).is_some()) {
        name.push_str("-radt");
    }
    let batch = |name: &str, text: &str| (name == "batch_size").then(|| text.parse::<u32>().ok()).flatten().map(Json::from);
    let read = |(name, text): &(String, String)| (name.clone(), batch(name, text).unwrap_or_else(|| Json::from(text.as_str())));
    let given: BTreeMap<String, Json> =
        values.iter().map(read).chain(flags.iter().map(|flag| (setting_name(flag), Json::from("true")))).collect();
    // Defaults that no value equals, so that labels show all of them.
    let defaults =
        given.iter().map(|(name, value)| (name.clone(), if value.is_number() { Json::from(0) } else { Json::from("") }));
    let workload = Workload {
        name: preset.map_or(name.clone(), |profile| on_profile(&name, profile)),
        folder: run.folder.clone(),
        command: vec!["python".into(), script],
        environment: WorkloadPython::System,
        settings: defaults.collect(),
        ..Workload::default()
    };
    Member::new(&Arc::new(workload), given.iter().map(|(name, value)| (name.as_str(), value.clone())))
}

/// The parameters that are options of the script. `update_params_listing` in radt/run/run.py also logs the script as `model`, unless
/// there is such an option, and every option with `data` in its name once more as `data`.
fn options_of(run: &TrackedRun, script: &str) -> BTreeMap<String, String> {
    let again =
        |value: &String| run.params.iter().any(|(name, v)| name != "data" && name.to_lowercase().contains("data") && v == value);
    let is_option = |name: &str, value: &String| match name {
        "model" => value != script,
        "data" => !again(value),
        name => !NO_OPTIONS.contains(&name),
    };
    run.params.iter().filter(|(name, value)| is_option(name, value)).map(|(n, v)| (n.clone(), v.clone())).collect()
}

fn sorted(values: &[(String, String)]) -> Vec<(String, String)> {
    values.iter().cloned().collect::<BTreeMap<_, _>>().into_iter().collect()
}

/// A text as a value of its default's type; a wrong one stays text, and is refused as such.
fn like(default: Option<&Json>, text: &str) -> Json {
    match default {
        Some(Json::String(_)) | None => Json::from(text),
        Some(_) => serde_json::from_str(text).unwrap_or_else(|_| Json::from(text)),
    }
}

fn cell_json(repetitions: &[Repetition]) -> CellJson {
    let record = repetitions[0].cell.record(u32::try_from(repetitions.len()).unwrap_or(u32::MAX));
    let mut names: Vec<&str> = repetitions.iter().flat_map(|r| r.metrics.values.keys().copied()).collect();
    names.sort_unstable();
    names.dedup();
    let measured = |name: &&str| -> Option<(String, Option<Quantity>)> {
        let values: Vec<f64> = repetitions.iter().filter_map(|r| r.metrics.values.get(name).copied()).collect();
        Some((name.to_string(), Some(quantity_of(&values)?)))
    };
    let mut metrics: Vec<(String, Option<Quantity>)> = names.iter().filter_map(measured).collect();
    let durations: Vec<f64> = repetitions.iter().map(|r| r.duration_s).collect();
    metrics.push(("duration_s".into(), quantity_of(&durations)));
    let mut absent: BTreeMap<String, String> =
        Key::with(Trait::Cell).map(|key| (key.name.to_string(), NOT_MEASURED.to_string())).collect();
    for (name, why) in repetitions.iter().flat_map(|r| &r.metrics.absent).filter(|(name, _)| !names.contains(name)) {
        absent.insert(name.to_string(), why.clone());
    }
    if repetitions.windows(2).any(|pair| pair[0].lengths != pair[1].lengths) {
        metrics.retain(|(name, _)| !OF_WHOLE_RUNS.contains(&name.as_str()));
        absent.extend(OF_WHOLE_RUNS.map(|name| (name.to_string(), OTHER_LENGTHS.to_string())));
    }
    let mut reasons = vec![NO_EVIDENCE.to_string(), WHOLE_RUN.to_string()];
    if repetitions.len() == 1 {
        reasons.push("one repetition carries no interval".into());
    }
    let member = |spec: &collo_store::MemberSpec| MemberJson {
        workload: spec.workload.clone(),
        batch_size: spec.batch_size.map(u64::from),
        settings: spec.settings.clone(),
        solo: spec.solo.clone(),
        quantities: Key::with(Trait::Member).map(|key| (key.name, None)).collect(),
        ..MemberJson::default()
    };
    CellJson {
        label: record.cell.clone(),
        sharing: record.sharing.clone(),
        degree: record.degree.into(),
        baseline: record.baseline,
        after_measured: record.after_measured,
        members: record.members.iter().map(member).collect(),
        repetitions: repetitions.len(),
        outcome: "completed".into(),
        outcomes: [("completed", repetitions.len())].into_iter().collect(),
        validity: CellVerdict::Indicative.as_str().into(),
        reasons,
        quantities: Key::with(Trait::Cell).map(|key| (key.name, None)).collect(),
        // What it would be of, under members that exit.
        throughput_gain_by: Some("makespan".into()),
        metrics: metrics.into_iter().collect(),
        absent,
        ..CellJson::default()
    }
}

/// What radT can measure and did not, with the reason and the cells.
pub fn unread(report: &ReportJson) -> Vec<Leftover> {
    let mut cells: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for cell in &report.cells {
        for (name, why) in cell.absent.iter().filter(|(_, why)| *why != NOT_MEASURED) {
            cells.entry((why, name)).or_default().push(&cell.label);
        }
    }
    let mut names: BTreeMap<(&str, Vec<&str>), Vec<&str>> = BTreeMap::new();
    for ((why, name), cells) in cells {
        names.entry((why, cells)).or_default().push(name);
    }
    let quoted = |cells: Vec<&str>| cells.iter().map(|cell| format!("`{cell}`")).collect::<Vec<_>>().join(", ");
    let text = |((why, cells), names): ((&str, Vec<&str>), Vec<&str>)| Leftover {
        place: format!("{} of {}", names.join(", "), quoted(cells)),
        reason: why.into(),
    };
    names.into_iter().map(text).collect()
}

/// Over the repetitions, each cell by its own variance; `None` if a value has no logarithm.
fn quantity_of(values: &[f64]) -> Option<Quantity> {
    let (mean, variance) = stats::log_moments(values)?;
    let terms: Vec<Term> = variance.map(|variance| Term { weight: 1.0, variance, n: values.len() }).into_iter().collect();
    Some(stats::quantity(mean, values.len(), &terms))
}

/// The report as a file; read back first, as `collo compare` reads it.
pub fn bytes(report: &ReportJson) -> Result<Vec<u8>, Error> {
    let value = serde_json::json!(report);
    ReportJson::of(value.clone(), "the imported report")?;
    let mut text = serde_json::to_string_pretty(&value).unwrap_or_default();
    text.push('\n');
    Ok(text.into_bytes())
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
