//! The report's files. In: an analysis and the folder of reports. Out: `NAME/CAMPAIGN/` with the page, Markdown, JSON, CSV and
//! plots, and copies of all but the plots in `NAME/`, which thus shows the latest.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use fs_err as fs;

use crate::document::{self, Block, Figure, Written, replace};
use crate::report_json::ReportJson;
use crate::{Report, Result, plot, section};

/// The parts of a figure for its file.
fn sheet(figure: &Figure) -> plot::Sheet<'_> {
    let Figure { title, legend, panels, simulated, tags, .. } = figure;
    plot::Sheet { title, legend, panels, simulated: *simulated, tags }
}

/// Write everything. Each file is written under a temporary name and renamed, so that a reader sees the old one or the new one.
pub fn write(of: &Report, reports: &Path) -> Result<Written> {
    let campaign = &of.analysis.campaign;
    let experiment = reports.join(&campaign.experiment);
    let folder = experiment.join(&campaign.id);
    fs::create_dir_all(folder.join("plots"))?;
    let mut report = section::document(of, None);
    let figures =
        report.sections.iter().flat_map(|s| &s.blocks).filter_map(|b| if let Block::Figure(f) = b { Some(f) } else { None });
    let figures: Vec<&Figure> = figures.collect();
    let plots: Vec<PathBuf> = figures.iter().map(|f| folder.join("plots").join(format!("{}.svg", f.id))).collect();
    let next = AtomicUsize::new(0);
    // Pixels take most of the time of a report, and figures know nothing of each other.
    let draw = || -> Result<()> {
        while let Some((figure, path)) = figures.iter().zip(&plots).nth(next.fetch_add(1, Ordering::Relaxed)) {
            let svg = plot::standalone(&sheet(figure));
            replace(path, svg.as_bytes())?;
            replace(&path.with_extension("png"), &plot::png(figure.id, &svg)?)?;
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
    let json = serde_json::json!(ReportJson::from(of));
    let cells = crate::export::export(of, crate::export::Format::Csv)?;
    let mut write = |place: &Path, plots: String| {
        report.plots = Some(plots);
        replace(&place.join("report.csv"), &cells)?;
        document::write(place, ("report", "report"), &report, &json)
    };
    write(&folder, "plots/".into())?;
    // The copies lie one folder higher, so their links to the plots differ.
    let copies = write(&experiment, format!("{}/plots/", campaign.id))?;
    Ok(Written { folder, plots, ..copies })
}
