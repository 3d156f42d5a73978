//! `collo show`: a campaign, one of its cells in full, or the remains of a crash.

use collo_store::{CampaignFolder, Error, Outcome};
use collo_text::{Diagnostic, Diagnostics, read_small};

use crate::context::{Context, Ended};
use crate::{args, bundled, exit, output};
use collo_text::shown;

/// Limit for the events of an interrupted run; a longer file is not shown.
const LIMIT_BYTES: u64 = 64 << 20;

pub fn run(context: &Context<'_>, a: &args::Show) -> Ended {
    let runs = context.runs()?;
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
    if a.provenance && !context.arguments.json {
        output::result(collo_report::terminal_provenance(&report, output::width()).trim_end());
        return Ok(exit::DONE);
    }
    match &a.cell {
        None if context.arguments.json => output::json(&collo_report::json(&report)),
        None => {
            output::result(collo_report::terminal(&report, output::width()).trim_end());
            super::comment::show(&campaign);
            failures(&campaign)?;
        }
        Some(asked) => return cell(context, &campaign, &report, asked),
    }
    Ok(exit::DONE)
}

/// One cell in full.
fn cell(context: &Context<'_>, campaign: &CampaignFolder, report: &collo_report::Report, asked: &str) -> Ended {
    let label = match report.analysis.cells_named(asked)[..] {
        [only] => only.name(),
        [] => {
            let what = format!("campaign `{}` has no cell `{asked}`", campaign.manifest().id);
            return Err(Diagnostic::new(what).hint(format!("its cells: `collo show {}`", campaign.manifest().short_id())).into());
        }
        ref several => {
            let labels: Vec<String> = several.iter().take(4).map(|c| format!("`{}`", c.name())).collect();
            let more = if several.len() > labels.len() { ", …" } else { "" };
            let what = format!("`{asked}` begins {} cells: {}{more}", several.len(), labels.join(", "));
            return Err(Diagnostic::new(what).hint(format!("give more of it, or the slug: `{}`", several[0].record.slug)).into());
        }
    };
    if context.arguments.json {
        collo_report::json_cell(report, label).iter().for_each(output::json);
    } else {
        output::result(collo_report::terminal_cell(report, label, output::width()).unwrap_or_default().trim_end());
        let (runs, _) = campaign.runs()?;
        for run in runs.values().filter(|r| r.record.cell.cell == label && r.record.outcome != Outcome::Completed) {
            output::result("");
            crate::progress::words::post_mortem(run).into_iter().for_each(output::line);
        }
    }
    Ok(exit::DONE)
}

/// Runs that did not complete, each with its reason and its log.
fn failures(campaign: &CampaignFolder) -> Result<(), Diagnostics> {
    let (runs, foreign) = campaign.runs()?;
    for run in runs.values().filter(|r| r.record.standing().is_bad()) {
        output::result("");
        for line in crate::progress::words::failed(run) {
            output::line(line);
        }
    }
    for f in foreign {
        output::warning(format!("`{}`: {}; left alone", shown(&f.path), f.reason));
    }
    Ok(())
}

fn partial(campaign: &CampaignFolder) -> Ended {
    let partials = campaign.partials()?;
    if partials.is_empty() {
        output::note(format!("no run of `{}` was cut off", campaign.manifest().id));
    }
    for folder in partials {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().replace(".partial-", "");
        output::line(format!("{name}, cut off; none of its numbers is used ({})", shown(&folder)));
        let events = read_small(&folder.join("events.jsonl"), LIMIT_BYTES).unwrap_or_default();
        let events = String::from_utf8_lossy(&events);
        for line in events.lines() {
            output::line(format!("  {line}"));
        }
    }
    Ok(exit::DONE)
}
