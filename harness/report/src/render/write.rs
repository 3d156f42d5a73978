//! The report's files. In: a report and the folder of reports. Out: `NAME/CAMPAIGN/` with the page, Markdown, JSON, CSV and plots, and
//! copies of all but the plots in `NAME/`, which so shows the latest.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use collo_store::place_file;
use fs_err as fs;

use super::{html, markdown};
use crate::export::{Format, export};
use crate::plot;
use crate::section::{self, Block, Figure};
use crate::{Report, Result};

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
pub fn write(report: &Report, reports: &Path) -> Result<Written> {
    let campaign = &report.analysis.campaign;
    let experiment = reports.join(&campaign.experiment);
    let folder = experiment.join(&campaign.id);
    fs::create_dir_all(folder.join("plots"))?;
    let sections = section::all(report);
    let figures = sections.iter().flat_map(|s| &s.blocks).filter_map(|b| if let Block::Figure(f) = b { Some(f) } else { None });
    let figures: Vec<&Figure> = figures.collect();
    let plots: Vec<PathBuf> = figures.iter().map(|f| folder.join("plots").join(format!("{}.svg", f.id))).collect();
    let next = AtomicUsize::new(0);
    // Pixels take most of the time of a report, and figures know nothing of each other.
    let draw = || -> Result<()> {
        while let Some((figure, path)) = figures.iter().zip(&plots).nth(next.fetch_add(1, Ordering::Relaxed)) {
            let svg = plot::standalone(figure);
            place_file(path, svg.as_bytes())?;
            place_file(&path.with_extension("png"), &plot::png(figure.id, &svg)?)?;
        }
        Ok(())
    };
    let workers = std::thread::available_parallelism().map_or(1, |n| n.get()).min(4);
    std::thread::scope(|scope| -> Result<()> {
        // Where no further thread may be started, this one draws them all.
        let another = |_| std::thread::Builder::new().spawn_scoped(scope, draw).ok();
        let drawn: Vec<_> = (1..workers).filter_map(another).collect();
        draw()?;
        drawn.into_iter().try_for_each(|d| match d.join() {
            Ok(drawn) => drawn,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })?;
    let (data, cells) = (export(report, Format::Json)?, export(report, Format::Csv)?);
    // The copies lie one folder higher, so their links to the plots differ.
    for (place, prefix) in [(&folder, String::new()), (&experiment, format!("{}/", campaign.id))] {
        place_file(&place.join("report.json"), &data)?;
        place_file(&place.join("report.csv"), &cells)?;
        place_file(&place.join("report.md"), markdown::report(report, &sections, &prefix).as_bytes())?;
        place_file(&place.join("report.html"), html::report(report, &sections, &prefix)?.as_bytes())?;
    }
    Ok(Written {
        html: experiment.join("report.html"),
        markdown: experiment.join("report.md"),
        json: experiment.join("report.json"),
        folder,
        plots,
    })
}
