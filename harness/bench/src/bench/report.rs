//! Reports of 10⁸ samples and of the study's size, and a comparison of 2,000 cells: package `collo-report` has its own benchmark,
//! which links polars. Its binary is run from here, so that this package need not build it.

use anyhow::{Context, Result};
use fs_err as fs;
use serde_json::Value as Json;

use super::Effort;
use super::report_benches::{newest_build, run_to_end};
use crate::figure::{Figure, Statistic};
use crate::scratch_project::ScratchProject;

/// The largest campaign that the targets cover.
const SAMPLES: f64 = 1e8;

pub fn run(ground: &ScratchProject, effort: Effort) -> Result<Vec<Figure>> {
    let name = "report of 10⁸ samples";
    let root = ground.checkout().root();
    let Some(benchmark) = newest_build(root, "report_scale") else {
        return Ok(vec![Figure::absent(name, "`cargo bench -p collo-report` builds and measures it, in about half an hour")]);
    };
    if effort.smoke {
        return Ok(vec![Figure::absent(name, "it is built; a smoke run skips it")]);
    }
    run_to_end(root, &benchmark)?;
    read(&fs::read_to_string(root.join("target/bench/report.json"))?)
}

fn read(text: &str) -> Result<Vec<Figure>> {
    let found: Json = serde_json::from_str(text)?;
    let large = found["sizes"].as_array().and_then(|s| s.last()).context("`report.json` has no sizes")?;
    let samples = large["samples"].as_f64().unwrap_or(f64::NAN);
    // The targets are those of the full size alone.
    let full = samples > 0.9 * SAMPLES;
    let growth = found["growth_against_linear"].as_f64();
    let gb = |bytes: &Json| bytes.as_f64().map_or("–".into(), |b| format!("{:.2} GB", b / 1e9));
    let of_samples = Figure {
        name: format!("report of {samples:.0e} samples"),
        value: large["seconds"].as_f64(),
        count: 1,
        limit: full.then_some((30.0, Statistic::Value)),
        note: Some(format!(
            "{} runs; peak {} of 2 GB; growth from the smallest {} times linear",
            large["runs"],
            gb(&large["peak_bytes"]),
            growth.map_or("–".into(), |g| format!("{g:.2}"))
        )),
        ..Figure::default()
    };
    let aggregated = Figure {
        name: "the same, analysed".into(),
        value: large["analyse_s"].as_f64(),
        count: 1,
        peer: large["pandas"]["seconds"].as_f64().map(|s| ("pandas", s)),
        note: Some(match large["pandas_absent"].as_str() {
            Some(why) => format!("pandas: {why}"),
            None => format!(
                "pandas {}: mean, p95 and maximum by scope and metric, run by run; peak {}",
                large["pandas"]["pandas"].as_str().unwrap_or("–"),
                gb(&large["pandas"]["peak_bytes"])
            ),
        }),
        ..Figure::default()
    };
    let part = |name: &str, key: &str, limit_s: f64, note: String| match found[key]["seconds"].as_f64() {
        Some(seconds) => Figure {
            name: name.into(),
            value: Some(seconds),
            count: 1,
            limit: Some((limit_s, Statistic::Value)),
            note: Some(note),
            ..Figure::default()
        },
        None => Figure::absent(name, "this part was not requested"),
    };
    Ok(vec![
        of_samples,
        aggregated,
        part("report of the study's size", "study", 5.0, format!("{} runs, page and plots written", found["study"]["runs"])),
        part("comparison of 2,000 cells", "compare", 2.0, "two `report.json` read, compared, the page written".into()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_size_is_the_one_with_the_target() {
        let text = r#"{"sizes": [{"seconds": 0.4, "samples": 1e6, "runs": 2000},
            {"seconds": 25.0, "analyse_s": 20.0, "samples": 1.0001e8, "runs": 2000, "peak_bytes": 4.5e8,
             "pandas": {"seconds": 40.0, "pandas": "2.3.3", "peak_bytes": 9e8}}],
            "growth_against_linear": 0.6, "study": {"seconds": 4.0, "runs": 695}}"#;
        let figures = read(text).unwrap();
        assert_eq!((figures[0].value, figures[0].limit), (Some(25.0), Some((30.0, Statistic::Value))));
        let note = "2000 runs; peak 0.45 GB of 2 GB; growth from the smallest 0.60 times linear";
        assert_eq!(figures[0].note.as_deref(), Some(note));
        assert_eq!((figures[1].value, figures[1].peer), (Some(20.0), Some(("pandas", 40.0))));
        assert_eq!(figures[2].value, Some(4.0));
        assert_eq!((figures[3].value, figures[3].limit), (None, None));
    }

    #[test]
    fn a_smaller_size_is_held_against_no_target() {
        let text = r#"{"sizes": [{"seconds": 1.5, "samples": 1e7, "runs": 2000, "pandas_absent": "no network"}]}"#;
        let figures = read(text).unwrap();
        assert_eq!((figures[0].name.as_str(), figures[0].limit), ("report of 1e7 samples", None));
        assert_eq!(figures[1].note.as_deref(), Some("pandas: no network"));
    }
}
