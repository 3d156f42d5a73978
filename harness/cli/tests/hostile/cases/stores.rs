//! Stored campaigns that somebody edited, copied, swapped or broke: each verb ends, says so, harms no other campaign, and writes nowhere
//! else; and `verify` never finds that all is well.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use nix::unistd::mkfifo;
use serde_json::{Value, json};

use super::stray::{MODE, verb};
use crate::hostile::case::{Case, case, hold};
use crate::hostile::scene::{Scene, copy, only_folder, run_folders};

const KIND: &str = "damaged stores";

/// What `verify` of the damaged campaign must end with.
pub const SEEN: &[i32] = &[1, 2, 3];
const EITHER: &[i32] = &[0, 1, 2, 3];

fn damaged(name: &str, damage: impl Fn(&Path) + Send + Sync + 'static) -> Case {
    damaged_as(name, SEEN, damage)
}

/// The same where `verify` may end with these.
fn damaged_as(name: &str, verify: &'static [i32], damage: impl Fn(&Path) + Send + Sync + 'static) -> Case {
    case(KIND, name).act(move |scene| {
        let campaign = scene.damaged();
        damage(&campaign);
        let outside = around(scene);
        let id = campaign.file_name().expect("named").to_string_lossy().into_owned();
        let folder = format!("runs/damaged/{id}");
        for arguments in [
            &["list"][..],
            &["list", "--json"],
            &["status"],
            &["prune"],
            &["show", &folder],
            &["report", &folder],
            &["report", &folder, "--json"],
            &["compare", &folder, "good/last"],
        ] {
            let codes: &[i32] = if matches!(arguments[0], "list" | "prune") { &[0] } else { &[0, 1, 2, 3, 4] };
            verb(scene, arguments, codes)?;
        }
        verb(scene, &["verify", &folder], verify)?;
        // The other one is as well as before.
        verb(scene, &["verify", "good/last"], &[0])?;
        verb(scene, &["report", "good/last"], &[0])?;
        let now = around(scene);
        let strange: Vec<_> = now.difference(&outside).collect();
        hold(strange.is_empty(), || format!("written outside of reports/ and runs/: {strange:?}"))
    })
}

/// What lies in and beside the project, without what collo writes.
fn around(scene: &Scene) -> BTreeSet<PathBuf> {
    let project = scene.at("");
    let beside = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path()).collect::<Vec<_>>();
    let parents = project.ancestors().skip(1).take(2).flat_map(beside).filter(|p| p.to_string_lossy().contains("evil"));
    let own = beside(&project).into_iter().filter(|p| !p.ends_with("reports"));
    let reports = beside(&project.join("reports")).into_iter().filter(|p| p.to_string_lossy().contains("evil"));
    own.chain(parents).chain(reports).collect()
}

fn edit(file: &Path, change: impl Fn(&mut Value)) {
    let text = fs_err::read_to_string(file).expect("it is there");
    let mut value: Value = serde_json::from_str(&text).expect("JSON");
    change(&mut value);
    fs_err::write(file, value.to_string()).expect("written");
}

fn manifest(campaign: &Path) -> PathBuf {
    campaign.join("campaign.json")
}

fn journal(campaign: &Path) -> PathBuf {
    campaign.join("journal.jsonl")
}

fn truncate(file: &Path) {
    let bytes = fs_err::read(file).expect("it is there");
    fs_err::write(file, &bytes[..bytes.len() / 2]).expect("written");
}

fn fifo(file: &Path) {
    let _ = std::fs::remove_file(file);
    mkfifo(file, MODE).expect("a pipe");
}

/// A run of repetition 1 and one of repetition 2 of the same cell.
fn twins(campaign: &Path) -> (PathBuf, PathBuf) {
    let of = |end: &str| run_folders(campaign).into_iter().find(|f| f.to_string_lossy().ends_with(end)).expect("it is stored");
    (of("-1"), of("-2"))
}

/// Two runs of different cells.
fn strangers(campaign: &Path) -> (PathBuf, PathBuf) {
    let all = run_folders(campaign);
    let cell = |f: &Path| f.file_name().expect("named").to_string_lossy().rsplit_once('-').expect("numbered").0.to_string();
    let other = all.iter().find(|f| cell(f) != cell(&all[0])).expect("two cells").clone();
    (all[0].clone(), other)
}

fn swap(a: &Path, b: &Path) {
    let aside = a.with_file_name("aside");
    for (from, to) in [(a, aside.as_path()), (b, a), (aside.as_path(), b)] {
        fs_err::rename(from, to).expect("renamed");
    }
}

fn replace(what: &Path, by: &Path) {
    fs_err::remove_dir_all(what).expect("removed");
    copy(by, what);
}

fn first_run(campaign: &Path) -> PathBuf {
    run_folders(campaign).remove(0)
}

fn flip_a_bit(file: &Path) {
    let mut bytes = fs_err::read(file).expect("it is there");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs_err::write(file, bytes).expect("written");
}

pub fn cases() -> Vec<Case> {
    let named = |name: &str, key: &'static str, value: &'static str| {
        damaged(name, move |c| edit(&manifest(c), |m| m[key] = json!(value)))
    };
    vec![
        damaged("journal_removed", |c| fs_err::remove_file(journal(c)).unwrap()).sample(),
        damaged("journal_truncated", |c| truncate(&journal(c))),
        damaged("journal_emptied", |c| fs_err::write(journal(c), "").unwrap()),
        damaged("journal_is_noise", |c| fs_err::write(journal(c), [0xff; 3000]).unwrap()),
        damaged("journal_is_a_fifo", |c| fifo(&journal(c))),
        damaged("journal_is_a_folder", |c| {
            fs_err::remove_file(journal(c)).unwrap();
            fs_err::create_dir(journal(c)).unwrap();
        }),
        damaged("journal_removed_and_a_run_edited", |c| {
            fs_err::remove_file(journal(c)).unwrap();
            edit(&first_run(c).join("run.json"), |r| r["validity"] = json!({"verdict": "valid", "reasons": []}));
        }),
        damaged("runs_swapped_between_cells", |c| {
            let (a, b) = strangers(c);
            swap(&a, &b);
        }),
        damaged("runs_swapped_without_a_journal", |c| {
            fs_err::remove_file(journal(c)).unwrap();
            let (a, b) = strangers(c);
            swap(&a, &b);
        }),
        damaged("a_repetition_copied_over_another", |c| {
            let (a, b) = twins(c);
            replace(&b, &a);
        }),
        damaged("a_repetition_copied_without_a_journal", |c| {
            fs_err::remove_file(journal(c)).unwrap();
            let (a, b) = twins(c);
            replace(&b, &a);
        }),
        damaged("a_repetition_dropped_from_plan_and_folder", |c| {
            let (_, b) = twins(c);
            fs_err::remove_dir_all(b).unwrap();
            edit(&manifest(c), |m| {
                let order = m["plan"]["order"].as_array_mut().unwrap();
                let second = order.iter().position(|p| p["repetition"] == 2).unwrap();
                order.remove(second);
            });
        }),
        damaged("a_run_of_another_campaign_copied_in", |c| {
            let other = first_run(&only_folder(&c.join("../../good")));
            replace(&first_run(c), &other);
        }),
        damaged("a_run_removed", |c| fs_err::remove_dir_all(first_run(c)).unwrap()),
        damaged("a_bit_of_the_epochs_flipped", |c| flip_a_bit(&first_run(c).join("epochs.parquet"))),
        damaged("a_bit_of_the_samples_flipped", |c| flip_a_bit(&first_run(c).join("samples.parquet"))),
        damaged("epochs_truncated", |c| truncate(&first_run(c).join("epochs.parquet"))),
        damaged("epochs_of_another_run", |c| {
            let (a, b) = twins(c);
            fs_err::copy(a.join("epochs.parquet"), b.join("epochs.parquet")).unwrap();
        }),
        damaged("epochs_are_a_fifo", |c| fifo(&first_run(c).join("epochs.parquet"))),
        damaged("result_truncated", |c| truncate(&first_run(c).join("run.json"))),
        damaged("result_emptied", |c| fs_err::write(first_run(c).join("run.json"), "").unwrap()),
        damaged("result_is_a_fifo", |c| fifo(&first_run(c).join("run.json"))).sample(),
        damaged("result_without_members", |c| edit(&first_run(c).join("run.json"), |r| r["members"] = json!([]))),
        damaged("result_without_members_and_journal", |c| {
            fs_err::remove_file(journal(c)).unwrap();
            edit(&first_run(c).join("run.json"), |r| r["members"] = json!([]));
        }),
        damaged("result_of_another_cell", |c| {
            let (a, b) = strangers(c);
            let cell: Value = serde_json::from_slice(&fs_err::read(b.join("run.json")).unwrap()).unwrap();
            edit(&a.join("run.json"), |r| r["cell"] = cell["cell"].clone());
        }),
        damaged("result_of_a_million_repetitions", |c| {
            edit(&first_run(c).join("run.json"), |r| r["repetition"] = json!(4_000_000_000u32))
        }),
        damaged("result_from_the_end_of_time", |c| {
            edit(&first_run(c).join("run.json"), |r| {
                r["timeline"] = json!({"launched_ns": u64::MAX, "ready_ns": 0, "go_ns": u64::MAX, "done_ns": 0, "ended_ns": 0})
            })
        }),
        damaged("campaign_truncated", |c| truncate(&manifest(c))),
        damaged("campaign_emptied", |c| fs_err::write(manifest(c), "").unwrap()),
        damaged("campaign_is_a_fifo", |c| fifo(&manifest(c))).sample(),
        damaged("campaign_is_endless", |c| {
            fs_err::remove_file(manifest(c)).unwrap();
            std::os::unix::fs::symlink("/dev/zero", manifest(c)).unwrap();
        }),
        damaged("campaign_nested_without_end", |c| fs_err::write(manifest(c), "[".repeat(100_000)).unwrap()),
        damaged("plan_names_a_cell_that_is_not_there", |c| edit(&manifest(c), |m| m["plan"]["order"][0]["cell"] = json!(4000)))
            .sample(),
        damaged("plan_without_cells", |c| edit(&manifest(c), |m| m["plan"]["cells"] = json!([]))),
        damaged_as("plan_without_runs", EITHER, |c| edit(&manifest(c), |m| m["plan"]["order"] = json!([]))),
        damaged("plan_edited_after_the_fact", |c| edit(&manifest(c), |m| m["thresholds"] = json!({"relevant": 0.9}))),
        named("campaign_called_elsewhere", "id", "../../../evil"),
        named("campaign_called_by_a_path", "id", "/tmp/evil"),
        named("campaign_of_an_experiment_elsewhere", "experiment", "../../evil").sample(),
        named("campaign_of_an_experiment_by_a_path", "experiment", "/tmp/evil"),
        named("campaign_of_another_experiment", "experiment", "good"),
        named("campaign_of_a_future_format", "schema", "999"),
        damaged_as("campaign_dated_in_the_future", EITHER, |c| {
            edit(&manifest(c), |m| m["created_utc"] = json!("2999-01-01T00:00:00Z"))
        }),
        damaged_as("campaign_folder_links_to_itself", EITHER, |c| {
            for name in ["a", "b"] {
                std::os::unix::fs::symlink(".", c.join(name)).unwrap();
            }
        }),
        damaged_as("campaign_copied_under_another_name", EITHER, |c| copy(c, &c.with_file_name("copy"))),
        damaged("a_run_folder_is_a_file", |c| {
            let run = first_run(c);
            fs_err::remove_dir_all(&run).unwrap();
            fs_err::write(run, "").unwrap();
        }),
    ]
}
