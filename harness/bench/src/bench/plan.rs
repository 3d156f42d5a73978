//! The duration of commands that measure nothing: a plan of 10⁴ cells, advice for a scheduler, and the help.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Result, ensure};
use collo_quantity::stats::median;
use fs_err as fs;
use serde_json::{Value as Json, json};

use super::Effort;
use crate::figure::{Figure, Statistic};
use crate::scratch_project::ScratchProject;

pub fn run(ground: &ScratchProject, effort: Effort) -> Result<Vec<Figure>> {
    let Some((collo, build)) = find(ground.checkout().root()) else {
        return Ok(vec![Figure::absent("collo plan, 10⁴ cells", "no `collo` yet: `cargo build`, or `cargo build --release`")]);
    };
    let list = |n: u32| (1..=n).map(|i| i.to_string()).collect::<Vec<_>>().join(", ");
    // 500 × 5 × 4 cells; those of degree 1 are the baselines of the others.
    let lines = format!(
        "[axes]\nworkload = \"sleep\"\nitems = [{}]\nseconds = [{}]\ndegree = [1, 2, 3, 4]",
        list(500),
        (1..=5).map(|i| format!("{i}.0")).collect::<Vec<_>>().join(", ")
    );
    ground.write_experiment("many", &lines)?;
    fs::write(ground.path().join("question.json"), question(CARDS).to_string())?;
    let times = |words: &[&str], count: usize| -> Result<Vec<f64>> {
        (0..effort.times(count)).map(|_| seconds(&collo, ground.path(), words)).collect()
    };
    let figure = |name: &str, seconds: Vec<f64>, limit: f64| Figure {
        limit: Some((limit, Statistic::Value)),
        note: Some(format!("median of {} processes, {build} build", seconds.len())),
        ..Figure::of_seconds(name, &seconds)
    };
    let mut help = times(&["--help"], 41)?;
    let advice = figure(&format!("collo advise, {CARDS} GPUs"), times(&["advise", "question.json"], 201)?, 0.1);
    Ok(vec![
        figure("collo plan, 10⁴ cells", times(&["plan", "many"], 11)?, 0.5),
        Figure {
            limit: Some((0.1, Statistic::P99)),
            peer: median(&mut help.clone()).map(|help| ("collo --help", help)),
            ..advice
        },
        figure("collo --help", std::mem::take(&mut help), 0.02),
    ])
}

const CARDS: usize = 64;

/// A question about a site of eight nodes with three tasks on each GPU, of which all is given that a prediction needs.
fn question(cards: usize) -> Json {
    let task = |id: usize| json!({"id": id.to_string(), "memory_bytes": 4u64 << 30, "sm_active_ratio": 0.3, "step_s": 0.1});
    let card = |index: usize| {
        let tasks: Vec<Json> = (0..3).map(|place| task(3 * index + place)).collect();
        json!({
            "id": index.to_string(), "node": (index / 8).to_string(), "gpu": "a100-40gb", "sharing": "mps",
            "free_bytes": 20u64 << 30, "sm_active_ratio": 0.5, "tasks": tasks,
        })
    };
    json!({"task": task(3 * cards), "cards": (0..cards).map(card).collect::<Vec<_>>()})
}

/// The release build if there is one.
fn find(root: &Path) -> Option<(PathBuf, &'static str)> {
    let builds = [("release", "release"), ("debug", "dev")];
    builds.into_iter().map(|(folder, build)| (root.join("target").join(folder).join("collo"), build)).find(|(p, _)| p.is_file())
}

fn seconds(collo: &Path, folder: &Path, words: &[&str]) -> Result<f64> {
    let begin = Instant::now();
    let command = duct::cmd(collo, words).dir(folder).stdin_null().stdout_null().stderr_capture().unchecked();
    let output = command.run()?;
    let seconds = begin.elapsed().as_secs_f64();
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`collo {}`: {}", words.join(" "), said.lines().next().unwrap_or("it ended with an error"));
    Ok(seconds)
}
