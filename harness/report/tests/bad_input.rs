//! Campaigns in which something is wrong, or very large: each a page that is right, or a message.

use std::path::Path;

use crate::support::exports::export;
use collo_quantity::Key;
use collo_report::{Report, json, write};
use collo_store::{CampaignFolder, Outcome, Verdict};
use serde_json::Value;

use crate::support::Fixture;
use crate::support::noted::noted;

/// Analyse after something was done to the campaign's files.
fn altered(fixture: &Fixture, alter: impl Fn(&CampaignFolder)) -> Report {
    let folder = tempfile::tempdir().unwrap();
    let campaign = fixture.write(folder.path());
    alter(&campaign);
    Report::of(&campaign).unwrap()
}

/// Change every `run.json` of a campaign; the epochs and samples beside it stay.
fn each_run(campaign: &CampaignFolder, change: impl Fn(&mut Value)) {
    for run in std::fs::read_dir(campaign.path()).unwrap().map(|e| e.unwrap().path().join("run.json")).filter(|p| p.exists()) {
        let mut record: Value = serde_json::from_str(&std::fs::read_to_string(&run).unwrap()).unwrap();
        change(&mut record);
        std::fs::write(&run, record.to_string()).unwrap();
    }
    noted(campaign.path());
}

fn page(report: &Report) -> String {
    let folder = tempfile::tempdir().unwrap();
    std::fs::read_to_string(write(report, folder.path()).unwrap().html).unwrap()
}

#[test]
fn a_clock_that_jumped_back_gives_no_numbers_and_no_panic() {
    let report = altered(&Fixture::quickstart(), |campaign| {
        each_run(campaign, |run| {
            for member in run["members"].as_array_mut().unwrap() {
                let start = member["training_start_ns"].as_u64().unwrap();
                member["training_end_ns"] = (start / 2).into();
            }
            run["timeline"]["go_ns"] = u64::MAX.into();
        });
    });
    for cell in report.analysis.groups() {
        assert!(cell.get(Key::Overlap).is_none_or(|q| q.estimate == 0.0), "{:?}", cell.get(Key::Overlap));
        assert!(!cell.is_valid() || cell.get(Key::Makespan).is_none(), "{}", cell.name());
    }
    assert!(page(&report).contains("</html>"));
}

#[test]
fn a_run_of_another_schema_is_left_alone_and_named() {
    let report = altered(&Fixture::quickstart(), |campaign| each_run(campaign, |run| run["schema"] = 999.into()));
    assert!(report.analysis.cells.iter().all(|c| c.quantities.is_empty()));
    assert!(!report.analysis.problems.is_empty() && page(&report).contains("999"), "{:?}", report.analysis.problems);
}

#[test]
fn a_half_written_run_counts_as_missing() {
    let half = |campaign: &CampaignFolder| {
        let run =
            std::fs::read_dir(campaign.path()).unwrap().map(|e| e.unwrap().path()).find(|p| p.join("run.json").exists()).unwrap();
        let text = std::fs::read_to_string(run.join("run.json")).unwrap();
        std::fs::write(run.join("run.json"), &text[..text.len() / 2]).unwrap();
    };
    let report = altered(&Fixture::quickstart(), half);
    assert_eq!((report.analysis.count("missing"), report.analysis.count("completed")), (1, report.analysis.planned - 1));
    assert_eq!(report.analysis.accounted.iter().map(|(_, n)| n).sum::<usize>(), report.analysis.planned);
    assert!(!report.analysis.problems.is_empty());
}

#[test]
fn a_campaign_file_that_is_half_written_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let campaign = Fixture::quickstart().write(folder.path());
    let manifest = campaign.path().join("campaign.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, &text[..text.len() / 2]).unwrap();
    let error = CampaignFolder::open(campaign.path()).unwrap_err().to_string();
    assert!(error.contains("campaign.json"), "{error}");
}

#[test]
fn every_number_in_a_report_is_finite_or_null() {
    fn finite(value: &Value, path: &Path) {
        match value {
            Value::Number(n) => assert!(n.as_f64().is_some_and(f64::is_finite), "{}", path.display()),
            Value::Array(all) => all.iter().enumerate().for_each(|(i, v)| finite(v, &path.join(i.to_string()))),
            Value::Object(all) => all.iter().for_each(|(k, v)| finite(v, &path.join(k))),
            _ => {}
        }
    }
    // Hardly any noise, and none of it: variances of exactly 0.
    let mut still = Fixture::quickstart();
    (still.shared_noise, still.member_noise) = (0.0, 0.0);
    for fixture in [Fixture::quickstart(), still] {
        finite(&json(&altered(&fixture, |_| ())), Path::new(""));
    }
}

#[test]
fn twenty_thousand_planned_cells_are_a_page_that_says_what_it_left_out() {
    // A hundred thousand take five times as long: change the number to see them.
    const WORKLOADS: usize = 10_000;
    let mut fixture = Fixture::named("huge").repetitions(1);
    for i in 0..WORKLOADS {
        fixture = fixture.solo(&format!("w{i}"), 32, 1.0).group(&format!("w{i}"), 32, 2, "naive", 1.5);
    }
    fixture.stop_after = 40;
    let report = altered(&fixture, |_| ());
    assert_eq!(report.analysis.cells.len(), 2 * WORKLOADS);
    assert_eq!(report.analysis.accounted.iter().map(|(_, n)| n).sum::<usize>(), report.analysis.planned);
    let page = page(&report);
    assert!(page.len() < 5 << 20, "{} bytes", page.len());
    assert!(page.contains(&(2 * WORKLOADS).to_string()), "it says how many there are");
}

#[test]
fn what_was_measured_twice_as_fast_as_alone_is_never_advice() {
    let report = altered(&Fixture::named("odd").solo("tiny", 32, 1.0).group("tiny", 32, 2, "naive", 0.5), |_| ());
    let cell = report.analysis.groups().next().unwrap();
    assert_eq!(cell.validity.verdict, Verdict::Indicative);
    assert!(report.guidelines.iter().all(|g| g.evidence.iter().all(|e| e.cell != cell.name())));
}

#[test]
fn a_cell_that_ran_out_of_memory_only_once_is_not_among_those_that_do_not_fit() {
    let no_memory = || Outcome::OutOfMemory { member: 0, message: "1 GiB".into() };
    let fixture = Fixture::quickstart().ends(no_memory()).group("tiny", 32, 4, "naive", 3.3).ends(no_memory());
    let report = altered(&fixture, |campaign| {
        each_run(campaign, |run| {
            if run["cell"]["cell"] == "tiny×4 naive b32" && run["repetition"] == 2 {
                let crash =
                    Outcome::Crashed { member: 0, status: "exited with 1".into(), message: "broken".into(), place_alone: false };
                run["outcome"] = serde_json::to_value(crash).unwrap();
            }
        });
    });
    let reasons = |cell: &str| report.analysis.cell(cell).unwrap().validity.reasons.clone();
    assert_eq!(reasons("tiny×3 naive b32"), reasons("tiny×4 naive b32"));
    let markdown = String::from_utf8(export(&report, "markdown").unwrap()).unwrap();
    for (cell, verdict) in [("tiny×3 naive b32", "out of memory"), ("tiny×4 naive b32", "discarded")] {
        let row = format!("| {cell} | {verdict} | out of memory: member 0: 1 GiB |");
        assert!(markdown.contains(&row), "no {row} in {markdown}");
    }
}
