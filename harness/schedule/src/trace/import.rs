//! Traces of others: a table of submissions, and scripts that sleep and submit, with their task files.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;

use collo_text::quoted;
use collo_text::quoting::{self, literal};
use collo_text::{Diagnostic, Source};

use super::make::arrivals;
use super::short;

/// The lines of a text that are not empty, with their places.
pub(super) fn lines(source: &Source) -> impl Iterator<Item = (Range<usize>, &str)> {
    let mut start = 0;
    source.text().split('\n').filter_map(move |line| {
        let span = start..start + line.trim_end().len();
        start += line.len() + 1;
        (!line.trim().is_empty()).then_some((span, line.trim_end()))
    })
}

/// The text of a trace from a table `submit_time_s,task`, a task in short on each line.
///
/// # Errors
/// A table without this head, a line that is cut short or goes back in time, with its place.
pub fn table(source: &Arc<Source>) -> Result<String, Diagnostic> {
    const HEAD: &str = "submit_time_s,task";
    let mut lines = lines(source);
    let head = lines.next();
    let Some((_, HEAD)) = head else {
        let wrong = Diagnostic::new(format!("`{}` does not begin with `{HEAD}`", source.name()));
        let wrong = if let Some((span, _)) = head { wrong.at(source, span) } else { wrong };
        return Err(wrong.note("write it as its first line"));
    };
    let (mut times, mut tasks, mut last_s) = (Vec::new(), String::new(), 0.0);
    for (span, line) in lines {
        let wrong = |what: String, note: &str| Err(Diagnostic::new(what).at(source, span.clone()).note(note));
        let Some((time, task)) = line.split_once(',').filter(|(_, task)| !task.trim().is_empty()) else {
            return wrong("a line without a task".into(), "the table is cut short: complete the line, or delete it");
        };
        let Some(at_s) = time.trim().parse().ok().filter(|at_s: &f64| (0.0..=1e9).contains(at_s)) else {
            return wrong(format!("{} is no time in seconds", quoted(time)), "write seconds since the first");
        };
        if at_s < last_s {
            return wrong(format!("a submission at {at_s} s follows one at {last_s} s"), "sort the lines by their times");
        }
        last_s = at_s;
        let what = match short::read(task.trim()) {
            Ok(what) => what,
            Err(inner) => return Err(inner.moved(source, &span, None)),
        };
        times.push(at_s.to_string());
        tasks.push_str(&listed(&what.workload, &what.settings, what.epochs, what.cards, None));
    }
    if times.is_empty() {
        return Err(Diagnostic::new(format!("`{}` has no task", source.name())).hint("add a line: `0,resnet50:b64 3e`"));
    }
    Ok(text(&format!("{} tasks of a table", times.len()), source.name(), times, &tasks))
}

/// A task file of CARMA, the study's manager: a line each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rad {
    /// By the name of its file.
    pub name: String,
    pub command: String,
    pub batch_size: u32,
    pub cards: u32,
    pub epochs: u32,
    /// What it needs of each card: measured, by Horus, by FakeTensor, by GPUMemNet. In bytes; absent where the file says none.
    pub measured_bytes: Option<u64>,
    pub horus_bytes: Option<u64>,
    pub faketensor_bytes: Option<u64>,
    pub gpumemnet_bytes: Option<u64>,
}

/// What stands on which line.
const RAD_LINES: [&str; 12] = [
    "comment",
    "environment",
    "command",
    "summary",
    "data set",
    "batch size",
    "policy",
    "cards",
    "measured memory",
    "Horus",
    "FakeTensor",
    "GPUMemNet",
];

/// Read a task file. A line is a value, or a value behind `name:`.
///
/// # Errors
/// A file that is cut short, or a line that is not a number where one belongs, with the place.
pub fn rad(source: &Arc<Source>) -> Result<Rad, Diagnostic> {
    // Here an empty line is a value that nobody has given.
    let mut at = 0;
    let mut all: Vec<(Range<usize>, &str)> = Vec::new();
    for line in source.text().lines() {
        all.push((at..at + line.len(), line.trim()));
        at += line.len() + 1;
    }
    if all.len() < 8 {
        let end = source.text().len();
        let what = format!("`{}` ends after line {}, before its {}", source.name(), all.len(), RAD_LINES[all.len()]);
        let wrong = Diagnostic::new(what).at(source, end..end);
        return Err(wrong.note("it has 12 lines, and needs the first 8: complete it"));
    }
    let value = |n: usize| all.get(n).map(|(_, line)| line.split_once(": ").map_or(*line, |(_, value)| value.trim()));
    let number = |n: usize| {
        let text = value(n).unwrap_or_default();
        let wrong = || {
            let what = format!("{} on line {} is no {}", quoted(text), n + 1, RAD_LINES[n]);
            Diagnostic::new(what).at(source, all[n].0.clone()).note("write a whole number")
        };
        text.parse::<u32>().ok().filter(|number| *number > 0).ok_or_else(wrong)
    };
    let mib = |n: usize| match value(n) {
        None | Some("" | "-") => Ok(None),
        Some(_) => number(n).map(|mib| Some(u64::from(mib) << 20)),
    };
    let command = value(2).unwrap_or_default().to_string();
    let name = source.name().rsplit('/').next().unwrap_or_default();
    Ok(Rad {
        name: name.strip_suffix(".rad").unwrap_or(name).to_string(),
        epochs: epochs(&command).unwrap_or(1),
        command,
        batch_size: number(5)?,
        cards: number(7)?,
        measured_bytes: mib(8)?,
        horus_bytes: mib(9)?,
        faketensor_bytes: mib(10)?,
        gpumemnet_bytes: mib(11)?,
    })
}

/// `--epochs 20`, `--epochs=20`.
fn epochs(command: &str) -> Option<u32> {
    let mut words = command.split_whitespace();
    while let Some(word) = words.next() {
        match word.strip_prefix("--epochs") {
            Some("") => return words.next()?.parse().ok(),
            Some(rest) if rest.starts_with('=') => return rest[1..].parse().ok(),
            _ => {}
        }
    }
    None
}

/// The words of a line of a script; none of a comment.
fn words(line: &str) -> Vec<&str> {
    let line = if line.trim_start().starts_with('#') { "" } else { line };
    line.split(|c: char| c.is_whitespace() || ";&\"'".contains(c)).filter(|word| !word.is_empty()).collect()
}

/// The task files that a script submits, as it names them.
pub fn submitted(source: &Source) -> Vec<&str> {
    lines(source).flat_map(|(_, line)| words(line)).filter(|word| word.ends_with(".rad")).collect()
}

/// The text of a trace from a script that sleeps and submits, and the task files that it names, by their file names. Workloads are named as
/// their files are.
///
/// # Errors
/// A `sleep` without a time, a task whose file is not there, or a script that submits nothing, with the place.
pub fn script(source: &Arc<Source>, files: &BTreeMap<String, Rad>) -> Result<String, Diagnostic> {
    let (mut at_s, mut times, mut tasks) = (0.0, Vec::new(), String::new());
    for (span, line) in lines(source) {
        let words = words(line);
        let wrong = |what: String, note: &str| Err(Diagnostic::new(what).at(source, span.clone()).note(note));
        for (n, word) in words.iter().enumerate() {
            if *word == "sleep" {
                let time = words.get(n + 1).map(|time| time.trim_end_matches('s'));
                let Some(sleeps_s) = time.and_then(|time| time.parse().ok()).filter(|s: &f64| (0.0..=1e9).contains(s)) else {
                    return wrong("`sleep` without a time in seconds".into(), "the script is cut short: complete the line");
                };
                at_s += sleeps_s;
            } else if word.ends_with(".rad") {
                let file = word.rsplit('/').next().unwrap_or_default();
                let Some(rad) = files.get(file) else {
                    return wrong(format!("there is no task file {}", quoted(file)), "put it beside the script");
                };
                let settings = BTreeMap::from([("batch_size".to_string(), rad.batch_size.into())]);
                times.push(at_s.to_string());
                tasks.push_str(&listed(&rad.name, &settings, rad.epochs, rad.cards, Some(&rad.command)));
            }
        }
    }
    if times.is_empty() {
        let wrong = Diagnostic::new(format!("`{}` submits nothing", source.name()));
        return Err(wrong.hint("give a script of lines such as `sleep 73` and `submit NAME.rad`"));
    }
    Ok(text(&format!("{} tasks of a script", times.len()), source.name(), times, &tasks))
}

fn listed(
    workload: &str,
    settings: &BTreeMap<String, serde_json::Value>,
    epochs: u32,
    cards: u32,
    command: Option<&str>,
) -> String {
    let mut text = String::from("\n[[task]]\n");
    if let Some(command) = command {
        // Writing to a text cannot fail.
        let _ = writeln!(text, "# {}", quoting::line(command));
    }
    let _ = writeln!(text, "workload = {}", literal(workload));
    for (name, value) in settings {
        let _ = writeln!(text, "{name} = {value}");
    }
    let _ = write!(text, "epochs = {epochs}\ncards = {cards}\n");
    text
}

fn text(description: &str, from: &str, times: Vec<String>, tasks: &str) -> String {
    let (description, source) = (literal(description), literal(&format!("imported from {from}")));
    format!("description = {description}\nsource = {source}\n{}{tasks}", arrivals(times.into_iter()))
}
