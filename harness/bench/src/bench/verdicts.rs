//! How often each guideline concludes what is not true, on campaigns with known truth: package `collo-report` has the benchmark.

use anyhow::{Context, Result};
use fs_err as fs;
use serde_json::Value as Json;

use super::Effort;
use super::report_benches::{newest_build, run_to_end};
use crate::figure::{Figure, Statistic, Unit};
use crate::scratch_project::ScratchProject;

/// The largest acceptable share of campaigns with a wrong answer.
const WRONG: f64 = 0.05;

pub fn run(ground: &ScratchProject, effort: Effort) -> Result<Vec<Figure>> {
    let name = "wrong verdicts";
    let root = ground.checkout().root();
    let Some(benchmark) = newest_build(root, "verdicts") else {
        return Ok(vec![Figure::absent(name, "`cargo bench -p collo-report --bench verdicts --no-run` builds it")]);
    };
    if effort.smoke {
        return Ok(vec![Figure::absent(name, "it is built; a smoke run skips it")]);
    }
    run_to_end(root, &benchmark)?;
    read(&fs::read_to_string(root.join("target/bench/verdicts.json"))?)
}

/// A figure for each guideline: the rate of its worst scenario.
fn read(text: &str) -> Result<Vec<Figure>> {
    let found: Json = serde_json::from_str(text)?;
    let guidelines = found["guidelines"].as_array().context("`verdicts.json` has no guidelines")?;
    Ok(guidelines.iter().map(figure).collect())
}

fn figure(guideline: &Json) -> Figure {
    let (all, worst) = (&guideline["all"], guideline["worst"].as_str().unwrap_or("–"));
    let number = |key: &str| all[key].as_u64().unwrap_or(0);
    let scenarios = guideline["scenarios"].as_object().map_or(0, |s| s.len());
    Figure {
        name: format!("wrong `{}`", guideline["id"].as_str().unwrap_or("–")),
        unit: Unit::Frequency,
        value: guideline["worst_wrong_ratio"].as_f64(),
        count: number("campaigns") as usize,
        limit: Some((WRONG, Statistic::Value)),
        note: Some(format!(
            "worst of {scenarios} scenarios: {worst}; {} campaigns: {} yes, {} no, {} open; {} wrong, {} wrongly agree",
            number("campaigns"),
            number("yes"),
            number("no"),
            number("open"),
            number("wrong"),
            number("wrongly_agrees")
        )),
        ..Figure::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Verdict;
    use crate::load::Load;

    #[test]
    fn a_guideline_has_the_rate_of_its_worst_scenario_whatever_the_load() {
        let text = r#"{"guidelines": [{"id": "mixing", "worst": "nine-of-ten", "worst_wrong_ratio": 1.0,
            "all": {"campaigns": 400, "yes": 200, "no": 190, "open": 10, "wrong": 200, "wrongly_agrees": 200},
            "scenarios": {"nine-of-ten": {}, "naive-loses": {}}}]}"#;
        let figures = read(text).unwrap();
        assert_eq!((figures[0].value, figures[0].count), (Some(1.0), 400));
        let note = "worst of 2 scenarios: nine-of-ten; 400 campaigns: 200 yes, 190 no, 10 open; 200 wrong, 200 wrongly agree";
        assert_eq!(figures[0].note.as_deref(), Some(note));
        assert_eq!(figures[0].verdict(&Load { average: 4.0, others_cores: 1.5 }), Verdict::Missed);
    }
}
