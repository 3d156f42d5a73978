//! Policies with a known truth, and what the report says of them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod support;

use collo_report::Report;
use collo_report::quantity::Key;
use collo_store::{TaskEnd, Verdict};
use support::Fixture;
use support::traces::{PolicyTruth, TraceTruth};

fn campaign(trace: TraceTruth) -> Fixture {
    let mut fixture = Fixture::named("manager").solo("tiny", 32, 1.6).solo("large", 32, 4.0).repetitions(2);
    fixture.device.kind = "gpu".into();
    fixture.device.name = "NVIDIA A100-SXM4-40GB".into();
    fixture.trace = Some(trace);
    fixture
}

fn analysed(trace: TraceTruth) -> Report {
    let folder = tempfile::tempdir().unwrap();
    Report::of(&campaign(trace).write(folder.path())).unwrap()
}

#[test]
fn a_known_ratio_is_found_within_its_interval() {
    let mut trace = TraceTruth::burst(5)
        .policy(PolicyTruth::of("magm", "none", "mps", 1, 0.75))
        .policy(PolicyTruth::of("lug", "none", "mps", 1, 0.80));
    for arm in &analysed(trace.clone()).analysis.traces.matrices[0].arms[1..] {
        let (total, truth) = (&arm.ratios[&Key::Total].ratio, if arm.policy == "magm" { 0.75 } else { 0.80 });
        assert!((total.estimate - truth).abs() < 1e-6, "without noise it is exact: {total:?}");
    }
    trace.spread = 0.02;
    let report = analysed(trace);
    let matrix = &report.analysis.traces.matrices[0];
    assert_eq!((matrix.orders.len(), matrix.arms.len(), matrix.reference().policy.as_str()), (5, 3, "exclusive"));
    for (arm, truth) in matrix.arms[1..].iter().zip([0.75, 0.80]) {
        let total = &arm.ratios[&Key::Total].ratio;
        assert!(total.low.unwrap() < truth && truth < total.high.unwrap(), "{}: {total:?}", arm.name());
        assert!((total.estimate / truth - 1.0).abs() < 0.04, "{}: {total:?}", arm.name());
    }
    assert!(matrix.arms[0].ratios.is_empty(), "nobody is compared with itself");
}

#[test]
fn a_trace_is_no_group_and_is_counted_all_the_same() {
    let report = analysed(TraceTruth::burst(2).policy(PolicyTruth::of("magm", "none", "mps", 1, 0.75)));
    let analysis = &report.analysis;
    assert!(analysis.cells.iter().all(|cell| cell.is_solo()) && analysis.groups().next().is_none());
    assert_eq!((analysis.planned, analysis.count("completed"), analysis.traces.cells.len()), (12, 12, 4));
    assert_eq!(analysis.cells_named("burst/2 magm").len(), 1, "it is found by its name");
}

#[test]
fn one_order_has_no_interval_and_names_no_winner() {
    let trace = TraceTruth::burst(1)
        .policy(PolicyTruth::of("magm", "none", "mps", 1, 0.75))
        .policy(PolicyTruth::of("lug", "none", "mps", 1, 0.80));
    let report = analysed(trace);
    let matrix = &report.analysis.traces.matrices[0];
    assert!(matrix.arms.iter().flat_map(|a| a.ratios.values()).all(|r| r.ratio.low.is_none() && r.test.is_none()));
    for id in ["trace-mps-total", "trace-best"] {
        let guideline = report.guideline(id).unwrap();
        assert_eq!(guideline.holds, collo_report::Holds::Open, "{}", guideline.finding);
        assert!(
            guideline.finding.contains("One order carries no interval") && !guideline.finding.contains("magm"),
            "{}",
            guideline.finding
        );
    }
}

#[test]
fn a_failed_attempt_is_counted_once_and_conditions_are_judged_by_orders() {
    let trace = TraceTruth::burst(3)
        .policy(PolicyTruth::of("magm", "none", "mps", 2, 0.9).out_of_memory(&[3, 4, 3]))
        .policy(PolicyTruth::of("magm:sm=80%,free=5GB", "none", "mps", 2, 0.9));
    let report = analysed(trace);
    for run in report.analysis.traces.runs.iter().filter(|run| run.of.policy == "magm") {
        for (task, times) in run.done() {
            assert_eq!(times.completion_ns, Some(times.wait_ns + times.execution_ns), "task {}", task.task);
        }
        let recoveries = run.values[&Key::Recoveries];
        assert!((3.0..=4.0).contains(&recoveries) && (run.values[&Key::Lost] - recoveries).abs() < 1e-6, "a second each");
    }
    let conditions = report.guideline("trace-conditions").unwrap();
    assert_eq!(conditions.holds, collo_report::Holds::Yes, "{}", conditions.finding);
}

#[test]
fn a_total_of_less_work_and_an_unread_counter_support_nothing() {
    let mut fails = PolicyTruth::of("magm", "none", "mps", 1, 0.75);
    fails.fails = Some(2);
    let mut trace = TraceTruth::burst(2).policy(fails);
    trace.uncounted = vec![1];
    let report = analysed(trace);
    let arm = &report.analysis.traces.matrices[0].arms[1];
    assert_eq!(arm.validity.verdict, Verdict::Indicative);
    assert!(arm.validity.reasons[0].contains("1 task not done"), "{:?}", arm.validity);
    assert!(arm.ratios[&Key::Total].test.is_none());
    let run = report.analysis.traces.of_cell(&report.analysis.traces.cells[1].record.cell).next().unwrap();
    assert_eq!(run.tasks.iter().filter(|t| t.end == TaskEnd::Failed).count(), 1);
    assert_eq!(run.readings.energy_j, None, "one card has no counter: a sum without it would flatter");
}

#[test]
fn the_page_says_scale_and_simulated_beside_every_figure() {
    let folder = tempfile::tempdir().unwrap();
    let mut trace = TraceTruth::burst(3).policy(PolicyTruth::of("magm:sm=80%,free=5GB", "none", "mps", 2, 0.9));
    (trace.scale, trace.gap_s) = (20, 1.0);
    let mut fixture = campaign(trace);
    fixture.device.simulated = true;
    let report = Report::of(&fixture.write(folder.path())).unwrap();
    let written = collo_report::write(&report, &folder.path().join("reports")).unwrap();
    let page = std::fs::read_to_string(written.folder.join("report.html")).unwrap();
    for id in ["fig-policies", "fig-waits", "fig-sites", "fig-trace-energy"] {
        let figure = page.split(&format!("id=\"{id}\"")).nth(1).unwrap_or_else(|| panic!("no {id}"));
        let head = &figure[..figure.find("class=\"panels").unwrap()];
        assert!(head.contains("scale 1:20") && head.contains("simulated"), "{id}: {head}");
    }
    assert!(page.contains("total s, scale 1:20") && page.contains("not measured by collo"));
    if let Some(keep) = std::env::var_os("COLLO_KEEP_PAGE") {
        std::fs::write(keep, page).unwrap();
    }
}
