//! Reports and tables that were made elsewhere, and what other programs track.

use std::path::{Path, PathBuf};

use collo_guidelines::report_json::ReportJson;
use collo_laboratory::table::Profile;
use collo_laboratory::{Caller, company, sources};
use collo_plan::project::Project;
use collo_prepare::python::Progress;
use collo_radt::schedule::Schedule;
use collo_radt::{experiment, metrics, tracking};
use collo_store::CampaignFolder;
use collo_text::{Diagnostic, Diagnostics, Remark};

use crate::Accepted;
use crate::given::{self, folder, parts, put, shown, text};
use crate::project::{ROOT, WORKLOADS};

pub fn report(bytes: &[u8]) -> Accepted {
    given::file("report.json", bytes, |file| {
        let report = shown(ReportJson::read(file))?;
        shown(report.analysis("report.json").map(|analysis| analysis.cells.len())).map(drop)
    })
}

/// Tables in a folder, and no campaign.
struct Tables(PathBuf);

impl Caller for Tables {
    fn folder(&self) -> Result<PathBuf, Diagnostic> {
        Ok(self.0.clone())
    }

    fn project(&self) -> Result<Project, Diagnostic> {
        Ok(Project::at(&*ROOT))
    }

    fn campaign(&self, name: &str) -> Result<(CampaignFolder, Option<tempfile::TempDir>), Diagnostics> {
        Err(Diagnostic::new(format!("no campaign {name}")).into())
    }

    fn remark(&self, remark: Remark) {
        std::hint::black_box(remark);
    }

    fn display(&self) -> Box<dyn FnMut(Progress) + '_> {
        Box::new(|_| ())
    }
}

fn tables(files: &[(&str, &[u8])], read: impl Fn(&Tables, &[String]) -> Accepted) -> Accepted {
    let folder = folder();
    files.iter().for_each(|(name, bytes)| put(folder.path(), name, bytes));
    let names: Vec<String> = files.iter().map(|(name, _)| name.to_string()).collect();
    read(&Tables(folder.path().to_path_buf()), &names)
}

/// A table of measurements, as CSV and as Parquet.
pub fn table(bytes: &[u8]) -> Accepted {
    let both = ["given.csv", "given.parquet"].map(|name| {
        tables(&[(name, bytes)], |caller, names| {
            let all = [
                shown(sources::read(caller, names)).map(drop),
                shown(sources::read_as::<Profile>(caller, names)).map(drop),
                shown(company::read(caller, names)).map(drop),
            ];
            all.into_iter().flatten().next()
        })
    });
    both.into_iter().flatten().next()
}

/// A table of pairs, then one of profiles.
pub fn pairs(bytes: &[u8]) -> Accepted {
    let [pairs, profiles] = parts(bytes)[..] else { return None };
    tables(&[("pairs.csv", pairs), ("profiles.csv", profiles)], |caller, names| shown(company::read(caller, names)).map(drop))
}

pub fn schedule(bytes: &[u8]) -> Accepted {
    let schedule = shown(Schedule::parse(&text(bytes)?))?;
    schedule.devices();
    let folder = folder();
    let project = Project::at(folder.path());
    std::fs::create_dir_all(project.workloads()).expect("a folder can be made");
    shown(experiment::files(&project, &schedule, Path::new("schedule.csv"), "given")).map(drop)
}

/// The files of a store of MLflow, each behind a line with its path: `1/meta.yaml`, `1/ab/params/letter`.
pub fn tracked(bytes: &[u8]) -> Accepted {
    let folder = folder();
    for part in parts(bytes).into_iter().take(40) {
        let end = part.iter().position(|byte| *byte == b'\n').unwrap_or(part.len());
        let Ok(path) = std::str::from_utf8(&part[..end]) else { continue };
        let is_plain = |part: &str| !part.is_empty() && part.bytes().all(|c| c.is_ascii_alphanumeric() || b"._- ".contains(&c));
        let is_below = path.split('/').all(|part| is_plain(part) && !part.starts_with('.')) && path.len() < 200;
        let place = folder.path().join(path);
        if is_below && !place.exists() && place.parent().is_some_and(|above| std::fs::create_dir_all(above).is_ok()) {
            std::fs::write(&place, part.get(end + 1..).unwrap_or_default()).expect("a file can be written");
        }
    }
    reported(folder.path())
}

/// A store of MLflow as its database.
pub fn database(bytes: &[u8]) -> Accepted {
    given::file("mlflow.db", bytes, reported)
}

/// The report that a store of MLflow becomes.
fn reported(store: &Path) -> Accepted {
    let found = shown(tracking::read(store, None, metrics::names()))?;
    let (report, _) = shown(collo_radt::report::of(&found, Some(&WORKLOADS), Some("NVIDIA A100-SXM4-40GB")))?;
    shown(collo_radt::report::bytes(&report)).map(drop)
}
