//! radT's schedule, a CSV table with a row for each run: the groups that collo can measure, and why not the others.
//!
//! The columns are those of `CSV_FORMAT` in radt/constants.py; `determine_operating_mode` in radt/schedule/schedule.py reads them with
//! pandas and `skipinitialspace`, and takes the rows of one experiment and one workload as a group that runs at the same time.

use std::collections::BTreeMap;
use std::path::Path;

use collo_text::{Diagnostic, Diagnostics, Source, quoted};

use super::options::ScriptOptions;
use super::{Collocation, Leftover};

/// Much larger than any schedule written by hand.
const LARGEST: u64 = 8_000_000;

/// Required columns; Status, Run and Listeners may lack.
const NEEDED: [&str; 6] = ["Experiment", "Workload", "Devices", "Collocation", "File", "Params"];

/// Runs that share a GPU at the same time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduledGroup {
    /// radT's numbers of it: experiment and workload.
    pub experiment: String,
    pub workload: String,
    pub device: String,
    /// The sharing mode; `mig` where profiles differ.
    pub mode: String,
    pub members: Vec<ScheduledRun>,
}

/// A row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduledRun {
    pub line: u64,
    pub file: String,
    pub options: ScriptOptions,
    pub collocation: Collocation,
}

/// A schedule.
#[derive(Debug, Default)]
pub struct Schedule {
    pub groups: Vec<ScheduledGroup>,
    /// Groups that collo cannot measure.
    pub refused: Vec<Leftover>,
    /// Columns whose content has no counterpart.
    pub not_carried: Vec<Leftover>,
}

impl Schedule {
    pub fn read(path: &Path) -> Result<Schedule, Diagnostics> {
        let name = collo_text::shown(path);
        let text = collo_text::read_small_text(path, LARGEST)
            .map_err(|e| Diagnostic::new(format!("{} cannot be read", quoted(&name))).caused_by(e))?;
        Schedule::parse(&Source::file(name, text))
    }

    pub fn parse(source: &std::sync::Arc<Source>) -> Result<Schedule, Diagnostics> {
        let text = without_initial_spaces(source.text().trim_start_matches('\u{feff}'));
        let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
        let broken = |e: csv::Error| {
            let hint = "each row has as many fields as the first line; a field with a comma is in double quotes";
            Diagnostic::new(format!("{} is not a CSV table", source.name())).caused_by(e).hint(hint)
        };
        let header = reader.headers().map_err(broken)?.clone();
        columns(source, &header)?;
        let mut schedule = Schedule::default();
        let mut counted = (0, 1);
        let mut without: Vec<(String, Vec<u64>)> = Vec::new();
        let mut groups: Vec<((String, String), Vec<Row>)> = Vec::new();
        for record in reader.records() {
            let record = record.map_err(broken)?;
            let line = line_of(&text, record.position().map_or(0, |p| p.byte() as usize), &mut counted);
            let fields: BTreeMap<String, String> = header.iter().zip(&record).map(|(n, v)| (n.into(), v.into())).collect();
            // pandas passes over empty lines, and reads a row of empty fields.
            if fields.values().all(String::is_empty) {
                continue;
            }
            let row = Row { line, fields };
            let key = (row.get("Experiment").to_string(), row.get("Workload").to_string());
            match groups.iter_mut().find(|(k, _)| *k == key) {
                Some((_, rows)) => rows.push(row),
                None => groups.push((key, vec![row])),
            }
        }
        for (_, rows) in &groups {
            match group(rows) {
                Ok(group) => {
                    schedule.groups.push(group);
                    rows.iter().for_each(|row| row.without_counterpart(&mut without));
                }
                Err((line, reason)) => {
                    let others: Vec<u64> = rows.iter().map(|row| row.line).collect();
                    let named = if rows.len() == 1 { String::new() } else { format!(" (of the group in {})", named(&others)) };
                    schedule.refused.push(Leftover { place: format!("line {line}{named}"), reason });
                }
            }
        }
        schedule.not_carried = without.into_iter().map(|(reason, lines)| Leftover { place: named(&lines), reason }).collect();
        Ok(schedule)
    }

    /// The GPUs of its groups, by radT's numbers.
    pub fn devices(&self) -> Vec<&str> {
        let mut all: Vec<&str> = self.groups.iter().map(|group| group.device.as_str()).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// A row as written.
struct Row {
    line: u64,
    fields: BTreeMap<String, String>,
}

impl Row {
    /// A field; pandas reads an absent one as `nan`, and writes it back so.
    fn get(&self, name: &str) -> &str {
        self.fields.get(name).map(String::as_str).filter(|text| *text != "nan").unwrap_or_default()
    }

    /// Add what collo does not know of a row that it can measure, each reason with its lines.
    fn without_counterpart(&self, found: &mut Vec<(String, Vec<u64>)>) {
        let listeners = |text| format!("Listeners {text}: collo has samplers of its own, which always run");
        let status = |text| format!("Status {text}: it is measured again; radT's own results: `collo import radt mlruns`");
        let columns: [(&str, &dyn Fn(String) -> String); 2] = [("Listeners", &listeners), ("Status", &status)];
        for (column, reason) in columns.into_iter().filter(|(column, _)| !self.get(column).is_empty()) {
            let reason = reason(quoted(self.get(column)));
            match found.iter_mut().find(|(other, _)| *other == reason) {
                Some((_, lines)) => lines.push(self.line),
                None => found.push((reason, vec![self.line])),
            }
        }
    }
}

/// The group of some rows, or which line is in the way and why.
fn group(rows: &[Row]) -> Result<ScheduledGroup, (u64, String)> {
    let first = rows.first().ok_or((0, "no row".to_string()))?;
    let device = first.get("Devices");
    let mut members = Vec::new();
    for row in rows {
        let not = |why: String| (row.line, why);
        let devices = row.get("Devices");
        if devices.contains('+') {
            return Err(not(format!("it runs on several GPUs, {}: collo measures members that share one", quoted(devices))));
        }
        if devices != device {
            let why = format!(
                "its group is on the GPUs {} and {}: collo measures those that share one",
                quoted(device),
                quoted(devices)
            );
            return Err(not(why));
        }
        let file = row.get("File");
        if file.is_empty() {
            return Err(not("it has no File".into()));
        }
        if Path::new(file).file_name().is_none_or(|name| name.to_string_lossy().contains('{')) {
            return Err(not(format!("its File {} cannot be a word of a workload's command", quoted(file))));
        }
        members.push(ScheduledRun {
            line: row.line,
            file: file.into(),
            options: ScriptOptions::parse(row.get("Params")).map_err(not)?,
            collocation: Collocation::parse(row.get("Collocation")).map_err(not)?,
        });
    }
    let all: Vec<Collocation> = members.iter().map(|m| m.collocation.clone()).collect();
    let Some(mode) = Collocation::together(&all) else {
        let other = members.iter().find(|m| m.collocation != members[0].collocation).map_or(first.line, |m| m.line);
        return Err((other, "the rows of its group have different Collocations: a cell has one sharing mode".into()));
    };
    let (experiment, workload) = (first.get("Experiment").to_string(), first.get("Workload").to_string());
    Ok(ScheduledGroup { experiment, workload, device: device.into(), mode, members })
}

/// `line 4`, `lines 4, 5`.
fn named(lines: &[u64]) -> String {
    let all: Vec<String> = lines.iter().map(u64::to_string).collect();
    format!("{} {}", if all.len() == 1 { "line" } else { "lines" }, all.join(", "))
}

/// Every needed column, once.
fn columns(source: &std::sync::Arc<Source>, header: &csv::StringRecord) -> Result<(), Diagnostic> {
    let text = source.text();
    let start = text.find(|c: char| !c.is_whitespace() && c != '\u{feff}').unwrap_or(0);
    let end = text[start..].find(['\r', '\n']).map_or(text.len(), |n| start + n);
    let all = "Experiment,Workload,Status,Run,Devices,Collocation,File,Listeners,Params";
    let count = |needed: &str| header.iter().filter(|name| *name == needed).count();
    let listed = |wrong: &dyn Fn(usize) -> bool| -> String {
        NEEDED.iter().filter(|needed| wrong(count(needed))).map(|needed| format!("`{needed}`")).collect::<Vec<_>>().join(", ")
    };
    let (absent, twice) = (listed(&|n| n == 0), listed(&|n| n > 1));
    let what = match (absent.is_empty(), twice.is_empty()) {
        (true, true) => return Ok(()),
        (false, _) => format!("{} is no schedule of radT's: it lacks {absent}", source.name()),
        (true, false) => format!("{} has more than one {twice}", source.name()),
    };
    Err(Diagnostic::new(what).at(source, start..end).note(format!("the first line of radT's schedules: `{all}`")))
}

/// The line of the record at this byte; csv takes the empty lines before a record as its beginning. `counted` is how far lines are
/// counted, and the number reached.
fn line_of(text: &str, byte: usize, counted: &mut (usize, u64)) -> u64 {
    let empty = text.get(byte..).map_or(0, |rest| rest.len() - rest.trim_start_matches(['\r', '\n']).len());
    let start = byte + empty;
    counted.1 += text.as_bytes().get(counted.0..start).map_or(0, |passed| passed.iter().filter(|b| **b == b'\n').count()) as u64;
    counted.0 = start;
    counted.1
}

/// pandas' `skipinitialspace`: the spaces after a delimiter are no part of the field, not even of a quoted one.
fn without_initial_spaces(text: &str) -> String {
    let (mut kept, mut in_quotes, mut at_start) = (String::with_capacity(text.len()), false, true);
    for c in text.chars() {
        if at_start && c == ' ' {
            continue;
        }
        in_quotes ^= c == '"';
        at_start = !in_quotes && matches!(c, ',' | '\n' | '\r');
        kept.push(c);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Schedule, Diagnostics> {
        Schedule::parse(&Source::file("s.csv", text))
    }

    fn said(all: &[Leftover]) -> String {
        all.iter().map(Leftover::text).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn rows_of_one_experiment_and_workload_are_a_group_whatever_the_order_of_the_columns() {
        let text = "Params,  File,Collocation,Devices,Run,Status,Workload,Experiment\n  --lr 1, net.py,  -,0,,,1,7\n--lr 1,net.py, MPS,0,,,2,7\n\n--lr 2,net.py,mps,0,,,2,7\n";
        let schedule = read(text).unwrap();
        let of = |g: &ScheduledGroup| (g.workload.clone(), g.mode.clone(), g.members.iter().map(|m| m.line).collect::<Vec<_>>());
        let all: Vec<_> = schedule.groups.iter().map(of).collect();
        assert_eq!(all, [("1".into(), "naive".into(), vec![2]), ("2".into(), "mps".into(), vec![3, 5])]);
        assert_eq!(schedule.groups[0].members[0].options.values, [("lr".to_string(), "1".to_string())]);
        assert!(schedule.refused.is_empty() && schedule.not_carried.is_empty());
    }

    #[test]
    fn a_quoted_field_may_follow_spaces_and_have_a_comma() {
        let text = "Experiment,Workload,Devices,Collocation,File,Params\n1,1,0,-,net.py,  \"--a 1,2\"\n";
        assert_eq!(read(text).unwrap().groups[0].members[0].options.values, [("a".to_string(), "1,2".to_string())]);
    }

    #[test]
    fn what_cannot_be_carried_is_named_with_its_line_and_the_reason() {
        let head = "Experiment,Workload,Status,Run,Devices,Collocation,File,Listeners,Params\n";
        let rows = "1,1,,,0+1,-,a.py,,\n1,2,,,0,-,a.py,,\n1,2,,,1,-,a.py,,\n1,3,,,0,-,a.py,,\n1,3,,,0,MPS,a.py,,\n1,4,,,0,what,a.py,,\n\
                    1,5,FINISHED x (0),f00,0,,a.py,smi+top,\n1,6,,,0,-,,,\n1,7,,,0,-,{x}.py,,\n";
        let schedule = read(&format!("{head}{rows}")).unwrap();
        assert_eq!(schedule.groups.len(), 1);
        insta::assert_snapshot!(said(&schedule.refused), @"
        line 2: it runs on several GPUs, `0+1`: collo measures members that share one
        line 4 (of the group in lines 3, 4): its group is on the GPUs `0` and `1`: collo measures those that share one
        line 6 (of the group in lines 5, 6): the rows of its group have different Collocations: a cell has one sharing mode
        line 7: unknown Collocation `what`
        line 9: it has no File
        line 10: its File `{x}.py` cannot be a word of a workload's command
        ");
        insta::assert_snapshot!(said(&schedule.not_carried), @"
        line 8: Listeners `smi+top`: collo has samplers of its own, which always run
        line 8: Status `FINISHED x (0)`: it is measured again; radT's own results: `collo import radt mlruns`
        ");
    }

    #[test]
    fn a_table_without_radts_columns_is_refused_with_its_first_line() {
        let wrong = read("Experiment,Workload,Device,Collocation,File\n1,1,0,-,a.py\n").unwrap_err();
        insta::assert_snapshot!(wrong, @"
        error: s.csv is no schedule of radT's: it lacks `Devices`, `Params`, at s.csv:1:1
         1 | Experiment,Workload,Device,Collocation,File
           | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: the first line of radT's schedules: `Experiment,Workload,Status,Run,Devices,Collocation,File,Listeners,Params`
        ");
        assert!(
            read("Experiment,Workload,Devices,Collocation,File,Params\n1,1\n")
                .unwrap_err()
                .to_string()
                .contains("is not a CSV table")
        );
    }
}
