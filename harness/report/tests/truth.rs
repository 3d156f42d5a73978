//! Campaigns with a known truth, and campaigns in which something is missing: what the analysis makes of them.

use collo_guidelines::report_json;
use collo_report::{Report, json, terminal, terminal_cell};
use collo_store::{CampaignFolder, Outcome, Reference};
use serde_json::Value;

use crate::support::Fixture;

fn analysed(fixture: &Fixture) -> Report {
    altered(fixture, |_| ())
}

/// Analyse after something was done to the campaign's files.
fn altered(fixture: &Fixture, alter: impl Fn(&CampaignFolder)) -> Report {
    let folder = tempfile::tempdir().unwrap();
    let campaign = fixture.write(folder.path());
    alter(&campaign);
    Report::of(&campaign).unwrap()
}

fn cell<'a>(report: &'a Value, name: &str) -> &'a Value {
    report["cells"].as_array().unwrap().iter().find(|c| c["cell"] == name).unwrap()
}

fn estimate(cell: &Value, name: &str) -> f64 {
    cell[name]["estimate"].as_f64().unwrap_or_else(|| panic!("{name} of {cell:#}"))
}

#[track_caller]
fn near(found: f64, truth: f64, tolerance: f64) {
    assert!((found / truth - 1.0).abs() < tolerance, "{found} is not within {tolerance} of {truth}");
}

#[test]
fn free_memory_is_none_where_a_repetition_leaves_none() {
    let full = altered(&Fixture::quickstart(), |c| {
        let path = c.path().join("tinyx2_naive_b32~0000-2/run.json");
        let mut run: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        run["device"]["memory_bytes"] = (1_u64 << 30).into();
        std::fs::write(&path, run.to_string()).unwrap();
        crate::support::noted::noted(c.path());
    });
    let report = json(&full);
    let two = cell(&report, "tiny×2 naive b32");
    assert_eq!((two["repetitions"].as_u64(), &two["memory_headroom_bytes"]), (Some(3), &Value::Null));
    assert!(cell(&report, "tiny solo b32")["memory_headroom_bytes"]["estimate"].is_f64());
}

#[test]
fn the_truth_is_found_again() {
    let mut quiet = Fixture::quickstart();
    (quiet.shared_noise, quiet.member_noise) = (1e-4, 1e-5);
    let report = json(&analysed(&quiet));
    let two = cell(&report, "tiny×2 naive b32");
    near(estimate(two, "epoch_time_s"), 1.60, 1e-3);
    near(estimate(two, "slowdown"), 1.60 / 1.57, 1e-3);
    near(estimate(two, "throughput_gain"), 2.0 * 1.57 / 1.60, 1e-3);
    near(estimate(two, "stp"), 2.0 * 1.57 / 1.60, 1e-3);
    near(estimate(two, "antt"), 1.60 / 1.57, 1e-3);
    near(estimate(two, "fairness"), 1.0, 1e-3);
    near(estimate(two, "overlap_ratio"), 1.0, 1e-3);
    near(estimate(two, "makespan_s"), 2.1 * 1.60, 2e-3);
    near(estimate(two, "memory_bytes"), 1.2 * 1073741824.0, 1e-6);
    near(estimate(two, "memory_of_solo"), 1.2 / 1.5, 1e-6);
    near(estimate(two, "cpu_ratio"), 2.0 * 0.99, 0.02);
    near(estimate(two, "items_per_s"), 2.0 * 1024.0 / 1.60, 1e-3);
    assert!(two["memory_kind"] == "pss_peak" && two["members"].as_array().unwrap().len() == 2);
    near(two["members"][1]["loss"].as_f64().unwrap(), 2.1, 1e-9);
    near(estimate(&two["metrics"], "cpu_pressure_some_ratio"), 0.05, 1e-6);
    let solo = cell(&report, "tiny solo b32");
    assert_eq!((estimate(solo, "slowdown"), solo["repetitions"].as_u64()), (1.0, Some(6)));
}

#[test]
fn absent_is_null_and_says_why_and_is_never_zero() {
    let report = json(&analysed(&Fixture::quickstart()));
    for c in report["cells"].as_array().unwrap() {
        assert!(c["energy_j_per_epoch"].is_null());
        assert_eq!(c["absent"]["energy_j_per_epoch"], "no readable counter");
        assert!(c["metrics"].get("cpu_frequency_mhz").is_none(), "every reading of it was absent");
    }
}

#[test]
fn the_report_keeps_to_its_schema() {
    let schema = jsonschema::validator_for(&report_json::schema()).unwrap();
    let wrong =
        |report: &Value| -> Vec<String> { schema.iter_errors(report).map(|e| format!("{}: {e}", e.instance_path)).collect() };
    let mut failed = Fixture::quickstart().ends(Outcome::OutOfMemory { member: 2, message: "1 GiB".into() });
    failed.repetitions = 1;
    let mixed =
        Fixture::named("mixed").solo("tiny", 32, 1.0).solo("big", 32, 2.0).mixed(("tiny", 1.2), ("big", 2.4), "mps", "exit");
    let mut empty = Fixture::named("empty");
    empty.repetitions = 0;
    let mut referred = Fixture::quickstart();
    referred.references = ["slowdown", "energy_j_per_epoch"]
        .map(|quantity| Reference {
            cell: "tiny×2 naive b32".into(),
            quantity: quantity.into(),
            value: 1.0,
            tolerance_ratio: 0.05,
            device: None,
        })
        .into();
    for fixture in [Fixture::quickstart(), failed, mixed, empty, referred] {
        let report = json(&analysed(&fixture));
        assert!(wrong(&report).is_empty(), "{}: {:#?}", fixture.name, wrong(&report));
        let runs: u64 = report["accounted"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
        assert_eq!(report["planned"].as_u64(), Some(runs), "planned = accounted for");
    }
    // A bare number, a field too many, one too few, and an unknown word.
    let mut report = json(&analysed(&Fixture::quickstart()));
    report["cells"][0]["slowdown"] = Value::from(1.0);
    report["cells"][0]["extra"] = Value::Null;
    report["cells"][0].as_object_mut().unwrap().remove("stp");
    report["guidelines"][0]["verdict"] = "perhaps".into();
    assert_eq!(wrong(&report).len(), 4, "{:#?}", wrong(&report));
}

#[test]
fn what_a_member_holds_after_its_training_is_not_in_its_peak() {
    let of = |more_when_done_gib: f64| {
        let mut fixture = Fixture::named("mixed").solo("tiny", 32, 1.0).solo("big", 32, 3.0).mixed(
            ("tiny", 1.2),
            ("big", 3.0),
            "naive",
            "exit",
        );
        fixture.more_when_done_gib = more_when_done_gib;
        let report = json(&analysed(&fixture));
        let group = cell(&report, "tiny+big naive b32");
        assert_eq!(group["memory_kind"], "pss_peak");
        (estimate(group, "memory_bytes"), estimate(&group["members"][0], "memory_bytes"))
    };
    // The first of two to finish writes its checkpoint while the other trains.
    assert_eq!(of(5.0), of(0.0));
}

#[test]
fn intervals_of_slowdowns_cover_the_truth_through_the_store() {
    // 24 groups whose members share their group's noise; by chance alone 19 or more cover in all but 1 of 1000 campaigns.
    let mut fixture = Fixture::named("coverage");
    fixture.samples_hz = 1.0;
    let mut truths = Vec::new();
    for i in 0..12 {
        let (name, solo) = (format!("w{}", (b'a' + i) as char), 1.0 + 0.05 * f64::from(i));
        fixture = fixture.solo(&name, 32, solo);
        for degree in [2, 3] {
            let slowdown = 1.0 + 0.1 * f64::from(degree) + 0.01 * f64::from(i);
            fixture = fixture.group(&name, 32, degree, "naive", solo * slowdown);
            truths.push((format!("{name}×{degree} naive b32"), slowdown));
        }
    }
    fixture.shared_noise = 0.03;
    fixture.thresholds.baseline_drift_ratio = 1.0;
    let report = json(&analysed(&fixture));
    assert_eq!(report["method"], "moderated t");
    let covered = truths.iter().filter(|(name, truth)| {
        let q = &cell(&report, name)["slowdown"];
        q["low"].as_f64().unwrap() <= *truth && *truth <= q["high"].as_f64().unwrap()
    });
    let covered = covered.count();
    assert!(truths.len() == 24 && covered >= 19, "{covered} of 24");
}

#[test]
fn under_release_the_makespan_counts_and_slowdowns_need_company() {
    let mut fixture =
        Fixture::named("mixed").solo("tiny", 32, 1.0).solo("big", 32, 3.0).mixed(("tiny", 1.2), ("big", 3.0), "mps", "exit");
    (fixture.shared_noise, fixture.member_noise) = (1e-4, 1e-5);
    let report = json(&analysed(&fixture));
    let mix = cell(&report, "tiny+big mps b32");
    assert_eq!(mix["throughput_gain_by"], "makespan");
    near(estimate(mix, "throughput_gain"), (2.1 + 6.3) / 6.3, 2e-3);
    assert!(mix["slowdown"].is_null() && mix["epoch_time_s"].is_null());
    near(estimate(&mix["members"][0], "slowdown"), 1.2, 1e-3);
    assert!(mix["members"][1]["slowdown"].is_null(), "it trained its measured epoch alone");
    let why = "none of its epochs had all members training";
    assert!(mix["members"][1]["absent"]["slowdown"] == why && mix["members"][1]["absent"]["epoch_time_s"] == why);
    assert!(mix["members"][0]["absent"].as_object().unwrap().is_empty(), "{:#}", mix["members"][0]);
    assert_eq!(mix["absent"]["slowdown"], "no epoch had all members training");
}

#[test]
fn under_hold_a_mixed_group_has_company_throughout() {
    let mut fixture = Fixture::named("mixed").solo("tiny", 32, 1.0).solo("big", 32, 3.0).mixed(
        ("tiny", 1.25),
        ("big", 4.0),
        "mps",
        "keep-running",
    );
    (fixture.shared_noise, fixture.member_noise) = (1e-4, 1e-5);
    let report = json(&analysed(&fixture));
    let mix = cell(&report, "tiny+big mps b32");
    assert_eq!(mix["throughput_gain_by"], "progress");
    near(estimate(mix, "throughput_gain"), 1.0 / 1.25 + 3.0 / 4.0, 1e-3);
    near(estimate(mix, "antt"), (1.25 + 4.0 / 3.0) / 2.0, 1e-3);
    near(estimate(mix, "fairness"), 0.75 / 0.8, 1e-3);
    near(estimate(mix, "overlap_ratio"), 1.0, 1e-3);
    near(estimate(mix, "cpu_ratio"), 2.0 * 0.99, 0.03);
    assert!(mix["epoch_time_s"].is_null() && !mix["members"][1]["epoch_time_s"].is_null());
}

#[test]
fn energy_is_the_counter_s_growth_shared_among_epochs() {
    let mut fixture = Fixture::quickstart();
    fixture.power_w = Some(30.0);
    (fixture.shared_noise, fixture.member_noise) = (1e-4, 1e-5);
    let report = json(&analysed(&fixture));
    near(estimate(cell(&report, "tiny solo b32"), "energy_j_per_epoch"), 30.0 * 1.57, 2e-3);
    near(estimate(cell(&report, "tiny×2 naive b32"), "energy_j_per_epoch"), 30.0 * 1.60 / 2.0, 2e-3);
}

#[test]
fn without_a_baseline_nothing_is_compared() {
    let mut fixture = Fixture::quickstart();
    fixture.baselines = false;
    let report = json(&analysed(&fixture));
    let two = cell(&report, "tiny×2 naive b32");
    near(estimate(two, "epoch_time_s"), 1.60, 0.05);
    assert!(two["slowdown"].is_null() && two["throughput_gain"].is_null() && two["memory_of_solo"].is_null());
    assert_eq!(two["absent"]["slowdown"], "no baseline: `tiny solo b32` is not in the plan");
    near(estimate(two, "fairness"), 1.0, 0.05);
}

#[test]
fn one_repetition_is_indicative_and_has_no_interval() {
    let report = json(&analysed(&Fixture::quickstart().repetitions(1)));
    let two = cell(&report, "tiny×2 naive b32");
    assert_eq!((two["validity"].as_str(), two["slowdown"]["low"].is_null()), (Some("indicative"), true));
    assert_eq!(two["reasons"][0], "one repetition carries no interval");
    for g in report["guidelines"].as_array().unwrap() {
        assert_eq!(g["holds"], "open", "{g:#}");
        assert!(g["statement"].as_str().unwrap().ends_with('?'), "{g:#}");
        assert_eq!(g["command"], "collo run quickstart --more 2");
        assert!(g["finding"].as_str().unwrap().ends_with("2 with one run."), "{g:#}");
    }
}

#[test]
fn drift_inside_a_block_widens_the_interval_and_discards_nothing() {
    let width = |fixture: &Fixture| {
        let report = json(&analysed(fixture));
        let two = &cell(&report, "tiny×2 naive b32");
        assert_eq!((two["validity"].as_str(), two["repetitions"].as_u64()), (Some("valid"), Some(3)), "{two:#}");
        two["slowdown"]["high"].as_f64().unwrap() / two["slowdown"]["low"].as_f64().unwrap()
    };
    let quiet = width(&Fixture::quickstart());
    let mut drifting = Fixture::quickstart();
    drifting.jitter = 0.3;
    assert!(width(&drifting) > 2.0 * quiet, "{} against {quiet}", width(&drifting));
    let mut open = Fixture::named("open").solo("tiny", 32, 1.0).group("tiny", 32, 2, "naive", 2.0);
    open.jitter = 0.3;
    let text = terminal(&analysed(&open), 200).split_whitespace().collect::<Vec<_>>().join(" ");
    let why = "No group is decided, because the machine's pace changed while it was measured (`tiny solo b32` by ";
    assert!(text.contains(why), "{text}");
}

#[test]
fn a_machine_that_is_slower_in_one_block_changes_no_ratio() {
    let mut quiet = Fixture::quickstart();
    (quiet.shared_noise, quiet.member_noise) = (1e-4, 1e-5);
    let mut slower = quiet.clone();
    slower.slow_block = Some((2, 1.4));
    let of = |fixture: &Fixture| {
        let report = json(&analysed(fixture));
        let two = cell(&report, "tiny×2 naive b32").clone();
        let q = two["throughput_gain"].clone();
        (q["estimate"].as_f64().unwrap(), q["high"].as_f64().unwrap() / q["low"].as_f64().unwrap())
    };
    let ((gain, width), (slow_gain, slow_width)) = (of(&quiet), of(&slower));
    near(slow_gain, gain, 1e-6);
    near(slow_width, width, 1e-6);
}

#[test]
fn a_cell_that_ran_out_of_memory_is_a_result_neither_valid_nor_discarded() {
    let no_memory = Outcome::OutOfMemory { member: 2, message: "tried to allocate 9 GiB".into() };
    let crash = Outcome::Crashed { member: 0, status: "exited with 1".into(), message: "in epoch 1".into(), place_alone: true };
    let full = Fixture::quickstart().group("tiny", 32, 4, "naive", 1.0).ends(no_memory);
    let whole = analysed(&full.group("tiny", 32, 5, "naive", 1.0).ends(crash));
    let report = json(&whole);
    let four = cell(&report, "tiny×4 naive b32");
    assert_eq!((&four["validity"], &four["outcome"]), (&"out_of_memory".into(), &"out_of_memory".into()));
    assert_eq!(four["reasons"][0], "out of memory: member 2: tried to allocate 9 GiB");
    assert_eq!(cell(&report, "tiny×5 naive b32")["validity"], "discarded");
    let shown = terminal_cell(&whole, "tiny×4", usize::MAX).unwrap();
    assert!(shown.contains(": out of memory, 0 of 3 repetitions") && !shown.contains("discarded"), "{shown}");
    let reports = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(collo_report::write(&whole, reports.path()).unwrap().markdown).unwrap();
    assert!(text.contains("3 cells valid, 0 indicative, 1 discarded, 1 out of memory"), "{text}");
}

#[test]
fn late_starts_and_thin_overlap_make_a_run_indicative() {
    let mut fixture = Fixture::quickstart();
    fixture.thresholds.start_skew_s = 1e-6;
    let report = json(&analysed(&fixture));
    let two = cell(&report, "tiny×2 naive b32");
    assert_eq!((two["validity"].as_str(), two["repetitions"].as_u64()), (Some("indicative"), Some(3)));
    assert!(two["reasons"][0].as_str().unwrap().contains("members started"));
    assert_eq!(cell(&report, "tiny solo b32")["validity"], "valid");
}

#[test]
fn members_faster_than_alone_make_a_cell_indicative() {
    let fixture = Fixture::named("odd").solo("tiny", 32, 1.57).group("tiny", 32, 2, "naive", 1.2);
    let report = json(&analysed(&fixture));
    let two = cell(&report, "tiny×2 naive b32");
    assert_eq!(two["validity"], "indicative");
    let why = two["reasons"][0].as_str().unwrap();
    assert!(why.starts_with("implausible: its members were faster than alone"), "{two:#}");
    // Members of different workloads under `exit`, both in half of the time of one.
    let mut fixture =
        Fixture::named("odd").solo("tiny", 32, 1.0).solo("big", 32, 3.0).mixed(("tiny", 0.5), ("big", 1.0), "mps", "exit");
    (fixture.shared_noise, fixture.member_noise) = (1e-3, 1e-4);
    let whole = analysed(&fixture);
    let report = json(&whole);
    let mix = cell(&report, "tiny+big mps b32");
    assert_eq!(mix["validity"], "indicative");
    let why = mix["reasons"][0].as_str().unwrap();
    assert!(why.starts_with("implausible: its members were faster than alone (slowdown 0.50"), "{why}");
    assert!(why.contains(", and its gain of ") && why.contains("is more than 2 members can have"), "{why}");
    assert!(collo_report::terminal(&whole, 200).contains("implausible"), "the terminal, too");
}

#[test]
fn the_campaign_s_own_reasons_reach_every_cell() {
    let mut fixture = Fixture::quickstart();
    fixture.indicative = vec!["ingredients changed, --force".into()];
    let report = json(&analysed(&fixture));
    assert!(report["cells"].as_array().unwrap().iter().all(|c| c["validity"] == "indicative"));
    assert!(report["guidelines"].as_array().unwrap().iter().all(|g| g["holds"] == "open"));
}

#[test]
fn a_machine_that_others_used_is_said_and_carries_no_guideline() {
    let mut fixture = Fixture::quickstart();
    fixture.others_cores = 0.6;
    let report = json(&analysed(&fixture));
    let two = cell(&report, "tiny×2 naive b32");
    assert_eq!(two["validity"], "indicative");
    let said = two["reasons"].to_string();
    assert!(said.contains("other processes used 30 % of the cores on average over the campaign (25 % allowed)"), "{said}");
    assert!(report["guidelines"].as_array().unwrap().iter().all(|g| g["holds"] == "open"));
}

#[test]
fn files_that_cannot_be_read_lower_their_run_and_nothing_else() {
    let whole = altered(&Fixture::quickstart(), |c| {
        std::fs::write(c.path().join("tinyx2_naive_b32~0000-1/samples.parquet"), "not parquet").unwrap();
        std::fs::write(c.path().join("tinyx2_naive_b32~0000-2/epochs.parquet"), "not parquet").unwrap();
        std::fs::write(c.path().join("tinyx3_naive_b32~0000-1/run.json"), "{").unwrap();
        std::fs::remove_file(c.path().join("tinyx3_naive_b32~0000-2/samples.parquet")).unwrap();
    });
    let report = json(&whole);
    let two = cell(&report, "tiny×2 naive b32");
    assert_eq!((two["repetitions"].as_u64(), two["validity"].as_str()), (Some(1), Some("indicative")));
    assert!(
        two["reasons"][0].as_str().unwrap().starts_with("2 runs left out: its samples.parquet does not have its checksum"),
        "{two:#}"
    );
    assert_eq!(report["accounted"]["missing"], 1);
    assert!(report["problems"][0].as_str().unwrap().contains("tinyx3_naive_b32~0000-1"));
    let left_out = "3 runs are left out: their files changed since they were recorded (`tinyx2_naive_b32~0000-1`, `tinyx2_naive_b32~0000-2`, \
                    `tinyx3_naive_b32~0000-2`)";
    assert_eq!(report["problems"][1], left_out);
    let three = cell(&report, "tiny×3 naive b32");
    assert_eq!((three["repetitions"].as_u64(), three["memory_kind"].as_str()), (Some(1), Some("pss_peak")));
}

#[test]
fn guidelines_judge_what_is_there() {
    let verdicts = |f: &Fixture| -> Vec<String> {
        let report = json(&analysed(f));
        report["guidelines"].as_array().unwrap().iter().map(|g| g["holds"].as_str().unwrap().to_string()).collect()
    };
    assert_eq!(verdicts(&Fixture::quickstart()), ["yes", "no", "yes", "yes"]);
    // Two that take four times as long together lose against running in turn; the sum of memory is theirs.
    let mut losing = Fixture::named("losing").solo("tiny", 32, 1.0).group("tiny", 32, 2, "naive", 4.0);
    losing.cells[1].memory_gib = vec![0.75, 0.75];
    losing.cells[1].epoch_s = vec![4.0, 3.0];
    assert_eq!(verdicts(&losing), ["no", "yes", "no", "no"]);
}

#[test]
fn on_a_gpu_the_memory_of_the_host_is_no_line_of_a_timeline() {
    let mut fixture = Fixture::quickstart();
    (fixture.device.kind, fixture.device.name) = ("gpu".into(), "NVIDIA A100-SXM4-40GB".into());
    let report = analysed(&fixture);
    assert!(!report.analysis.timelines.is_empty());
    assert!(report.analysis.timelines.iter().flat_map(|t| &t.memory).all(Vec::is_empty));
    let reports = tempfile::tempdir().unwrap();
    let page = std::fs::read_to_string(collo_report::write(&report, reports.path()).unwrap().markdown).unwrap();
    assert!(!page.contains("RSS, which counts shared pages"), "{page}");
}

#[test]
fn a_run_that_is_measured_again_later_is_not_divided_by_what_its_block_took() {
    let mut fixture = Fixture::quickstart().repetitions(4);
    (fixture.shared_noise, fixture.member_noise) = (1e-4, 1e-5);
    // The second block was slow, and its run of the pair was measured when that was over.
    (fixture.slow_block, fixture.odd_run) = (Some((2, 1.3)), Some(("tiny×2 naive b32", 2, 1.0 / 1.3)));
    let slowdown =
        |alter: &dyn Fn(&CampaignFolder)| cell(&json(&altered(&fixture, alter)), "tiny×2 naive b32")["slowdown"].clone();
    near(slowdown(&|_| ())["estimate"].as_f64().unwrap(), 0.954, 5e-3);
    let later = slowdown(&|c| crate::support::measure_again(c, "tinyx2_naive_b32~0000-2"));
    let truth = 1.60 / 1.57;
    near(later["estimate"].as_f64().unwrap(), truth, 0.01);
    assert!(later["low"].as_f64().unwrap() < truth && truth < later["high"].as_f64().unwrap(), "{later}");
}
