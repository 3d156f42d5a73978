//! Repetitions until intervals are as narrow as the experiment wants: after the planned ones, cells that are too wide are measured again,
//! a repetition at a time, up to the limit that the campaign declared before its first run.

use std::collections::BTreeSet;

use collo_analysis::campaign::width::WidthVerdict;
use collo_measure::campaign::{CampaignEnd, CampaignOptions, Finished, Only};
use collo_measure::session::Request;
use collo_plan::project::Project;
use collo_plan::select::Selection;
use collo_quantity::number;
use collo_report::Report;
use collo_text::Diagnostics;

use super::steps;
use crate::context::Context;
use crate::output;

/// The campaign with its further repetitions; at once if it stopped early, or wants no width.
pub fn narrow(
    context: &Context<'_>,
    project: &Project,
    request: &Request,
    mut finished: Finished,
    resume: &str,
) -> Result<Finished, Diagnostics> {
    while finished.end == CampaignEnd::Complete
        && finished.campaign.manifest().until.is_some()
        && finished.campaign.progress()?.is_complete()
    {
        let report = Report::of(&finished.campaign)?;
        let wide = report.analysis.widths().unwrap_or_default().into_iter().filter(|(_, verdict)| *verdict == WidthVerdict::Wide);
        let cells: BTreeSet<String> = wide.map(|(cell, _)| cell.name().to_string()).collect();
        let Some(first) = cells.first() else { break };
        let others = if cells.len() > 1 { format!(" and {} more", cells.len() - 1) } else { String::new() };
        output::note(format!(
            "{} wider than wanted, one more repetition: `{first}`{others}",
            number::count(cells.len(), "interval")
        ));
        let planned = finished.campaign.manifest().plan.order.len();
        let again = Request {
            selection: Some(Selection::Cells(cells)),
            choice: CampaignOptions {
                campaign: Some(finished.campaign.clone()),
                more: Some(1),
                new: false,
                only: Only::Missing,
                spent: finished.spent.clone(),
                ..request.choice.clone()
            },
            ..request.clone()
        };
        let before = (finished.put_back, std::mem::take(&mut finished.answers));
        let session = steps::planned(project, again, false)?;
        finished = steps::measured(context, session, resume)?;
        finished.put_back &= before.0;
        finished.answers.splice(0..0, before.1);
        if finished.campaign.manifest().plan.order.len() <= planned {
            // Nothing could be added: it would go on forever.
            break;
        }
    }
    Ok(finished)
}
