//! `collo report`: from stored runs to the page; needs neither the machine nor the project that they were measured with.

use super::{Context, Ended};
use crate::{args, exit, say};

pub fn run(context: &Context<'_>, a: &args::Report) -> Ended {
    let runs = context.runs()?;
    let campaign = runs.find(&a.campaign)?;
    let beside = runs.path().parent().map(|p| p.join("reports")).unwrap_or_else(|| "reports".into());
    let to = a.to.clone().unwrap_or(beside);
    let analysis = collo_report::analyse(&campaign)?;
    let written = collo_report::write(&analysis, &to)?;
    if context.arguments.json {
        say::json(&collo_report::json(&analysis));
        return Ok(exit::DONE);
    }
    say::result(collo_report::terminal(&analysis, say::width()).trim_end());
    say::remark(format!("report: {}", super::run::shown(&written.html)));
    Ok(exit::DONE)
}
