//! `collo verify`: is a campaign complete, attested, intact and usable?

use collo_report::{CellVerdict, ReferenceVerdict, Report};
use collo_store::{Finding, Level};
use serde_json::json;

use super::{Context, Ended};
use crate::{args, exit, output};

/// The way out where a merged campaign is not complete: it is not continued itself.
pub const MERGED_LACKS: &str = "measure what is missing in the campaigns that it was merged from, and merge again";

pub fn run(context: &Context<'_>, a: &args::Verify) -> Ended {
    let (campaign, _unpacked) = context.campaign(&a.campaign)?;
    let mut findings = collo_store::verify(&campaign)?;
    // Without a report neither can be told.
    if let Ok(report) = Report::of(&campaign) {
        findings.push(usable(&report));
        findings.extend(references(&report));
    }
    let no = findings.iter().any(|f| f.level == Level::No);
    let id = &campaign.manifest().id;
    if context.arguments.json {
        let list: Vec<_> =
            findings.iter().map(|f| json!({"subject": f.subject, "level": word(f.level), "text": f.text})).collect();
        output::json(&json!({"schema": 1, "campaign": id, "holds": !no, "findings": list}));
    } else {
        findings.iter().for_each(|f| output::line(line(f)));
        // Measured again, a number is what it was.
        let says_no = |intact: bool| {
            let no = findings.iter().filter(|f| f.level == Level::No && f.subject != "references");
            no.into_iter().any(|f| (f.subject == "intact") == intact)
        };
        if says_no(true) {
            // What is moved away is missing, and what is missing is measured again.
            output::note(
                "a run that differs from its record is never used; restore its files, or move its folder away to measure it again",
            );
        }
        if says_no(false) {
            let short = campaign.manifest().short_id();
            let progress = campaign.progress()?;
            output::note(match (progress.running, progress.is_complete(), campaign.manifest().is_merged()) {
                (true, ..) => format!("it is still being measured: collo status {short}"),
                (.., true) => MERGED_LACKS.into(),
                (_, false, _) => format!("next: collo run {short}     and what failed: collo run {short} --only failed"),
                (_, true, _) => format!("next: collo run {short} --only failed"),
            });
        }
    }
    Ok(if no { exit::FAILED } else { exit::DONE })
}

/// Whether its numbers are as the references of the experiment; `None` without any for this device.
fn references(report: &Report) -> Option<Finding> {
    let all = report.analysis.references();
    let of = |verdict: ReferenceVerdict| all.iter().filter(move |r| r.verdict == verdict);
    let (outside, unmeasured) = (of(ReferenceVerdict::Outside).count(), of(ReferenceVerdict::Unmeasured).count());
    let mut text = format!("{} of {} within their tolerance", all.len() - outside - unmeasured, all.len());
    let first = of(ReferenceVerdict::Outside).chain(of(ReferenceVerdict::Unmeasured)).next();
    if let Some(first) = first {
        text += &format!("; {}", first.text());
        if outside + unmeasured > 1 {
            text += "; the others: `collo report`, Measurement quality";
        }
    }
    let level = match (outside, unmeasured) {
        (0, 0) => Level::Ok,
        (0, _) => Level::Warning,
        _ => Level::No,
    };
    (!all.is_empty()).then_some(Finding { level, subject: "references", text })
}

/// Whether guidelines can rest on its cells.
fn usable(report: &Report) -> Finding {
    let cells = &report.analysis.cells;
    let valid = cells.iter().filter(|c| c.is_valid()).count();
    let no_memory = |c: &&collo_report::Cell| c.verdict() == CellVerdict::OutOfMemory;
    let results = valid + cells.iter().filter(no_memory).count();
    let mut text = format!("{valid} of {} cells valid", cells.len());
    if results > valid {
        text += &format!(", {} out of memory", results - valid);
    }
    if let Some(first) = cells.iter().find(|c| !c.is_valid() && !no_memory(c)) {
        let why = first.validity.reasons.first().map(|why| format!(": {why}")).unwrap_or_default();
        text += &format!("; `{}` is {}{why}", first.name(), first.verdict().text());
        if cells.len() - results > 1 {
            text += "; the others: `collo show`";
        }
    }
    let level = if results == cells.len() { Level::Ok } else { Level::Warning };
    Finding { level, subject: "usable", text }
}

fn word(level: Level) -> &'static str {
    match level {
        Level::Ok => "ok",
        Level::Warning => "warning",
        Level::No => "no",
    }
}

fn line(f: &Finding) -> String {
    let mark = match f.level {
        Level::Ok => '✓',
        Level::Warning => '!',
        Level::No => '✗',
    };
    format!("{mark} {:<11} {}", f.subject, f.text)
}
