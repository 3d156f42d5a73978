//! Policies with a known truth, and what the report says of them.

use std::sync::LazyLock;

use crate::support::exports::export;
use collo_compare::campaigns::{Comparison, Options, compare};
use collo_compare::ratio::Finding;
use collo_compare::side::ComparedReport;
use collo_figures::document::Present;
use collo_guidelines::report_json;
use collo_guidelines::report_json::ReportJson;
use collo_quantity::Key;
use collo_report::{Report, json, json_cell, terminal, terminal_cell};
use collo_store::{CampaignFolder, TaskEnd, Verdict, copies};
use serde_json::{Value, json as value};

use crate::support::Fixture;
use crate::support::traces::{PolicyTruth, TraceTruth};

pub fn campaign(trace: TraceTruth) -> Fixture {
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
        assert_eq!(guideline.holds, collo_guidelines::verdict::Holds::Open, "{}", guideline.finding);
        assert!(
            guideline.finding.contains("One order carries no interval") && !guideline.finding.contains("magm"),
            "{}",
            guideline.finding
        );
    }
}

#[test]
fn a_policy_that_cannot_be_judged_leaves_what_is_said_of_all_open_and_is_named() {
    let mut fails = PolicyTruth::of("lug", "none", "mps", 1, 0.80);
    fails.fails = Some(2);
    let report = analysed(TraceTruth::burst(3).policy(PolicyTruth::of("magm", "none", "mps", 1, 0.75)).policy(fails));
    for id in ["trace-mps-total", "trace-energy", "trace-best"] {
        let guideline = report.guideline(id).unwrap();
        assert_eq!(guideline.holds, collo_guidelines::verdict::Holds::Open, "{id}: {}", guideline.finding);
        assert!(guideline.finding.ends_with(" Not judged: `lug MPS`."), "{id}: {}", guideline.finding);
    }
}

#[test]
fn the_published_best_policy_is_not_found_where_another_one_is_best() {
    let best = |magm: f64, lug: f64| {
        let mut trace = TraceTruth::burst(5)
            .policy(PolicyTruth::of("magm", "none", "mps", 1, magm))
            .policy(PolicyTruth::of("lug", "none", "mps", 1, lug));
        trace.spread = 0.005;
        let report = analysed(trace);
        let guideline = report.guideline("trace-best").unwrap();
        (guideline.holds, guideline.agrees)
    };
    let yes = collo_guidelines::verdict::Holds::Yes;
    assert_eq!(best(0.65, 0.80), (yes, collo_guidelines::verdict::Agreement::Yes));
    assert_eq!(best(0.80, 0.65), (yes, collo_guidelines::verdict::Agreement::No));
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
    assert_eq!(conditions.holds, collo_guidelines::verdict::Holds::Yes, "{}", conditions.finding);
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
    assert!(page.contains("times in s, scale 1:20") && page.contains("not measured by collo"));
    if let Some(keep) = std::env::var_os("COLLO_KEEP_PAGE") {
        std::fs::write(keep, page).unwrap();
    }
}

/// Three policies in three orders: one with attempts that run out of memory, one that has a condition.
pub fn three() -> TraceTruth {
    let mut trace = TraceTruth::burst(3)
        .policy(PolicyTruth::of("magm", "none", "mps", 2, 0.9).out_of_memory(&[1, 2, 1]))
        .policy(PolicyTruth::of("magm:sm=80%,free=5GB", "measured", "mps", 1, 0.75));
    (trace.scale, trace.spread) = (20, 0.01);
    trace
}

#[test]
fn runs_in_which_nothing_tells_its_epochs_are_no_copies_and_runs_with_the_same_attempts_are() {
    let folder = tempfile::tempdir().unwrap();
    let mut trace = three();
    trace.tells_epochs = false;
    let campaign: CampaignFolder = campaign(trace).write(folder.path());
    assert!(Report::of(&campaign).unwrap().analysis.traces.runs.len() == 9, "none of them is discarded");
    let mut runs = campaign.runs().unwrap().0;
    assert!(copies(&runs).is_empty(), "{:?}", copies(&runs));
    let of_traces: Vec<String> = runs.iter().filter(|(_, run)| run.record.trace.is_some()).map(|(f, _)| f.clone()).collect();
    let attempts = runs[&of_traces[0]].record.files["attempts.parquet"].clone();
    runs.get_mut(&of_traces[1]).unwrap().record.files.insert("attempts.parquet".into(), attempts);
    assert_eq!(copies(&runs).into_iter().collect::<Vec<_>>(), of_traces[..2]);
}

#[test]
fn report_json_has_every_policy_by_its_schema_and_an_earlier_one_has_none() {
    let report = json(&analysed(three()));
    let schema = jsonschema::validator_for(&report_json::schema()).unwrap();
    let wrong: Vec<String> = schema.iter_errors(&report).map(|e| format!("{}: {e}", e.instance_path)).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    let trace = &report["traces"][0];
    assert_eq!((&trace["trace"], &trace["scale"], &trace["reference"]), (&value!("burst"), &value!(20), &value!("exclusive")));
    let magm = &trace["policies"][2];
    assert_eq!(magm["label"], "magm:sm=80%,free=5GB measured MPS");
    assert_eq!(magm["total_s"]["repetitions"], 3, "three orders");
    let ratio = &magm["ratios"]["total_s"];
    assert!((ratio["ratio"]["estimate"].as_f64().unwrap() - 0.75).abs() < 0.02 && ratio["verdict"] == "better", "{ratio}");
    assert_eq!(magm["by_order"][1]["order"], 2);
    assert_eq!(trace["policies"][0]["ratios"], value!({}), "nobody is compared with itself");
    let read = ReportJson::of(report.clone(), "x").unwrap();
    assert_eq!(value!(read), report, "what is read is written as it was");
    let mut older = report;
    older.as_object_mut().unwrap().remove("traces");
    assert!(ReportJson::of(older, "x").unwrap().traces.is_empty());
}

fn compared(left: &Value, right: &Value, quantity: Option<&str>) -> Comparison {
    let side = |report: &Value| ComparedReport::of(report.clone(), "made up").unwrap();
    compare(&side(left), &side(right), &Options { quantity: quantity.map(str::to_string), by: None, variation: None }).unwrap()
}

/// The reports of two nights: in the second all policies but the exclusive one took 1.08 times as long.
fn nights() -> &'static (Value, Value) {
    static NIGHTS: LazyLock<(Value, Value)> = LazyLock::new(|| {
        let night = |times: f64, id: &str| {
            let mut report = json(&analysed(TraceTruth { night: times, ..three() }));
            report["campaign"] = value!(id);
            report
        };
        (night(1.0, "20261120-0000-aaaa"), night(1.08, "20261121-0000-bbbb"))
    });
    &NIGHTS
}

#[test]
fn policies_of_two_nights_are_compared_within_orders() {
    let (base, slow) = nights();
    let mut again = base.clone();
    again["campaign"] = value!("20261121-0000-cccc");
    let same = compared(base, &again, None);
    assert!(!same.has_worse() && same.policies.iter().all(|line| line.finding == Finding::Same), "{:?}", same.policies);
    let slower = compared(base, slow, None);
    assert!(slower.has_worse());
    for line in slower.policies.iter().filter(|line| line.quantity == Key::Total) {
        let expected = if line.policy == "exclusive" { Finding::Same } else { Finding::Worse };
        assert_eq!(line.finding, expected, "{line:?}");
        assert_eq!(line.orders, 3);
    }
    // Other orders have other tasks.
    let with = |change: &dyn Fn(&mut Vec<Value>)| {
        let mut changed = slow.clone();
        let policies = changed["traces"][0]["policies"].as_array_mut().unwrap();
        policies.iter_mut().for_each(|policy| change(policy["by_order"].as_array_mut().unwrap()));
        compared(base, &changed, None)
    };
    let found = with(&|orders| orders.iter_mut().enumerate().for_each(|(i, of)| of["order"] = value!(7 + i)));
    let not_judged =
        |line: &collo_compare::campaigns::trace::ComparedPolicy| line.finding == Finding::NotJudged("no order in common".into());
    assert!(found.policies.iter().all(|line| not_judged(line) && line.ratio.is_none()), "{:?}", found.policies);
    let found = with(&|orders| orders.truncate(1));
    assert!(found.policies.iter().all(|line| line.p.is_none()) && !found.has_worse(), "one order: {:?}", found.policies);
}

#[test]
fn another_file_of_the_trace_and_a_quantity_that_is_asked_for_are_told_in_a_terminal() {
    let (mut left, mut right) = nights().clone();
    insta::assert_snapshot!(compared(&left, &right, Some("total_s")).text(100), @"
    manager 20261120-0000-aaaa → 20261121-0000-bbbb, both on an NVIDIA A100-SXM4-40GB
    burst, 2 cards, scale 1:20
    policy                             quantity  left  right  ratio         orders       p  verdict
    exclusive                          total s   43.2   43.2  1.000 ±0.003       3    1.00  same
    magm MPS                           total s   29.0   31.2  1.077 ±0.004       3  <0.001  worse
    magm:sm=80%,free=5GB measured MPS  total s   32.3   34.9  1.080 ±0.004       3  <0.001  worse
    identical: GPU, CPU, memory, virtualization, host, os, kernel, git, collo, torch, data, workload
      files, epochs
    policies: 2 worse, 1 same; 95 % intervals over orders, p by Holm over 3 lines
    ");
    (left["traces"][0]["sha256"], right["traces"][0]["sha256"]) = (value!("aa"), value!("bb"));
    let found = compared(&left, &right, Some("total_s"));
    assert!(found.policies.iter().all(|line| line.finding.text().contains("the trace's file differs")), "{:?}", found.policies);
    assert_eq!(found.json()["policies"][0]["verdict"], "not_judged");
    let folder = tempfile::tempdir().unwrap();
    let page = fs_err::read_to_string(found.write(folder.path()).unwrap().html).unwrap();
    assert!(page.contains("Policies of traces") && page.contains("file differs, so that an order has other tasks"));
}

/// Text in a format.
fn exported(report: &Report, format: &str) -> String {
    String::from_utf8(export(report, format).unwrap()).unwrap()
}

#[test]
fn exports_have_a_row_for_each_policy_task_and_attempt() {
    let report = analysed(three());
    let rows = |format: &str| -> Vec<String> { exported(&report, format).lines().skip(1).map(str::to_string).collect() };
    assert_eq!(rows("policies").len(), 3);
    assert_eq!(rows("tasks").len(), 9 * 10, "ten tasks in each of nine runs");
    assert_eq!(rows("attempts").len(), 9 * 10 + 4, "four ran out of memory");
    assert_eq!(rows("attempts").iter().filter(|row| row.contains(",out_of_memory,")).count(), 4);
    let text = exported(&report, "policies");
    assert!(text.lines().next().unwrap().contains("total_s,total_s_low,total_s_high,total_s_to_reference,"), "{text}");
    let metrics = exported(&report, "openmetrics");
    assert_eq!(metrics.lines().filter(|line| line.starts_with("collo_policy_total_seconds{")).count(), 3);
    assert!(metrics.contains("collo_policy_orders{") && metrics.contains("# TYPE collo_policy_out_of_memory gauge"), "{metrics}");
    let latex = exported(&report, "latex");
    assert!(
        latex.contains("\\label{tab:manager-policies}") && latex.contains("magm:sm=80\\%,free=5GB measured MPS & $"),
        "{latex}"
    );
    assert_eq!(exported(&report, "junit").matches("repetition 1: total_s").count(), 9);
}

#[test]
fn a_terminal_has_the_times_of_policies_and_below_what_they_cost() {
    let report = analysed(three());
    let shown = |width: usize| {
        let text = terminal(&report, width);
        text[text.find("burst, 2 cards").unwrap()..].split("\n\n").take(2).collect::<Vec<_>>().join("\n\n")
    };
    insta::assert_snapshot!(shown(140), @"
    burst, 2 cards, scale 1:20
    policy                             total s  ÷ exclusive  verdict  orders  mean wait s  execution s  completion s  stretch  p95 wait s
    exclusive                             43.2                             3         16.9         8.64          25.5     1.00        36.8
    magm MPS                              29.0   0.67 ±0.04  shorter       3         7.31         9.69          17.0     1.11        18.2
    magm:sm=80%,free=5GB measured MPS     32.3   0.75 ±0.05  shorter       3         12.6         6.46          19.1    0.748        27.5

    policy                             done  OOM new/res.  recoveries  energy kJ  ÷ exclusive  SM activity  memory in use
    exclusive                            10           0/0           0       13.1                      42 %           16 %
    magm MPS                             10        1.33/0        1.33       12.4   0.95 ±0.04         70 %           26 %
    magm:sm=80%,free=5GB measured MPS    10           0/0           0       9.79   0.75 ±0.03         42 %           16 %
    ");
    insta::assert_snapshot!(shown(80), @"
    burst, 2 cards, scale 1:20
    policy                total s  ÷ exclusive  verdict  orders  mean wait s
    exclusive                43.2                             3         16.9
    magm MPS                 29.0   0.67 ±0.04  shorter       3         7.31
    magm:sm=80%,free=5GB     32.3   0.75 ±0.05  shorter       3         12.6
    measured MPS
    (not shown at this width: execution s, completion s, stretch, p95 wait s)

    policy                done  OOM new/res.  recoveries  energy kJ  ÷ exclusive
    exclusive               10           0/0           0       13.1
    magm MPS                10        1.33/0        1.33       12.4   0.95 ±0.04
    magm:sm=80%,free=5GB    10           0/0           0       9.79   0.75 ±0.03
    measured MPS
    (not shown at this width: SM activity, memory in use)
    ");
}

#[test]
fn one_cell_of_a_trace_is_shown_with_its_tasks_attempts_and_decisions() {
    let report = analysed(three());
    insta::assert_snapshot!(terminal_cell(&report, "burst/2 magm mps", 100).unwrap(), @"
    burst/2 magm mps ×2 of 7f3a, manager, NVIDIA A100-SXM4-40GB: valid, 1 of 1 repetition

    repetition 1: 10 of 10 tasks done in 30.2 s on GPU 0, GPU 1, 12 decisions (scale 1:20)
      time       mean wait 7.59 s, mean execution 9.79 s, mean completion 17.4 s, mean stretch 1.11
      waits      median wait 7.47 s, p95 wait 18.3 s, blocked time 0 s, tasks in the queue 2.51
      memory     out of memory 2, recoveries 2, lost time 2.00 s, memory of the cards 25 %
      cards      energy of all cards 12.6 kJ, activity of the cards 68 %
      deciding   age of readings at decisions, p95 0.120 s, latest arrival 0.00200 s

    task  alone it is     end   arrives s  wait s  execution s  stretch  on     attempts  epochs
       0  large solo b32  done          0       0         10.8    0.900  GPU 0         1       3
       1  tiny solo b32   done          0    2.00         6.75    0.898  GPU 1         2       4
       2  tiny solo b32   done          0       0         7.47     1.17  GPU 0         1       4
       3  tiny solo b32   done          0    2.00         8.47     1.17  GPU 1         2       4
       4  large solo b32  done          0    7.47         14.0     1.17  GPU 0         1       3
       5  tiny solo b32   done          0    8.75         7.47     1.17  GPU 1         1       4
       6  large solo b32  done          0    10.5         14.0     1.17  GPU 1         1       3
       7  tiny solo b32   done          0    10.8         7.47     1.17  GPU 0         1       4
       8  large solo b32  done          0    16.2         14.0     1.17  GPU 1         1       3
       9  tiny solo b32   done          0    18.3         7.47     1.17  GPU 0         1       4
    (not shown at this width: blocked s)

    attempt  task  end            from s  to s  on     ready after s  company    evidence  message
          0     0  completed           0  10.8  GPU 0         0.0500  nobody     attested
          1     1  out of memory       0  1.00  GPU 1              –  nobody     attested  CUDA out of
                                                                                           memory
          2     1  completed        3.00  8.75  GPU 1         0.0500  nobody     attested
          3     2  completed           0  7.47  GPU 0         0.0500  came last  attested
          4     3  out of memory       0  1.00  GPU 1              –  came last  attested  CUDA out of
                                                                                           memory
          5     3  completed        3.00  10.5  GPU 1         0.0500  came last  attested
          6     4  completed        7.47  21.5  GPU 0         0.0500  came last  attested
          7     5  completed        8.75  16.2  GPU 1         0.0500  came last  attested
          8     6  completed        10.5  24.5  GPU 1         0.0500  came last  attested
          9     7  completed        10.8  18.3  GPU 0         0.0500  came last  attested
         10     8  completed        16.2  30.2  GPU 1         0.0500  came last  attested
         11     9  completed        18.3  25.7  GPU 0         0.0500  came last  attested

    decided  because  times  tasks  waited s
    placed   it fits     12     10         –
    ");
    let cell = json_cell(&report, "burst/2 magm mps ×2").unwrap();
    let run = &cell["runs"][0];
    assert_eq!((run["tasks"].as_array().unwrap().len(), run["attempts"].as_array().unwrap().len()), (10, 12));
    assert_eq!(
        run["decisions"],
        value!([{ "decided": "placed", "why": "it fits", "decisions": 12, "tasks": 10, "waited_s": null }])
    );
}

#[test]
fn the_run_that_is_drawn_is_one_that_the_numbers_come_from() {
    let folder = tempfile::tempdir().unwrap();
    let mut trace = TraceTruth::burst(1).policy(PolicyTruth::of("magm", "none", "mps", 1, 0.75));
    (trace.repetitions, trace.noise) = (2, 0.2);
    let mut report = Report::of(&campaign(trace).write(folder.path())).unwrap();
    let runs = &mut report.analysis.traces.runs;
    let own: Vec<usize> = (0..runs.len()).filter(|i| runs[*i].of.policy == "magm").collect();
    runs[own[0]].validity.lower(Verdict::Indicative, "a quota was used up");
    let total = |i: usize| format!("total {} s", collo_quantity::number::three(runs[i].total_s()));
    let (left_out, drawn) = (total(own[0]), total(own[1]));
    let written = collo_report::write(&report, &folder.path().join("reports")).unwrap();
    let sites = std::fs::read_to_string(written.folder.join("plots/sites.svg")).unwrap();
    assert!(sites.contains(&drawn) && !sites.contains(&left_out), "{drawn}, not {left_out}");
}

#[test]
fn a_ratio_of_one_order_is_not_called_one_run() {
    let mut trace = TraceTruth::burst(1).policy(PolicyTruth::of("lug:sm=80%,free=5GB", "none", "mps", 1, 0.75));
    trace.repetitions = 3;
    let page = exported(&analysed(trace), "markdown");
    for title in ["Energy of traces", "What was published"] {
        let section = page.split(&format!("## {title}\n")).nth(1).unwrap().split("\n## ").next().unwrap();
        let rows: Vec<&str> =
            section.lines().filter(|line| line.starts_with('|') && line.contains("lug:sm=80%,free=5GB")).collect();
        assert!(!rows.is_empty() && rows.iter().all(|row| !row.contains("1 run)")), "{section}");
    }
}
