//! `collo show`: a campaign, one of its cells in full, or the remains of a crash.

use collo_store::{CampaignFolder, Diagnostic, Diagnostics, read_small};
use serde_json::json;

use super::{Context, Ended};
use crate::{args, exit, output};
use collo_measure::shown;

/// Limit for the events of an interrupted run; a longer file is not shown.
const LIMIT_BYTES: u64 = 64 << 20;

pub fn run(context: &Context<'_>, a: &args::Show) -> Ended {
    let campaign = context.runs()?.find(&a.campaign)?;
    if a.partial {
        return partial(&campaign);
    }
    let report = collo_report::Report::of(&campaign)?;
    match &a.cell {
        None if context.arguments.json => output::json(&collo_report::json(&report)),
        None => {
            output::result(collo_report::terminal(&report, output::width()).trim_end());
            failures(&campaign)?;
        }
        Some(asked) => {
            let unknown = || {
                Diagnostic::new(format!("campaign `{}` has no cell `{asked}`", campaign.manifest().id))
                    .hint(format!("its cells: `collo show {}`", a.campaign))
            };
            let label = report.analysis.cell(asked).ok_or_else(unknown)?.name();
            if context.arguments.json {
                let all = collo_report::json(&report);
                let cells = all["cells"].as_array().into_iter().flatten();
                for cell in cells.filter(|c| c["cell"].as_str() == Some(label)) {
                    let mut answer = json!({"schema": all["schema"], "campaign": all["campaign"]});
                    for (key, value) in cell.as_object().into_iter().flatten() {
                        answer[key] = value.clone();
                    }
                    output::json(&answer);
                }
            } else {
                output::result(collo_report::terminal_cell(&report, label).unwrap_or_default().trim_end());
            }
        }
    }
    Ok(exit::DONE)
}

/// Runs that did not complete, each with its reason and its log.
fn failures(campaign: &CampaignFolder) -> Result<(), Diagnostics> {
    let (runs, foreign) = campaign.runs()?;
    for run in runs.values().filter(|r| r.record.outcome.is_failure()) {
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
