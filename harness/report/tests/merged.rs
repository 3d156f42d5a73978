//! Campaigns of one experiment from two GPUs, merged: every group is compared with the baseline of its own GPU.

use collo_compare::history;
use collo_guidelines::verdict::Holds;
use collo_report::{Report, json, terminal};

use crate::support::exports::export;
use collo_store::{CampaignFolder, DeviceRecord, GpuRecord, LendsNothing, RefusalRecord, Runs, Shard, Verdict};
use serde_json::Value;

use crate::support::Fixture;

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
            .get(collo_quantity::Key::EpochTime)
            .unwrap()
            .estimate,
        SLOWER,
    );
    let rows = String::from_utf8(export(&report, "dataset").unwrap()).unwrap();
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
    assert_eq!(cell["absent"]["throughput_gain"], "no baseline: `tiny solo b32` has no usable run where it was measured");
}

/// A campaign on a GPU: seven members, on slices where there is no baseline, because the GPU was partitioned.
fn on_gpu(id: &str, uuid: &str, baselines: bool) -> Fixture {
    let mode = if baselines { "mps" } else { "mig" };
    let mut f = Fixture::named(mode).solo("tiny", 32, 2.0).group("tiny", 32, 7, mode, if baselines { 2.5 } else { 5.0 });
    (f.id, f.baselines, f.shared_noise, f.member_noise) = (id.into(), baselines, 1e-3, 1e-4);
    f.seed = uuid.len() as u64 + u64::from(baselines);
    // What a normal user reads of a partitioned GPU.
    let memory_bytes = baselines.then_some(40 << 30);
    let name = "NVIDIA A100-SXM4-40GB";
    f.device = DeviceRecord { name: name.into(), kind: "gpu".into(), memory_bytes, persistence: Some(true), ..f.device };
    f.gpus = vec![GpuRecord { uuid: uuid.into(), name: name.into(), memory_bytes, ..GpuRecord::default() }];
    if !baselines {
        let reason = "the GPU is used as found, 7×1g.5gb, and this needs MIG off".into();
        f.refusals = vec![RefusalRecord { cell: "tiny solo b32".into(), sharing: "solo".into(), reason, hint: None }];
    }
    f
}

/// The end of a run, each note on one line.
fn unwrapped(report: &Report) -> String {
    terminal(report, 240).replace("\n  ", " ")
}

const WHOLE: &str = "20261120-1800-aaaa";
const CUT: &str = "20261120-1900-cccc";

#[test]
fn a_partitioned_gpu_borrows_the_baselines_of_a_campaign_on_it_with_mig_off_and_says_so() {
    let root = tempfile::tempdir().unwrap();
    let runs = Runs::at(root.path());
    let cut = on_gpu(CUT, "GPU-1", false).write(root.path());
    assert!(collo_store::lender(&runs, &cut).unwrap().is_none(), "there is none");
    let alone = Report::of(&cut).unwrap();
    let lacking: Vec<(&str, &str)> = alone.analysis.cells_without_baseline().map(|(c, why)| (c.name(), why)).collect();
    let why = "no baseline: `tiny solo b32` was refused here: the GPU is used as found, 7×1g.5gb, and this needs MIG off";
    assert_eq!(lacking, [("tiny×7 mig b32", why)]);
    assert!(unwrapped(&alone).contains(why) && page(&alone).contains("no baseline"), "{}", unwrapped(&alone));
    assert!(!page(&alone).contains(">no gain<"));

    on_gpu("20261120-1700-dddd", "GPU-2", true).write(root.path());
    assert!(collo_store::lender(&runs, &cut).unwrap().is_none(), "of another GPU");
    let whole = on_gpu(WHOLE, "GPU-1", true).write(root.path());
    let lender = collo_store::lender(&runs, &cut).unwrap().unwrap();
    assert_eq!(lender.manifest().id, WHOLE);
    let report = Report::beside(&cut, Some(&lender)).unwrap();
    let said = json(&report);
    near(estimate(&said, "tiny×7 mig b32", "slowdown"), 2.5);
    near(estimate(&said, "tiny×7 mig b32", "throughput_gain"), 7.0 * 2.0 / 5.0);
    let cells = said["cells"].as_array().unwrap();
    assert_eq!((cells.len(), &cells[0]["baseline_campaign"]), (1, &Value::from(WHOLE)), "the other's cells are not its own");
    assert_eq!(
        said["baselines_from"][0],
        serde_json::json!({"campaign": WHOLE, "experiment": "mps", "created_utc": "2026-11-20T18:42:09Z"})
    );
    assert!(report.analysis.cells_without_baseline().next().is_none());
    let text = unwrapped(&report);
    assert!(text.contains("baseline of") && text.contains("their intervals leave out what changed on the machine"), "{text}");
    assert!(page(&report).contains("baseline of campaign aaaa"));
    // What has its own needs none.
    assert!(collo_store::lender(&runs, &whole).unwrap().is_none());
}

#[test]
fn the_interval_contains_the_spread_of_borrowed_baselines_and_their_doubts_are_its_own() {
    let width = |noise: f64| {
        let root = tempfile::tempdir().unwrap();
        let cut = on_gpu(CUT, "GPU-1", false).write(root.path());
        let mut whole = on_gpu(WHOLE, "GPU-1", true);
        whole.shared_noise = noise;
        let report = Report::beside(&cut, Some(&whole.write(root.path()))).unwrap();
        let q = report.analysis.cells[0].get(collo_quantity::Key::ThroughputGain).unwrap().clone();
        q.high.unwrap() / q.low.unwrap() - 1.0
    };
    assert!(width(0.05) > 3.0 * width(1e-3), "{} and {}", width(0.05), width(1e-3));
    let root = tempfile::tempdir().unwrap();
    let cut = on_gpu(CUT, "GPU-1", false).write(root.path());
    let mut whole = on_gpu(WHOLE, "GPU-1", true);
    whole.indicative = vec!["--force".into()];
    let cell = &Report::beside(&cut, Some(&whole.write(root.path()))).unwrap().analysis.cells[0];
    assert_eq!(cell.validity.verdict, Verdict::Indicative);
    assert!(cell.validity.reasons[0].starts_with("its baseline `tiny solo b32`, of campaign aaaa, is indicative: "), "{cell:?}");
}

#[test]
fn a_report_of_both_compares_across_them_and_across_no_two_gpus() {
    let both = |uuid: &str| {
        let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let parts = [on_gpu(WHOLE, "GPU-1", true).write(a.path()), on_gpu(CUT, uuid, false).write(b.path())];
        let differing = collo_store::differences(&parts, collo_store::MergeScope::SameIngredients);
        assert_eq!(differing, [], "what a user may not read is no other device");
        let (_c, campaign) = merged(&parts);
        json(&Report::of(&campaign).unwrap())
    };
    let same = both("GPU-1");
    near(estimate(&same, "tiny×7 mig b32", "throughput_gain"), 7.0 * 2.0 / 5.0);
    near(estimate(&same, "tiny×7 mps b32", "throughput_gain"), 7.0 * 2.0 / 2.5);
    assert_eq!(same["baselines_from"][0]["campaign"], WHOLE);
    let other = both("GPU-2");
    let cell = other["cells"].as_array().unwrap().iter().find(|c| c["cell"] == "tiny×7 mig b32").unwrap();
    assert!(cell["throughput_gain"].is_null(), "{cell}");
}

#[test]
fn who_lends_nothing_is_told_why() {
    let root = tempfile::tempdir().unwrap();
    let cut = on_gpu(CUT, "GPU-1", false).write(root.path());
    let other = on_gpu("20261120-1700-dddd", "GPU-2", true).write(root.path());
    assert_eq!(collo_store::lends(&cut, &cut), Err(LendsNothing::Itself));
    assert_eq!(collo_store::lends(&other, &cut), Err(LendsNothing::OtherDevice("GPU-2".into(), "GPU-1".into())));
    let mut without = on_gpu("20261120-1701-eeee", "GPU-1", true);
    without.cells.retain(|cell| cell.record.degree > 1);
    assert_eq!(collo_store::lends(&without.write(root.path()), &cut), Err(LendsNothing::NoSolo));
    let mut longer = on_gpu("20261120-1702-ffff", "GPU-1", true);
    longer.epochs = 3;
    let why = collo_store::lends(&longer.write(root.path()), &cut).unwrap_err().to_string();
    assert_eq!(why, "it was measured under other conditions: epochs: 3 in ffff, 2 in cccc");
}

#[test]
fn merged_shards_are_a_night_and_merged_nights_are_none_besides_those_that_they_come_from() {
    let nights = |shards: [Option<Shard>; 2]| {
        let part = |i: usize| {
            let folder = tempfile::tempdir().unwrap();
            let mut fixture = Fixture::quickstart().seed(1 + i as u64);
            fixture.shard = shards[i];
            let campaign = fixture.write(folder.path());
            (folder, campaign)
        };
        let ((_a, one), (_b, other)) = (part(0), part(1));
        let (folder, _) = merged(&[one, other]);
        let read = history::read(&Runs::at(folder.path()), &folder.path().join("reports"), "quickstart", None).unwrap();
        assert_eq!(read.problems, [""; 0]);
        read.nights.len()
    };
    assert_eq!(nights([1, 2].map(|index| Some(Shard { index, count: 2 }))), 1);
    assert_eq!(nights([None, None]), 0);
}

/// Two campaigns of one pace each, merged; what is written of them.
fn both(a: &Fixture, b: &Fixture) -> Report {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (_c, campaign) = merged(&[a.write(one.path()), b.write(other.path())]);
    Report::of(&campaign).unwrap()
}

fn page(report: &Report) -> String {
    let reports = tempfile::tempdir().unwrap();
    std::fs::read_to_string(collo_report::write(report, reports.path()).unwrap().html).unwrap()
}

/// Baselines of one pace, and one group.
fn part(degree: u32, mode: &str, pace: f64, seed: u64) -> Fixture {
    let mut f = Fixture::named("parts").solo("tiny", 32, pace).group("tiny", 32, degree, mode, 1.25 * pace).seed(seed);
    (f.shared_noise, f.member_noise) = (1e-4, 1e-5);
    f
}

#[test]
fn rates_of_two_campaigns_are_not_compared() {
    let on_a_card = |mode: &str, rate: f64, seed: u64| {
        let mut f = part(2, mode, 1.0, seed);
        (f.device.kind, f.pcie_rx_bytes_per_s) = ("gpu".into(), Some(rate));
        f
    };
    let one = on_a_card("mps", 1e9, 1).group("tiny", 32, 2, "naive", 1.3);
    let traffic = |a: &Fixture, b: &Fixture| both(a, b).guideline("mps-pcie").expect("both modes were measured").clone();
    // In the first, naive has runs of another campaign, too.
    let naive = on_a_card("naive", 1e9, 2);
    for open in [traffic(&one, &naive), traffic(&on_a_card("mps", 2e9, 1), &naive)] {
        assert_eq!((open.holds, open.key.is_none()), (Holds::Open, true), "{}", open.finding);
        assert!(open.finding.contains("not measured on the same devices in one campaign"), "{}", open.finding);
    }
    let mut other = part(3, "naive", 1.0, 2);
    other.device.kind = "gpu".into();
    assert!(traffic(&one, &other).key.is_some(), "both modes are of the first");
}

#[test]
fn the_line_of_solo_is_of_the_campaign_whose_bars_it_crosses() {
    let lines = |page: &str| -> Vec<String> {
        let texts = page.split("class=\"it\"").skip(1).filter_map(|t| Some(t.split_once('>')?.1.split('<').next()?.to_string()));
        texts.filter(|t| t.starts_with("solo")).collect()
    };
    let mut alone = part(2, "naive", 1.0, 1);
    alone.cells.truncate(1);
    let beside = page(&both(&alone, &part(3, "naive", SLOWER, 2)));
    let drawn = lines(&beside);
    assert!(!drawn.is_empty());
    // Each device scatters little, so the line has many digits.
    drawn.iter().for_each(|line| near(line.split(' ').nth(1).unwrap().parse().unwrap(), SLOWER));
    let of_two = page(&both(&part(2, "naive", 1.0, 1), &part(3, "naive", SLOWER, 2)));
    assert_eq!(lines(&of_two), [""; 0], "no solo run stands beside bars of two GPUs");
}

#[test]
fn in_turn_stands_beside_groups_of_its_own_campaign_alone() {
    let mixed = |mode: &str, pace: f64, seed: u64| {
        let mut f = Fixture::named("mixes").solo("tiny", 32, pace).solo("small", 32, 2.0 * pace).seed(seed);
        f = f.mixed(("tiny", 1.2 * pace), ("small", 2.4 * pace), mode, "exit");
        f
    };
    let of_one =
        page(&both(&mixed("naive", 1.0, 1).mixed(("tiny", 1.1), ("small", 2.2), "mps", "exit"), &part(2, "naive", 1.0, 3)));
    assert!(of_one.contains("in turn\nmakespan") || of_one.contains("in turn&#10;makespan"), "both modes are of the first");
    let of_two = page(&both(&mixed("naive", 1.0, 1), &mixed("mps", SLOWER, 2)));
    assert!(!of_two.contains("in turn\nmakespan") && !of_two.contains("in turn&#10;makespan"));
    assert!(of_one.contains("; in turn they take") && !of_two.contains("; in turn they take"));
}

#[test]
fn an_indicative_baseline_counts_at_home_although_another_campaign_has_a_valid_one() {
    let mut busy = part(3, "naive", SLOWER, 2);
    busy.others_cores = 1.2;
    let report = both(&part(2, "naive", 1.0, 1).repetitions(6), &busy);
    let told = json(&report);
    near(estimate(&told, "tiny×3 naive b32", "throughput_gain"), 3.0 / 1.25);
    near(estimate(&told, "tiny×2 naive b32", "throughput_gain"), 2.0 / 1.25);
}

#[test]
fn one_run_of_a_baseline_is_indicative_in_a_merged_campaign_too() {
    let mut once = part(2, "naive", 1.0, 1).repetitions(1);
    once.stop_after = 2;
    let report = both(&once, &part(3, "naive", 1.0, 2));
    let baseline = |label: &str| {
        let group = report.analysis.cell(label).unwrap();
        report.analysis.solo_beside(group.counted(), "tiny solo b32").unwrap().validity.verdict
    };
    assert_eq!(baseline("tiny×2 naive b32"), Verdict::Indicative);
    assert_eq!(baseline("tiny×3 naive b32"), Verdict::Valid);
}

#[test]
fn the_load_of_one_machine_lowers_its_own_runs_alone() {
    let mut busy = part(3, "naive", 1.0, 2);
    busy.others_cores = 0.8;
    let report = both(&part(2, "naive", 1.0, 1), &busy);
    let validity = |label: &str| report.analysis.cell(label).unwrap().validity.clone();
    assert!(validity("tiny×2 naive b32").reasons.is_empty());
    assert_eq!(
        validity("tiny×3 naive b32").reasons,
        ["other processes used 40 % of the cores on average over the campaign (25 % allowed)"]
    );
    assert!(report.analysis.others_ratio.is_some_and(|ratio| (ratio - 0.4).abs() < 0.01));
}

#[test]
fn what_is_said_of_a_cell_is_of_its_own_runs() {
    let with = |mut f: Fixture, precision: &str, synthetic| {
        f.regime = serde_json::json!({ "precision": precision });
        f.synthetic = synthetic;
        f
    };
    let unknown = with(part(2, "naive", 1.0, 1), "fp32", None);
    let report = both(&unknown, &with(part(3, "naive", 1.0, 2), "bf16", Some(false)));
    let ran_on = |cell: &str| {
        let text = collo_report::terminal_cell(&report, cell, usize::MAX).unwrap();
        text.lines().find(|l| l.trim_start().starts_with("ran on")).unwrap().trim().to_string()
    };
    assert_eq!(ran_on("tiny×2 naive b32"), "ran on     Some CPU, 2 logical cores, torch 2.14.1, fp32");
    assert_eq!(ran_on("tiny×3 naive b32"), "ran on     Some CPU, 2 logical cores, torch 2.14.1, bf16, real data");
}
