//! The cells as test cases for a CI system: JUnit's XML. In: an analysis. Out: one test case per cell. A cell fails if a run of
//! it failed or was not as expected, or none of its numbers can be used; expected failures, out of memory, refused and not run
//! are skipped, with the reason; `indicative`
//! and anything unusual is in its output.

use std::time::Duration;

use collo_analysis::campaign::Analysis;
use collo_analysis::campaign::reference::ReferenceVerdict;
use collo_analysis::cell::Cell;
use collo_analysis::trace::TraceRun;
use collo_analysis::words::outcome_in_full;
use collo_quantity::{Key, number};
use collo_store::{Outcome, RefusalRecord, RunRecord, Standing as Compared};
use quick_junit::{NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestSuite};

use super::caveats;
use crate::{Error, Result};

/// The result of a cell.
enum Standing {
    Passed,
    Skipped { why: String },
    Failed { kind: &'static str, why: String, each: Vec<String> },
}

/// The whole file.
pub fn suite(analysis: &Analysis) -> Result<String> {
    let c = &analysis.campaign;
    let cells = analysis.all_cells().map(|cell| {
        let mut case = case(analysis, cell.name(), &cell.record.sharing, standing(cell));
        if let Some(time) = run_time(cell) {
            case.set_time(time);
        }
        let mut said = said(cell);
        said.extend(totals(analysis, cell));
        if !said.is_empty() {
            case.set_system_out(printed(&said.join("\n")));
        }
        case
    });
    let refusals = c.plan.refusals.iter().map(|r| case(analysis, &r.cell, &r.sharing, Standing::Skipped { why: refused(r) }));
    let mut suite = TestSuite::new(line(&caveats::name(analysis)));
    let references = &analysis.references;
    let references = references.iter().map(|r| {
        let standing = match r.verdict {
            ReferenceVerdict::Within => Standing::Passed,
            ReferenceVerdict::Outside => Standing::Failed { kind: "outside-tolerance", why: r.text(), each: vec![r.text()] },
            ReferenceVerdict::Unmeasured => Standing::Skipped { why: r.text() },
        };
        case(analysis, &format!("{}: {}", r.cell, r.quantity), "reference", standing)
    });
    suite.add_test_cases(cells.chain(refusals).chain(references));
    suite.add_properties(properties(analysis).into_iter().map(|(name, value)| Property::new(name, line(&value))));
    let time = analysis.all_cells().filter_map(run_time).sum();
    suite.set_time(time);
    suite.extra.insert("timestamp".into(), c.created_utc.trim_end_matches('Z').into());
    let mut report = Report::new("collo");
    report.add_test_suite(suite).set_time(time);
    report.to_string().map_err(|e| Error::Io(std::io::Error::other(e)))
}

/// In a class `quickstart.naive`, with the caveats about its numbers.
fn case(analysis: &Analysis, name: &str, sharing: &str, standing: Standing) -> TestCase {
    let status = match standing {
        Standing::Passed => TestCaseStatus::success(),
        Standing::Skipped { why } => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(line(&why));
            status
        }
        Standing::Failed { kind, why, each } => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_type(kind).set_message(line(&why)).set_description(printed(&each.join("\n")));
            status
        }
    };
    let mut case = TestCase::new(line(name), status);
    case.set_classname(line(&format!("{}.{sharing}", caveats::name(analysis))));
    case
}

fn properties(analysis: &Analysis) -> Vec<(&'static str, String)> {
    let c = &analysis.campaign;
    let mut found = vec![
        ("campaign", c.id.clone()),
        ("device", c.device.text()),
        ("simulated", c.device.simulated.to_string()),
        ("planned", number::runs(analysis.planned)),
        ("completed", number::runs(analysis.count("completed"))),
    ];
    for (name, list) in
        [("synthetic", &analysis.synthetic), ("shortened", &caveats::shortened(analysis)), ("indicative", &c.indicative)]
    {
        if !list.is_empty() {
            found.push((name, list.join("; ")));
        }
    }
    found
}

fn refused(refusal: &RefusalRecord) -> String {
    let hint = refusal.hint.as_ref().map_or_else(String::new, |h| format!("; hint: {h}"));
    format!("refused: {}{hint}", refusal.reason)
}

/// From launch to end over all stored runs of a cell.
fn run_time(cell: &Cell) -> Option<Duration> {
    let times = cell.repetitions.iter().map(|r| &r.record().timeline);
    let total: u64 = times.map(|t| t.ended_ns.saturating_sub(t.launched_ns)).sum();
    (!cell.repetitions.is_empty()).then(|| Duration::from_nanos(total))
}

fn standing(cell: &Cell) -> Standing {
    let runs = || cell.repetitions.iter().map(|r| (r.record().repetition, &r.record().outcome));
    let told = |(n, outcome): (u32, &Outcome)| format!("repetition {n}: {}", outcome_in_full(outcome));
    let records = || cell.repetitions.iter().map(|r| r.record());
    if let Some(first) = records().find(|r| r.standing() == Compared::Failed).map(|r| &r.outcome) {
        let each = records().filter(|r| r.standing() == Compared::Failed).map(|r| told((r.repetition, &r.outcome))).collect();
        return Standing::Failed { kind: first.as_str(), why: outcome_in_full(first), each };
    }
    let unexpected: Vec<&RunRecord> = records().filter(|r| r.standing() == Compared::Unexpected).collect();
    if let Some(first) = unexpected.first() {
        let why = first.expectation().unwrap_or_default();
        let each = unexpected.iter().map(|r| told((r.repetition, &r.outcome))).collect();
        return Standing::Failed { kind: "unexpected", why, each };
    }
    if let Some(first) = records().find(|r| r.standing() == Compared::Expected) {
        let why = first.cell.expect.as_ref().map_or_else(String::new, |expected| format!("expected, {}: ", expected.reason));
        return Standing::Skipped { why: format!("{why}{}", outcome_in_full(&first.outcome)) };
    }
    if let Some((_, first)) = runs().find(|(_, outcome)| matches!(outcome, Outcome::OutOfMemory { .. })) {
        return Standing::Skipped { why: outcome_in_full(first) };
    }
    let of = |word: &str| cell.outcomes.get(word).copied().unwrap_or(0);
    let left = [(of("interrupted"), "interrupted"), (of("missing"), "not run")];
    let left: Vec<String> = left.iter().filter(|(n, _)| *n > 0).map(|(n, w)| format!("{} {w}", number::runs(*n))).collect();
    if !left.is_empty() {
        return Standing::Skipped { why: format!("incomplete: {}", left.join(", ")) };
    }
    if !cell.counts() {
        let why = cell.validity.reasons.first().cloned().unwrap_or_else(|| "no usable run".into());
        return Standing::Failed { kind: "discarded", why: format!("discarded: {why}"), each: cell.validity.reasons.clone() };
    }
    Standing::Passed
}

/// Remarks on a cell: its validity unless valid, anything unusual, its numbers.
fn said(cell: &Cell) -> Vec<String> {
    let mut lines = Vec::new();
    if cell.counts() && !cell.validity.reasons.is_empty() {
        lines.push(format!("{}: {}", cell.verdict().text(), cell.validity.reasons.join("; ")));
    }
    lines.extend(cell.suspicious.iter().map(|s| format!("suspicious: {s}")));
    let requests = [Key::LatencyP99, Key::LatencyP99OfSolo, Key::WithinSlo, Key::Goodput];
    for key in [Key::EpochTime, Key::Makespan, Key::Slowdown, Key::ThroughputGain].into_iter().chain(requests) {
        lines.extend(cell.get(key).map(|q| format!("{}: {}", key.name, number::with_interval(q))));
    }
    lines
}

/// Of a cell of a trace how long each run took.
fn totals<'a>(analysis: &'a Analysis, cell: &'a Cell) -> impl Iterator<Item = String> {
    let total = |run: &TraceRun| format!("repetition {}: {} {}", run.repetition, Key::Total.name, number::three(run.total_s()));
    analysis.traces.of_cell(cell.name()).map(total)
}

/// Text of an attribute, in which XML readers convert other white space to spaces anyway.
fn line(text: &str) -> String {
    printed(text).replace(['\n', '\t'], " ")
}

/// Characters that XML does not allow are written by code point: `\u{1b}`.
fn printed(text: &str) -> String {
    let of = |c: char| match c {
        '\n' | '\t' => c.to_string(),
        c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => format!("\\u{{{:x}}}", c as u32),
        c => c.to_string(),
    };
    text.chars().map(of).collect()
}
