//! `collo prune`: what goes, what stays, and that nothing is ever half gone.

use collo_store::{CampaignFolder, Runs};
use serde_json::{Value, json};

use crate::support::Bench;
use crate::support::noted::noted;

/// A project with one campaign of `x` that was really measured.
fn bench() -> Bench {
    let bench = Bench::of("[axes]\nworkload = [\"sleep\"]\nseconds = 0.05\ndegree = [1]");
    bench.run(&[]).exits(0);
    bench
}

/// Another campaign like the newest, with another id and date, and what is changed of its manifest.
fn copy(bench: &Bench, id: &str, created_utc: &str, change: &dyn Fn(&mut Value)) -> CampaignFolder {
    let runs = Runs::at(bench.at("runs"));
    let from = runs.find("x/last").expect("one is stored");
    let to = bench.at("runs/x").join(id);
    copy_folder(from.path(), &to);
    let file = to.join("campaign.json");
    let mut manifest: Value = serde_json::from_str(&fs_err::read_to_string(&file).expect("there")).expect("JSON");
    manifest["id"] = json!(id);
    manifest["created_utc"] = json!(created_utc);
    change(&mut manifest);
    fs_err::write(&file, manifest.to_string()).expect("written");
    for run in fs_err::read_dir(&to).expect("readable").map(|e| e.expect("readable").path().join("run.json")) {
        let Ok(text) = fs_err::read_to_string(&run) else { continue };
        let mut record: Value = serde_json::from_str(&text).expect("JSON");
        record["campaign"] = json!(id);
        fs_err::write(&run, record.to_string()).expect("written");
    }
    noted(&to);
    let journal = to.join("journal.jsonl");
    let dated = |line: &str| {
        let mut entry: Value = serde_json::from_str(line).expect("JSON");
        entry["at_utc"] = json!(created_utc);
        format!("{entry}\n")
    };
    let lines: String = fs_err::read_to_string(&journal).expect("there").lines().map(dated).collect();
    fs_err::write(&journal, lines).expect("written");
    CampaignFolder::open(&to).expect("a campaign")
}

fn copy_folder(from: &std::path::Path, to: &std::path::Path) {
    fs_err::create_dir_all(to).expect("a folder");
    for entry in fs_err::read_dir(from).expect("readable") {
        let path = entry.expect("readable").path();
        let place = to.join(path.file_name().expect("named"));
        if path.is_dir() { copy_folder(&path, &place) } else { fs_err::copy(&path, &place).map(|_| ()).expect("copied") }
    }
}

const PLAIN: &dyn Fn(&mut Value) = &|_| {};

fn ids(bench: &Bench) -> Vec<String> {
    let mut ids: Vec<String> =
        bench.runs_folder().campaigns().expect("readable").0.iter().map(|c| c.manifest().id.clone()).collect();
    ids.sort();
    ids
}

#[test]
fn without_yes_everything_stays_and_the_command_to_do_it_is_said() {
    let bench = bench();
    copy(&bench, "20260101-0200-aaaa", "2026-01-01T02:00:00Z", PLAIN);
    let said = bench.collo(&["prune"]).exits(0).answers("1 would be deleted, 1 kept").says("collo prune --yes");
    assert!(said.stdout.contains("kept: the newest of its experiment"), "{}", said.stdout);
    assert_eq!(ids(&bench).len(), 2);
    bench.collo(&["prune", "--yes"]).exits(0).answers("1 deleted, 1 kept");
    assert_eq!(ids(&bench).len(), 1);
    bench.collo(&["list"]).exits(0).answers("complete");
    bench.collo(&["report"]).exits(0);
}

#[test]
fn baselines_kept_ones_unfinished_ones_and_running_ones_stay() {
    let bench = bench();
    let old = "2026-01-01T02:00:00Z";
    copy(&bench, "20260101-0200-0001", old, &|m| m["tags"] = json!(["baseline"]));
    let kept = copy(&bench, "20260101-0200-0002", old, PLAIN);
    fs_err::write(kept.path().join("keep"), "").expect("written");
    let unfinished = copy(&bench, "20260101-0200-0003", old, PLAIN);
    let run = unfinished.runs().expect("readable").0.into_values().next().expect("one").path;
    fs_err::remove_dir_all(run).expect("removed");
    let running = copy(&bench, "20260101-0200-0004", old, PLAIN);
    let lock = running.lock().expect("free");
    copy(&bench, "20260101-0200-0005", "someday", PLAIN);
    copy(&bench, "20260101-0200-0006", old, PLAIN);
    bench.collo(&["prune", "--older-than", "30d", "--yes"]).exits(0).answers("1 deleted, 6 kept");
    assert!(!ids(&bench).iter().any(|id| id.ends_with("0006")));
    drop(lock);
    bench.collo(&["prune", "--older-than", "30d", "--unfinished", "--yes"]).exits(0).answers("2 deleted, 4 kept");
    // Another device has a newest one of its own.
    copy(&bench, "20260102-0200-0007", "2026-01-02T02:00:00Z", &|m| m["device"]["name"] = json!("another"));
    let said = bench.collo(&["prune", "--yes"]).exits(0);
    assert!(ids(&bench).iter().any(|id| id.ends_with("0007")), "{}", said.stdout);
}

#[test]
fn count_and_age_must_both_say_so() {
    let bench = bench();
    for day in 1..=5 {
        copy(&bench, &format!("2026010{day}-0200-000{day}"), &format!("2026-01-0{day}T02:00:00Z"), PLAIN);
    }
    bench.collo(&["prune", "--keep", "3", "--older-than", "100w", "--yes"]).exits(0).answers("0 deleted, 6 kept");
    let other = bench.collo(&["prune", "--keep", "3", "--experiment", "y", "--yes"]).exits(0).answers("0 deleted");
    other.says("warning: no campaign of `y` is stored: all are in `collo list`");
    bench.collo(&["prune", "--keep", "3", "--yes"]).exits(0).answers("3 deleted, 3 kept");
    let left = ids(&bench);
    assert!(left[0].ends_with("0004") && left[1].ends_with("0005"), "{left:?}");
    let json = bench.collo(&["prune", "--keep", "0", "--json"]).exits(0).json();
    assert_eq!((json["dry_run"].as_bool(), json["campaigns"].as_array().map(Vec::len)), (Some(true), Some(3)));
}

#[test]
fn a_nightly_keeps_what_it_needs_of_a_night_before_it_goes() {
    let bench = bench();
    copy(&bench, "20260101-0200-aaaa", "2026-01-01T02:00:00Z", PLAIN);
    bench.write("reports/history/x/history.md", "");
    bench.collo(&["prune", "--yes"]).exits(0).answers("1 deleted");
    assert!(bench.at("reports/history/x/nights/20260101-0200-aaaa.json").is_file());
    bench.collo(&["nightly", "x", "--judge-only"]).exits(0).answers("2 nights");
}

#[test]
fn what_a_killed_prune_left_is_no_campaign_and_goes_with_the_next() {
    let bench = bench();
    let half = bench.at("runs/x/.pruned-20260101-0200-aaaa");
    fs_err::create_dir_all(half.join("some-run")).expect("a folder");
    fs_err::write(half.join("campaign.json"), "{}").expect("written");
    bench.collo(&["list"]).exits(0).answers("complete");
    bench.collo(&["prune"]).exits(0);
    assert!(half.exists(), "a dry run touches nothing");
    bench.collo(&["prune", "--yes"]).exits(0);
    assert!(!half.exists());
}

#[test]
fn what_began_long_ago_and_was_measured_lately_stays() {
    let bench = bench();
    let old = copy(&bench, "20260101-0200-aaaa", "2026-01-01T02:00:00Z", PLAIN);
    old.journal().expect("a journal").opened(0).expect("noted");
    let said = bench.collo(&["prune", "--yes"]).exits(0).answers("0 deleted, 2 kept");
    assert!(said.stdout.contains("kept: not old enough"), "{}", said.stdout);
}
