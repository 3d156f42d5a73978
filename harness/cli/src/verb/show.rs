//! `collo show`: a campaign, one of its cells in full, or the remains of a crash.

use collo_store::{CampaignFolder, Diagnostic, Diagnostics, read_small};
use serde_json::json;

use super::{Context, Ended};
use crate::{args, exit, say};
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
        None if context.arguments.json => say::json(&collo_report::json(&report)),
        None => {
            say::result(collo_report::terminal(&report, say::width()).trim_end());
            failures(&campaign)?;
        }
        Some(asked) => {
            let unknown = || {
                Diagnostic::new(format!("campaign `{}` has no cell `{asked}`", campaign.manifest().id))
                    .hint(format!("its cells: `collo show {}`", a.campaign))
            };
            // People may type `x` for `×`, and a part of a label that only one cell has.
            let text = collo_report::terminal_cell(&report, asked)
                .or_else(|| collo_report::terminal_cell(&report, &with_sign(asked)))
                .ok_or_else(unknown)?;
            if context.arguments.json {
                let all = collo_report::json(&report);
                let cell = |asked: &str| report.analysis.cell(asked);
                let label = cell(asked).or_else(|| cell(&with_sign(asked))).map(|c| c.record.cell.clone());
                let cells = all["cells"].as_array().into_iter().flatten();
                for cell in cells.filter(|c| c["cell"].as_str() == label.as_deref()) {
                    let mut answer = json!({"schema": all["schema"], "campaign": all["campaign"]});
                    for (key, value) in cell.as_object().into_iter().flatten() {
                        answer[key] = value.clone();
                    }
                    say::json(&answer);
                }
            } else {
                say::result(text.trim_end());
            }
        }
    }
    Ok(exit::DONE)
}

/// `tinyx2 naive` → `tiny×2 naive`
fn with_sign(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    let mut before = ' ';
    while let Some(c) = chars.next() {
        let sign = c == 'x' && before.is_alphanumeric() && chars.peek().is_some_and(char::is_ascii_digit);
        out.push(if sign { '×' } else { c });
        before = c;
    }
    out
}

/// Runs that did not complete, each with its reason and its log.
fn failures(campaign: &CampaignFolder) -> Result<(), Diagnostics> {
    let (runs, foreign) = campaign.runs()?;
    for run in runs.values().filter(|r| r.record.outcome.is_failure()) {
        say::result("");
        for line in crate::progress::words::failed(run) {
            say::line(line);
        }
    }
    for f in foreign {
        say::warning(format!("`{}`: {}; left alone", shown(&f.path), f.reason));
    }
    Ok(())
}

fn partial(campaign: &CampaignFolder) -> Ended {
    let partials = campaign.partials()?;
    if partials.is_empty() {
        say::remark(format!("nothing of `{}` was cut off", campaign.manifest().id));
    }
    for folder in partials {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().replace(".partial-", "");
        say::line(format!("{name}, cut off; no number of it is used ({})", shown(&folder)));
        let events = read_small(&folder.join("events.jsonl"), LIMIT_BYTES).unwrap_or_default();
        let events = String::from_utf8_lossy(&events);
        for line in events.lines() {
            say::line(format!("  {line}"));
        }
    }
    Ok(exit::DONE)
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_x_before_a_number_is_a_count_and_any_other_x_is_a_letter() {
        assert_eq!(super::with_sign("tinyx2 naive"), "tiny×2 naive");
        assert_eq!(super::with_sign("xlnet x2"), "xlnet x2");
    }
}
