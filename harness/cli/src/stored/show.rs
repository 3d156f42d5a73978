//! `collo show`: a campaign, one of its cells in full, or the remains of a crash.

use collo_store::{CampaignFolder, Comment, Error, Outcome};
use collo_text::{Diagnostic, Diagnostics, Remark, nearest, read_small, shown};
use serde_json::json;

use crate::answer::{Answer, Answered};
use crate::context::Context;
use crate::{args, bundled};

/// Limit for the events of an interrupted run; a longer file is not shown.
const LIMIT_BYTES: u64 = 64 << 20;
/// Limit for a comment, which is shown in one line.
const MOST_CHARACTERS: usize = 2_000;

pub fn run(context: &Context<'_>, a: &args::Show) -> Answered {
    let runs = context.runs()?;
    if let Some(text) = &a.comment {
        return comment(&runs.find(&a.campaign)?, text.trim());
    }
    let path = context.folder()?.join(&a.campaign);
    let (unpacked, _scratch) = match bundled::is_bundle(&path) && path.is_file() {
        true => context.campaign(&a.campaign).map(|(campaign, scratch)| (Some(campaign), scratch))?,
        false => (None, None),
    };
    let campaign = match unpacked.map_or_else(|| runs.find(&a.campaign), Ok) {
        Ok(campaign) => campaign,
        // Perhaps it is a cell of the newest campaign.
        Err(unknown @ Error::NotFound { .. }) if a.cell.is_none() && !a.partial => {
            let Ok(newest) = runs.find("last") else { return Err(unknown.into()) };
            let report = super::report::of(&runs, &newest)?;
            if report.analysis.cells_named(&a.campaign).is_empty() {
                return Err(unknown.into());
            }
            return cell(context, &newest, &report, &a.campaign);
        }
        Err(e) => return Err(e.into()),
    };
    if a.partial {
        return partial(&campaign);
    }
    let report = super::report::of(&runs, &campaign)?;
    if a.provenance {
        let text = |width| collo_report::terminal_provenance(&report, width);
        return Ok(Answer::either(context, || collo_report::json(&report), text));
    }
    if let Some(asked) = &a.cell {
        return cell(context, &campaign, &report, asked);
    }
    let mut answer = super::report::answer(context, &report);
    campaign.comments().iter().for_each(|comment| answer.line(format!("comment, {}", line(comment))));
    failures(&campaign, &mut answer)?;
    Ok(answer)
}

/// Add a comment to a campaign; the answer are all of them.
fn comment(campaign: &CampaignFolder, text: &str) -> Answered {
    let characters = text.chars().count();
    if text.is_empty() {
        return Err(Diagnostic::new("the comment is empty").hint("`collo show last --comment \"fans at full speed\"`").into());
    }
    if characters > MOST_CHARACTERS {
        let what = format!("a comment has at most {MOST_CHARACTERS} characters, this one has {characters}");
        return Err(Diagnostic::new(what).hint("write it to a file, and name the file").into());
    }
    campaign.comment(text)?;
    let comments = campaign.comments();
    let mut answer = Answer::of(json!({"campaign": campaign.manifest().id, "comments": comments}));
    comments.iter().for_each(|comment| answer.line(line(comment)));
    Ok(answer)
}

fn line(comment: &Comment) -> String {
    format!("{}: {}", comment.at_utc, comment.text)
}

/// One cell in full.
fn cell(context: &Context<'_>, campaign: &CampaignFolder, report: &collo_report::Report, asked: &str) -> Answered {
    let label = match report.analysis.cells_named(asked)[..] {
        [only] => only.name(),
        [] => {
            let m = campaign.manifest();
            let what = format!("campaign `{}` has no cell `{asked}`", m.id);
            let all = format!("its cells: `collo show {}`", m.short_id());
            return Err(Diagnostic::new(what)
                .hint(match near(asked, &report.analysis.all_cells().map(|cell| cell.name()).collect::<Vec<_>>()) {
                    Some(near) => format!("did you mean `{near}`? {all}"),
                    None if asked.parse::<usize>().is_ok() => {
                        format!("they have numbers from 1 to {}; {all}", m.plan.cells.len())
                    }
                    None => all,
                })
                .into());
        }
        ref several => {
            let labels: Vec<String> = several.iter().take(4).map(|c| format!("`{}`", c.name())).collect();
            let more = if several.len() > labels.len() { ", …" } else { "" };
            let what = format!("`{asked}` begins {} cells: {}{more}", several.len(), labels.join(", "));
            return Err(Diagnostic::new(what).hint(format!("give more of it, or the slug: `{}`", several[0].record.slug)).into());
        }
    };
    let object = || collo_report::json_cell(report, label).unwrap_or_default();
    let mut answer =
        Answer::either(context, object, |width| collo_report::terminal_cell(report, label, width).unwrap_or_default());
    let (runs, _) = campaign.runs()?;
    for run in runs.values().filter(|r| r.record.cell.cell == label && r.record.outcome != Outcome::Completed) {
        answer.lines("");
        crate::progress::words::post_mortem(run).into_iter().for_each(|line| answer.line(line));
    }
    Ok(answer)
}

/// The name that is nearest to a mistyped one, or that begins nearest to it.
fn near<'a>(asked: &str, names: &[&'a str]) -> Option<&'a str> {
    nearest(asked, names.iter().copied()).or_else(|| {
        let length = asked.chars().count();
        let beginnings: Vec<(String, &str)> = names.iter().map(|name| (name.chars().take(length).collect(), *name)).collect();
        let begins = nearest(&asked.replace('x', "×"), beginnings.iter().map(|(beginning, _)| beginning.as_str()))?;
        beginnings.iter().find(|(beginning, _)| beginning == begins).map(|(_, name)| *name)
    })
}

/// Runs that did not complete, each with its reason and its log.
fn failures(campaign: &CampaignFolder, answer: &mut Answer) -> Result<(), Diagnostics> {
    let (runs, foreign) = campaign.runs()?;
    for run in runs.values().filter(|r| r.record.standing().is_bad()) {
        answer.lines("");
        crate::progress::words::failed(run).into_iter().for_each(|line| answer.line(line));
    }
    for f in foreign {
        answer.beside(Remark::Warning(format!("`{}`: {}; left alone", shown(&f.path), f.reason)));
    }
    Ok(())
}

fn partial(campaign: &CampaignFolder) -> Answered {
    let partials = campaign.partials()?;
    let mut answer = Answer::default();
    if partials.is_empty() {
        answer.note(format!("no run of `{}` was cut off", campaign.manifest().id));
    }
    for folder in partials {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().replace(".partial-", "");
        answer.line(format!("{name}, cut off; none of its numbers is used ({})", shown(&folder)));
        let events = read_small(&folder.join("events.jsonl"), LIMIT_BYTES).unwrap_or_default();
        String::from_utf8_lossy(&events).lines().for_each(|line| answer.line(format!("  {line}")));
    }
    Ok(answer)
}
