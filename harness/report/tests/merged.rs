//! Campaigns of one experiment from two GPUs, merged: every group is compared with the baseline of its own GPU.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod support;

use collo_report::{Report, export, json, terminal};
use collo_store::{CampaignFolder, Runs};
use serde_json::Value;
use support::Fixture;

/// The second GPU takes half as long again for everything.
const SLOWER: f64 = 1.5;

fn shard(degree: u32, pace: f64, seed: u64) -> (tempfile::TempDir, CampaignFolder) {
    let mut fixture = Fixture::named("shards").solo("tiny", 32, pace).group("tiny", 32, degree, "naive", 1.25 * pace).seed(seed);
    (fixture.shared_noise, fixture.member_noise) = (1e-4, 1e-5);
    let folder = tempfile::tempdir().unwrap();
    let campaign = fixture.write(folder.path());
    (folder, campaign)
}

fn merged(parts: &[CampaignFolder]) -> (tempfile::TempDir, CampaignFolder) {
    let folder = tempfile::tempdir().unwrap();
    let campaign = collo_store::merge(&Runs::at(folder.path()), parts, &[]).unwrap();
    (folder, campaign)
}

fn estimate(report: &Value, cell: &str, name: &str) -> f64 {
    let cell = report["cells"].as_array().unwrap().iter().find(|c| c["cell"] == cell).unwrap();
    cell[name]["estimate"].as_f64().unwrap_or_else(|| panic!("{name} of {cell:#}"))
}

#[track_caller]
fn near(found: f64, truth: f64) {
    assert!((found / truth - 1.0).abs() < 2e-3, "{found} is not {truth}");
}

#[test]
fn a_group_is_compared_with_the_baseline_of_its_own_gpu_only() {
    let ((_a, fast), (_b, slow)) = (shard(2, 1.0, 1), shard(3, SLOWER, 2));
    let (_c, campaign) = merged(&[fast, slow]);
    assert_eq!(campaign.runs().unwrap().0.len(), 18);
    let report = Report::of(&campaign).unwrap();
    let report_json = json(&report);
    near(estimate(&report_json, "tiny×2 naive b32", "throughput_gain"), 2.0 / 1.25);
    near(estimate(&report_json, "tiny×3 naive b32", "throughput_gain"), 3.0 / 1.25);
    near(estimate(&report_json, "tiny×3 naive b32", "slowdown"), 1.25);
    // Directly compared values are of the same GPU, too.
    near(
        report
            .analysis
            .solo_beside(report.analysis.cell("tiny×3 naive b32").unwrap().counted(), "tiny solo b32")
            .unwrap()
            .get(collo_report::quantity::Key::EpochTime)
            .unwrap()
            .estimate,
        SLOWER,
    );
    let rows = String::from_utf8(export::export(&report, export::Format::Dataset).unwrap()).unwrap();
    assert!(rows.lines().count() > 18, "{rows}");
    let said = terminal(&report, 200);
    assert!(said.contains("merged from") && said.contains("baselines differ by up to 50"), "{said}");
}

#[test]
fn repetitions_of_one_cell_from_two_gpus_lean_on_a_baseline_each() {
    let ((_a, fast), (_b, slow)) = (shard(2, 1.0, 1), shard(2, SLOWER, 2));
    let (_c, campaign) = merged(&[fast, slow]);
    let report = json(&Report::of(&campaign).unwrap());
    near(estimate(&report, "tiny×2 naive b32", "throughput_gain"), 2.0 / 1.25);
    let cell = report["cells"].as_array().unwrap().iter().find(|c| c["cell"] == "tiny×2 naive b32").unwrap();
    assert_eq!(cell["repetitions"], 6);
    let said = terminal(&Report::of(&campaign).unwrap(), 200);
    assert!(said.contains("baselines differ by up to 50"), "their times differ, and that is said: {said}");
}

#[test]
fn a_group_whose_own_gpu_has_no_baseline_borrows_none() {
    let (_a, fast) = shard(2, 1.0, 1);
    let mut fixture = Fixture::named("shards").solo("tiny", 32, 1.0).group("tiny", 32, 3, "naive", 1.25).seed(2);
    fixture.baselines = false;
    let folder = tempfile::tempdir().unwrap();
    let (_c, campaign) = merged(&[fast, fixture.write(folder.path())]);
    let report = json(&Report::of(&campaign).unwrap());
    let cell = report["cells"].as_array().unwrap().iter().find(|c| c["cell"] == "tiny×3 naive b32").unwrap();
    assert!(cell["throughput_gain"].is_null(), "{cell}");
    assert_eq!(cell["absent"]["throughput_gain"], "its baseline `tiny solo b32` has no usable run");
}
