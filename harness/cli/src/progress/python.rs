//! Lines about the Python environment, the same in every display.

use collo_prepare::python::Progress;
use collo_text::units::about;

/// The line that times are given for.
const LINE_BITS_PER_S: f64 = 100e6;

/// The line for a step; `None` if it needs no line of its own.
pub fn line(progress: &Progress) -> Option<String> {
    match progress {
        Progress::Begins { packages, folder, with, load_bytes } => {
            let load = load_bytes.map(|bytes| {
                let (gb, seconds) = (bytes as f64 / 1e9, bytes as f64 * 8.0 / LINE_BITS_PER_S);
                format!(" ({gb:.1} GB to download, {} at 100 Mbit/s)", about(seconds))
            });
            let folder = collo_text::shown(folder);
            Some(format!("python  {packages} packages{} with {with}, once for all clones, in {folder}", load.unwrap_or_default()))
        }
        Progress::Waits { folder } => Some(format!("python  another collo builds {}; waiting for it", collo_text::shown(folder))),
        Progress::OnDisk { .. } => None,
        Progress::Compiles => Some("python  compiling bytecode, so that members need not".into()),
        Progress::Ends { elapsed } => Some(format!("✓ python provided in {}", about(elapsed.as_secs_f64()))),
    }
}

/// The line that is redrawn during downloads.
pub fn arriving(progress: &Progress) -> Option<String> {
    let Progress::OnDisk { bytes, of_about, elapsed } = progress else { return None };
    let (gb, of) = (*bytes as f64 / 1e9, *of_about as f64 / 1e9);
    let rate = gb * 1000.0 / elapsed.as_secs_f64().max(1.0);
    // pip keeps every wheel until all are unpacked, so there may be more on the way than in the end.
    Some(format!("        {gb:.1} GB on disk, about {of:.1} GB at the end · {rate:.0} MB/s"))
}
