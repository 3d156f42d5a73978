//! `collo verify`: is a campaign complete, attested, intact and usable?

use collo_store::{CampaignFolder, Finding, Level};
use serde_json::json;

use super::{Context, Ended};
use crate::{args, exit, output};

pub fn run(context: &Context<'_>, a: &args::Verify) -> Ended {
    let campaign = context.runs()?.find(&a.campaign)?;
    let mut findings = collo_store::verify(&campaign)?;
    findings.extend(usable(&campaign));
    let no = findings.iter().any(|f| f.level == Level::No);
    let id = &campaign.manifest().id;
    if context.arguments.json {
        let list: Vec<_> =
            findings.iter().map(|f| json!({"subject": f.subject, "level": word(f.level), "text": f.text})).collect();
        output::json(&json!({"schema": 1, "campaign": id, "holds": !no, "findings": list}));
    } else {
        findings.iter().for_each(|f| output::line(line(f)));
        let name = &campaign.manifest().experiment;
        let says_no = |intact: bool| findings.iter().any(|f| f.level == Level::No && (f.subject == "intact") == intact);
        if says_no(true) {
            // What is moved away is missing, and what is missing is measured again.
            output::note(
                "a run that differs from its record is never used; restore its files, or move its folder away to measure it again",
            );
        }
        if says_no(false) {
            output::note(format!("next: collo run {name} --only failed     or the missing ones: collo run {name}"));
        }
    }
    Ok(if no { exit::FAILED } else { exit::DONE })
}

/// Whether guidelines can rest on its cells; `None` where there is no report to tell by.
fn usable(campaign: &CampaignFolder) -> Option<Finding> {
    let report = collo_report::Report::of(campaign).ok()?;
    let cells = &report.analysis.cells;
    let valid = cells.iter().filter(|c| c.is_valid()).count();
    let mut text = format!("{valid} of {} cells valid", cells.len());
    if let Some(first) = cells.iter().find(|c| !c.is_valid()) {
        let why = first.validity.reasons.first().map(|why| format!(": {why}")).unwrap_or_default();
        text += &format!("; `{}` is {}{why}", first.name(), collo_report::validity_word(first.validity.verdict));
        if cells.len() - valid > 1 {
            text += "; the others: `collo show`";
        }
    }
    let level = if valid == cells.len() { Level::Ok } else { Level::Warning };
    Some(Finding { level, subject: "usable", text })
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
