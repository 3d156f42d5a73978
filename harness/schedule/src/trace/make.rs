//! A trace cut out of a cluster's log: its arrivals alone. What arrives is drawn by shares, because no published log says it.
//!
//! To add a log: a variant of [`Log`].

use std::fmt::Write;
use std::sync::Arc;

use collo_store::utc_seconds;
use collo_text::{Diagnostic, Source, quoted};
use serde::Deserialize;

use super::{MOST_TASKS, short};

/// A published log of submissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Log {
    /// `cluster_job_log` of msr-fiddle/philly-traces: a JSON list of jobs with `submitted_time`.
    Philly,
    /// `cluster_log.csv` of S-Lab-System-Group/HeliosData: a table with a column `submit_time`.
    Helios,
}

impl Log {
    pub const ALL: [Log; 2] = [Log::Philly, Log::Helios];

    pub fn name(self) -> &'static str {
        match self {
            Log::Philly => "philly",
            Log::Helios => "helios",
        }
    }

    /// Where it is from, for the source of a trace.
    pub fn source(self) -> &'static str {
        match self {
            Log::Philly => "msr-fiddle/philly-traces, CC-BY-4.0",
            Log::Helios => "S-Lab-System-Group/HeliosData, CC-BY-4.0",
        }
    }

    /// All submissions of a log, in whole seconds since 1970, ascending.
    ///
    /// # Errors
    /// A text that is not such a log, or is cut short, with the place.
    pub fn submissions_s(self, log: &Arc<Source>) -> Result<Vec<u64>, Diagnostic> {
        let mut all = match self {
            Log::Philly => philly(log)?,
            Log::Helios => helios(log)?,
        };
        all.sort_unstable();
        Ok(all)
    }
}

#[derive(Deserialize)]
struct PhillyJob {
    submitted_time: String,
}

fn philly(log: &Arc<Source>) -> Result<Vec<u64>, Diagnostic> {
    let jobs: Vec<PhillyJob> = serde_json::from_str(log.text()).map_err(|wrong| {
        let end = if wrong.is_eof() { "it is cut short; fetch it again" } else { "give the file `cluster_job_log` as published" };
        let what = format!("`{}` is no list of jobs, at line {} column {}", log.name(), wrong.line(), wrong.column());
        Diagnostic::new(what).caused_by(wrong).hint(end)
    })?;
    let submitted = |(n, job): (usize, &PhillyJob)| {
        seconds(&job.submitted_time).ok_or_else(|| {
            let what = format!("job {} of `{}` has no time of submission: {}", n + 1, log.name(), quoted(&job.submitted_time));
            Diagnostic::new(what).hint("times are written `2017-10-09 07:02:18`")
        })
    };
    jobs.iter().enumerate().map(submitted).collect()
}

fn helios(log: &Arc<Source>) -> Result<Vec<u64>, Diagnostic> {
    let mut lines = super::import::lines(log);
    let Some((span, head)) = lines.next() else {
        return Err(Diagnostic::new(format!("`{}` is empty", log.name())).hint("give the file `cluster_log.csv` as published"));
    };
    let columns: Vec<&str> = head.split(',').map(str::trim).collect();
    let Some(column) = columns.iter().position(|name| *name == "submit_time") else {
        let wrong = Diagnostic::new("a table without a column `submit_time`").at(log, span);
        return Err(wrong.note("give the file `cluster_log.csv` as published"));
    };
    let mut all = Vec::new();
    for (span, line) in lines {
        let cells: Vec<&str> = line.split(',').collect();
        if cells.len() < columns.len() {
            let what = format!("a line with {} of {} columns", cells.len(), columns.len());
            return Err(Diagnostic::new(what).at(log, span).note("the table is cut short; fetch it again"));
        }
        let found = cells[column].trim();
        let Some(at_s) = seconds(found) else {
            let what = format!("{} is no time of submission", quoted(found));
            return Err(Diagnostic::new(what).at(log, span).note("times are written `2020-04-01 00:00:21`"));
        };
        all.push(at_s);
    }
    Ok(all)
}

/// `2017-10-09 07:02:18`, or seconds since 1970.
fn seconds(text: &str) -> Option<u64> {
    text.parse().ok().or_else(|| utc_seconds(&format!("{}Z", text.replacen(' ', "T", 1))))
}

/// Which part of a log becomes a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Since the first submission of the log.
    pub from_s: u64,
    /// At most this long.
    pub length_s: Option<u64>,
    /// At most so many tasks.
    pub tasks: Option<usize>,
}

/// A class of tasks: its share of all, in any unit, and what is drawn from it.
#[derive(Debug, Clone, PartialEq)]
pub struct Class {
    pub share: u32,
    pub one_of: Vec<String>,
}

/// The text of a trace: the arrivals of a window, and tasks drawn by shares.
///
/// # Errors
/// A window without a submission or with more than a trace can have, classes without a share, a task that cannot be read.
pub fn make(log: Log, submissions_s: &[u64], window: Window, classes: &[Class]) -> Result<String, Diagnostic> {
    let first_s = submissions_s.first().copied().unwrap_or_default();
    let begin_s = first_s.saturating_add(window.from_s);
    let end_s = window.length_s.map_or(u64::MAX, |length_s| begin_s.saturating_add(length_s));
    let within = submissions_s.iter().copied().filter(|at_s| (begin_s..end_s).contains(at_s));
    let cut: Vec<u64> = within.take(window.tasks.unwrap_or(MOST_TASKS + 1)).collect();
    let Some(start_s) = cut.first().copied() else {
        let last_s = submissions_s.last().copied().unwrap_or_default() - first_s;
        let what = format!("no submission from {} s on; the last of the log is at {last_s} s", window.from_s);
        return Err(Diagnostic::new(what).hint("choose an earlier window, or a longer one"));
    };
    if cut.len() > MOST_TASKS {
        let what = format!("the window has more than the {MOST_TASKS} tasks that a trace can have");
        return Err(Diagnostic::new(what).hint("a shorter window, as in `--window 4h`; or a number of tasks, as in `--tasks 90`"));
    }
    let shares = classes.iter().map(|class| u64::from(class.share)).collect::<Vec<_>>();
    if shares.iter().sum::<u64>() == 0 || classes.iter().any(|class| class.one_of.is_empty()) {
        return Err(
            Diagnostic::new("no class with a share and with tasks to draw from").hint("give at least one: `65=resnet18:b32 20e`")
        );
    }
    for task in classes.iter().flat_map(|class| &class.one_of) {
        short::read(task)?;
    }
    let last_s = cut.last().copied().unwrap_or(start_s) - start_s;
    let mut text = format!(
        "description = \"{} at the gaps of a window of the {} log, {last_s} s from the first to the last\"\n",
        super::count_tasks(cut.len()),
        log.name()
    );
    // Writing to a text cannot fail.
    let _ = writeln!(
        text,
        "source = \"arrivals: {}, {} s after its first submission; tasks: drawn by shares\"",
        log.source(),
        start_s - first_s
    );
    text.push_str(&arrivals(cut.iter().map(|at_s| (at_s - start_s).to_string())));
    for (class, count) in classes.iter().zip(parts(cut.len(), &shares)).filter(|(_, count)| *count > 0) {
        let one_of = class.one_of.iter().map(|task| format!("{task:?}")).collect::<Vec<_>>().join(", ");
        let _ = write!(text, "\n[[tasks]]\ncount = {count}\none_of = [{one_of}]\n");
    }
    Ok(text)
}

/// `arrivals_s = [`, ten to a line.
pub(super) fn arrivals(all: impl Iterator<Item = String>) -> String {
    let all: Vec<String> = all.collect();
    let lines = all.chunks(10).map(|ten| format!("    {},\n", ten.join(", ")));
    format!("arrivals_s = [\n{}]\n", lines.collect::<String>())
}

/// So many things by shares, by the largest remainder (Hamilton): whole numbers that add up.
fn parts(count: usize, shares: &[u64]) -> Vec<usize> {
    let (count, sum) = (count as u64, shares.iter().sum::<u64>().max(1));
    let mut parts: Vec<u64> = shares.iter().map(|share| count * share / sum).collect();
    let mut by_remainder: Vec<usize> = (0..shares.len()).collect();
    by_remainder.sort_by_key(|n| std::cmp::Reverse(count * shares[*n] % sum));
    let left = count - parts.iter().sum::<u64>();
    by_remainder.into_iter().take(left as usize).for_each(|n| parts[n] += 1);
    parts.into_iter().map(|n| n as usize).collect()
}
