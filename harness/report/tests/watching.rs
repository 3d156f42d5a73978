//! What it costs to be watched: ratios to nobody within blocks, what observers take, and what is said of both.

use collo_guidelines::rule::Guideline;
use collo_guidelines::verdict::Holds;
use collo_report::{Report, json, terminal, write};
use collo_store::{DeviceRecord, ObserverOutcome};
use serde_json::Value;

use crate::support::Fixture;
use crate::support::exports::export;
use crate::support::study::analysed;
use crate::support::watching::tools;

fn guideline(report: &Report) -> &Guideline {
    report.guidelines.iter().find(|g| g.id == "watching").unwrap()
}

fn row(report: &Report, observer: &str) -> Value {
    let all = json(report);
    let mut rows = all["watching"].as_array().unwrap().iter().flat_map(|group| group["observers"].as_array().unwrap());
    rows.rfind(|row| row["observer"] == observer).unwrap_or_else(|| panic!("no {observer} in {all:#}")).clone()
}

#[track_caller]
fn near(found: &Value, truth: f64, tolerance: f64) {
    let found = found.as_f64().unwrap_or_else(|| panic!("{found}"));
    assert!((found / truth - 1.0).abs() < tolerance, "{found} is not within {tolerance} of {truth}");
}

fn text(report: &Report, format: &str) -> String {
    String::from_utf8(export(report, format).unwrap()).unwrap()
}

#[test]
fn the_cost_of_each_observer_is_found_again_and_judged() {
    let report = analysed(&tools());
    for (observer, truth, verdict) in
        [("collo:10Hz", 1.0, "same"), ("top", 1.001, "same"), ("py-spy", 1.1, "slower"), ("torch-profiler", 1.42, "slower")]
    {
        let row = row(&report, observer);
        near(&row["epoch_time_of_none"]["estimate"], truth, 0.01);
        assert_eq!(row["verdict"], verdict, "{row:#}");
    }
    let nobody = row(&report, "none");
    assert!(nobody["epoch_time_of_none"].is_null() && nobody["cpu_ratio"].is_null() && nobody["written_bytes"].is_null());
}

#[test]
fn what_an_observer_takes_for_itself_is_told_by_the_time_that_it_watched() {
    let report = analysed(&tools().watched("dcgmi", 1, 1.0));
    near(&row(&report, "dcgmi")["services_cpu_ratio"], 0.02, 1e-6);
    let top = row(&report, "top");
    near(&top["cpu_ratio"], 0.05, 1e-6);
    near(&top["memory_bytes"], f64::from(8 << 20), 1e-9);
    near(&top["written_bytes_per_hour"], 3.6e6, 1e-3);
    let profiler = row(&report, "torch-profiler");
    near(&profiler["written_bytes_per_hour"], 9e9, 1e-3);
    near(&profiler["members_cpu_of_none"]["estimate"], 1.6, 0.01);
    assert!(profiler["cpu_ratio"].is_null(), "inside the members it cannot be told from them: {profiler:#}");
    // Of collo its sampling threads, and what it wrote is what they read.
    let collo = row(&report, "collo:10Hz");
    near(&collo["cpu_ratio"], 0.002, 1e-6);
    near(&collo["written_bytes_per_hour"], 3.6e6, 1e-3);
}

#[test]
fn what_was_cut_off_is_not_taken_for_all_that_it_writes() {
    let killed = tools().watched("nsys", 1, 1.1).watching(|w| w.record.outcome = ObserverOutcome::Killed);
    let report = analysed(&killed);
    let nsys = row(&report, "nsys");
    assert_eq!((nsys["killed"].as_u64(), nsys["repetitions"].as_u64()), (Some(4), Some(4)), "it watched to the end");
    assert!(nsys["written_bytes"].is_null() && nsys["written_bytes_per_hour"].is_null(), "{nsys:#}");
    near(&nsys["epoch_time_of_none"]["estimate"], 1.1, 0.01);
    let page = text(&report, "markdown");
    assert!(page.contains("under `nsys`: 4 runs in which the observer did not end in time and was killed"), "{page}");
}

#[test]
fn watched_cells_are_no_groups_and_every_run_of_theirs_is_accounted_for() {
    let report = analysed(&tools());
    assert!(json(&report)["cells"].as_array().unwrap().is_empty());
    assert_eq!(text(&report, "cells").lines().count(), 1);
    let accounted: usize = report.analysis.accounted.iter().map(|(_, runs)| runs).sum();
    assert_eq!((accounted, report.analysis.planned), (24, 24));
    assert_eq!(text(&report, "junit").matches("<testcase").count(), 5);
}

#[test]
fn the_export_has_a_row_for_each_observer_under_the_names_of_the_json() {
    let report = analysed(&tools());
    let csv = text(&report, "observers");
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let at = |name: &str| rows[0].iter().position(|head| *head == name).unwrap_or_else(|| panic!("no {name}: {csv}"));
    assert_eq!(rows.len(), 6);
    let of_json = row(&report, "py-spy");
    for name in of_json.as_object().unwrap().keys() {
        at(name);
    }
    let py_spy = rows.iter().find(|r| r[at("observer")] == "py-spy").unwrap();
    let ratio: f64 = py_spy[at("epoch_time_of_none")].parse().unwrap();
    near(&of_json["epoch_time_of_none"]["estimate"], ratio, 1e-12);
    assert_eq!((py_spy[at("profiles")], py_spy[at("verdict")], py_spy[at("simulated")]), ("true", "slower", "false"));
    assert_eq!(of_json["verdict"], py_spy[at("verdict")]);
    let nobody = &rows[1];
    assert_eq!((nobody[at("observer")], nobody[at("epoch_time_of_none")], nobody[at("profiles")]), ("none", "", ""));
}

#[test]
fn monitors_that_cost_nothing_may_be_used_however_slow_a_profiler_is() {
    let report = analysed(&tools());
    let found = guideline(&report);
    assert_eq!(found.holds, Holds::Yes, "{}", found.finding);
    assert_eq!(found.command, None);
    insta::assert_snapshot!(format!("{}\n{}", found.statement, found.finding), @"
    Monitor while you measure: it does not change the times.
    Of 4 watched cells, `py-spy`, `torch-profiler` slow their members; the largest ratio is 1.420× (`tiny solo b32 torch-profiler`).
    ");
}

#[test]
fn a_monitor_that_slows_the_members_is_advised_against() {
    let report = analysed(&tools().watched("pidstat", 1, 1.2));
    let found = guideline(&report);
    assert_eq!(found.holds, Holds::No, "{}", found.finding);
    assert!(found.finding.contains("`pidstat`"), "{}", found.finding);
}

#[test]
fn a_monitor_without_a_number_leaves_open_what_the_others_show() {
    let report = analysed(&tools().watched("pidstat", 1, 1.0).loses_its_observer("it exited with 3"));
    let found = guideline(&report);
    assert_eq!(found.holds, Holds::Open, "{}", found.finding);
    let why = " Not judged: `tiny solo b32 pidstat`. `tiny solo b32 pidstat` lost its observer: ended early: it exited with 3.";
    assert!(found.finding.ends_with(why), "{}", found.finding);
    let profiler = analysed(&tools().loses_its_observer("it exited with 3"));
    assert_eq!(guideline(&profiler).holds, Holds::Yes, "of a profiler nothing is asked: {}", guideline(&profiler).finding);
}

#[test]
fn of_an_observer_whose_kind_is_not_known_nothing_is_concluded_for_monitors() {
    let unknown = Fixture::named("tools").watched("none", 1, 1.0).watched("top", 1, 1.0).watching(|w| w.record.kind = None);
    let report = analysed(&unknown.repetitions(4));
    assert_eq!(row(&report, "top")["verdict"], "same");
    assert_eq!(guideline(&report).holds, Holds::Open);
}

#[test]
fn what_is_open_is_measured_further_under_its_own_name() {
    let report = analysed(&tools().repetitions(1));
    let found = guideline(&report);
    assert_eq!((found.holds, found.command.as_deref()), (Holds::Open, Some("collo run profiling-tools --more 2")));
    assert!(row(&report, "py-spy")["verdict"].is_null() && row(&report, "py-spy")["epoch_time_of_none"]["low"].is_null());
    let unfinished = analysed(&Fixture { stop_after: 3, ..tools() });
    assert_eq!(guideline(&unfinished).command.as_deref(), Some("collo run profiling-tools"));
}

#[test]
fn a_lost_observer_has_no_number_and_says_why() {
    let report = analysed(&tools().watched("pidstat", 1, 1.0).loses_its_observer("it exited with 3"));
    let lost = row(&report, "pidstat");
    assert!(lost["epoch_time_of_none"].is_null() && lost["epoch_time_s"].is_null(), "{lost:#}");
    assert_eq!((&lost["lost"], &lost["why_lost"]), (&Value::from(4), &Value::from("ended early: it exited with 3")));
    let folder = tempfile::tempdir().unwrap();
    let page = fs_err::read_to_string(write(&report, folder.path()).unwrap().html).unwrap();
    assert!(page.contains("observer lost") && page.contains("ended early: it exited with 3"));
    let accounted = report.analysis.accounted.iter().find(|(word, _)| *word == "observer_lost").unwrap();
    assert_eq!(accounted.1, 4);
}

#[test]
fn without_nobody_there_is_nothing_to_compare_with_and_that_is_said() {
    let report = analysed(&Fixture::named("tools").watched("top", 1, 1.0).watched("py-spy", 1, 1.1));
    assert!(row(&report, "py-spy")["epoch_time_of_none"].is_null());
    assert_eq!(guideline(&report).holds, Holds::Open);
    assert!(guideline(&report).finding.starts_with("No valid cell was measured under an observer and under nobody"));
    let folder = tempfile::tempdir().unwrap();
    let written = write(&report, folder.path()).unwrap();
    assert!(!written.plots.iter().any(|plot| plot.ends_with("watching.svg")), "there is nothing to draw");
}

#[test]
fn a_block_that_is_slow_for_all_does_not_make_an_observer_slow() {
    let slow = |fixture: Fixture| Fixture { slow_block: Some((2, 1.5)), ..fixture };
    let report = analysed(&slow(tools()));
    near(&row(&report, "py-spy")["epoch_time_of_none"]["estimate"], 1.1, 0.02);
    assert_eq!(row(&report, "top")["verdict"], "same");
}

#[test]
fn each_group_has_its_own_nobody() {
    let two = tools().watched("none", 2, 2.0).watched("top", 2, 2.2);
    let report = analysed(&two);
    let groups = json(&report)["watching"].as_array().unwrap().len();
    assert_eq!(groups, 2);
    near(&row(&report, "top")["epoch_time_of_none"]["estimate"], 1.1, 0.02);
}

#[test]
fn the_end_of_a_run_shows_the_cost_of_each_observer() {
    insta::assert_snapshot!(terminal(&analysed(&tools()), 110), @"
    profiling-tools on cpu: 24 of 24 runs completed in 2 min 19 s

    tiny solo b32
    observer        epoch        ÷ none  verdict  members' CPU ÷ none  runs
    none            1.0 s                                                 8
    collo:10Hz      1.0 s  1.001 ±0.005  same                       1     4
    top             1.0 s  1.000 ±0.005  same                       1     4
    py-spy          1.1 s  1.096 ±0.005  slower                     1     4
    torch-profiler  1.4 s  1.420 ±0.006  slower               1.60 ±0     4

    observer        its CPU  its memory  written  per hour  collo's CPU
    none                                                        0.926 %
    collo:10Hz      0.200 %              5.40 KB   3.60 MB      0.925 %
    top              5.00 %     8.39 MB  2.10 KB   3.60 MB      0.925 %
    py-spy           5.00 %     8.39 MB  2.30 KB   3.60 MB      0.892 %
    torch-profiler                       3.55 MB   9.00 GB      0.796 %

    data: synthetic stand-in for CIFAR-10
    ");
}

#[test]
fn the_figure_and_every_table_of_a_simulated_card_say_so() {
    let device = DeviceRecord {
        name: "NVIDIA A100-SXM4-40GB".into(),
        kind: "gpu".into(),
        simulated: true,
        memory_bytes: Some(40 << 30),
        cores: None,
        quota_cores: None,
        persistence: None,
    };
    let report = analysed(&Fixture { device, ..tools() }.watched("dcgmi", 1, 1.0));
    let folder = tempfile::tempdir().unwrap();
    let written = write(&report, folder.path()).unwrap();
    let plot = written.plots.iter().find(|plot| plot.ends_with("watching.svg")).unwrap();
    assert!(fs_err::read_to_string(plot).unwrap().to_lowercase().contains("simulated"));
    let markdown = text(&report, "markdown");
    assert!(markdown.contains("`dcgmi` disturbs others: it takes the GPU's hardware counters."), "{markdown}");
    let section = markdown.split("## The cost of watching").nth(1).unwrap();
    assert!(section.contains("simulated"), "{section}");
    near(&row(&report, "dcgmi")["services_cpu_ratio"], 0.02, 1e-6);
    assert!(text(&report, "observers").lines().skip(1).all(|line| line.contains(",true,")), "each row is marked");
}
