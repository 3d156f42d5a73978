//! The benchmarks of package `collo-report`, which links polars: their binaries are run from here, so that this package need not build it.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use fs_err as fs;

/// The newest release build of one of them; `None` if there is none.
pub fn newest_build(root: &Path, name: &str) -> Option<PathBuf> {
    let entries = fs::read_dir(root.join("target/release/deps")).ok()?.flatten();
    let prefix = format!("{name}-");
    let is_it = |path: &PathBuf| {
        path.extension().is_none() && path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(&prefix))
    };
    entries.map(|e| e.path()).filter(is_it).max_by_key(|path| fs::metadata(path).and_then(|m| m.modified()).ok())
}

/// Run it; its last line on stderr is the error if it fails.
pub fn run_to_end(root: &Path, benchmark: &Path) -> Result<()> {
    let command = duct::cmd!(benchmark).dir(root.join("harness/report")).stdin_null().stdout_null();
    let output = command.stderr_capture().unchecked().run()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {}", benchmark.display(), errors.lines().last().unwrap_or("it ended with an error"));
    Ok(())
}
