//! The list of reports: each campaign with the answer of its page, whatever else lies in the folder.

use std::path::Path;

use collo_report::{Report, write, write_index};

use crate::support::Fixture;

/// A measured campaign, and one that was stopped, on a simulated GPU.
fn two(reports: &Path) {
    let runs = tempfile::tempdir().unwrap();
    let gains = Fixture::named("first").solo("tiny", 32, 1.0).group("tiny", 32, 2, "naive", 1.2);
    write(&Report::of(&gains.write(runs.path())).unwrap(), reports).unwrap();
    let mut stopped = Fixture::named("second").solo("tiny", 32, 1.0).group("tiny", 32, 2, "naive", 1.2);
    (stopped.id, stopped.stop_after, stopped.device.simulated) = ("20261121-0200-93be".into(), 2, true);
    stopped.device.name = "<b>A100</b>".into();
    write(&Report::of(&stopped.write(runs.path())).unwrap(), reports).unwrap();
}

fn index(reports: &Path) -> String {
    write_index(reports).unwrap();
    fs_err::read_to_string(reports.join("index.html")).unwrap()
}

/// The texts of a page between two of its parts, without markup: a line for each row of a table.
fn text(page: &str, from: &str, to: &str) -> String {
    let part = &page[page.find(from).unwrap()..];
    let row = |row: &str| {
        let texts = row.split('<').skip(1).filter_map(|piece| Some(piece.split_once('>')?.1.trim()));
        texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" | ")
    };
    let rows = part[..part.find(to).unwrap_or(part.len())].split("</tr>").map(row);
    rows.filter(|row| !row.is_empty()).collect::<Vec<_>>().join("\n")
}

#[test]
fn every_campaign_is_listed_with_the_answer_of_its_page() {
    let reports = tempfile::tempdir().unwrap();
    two(reports.path());
    let page = index(reports.path());
    insta::assert_snapshot!(text(&page, "<tbody>", "</table>"), @"
    second | 2026-11-20 18:42:09 UTC, 20261121-0200-93be | simulated | &#60;b&#62;A100&#60;/b&#62; | synthetic data | 0 of 2 cells valid | 2 indicative, unfinished: 7 of 9 runs not run | tiny | : open. No group is shown to have more throughput than running in turn. None is judged: with one run.
    first | 2026-11-20 18:42:09 UTC, 20261120-1842-7f3a | measured | cpu | synthetic data | 2 of 2 cells valid | tiny | : run two together under naive sharing: 1.681× [1.665, 1.697] the throughput of running in turn. More than two were not tried. No measured group keeps the slowdown of every member within 10 %.
    ");
    let own = fs_err::read_to_string(reports.path().join("first/20261120-1842-7f3a/report.html")).unwrap();
    let sentence = "run two together under naive sharing: ";
    assert!(page.contains(sentence) && own.contains(sentence), "the page has the sentence");
    for link in page.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).filter(|link| !link.starts_with('#')) {
        assert!(reports.path().join(link).is_file(), "{link} leads nowhere");
    }
    assert!(!page.contains("<b>A100"), "a name stays text");
    assert!(page.contains("1 measured, 1 simulated"));
}

#[test]
fn what_is_no_report_of_this_version_is_listed_with_the_reason() {
    let reports = tempfile::tempdir().unwrap();
    two(reports.path());
    let put = |name: &str, text: &str| {
        let folder = reports.path().join(name);
        fs_err::create_dir_all(&folder).unwrap();
        fs_err::write(folder.join("report.json"), text).unwrap();
    };
    put("old/1", r#"{"schema": 1, "campaign": "1"}"#);
    put("torn/<script>x", r#"{"schema": 2, "cel"#);
    put("early/1", r#"{"schema": 2, "campaign": "1", "experiment": "early", "device": {"name": "cpu"}, "cells": []}"#);
    let page = index(reports.path());
    let refused = text(&page, "id=\"sec-not-read\"", "</section>").replace(&reports.path().display().to_string(), "");
    insta::assert_snapshot!(refused, @"Not read | /old/1/report.json | is not a collo report: it has schema 1, and this collo reads schema 2. | /torn/&#60;script&#62;x/report.json | is not a collo report: it is truncated, EOF while parsing a string at line 1 column 18. | collo report CAMPAIGN | writes the report of a stored campaign again.");
    assert!(text(&page, ">early", "</tr>").contains("An earlier version wrote its report, without an answer;"), "{page}");
    assert!(!page.contains("<script"), "names stay text");
}

#[test]
fn a_list_that_somebody_else_wrote_stays_and_one_of_ours_is_replaced() {
    let reports = tempfile::tempdir().unwrap();
    assert!(index(reports.path()).contains("There is no report yet"));
    two(reports.path());
    assert!(index(reports.path()).contains("20261121-0200-93be"));
    fs_err::remove_dir_all(reports.path().join("second")).unwrap();
    assert!(!index(reports.path()).contains("20261121-0200-93be"), "what is gone is no longer listed");
    fs_err::write(reports.path().join("index.html"), "<title>My page</title>").unwrap();
    assert_eq!(index(reports.path()), "<title>My page</title>");
}

#[test]
fn pages_of_nights_are_linked() {
    let reports = tempfile::tempdir().unwrap();
    fs_err::create_dir_all(reports.path().join("history/a b")).unwrap();
    fs_err::write(reports.path().join("history/a b/index.html"), "").unwrap();
    fs_err::create_dir_all(reports.path().join("history/without")).unwrap();
    let page = index(reports.path());
    assert!(page.contains("href=\"history/a%20b/index.html\"") && !page.contains("without</a>"), "{page}");
}

#[test]
fn the_answer_in_json_is_that_of_the_first_screen_whatever_was_measured() {
    let runs = tempfile::tempdir().unwrap();
    let json = |fixture: Fixture| collo_report::json(&Report::of(&fixture.write(runs.path())).unwrap());
    let gains = json(Fixture::named("gains").solo("tiny", 32, 1.0).group("tiny", 32, 2, "naive", 1.2));
    insta::assert_snapshot!(serde_json::to_string_pretty(&gains["decisions"]).unwrap(), @r#"
    [
      {
        "subject": "tiny",
        "members": [
          "tiny solo b32"
        ],
        "throughput": "run",
        "cells": [
          "tiny×2 naive b32"
        ],
        "reason": null,
        "few_energy_steps": false
      }
    ]
    "#);
    let loses = json(Fixture::named("loses").solo("tiny", 32, 1.0).group("tiny", 32, 2, "naive", 2.4));
    assert_eq!(
        (&loses["decisions"][0]["throughput"], &loses["decisions"][0]["cells"]),
        (&"in_turn".into(), &serde_json::json!([]))
    );
    let mut nothing = Fixture::named("nothing").solo("tiny", 32, 1.0).group("tiny", 32, 2, "naive", 1.2);
    nothing.stop_after = 0;
    let nothing = json(nothing);
    assert_eq!(
        (&nothing["answer"], &nothing["decisions"]),
        (&serde_json::json!(["Nothing has run yet."]), &serde_json::json!([]))
    );
}
