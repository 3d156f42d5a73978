//! How a report grows: campaigns of 10⁶, 10⁷ and 10⁸ samples in 2,000 runs, one of the study's size, and a comparison of two reports of
//! 2,000 cells. Each is measured in a process of its own, so that peak memory is that of one report. Prints the figures and writes
//! `target/bench/report.json`; what it writes to measure lies beside it, and is removed.
//!
//! `cargo bench -p collo-report` measures a release build; `--profile dev` the one that `cargo run` uses. Behind `--`: sizes (`1e6`),
//! parts (`samples`, `study`, `compare`), `--runs=200`, `--smoke` for a very small one of each.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on ends here")]

#[path = "report_scale/comparing.rs"]
mod comparing;
#[path = "report_scale/made.rs"]
mod made;
#[path = "report_scale/pandas.rs"]
mod pandas;
#[expect(dead_code, reason = "the benchmark uses its part of the builder")]
#[path = "../tests/support/mod.rs"]
mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};

/// The hidden first argument: this process measures one thing.
const MEASURE: &str = "__measure";
const PARTS: [&str; 3] = ["samples", "study", "compare"];
const USAGE: &str = "usage: report_scale [--smoke] [--runs=N] [SIZE…] [samples|study|compare…]";

/// What was asked for.
struct Asked {
    smoke: bool,
    runs: usize,
    sizes: Vec<f64>,
    parts: Vec<String>,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    if let [word, campaign, reports] = &arguments[..]
        && word == MEASURE
    {
        println!("{}", report(Path::new(campaign), Path::new(reports)));
        return;
    }
    if let [word, left, right, to] = &arguments[..]
        && word == MEASURE
    {
        println!("{}", comparing::measure(Path::new(left), Path::new(right), Path::new(to)));
        return;
    }
    let asked = asked(&arguments);
    let build = if cfg!(debug_assertions) { "dev" } else { "release" };
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/bench");
    fs_err::create_dir_all(&target).expect("target/bench");
    let wants = |part: &str| asked.parts.iter().any(|p| p == part);
    println!("reports from stored runs, {build} build");
    let mut found = json!({ "figure": "reports from stored runs", "build": build });
    if wants("samples") {
        let figures: Vec<Value> = asked.sizes.iter().map(|size| one_size(&target, *size, asked.runs, asked.smoke)).collect();
        let growth = growth(&figures);
        if let Some(g) = growth {
            println!("  growth: {g:.2} times linear (below 1: the fixed part weighs less)");
        }
        found["sizes"] = figures.into();
        found["growth_against_linear"] = json!(growth);
    }
    if wants("study") {
        found["study"] = study(&target, asked.smoke);
    }
    if wants("compare") {
        found["compare"] = compare(&target, if asked.smoke { 50 } else { 2000 });
    }
    if !asked.smoke {
        fs_err::write(target.join("report.json"), format!("{found:#}\n")).expect("target/bench/report.json");
    }
}

fn asked(arguments: &[String]) -> Asked {
    let smoke = arguments.iter().any(|a| a == "--smoke");
    let (runs, sizes) = if smoke { (40, vec![4e3, 2e4]) } else { (2000, vec![1e6, 1e7, 1e8]) };
    let mut asked = Asked { smoke, runs, sizes: Vec::new(), parts: Vec::new() };
    for word in arguments.iter().filter(|a| *a != "--smoke") {
        match (word.strip_prefix("--runs=").map(str::parse), word.parse::<f64>()) {
            (Some(Ok(runs)), _) => asked.runs = runs,
            (None, Ok(size)) => asked.sizes.push(size),
            (None, _) if PARTS.contains(&word.as_str()) => asked.parts.push(word.clone()),
            _ => panic!("`{word}`? {USAGE}"),
        }
    }
    if asked.parts.is_empty() {
        asked.parts = if asked.sizes.is_empty() { PARTS.map(str::to_string).to_vec() } else { vec!["samples".into()] };
    }
    if asked.sizes.is_empty() {
        asked.sizes = sizes;
    }
    asked
}

/// Seconds per sample of the largest beside the smallest.
fn growth(figures: &[Value]) -> Option<f64> {
    let [small, .., large] = figures else { return None };
    let ratio = |key: &str| Some(large[key].as_f64()? / small[key].as_f64()?);
    ratio("seconds").zip(ratio("samples")).map(|(seconds, samples)| seconds / samples)
}

fn folder(target: &Path) -> tempfile::TempDir {
    tempfile::Builder::new().prefix("report-scale-").tempdir_in(target).expect("a folder")
}

/// Write a campaign of about so many samples, then report on it in a fresh process; then pandas does its part of that.
fn one_size(target: &Path, size: f64, runs: usize, smoke: bool) -> Value {
    let folder = folder(target);
    let begin = Instant::now();
    let made = made::campaign(&folder.path().join("runs"), size, runs);
    let made_s = begin.elapsed().as_secs_f64();
    let mut figure = in_process(&[made.folder.path(), &folder.path().join("reports")]);
    for (key, value) in [("samples", made.samples), ("runs", made.runs), ("stored_bytes", made.bytes)] {
        figure[key] = value.into();
    }
    figure["made_s"] = made_s.into();
    let number = |key: &str| figure[key].as_f64().unwrap_or(f64::NAN);
    println!(
        "{:>11} samples of {} runs ({:.2} GB)  analyse {:.2} s  write {:.2} s  peak {:.2} GB",
        made.samples,
        made.runs,
        made.bytes as f64 / 1e9,
        number("analyse_s"),
        number("write_s"),
        number("peak_bytes") / 1e9
    );
    let analyse_s = number("analyse_s");
    let peer =
        if smoke { Err("a smoke run leaves it alone".into()) } else { pandas::aggregate(target, &made.folder, folder.path()) };
    match peer {
        Ok(peer) => {
            let seconds = peer["seconds"].as_f64().unwrap_or(f64::NAN);
            let peak_gb = peer["peak_bytes"].as_f64().unwrap_or(f64::NAN) / 1e9;
            println!("            pandas {seconds:.2} s, peak {peak_gb:.2} GB: analyse takes {:.3} of that", analyse_s / seconds);
            figure["pandas"] = peer;
        }
        Err(why) => {
            println!("            pandas: {why}");
            figure["pandas_absent"] = why.into();
        }
    }
    figure
}

/// A campaign of the study's size on a simulated card.
fn study(target: &Path, smoke: bool) -> Value {
    let folder = folder(target);
    let (fixture, _) = support::study::campaign("a100-40gb", 1, if smoke { 1 } else { 5 });
    let campaign = fixture.write(&folder.path().join("runs"));
    let mut figure = in_process(&[campaign.path(), &folder.path().join("reports")]);
    let runs = campaign.manifest().plan.order.len();
    (figure["runs"], figure["samples"]) = (runs.into(), fixture.written.get().into());
    let number = |key: &str| figure[key].as_f64().unwrap_or(f64::NAN);
    println!("  study of {runs} runs: analyse {:.2} s  write {:.2} s", number("analyse_s"), number("write_s"));
    figure
}

/// Two reports of so many cells beside each other.
fn compare(target: &Path, cells: usize) -> Value {
    let folder = folder(target);
    let (left, right) = comparing::write(folder.path(), cells);
    let figure = in_process(&[&left, &right, &folder.path().join("compared")]);
    let number = |key: &str| figure[key].as_f64().unwrap_or(f64::NAN);
    println!("  two reports of {cells} cells: read {:.2} s  compare and write {:.2} s", number("read_s"), number("compare_s"));
    figure
}

/// Measure in a process of its own.
fn in_process(arguments: &[&Path]) -> Value {
    let exe = std::env::current_exe().expect("this program");
    let words = [PathBuf::from(MEASURE)].into_iter().chain(arguments.iter().map(|a| a.to_path_buf()));
    let output = Command::new(exe).args(words).output().expect("a process");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("one line of JSON")
}

fn report(campaign: &Path, reports: &Path) -> Value {
    let campaign = collo_store::CampaignFolder::open(campaign).expect("a campaign");
    let start = Instant::now();
    let report = collo_report::Report::of(&campaign).expect("a report");
    let analyse_s = start.elapsed().as_secs_f64();
    collo_report::write(&report, reports).expect("a report");
    let seconds = start.elapsed().as_secs_f64();
    json!({ "seconds": seconds, "analyse_s": analyse_s, "write_s": seconds - analyse_s, "peak_bytes": peak_bytes() })
}

/// VmHWM of this process.
fn peak_bytes() -> Option<u64> {
    let status = fs_err::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<u64>().ok()? * 1024)
}
