//! Reports of 10⁶ and 10⁷ samples: package `collo-report` has its own benchmark, which links polars. It is run from here where it
//! was built, so that this package need not build it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use fs_err as fs;
use serde_json::Value as Json;

use super::Effort;
use crate::figure::{Asked, Figure};
use crate::ground::Ground;

pub fn run(ground: &Ground, effort: Effort) -> Result<Vec<Figure>> {
    let name = "report of 10⁷ samples";
    let root = ground.checkout().root();
    let Some(benchmark) = built(root) else {
        return Ok(vec![Figure::absent(
            name,
            "`cargo bench -p collo-report` builds and measures it, in about a quarter of an hour",
        )]);
    };
    if effort.smoke {
        return Ok(vec![Figure::absent(name, "it is built; a smoke run leaves it alone")]);
    }
    let output = Command::new(&benchmark).current_dir(root.join("harness/report")).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {}", benchmark.display(), said.lines().last().unwrap_or("it ended with an error"));
    read(&fs::read_to_string(root.join("target/bench/report.json"))?)
}

/// The newest release build of it.
fn built(root: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(root.join("target/release/deps")).ok()?.flatten();
    let is_it = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.starts_with("report_scale-") && path.extension().is_none()
    };
    entries.map(|e| e.path()).filter(is_it).max_by_key(|path| fs::metadata(path).and_then(|m| m.modified()).ok())
}

fn read(text: &str) -> Result<Vec<Figure>> {
    let found: Json = serde_json::from_str(text)?;
    let large = found["sizes"].as_array().and_then(|s| s.last()).context("`report.json` has no sizes")?;
    let peak_gb = large["peak_bytes"].as_f64().map(|b| b / 1e9);
    let growth = found["growth_against_linear"].as_f64();
    Ok(vec![Figure {
        name: "report of 10⁷ samples".into(),
        value: large["seconds"].as_f64(),
        count: 1,
        limit: Some((3.0, Asked::Value)),
        note: Some(format!(
            "peak {} of 1 GB; growth from 10⁶ {} times linear",
            peak_gb.map_or("–".into(), |gb| format!("{gb:.2} GB")),
            growth.map_or("–".into(), |g| format!("{g:.2}"))
        )),
        ..Figure::default()
    }])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_size_is_the_one_with_the_target() {
        let text = r#"{"sizes": [{"seconds": 0.4}, {"seconds": 2.5, "peak_bytes": 4.5e8}], "growth_against_linear": 0.6}"#;
        let figure = &read(text).unwrap()[0];
        assert_eq!(figure.value, Some(2.5));
        assert_eq!(figure.note.as_deref(), Some("peak 0.45 GB of 1 GB; growth from 10⁶ 0.60 times linear"));
    }
}
