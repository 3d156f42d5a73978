//! Verbs about what is stored: campaigns and their reports, listed, shown, compared, merged, verified, packed, imported and deleted.
//!
//! In: names of campaigns, reports and bundles. Out: lines or JSON; of some verbs files. Nothing is measured here.

pub mod bundle;
pub mod compare;
pub mod import;
pub mod list;
pub mod merge;
pub mod prune;
pub mod report;
pub mod serve;
pub mod show;
pub mod status;
pub mod verify;

use std::path::{Path, PathBuf};

use collo_text::Diagnostic;

/// The `report.json` that a text names: a file, or a folder with one and without a campaign. `None` if it names a campaign.
fn report_file(asked: &str) -> Result<Option<PathBuf>, Diagnostic> {
    let path = Path::new(asked);
    let inside = path.join("report.json");
    if path.is_file() {
        return Ok(Some(path.into()));
    }
    if path.extension().is_some_and(|e| e == "json") {
        return Err(Diagnostic::new(format!("no `{asked}` here")).hint("`collo report` writes reports/NAME/report.json"));
    }
    Ok(Some(inside).filter(|inside| !path.join("campaign.json").is_file() && inside.is_file()))
}
