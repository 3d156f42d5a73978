//! Where measurements come from. In: names of campaigns, files of tables, the word for the published jobs. Out: their rows together.

use std::path::Path;

use collo_plan::workload::Workloads;
use collo_report::Report;
use collo_report::export::{csv, csv_of_parquet, dataset};
use collo_store::{Outcome, sha256_file, sha256_text};
use collo_text::{Diagnostic, Diagnostics, Source, quoted, shown};

use crate::caller::Caller;
use crate::measurements::Measurements;
use crate::table::{self, Reading};

/// The word for the published jobs, in place of a file.
pub const PUBLISHED: &str = "published:estimators";
/// A million rows have a fifth of this.
const LARGEST: u64 = 512 << 20;

/// All rows of memory of what was asked for.
pub fn read(caller: &dyn Caller, asked: &[String]) -> Result<Measurements, Diagnostics> {
    if let Some(wrong) = asked.iter().find(|name| name.starts_with("published:") && *name != PUBLISHED) {
        let wrong = Diagnostic::new(format!("`{wrong}` is not known"));
        return Err(wrong.hint(format!("the published measurements are `{PUBLISHED}`")).into());
    }
    if asked.iter().any(|name| name == PUBLISHED) {
        return match asked {
            [_] => Ok(Measurements::published()),
            _ => Err(Diagnostic::new(format!("`{PUBLISHED}` is measured by others, and mixed with nothing"))
                .hint(format!("alone: `collo predict evaluate {PUBLISHED}`"))
                .into()),
        };
    }
    let mut all = read_as(caller, asked)?;
    all.shrinking();
    Ok(all)
}

/// All rows of campaigns and tables, read for something.
pub fn read_as<R: Reading>(caller: &dyn Caller, asked: &[String]) -> Result<Measurements<R>, Diagnostics> {
    let project = caller.project()?;
    let workloads = Workloads::load(&project.workloads())?;
    let mut all = Measurements::default();
    for name in asked {
        let (text, source) = table_of(caller, name)?;
        all.sources.push(source);
        table::read(&text, &workloads, &mut all)?;
    }
    if all.rows.is_empty() {
        return Err(nothing(asked, &all).into());
    }
    Ok(all)
}

#[derive(Clone, Copy)]
enum Ending {
    Csv,
    Parquet,
}

fn ending(name: &str) -> Option<Ending> {
    match Path::new(name).extension()?.to_str()? {
        "csv" => Some(Ending::Csv),
        "parquet" => Some(Ending::Parquet),
        _ => None,
    }
}

/// Whether a name is that of a table which can be read by the line.
pub fn is_csv(name: &str) -> bool {
    matches!(ending(name), Some(Ending::Csv))
}

/// One table: a file, or what a campaign's data set is; and which it is.
pub fn table_of(caller: &dyn Caller, name: &str) -> Result<(std::sync::Arc<Source>, String), Diagnostics> {
    let path = caller.folder()?.join(name);
    match ending(name) {
        Some(ending) => Ok((text_of(&path, ending)?, source_of(&path)?)),
        None => campaign(caller, name),
    }
}

fn text_of(path: &Path, ending: Ending) -> Result<std::sync::Arc<Source>, Diagnostic> {
    let name = shown(path);
    let unread = || Diagnostic::new(format!("{} cannot be read", quoted(&name)));
    let text = match ending {
        Ending::Csv => collo_text::read_small_text(path, LARGEST).map_err(|e| unread().caused_by(e))?,
        Ending::Parquet => csv_of_parquet(path, LARGEST).map_err(|e| {
            unread().caused_by(e).hint("a table in Parquet is compressed with zstd, or not at all; or write it as CSV")
        })?,
    };
    Ok(Source::file(name, text))
}

fn source_of(path: &Path) -> Result<String, Diagnostic> {
    let name = shown(path);
    let digest = sha256_file(path).map_err(|e| Diagnostic::new(format!("{} cannot be read", quoted(&name))).caused_by(e))?;
    let file = path.file_name().map_or_else(|| name.clone(), |file| file.to_string_lossy().into_owned());
    Ok(format!("{file} (sha256 {})", short(&digest)))
}

/// The rows of a campaign, as its data set has them, and which campaign it is.
fn campaign(caller: &dyn Caller, name: &str) -> Result<(std::sync::Arc<Source>, String), Diagnostics> {
    let (campaign, _unpacked) = caller.campaign(name)?;
    let manifest = campaign.manifest();
    let is_completed = |run: &collo_store::StoredRun| run.record.outcome == Outcome::Completed;
    let full = format!("{}/{}", manifest.experiment, manifest.id);
    let (runs, _) = campaign.runs()?;
    if !runs.values().any(is_completed) {
        let what = format!("campaign {full} has no completed run, so nothing was measured");
        return Err(Diagnostic::new(what).hint(format!("`collo run {}` measures what is missing", manifest.experiment)).into());
    }
    let mut digests = sha256_file(&campaign.path().join("campaign.json"))?;
    for run in runs.values() {
        // It has the digests of the run's other files.
        digests += &sha256_file(&run.path.join("run.json"))?;
    }
    let text = csv::text(&dataset::table(&Report::of(&campaign)?.analysis));
    let source = format!("campaign {full} (sha256 {})", short(&sha256_text(&digests)));
    Ok((Source::file(format!("campaign {full}"), text), source))
}

fn short(digest: &str) -> &str {
    digest.get(..16).unwrap_or(digest)
}

/// Every row was left out, or there were none.
fn nothing<R>(asked: &[String], all: &Measurements<R>) -> Diagnostic {
    let what = Diagnostic::new(format!("{} has no row that can be compared", asked.join(", ")));
    let why: Vec<String> = all.left_out.iter().map(|(reason, rows)| format!("{rows} {reason}")).collect();
    let what = if why.is_empty() { what } else { what.note(why.join("; ")) };
    what.hint("a row is a training that was measured: `collo predict evaluate --help`")
}
