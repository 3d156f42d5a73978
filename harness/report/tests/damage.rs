//! Campaigns whose files were edited, swapped or shot at: no number comes from what collo did not record, and nothing that a file may
//! hold makes a reader panic, hang, or write where it should not.

#[path = "damage/inputs.rs"]
mod inputs;
#[path = "damage/values.rs"]
mod values;

use std::path::{Path, PathBuf};

use crate::support::Fixture;
use crate::support::noted::noted;
use collo_report::{Report, json, terminal, write};
use collo_store::CampaignFolder;
use serde_json::Value;

fn altered(alter: impl Fn(&Path)) -> collo_report::Result<Report> {
    let folder = tempfile::tempdir().unwrap();
    let campaign = Fixture::quickstart().write(folder.path());
    alter(campaign.path());
    Report::of(&CampaignFolder::open(campaign.path()).unwrap())
}

fn edit(file: &Path, change: impl Fn(&mut Value)) {
    let mut value: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    change(&mut value);
    std::fs::write(file, value.to_string()).unwrap();
}

const TWO: &str = "tinyx2_naive_b32~0000";

#[test]
fn no_number_comes_from_a_run_that_is_not_as_it_was_recorded() {
    let numbers = |r: &Report| r.analysis.cell("tiny×2").unwrap().counted().map(|r| r.record().repetition).collect::<Vec<_>>();
    assert_eq!(numbers(&altered(|_| ()).unwrap()), [1, 2, 3]);
    let slower = |c: &Path| edit(&c.join(format!("{TWO}-2/run.json")), |r| r["members"][0]["peak_rss_bytes"] = 1.into());
    // A table of another run, which can be read as well as its own.
    let swapped = |c: &Path| {
        std::fs::copy(c.join(format!("{TWO}-1/epochs.parquet")), c.join(format!("{TWO}-2/epochs.parquet"))).unwrap();
    };
    let flipped = |c: &Path| {
        let file = c.join(format!("{TWO}-2/samples.parquet"));
        let mut bytes = std::fs::read(&file).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(file, bytes).unwrap();
    };
    for alter in [&slower as &dyn Fn(&Path), &swapped, &flipped] {
        let report = altered(alter).unwrap();
        assert_eq!(numbers(&report), [1, 3]);
        let said = format!("1 run is left out: its files changed since it was recorded (`{TWO}-2`)");
        assert_eq!(report.analysis.problems, std::slice::from_ref(&said));
        assert!(terminal(&report, 120).contains(&said) && json(&report)["problems"][0] == *said);
        let folder = tempfile::tempdir().unwrap();
        let page = std::fs::read_to_string(write(&report, folder.path()).unwrap().html).unwrap();
        assert!(page.contains("1 run is left out: its files changed since it was recorded"));
    }
    let both = altered(|c| {
        slower(c);
        std::fs::remove_file(c.join(format!("{TWO}-3/epochs.parquet"))).unwrap();
    });
    assert_eq!(numbers(both.as_ref().unwrap()), [1]);
    assert!(both.unwrap().analysis.problems[0].starts_with("2 runs are left out: their files changed since they were recorded"));
}

#[test]
fn of_two_runs_that_are_one_measurement_neither_counts() {
    // Without a journal, as an earlier collo's campaign may be, nothing but the content tells.
    let report = altered(|c| {
        edit(&c.join("campaign.json"), |m| drop(m.as_object_mut().unwrap().remove("filing")));
        std::fs::remove_file(c.join("journal.jsonl")).unwrap();
        for file in ["run.json", "epochs.parquet", "samples.parquet", "events.jsonl"] {
            std::fs::copy(c.join(format!("{TWO}-1/{file}")), c.join(format!("{TWO}-2/{file}"))).unwrap();
        }
        edit(&c.join(format!("{TWO}-2/run.json")), |r| r["repetition"] = 2.into());
    });
    let report = report.unwrap();
    assert_eq!(report.analysis.cell("tiny×2").unwrap().counted().map(|r| r.record().repetition).collect::<Vec<_>>(), [3]);
    assert_eq!(report.analysis.problems[0], format!("run `{TWO}-1` is left out: it duplicates another run"));
}

#[test]
fn a_campaign_that_was_edited_has_no_report() {
    let error = altered(|c| edit(&c.join("campaign.json"), |m| m["thresholds"]["slowdown"] = 9.0.into())).unwrap_err();
    insta::assert_snapshot!(error, @"`campaign.json` of `20261120-1842-7f3a` was changed after collo wrote it");
    let error = altered(|c| std::fs::remove_file(c.join("journal.jsonl")).unwrap()).unwrap_err();
    insta::assert_snapshot!(error, @"the journal of `20261120-1842-7f3a` is missing or damaged: it has no digest of `campaign.json`");
}

#[test]
fn a_name_as_long_as_a_network_written_out_is_cut_where_it_is_shown() {
    let name = "Conv2d(3, 64) ".repeat(1500);
    let report = altered(|c| {
        for run in std::fs::read_dir(c).unwrap().map(|e| e.unwrap().path().join("run.json")).filter(|p| p.exists()) {
            edit(&run, |r| r["members"][0]["hello"]["model"]["name"] = name.as_str().into());
        }
        noted(c);
    });
    let folder = tempfile::tempdir().unwrap();
    let written = write(&report.unwrap(), folder.path()).unwrap();
    let page = std::fs::read_to_string(written.html).unwrap();
    assert!(page.contains("Conv2d(3, 64) Conv2d") && !page.contains(&name[..200]), "cut to what a reader wants");
    assert!(!written.plots.is_empty());
    for plot in written.plots {
        let svg = std::fs::read_to_string(plot).unwrap();
        let longest = svg.split("<text").skip(1).filter_map(|t| t.split("</text>").next()).map(str::len).max().unwrap_or(0);
        assert!(longest < 2000, "a text of {longest} bytes is laid out");
    }
}

#[test]
fn a_life_of_very_many_epochs_is_drawn_in_as_many_marks_as_can_be_seen() {
    let mut fixture = Fixture::named("many").repetitions(1).solo("tiny", 32, 0.001).group("tiny", 32, 2, "naive", 0.001);
    (fixture.epochs, fixture.samples_hz) = (20_000, 1.0);
    let folder = tempfile::tempdir().unwrap();
    let report = Report::of(&fixture.write(folder.path())).unwrap();
    let written = write(&report, &folder.path().join("reports")).unwrap();
    let drawn = written.plots.iter().find(|p| p.ends_with("timelines.svg")).unwrap();
    let size = drawn.metadata().unwrap().len();
    assert!(size < 1 << 20, "{size} bytes");
    assert!(std::fs::read_to_string(drawn).unwrap().contains(" epochs, "), "it says how many one mark stands for");
}

#[test]
fn reports_that_are_written_at_once_are_whole_and_leave_nothing_aside() {
    let folder = tempfile::tempdir().unwrap();
    let campaign = Fixture::quickstart().write(folder.path());
    let (report, reports) = (Report::of(&campaign).unwrap(), folder.path().join("reports"));
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4).map(|_| scope.spawn(|| write(&report, &reports).unwrap())).collect();
        writers.into_iter().for_each(|w| drop(w.join().unwrap()));
    });
    let files = |folder: &Path| -> Vec<PathBuf> { std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect() };
    let all: Vec<PathBuf> = ["quickstart", "quickstart/20261120-1842-7f3a", "quickstart/20261120-1842-7f3a/plots"]
        .iter()
        .flat_map(|f| files(&reports.join(f)))
        .collect();
    assert!(all.iter().all(|p| !p.to_string_lossy().contains(".aside")), "{all:?}");
    let page = std::fs::read_to_string(reports.join("quickstart/report.html")).unwrap();
    assert!(page.trim_end().ends_with("</html>"));
    serde_json::from_slice::<Value>(&std::fs::read(reports.join("quickstart/report.json")).unwrap()).unwrap();
}

#[test]
fn what_a_file_may_hold_makes_no_reader_panic_or_hang() {
    inputs::shoot(400, 1);
}

#[test]
#[ignore = "minutes; COLLO_INPUTS says how many, a million without it"]
fn what_a_million_files_may_hold_makes_no_reader_panic_or_hang() {
    let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse().ok());
    inputs::shoot(number("COLLO_INPUTS").unwrap_or(1_000_000), number("COLLO_SEED").unwrap_or(2));
}
