//! `collo report`: from stored runs to the page, or to one file for another program; needs neither the machine nor the project of
//! the measurement.

use std::path::Path;

use collo_report::export::{Format, export};
use collo_report::{Report, Written};
use collo_store::{CampaignFolder, Diagnostic, Diagnostics, ExitClass};
use fs_err as fs;

use super::{Context, Ended};
use crate::args::ReportFormat as Asked;
use crate::exit;
use crate::{args, output};
use collo_measure::shown;

/// The file extension that selects Parquet.
const PARQUET: &str = "parquet";

pub fn run(context: &Context<'_>, a: &args::Report) -> Ended {
    let format = a.format.map(|asked| format(context, asked, a.to.as_deref())).transpose()?;
    let runs = context.runs()?;
    let campaign = runs.find(&a.campaign)?;
    let beside = runs.path().parent().map(|p| p.join("reports")).unwrap_or_else(|| "reports".into());
    let report = Report::of(&campaign)?;
    if let Some(format) = format {
        return exported(&report, format, a.to.as_deref());
    }
    let written = collo_report::write(&report, &a.to.clone().unwrap_or(beside))?;
    if context.arguments.json {
        output::json(&collo_report::json(&report));
        return Ok(exit::DONE);
    }
    output::result(collo_report::terminal(&report, output::width()).trim_end());
    output::note(format!("report: {}", shown(&written.html)));
    Ok(exit::DONE)
}

/// The report of a campaign just measured: if it cannot be written, the measurements are still safe.
pub fn of_new_runs(campaign: &CampaignFolder, reports: &Path, runs: usize) -> Result<(Report, Written), Diagnostic> {
    let write = || -> collo_report::Result<(Report, Written)> {
        let report = Report::of(campaign)?;
        let written = collo_report::write(&report, reports)?;
        Ok((report, written))
    };
    write().map_err(|e| {
        let id = campaign.manifest().short_id();
        let stored = if runs == 1 { "the run is stored".to_string() } else { format!("all {runs} runs are stored") };
        Diagnostic::new(format!("{stored}, but their report cannot be written"))
            .of(ExitClass::Incomplete)
            .caused_by(e)
            .hint(format!("`collo report {id}` writes it, with `--to DIR` elsewhere"))
    })
}

/// The requested format; an impossible one is refused before anything is read.
fn format(context: &Context<'_>, asked: Asked, to: Option<&Path>) -> Result<Format, Diagnostics> {
    let wrong = |what: String, hint: String| Err(Diagnostic::new(what).hint(hint).into());
    let is_parquet = to.is_some_and(|path| path.extension().is_some_and(|e| e.eq_ignore_ascii_case(PARQUET)));
    if context.arguments.json && asked != Asked::Json {
        return wrong("`--json` and `--format` request two formats".into(), "leave one of them out".into());
    }
    if let Some(path) = to.filter(|path| path.is_dir()) {
        let hint =
            format!("name a file in it; without `--format` the page is written there: `collo report --to {}`", path.display());
        return wrong(format!("`{}` is a folder, and `--format` makes one file", path.display()), hint);
    }
    if is_parquet && asked != Asked::Dataset {
        return wrong(
            "only the data set is written as Parquet".into(),
            "`--format dataset`, or a file with another ending".into(),
        );
    }
    Ok(match asked {
        Asked::Csv => Format::Csv,
        Asked::Latex => Format::Latex,
        Asked::Junit => Format::Junit,
        Asked::Openmetrics => Format::Openmetrics,
        Asked::Dataset if is_parquet => Format::DatasetParquet,
        Asked::Dataset => Format::Dataset,
        Asked::Json => Format::Json,
        Asked::Markdown => Format::Markdown,
    })
}

fn exported(report: &Report, format: Format, to: Option<&Path>) -> Ended {
    let bytes = export(report, format)?;
    // Whoever reads the file does not see the report's own notes.
    report.analysis.problems.iter().for_each(output::warning);
    match to {
        Some(path) => {
            place(path, &bytes)?;
            output::note(format!("report: {}", shown(path)));
        }
        None => output::bytes(&bytes),
    }
    Ok(exit::DONE)
}

/// Written under a temporary name and renamed, so that a reader sees the old file or the new one; pipes and devices are written
/// directly.
fn place(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if path.exists() && !path.is_file() {
        return fs::write(path, bytes);
    }
    collo_store::place_file(path, bytes)
}
