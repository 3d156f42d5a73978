//! How a report grows with its samples: analyse and write campaigns of 10⁶ and 10⁷ samples, each in a process of its own, so that
//! peak memory is that of one report. Prints the figures and writes `target/bench/report.json`.
//!
//! `cargo bench -p collo-report` measures a release build; `--profile dev` the one that `cargo run` uses. `-- 1e6` does one size only.

#[path = "../tests/support/mod.rs"]
mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};
use support::Fixture;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    if let [word, campaign, reports] = &arguments[..] {
        assert_eq!(word, "measure", "usage: report_scale [SIZE]");
        println!("{}", measure(Path::new(campaign), Path::new(reports)));
        return;
    }
    let sizes: Vec<f64> = arguments.iter().filter_map(|a| a.parse().ok()).collect();
    let sizes = if sizes.is_empty() { vec![1e6, 1e7] } else { sizes };
    let build = if cfg!(debug_assertions) { "dev" } else { "release" };
    println!("report from stored samples, {build} build");
    let figures: Vec<Value> = sizes.iter().map(|size| one_size(*size)).collect();
    let growth = match &figures[..] {
        [small, .., large] => {
            let ratio = |key: &str| Some(large[key].as_f64()? / small[key].as_f64()?);
            ratio("seconds").zip(ratio("samples")).map(|(seconds, samples)| seconds / samples)
        }
        _ => None,
    };
    if let Some(g) = growth {
        println!("growth: {g:.2} times linear (below 1: the fixed part weighs less)");
    }
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/bench");
    fs_err::create_dir_all(&target).expect("target/bench");
    let text = json!({
        "figure": "report from samples", "build": build, "sizes": figures, "growth_against_linear": growth,
        "target": { "samples": 1e7, "seconds": 3.0, "peak_bytes": 1e9, "build": "release" },
    });
    fs_err::write(target.join("report.json"), format!("{text:#}\n")).expect("target/bench/report.json");
}

/// Write a campaign of about so many samples, then report on it in a fresh process.
fn one_size(size: f64) -> Value {
    let folder = tempfile::tempdir().expect("a folder");
    let mut fixture = Fixture::quickstart();
    fixture.extra_metrics = 8;
    // The campaign's 12 runs make about 1100 samples for each Hz.
    fixture.samples_hz = size / 1100.0;
    let campaign = fixture.write(&folder.path().join("runs"));
    let samples = fixture.written.get();
    let exe = std::env::current_exe().expect("this program");
    let arguments: [PathBuf; 3] = ["measure".into(), campaign.path().into(), folder.path().join("reports")];
    let output = Command::new(exe).args(arguments).output().expect("a process");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut figure: Value = serde_json::from_slice(&output.stdout).expect("one line of JSON");
    figure["samples"] = samples.into();
    let number = |key: &str| figure[key].as_f64().unwrap_or(f64::NAN);
    println!(
        "{samples:>9} samples  analyse {:.2} s  write {:.2} s  peak {:.2} GB",
        number("analyse_s"),
        number("write_s"),
        number("peak_bytes") / 1e9
    );
    figure
}

fn measure(campaign: &Path, reports: &Path) -> Value {
    let campaign = collo_store::CampaignFolder::open(campaign).expect("a campaign");
    let start = Instant::now();
    let analysis = collo_report::analyse(&campaign).expect("an analysis");
    let analyse_s = start.elapsed().as_secs_f64();
    collo_report::write(&analysis, reports).expect("a report");
    let seconds = start.elapsed().as_secs_f64();
    json!({ "seconds": seconds, "analyse_s": analyse_s, "write_s": seconds - analyse_s, "peak_bytes": peak_bytes() })
}

/// VmHWM of this process.
fn peak_bytes() -> Option<u64> {
    let status = fs_err::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<u64>().ok()? * 1024)
}
