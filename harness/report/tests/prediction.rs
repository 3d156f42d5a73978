//! What was predicted beside what was measured: on the page, in the terminal, in `report.json` and in the data set.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::support::exports::export;
use collo_guidelines::verdict::Holds;
use collo_report::{Report, json, terminal, terminal_cell, write};
use collo_store::{Outcome, Predicted};

use crate::support::Fixture;
use crate::support::predictions::{by, card, in_company, marking, member, predicted, unknown};
use crate::support::study::analysed;

/// As it is, for the tests that only read it.
static REPORT: LazyLock<Report> = LazyLock::new(|| analysed(&predicted()));

fn markdown(report: &Report) -> String {
    let reports = tempfile::tempdir().unwrap();
    std::fs::read_to_string(write(report, reports.path()).unwrap().markdown).unwrap()
}

/// The section of a report, without those before and after it.
fn section(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("\n## Predicted and measured")?;
    Some(rest.split("\n## ").next().unwrap_or(rest))
}

#[test]
fn the_section_scores_each_claim_and_says_who_made_it() {
    let text = markdown(&REPORT);
    let places = ["\n## Memory", "\n## Predicted and measured", "\n## Energy and power"].map(|title| text.find(title));
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}");
    insta::assert_snapshot!(section(&text).unwrap(), @r"
    **open** · Memory was within 5 % of its prediction in 7 of 9 cells, 1 interval missed; `medium×2 mps b32` is furthest, 1.30 times its prediction. The plan had marked 1 of 1 cell that ran out of memory, and 1 that completed. Fewer than 20 are too few to judge 95 % intervals.

    | quantity | compared | median error % | bias % | inside 95 % interval | above upper bound | predicted too low |
    |---|--:|--:|--:|--:|--:|--:|
    | memory | 9 | 2.9 | +2.9 | 8 of 9 | 1 of 9 | 8 of 9 |

    ![Predicted and measured memory (synthetic data)](20261120-1842-7f3a/plots/prediction.svg)

    A mark for each distinct member of a cell: the median over its equals and their runs, read as GPU memory by process. Marks are measured; bars and the grey area are predicted, the 95 % interval of each. The line is where both are equal.

    | cell | member | predicted GiB | 95 % interval | upper bound GiB | measured GiB | measured ÷ predicted | interval | runs | validity |
    |---|---|--:|---|--:|--:|--:|---|--:|---|
    | small solo b32 | small | 2.00 | \[1.79, 2.23\] | 2.23 | 2.04 | 1.02 | inside | 6 | valid |
    | small×2 naive b32 | small | 2.00 | \[1.79, 2.23\] | 2.23 | 2.06 | 1.03 | inside | 3 | valid |
    | small×4 naive b32 | small | 2.00 | \[1.79, 2.23\] | 2.23 | 2.07 | 1.03 | inside | 3 | valid |
    | small×2 mps b32 | small | 1.70 | \[1.52, 1.90\] | 1.90 | 1.75 | 1.03 | inside | 3 | valid |
    | small×4 mps b32 | small | 1.70 | \[1.52, 1.90\] | 1.90 | 1.72 | 1.01 | inside | 3 | valid |
    | medium solo b32 | medium | 6.00 | \[5.38, 6.70\] | 6.70 | 6.10 | 1.02 | inside | 6 | valid |
    | medium×2 naive b32 | medium | 6.00 | \[5.38, 6.70\] | 6.70 | 6.40 | 1.07 | inside | 3 | valid |
    | medium×2 mps b32 | medium | 5.70 | \[5.11, 6.36\] | 6.36 | 7.40 | 1.30 | outside | 3 | valid |
    | large solo b32 | large | 21.0 | \[18.8, 23.4\] | 23.4 | 20.4 | 0.971 | inside | 6 | valid |
    | large×2 naive b32 | large | 21.0 | \[18.8, 23.4\] | 23.4 |  |  | OOM |  | out of memory |
    | large×2 mps b32 | large | 20.7 | \[18.5, 23.1\] | 23.1 |  |  | its memory was not read |  | valid |
    | foreign solo b32 | foreign |  |  |  |  |  | its script does not use `collo_torch`, so it cannot be described |  | valid |

    - Predicted 2026-11-20 18:42:09 UTC by `published-a100`, fitted on published measurements of `NVIDIA A100-SXM4-40GB`, none of them made by collo: memory.
    - Its intervals have their width from 6 architectures, too few to promise a share; as logarithms they are 1.5 times as wide, because it was fitted under other conditions.
    - What a process holds outside its allocator was measured here before, in up to 4 stored runs, for 3 of 5 predictions.
    - `large×2 naive b32` is not compared: it ran out of memory.
    - `large×2 mps b32` is not compared: its memory was not read.
    - `foreign solo b32` is not compared: its script does not use `collo_torch`, so it cannot be described.
    ");
}

#[test]
fn the_end_of_a_run_and_each_cell_say_how_good_the_prediction_was() {
    let report = &*REPORT;
    let summary = terminal(report, 120);
    let line = summary.lines().find(|line| line.contains("prediction")).unwrap();
    insta::assert_snapshot!(line, @"memory was within 5 % of its prediction in 7 of 9 cells, 1 interval missed");
    let row = |cell: &str| {
        let text = terminal_cell(report, cell, usize::MAX).unwrap();
        text.lines().filter(|line| line.starts_with("  predicted")).collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(row("medium×2 mps b32"), @"  predicted  medium             memory 5.7 GiB each  95 % interval 5.1 to 6.4 GiB  measured 1.30 times, outside  by published-a100");
    insta::assert_snapshot!(row("large×2 naive b32"), @"
    predicted  large              memory 21.0 GiB each  95 % interval 18.8 to 23.4 GiB  not compared: it ran out of memory  by published-a100
    predicted  may run out of memory, as the plan said
    ");
    insta::assert_snapshot!(row("foreign solo b32"), @"  predicted  foreign            not compared: its script does not use `collo_torch`, so it cannot be described");
    assert!(!terminal_cell(&analysed(&Fixture::quickstart()), "tinyx3", usize::MAX).unwrap().contains("predicted"));
}

#[test]
fn without_claims_there_is_no_section_and_without_measurements_it_says_why() {
    let mut fixture = predicted();
    fixture.predicted = None;
    let older = analysed(&fixture);
    assert!(!markdown(&older).contains("Predicted and measured") && older.guideline("prediction").is_none());
    fixture.predicted = Some(by(vec![unknown("small", "it trained for no second step")]));
    let text = markdown(&analysed(&fixture));
    let left_out = text.lines().find(|line| line.starts_with("Left out")).unwrap();
    assert!(
        left_out.contains("Predicted and measured: `small solo b32` and 2 more are not compared: it trained for no second step."),
        "{left_out}"
    );
    fixture.stop_after = 0;
    let text = markdown(&analysed(&fixture));
    assert!(section(&text).is_none() && text.contains("Predicted and measured"), "{text}");
}

#[test]
fn a_guideline_counts_what_was_near_what_was_missed_and_what_was_marked() {
    let guideline = REPORT.guideline("prediction").unwrap();
    assert_eq!(guideline.holds, Holds::Open);
    insta::assert_snapshot!(guideline.finding, @"Memory was within 5 % of its prediction in 7 of 9 cells, 1 interval missed; `medium×2 mps b32` is furthest, 1.30 times its prediction. The plan had marked 1 of 1 cell that ran out of memory, and 1 that completed. Fewer than 20 are too few to judge 95 % intervals.");
    assert_eq!(guideline.evidence.len(), 9);
    assert_eq!(guideline.key.as_ref().unwrap().name(), "medium×2 mps b32 ÷ predicted");
    // Three of ten outside are more than chance leaves.
    let mut worse = predicted();
    worse.predicted = Some(by(vec![member("small", false, 3.0, 0), member("medium", false, 6.0, 0)]));
    let report = analysed(&worse);
    let guideline = report.guideline("prediction").unwrap();
    assert_eq!(guideline.holds, Holds::No);
    assert!(guideline.finding.starts_with("No: less was needed than the bounds say. Memory was within"), "{}", guideline.finding);
}

#[test]
fn one_repetition_is_compared_and_carries_no_guideline() {
    let report = analysed(&predicted().repetitions(1));
    let guideline = report.guideline("prediction").unwrap();
    // Baselines run twice in a block.
    assert!(guideline.evidence.iter().all(|e| e.cell.contains(" solo ")), "{:?}", guideline.evidence);
    let text = markdown(&report);
    let rows: Vec<&str> = section(&text).unwrap().lines().filter(|line| line.starts_with("| memory")).collect();
    assert!(rows.len() == 2 && rows[1].starts_with("| memory, indicative cells | 6 |"), "{rows:?}");
}

#[test]
fn marks_are_those_of_the_plan_and_are_never_made_again() {
    let out = || Outcome::OutOfMemory { member: 0, message: "CUDA out of memory".into() };
    let marks = |claims: Predicted, sharing: &str, ran_out: bool| {
        let mut fixture = predicted();
        fixture.cells.clear();
        fixture = fixture.on_card("solo", &[("large", 1.0)], card(), 0.005).holding(20.0);
        fixture = fixture.on_card(sharing, &[("large", 1.0); 2], card(), 0.005).holding(20.0);
        if ran_out {
            fixture = fixture.ends(out());
        }
        fixture.predicted = Some(claims);
        let found = analysed(&fixture).analysis.memory_warnings();
        (found.ran_out, found.ran_out_unmarked, found.ran_out_unsaid, found.marked_completed)
    };
    let large = |gib: f64| by(vec![member("large", false, gib, 0), member("large", true, gib, 0)]);
    let (naive, mps, mig) = ("large×2 naive b32", "large×2 mps b32", "large×2 mig:3g.20gb b32");
    assert_eq!(marks(marking(large(19.0), &[naive]), "naive", true), (1, 0, 0, 0));
    assert_eq!(marks(marking(large(17.0), &[mps]), "naive", true), (1, 1, 0, 0), "another cell was marked");
    assert_eq!(marks(marking(large(19.0), &[mps]), "mps", false), (0, 0, 0, 1));
    assert_eq!(marks(marking(large(19.0), &[mig]), "mig:3g.20gb", true), (1, 0, 0, 0));
    // Bounds of 42 GiB on 40 are no mark: the plan knew what the members alone had held, or the instance of each.
    assert_eq!(marks(large(19.0), "naive", true), (1, 1, 0, 0));
    assert_eq!(marks(by(vec![unknown("large", "why")]), "naive", true), (1, 0, 1, 0), "nothing was said");
    assert_eq!(marks(marking(by(vec![unknown("large", "why")]), &[naive]), "naive", true), (1, 0, 0, 0), "marked by readings");
}

/// Readings are of the training, bounds of the warm-up too: a mark made again of the former would be another.
#[test]
fn a_warm_up_that_holds_more_than_the_training_changes_no_mark() {
    let mut claim = member("large", false, 21.0, 4);
    if let Some(memory) = &mut claim.memory {
        memory.training_bytes /= 2;
    }
    let mut fixture = predicted();
    fixture.predicted = Some(marking(by(vec![claim]), &["large×2 naive b32"]));
    let warnings = analysed(&fixture).analysis.memory_warnings();
    assert_eq!((warnings.ran_out, warnings.ran_out_unmarked, warnings.ran_out_unsaid), (1, 0, 0));
}

#[test]
fn simulated_predictions_are_labelled_as_the_rest_of_the_page() {
    let mut fixture = predicted();
    fixture.device.simulated = true;
    if let Some(predicted) = &mut fixture.predicted {
        predicted.predictor.as_mut().unwrap().fitted_on = "simulated".into();
    }
    let reports = tempfile::tempdir().unwrap();
    let written = write(&analysed(&fixture), reports.path()).unwrap();
    let page = std::fs::read_to_string(&written.html).unwrap();
    let from = page.find("<section id=\"sec-prediction\">").unwrap();
    let part = &page[from..from + page[from..].find("</section>").unwrap()];
    assert!(part.contains("fitted on simulated runs"));
    let (tables, figures) = (part.matches("<table").count(), part.matches("<figure").count());
    assert_eq!((tables, figures), (2, 1));
    assert_eq!(part.matches(">simulated<").count(), tables + figures, "{part}");
    let svg = std::fs::read_to_string(written.folder.join("plots/prediction.svg")).unwrap();
    assert!(svg.contains("class=\"fig sim\"") && svg.contains(">simulated ·"));
}

#[test]
fn what_is_predicted_is_drawn_as_bars_and_marks_are_measured() {
    let reports = tempfile::tempdir().unwrap();
    let written = write(&REPORT, reports.path()).unwrap();
    let svg = std::fs::read_to_string(written.folder.join("plots/prediction.svg")).unwrap();
    // Nine points in each panel, and the three modes of the legend.
    assert_eq!(svg.matches("class=\"h ").count(), 18);
    assert_eq!(svg.matches("class=\"mk\"").count(), 18 + 3);
    assert_eq!(svg.matches("class=\"wh\"").count(), 9 * 3, "a bar with two ends for each, in one panel");
    assert_eq!(svg.matches("class=\"within\"").count(), 1);
    // The one outside its interval, and the next.
    assert!(svg.contains(">medium×2 mps b32</text>"), "{svg}");
    let csv = std::fs::read_to_string(written.folder.join("plots/prediction.csv")).unwrap();
    let line = |cell: &str| csv.lines().find(|line| line.starts_with(&format!("{cell},"))).unwrap();
    assert!(
        line("cell").starts_with("cell,member,predicted GiB,predicted GiB low,predicted GiB high,upper bound GiB,measured GiB,"),
        "{csv}"
    );
    assert!(line("medium×2 mps b32").ends_with(",7.4,1.298245614204784,outside,3,valid"), "{csv}");
    assert!(line("large×2 naive b32").ends_with(",,,OOM,,out of memory"), "{csv}");
}

#[test]
fn report_json_has_the_claims_of_every_member_by_its_schema() {
    let report = json(&REPORT);
    let schema = jsonschema::validator_for(&collo_guidelines::report_json::schema()).unwrap();
    let wrong: Vec<String> = schema.iter_errors(&report).map(|e| format!("{}: {e}", e.instance_path)).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(report["predicted"]["memory"]["name"], "published-a100");
    let member = |cell: &str| {
        let cells = report["cells"].as_array().unwrap();
        cells.iter().find(|c| c["cell"] == cell).unwrap()["members"][0]["predicted"].clone()
    };
    let (own, client) = (member("small×2 naive b32"), member("small×2 mps b32"));
    let of = |claim: &serde_json::Value| claim["memory"]["estimate_bytes"].as_f64().unwrap() / 1073741824.0;
    assert!((of(&own) - 2.0).abs() < 1e-6 && (of(&client) - 1.7).abs() < 1e-6);
    assert_eq!(own["graph"]["kernels_per_step"], 980);
    let foreign = member("foreign solo b32");
    assert!(foreign["memory"].is_null() && foreign["reason"].as_str().unwrap().contains("cannot be described"));
    let mut older = report.clone();
    older.as_object_mut().unwrap().remove("predicted");
    assert!(collo_guidelines::report_json::ReportJson::of(older, "x").unwrap().predicted.is_none(), "an earlier report has none");
    assert!(json(&analysed(&Fixture::quickstart()))["predicted"].is_null());
}

#[test]
fn the_data_set_has_what_was_predicted_beside_what_was_measured() {
    let rows = |report: &Report| -> Vec<BTreeMap<String, String>> {
        let text = export(report, "dataset").unwrap();
        csv::Reader::from_reader(&*text).deserialize().map(|row| row.unwrap()).collect()
    };
    let all = rows(&REPORT);
    let of = |cell: &str| all.iter().find(|row| row["cell"] == cell).unwrap();
    let (small, out, foreign) = (of("small×2 mps b32"), of("large×2 naive b32"), of("foreign solo b32"));
    let gib = |row: &BTreeMap<String, String>, name: &str| row[name].parse::<f64>().unwrap() / 1073741824.0;
    let claimed =
        ["predicted_memory_bytes", "predicted_memory_low_bytes", "predicted_memory_high_bytes", "predicted_memory_upper_bytes"]
            .map(|name| (gib(small, name) * 1000.0).round());
    assert_eq!(claimed, [1700.0, 1523.0, 1898.0, 1898.0]);
    assert_eq!((small["predicted_by"].as_str(), small["predicted_utc"].as_str()), ("published-a100", "2026-11-20T18:42:09Z"));
    assert_eq!((small["graph_kernels_per_step"].as_str(), small["graph_reserved_bytes"].as_str()), ("980", "4294967296"));
    assert_eq!(small["graph_parameters"], "175258", "what the member reported comes first");
    assert!(out["memory_bytes"].is_empty() && gib(out, "predicted_memory_bytes") > 20.9, "a claim is no result");
    assert!(
        ["predicted_memory_bytes", "predicted_by", "predicted_utc", "graph_bytes_per_item"]
            .iter()
            .all(|n| foreign[*n].is_empty())
    );
    assert!(rows(&analysed(&Fixture::quickstart())).iter().all(|row| row["predicted_by"].is_empty()));
}

#[test]
fn different_members_of_a_cell_are_points_of_their_own() {
    let mut fixture = predicted().on_card("naive", &[("small", 1.0), ("medium", 1.4), ("small", 1.0)], card(), 0.005);
    fixture.cells.last_mut().unwrap().memory_gib = vec![2.0, 6.0, 2.2];
    let report = analysed(&fixture);
    let text = markdown(&report);
    let rows = |of: &str| section(&text).unwrap().lines().filter(|line| line.contains(of)).count();
    assert_eq!(rows("small+medium+small naive b32"), 2, "two like each other are one point");
    assert!(report.guideline("prediction").unwrap().finding.contains(" of 11 members, "));
}

#[test]
fn on_a_cpu_resident_memory_is_compared_and_what_is_approximate_is_said() {
    let mut claim = member("tiny", false, 0.8, 0);
    if let Some(memory) = &mut claim.memory {
        memory.approximate = vec!["compiled steps".into()];
    }
    let mut fixture = Fixture::quickstart();
    fixture.predicted = Some(by(vec![claim]));
    let text = markdown(&analysed(&fixture));
    let section = section(&text).unwrap();
    assert!(section.contains("read as the peak of PSS, which counts shared pages once"), "{section}");
    assert!(
        section.contains("| tiny solo b32 | tiny | 0.800 |") && section.contains("| 0.750 | 0.938 | inside | 6 | valid |"),
        "{section}"
    );
    assert!(section.contains("\n- 1 prediction: no exact replay, compiled steps.\n"), "{section}");
    assert!(section.contains("is the predictor's: no stored run had measured it here."), "{section}");
}

/// Pairs of `small` were predicted well, `medium` under naive sharing was slowed down more than predicted, and of the groups of four more
/// is claimed than was measured before.
fn in_groups() -> Fixture {
    let mut fixture = predicted();
    let claims = fixture.predicted.take().unwrap();
    fixture.predicted = Some(in_company(
        claims,
        &[
            ("small×2 naive b32", Ok(&[1.4, 1.4])),
            ("small×4 naive b32", Ok(&[2.2, 2.2, 2.2, 2.2])),
            ("medium×2 naive b32", Ok(&[1.1, 1.1])),
            ("medium×2 mps b32", Err("the predictor has no coefficients for mps")),
        ],
    ));
    fixture
}

#[test]
fn what_company_costs_is_scored_beside_memory_and_says_what_it_was_made_from() {
    let text = markdown(&analysed(&in_groups()));
    let section = section(&text).unwrap();
    let rows: Vec<&str> = section
        .lines()
        .filter(|line| ["slowdown", "STP", "fairness"].iter().any(|q| line.starts_with(&format!("| {q} "))))
        .collect();
    insta::assert_snapshot!(rows.join("\n"), @"
    | slowdown | 3 | 0.3 | +0.3 | 2 of 3 | – | 3 of 3 |
    | STP | 3 | 0.4 | −0.4 | 2 of 3 | – | 0 of 3 |
    | fairness | 3 | 0.8 | −0.8 | 3 of 3 | – | 0 of 3 |
    ");
    let notes: Vec<&str> = section
        .lines()
        .filter(|line| {
            line.starts_with("- ")
                && (line.contains("own-company")
                    || line.contains("extrapolated")
                    || line.contains("company")
                    || line.contains("coefficients"))
        })
        .collect();
    insta::assert_snapshot!(notes.join("\n"), @"
    - Predicted 2026-11-20 18:42:09 UTC by `own-company`, fitted on published measurements of `NVIDIA A100-SXM4-40GB`, none of them made by collo: slowdown, STP, throughput gain, fairness.
    - What company costs was predicted from members that had been measured alone.
    - 1 group: extrapolated, no group of more than 2 was measured.
    - `medium×2 mps b32` is not compared: the predictor has no coefficients for mps.
    ");
    assert!(section.contains("plots/prediction-slowdown.svg") && section.contains("plots/prediction-stp.svg"), "{section}");
}

#[test]
fn a_guideline_says_whether_groups_gave_what_was_predicted() {
    let report = analysed(&in_groups());
    let guideline = report.guideline("prediction-company").unwrap();
    insta::assert_snapshot!(guideline.finding, @"Throughput gain was within 5 % of its prediction in 2 of 3 cells, 1 interval missed; `medium×2 naive b32` is furthest, 0.785 times its prediction. Fewer than 20 are too few to judge 95 % intervals.");
    assert!(REPORT.guideline("prediction-company").is_none(), "nothing was predicted of groups");
}

#[test]
fn a_group_has_its_claim_in_json_and_in_the_data_set() {
    let report = analysed(&in_groups());
    let json = json(&report);
    let schema = jsonschema::validator_for(&collo_guidelines::report_json::schema()).unwrap();
    assert!(schema.is_valid(&json));
    assert_eq!(json["predicted"]["company"]["name"], "own-company");
    let cell = |label: &str| json["cells"].as_array().unwrap().iter().find(|c| c["cell"] == label).unwrap()["predicted"].clone();
    assert_eq!(cell("small×2 naive b32")["company"]["slowdowns"][1]["estimate"], 1.4);
    assert_eq!(cell("medium×2 mps b32")["reason"], "the predictor has no coefficients for mps");
    assert!(cell("small solo b32").is_null(), "a member alone has no company");
    let text = export(&report, "dataset").unwrap();
    let rows: Vec<BTreeMap<String, String>> = csv::Reader::from_reader(&*text).deserialize().map(|row| row.unwrap()).collect();
    let of = |label: &str| rows.iter().find(|row| row["cell"] == label).unwrap();
    let pair = of("small×2 naive b32");
    assert_eq!((pair["predicted_slowdown"].as_str(), pair["predicted_company_by"].as_str()), ("1.4", "own-company"));
    assert!(of("medium×2 mps b32")["predicted_slowdown"].is_empty() && of("small solo b32")["predicted_stp"].is_empty());
}
