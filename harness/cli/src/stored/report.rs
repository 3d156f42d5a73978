//! `collo report`: from stored runs to the page, or to one file for another program; needs neither the machine nor the project of
//! the measurement.

use std::path::{Path, PathBuf};
use std::time::Duration;

use collo_analysis::campaign::Analysis;
use collo_figures::document::Written;
use collo_launch::Errand;
use collo_report::export::{Format, export, mlflow};
use collo_report::{EnergyModel, Report};
use collo_store::{CampaignFolder, LendsNothing, MergeScope, Runs};
use collo_text::{Diagnostic, Diagnostics, ExitClass};
use fs_err as fs;
use tempfile::TempDir;

use super::merge;
use crate::answer::{Answer, Answered};
use crate::args::{MemberEnergy, ReportFormat as Asked};
use crate::context::Context;
use crate::{args, output};
use collo_text::shown;

/// The file extension that selects Parquet.
const PARQUET: &str = "parquet";

pub fn run(context: &Context<'_>, a: &args::Report) -> Answered {
    let target = a.format.map(|asked| target(context, asked, a.to.as_deref())).transpose()?;
    let runs = context.runs()?;
    let (campaign, _unpacked) = match &a.campaigns[..] {
        [one] => context.campaign(one)?,
        several => together(&runs, several)?,
    };
    let reports = runs.path().parent().map(|p| p.join("reports")).unwrap_or_else(|| "reports".into());
    let energy_model = a.energy_model.map(|MemberEnergy::SmShare| EnergyModel::SmShare);
    let report = match &a.baseline {
        Some(asked) => beside(context, &campaign, asked)?,
        None => of(&runs, &campaign)?,
    };
    let report = Report { energy_model, ..report };
    match target {
        Some(Target::File(format)) => return exported(&report, format, a.to.as_deref()),
        Some(Target::Store(folder)) => return stored(&report, &folder),
        None => {}
    }
    let written = collo_report::write(&report, &a.to.clone().unwrap_or(reports))?;
    if a.open {
        open(&written.html)?;
    }
    let mut answer = answer(context, &report);
    answer.note(format!("report: {}", shown(&written.html)));
    Ok(answer)
}

/// A report as it is answered with.
pub fn answer(context: &Context<'_>, report: &Report) -> Answer {
    Answer::either(context, || collo_report::json(report), |width| collo_report::terminal(report, width))
}

/// The report of a campaign. One on a GPU that has no baseline is compared with those of the newest stored campaign that lends them.
pub fn of(runs: &Runs, campaign: &CampaignFolder) -> collo_report::Result<Report> {
    let lender = collo_store::lender(runs, campaign).ok().flatten();
    match lender.map(|lender| Report::beside(campaign, Some(&lender))) {
        // One that was not asked for stops no report.
        Some(Ok(report)) => Ok(report),
        Some(Err(_)) | None => Report::of(campaign),
    }
}

/// The report of a campaign with the baselines of the one that was named.
fn beside(context: &Context<'_>, campaign: &CampaignFolder, asked: &str) -> Result<Report, Diagnostics> {
    let (lender, _unpacked) = context.campaign(asked)?;
    let (own, from) = (campaign.manifest().short_id(), lender.manifest().short_id());
    let refused =
        |why: String, hint: String| Diagnostic::new(format!("`{from}` lends no baseline to `{own}`")).caused_by(why).hint(hint);
    if let Err(why) = collo_store::lends(&lender, campaign) {
        let hint = match &why {
            LendsNothing::Itself => format!("without `--baseline` it is compared with its own: `collo report {own}`"),
            LendsNothing::Conditions(_) => {
                "measure the solo cells again under the conditions of the campaign, with MIG off on the same GPU".to_string()
            }
            LendsNothing::OtherDevice(..) | LendsNothing::NoSolo => {
                format!("measure the solo cells with MIG off on the same GPU: `collo run {}`", campaign.manifest().experiment)
            }
        };
        return Err(refused(why.to_string(), hint).into());
    }
    let report = Report::beside(campaign, Some(&lender))?;
    if report.analysis.lenders().iter().any(|l| l.campaign == lender.manifest().id) {
        return Ok(report);
    }
    let usable = report.analysis.borrowed.iter().any(|cell| !cell.counted.is_empty());
    let why = if usable { "every group has a baseline of its own" } else { "none of its solo cells has a usable run" };
    let hint = if usable { format!("`collo report {own}`") } else { format!("why: `collo show {from}`") };
    Err(refused(why.into(), hint).into())
}

/// Several campaigns as one, for as long as its report takes.
fn together(runs: &Runs, asked: &[String]) -> Result<(CampaignFolder, Option<TempDir>), Diagnostics> {
    let campaigns: Vec<CampaignFolder> = asked.iter().map(|name| runs.find(name)).collect::<Result<_, _>>()?;
    merge::alone(&campaigns)?;
    merge::alike(&campaigns, MergeScope::SameIngredients, false)?;
    let scratch = TempDir::new()?;
    let merged = collo_store::merge(&Runs::at(scratch.path()), &campaigns, &[])?;
    Ok((merged, Some(scratch)))
}

/// How long a program that opens a page may take to say that it cannot; browsers stay.
const OPENS_S: u32 = 3;

/// Show the page in the user's browser. xdg-open(1) ends with 3 without a browser, and with 4 if it failed; some stay as long as the
/// browser does.
fn open(page: &Path) -> Result<(), Diagnostic> {
    let wrong = |why: String| {
        let what = format!("the report is written, but {} cannot be opened", shown(page));
        Diagnostic::new(what)
            .of_machine()
            .caused_by(why)
            .hint("open it in a browser yourself; without `--open` it is only written")
    };
    if ["DISPLAY", "WAYLAND_DISPLAY", "BROWSER"].iter().all(|name| std::env::var_os(name).is_none_or(|v| v.is_empty())) {
        return Err(wrong("this machine has no display: neither DISPLAY nor WAYLAND_DISPLAY is set".into()));
    }
    let script = format!(
        "xdg-open \"$1\" </dev/null >/dev/null 2>&1 & i=0; \
         while [ $i -lt {} ]; do kill -0 $! 2>/dev/null || {{ wait $!; exit $?; }}; sleep 0.1; i=$((i+1)); done",
        OPENS_S * 10
    );
    let limit = Duration::from_secs(u64::from(OPENS_S) + 10);
    let answer = Errand::to("sh", limit).args(["-c", &script, "sh"]).arg(page).ask().map_err(|e| wrong(e.to_string()))?;
    match answer.success() {
        true => Ok(()),
        false => Err(wrong(match answer.status.and_then(|status| status.code()) {
            Some(127) => "`xdg-open` is not installed".into(),
            Some(3) => "no browser was found".into(),
            code => format!("`xdg-open` ended with {}", code.map_or_else(|| "a signal".into(), |c| c.to_string())),
        })),
    }
}

/// The report of a campaign just measured: if it cannot be written, the measurements are still safe.
pub fn of_new_runs(campaign: &CampaignFolder, reports: &Path, runs: usize) -> Result<(Report, Written), Diagnostic> {
    let write = || -> collo_report::Result<(Report, Written)> {
        // `runs/EXPERIMENT/CAMPAIGN`.
        let runs = campaign.path().ancestors().nth(2).map(Runs::at);
        let report = runs.map_or_else(|| Report::of(campaign), |runs| of(&runs, campaign))?;
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

/// Where a format goes.
enum Target {
    /// Printed, or a file.
    File(Format),
    /// A folder of MLflow's.
    Store(PathBuf),
}

/// The requested format; an impossible one is refused before anything is read.
fn target(context: &Context<'_>, asked: Asked, to: Option<&Path>) -> Result<Target, Diagnostics> {
    let wrong = |what: String, hint: String| Err(Diagnostic::new(what).hint(hint).into());
    let is_parquet = to.is_some_and(|path| path.extension().is_some_and(|e| e.eq_ignore_ascii_case(PARQUET)));
    if context.arguments.json && asked != Asked::Json {
        return wrong("`--json` and `--format` request two formats".into(), "leave one of them out".into());
    }
    match (asked, to) {
        (Asked::Mlflow, None) => return wrong("an MLflow store is a folder".into(), "name it: `--to mlruns`".into()),
        (Asked::Mlflow, Some(path)) if path.exists() && !path.is_dir() => {
            return wrong(format!("`{}` is a file, and an MLflow store is a folder", path.display()), "name a folder".into());
        }
        (Asked::Sqlite, None) => {
            return wrong("a database is not printed".into(), "name its file: `--to report.sqlite`".into());
        }
        _ => {}
    }
    if let Some(path) = to.filter(|path| path.is_dir() && asked != Asked::Mlflow) {
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
    let format = match asked {
        Asked::Csv => Format::Csv,
        Asked::Latex => Format::Latex,
        Asked::LatexMacros => Format::LatexMacros,
        Asked::Junit => Format::Junit,
        Asked::Openmetrics => Format::Openmetrics,
        Asked::Dataset if is_parquet => Format::DatasetParquet,
        Asked::Dataset => Format::Dataset,
        Asked::Policies => Format::Policies,
        Asked::Tasks => Format::Tasks,
        Asked::Attempts => Format::Attempts,
        Asked::Observers => Format::Observers,
        Asked::Json => Format::Json,
        Asked::Markdown => Format::Markdown,
        Asked::Comment => Format::Comment,
        Asked::Sqlite => Format::Sqlite,
        Asked::Mlflow => return Ok(Target::Store(to.unwrap_or(Path::new("mlruns")).to_path_buf())),
    };
    Ok(Target::File(format))
}

/// The runs of a report in an MLflow store, beside those that are there.
fn stored(report: &Report, folder: &Path) -> Answered {
    let runs = mlflow::write(report, folder)?;
    report.analysis.problems.iter().for_each(output::warning);
    let mut answer = Answer::default();
    answer.note(format!("{} in the MLflow store {}", collo_quantity::number::runs(runs), shown(folder)));
    answer.note(format!("see them: `MLFLOW_ALLOW_FILE_STORE=true mlflow ui --backend-store-uri {}`", shown(folder)));
    Ok(answer)
}

fn exported(report: &Report, format: Format, to: Option<&Path>) -> Answered {
    let bytes = export(report, format)?;
    // Whoever reads the file does not see the report's own notes.
    report.analysis.problems.iter().for_each(output::warning);
    rows_elsewhere(&report.analysis, format).into_iter().for_each(output::note);
    let mut answer = Answer::default();
    match to {
        Some(path) => {
            place(path, &bytes)?;
            answer.note(format!("report: {}", shown(path)));
        }
        None => answer.bytes(bytes),
    }
    Ok(answer)
}

/// Where to look for rows if all cells of a campaign are of a kind that a table leaves out.
fn rows_elsewhere(analysis: &Analysis, format: Format) -> Option<String> {
    let of_cells = matches!(format, Format::Csv | Format::Latex | Format::LatexMacros | Format::Dataset | Format::DatasetParquet);
    let kinds = [
        (!analysis.watching.groups.is_empty(), "cells that say who watches them", "observers"),
        (!analysis.traces.matrices.is_empty(), "traces", "policies"),
    ];
    let others: Vec<String> =
        kinds.iter().filter(|(has, ..)| *has).map(|(_, what, format)| format!("{what}: `--format {format}`")).collect();
    (of_cells && analysis.cells.is_empty() && !others.is_empty())
        .then(|| format!("no rows, as this campaign has only {}", others.join(", and ")))
}

/// Written under a temporary name and renamed, so that a reader sees the old file or the new one; pipes and devices are written
/// directly.
fn place(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if path.exists() && !path.is_file() {
        return fs::write(path, bytes);
    }
    collo_store::place_file(path, bytes)
}
