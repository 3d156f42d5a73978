//! `collo verify`: is a campaign complete, attested, intact and usable?

use collo_analysis::campaign::reference::ReferenceVerdict;
use collo_analysis::cell::verdict::CellVerdict;
use collo_quantity::number;
use collo_report::Report;
use collo_schedule::{Act, Happened, Rules, replay};
use collo_store::{CampaignFolder, Error, Finding, HAPPENED, Level, Standing, StoredRun, TraceRecord, read_attempts};
use collo_text::read_small_text;
use serde_json::{Value, json};

use crate::answer::{Answer, Answered};
use crate::context::Context;
use crate::{args, exit, output};

/// The way out where a merged campaign is not complete: it is not continued itself.
pub const MERGED_LACKS: &str = "measure what is missing in the campaigns that it was merged from, and merge again";

pub fn run(context: &Context<'_>, a: &args::Verify) -> Answered {
    let (campaign, _unpacked) = context.campaign(&a.campaign)?;
    let mut findings = collo_store::verify(&campaign)?;
    findings.extend(replays(&campaign)?);
    // Without a report neither can be told.
    if let Ok(report) = Report::of(&campaign) {
        findings.push(usable(&report));
        findings.extend(references(&report));
    }
    let no = findings.iter().any(|f| f.level == Level::No);
    let mut answer = Answer::of(json!({"campaign": campaign.manifest().id, "holds": !no, "digest": campaign.digest()?,
        "findings": findings}));
    findings.iter().for_each(|f| answer.line(output::as_typed(&line(f))));
    answer.line(format!("campaign.json: {}", campaign.digest()?));
    // Measured again, a number is what it was.
    let says_no = |intact: bool| {
        let no = findings.iter().filter(|f| f.level == Level::No && f.subject != "references");
        no.into_iter().any(|f| (f.subject == "intact") == intact)
    };
    if says_no(true) {
        // What is moved away is missing, and what is missing is measured again.
        answer.note(EDITED);
    }
    if says_no(false) {
        let short = campaign.manifest().short_id();
        let progress = campaign.progress()?;
        let has_failed = campaign.runs()?.0.values().any(|run| run.record.standing() == Standing::Failed);
        answer.note(match (progress.running, progress.is_complete(), campaign.manifest().is_merged()) {
            (true, ..) => format!("it is still being measured: collo status {short}"),
            (.., true) => MERGED_LACKS.into(),
            (_, false, _) if has_failed => {
                format!("next: collo run {short}     and what failed: collo run {short} --only failed")
            }
            (_, false, _) => format!("next: collo run {short}"),
            (_, true, _) if has_failed => format!("next: collo run {short} --only failed"),
            // No run of it is measured again.
            (_, true, _) => format!("next: collo run {} --new", campaign.manifest().experiment),
        });
    }
    answer.code = if no { exit::FAILED } else { exit::DONE };
    Ok(answer)
}

/// What becomes of a run that was edited.
pub const EDITED: &str =
    "a run that differs from its record is never used; restore its files, or move its folder away to measure it again";

/// Whether a fresh ledger, told the same, decides as the stored runs of traces did; `None` without such runs.
fn replays(campaign: &CampaignFolder) -> Result<Option<Finding>, Error> {
    let (mut runs, mut decisions, mut differs) = (0, 0, Vec::new());
    for (folder, run) in campaign.runs()?.0 {
        let Some(trace) = &run.record.trace else { continue };
        runs += 1;
        match replayed(trace, &run) {
            Ok(same) => decisions += same,
            Err(why) => differs.push(format!("`{folder}`: {why}")),
        }
    }
    let (level, text) = match differs.first() {
        None => {
            let (runs, decisions) = (number::count(runs, "run"), number::count(decisions, "placement"));
            (Level::Ok, format!("a fresh ledger decides the same in {runs}, {decisions}"))
        }
        Some(first) => (Level::No, format!("{} of {} of traces; {first}", differs.len(), number::count(runs, "run"))),
    };
    Ok((runs > 0).then_some(Finding { level, subject: "replay", text }))
}

/// Of the events of a run, well above those of a hundred thousand tasks.
const MOST_EVENTS_BYTES: u64 = 128 << 20;

/// How many placements are the same in a run and in its replay; or what differs.
fn replayed(trace: &TraceRecord, run: &StoredRun) -> Result<usize, String> {
    let happened = run.intact(HAPPENED)?;
    let rules: Rules = serde_json::from_value(trace.rules.clone()).map_err(|e| format!("its rules cannot be read: {e}"))?;
    let text = read_small_text(&happened, MOST_EVENTS_BYTES).map_err(|e| e.to_string())?;
    let event = |line: &str| -> Option<(u64, Happened)> {
        let mut line: Value = serde_json::from_str(line).ok()?;
        Some((line["at_ns"].as_u64()?, serde_json::from_value(line["happened"].take()).ok()?))
    };
    let events: Option<Vec<(u64, Happened)>> = text.lines().map(event).collect();
    let events = events.ok_or_else(|| format!("a line of {HAPPENED} cannot be read"))?;
    let replay = replay(&rules, events).map_err(|e| e.what().to_string())?;
    let again: Vec<(u32, Vec<u32>)> = replay
        .acts
        .into_iter()
        .filter_map(|(_, act)| match act {
            Act::Start(attempt) => Some((attempt.task.0, attempt.cards.iter().map(|card| card.0).collect())),
            _ => None,
        })
        .collect();
    let stored = read_attempts(&run.path).map_err(|e| e.to_string())?;
    let stored: Vec<(u32, Vec<u32>)> = stored.into_iter().map(|attempt| (attempt.task, attempt.cards)).collect();
    match stored == again {
        true => Ok(stored.len()),
        false => {
            let first = stored.iter().zip(&again).position(|(a, b)| a != b).unwrap_or(stored.len().min(again.len()));
            Err(format!("attempt {first} was placed otherwise than its record of events says"))
        }
    }
}

/// Whether its numbers are as the references of the experiment; `None` without any for this device.
fn references(report: &Report) -> Option<Finding> {
    let all = &report.analysis.references;
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
    let cells: Vec<&collo_analysis::cell::Cell> = report.analysis.all_cells().collect();
    let valid = cells.iter().filter(|c| c.is_valid()).count();
    let no_memory = |c: &&&collo_analysis::cell::Cell| c.verdict() == CellVerdict::OutOfMemory;
    let results = valid + cells.iter().filter(no_memory).count();
    let mut text = format!("{valid} of {} valid", number::count(cells.len(), "cell"));
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

fn line(f: &Finding) -> String {
    let mark = match f.level {
        Level::Ok => '✓',
        Level::Warning => '!',
        Level::No => '✗',
    };
    format!("{mark} {:<11} {}", f.subject, f.text)
}
