//! `collo-bench [NAME…]`: what the harness itself costs. Prints figures and writes `target/bench/NAME.json`.
//!
//! Every figure is printed with its target, or with a bare run or a peer measured in the same process at the same time, and with
//! the load from others on the machine meanwhile. Never part of the tests.

mod bench;
mod earlier;
mod figure;
mod load;
mod nap;
mod scratch_project;
mod simulated;
mod sleepers;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use collo_plan::facts::cpu_model;
use collo_plan::project::Project;
use fs_err as fs;
use serde_json::json;

use bench::{BENCHES, Bench, Effort, gpu_sampler, staging};
use earlier::{Change, Earlier};
use load::Watch;
use scratch_project::ScratchProject;

/// The parts measured inside simulated machines.
const PARTS: [simulated::Part; 2] = [
    (staging::PART, |job| simulated::say(&staging::inside(job)?)),
    (gpu_sampler::PART, |job| simulated::say(&gpu_sampler::inside(job)?)),
];

fn main() -> ExitCode {
    // Members of the runs measured here are supervised by this very binary.
    if let Some(code) = collo_measure::supervisor_entry() {
        return code;
    }
    if let Some(code) = simulated::entry(&PARTS) {
        return code;
    }
    if let Some(code) = nap::entry() {
        return code;
    }
    match run(std::env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

struct BenchArguments {
    benches: Vec<&'static Bench>,
    effort: Effort,
    /// The folder with the figures of an earlier run.
    against: Option<PathBuf>,
}

fn asked(arguments: impl Iterator<Item = String>) -> Result<BenchArguments> {
    let mut benches = Vec::new();
    let mut effort = Effort::FULL;
    let mut against = None;
    let mut arguments = arguments;
    while let Some(word) = arguments.next() {
        match word.as_str() {
            "--against" => {
                against = Some(arguments.next().context("`--against` takes a folder, a copy of `target/bench`")?.into())
            }
            "--smoke" => effort = Effort::SMOKE,
            _ if word.starts_with("--minutes=") => {
                let minutes: f64 =
                    word["--minutes=".len()..].parse().ok().filter(|m| *m > 0.0).context("`--minutes=` takes a number")?;
                effort.most = Duration::from_secs_f64(60.0 * minutes);
            }
            _ => match BENCHES.iter().find(|b| b.name == word) {
                Some(bench) => benches.push(bench),
                None => {
                    let names = BENCHES.iter().map(|b| format!("  {:<13} {}", b.name, b.about)).collect::<Vec<_>>().join("\n");
                    bail!(
                        "unknown benchmark `{word}`\nusage: collo-bench [--smoke] [--minutes=N] [--against FOLDER] [NAME…]\n{names}"
                    );
                }
            },
        }
    }
    if benches.is_empty() {
        benches.extend(&BENCHES);
    }
    ensure!(
        against.is_none() || effort != Effort::SMOKE,
        "`--smoke` measures nothing that can be compared: leave out `--against`"
    );
    Ok(BenchArguments { benches, effort, against })
}

fn run(arguments: impl Iterator<Item = String>) -> Result<()> {
    let BenchArguments { benches, effort, against } = asked(arguments)?;
    let checkout = Project::nearest(Path::new(env!("CARGO_MANIFEST_DIR")))?.context("this checkout is no project any more")?;
    let ground = ScratchProject::new(&checkout)?;
    let build = if cfg!(debug_assertions) { "dev" } else { "release" };
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let machine = format!("{}, {cores} cores", cpu_model().unwrap_or_else(|| "unknown processor".into()));
    let (mut failed, mut worse) = (Vec::new(), Vec::new());
    for bench in benches {
        // Before this run's file takes its place.
        let earlier = against.as_deref().map(|folder| Earlier::read(folder, bench.name)).transpose()?;
        let watch = Watch::begin()?;
        let figures = match (bench.run)(&ground, effort) {
            Ok(figures) => figures,
            Err(error) => {
                eprintln!("error: benchmark `{}`: {error:#}", bench.name);
                failed.push(bench.name);
                continue;
            }
        };
        let load = watch.end()?;
        println!(
            "{}: load average {:.2} before it, others used {:.2} cores during it",
            bench.name, load.average, load.others_cores
        );
        if matches!(earlier, Some(None)) {
            println!("  not compared: the earlier run has no `{}.json`", bench.name);
        }
        for figure in &figures {
            println!("  {}", figure.row(&load).replace('\n', "\n  "));
            if let Some(earlier) = earlier.iter().flatten().next() {
                let change = earlier.change(figure, build, &machine, &load);
                println!("      {}", change.text());
                if matches!(change, Change::Worse(_)) {
                    worse.push(figure.name.clone());
                }
            }
        }
        // A smoke run measures nothing that is worth keeping; the benchmarks of the report write their own files.
        if effort != Effort::SMOKE && !["report", "verdicts"].contains(&bench.name) {
            let text = json!({
                "bench": bench.name,
                "build": build,
                "machine": machine,
                "load_average": load.average,
                "others_cores": load.others_cores,
                "figures": figures.iter().map(|f| f.json(&load)).collect::<Vec<_>>(),
            });
            fs::write(checkout.root().join(format!("target/bench/{}.json", bench.name)), format!("{text:#}\n"))?;
        }
    }
    ensure!(failed.is_empty(), "{} could not be measured", failed.join(", "));
    ensure!(worse.is_empty(), "worse than in the earlier run: {}", worse.join(", "));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Result<BenchArguments> {
        asked(line.split_whitespace().map(str::to_string))
    }

    #[test]
    fn without_a_name_every_benchmark_is_run() {
        assert_eq!(of("").unwrap().benches.len(), BENCHES.len());
        let two = of("skew plan --minutes=2").unwrap();
        assert_eq!(two.benches.iter().map(|b| b.name).collect::<Vec<_>>(), ["skew", "plan"]);
        assert_eq!(two.effort.most, Duration::from_secs(120));
    }

    #[test]
    fn a_smoke_run_is_not_compared() {
        assert_eq!(of("plan --against old").unwrap().against, Some("old".into()));
        let said = |line| of(line).err().unwrap().to_string();
        assert!(said("--against").contains("takes a folder"));
        assert!(said("--smoke --against old").contains("leave out `--against`"));
    }

    #[test]
    fn an_unknown_name_is_answered_with_those_that_there_are() {
        let said = of("sampel").err().unwrap().to_string();
        assert!(said.starts_with("unknown benchmark `sampel`") && said.contains("\n  sampler "), "{said}");
    }
}
