//! Members that serve, on campaigns whose latencies are known: a queue in its long run, alone and beside training. What the report says of
//! them is what is true, what was not measured stays absent with its reason, and nothing that is made of epochs is said.

use collo_compare::campaigns::{Options, compare};
use collo_compare::history::{self, History, NightlyRun, NightlySummary, Rules};
use collo_compare::side::ComparedReport;
use collo_figures::document::Present;
use collo_guidelines::report_json;
use collo_guidelines::rule::Guideline;
use collo_guidelines::verdict::Holds;
use collo_quantity::Key;
use collo_report::{Report, json, terminal, terminal_cell, write};
use collo_store::{CampaignFolder, Outcome, RequestRecord, write_requests};
use serde_json::Value;

use crate::support::Fixture;
use crate::support::serving::Serves;

fn analysed(fixture: &Fixture) -> Report {
    altered(fixture, |_| ())
}

/// Analyse after something was done to the campaign's files.
fn altered(fixture: &Fixture, alter: impl Fn(&CampaignFolder)) -> Report {
    let folder = tempfile::tempdir().unwrap();
    let campaign = fixture.write(folder.path());
    alter(&campaign);
    crate::support::noted::noted(campaign.path());
    Report::of(&campaign).unwrap()
}

/// The end of a run, each note on one line.
fn unwrapped(whole: &Report) -> String {
    terminal(whole, 240).replace("\n  ", " ")
}

fn cell<'a>(report: &'a Value, name: &str) -> &'a Value {
    let named = report["cells"].as_array().unwrap().iter().find(|c| c["cell"] == name);
    named.unwrap_or_else(|| panic!("no cell `{name}`"))
}

fn estimate(cell: &Value, name: &str) -> f64 {
    cell[name]["estimate"].as_f64().unwrap_or_else(|| panic!("{name} of {cell:#}"))
}

fn serving(whole: &Report) -> &Guideline {
    whole.guidelines.iter().find(|g| g.id == "serving").unwrap()
}

#[track_caller]
fn near(found: f64, truth: f64, tolerance: f64) {
    assert!((found / truth - 1.0).abs() < tolerance, "{found} is not within {tolerance} of {truth}");
}

/// A server alone and beside a trainer, under a mode that leaves it most of its capacity and one that does not.
fn campaign() -> Fixture {
    let usual = Serves::usual();
    let mut f = Fixture::named("serving").solo("tiny", 32, 8.0).serves("serve", &usual);
    f = f.beside(&[("serve", usual.clone().left(110.0))], &[("tiny", 10.0)], "mps");
    f.beside(&[("serve", usual.left(75.0))], &[("tiny", 9.0)], "naive")
}

#[test]
fn the_true_quantiles_are_found_again() {
    let mut fixture = campaign();
    for c in &mut fixture.cells {
        for (serves, epoch_s) in c.serves.iter_mut().zip(&mut c.epoch_s) {
            if let Some(serves) = serves {
                (serves.window_s, *epoch_s) = (400.0, 400.0);
            }
        }
    }
    (fixture.shared_noise, fixture.samples_hz) = (1e-4, 0.2);
    fixture.thresholds.overlap_ratio = 0.0;
    let report = json(&analysed(&fixture));
    for (name, capacity) in [("serve solo b1", 120.0), ("serve+tiny mps", 110.0), ("serve+tiny naive", 75.0)] {
        let (found, truth) = (cell(&report, name), Serves::usual().left(capacity));
        near(estimate(found, "latency_p50_s"), truth.quantile_s(0.5), 0.08);
        near(estimate(found, "latency_p95_s"), truth.quantile_s(0.95), 0.12);
        near(estimate(found, "latency_p99_s"), truth.quantile_s(0.99), 0.20);
        near(estimate(found, "within_slo_ratio"), truth.within(), 0.02);
        near(estimate(found, "offered_per_s"), 50.0, 0.02);
        near(estimate(found, "goodput_per_s"), 50.0 * truth.within(), 0.04);
        near(estimate(found, "answered_per_s"), 50.0, 0.02);
    }
    let mps = cell(&report, "serve+tiny mps");
    let truth = Serves::usual().left(110.0).quantile_s(0.99) / Serves::usual().quantile_s(0.99);
    near(estimate(mps, "latency_p99_of_solo"), truth, 0.2);
    near(estimate(&mps["members"][1], "slowdown"), 10.0 / 8.0, 0.01);
    near(estimate(&cell(&report, "serve solo b1")["members"][0], "capacity_per_s"), 120.0, 0.01);
}

#[test]
fn intervals_of_a_p99_and_of_its_ratio_cover_the_truth() {
    // 24 groups of four repetitions; by chance alone 19 or more cover in all but 1 of 1000 times.
    let usual = Serves { window_s: 30.0, ..Serves::usual() };
    let (mut p99, mut ratio, mut within) = (0, 0, 0);
    for seed in 0..12 {
        let mut f = Fixture::named("coverage").serves("serve", &usual).repetitions(4).seed(seed);
        for (mode, left) in [("mps", 100.0), ("naive", 90.0)] {
            f = f.beside(&[("serve", usual.clone().left(left))], &[("tiny", 31.0)], mode);
        }
        (f.samples_hz, f.shared_noise) = (0.2, 0.02);
        f.thresholds.baseline_drift_ratio = 1.0;
        let report = json(&analysed(&f));
        for (mode, left) in [("mps", 100.0), ("naive", 90.0)] {
            let (found, truth) = (cell(&report, &format!("serve+tiny {mode}")), usual.clone().left(left));
            let covers = |name: &str, truth: f64| {
                let q = &found[name];
                usize::from(q["low"].as_f64().unwrap() <= truth && truth <= q["high"].as_f64().unwrap())
            };
            p99 += covers("latency_p99_s", truth.quantile_s(0.99));
            ratio += covers("latency_p99_of_solo", truth.quantile_s(0.99) / usual.quantile_s(0.99));
            within += covers("within_slo_ratio", truth.within());
        }
    }
    assert!(p99 >= 19 && ratio >= 19 && within >= 19, "{p99}, {ratio}, {within} of 24");
}

#[test]
fn what_is_made_of_epochs_is_absent_where_a_member_serves() {
    let report = json(&analysed(&campaign()));
    for name in ["serve solo b1", "serve+tiny mps"] {
        let c = cell(&report, name);
        for quantity in [
            "epoch_time_s",
            "slowdown",
            "stp",
            "antt",
            "throughput_gain",
            "fairness",
            "makespan_s",
            "items_per_s",
            "energy_j_per_epoch",
            "energy_of_solo",
            "pcie_rx_of_solo",
        ] {
            assert!(c[quantity].is_null(), "{quantity} of {name}");
            assert_eq!(c["absent"][quantity], "a member serves", "{quantity} of {name}");
        }
        assert!(c["members"][0]["epoch_time_s"].is_null() && c["members"][0]["items_per_s"].is_null());
        assert!(c["members"][0]["loss"].is_null() && c["members"][0]["serving"]["rate_per_s"] == 50.0);
        assert!(!c["memory_bytes"].is_null() && !c["cpu_ratio"].is_null(), "what is no epoch's stays");
    }
    let beside = cell(&report, "serve+tiny mps");
    near(estimate(&beside["members"][1], "epoch_time_s"), 10.0, 0.05);
    assert!(beside["members"][1]["serving"].is_null() && beside["members"][1]["latency_p99_s"].is_null());
    let alone = cell(&report, "tiny solo b32");
    assert_eq!(alone["absent"]["latency_p99_s"], "no member serves");
    assert_eq!(estimate(cell(&report, "serve solo b1"), "latency_p99_of_solo"), 1.0);
}

#[test]
fn under_release_neither_a_gain_nor_a_makespan_is_made_of_service() {
    let mut fixture = campaign();
    fixture.cells.iter_mut().for_each(|c| c.record.after_measured = collo_store::AfterMeasured::Exit);
    let report = json(&analysed(&fixture));
    let c = cell(&report, "serve+tiny mps");
    assert!(c["throughput_gain"].is_null() && c["makespan_s"].is_null());
    // The trainer leaves after 21 s, within the second span of service, so that no span has company all along.
    assert!(c["latency_p99_s"].is_null());
    assert_eq!(c["absent"]["latency_p99_s"], "no measured epoch had all members running");
    assert!(!c["members"][1]["slowdown"].is_null(), "the trainer had company");
}

#[test]
fn the_report_keeps_to_its_schema_with_servers() {
    let report = json(&analysed(&campaign()));
    let schema = report_json::schema();
    let member = &schema["properties"]["cells"]["items"]["properties"]["members"]["items"];
    for required in ["serving", "absent", "latency_p99_s", "capacity_per_s"] {
        assert!(member["required"].as_array().unwrap().iter().any(|r| r == required), "{required}");
    }
    for m in report["cells"].as_array().unwrap().iter().flat_map(|c| c["members"].as_array().unwrap()) {
        for key in m.as_object().unwrap().keys() {
            assert!(member["properties"].get(key).is_some(), "{key} is not in the schema");
        }
    }
}

#[test]
fn absent_latencies_say_why() {
    let usual = Serves::usual();
    let one = |serves: &Serves| {
        let report = json(&analysed(&Fixture::named("one").serves("serve", serves)));
        cell(&report, "serve solo b1").clone()
    };
    let short = one(&Serves { window_s: 3.0, ..usual.clone() });
    assert!(short["latency_p95_s"].is_object() && short["latency_p99_s"].is_null());
    let why = short["absent"]["latency_p99_s"].as_str().unwrap();
    assert!(why.starts_with("it needs at least 299 requests in a run's measured window; there were 1"), "{why}");
    let no_limit = one(&Serves { slo_s: None, ..usual.clone() });
    assert_eq!((&no_limit["within_slo_ratio"], &no_limit["goodput_per_s"]), (&Value::Null, &Value::Null));
    assert_eq!(no_limit["absent"]["goodput_per_s"], "no `slo` was set");
    let lossy = one(&Serves { dropped_ratio: 0.03, ..usual.clone() });
    assert!(lossy["latency_p95_s"].is_object() && lossy["latency_p99_s"].is_null());
    assert_eq!(lossy["absent"]["latency_p99_s"], "more than 1 % of the requests were never answered");
    assert!(estimate(&lossy, "within_slo_ratio") < 0.98, "who was never answered was not in time");
    let dead = one(&Serves { dropped_ratio: 1.0, ..usual.clone() });
    assert_eq!(dead["absent"]["latency_p50_s"], "more than 50 % of the requests were never answered");
    assert_eq!((estimate(&dead, "within_slo_ratio"), estimate(&dead, "goodput_per_s")), (0.0, 0.0));
    assert!(dead["within_slo_ratio"]["low"].is_null());
    let idle = one(&Serves { rate_per_s: 1e-9, ..usual });
    assert_eq!(idle["absent"]["latency_p50_s"], "no request was due in its measured window");
    assert_eq!((estimate(&idle, "offered_per_s"), &idle["within_slo_ratio"]), (0.0, &Value::Null));
}

#[test]
fn a_quantile_of_the_luckier_repetitions_is_none() {
    // In one repetition nobody is answered: the others' p99 would be too good.
    let usual = Serves { slo_s: Some(0.3), ..Serves::usual() };
    let fixture = Fixture::named("lucky").solo("tiny", 32, 8.0).serves("serve", &usual);
    let fixture = fixture.beside(&[("serve", usual.left(110.0))], &[("tiny", 10.0)], "mps");
    assert_eq!(serving(&analysed(&fixture)).holds, Holds::Yes);
    let whole = altered(&fixture, |c| {
        let path = c.path().join("serve+tiny_mps~0000-2/requests.parquet");
        let mut all = collo_store::read_requests(&path).unwrap();
        all.iter_mut().for_each(|r| r.end_ns = None);
        write_requests(&path, &all).unwrap();
    });
    let report = json(&whole);
    let c = cell(&report, "serve+tiny mps");
    assert_eq!((c["repetitions"].as_u64(), &c["latency_p99_s"]), (Some(3), &Value::Null));
    assert_eq!(c["absent"]["latency_p99_s"], "more than 1 % of the requests were never answered");
    assert_eq!(serving(&whole).holds, Holds::No, "{}", serving(&whole).finding);
}

#[test]
fn a_quantile_that_one_repetition_has_too_few_requests_for_is_none() {
    // Arrivals are random: which repetitions have enough of them depends on the load.
    let usual = Serves { slo_s: Some(0.3), ..Serves::usual() };
    let fixture = Fixture::named("few").solo("tiny", 32, 8.0).serves("serve", &usual);
    let fixture = fixture.beside(&[("serve", usual.left(110.0))], &[("tiny", 10.0)], "mps");
    let few = altered(&fixture, |c| {
        let path = c.path().join("serve+tiny_mps~0000-2/requests.parquet");
        let all = collo_store::read_requests(&path).unwrap();
        let few: Vec<RequestRecord> = all.into_iter().step_by(5).collect();
        write_requests(&path, &few).unwrap();
    });
    let report = json(&few);
    let c = cell(&report, "serve+tiny mps");
    assert_eq!((c["repetitions"].as_u64(), &c["latency_p99_s"]), (Some(3), &Value::Null));
    assert_eq!(c["latency_p99_of_solo"], Value::Null);
    assert_eq!(c["absent"]["latency_p99_of_solo"], c["absent"]["latency_p99_s"]);
    assert!(c["absent"]["latency_p99_s"].as_str().unwrap().starts_with("it needs at least 299 requests"), "{}", c["absent"]);
    assert!(c["latency_p50_s"]["estimate"].is_f64(), "a median needs fewer: {c}");
}

#[test]
fn a_baseline_below_its_rate_in_one_run_is_not_the_mean_of_the_faster_ones() {
    let whole = altered(&campaign(), |c| {
        let path = c.path().join("serve_solo_b1~0000-2/run.json");
        let mut run: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        run["members"][0]["serving"]["capacity_per_s"] = 46.0.into();
        std::fs::write(&path, run.to_string()).unwrap();
    });
    let report = json(&whole);
    let alone = cell(&report, "serve solo b1");
    assert_eq!((alone["outcome"].as_str(), alone["repetitions"].as_u64()), (Some("completed"), Some(6)));
    assert!(alone["latency_p99_s"].is_null() && alone["latency_p50_s"].is_null());
    let why = "its `rate` is 50 a second, and alone it answers 46.0: no latency is its own then; lower `rate` to 43";
    assert_eq!(alone["absent"]["latency_p99_s"], why);
    near(estimate(alone, "within_slo_ratio"), 5.0 / 6.0, 0.02);
    assert_eq!(cell(&report, "serve+tiny mps")["absent"]["latency_p99_of_solo"], "its baseline `serve solo b1` has no p99");
    assert!(unwrapped(&whole).contains(why), "{}", unwrapped(&whole));
}

#[test]
fn the_terminal_has_the_trainer_s_slowdown_and_why_there_is_no_p99() {
    let text = terminal(&analysed(&campaign()), 240);
    let line = text.lines().find(|l| l.starts_with("serve+tiny mps")).unwrap();
    assert!(line.contains("1.2") && text.contains("slowdown"), "{text}");
    let short = Serves { window_s: 1.0, ..Serves::usual() };
    let f = Fixture::named("short").solo("tiny", 32, 0.4).serves("serve", &short);
    let whole = analysed(&f.beside(&[("serve", short.left(110.0))], &[("tiny", 0.5)], "mig"));
    let text = unwrapped(&whole);
    assert!(text.contains("`serve+tiny mig` has no p99: it needs at least 299 requests"), "{text}");
    assert!(text.contains("times as long has them"), "{text}");
    assert_eq!(serving(&whole).command, None, "more repetitions of so short a window are no answer");
    assert!(serving(&whole).finding.contains("too few requests for a p99"), "{}", serving(&whole).finding);
    let isolation = whole.guidelines.iter().find(|g| g.id == "isolation");
    assert!(isolation.is_none_or(|g| g.finding.starts_with("Every group on slices has a serving member")));
}

#[test]
fn requests_that_cannot_be_read_or_cannot_be_lower_their_run() {
    let whole = altered(&campaign(), |c| {
        std::fs::write(c.path().join("serve+tiny_mps~0000-1/requests.parquet"), "not parquet").unwrap();
        std::fs::remove_file(c.path().join("serve+tiny_mps~0000-2/requests.parquet")).unwrap();
        let path = c.path().join("serve+tiny_naive~0000-1/requests.parquet");
        let mut all = collo_store::read_requests(&path).unwrap();
        all.push(RequestRecord { member: 0, arrival_ns: 9, start_ns: Some(1), end_ns: Some(2) });
        // Nobody has this number, and this one trains.
        all.extend([1, 99].map(|member| RequestRecord { member, arrival_ns: 1, start_ns: None, end_ns: None }));
        write_requests(&path, &all).unwrap();
    });
    let report = json(&whole);
    let (mps, naive) = (cell(&report, "serve+tiny mps"), cell(&report, "serve+tiny naive"));
    assert_eq!((mps["repetitions"].as_u64(), naive["repetitions"].as_u64()), (Some(1), Some(2)));
    assert!(mps["reasons"][0].as_str().unwrap().contains("its requests cannot be read"), "{mps:#}");
    assert!(naive["reasons"][0].as_str().unwrap().contains("1 request answered before they were due"), "{naive:#}");
}

#[test]
fn equal_servers_are_pooled_and_different_ones_stand_by_themselves() {
    let usual = Serves::usual();
    let slow = Serves { rate_per_s: 20.0, capacity_per_s: 60.0, slo_s: None, ..usual.clone() };
    let two = || ("serve", usual.clone());
    let mut f = Fixture::named("servers").solo("tiny", 32, 8.0).serves("serve", &usual).serves("decode", &slow);
    f = f.beside(&[two(), two()], &[("tiny", 10.0)], "mps");
    f = f.beside(&[two(), ("decode", slow.clone())], &[("tiny", 10.0)], "mps").beside(&[two(), two()], &[], "mps");
    let report = json(&analysed(&f));
    let alike = cell(&report, "serve×2+tiny mps");
    near(estimate(alike, "offered_per_s"), 100.0, 0.05);
    near(estimate(&alike["members"][1], "offered_per_s"), 50.0, 0.1);
    assert!(estimate(alike, "latency_p99_of_solo") > 0.5);
    let apart = cell(&report, "serve+decode+tiny mps");
    assert!(apart["latency_p99_s"].is_null());
    assert_eq!(apart["absent"]["latency_p99_s"], "its members serve different workloads: see each member");
    near(estimate(&apart["members"][1], "offered_per_s"), 20.0, 0.1);
    assert_eq!(apart["members"][1]["absent"]["within_slo_ratio"], "no `slo` was set");
    assert!(apart["members"][1]["latency_p99_of_solo"].is_object() && apart["members"][0]["within_slo_ratio"].is_object());
    let nobody_trains = cell(&report, "serve×2 mps");
    assert_eq!((nobody_trains["validity"].as_str(), &nobody_trains["stp"]), (Some("valid"), &Value::Null));
}

#[test]
fn a_server_that_fell_before_it_said_so_is_known_as_one() {
    let crash =
        Outcome::Crashed { member: 0, status: "exited with 1".into(), message: "in its warm-up".into(), place_alone: true };
    let whole = analysed(&campaign().ends(crash));
    let fallen = whole.analysis.cells.iter().find(|c| c.name() == "serve+tiny naive").unwrap();
    assert!(fallen.serves() && fallen.members[0].absent[&Key::LatencyP99] == "no usable run");
    let report = json(&whole);
    assert_eq!(cell(&report, "serve+tiny naive")["absent"]["latency_p99_s"], "no run of it completed");
}

#[test]
fn a_server_s_baseline_drifts_by_its_capacity_and_not_by_chance() {
    let fixture = campaign();
    assert!(analysed(&fixture).analysis.drifts.iter().any(|d| d.cell == "serve solo b1" && !d.is_large));
    let mut slower = campaign();
    slower.drift = 1.3;
    let (calm, whole) = (analysed(&fixture), analysed(&slower));
    assert!(whole.analysis.drifts.iter().any(|d| d.cell == "serve solo b1" && d.is_large && (d.ratio / 1.3 - 1.0).abs() < 0.1));
    let width = |report: &Report| {
        let q = report.analysis.cell("serve+tiny mps").unwrap().get(Key::LatencyP99OfSolo).unwrap();
        (q.high.unwrap() / q.low.unwrap()).ln()
    };
    assert!(width(&whole) > width(&calm), "it widens the intervals: {} and {}", width(&whole), width(&calm));
    let reports = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(write(&whole, reports.path()).unwrap().markdown).unwrap();
    assert!(text.contains("Baseline drift: +"), "it is reported");
    assert_eq!(cell(&json(&whole), "serve+tiny mps")["validity"], "valid", "and lowers nothing");
}

#[test]
fn the_guideline_says_under_which_mode_training_may_run_beside() {
    // Within 200 ms: 110 a second answer 99.999 %, 75 a second 99.3 %, 60 a second 86 %.
    let usual = Serves { slo_s: Some(0.2), ..Serves::usual() };
    let beside = |f: Fixture, left: f64, epoch_s: f64, mode: &str| {
        f.beside(&[("serve", usual.clone().left(left))], &[("tiny", epoch_s)], mode)
    };
    let start = || Fixture::named("serving").solo("tiny", 32, 8.0).serves("serve", &usual);
    let whole = analysed(&beside(beside(start(), 110.0, 10.0, "mps"), 60.0, 9.0, "naive"));
    let g = serving(&whole);
    assert_eq!(g.holds, Holds::Yes, "{}", g.finding);
    insta::assert_snapshot!(g.statement, @"Train beside serving under MPS: `serve+tiny mps`.");
    insta::assert_snapshot!(g.finding, @"`serve+tiny mps` answers 100.0 [99.7, 100.0] % of the requests within 200 ms; `tiny` takes 1.26 ±0.03 times as long as alone; 1 of 2 groups certainly meets the requirement.");
    assert_eq!((g.key.as_ref().unwrap().quantity, g.command.as_deref()), (Key::WithinSlo, None));

    let whole = analysed(&beside(start(), 60.0, 9.0, "naive"));
    let g = serving(&whole);
    assert_eq!((g.holds, g.statement.as_str()), (Holds::No, "May training run beside serving?"), "{}", g.finding);

    let too_much = Serves { capacity_per_s: 40.0, ..usual.clone() };
    let alone = Fixture::named("serving").solo("tiny", 32, 8.0).serves("serve", &too_much);
    let whole = analysed(&beside(alone, 35.0, 9.0, "naive"));
    let g = serving(&whole);
    assert_eq!((g.holds, g.statement.as_str()), (Holds::No, "May training run beside serving?"));
    assert!(
        g.finding.starts_with("No: reduce the serving load first. `serve solo b1` answers ")
            && g.finding.contains("with nothing beside it"),
        "{}",
        g.finding
    );

    let nobody = analysed(&start());
    let g = serving(&nobody);
    assert_eq!((g.holds, g.command.as_deref()), (Holds::Open, Some("collo run serve-cpu")));
    insta::assert_snapshot!(g.finding, @"No member trains beside a serving one in this experiment.");

    let once = analysed(&beside(start(), 110.0, 10.0, "mps").repetitions(1));
    let g = serving(&once);
    assert_eq!((g.holds, g.command.as_deref()), (Holds::Open, Some("collo run serving --more 2")));
    assert_eq!(g.finding, "No group can be judged by its requests: 1 with one run.");
}

#[test]
fn a_server_that_misses_alone_says_nothing_of_another_one() {
    let usual = Serves { slo_s: Some(0.2), ..Serves::usual() };
    let too_much = Serves { capacity_per_s: 40.0, ..usual.clone() };
    let crash = Outcome::Crashed { member: 1, status: "exited with 1".into(), message: "boom".into(), place_alone: false };
    let servers = || Fixture::named("serving").solo("tiny", 32, 8.0).serves("hot", &too_much).serves("serve", &usual);
    let beside = servers().beside(&[("serve", usual.clone().left(110.0))], &[("tiny", 10.0)], "mps").ends(crash);
    let whole = analysed(&beside);
    let g = serving(&whole);
    assert_eq!((g.holds, g.command.as_deref()), (Holds::Open, Some("collo show serving \"serve+tiny mps\"")), "{}", g.finding);
    assert_eq!(g.finding, "No group can be judged by its requests: 1 crashed.");
    let alone = analysed(&servers());
    assert_eq!(serving(&alone).holds, Holds::Open, "one of two servers keeps its promise alone: {}", serving(&alone).finding);
}

#[test]
fn a_group_that_does_not_fit_into_memory_leaves_no_question_open() {
    let usual = Serves { slo_s: Some(0.2), ..Serves::usual() };
    let out = Outcome::OutOfMemory { member: 1, message: "CUDA out of memory".into() };
    let fixture = Fixture::named("serving").solo("tiny", 32, 8.0).serves("serve", &usual);
    let fixture = fixture.beside(&[("serve", usual.clone().left(60.0))], &[("tiny", 9.0)], "naive");
    let whole =
        analysed(&fixture.beside(&[("serve", usual.clone().left(60.0))], &[("tiny", 9.0)], "mps").ends(out).repetitions(6));
    let g = serving(&whole);
    assert_eq!((g.holds, g.scope.as_ref().map(|s| s.out_of_memory)), (Holds::No, Some(1)), "{}", g.finding);
}

#[test]
fn without_a_limit_the_p99_is_held_against_that_alone() {
    let usual = Serves { slo_s: None, ..Serves::usual() };
    let of = |left: f64| {
        let f = Fixture::named("serving").solo("tiny", 32, 8.0).serves("serve", &usual);
        analysed(&f.beside(&[("serve", usual.clone().left(left))], &[("tiny", 10.0)], "mps").repetitions(6))
    };
    let near_alone = of(118.0);
    let g = serving(&near_alone);
    assert_eq!((g.holds, g.key.as_ref().unwrap().quantity), (Holds::Yes, Key::LatencyP99OfSolo), "{}", g.finding);
    let far = of(57.0);
    assert_eq!(serving(&far).holds, Holds::No, "{}", serving(&far).finding);
}

#[test]
fn who_only_serves_is_asked_nothing_about_epochs() {
    let usual = Serves::usual();
    let f = Fixture::named("serving").solo("tiny", 32, 8.0).serves("serve", &usual);
    let whole = analysed(&f.beside(&[("serve", usual)], &[("tiny", 10.0)], "mps"));
    let mut ids: Vec<&str> = whole.guidelines.iter().map(|g| g.id.as_str()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["memory-adds-up", "serving"]);
    // Beside groups that train, those questions are asked of these alone.
    let both = analysed(&campaign().group("tiny", 32, 2, "mps", 9.0));
    for g in &both.guidelines {
        assert!(
            matches!(g.id.as_str(), "serving" | "memory-adds-up") || g.evidence.iter().all(|e| !e.cell.contains("serve")),
            "{}",
            g.id
        );
    }
}

#[test]
fn where_groups_gain_a_narrow_screen_keeps_the_gain_longer_than_what_a_server_answered_in_time() {
    let whole = analysed(&Fixture::quickstart().serves("serve", &Serves::usual()));
    let heads: Vec<String> = (60..=140).map(|width| terminal(&whole, width).lines().nth(2).unwrap().to_string()).collect();
    assert!(heads.iter().any(|head| head.contains("in time")), "{heads:#?}");
    assert!(heads.iter().all(|head| head.contains("gain") || !head.contains("in time")), "{heads:#?}");
}

#[test]
fn the_end_of_a_run_says_latency() {
    let whole = analysed(&campaign());
    insta::assert_snapshot!(terminal(&whole, 120), @r"
    serving on cpu: 18 of 18 runs completed in 10 min 44 s

    cell              epoch s     slowdown      p99 ms         p99 ÷ alone     in time  gain    memory    cpu  overlap
    tiny solo b32     7.98 ±0.05  1             –              –                     –  1     0.75 GiB   99 %  –
    serve solo b1     –           –              62 ±5         1                99.9 %  –     0.50 GiB   99 %  –
    serve+tiny mps    –           1.244 ±0.009   75 ±15        1.2 [1.0, 1.5]   99.6 %  –     1.20 GiB  198 %  100 %
    serve+tiny naive  –           1.139 ±0.008  160 [80, 330]  3 [1, 5]           92 %  –     1.20 GiB  198 %  100 %

    ± 95 % interval, pooled t, 3 repetitions, 6 solo
    energy absent: no readable counter; data: synthetic stand-in for CIFAR-10
    ");
    insta::assert_snapshot!(terminal_cell(&whole, "serve+tiny mps", usize::MAX).unwrap(), @"
    serve+tiny mps of 7f3a, serving, cpu: valid, 3 of 3 repetitions
      fairness   overlap 100 %      skew 0.1 ms
      latency    serve              p50 11.9 ±1.2 ms   p95 48 ±4 ms       p99 75 ±15 ms      p99 1.2 [1.0, 1.5] times that alone
      requests   99.6 % within 100 ms  goodput 49 ±4 per second  49 ±4 due per second
      memory     1.20 of 24.0 GiB   0.960 ±0 of the sum of solo  the peak of PSS, which counts shared pages once
      cpu        198 %              pressure 5 %
      member     0                  serve              p99 75 ±15 ms      99.6 % in time
      member     1                  tiny               9.93 ±0.08 s       slowdown 1.244 ±0.009  loss 2.10
      graph      serve              0.175 M parameters  0.703 MB           0.0256 GFLOP forward per item  0.400 M activations per item  16 layers
      graph      tiny               0.175 M parameters  0.703 MB           0.0256 GFLOP forward per item  0.400 M activations per item  16 layers
      ran on     Some CPU, 2 logical cores, torch 2.14.1, synthetic data
      attested   3 of 3 runs by cpu time in the window
      absent     ANTT, energy per epoch, epoch time, fairness, items per second, makespan, slowdown, STP, throughput gain: a member serves
    ");
}

#[test]
fn the_section_stands_in_the_page_and_nowhere_is_an_epoch_of_a_server() {
    let reports = tempfile::tempdir().unwrap();
    let written = write(&analysed(&campaign()), reports.path()).unwrap();
    let text = std::fs::read_to_string(written.markdown).unwrap();
    let section = text.split("## Latency").nth(1).unwrap().split("\n## ").next().unwrap();
    insta::assert_snapshot!(section.trim(), @r"
    **open** · `serve+tiny mps` answers 99.7 \[98.7, 100.0\] % of the requests within 100 ms; `tiny` takes 1.244 ±0.009 times as long as alone; none of 2 groups certainly meets the requirement.

    ![p99 alone and beside others (synthetic data)](20261120-1842-7f3a/plots/latency.svg)

    From when a request was due to its answer, waiting included; one request in a hundred is later. Logarithmic. Whiskers: 95 % interval over repetitions, each cell by its own spread.

    | cell | server | due per s | capacity alone | p50, ms | p95, ms | p99, ms | p99 ÷ alone | in time, % | goodput per s | training slowdown | as asked |
    |---|---|--:|--:|--:|--:|--:|--:|--:|--:|---|---|
    | serve solo b1 | serve: limit 100 ms | 48.6: \[47.1, 50.2\] | 120.1: \[119.8, 120.5\] | 9.8: \[9.2, 10.5\] | 42: \[38, 47\] | 62: \[57, 67\] | 1: by definition | 99.96: \[99.87, 100.00\] | 48.6: \[47.0, 50.2\] |  | yes |
    | serve+tiny mps | serve: limit 100 ms | 49: \[45, 54\] | 120.1: \[119.8, 120.5\] | 11.9: \[10.7, 13.1\] | 48: \[44, 53\] | 75: \[62, 91\] | 1.2: \[1.0, 1.5\] | 99.7: \[98.7, 100.0\] | 49: \[46, 53\] | tiny 1.244 ±0.009 | open |
    | serve+tiny naive | serve: limit 100 ms | 51: \[48, 54\] | 120.1: \[119.8, 120.5\] | 28: \[20, 38\] | 110: \[50, 240\] | 160: \[80, 330\] | 3: \[1, 5\] | 92: \[82, 100\] | 47: \[40, 55\] | tiny 1.139 ±0.008 | open |

    ![Shares of later requests (synthetic data)](20261120-1842-7f3a/plots/lateness.svg)

    The share of requests answered later, mean over repetitions at equal shares; requests never answered are later than any. Both axes are logarithmic. Marks: p50, p95 and p99, the last on the thick line. The earliest third of the requests is not drawn; a line ends where a repetition has too few.

    | cell | server | p50, ms | p95, ms | p99, ms | runs |
    |---|---|--:|--:|--:|---|
    | serve solo b1 | serve | 9.8 | 42 | 62 | 6 |
    | serve+tiny naive | serve | 28 | 110 | 160 | 3 |
    | serve+tiny mps | serve | 11.9 | 48 | 75 | 3 |
    ");
    for id in ["latency", "lateness"] {
        assert!(reports.path().join(format!("serving/20261120-1842-7f3a/plots/{id}.svg")).exists(), "{id}");
    }
    let epochs = text.split("## Time per epoch").nth(1).unwrap().split("\n## ").next().unwrap();
    assert!(!epochs.contains("serve"), "{epochs}");
    assert!(text.contains("Every mixed group has a serving member"), "no makespan of it is told");
}

#[test]
fn without_a_server_the_section_is_named_with_its_reason() {
    let reports = tempfile::tempdir().unwrap();
    let written = write(&analysed(&Fixture::quickstart()), reports.path()).unwrap();
    let text = std::fs::read_to_string(written.markdown).unwrap();
    assert!(text.contains("Latency: No member serves in this experiment.") && !text.contains("## Latency"), "{text}");
}

#[test]
fn a_step_of_the_p99_is_worse_and_another_rate_is_not_judged() {
    let side = |f: &Fixture| {
        let mut report = json(&analysed(f));
        report["campaign"] = format!("20261120-1842-{:04x}", f.seed).into();
        ComparedReport::of(report, "x").unwrap()
    };
    let usual = Serves { window_s: 60.0, ..Serves::usual() };
    let of = |serves: &Serves, seed: u64| {
        let f = Fixture::named("serving").solo("tiny", 32, 8.0).serves("serve", &usual).repetitions(6).seed(seed);
        let mut f = f.beside(&[("serve", serves.clone())], &[("tiny", 61.0)], "mps");
        f.samples_hz = 0.2;
        f
    };
    let (before, after) = (side(&of(&usual.clone().left(110.0), 1)), side(&of(&usual.clone().left(65.0), 2)));
    let found = compare(&before, &after, &Options::default()).unwrap();
    let row = found.rows.iter().find(|r| r.label == "serve+tiny mps").unwrap();
    assert_eq!((row.quantity.as_str(), row.finding.as_str()), ("latency_p99_s", "worse"), "{row:?}");
    near(row.ratio.as_ref().unwrap().estimate, 60.0 / 15.0, 0.35);
    let alone = found.rows.iter().find(|r| r.label == "serve solo b1").unwrap();
    assert!(!matches!(alone.finding.as_str(), "worse" | "better"), "{alone:?}");

    let faster = Serves { rate_per_s: 80.0, ..usual.clone() };
    let found = compare(&before, &side(&of(&faster, 3)), &Options::default()).unwrap();
    let row = found.rows.iter().find(|r| r.label == "serve+tiny mps").unwrap();
    assert_eq!(row.finding.text(), "not judged: request rates or limits differ");
}

#[test]
fn a_server_that_answers_nothing_any_more_is_a_regression_of_the_night() {
    let usual = Serves { window_s: 12.0, ..Serves::usual() };
    let night = |i: u64| {
        let f = Fixture::named("serving").solo("tiny", 32, 8.0).serves("serve", &usual).seed(i);
        let mut f = f.beside(&[("serve", usual.clone().left(100.0))], &[("tiny", 13.0)], "mps");
        f.samples_hz = 0.5;
        let whole = altered(&f, |c| {
            for repetition in (1..=3).filter(|_| i == 11) {
                let path = c.path().join(format!("serve+tiny_mps~0000-{repetition}/requests.parquet"));
                let mut all = collo_store::read_requests(&path).unwrap();
                all.iter_mut().for_each(|r| r.end_ns = None);
                write_requests(&path, &all).unwrap();
            }
        });
        let mut night = history::of(&whole.analysis, &[]);
        (night.id, night.created_utc) = (format!("202611{:02}", i + 1), format!("2026-11-{:02}T02:00:00Z", i + 1));
        night
    };
    let nights: Vec<NightlyRun> = (0..12).map(night).collect();
    let told = History::of("serving", NightlySummary { nights, problems: Vec::new() }, Rules::default());
    let said = told.text(100);
    assert!(told.has_regression() && said.contains("serve+tiny mps") && said.contains("unanswered"), "{said}");
}

#[test]
fn a_step_of_the_p99_is_a_regression_of_the_night() {
    // Twelve nights; on the last the server is left 55 of the 100 requests a second that it could answer before.
    let usual = Serves { window_s: 12.0, ..Serves::usual() };
    let night = |i: u64| {
        let left = if i == 11 { 55.0 } else { 100.0 };
        let f = Fixture::named("serving").solo("tiny", 32, 8.0).serves("serve", &usual).seed(i);
        let mut f = f.beside(&[("serve", usual.clone().left(left))], &[("tiny", 13.0)], "mps");
        f.samples_hz = 0.5;
        let mut night = history::of(&analysed(&f).analysis, &[]);
        (night.id, night.created_utc) = (format!("202611{:02}", i + 1), format!("2026-11-{:02}T02:00:00Z", i + 1));
        night
    };
    let nights: Vec<NightlyRun> = (0..12).map(night).collect();
    let quantity = |name: &str| nights[0].cells.iter().find(|c| c.cell == name).map(|c| c.quantity.as_str());
    let names = ["tiny solo b32", "serve solo b1", "serve+tiny mps"].map(quantity);
    assert_eq!(names, [Some("epoch_time_s"), Some("latency_p99_s"), Some("latency_p99_s")]);
    let told = History::of("serving", NightlySummary { nights, problems: Vec::new() }, Rules::default());
    let said = told.text(100);
    assert!(told.has_regression() && said.contains("slower  serve+tiny mps"), "{said}");
    let folder = tempfile::tempdir().unwrap();
    let page = std::fs::read_to_string(told.write(folder.path()).unwrap().html).unwrap();
    assert!(page.contains("p99 ") && page.contains(" ms"), "its level is a latency");
}
