//! `collo verify`: is a campaign complete, attested and intact?

use collo_store::{Finding, Level};
use serde_json::json;

use super::{Context, Ended};
use crate::{args, exit, output};

pub fn run(context: &Context<'_>, a: &args::Verify) -> Ended {
    let campaign = context.runs()?.find(&a.campaign)?;
    let findings = collo_store::verify(&campaign)?;
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
