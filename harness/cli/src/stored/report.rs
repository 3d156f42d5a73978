//! `collo report`: from stored runs, or from a `report.json`, to the page, or to one file for another program; needs neither the machine
//! nor the project of the measurement.

use std::path::{Path, PathBuf};
use std::time::Duration;

use collo_analysis::campaign::Analysis;
use collo_figures::document::Written;
use collo_launch::Errand;
use collo_report::export::{self, FORMATS, Format, ReportTable, TABLES, Writer};
use collo_report::{EnergyModel, Report};
use collo_store::{CampaignFolder, LendsNothing, MergeScope, Runs};
use collo_text::{Diagnostic, Diagnostics, ExitClass, shown, trust};
use fs_err as fs;
use tempfile::TempDir;

use super::merge;
use crate::answer::{Answer, Answered};
use crate::args::MemberEnergy;
use crate::context::Context;
use crate::{args, bundled, output};

pub fn run(context: &Context<'_>, a: &args::Report) -> Answered {
    let asked = asked(context, a)?;
    let runs = context.runs()?;
    let reports = runs.path().parent().map(|p| p.join("reports")).unwrap_or_else(|| "reports".into());
    if let Some(path) = read_from(&runs, &a.campaigns)? {
        let report = read(&path, a)?;
        match asked {
            None => check_page(&report, &path, &reports, a.to.as_deref())?,
            Some(_) => check_export(&path, a.to.as_deref())?,
        }
        return finish(context, a, asked, report, &reports);
    }
    let (campaign, _unpacked) = match &a.campaigns[..] {
        [one] => context.campaign(one)?,
        several => together(&runs, several)?,
    };
    let energy_model = a.energy_model.map(|MemberEnergy::SmShare| EnergyModel::SmShare);
    let report = match &a.baseline {
        Some(lender) => beside(context, &campaign, lender)?,
        None => of(&runs, &campaign)?,
    };
    finish(context, a, asked, Report { energy_model, ..report }, &reports)
}

type AskedFormat = Option<(&'static Format, &'static ReportTable)>;

/// The page, or what was asked for instead.
fn finish(context: &Context<'_>, a: &args::Report, asked: AskedFormat, report: Report, reports: &Path) -> Answered {
    let report = &match a.anonymous {
        true => report.anonymous(trust::home().as_deref(), trust::own_name().as_deref()),
        false => report,
    };
    if let Some((format, table)) = asked {
        export::check(report, format, table)?;
        return exported(report, format, table, a.to.as_deref());
    }
    let written = match &a.to {
        Some(folder) => collo_report::write(report, folder)?,
        None => written(report, reports)?,
    };
    if a.open {
        open(&written.html)?;
    }
    let mut answer = answer(context, report);
    answer.note(format!("report: {}", shown(&written.html)));
    Ok(answer)
}

/// The `report.json` that is asked for.
fn read_from(runs: &Runs, asked: &[String]) -> Result<Option<PathBuf>, Diagnostics> {
    let of = |asked: &String| if bundled::is_bundle(Path::new(asked)) { Ok(None) } else { super::report_file(asked) };
    match asked {
        // What has the name of a campaign or an experiment is meant by it: its runs say more.
        [one] => Ok(of(one)?.filter(|_| one.ends_with(".json") || runs.find(one).is_err())),
        several => match several.iter().find(|one| one.ends_with(".json") && Path::new(one).is_file()) {
            Some(file) => Err(Diagnostic::new(format!("`{file}` is a report, and only stored campaigns become one report"))
                .hint(format!("`collo report {file}` alone"))
                .into()),
            None => Ok(None),
        },
    }
}

/// A report that was written before, here or elsewhere.
fn read(path: &Path, a: &args::Report) -> Result<Report, Diagnostics> {
    let needs_runs = [(a.baseline.is_some(), "--baseline"), (a.energy_model.is_some(), "--energy-model")];
    if let Some((_, option)) = needs_runs.into_iter().find(|(is_asked, _)| *is_asked) {
        return Err(Diagnostic::new(format!("`{option}` needs the stored runs, and `{}` has none", path.display()))
            .hint(format!("where its runs are stored: `collo report CAMPAIGN {option} …`"))
            .into());
    }
    Ok(Report::read(path)?)
}

/// Refuse to replace the file that is read, or, unless its place was named, a report with more than that has.
fn check_page(report: &Report, file: &Path, reports: &Path, to: Option<&Path>) -> Result<(), Diagnostic> {
    let campaign = &report.analysis.campaign;
    let folder = to.unwrap_or(reports).join(&campaign.experiment).join(&campaign.id);
    let there = folder.join("report.json");
    let is_same = || fs::canonicalize(file).is_ok_and(|file| fs::canonicalize(&there).is_ok_and(|there| file == there));
    if !there.exists() || to.is_some() && !is_same() {
        return Ok(());
    }
    Err(Diagnostic::new(format!("{} has a report of this campaign already", shown(&folder)))
        .caused_by("the page of a report.json has less than one of stored runs, and would replace it".to_string())
        .hint(format!("`--to DIR` writes it elsewhere; where its runs are stored: `collo report {}`", campaign.short_id())))
}

/// Refuse to write an export over the file that it is read from.
fn check_export(file: &Path, to: Option<&Path>) -> Result<(), Diagnostic> {
    let is_same = |to: &Path| fs::canonicalize(to).is_ok_and(|to| fs::canonicalize(file).is_ok_and(|file| file == to));
    match to {
        Some(to) if is_same(to) => Err(Diagnostic::new(format!("`--to {}` is the report that is read", shown(to)))
            .hint("another name: what a format leaves out would be lost")),
        _ => Ok(()),
    }
}

/// A report as it is answered with.
pub fn answer(context: &Context<'_>, report: &Report) -> Answer {
    let text = |width| output::as_typed(&collo_report::terminal(report, width)).into_owned();
    Answer::either(context, || collo_report::json(report), text)
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
    let usable = report.analysis.borrowed.iter().any(|cell| cell.counts());
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

/// A report in the project's folder of reports, and the list of them.
fn written(report: &Report, reports: &Path) -> collo_report::Result<Written> {
    let written = collo_report::write(report, reports)?;
    collo_report::write_index(reports)?;
    Ok(written)
}

/// The report of a campaign just measured: if it cannot be written, the measurements are still safe.
pub fn of_new_runs(campaign: &CampaignFolder, reports: &Path, runs: usize) -> Result<(Report, Written), Diagnostic> {
    let write = || -> collo_report::Result<(Report, Written)> {
        // `runs/EXPERIMENT/CAMPAIGN`.
        let runs = campaign.path().ancestors().nth(2).map(Runs::at);
        let report = runs.map_or_else(|| Report::of(campaign), |runs| of(&runs, campaign))?;
        let written = written(&report, reports)?;
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

/// The requested format, and its table; an impossible one is refused before anything is read.
fn asked(context: &Context<'_>, a: &args::Report) -> Result<AskedFormat, Diagnostics> {
    let wrong = |what: String, hint: String| Err(Diagnostic::new(what).hint(hint).into());
    let Some(format) = FORMATS.iter().find(|format| a.format.as_deref() == Some(format.word)) else { return Ok(None) };
    let is_parquet = |path: &Path| path.extension().is_some_and(|e| e.eq_ignore_ascii_case("parquet"));
    if context.arguments.json && format.word != "json" {
        return wrong("`--json` and `--format` request two formats".into(), "leave one of them out".into());
    }
    if a.table.is_some() && !matches!(format.writer, Writer::Table(_)) {
        return wrong(
            format!("`--format {}` has no `--table`", format.word),
            "`--table` is for `--format csv` and `--format parquet`".into(),
        );
    }
    match (&format.writer, &a.to) {
        (Writer::Folder(_), None) => return wrong("an MLflow store is a folder".into(), "name it: `--to mlruns`".into()),
        (Writer::Folder(_), Some(path)) if path.exists() && !path.is_dir() => {
            return wrong(format!("`{}` is a file, and an MLflow store is a folder", path.display()), "name a folder".into());
        }
        (Writer::Folder(_), Some(_)) => {}
        (_, Some(path)) if path.is_dir() => {
            let page = format!("without `--format` the page is written there: `collo report --to {}`", path.display());
            let what = format!("`{}` is a folder, and `--format` makes one file", path.display());
            return wrong(what, format!("name a file in it; {page}"));
        }
        (_, Some(path)) if is_parquet(path) && format.word != "parquet" => {
            let hint = "`--format parquet`, or a file with another ending".into();
            return wrong(format!("`{}` would be {}, not Parquet", path.display(), format.word), hint);
        }
        (_, Some(_)) => {}
        (_, None) => {
            if let Some(what) = format.unprinted {
                return wrong(format!("{what} is not printed"), format!("name its file: `--to report.{}`", format.word));
            }
        }
    }
    let name = a.table.as_deref().unwrap_or("cells");
    Ok(TABLES.iter().find(|table| table.name == name).map(|table| (format, table)))
}

fn exported(report: &Report, format: &Format, ReportTable { name, rows, .. }: &ReportTable, to: Option<&Path>) -> Answered {
    let (bytes, of_cells) = match &format.writer {
        Writer::Text(write) => (write(report)?.into_bytes(), format.word.starts_with("latex")),
        Writer::File(write) => (write(report)?, false),
        Writer::Table(write) => (write(&rows(&report.analysis))?, ["cells", "dataset"].contains(name)),
        Writer::Folder(write) => return stored(report, to.unwrap_or(Path::new("mlruns")), *write),
    };
    // Whoever reads the file does not see the report's own notes.
    report.analysis.problems.iter().for_each(output::warning);
    rows_elsewhere(&report.analysis).filter(|_| of_cells).into_iter().for_each(output::note);
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

/// The runs of a report in an MLflow store, beside those that are there.
fn stored(report: &Report, folder: &Path, write: fn(&Report, &Path) -> collo_report::Result<usize>) -> Answered {
    let runs = write(report, folder)?;
    report.analysis.problems.iter().for_each(output::warning);
    let mut answer = Answer::default();
    answer.note(format!("{} in the MLflow store {}", collo_quantity::number::runs(runs), shown(folder)));
    answer.note(format!("see them: `MLFLOW_ALLOW_FILE_STORE=true mlflow ui --backend-store-uri {}`", shown(folder)));
    Ok(answer)
}

/// Where to look for rows if all cells of a campaign are of a kind that a table of cells leaves out.
fn rows_elsewhere(analysis: &Analysis) -> Option<String> {
    let kinds = [
        (!analysis.watching.groups.is_empty(), "cells that say who watches them", "observers"),
        (!analysis.traces.matrices.is_empty(), "traces", "policies"),
    ];
    let kinds = kinds.iter().filter(|(has, ..)| *has);
    let others: Vec<String> = kinds.map(|(_, what, table)| format!("{what}: `--format csv --table {table}`")).collect();
    (analysis.cells.is_empty() && !others.is_empty())
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
