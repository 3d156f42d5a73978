//! The report's files. In: an analysis and the folder of reports. Out: `NAME/CAMPAIGN/` with the page, Markdown, JSON, CSV and
//! plots, and copies of all but the plots in `NAME/`, which thus shows the latest. One that
//! was read from a `report.json` has no copies.

use std::path::Path;

use collo_figures::document::{self, Block, Document, Live, TableLayout, Written, replace};
use fs_err as fs;

use crate::export::{cells, csv};
use crate::parts::anchor::address;
use crate::report::Report;
use crate::{Result, json, sections};

/// Write everything. Each file is written under a temporary name and renamed, so that a reader sees the old one or the new one.
pub fn write(of: &Report, reports: &Path) -> Result<Written> {
    let campaign = &of.analysis.campaign;
    let experiment = reports.join(&campaign.experiment);
    let folder = experiment.join(&campaign.id);
    fs::create_dir_all(folder.join("plots"))?;
    let mut report = sections::document(of, None);
    details(of, &mut report);
    let runs = below(&of.folder, reports).filter(|_| of.read.is_none() && of.anonymity.is_none());
    of.anonymity.iter().for_each(|anonymity| anonymity.document(&mut report));
    let plots = document::plots::write(&folder.join("plots"), &report.figures())?;
    // Files keep the whole names, by which programs join them.
    sections::shorten(of, &mut report);
    let mut json = serde_json::json!(json::json(of));
    let mut cells = csv::text(&cells::table(&of.analysis));
    if let Some(anonymity) = &of.anonymity {
        anonymity.json(&mut json);
        anonymity.text(&mut cells);
    }
    let mut write = |place: &Path, plots: String, up: &str| {
        report.plots = Some(plots);
        report.runs = runs.as_ref().map(|runs| format!("{up}{runs}"));
        replace(&place.join("report.csv"), cells.as_bytes())?;
        document::write(place, ("report", "report"), &report, &json)
    };
    let own = write(&folder, "plots/".into(), "../../../")?;
    if of.read.is_some() {
        // What lies one folder higher is of the newest campaign that has its runs here.
        return Ok(Written { folder, plots, ..own });
    }
    // The copies lie one folder higher, so their links differ.
    let copies = write(&experiment, format!("{}/plots/", campaign.id), "../../")?;
    Ok(Written { folder, plots, ..copies })
}

/// The page as text, without links to files.
pub fn live(of: &Report, live: Live) -> Result<String> {
    let mut report = Document { live: Some(live), alone: String::new(), files: Vec::new(), ..sections::document(of, None) };
    details(of, &mut report);
    sections::shorten(of, &mut report);
    Ok(document::html::document(&report)?)
}

/// Rows that can be opened: of more, the page would be mostly them.
const DETAILS: usize = 300;

/// What `collo show` prints of each cell, for the rows of the table of cells.
fn details(of: &Report, report: &mut Document) {
    let blocks = report.sections.iter_mut().flat_map(|s| &mut s.blocks);
    for table in blocks.filter_map(|b| if let Block::Table(t) = b { Some(t) } else { None }) {
        if table.look != TableLayout::Interactive || table.rows.len() > DETAILS {
            continue;
        }
        let rows = table.rows.iter().filter(|r| !r.id.is_empty());
        let told = rows.filter_map(|r| {
            Some((r.id.clone(), super::terminal::cell(&of.analysis, of.analysis.cell(&r.cells[0].text)?, usize::MAX)))
        });
        table.details = told.collect();
    }
}

/// A campaign's folder from the folder that the reports are in: `runs/NAME/ID/`. `None` if it is elsewhere: a link would lead out
/// of the project, and tell where that is.
fn below(campaign: &Path, reports: &Path) -> Option<String> {
    let project = std::path::absolute(reports).ok()?.parent()?.to_path_buf();
    let campaign = std::path::absolute(campaign).ok()?;
    let inside = campaign.strip_prefix(project).ok()?.components();
    let parts: Vec<String> = inside.map(|part| address(&part.as_os_str().to_string_lossy())).collect();
    Some(parts.join("/") + "/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_linked_inside_the_project_alone() {
        let inside = below(Path::new("/p/runs/a b/20261122-1"), Path::new("/p/reports"));
        assert_eq!(inside.as_deref(), Some("runs/a%20b/20261122-1/"));
        assert_eq!(below(Path::new("/elsewhere/runs/x/1"), Path::new("/p/reports")), None);
    }
}
