//! Traces of others: a table of submissions, and scripts that sleep and submit, with their task files.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;

use collo_text::quoting::{self, literal};
use collo_text::{Diagnostic, Source, quoted};

use super::make::arrivals;
use super::names::NameMap;
use super::shell::{self, NoTime};
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
pub fn table(source: &Arc<Source>, names: &mut NameMap) -> Result<String, Diagnostic> {
    const HEAD: &str = "submit_time_s,task";
    // Spreadsheets begin a table with a byte order mark.
    let is_head = |line: &str| line.trim_start_matches('\u{feff}').split(',').map(str::trim).eq(HEAD.split(','));
    let mut lines = lines(source);
    let head = lines.next();
    if !head.as_ref().is_some_and(|(_, line)| is_head(line)) {
        let wrong = Diagnostic::new(format!("`{}` does not begin with `{HEAD}`", source.name()));
        let wrong = if let Some((span, _)) = head { wrong.at(source, span) } else { wrong };
        return Err(wrong.note("write it as its first line"));
    }
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
        tasks.push_str(&listed(names.workload(&what.workload), &what.settings, what.epochs, what.cards, None));
    }
    if times.is_empty() {
        return Err(Diagnostic::new(format!("`{}` has no task", source.name())).hint("add a line: `0,resnet50:b64 3e`"));
    }
    Ok(text(&format!("{} of a table", super::count_tasks(times.len())), source.name(), times, &tasks))
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

/// More than any GPU will have, and well within what bytes can count.
const MOST_MIB: f64 = 1e9;

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
    let wrong = |n: usize, note: &str| {
        let what = format!("{} on line {} is no {}", quoted(value(n).unwrap_or_default()), n + 1, RAD_LINES[n]);
        Diagnostic::new(what).at(source, all[n].0.clone()).note(note)
    };
    let number = |n: usize| {
        let text = value(n).unwrap_or_default();
        text.parse::<u32>().ok().filter(|number| *number > 0).ok_or_else(|| wrong(n, "write a whole number"))
    };
    // Estimates have fractions, as `int(float(…))` in CARMA's src/server.py knows; less than was estimated would not be enough.
    let mib = |n: usize| -> Result<Option<u64>, Diagnostic> {
        let Some(text) = value(n).filter(|text| !matches!(*text, "" | "-")) else { return Ok(None) };
        let mib = text.parse().ok().filter(|mib: &f64| *mib > 0.0 && *mib <= MOST_MIB);
        let mib = mib.ok_or_else(|| wrong(n, "write a number of MB"))?;
        Ok(Some((mib * f64::from(1 << 20)).ceil() as u64))
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

/// The path of a task file: `x.rad`, `--task=x.rad`.
fn task_file(word: &str) -> Option<&str> {
    word.rsplit('=').next().filter(|path| path.ends_with(".rad"))
}

/// The task files that a script submits, as it names them.
pub fn submitted(source: &Source) -> Vec<&str> {
    lines(source).flat_map(|(_, line)| shell::commands(line)).flat_map(|command| command.words).filter_map(task_file).collect()
}

/// The text of a trace from a script that sleeps and submits, and the task files that it names, by their paths as it has them. Tasks that
/// `names` does not know are of the workload that their files are named after.
///
/// # Errors
/// A `sleep` without a time; a `sleep` or a task in a loop, behind a condition, in a function or in the background; a task whose file is
/// not there; a script that submits nothing. With the place.
pub fn script(source: &Arc<Source>, files: &BTreeMap<String, Rad>, names: &mut NameMap) -> Result<String, Diagnostic> {
    let (mut at_s, mut times, mut tasks) = (0.0, Vec::new(), String::new());
    let mut place = shell::Place::default();
    for (span, line) in lines(source) {
        let wrong = |what: String, note: &str| Err(Diagnostic::new(what).at(source, span.clone()).note(note));
        for command in shell::commands(line) {
            place.enter(&command);
            for (n, word) in command.words.iter().enumerate() {
                let path = task_file(word);
                let sleeps = *word == "sleep";
                if let Some(unclear) = place.unclear().filter(|_| sleeps || path.is_some()) {
                    let what = format!("{} {unclear}, and a script is read, not executed", quoted(word));
                    return wrong(what, unclear.way_out());
                }
                if sleeps {
                    if let Some(beside) = place.beside(&command) {
                        let note = "write it on a line of its own, without `&`, parentheses and braces, or delete it";
                        return wrong(format!("`sleep` {beside}, where what follows may not wait for it"), note);
                    }
                    at_s += match shell::slept_s(&command.words[n + 1..]) {
                        Ok(sleeps_s) => sleeps_s,
                        Err(NoTime::Absent) => {
                            let note = "write the time, as in `sleep 73`; if the script is cut short here, complete the line";
                            return wrong("`sleep` without a time".into(), note);
                        }
                        Err(NoTime::Unknown(word)) => {
                            let note = "write numbers, as in `sleep 73` or `sleep 1.5m`: variables are not known";
                            return wrong(format!("`sleep` with {}, which is not a time", quoted(word)), note);
                        }
                    };
                } else if let Some(path) = path {
                    let Some(rad) = files.get(path) else {
                        let note =
                            "put it under this path into the script's folder or one above it, or name it behind the script";
                        return wrong(format!("there is no task file {}", quoted(path)), note);
                    };
                    let settings = BTreeMap::from([("batch_size".to_string(), rad.batch_size.into())]);
                    times.push(at_s.to_string());
                    let workload = names.workload(&rad.name);
                    // Where a task is another workload here, its file is named.
                    let about = match workload == rad.name {
                        true => rad.command.clone(),
                        false => format!("{}.rad: {}", rad.name, rad.command),
                    };
                    tasks.push_str(&listed(workload, &settings, rad.epochs, rad.cards, Some(&about)));
                }
            }
            place.leave(&command);
        }
    }
    if times.is_empty() {
        let wrong = Diagnostic::new(format!("`{}` submits nothing", source.name()));
        return Err(wrong.hint("give a script of lines such as `sleep 73` and `submit NAME.rad`"));
    }
    Ok(text(&format!("{} of a script", super::count_tasks(times.len())), source.name(), times, &tasks))
}

fn listed(
    workload: &str,
    settings: &BTreeMap<String, serde_json::Value>,
    epochs: u32,
    cards: u32,
    about: Option<&str>,
) -> String {
    let mut text = String::from("\n[[task]]\n");
    if let Some(about) = about {
        // Writing to a text cannot fail.
        let _ = writeln!(text, "# {}", quoting::line(about));
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
