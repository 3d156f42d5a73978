//! Reports that are rendered from a `report.json`: what they show is what the page of the stored runs shows, line by line, and what
//! needs the runs is absent.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use collo_quantity::Key;
use collo_report::export::{self, FORMATS, TABLES};
use collo_report::{Report, json, terminal, terminal_cell, write};
use collo_store::{Outcome, Reference, RefusalRecord, Runs};
use serde_json::Value;

use crate::support::exports::export;
use crate::support::serving::Serves;
use crate::support::traces::{PolicyTruth, TraceTruth};
use crate::support::{Fixture, predictions, study, watching};

/// The report of a fixture's runs.
fn analysed(fixture: &Fixture) -> Report {
    let folder = tempfile::tempdir().unwrap();
    Report::of(&fixture.write(folder.path())).unwrap()
}

/// The same from its file.
fn reread(stored: &Report) -> Report {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.json");
    fs_err::write(&path, serde_json::to_vec_pretty(&json(stored)).unwrap()).unwrap();
    Report::read(&path).unwrap()
}

/// From these contents of a file; or why not.
fn read_from(file: &Value) -> Result<Report, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.json");
    fs_err::write(&path, file.to_string()).unwrap();
    Report::read(&path).map_err(|e| e.to_string())
}

/// Why a file is refused after a change.
fn refused(file: &Value, change: impl Fn(&mut Value)) -> String {
    let mut other = file.clone();
    change(&mut other);
    read_from(&other).unwrap_err()
}

fn text(report: &Report, format: &str) -> String {
    String::from_utf8(export(report, format).unwrap()).unwrap()
}

/// The lines of a page in Markdown by section; those of its head are under the empty title.
fn sections(page: &str) -> BTreeMap<String, Vec<String>> {
    let mut found = BTreeMap::<String, Vec<String>>::new();
    let mut title = String::new();
    for line in page.lines() {
        match line.strip_prefix("## ") {
            Some(next) => title = next.into(),
            None => found.entry(title.clone()).or_default().extend((!line.trim().is_empty()).then(|| line.to_string())),
        }
    }
    found
}

/// Tables of a section: their rows as fields by head.
fn rows(lines: &[String]) -> Vec<BTreeMap<String, String>> {
    let fields = |line: &String| line.trim_matches('|').split('|').map(|field| field.trim().to_string()).collect::<Vec<_>>();
    let table: Vec<Vec<String>> = lines.iter().filter(|line| line.starts_with('|')).map(fields).collect();
    let heads = table[0].clone();
    table.into_iter().skip(2).map(|row| heads.iter().cloned().zip(row).collect()).collect()
}

/// The parts of a line: of some a report has not all.
fn parts(line: &str) -> Vec<&str> {
    let ends = ["|", "; ", ". ", ", ", " · ", "**"];
    let mut all = vec![line];
    for end in ends {
        all = all.into_iter().flat_map(|part| part.split(end)).collect();
    }
    all.into_iter().map(|part| part.trim_matches([' ', '-', '.'])).filter(|part| !part.is_empty() && *part != "–").collect()
}

/// Lines that only the page of the file has, by section: with a part that none of the same section has in the other.
fn only_there(stored: &str, read: &str) -> Vec<(String, String)> {
    let (stored, read) = (sections(stored), sections(read));
    let none = Vec::new();
    let mut found = Vec::new();
    for (title, lines) in &read {
        // Where nothing is decided, the first guidelines stand in the place of the answer.
        let everywhere = || stored.values().flatten().cloned().collect::<Vec<_>>();
        let own = &if title.starts_with("How to use") { everywhere() } else { stored.get(title).unwrap_or(&none).clone() };
        let known = |line: &&String| parts(line).iter().all(|part| own.iter().any(|own| own.contains(part)));
        found.extend(lines.iter().filter(|line| !known(line)).map(|line| (title.clone(), line.clone())));
    }
    found
}

/// Where a page says itself that it has no runs.
fn is_of_the_file(title: &str, line: &str) -> bool {
    let of = |words: &[&str]| words.iter().any(|word| line.contains(word));
    match title {
        _ if of(&[
            "rendered from `report.json`",
            "It needs the stored runs",
            "Left out, having nothing to show.",
            "merged**: merged from 2026",
        ]) =>
        {
            true
        }
        // The decisions without the numbers that they rest on, and the sentences that follow the first.
        _ if title.starts_with("How to use") && ["|", "What to run"].iter().any(|it| line.starts_with(it)) => true,
        _ if title.starts_with("How to use") && line.contains(" more sentence") => true,
        "All cells" => line.starts_with('|'),
        "Provenance" => of(&["- run order: ", "- epochs: ", "- merged from: "]),
        "Feasibility" => of(&["planned; "]),
        _ => false,
    }
}

/// Everything that is rendered from a file is compared with what is rendered from the runs.
fn agree(stored: &Report) -> Report {
    let read = reread(stored);
    let name = &stored.analysis.campaign.experiment;
    let pretty = |report: &Report| serde_json::to_string_pretty(&json(report)).unwrap();
    assert_eq!(pretty(stored), pretty(&read), "{name}: report.json stays the same, digit by digit");

    let pages = [stored, &read].map(|report| text(report, "markdown"));
    let strange: Vec<_> = only_there(&pages[0], &pages[1]).into_iter().filter(|(t, line)| !is_of_the_file(t, line)).collect();
    assert!(strange.is_empty(), "{name}: {strange:#?}\n{}", pages[0]);
    let [own, again] = [&pages[0], &pages[1]].map(|page| sections(page));
    if !stored.analysis.cells.is_empty() {
        let (own, again) = (rows(&own["All cells"]), rows(&again["All cells"]));
        assert_eq!(own.len(), again.len(), "{name}");
        for (own, again) in own.iter().zip(&again) {
            let without: BTreeSet<&str> = own.keys().filter(|head| !again.contains_key(*head)).map(String::as_str).collect();
            assert_eq!(without, BTreeSet::from(["attested", "runs"]), "{name}");
            assert!(again.iter().all(|(head, text)| own[head] == *text), "{name}: {own:?} {again:?}");
        }
    }

    let shown = [stored, &read].map(|report| terminal(report, usize::MAX));
    let known: BTreeSet<&str> = shown[0].lines().collect();
    let is_known = |line: &&str| parts(line).iter().all(|part| known.iter().any(|known| known.contains(part)));
    let own_words = pages[1].lines().find(|line| line.contains("rendered from")).unwrap();
    let is_own = |line: &&str| own_words.contains(line.trim()) || line.starts_with("merged from");
    let strange: Vec<&str> = shown[1].lines().filter(|line| !is_known(line) && !is_own(line)).collect();
    assert!(strange.is_empty(), "{name}: {strange:#?}\n{}", shown[0]);
    for cell in &stored.analysis.cells {
        let shown = [stored, &read].map(|report| terminal_cell(report, cell.name(), usize::MAX).unwrap());
        let known: BTreeSet<&str> = shown[0].lines().collect();
        let columns = |line: &str| line.split("  ").map(|part| part.trim().to_string()).collect::<BTreeSet<String>>();
        let all: BTreeSet<String> = known.iter().flat_map(|line| columns(line)).collect();
        let strange = |line: &&str| match line.trim_start().strip_prefix("ran on") {
            // What members report of themselves is read in the runs.
            Some(what) => !parts(what).iter().all(|part| known.iter().any(|known| known.contains(part))),
            None => !columns(line).is_subset(&all),
        };
        let strange: Vec<&str> = shown[1].lines().filter(strange).collect();
        assert!(strange.is_empty(), "{}: {strange:#?}\n{}", cell.name(), shown[0]);
    }

    for format in ["latex", "latex-macros", "openmetrics", "quantities", "policies"] {
        assert_eq!(text(stored, format), text(&read, format), "{name}: {format}");
    }
    let of_slices = |csv: String| -> Vec<Vec<String>> {
        let mut lines = csv::Reader::from_reader(csv.as_bytes());
        let place = lines.headers().unwrap().iter().position(|head| head == "instance_sm_active_ratio").unwrap();
        let row = |row: csv::StringRecord| row.iter().enumerate().filter(|(i, _)| *i != place).map(|(_, f)| f.into()).collect();
        lines.records().map(|record| row(record.unwrap())).collect()
    };
    assert_eq!(of_slices(text(stored, "cells")), of_slices(text(&read, "cells")), "{name}");

    let folder = tempfile::tempdir().unwrap();
    let [own, again] = [(stored, "own"), (&read, "again")].map(|(report, at)| write(report, &folder.path().join(at)).unwrap());
    let values = |plots: &[std::path::PathBuf]| -> BTreeMap<String, String> {
        let of = |plot: &std::path::PathBuf| {
            let values = fs_err::read_to_string(plot.with_extension("csv")).unwrap();
            (plot.file_stem().unwrap().to_string_lossy().into_owned(), values)
        };
        plots.iter().map(of).collect()
    };
    let (own, again) = (values(&own.plots), values(&again.plots));
    for (figure, values) in &again {
        assert_eq!(own.get(figure), Some(values), "{name}: the values of the figure {figure}");
    }
    read
}

#[test]
fn a_report_of_cores_is_rendered_again_with_the_same_numbers() {
    let mut f = Fixture::quickstart().mixed(("tiny", 1.7), ("small", 2.9), "naive", "exit").solo("small", 32, 2.1);
    f.references = vec![Reference {
        cell: "tiny×2 naive b32".into(),
        quantity: "throughput_gain".into(),
        value: 2.4,
        tolerance_ratio: 0.05,
        device: None,
    }];
    let read = agree(&analysed(&f));
    let page = text(&read, "markdown");
    assert!(page.contains("rendered from `report.json`, which has the numbers and not the runs"), "{page}");
    assert!(page.contains("`collo report 7f3a` has them"), "{page}");
    assert!(page.contains("Timelines: It needs the stored runs, and a report.json has none."), "{page}");
    let two = read.analysis.cell("tiny×2 naive b32").unwrap();
    assert_eq!((two.count(), two.counted().count(), two.ran()), (3, 0, true));
}

#[test]
fn what_failed_was_refused_is_far_or_not_run_is_said_as_of_its_runs() {
    let no_memory = Outcome::OutOfMemory { member: 2, message: "tried to allocate 9 GiB".into() };
    let crash = Outcome::Crashed { member: 0, status: "exited with 1".into(), message: "in epoch 1".into(), place_alone: true };
    let mut f = Fixture::quickstart().group("tiny", 32, 4, "naive", 1.0).ends(no_memory);
    f = f.group("tiny", 32, 5, "naive", 1.0).ends(crash);
    f.refusals = vec![RefusalRecord {
        cell: "tiny×9 naive b32".into(),
        sharing: "naive".into(),
        reason: "9 members need 9 cores".into(),
        hint: Some("fewer members".into()),
    }];
    agree(&analysed(&f));
    agree(&analysed(&Fixture { stop_after: 7, ..f.clone() }));
    agree(&analysed(&Fixture { stop_after: 0, ..f.clone() }));
    agree(&analysed(&f.clone().repetitions(1)));
    let odd = Fixture { odd_run: Some(("tiny×2 naive b32", 2, 1.4)), ..Fixture::quickstart() }.repetitions(5);
    let read = agree(&analysed(&odd));
    assert!(read.analysis.cells.iter().any(|cell| cell.second_look.is_some()));
}

#[test]
fn a_report_of_a_gpu_is_rendered_again_with_the_same_numbers() {
    let (fixture, _) = study::campaign("a100-40gb", 3, 2);
    let read = agree(&analysed(&fixture));
    let page = text(&read, "markdown");
    assert!(page.contains("Nothing here was measured."), "{page}");
}

#[test]
fn servers_policies_and_observers_are_rendered_again_with_the_same_numbers() {
    let usual = Serves::usual();
    let mut f = Fixture::named("serving").solo("tiny", 32, 8.0).serves("serve", &usual);
    f = f.beside(&[("serve", usual.clone().left(110.0))], &[("tiny", 10.0)], "mps");
    agree(&analysed(&f));
    agree(&analysed(&watching::tools()));
    let mut f = Fixture::quickstart();
    let trace = TraceTruth::burst(3).policy(PolicyTruth::of("magm:sm=80%,free=5GB", "measured", "mps", 3, 1.1));
    f.trace = Some(TraceTruth { spread: 0.05, ..trace.policy(PolicyTruth::of("rr", "none", "mps", 3, 1.3)) });
    agree(&analysed(&f));
    agree(&analysed(&predictions::predicted()));
}

#[test]
fn a_merged_report_is_rendered_again_with_the_same_numbers() {
    let part = |pace: f64, seed: u64| {
        let mut f = Fixture::named("parts").solo("tiny", 32, pace).group("tiny", 32, 2, "naive", 1.25 * pace).seed(seed);
        f = f.group("tiny", 32, 3, "naive", 1.9 * pace);
        f.id = format!("20261120-184{seed}-7f3{seed}");
        f
    };
    let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let parts = [part(2.0, 1).write(folders[0].path()), part(3.0, 2).write(folders[1].path())];
    let merged = collo_store::merge(&Runs::at(folders[2].path()), &parts, &[]).unwrap();
    let read = agree(&Report::of(&merged).unwrap());
    assert!(text(&read, "markdown").contains("merged from 20261120-1841-7f31, 20261120-1842-7f32"));
    let shown = terminal_cell(&read, "tiny×2 naive b32", usize::MAX).unwrap();
    assert!(!shown.contains("ran on"), "the environment is that of the first part: {shown}");
}

#[test]
fn why_there_is_no_baseline_is_known_without_the_runs() {
    let mut alone = Fixture::quickstart();
    alone.baselines = false;
    let stored = analysed(&alone);
    let lacking = |report: &Report| -> Vec<(String, String)> {
        report.analysis.cells_without_baseline().map(|(cell, why)| (cell.name().to_string(), why.to_string())).collect()
    };
    assert!(!lacking(&stored).is_empty());
    assert_eq!(lacking(&reread(&stored)), lacking(&stored));
}

#[test]
fn of_servers_without_the_quantity_that_decides_nothing_is_decided() {
    let usual = Serves::usual();
    let mut f = Fixture::named("serving").solo("tiny", 32, 8.0).serves("serve", &usual);
    f = f.beside(&[("serve", usual.clone().left(110.0))], &[("tiny", 10.0)], "mps");
    let mut file = json(&analysed(&f));
    for cell in file["cells"].as_array_mut().unwrap() {
        cell["within_slo_ratio"] = Value::Null;
    }
    let page = text(&read_from(&file).unwrap(), "markdown");
    let is_undecided = |line: &str| line.starts_with('|') && line.contains("not in the file");
    assert!(page.lines().any(is_undecided), "{page}");
}

#[test]
fn names_that_are_unknown_and_numbers_that_contradict_each_other_are_refused() {
    let mut f = Fixture::quickstart();
    let trace = TraceTruth::burst(3).policy(PolicyTruth::of("magm:sm=80%,free=5GB", "measured", "mps", 3, 1.1));
    f.trace = Some(TraceTruth { spread: 0.05, ..trace.policy(PolicyTruth::of("rr", "none", "mps", 3, 1.3)) });
    let file = json(&analysed(&f));
    assert!(read_from(&file).is_ok());
    let why = |change: &dyn Fn(&mut Value)| refused(&file, change);
    let policy = |file: &mut Value, key: &str, value: Value| file["traces"][0]["policies"][1][key] = value;
    let quantity = serde_json::json!({ "estimate": 2.0, "low": null, "high": null, "repetitions": 1, "df": null });

    let found = why(&|file| file["traces"][0]["reference"] = "a policy of tomorrow".into());
    assert!(found.contains("`traces[0]`: its reference, `a policy of tomorrow`, is none of its policies"), "{found}");
    let found = why(&|file| policy(file, "validity", "fine".into()));
    assert!(found.contains("the validity `fine` is unknown"), "{found}");
    let found = why(&|file| policy(file, "warmth", quantity.clone()));
    assert!(found.contains("the quantity `warmth` is unknown"), "{found}");
    let found = why(&|file| file["traces"][0]["policies"][1]["by_order"][0]["device"] = "GPU 9".into());
    assert!(found.contains("`GPU 9`, is none of the report's"), "{found}");
    let found = why(&|file| file["traces"][0]["policies"][1]["by_order"][0]["values"]["warmth"] = serde_json::json!(1.0));
    assert!(found.contains("the quantity `warmth` is unknown"), "{found}");
    let found = why(&|file| file["cells"][1]["warmth"] = quantity.clone());
    assert!(found.contains("`cells[1]`: the quantity `warmth` is unknown"), "{found}");

    let found = why(&|file| file["planned"] = 1.into());
    assert!(found.contains("of 1 planned runs"), "{found}");
    let found = why(&|file| file["cells"][1]["degree"] = 9.into());
    assert!(found.contains("`cells[1]`: its degree is 9, and the number of its members "), "{found}");
    for many in [u64::from(u32::MAX), u64::MAX] {
        let found = why(&|file| file["cells"][1]["outcomes"] = serde_json::json!({ "completed": many, "crashed": 1 }));
        assert!(found.contains("`cells[1]`: "), "{found}");
    }
}

#[test]
fn formats_and_tables_of_runs_are_refused_and_name_what_has_them() {
    let read = reread(&analysed(&Fixture::quickstart()));
    let format = |word: &str| FORMATS.iter().find(|format| format.word == word).unwrap();
    let table = |name: &str| TABLES.iter().find(|table| table.name == name).unwrap();
    let why = export::check(&read, format("junit"), table("cells")).unwrap_err().to_string();
    assert!(why.starts_with("`--format junit` needs the stored runs, and `"), "{why}");
    for name in ["runs", "epochs", "observers", "dataset", "campaign"] {
        assert!(export::check(&read, format("csv"), table(name)).is_err(), "{name}");
    }
    assert!(
        export::check(&read, format("csv"), table("cells")).is_ok()
            && export::check(&read, format("latex"), table("cells")).is_ok()
    );
    assert!(export::check(&analysed(&Fixture::quickstart()), format("junit"), table("cells")).is_ok());
}

#[test]
fn what_another_program_measured_stays_marked_and_needs_no_more_than_it_has() {
    let q = serde_json::json!({ "estimate": 41.5, "low": null, "high": null, "repetitions": 1, "df": null });
    let member = serde_json::json!({ "workload": "train", "batch_size": 32, "solo": "train solo b32" });
    let cell = serde_json::json!({ "cell": "train solo b32", "sharing": "solo", "members": [member], "repetitions": 1,
        "outcome": "completed", "outcomes": { "completed": 1 }, "validity": "indicative", "reasons": ["it was imported"],
        "metrics": { "duration_s": q, "power_w": q }, "absent": { "epoch_time_s": "radT does not measure it" } });
    let report = serde_json::json!({ "schema": 2, "experiment": "radt-x", "campaign": "imported-from-radt-1", "measured_by": "radT",
        "device": { "name": "NVIDIA A100", "kind": "gpu" }, "planned": 1, "accounted": { "completed": 1 }, "cells": [cell] });
    let read = read_from(&report).unwrap();
    let page = text(&read, "markdown");
    assert!(page.contains("measured by radT"), "{page}");
    assert!(page.contains("measured by radT; collo has no runs of it"), "{page}");
    assert_eq!(read.analysis.cells[0].metric(Key::Power).map(|q| (q.estimate, q.n)), Some((41.5, 1)));
    assert!(page.contains("Epoch time is absent: radT does not measure it."), "{page}");
    for said in ["Memory is not in the file.", "PCIe in per item is not in the file."] {
        assert!(page.contains(said), "{said}: {page}");
    }

    // How its runs ended may be unknown.
    let mut bare = report.clone();
    for key in ["planned", "accounted"] {
        bare.as_object_mut().unwrap().remove(key);
    }
    bare["cells"][0].as_object_mut().unwrap().remove("outcomes");
    let read = read_from(&bare).unwrap();
    let (page, shown) = (text(&read, "markdown"), terminal(&read, usize::MAX));
    assert!(read.analysis.cells[0].ran() && !page.contains("Nothing has run yet."), "{page}");
    assert!(shown.contains("1 cell, how its runs ended is not in the file") && !shown.contains("0 of 0"), "{shown}");

    // What would lead out of the folder of reports, or cannot be said, is refused.
    for (key, value) in [("campaign", "../../x"), ("experiment", "/etc"), ("experiment", "")] {
        let mut other = report.clone();
        other[key] = value.into();
        let why = read_from(&other).unwrap_err();
        assert!(why.contains(&format!("its `{key}`, {value:?}, is no name")), "{why}");
    }
    let why = refused(&report, |other| other["cells"][0]["outcome"] = "evaporated".into());
    assert!(why.contains("`cells[0]`: the outcome `evaporated` is unknown"), "{why}");
}

#[test]
fn a_report_that_was_read_replaces_no_copies_of_the_newest_campaign() {
    let read = reread(&analysed(&Fixture::quickstart()));
    let reports = tempfile::tempdir().unwrap();
    let written = write(&read, reports.path()).unwrap();
    assert!(written.html.starts_with(&written.folder) && written.folder.ends_with(Path::new("quickstart/20261120-1842-7f3a")));
    assert!(!reports.path().join("quickstart/report.html").exists());
}

#[test]
fn a_report_that_was_read_answers_with_its_stored_sentences_and_decisions() {
    let stored = analysed(&Fixture::quickstart());
    let answer = json(&stored)["answer"].as_array().unwrap().clone();
    let first = answer[0].as_str().unwrap();
    let page = text(&reread(&stored), "markdown");
    let summary = &sections(&page)["How to use these cores"].join("\n");
    let first = first.replace('[', "\\[").replace(']', "\\]");
    assert!(summary.contains(&first), "{first}\n{summary}");
    assert!(summary.contains("most throughput"), "and with the table of its decisions: {summary}");
    let mut file = json(&stored);
    file["answer"] = serde_json::json!(["Only this is known."]);
    let edited = text(&read_from(&file).unwrap(), "markdown");
    assert!(edited.contains("Only this is known."), "what the file has is shown, and not what follows from its numbers");
}

#[test]
fn commands_of_a_simulated_campaign_simulate_it() {
    let mut fixture = Fixture { stop_after: 3, ..Fixture::quickstart() };
    let measured = text(&analysed(&fixture), "markdown");
    assert!(measured.contains("collo run quickstart") && !measured.contains("--simulate"), "{measured}");
    fixture.device.simulated = true;
    fixture.device.kind = "gpu".into();
    fixture.device.name = "NVIDIA A100-SXM4-40GB".into();
    let simulated = analysed(&fixture);
    let page = text(&simulated, "markdown");
    let commands: Vec<&str> = page.split("collo ").skip(1).filter(|rest| rest.starts_with("run ")).collect();
    assert_eq!(commands, Vec::<&str>::new(), "without the simulator they would fail");
    assert!(page.contains("`collo --simulate a100-40gb run quickstart"), "{page}");
    let again = text(&reread(&simulated), "markdown");
    assert!(!again.contains("--simulate a100-40gb --simulate"), "read again, they name it once");
}
