//! Reports against a second computation: `recompute/recompute.py`, which was written from `docs/guide/metrics.md` and shares no code with
//! the report, reads the same stored runs and must find every number again, to 1e-9.

#[path = "recompute/campaigns.rs"]
mod campaigns;
#[path = "recompute/python.rs"]
mod python;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::exports::export;
use collo_report::Report;
use collo_store::CampaignFolder;

/// Campaigns and reports of an earlier run are replaced.
fn fresh(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("recompute").join(name);
    if folder.exists() {
        fs_err::remove_dir_all(&folder).unwrap();
    }
    fs_err::create_dir_all(&folder).unwrap();
    folder
}

/// Report on a campaign: JSON, CSV and what a wide terminal shows, in a folder beside it.
fn write(campaign: &CampaignFolder, folder: &Path) {
    let report = Report::of(campaign).unwrap();
    fs_err::write(folder.join("report.json"), collo_report::json(&report).to_string()).unwrap();
    for (name, format) in [("cells.csv", "cells"), ("dataset.csv", "dataset"), ("policies.csv", "policies")] {
        if let Ok(text) = export(&report, format) {
            fs_err::write(folder.join(name), text).unwrap();
        }
    }
    fs_err::write(folder.join("terminal.txt"), collo_report::terminal(&report, 400)).unwrap();
}

fn recompute(python: &Path, campaign: &Path, reports: &Path) -> std::process::Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recompute/recompute.py");
    Command::new(python).arg("-B").arg(script).arg(campaign).arg(reports).output().unwrap()
}

#[test]
fn every_number_of_a_report_is_found_again_from_the_stored_runs() {
    let python = match python::provide() {
        Ok(python) => Some(python),
        Err(why) => {
            crate::skip::skip("numpy", &why);
            None
        }
    };
    let mut wrong = Vec::new();
    for (name, make) in campaigns::ALL {
        let folder = fresh(name);
        let campaign = make(&folder);
        write(&campaign, &folder);
        let Some(python) = &python else { continue };
        let output = recompute(python, campaign.path(), &folder);
        let printed = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            wrong.push(format!("{name}: {printed}{}", String::from_utf8_lossy(&output.stderr)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_number_that_was_changed_is_found() {
    let Ok(python) = python::provide() else { return crate::skip::skip("numpy", "the campaigns above say why") };
    let folder = fresh("changed");
    let campaign = campaigns::quickstart(&folder);
    write(&campaign, &folder);
    let file = folder.join("report.json");
    let mut report: serde_json::Value = serde_json::from_slice(&fs_err::read(&file).unwrap()).unwrap();
    let high = report["cells"][1]["throughput_gain"]["high"].as_f64().unwrap();
    report["cells"][1]["throughput_gain"]["high"] = (high * (1.0 + 1e-6)).into();
    fs_err::write(&file, report.to_string()).unwrap();
    let output = recompute(&python, campaign.path(), &folder);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(printed.contains("throughput_gain.high"), "{printed}");
}
