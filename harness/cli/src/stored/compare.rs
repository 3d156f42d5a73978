//! `collo compare`: two campaigns with a verdict per cell; several GPU models; or a campaign with published results.

use std::path::Path;

use collo_compare::campaigns::{self, Options};
use collo_compare::history::{self, CampaignVariation};
use collo_compare::side::ComparedReport;
use collo_figures::document::Present;
use collo_store::{CampaignFolder, Runs};
use collo_text::{Diagnostic, Diagnostics, Remark, shown};

use crate::answer::{Answer, Answered};
use crate::args::compare::{By, Compare};
use crate::context::Context;
use crate::exit;

/// The keyword for the published results, in place of a campaign.
const STUDY: &str = "published:study";

pub fn run(context: &Context<'_>, a: &Compare) -> Answered {
    let runs = context.runs()?;
    if a.generations {
        return generations(context, a, &runs);
    }
    let [left, right] = &a.sides[..] else {
        return Err(Diagnostic::new(format!("a comparison has two sides, not {}", a.sides.len()))
            .hint("to compare several GPU models: `collo compare --generations A B C`")
            .into());
    };
    match (left == STUDY, right == STUDY) {
        (true, true) => {
            return Err(Diagnostic::new("both sides are the published study")
                .hint(format!("`collo compare {STUDY} last`"))
                .into());
        }
        (true, false) => return published(context, a, &side(&runs, right)?.report),
        (false, true) => return published(context, a, &side(&runs, left)?.report),
        (false, false) => {}
    }
    let (l, r) = (side(&runs, left)?, side(&runs, right)?);
    let variation = variation(&runs, [&l, &r]);
    let (l, r) = (l.report, r.report);
    if l.campaign == r.campaign && is_stored(&runs, left) && is_stored(&runs, right) {
        return Err(Diagnostic::new(format!("`{left}` and `{right}` are the same campaign, {}", r.campaign))
            .hint("previous and newest: `collo compare last-1 last`")
            .into());
    }
    let by = a.by.map(|by| match by {
        By::Mode => campaigns::By::Mode,
        By::Workload => campaigns::By::Workload,
    });
    let comparison = campaigns::compare(&l, &r, &Options { quantity: a.quantity.clone(), by, variation })?;
    let failed = a.fail_on.is_some() && comparison.has_worse();
    answer(context, a, &comparison, if failed { exit::FAILED } else { exit::DONE })
}

/// The results, with the page if requested.
fn answer(context: &Context<'_>, a: &Compare, found: &impl Present, code: u8) -> Answered {
    let mut answer = Answer::present(context, found);
    if let Some(folder) = &a.to {
        answer.after([Remark::Note(format!("page: {}", shown(&found.write(folder)?.html)))]);
    }
    answer.code = code;
    Ok(answer)
}

/// One side, and where it was measured if that is stored.
struct Side {
    report: ComparedReport,
    place: Option<String>,
}

impl From<ComparedReport> for Side {
    fn from(report: ComparedReport) -> Side {
        Side { report, place: None }
    }
}

/// What campaigns of the experiment differ by, from the nights that are kept; `None` for different experiments.
fn variation(runs: &Runs, [left, right]: [&Side; 2]) -> Option<CampaignVariation> {
    let (l, r) = (&left.report, &right.report);
    let reports = runs.path().parent()?.join("reports");
    let (campaigns, places) = ([l.campaign.as_str(), &r.campaign], [left.place.clone(), right.place.clone()]);
    if l.experiment == r.experiment { history::between(&reports, &l.experiment, campaigns, places) } else { None }
}

/// One side of the comparison as typed: a file, a folder with a campaign or a report in it, or a campaign of `runs/`.
fn side(runs: &Runs, asked: &str) -> Result<Side, Diagnostics> {
    if asked.starts_with("published:") {
        return Err(Diagnostic::new(format!("unknown publication `{asked}`")).hint(format!("available: `{STUDY}`")).into());
    }
    if let Some(path) = super::report_file(asked)? {
        return Ok(ComparedReport::read(&path)?.into());
    }
    let campaign = runs.find(asked)?;
    let mut report = ComparedReport::of(collo_report::json(&super::report::of(runs, &campaign)?), asked)?;
    if is_newest(runs, &campaign) {
        report.runs_as = report.experiment.clone();
    }
    Ok(Side { report, place: Some(history::place(campaign.manifest())) })
}

fn is_stored(runs: &Runs, asked: &str) -> bool {
    !Path::new(asked).is_file() && runs.find(asked).is_ok()
}

/// True for the campaign that `collo run NAME --more` would add to.
fn is_newest(runs: &Runs, campaign: &CampaignFolder) -> bool {
    let m = campaign.manifest();
    runs.find(&format!("{}/last", m.experiment)).is_ok_and(|newest| newest.manifest().id == m.id)
}

fn generations(context: &Context<'_>, a: &Compare, runs: &Runs) -> Answered {
    let (prices, models) = (a.price_per_hour.len(), a.sides.len());
    if prices > 0 && prices != models {
        return Err(Diagnostic::new(format!("`--price-per-hour` has {prices} of {models} prices"))
            .hint("a price for each side, in their order: `--price-per-hour 1.20,3.50`")
            .into());
    }
    let sides = a.sides.iter().map(|asked| Ok(side(runs, asked)?.report)).collect::<Result<Vec<_>, Diagnostics>>()?;
    let found = collo_compare::generations::generations(&sides, a.quantity.as_deref(), &a.price_per_hour)?;
    answer(context, a, &found, exit::DONE)
}

fn published(context: &Context<'_>, a: &Compare, side: &ComparedReport) -> Answered {
    if a.quantity.is_some() || a.by.is_some() || a.fail_on.is_some() {
        return Err(Diagnostic::new("published figures have no interval: there is no verdict to choose, count or fail on")
            .hint(format!("`collo compare {STUDY} last` compares each with this campaign's"))
            .into());
    }
    let beside = collo_compare::published::beside(side);
    answer(context, a, &beside, if beside.rows.is_empty() { exit::USAGE } else { exit::DONE })
}
