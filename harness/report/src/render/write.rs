//! The report's files. In: an analysis and the folder of reports. Out: `NAME/CAMPAIGN/` with the page, Markdown, JSON and plots, and
//! copies of the three in `NAME/`, which so shows the latest.

use std::path::{Path, PathBuf};

use fs_err as fs;

use super::{html, json, markdown};
use crate::analysis::Analysis;
use crate::plot;
use crate::section::{self, Block};
use crate::{Error, Result};

/// Where a report was written.
#[derive(Debug, Clone)]
pub struct Written {
    /// `reports/NAME/report.html`.
    pub html: PathBuf,
    pub markdown: PathBuf,
    pub json: PathBuf,
    /// `reports/NAME/CAMPAIGN`, which the next campaign leaves as it is.
    pub folder: PathBuf,
    /// Every figure as SVG, a PNG of the same name beside it.
    pub plots: Vec<PathBuf>,
}

/// Write everything. Each file is written aside and renamed, so that a reader sees the old one or the new one.
pub fn write(analysis: &Analysis, reports: &Path) -> Result<Written> {
    let experiment = reports.join(&analysis.campaign.experiment);
    let folder = experiment.join(&analysis.campaign.id);
    fs::create_dir_all(folder.join("plots"))?;
    let sections = section::all(analysis);
    let mut plots = Vec::new();
    for block in sections.iter().flat_map(|s| &s.blocks) {
        if let Block::Figure(figure) = block {
            let svg = plot::standalone(figure);
            let path = folder.join("plots").join(format!("{}.svg", figure.id));
            replace(&path, svg.as_bytes())?;
            replace(&path.with_extension("png"), &plot::png(figure.id, &svg)?)?;
            plots.push(path);
        }
    }
    let mut text = serde_json::to_string_pretty(&json::report(analysis)).map_err(|e| Error::Io(e.into()))?;
    text.push('\n');
    // The copies lie one folder higher, so their links to the plots differ.
    for (place, prefix) in [(&folder, String::new()), (&experiment, format!("{}/", analysis.campaign.id))] {
        replace(&place.join("report.json"), text.as_bytes())?;
        replace(&place.join("report.md"), markdown::report(analysis, &sections, &prefix).as_bytes())?;
        replace(&place.join("report.html"), html::report(analysis, &sections, &prefix)?.as_bytes())?;
    }
    Ok(Written {
        html: experiment.join("report.html"),
        markdown: experiment.join("report.md"),
        json: experiment.join("report.json"),
        folder,
        plots,
    })
}

fn replace(path: &Path, content: &[u8]) -> Result<()> {
    let mut aside = path.as_os_str().to_owned();
    aside.push(".aside");
    let aside = PathBuf::from(aside);
    fs::write(&aside, content)?;
    fs::rename(&aside, path)?;
    Ok(())
}
