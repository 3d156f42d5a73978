//! Figures as files. In: figures of a document, and a folder. Out: each as SVG, PNG, PDF, PGF and CSV in it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::write::replace;
use super::{Figure, csv};
use crate::Result;
use crate::draw::file::{self, SheetLayout};
use crate::draw::formats;

/// The parts of a figure for its file.
fn sheet(figure: &Figure) -> file::Sheet<'_> {
    let Figure { title, legend, panels, simulated, tags, .. } = figure;
    file::Sheet { title, legend, panels, simulated: *simulated, tags }
}

/// Write each figure; the paths of the SVG files. Without a figure there is no folder.
pub fn write(folder: &Path, figures: &[&Figure]) -> Result<Vec<PathBuf>> {
    if figures.is_empty() {
        return Ok(Vec::new());
    }
    fs_err::create_dir_all(folder)?;
    let plots: Vec<PathBuf> = figures.iter().map(|f| folder.join(format!("{}.svg", f.id))).collect();
    let next = AtomicUsize::new(0);
    // Pixels take most of the time of a report, and figures know nothing of each other.
    let draw = || -> Result<()> {
        while let Some((figure, path)) = figures.iter().zip(&plots).nth(next.fetch_add(1, Ordering::Relaxed)) {
            let sheet = sheet(figure);
            let svg = file::standalone(&sheet, SheetLayout::Alone);
            replace(path, svg.as_bytes())?;
            replace(&path.with_extension("png"), &formats::png(&figure.id, &svg)?)?;
            let column = file::standalone(&sheet, SheetLayout::Column);
            let column = formats::ColumnFigure::of(&figure.id, &column)?;
            replace(&path.with_extension("pdf"), &column.pdf()?)?;
            replace(&path.with_extension("pgf"), column.pgf().as_bytes())?;
            replace(&path.with_extension("csv"), csv::table(&figure.values).as_bytes())?;
        }
        Ok(())
    };
    let workers = std::thread::available_parallelism().map_or(1, |n| n.get()).min(4).min(figures.len());
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
    Ok(plots)
}
