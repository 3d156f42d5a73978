//! Campaigns that somebody has edited, copied or cut: none of them is called intact, and none takes the others with it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod support;

use std::path::Path;

use collo_store::{CampaignFolder, Level, StoredRun, Verdict, verify};
use serde_json::{Value, json};
use support::{Store, edit, measure};

const SOLO: &str = "tiny_solo_b32~0000";
const PAIR: &str = "tinyx2_naive_b32~0001";

/// The line about files, and whether the answer is yes.
fn said(campaign: &Path) -> (Level, String, bool) {
    let findings = verify(&CampaignFolder::open(campaign).unwrap()).unwrap();
    let intact = findings.iter().find(|f| f.subject == "intact").unwrap();
    (intact.level, intact.text.clone(), findings.iter().all(|f| f.level != Level::No))
}

/// Do something to a complete campaign; what verify says of its files.
fn after(change: impl Fn(&Path, &Store)) -> String {
    let store = Store::new();
    let path = store.usual().path().to_path_buf();
    change(&path, &store);
    let (level, text, holds) = said(&path);
    assert!(level == Level::No && !holds, "verify is content with: {text}");
    text
}

fn edit_journal(campaign: &Path, change: impl Fn(&str) -> bool) {
    let file = campaign.join("journal.jsonl");
    let kept: String = std::fs::read_to_string(&file).unwrap().lines().filter(|l| change(l)).map(|l| format!("{l}\n")).collect();
    std::fs::write(file, kept).unwrap();
}

#[test]
fn what_collo_stored_is_intact() {
    let store = Store::new();
    let campaign = store.usual();
    assert_eq!(said(campaign.path()), (Level::Ok, "31 files, checksums agree".into(), true));
}

#[test]
fn a_record_that_was_changed_is_named() {
    insta::assert_snapshot!(after(|c, _| edit(&c.join(format!("{SOLO}-2/run.json")), |r| r["validity"]["verdict"] = "valid".into())), @"tiny_solo_b32~0000-2: its run.json was changed after it was recorded");
}

#[test]
fn a_manifest_that_was_changed_is_named() {
    insta::assert_snapshot!(after(|c, _| edit(&c.join("campaign.json"), |m| m["thresholds"]["slowdown"] = json!(9.0))), @"`campaign.json` of `20261120-1842-7f3a` was changed after collo wrote it");
}

#[test]
fn a_repetition_that_was_taken_out_of_folder_and_plan_is_missed() {
    let drop_one = |c: &Path| {
        std::fs::remove_dir_all(c.join(format!("{PAIR}-3"))).unwrap();
        edit(&c.join("campaign.json"), |m| {
            m["plan"]["order"].as_array_mut().unwrap().retain(|p| p["cell"] != 1 || p["repetition"] != 3);
            m["plan"]["cells"][1]["repetitions"] = 2.into();
        });
    };
    insta::assert_snapshot!(after(|c, _| drop_one(c)), @"`campaign.json` of `20261120-1842-7f3a` was changed after collo wrote it and 1 more");
    // Of an older campaign, which has no digest of its manifest.
    let old = |c: &Path| {
        drop_one(c);
        edit(&c.join("campaign.json"), |m| drop(m.as_object_mut().unwrap().remove("filing")));
        edit_journal(c, |line| !line.contains("manifest"));
    };
    insta::assert_snapshot!(after(|c, _| old(c)), @"tinyx2_naive_b32~0001-3 was recorded but is missing");
}

#[test]
fn without_its_journal_a_campaign_is_not_intact() {
    insta::assert_snapshot!(after(|c, _| std::fs::remove_file(c.join("journal.jsonl")).unwrap()), @"the journal of `20261120-1842-7f3a` is missing or damaged: it has no digest of `campaign.json` and 6 more");
    insta::assert_snapshot!(after(|c, _| std::fs::write(c.join("journal.jsonl"), [0xff, 0, b'\n', 7]).unwrap()), @"the journal of `20261120-1842-7f3a` is missing or damaged: it has no digest of `campaign.json` and 6 more");
    let half = |c: &Path| {
        let text = std::fs::read_to_string(c.join("journal.jsonl")).unwrap();
        std::fs::write(c.join("journal.jsonl"), &text[..text.len() / 2]).unwrap();
    };
    assert!(after(|c, _| half(c)).contains("its run.json has no digest in the journal"));
    let without_one = |c: &Path| edit_journal(c, |line| !(line.contains("recorded") && line.contains(&format!("{PAIR}-2"))));
    insta::assert_snapshot!(after(|c, _| without_one(c)), @"tinyx2_naive_b32~0001-2: its run.json has no digest in the journal");
}

#[test]
fn a_repetition_that_is_a_copy_of_another_is_named() {
    let over = |c: &Path| {
        std::fs::remove_dir_all(c.join(format!("{PAIR}-2"))).unwrap();
        copy(&c.join(format!("{PAIR}-1")), &c.join(format!("{PAIR}-2")));
    };
    insta::assert_snapshot!(after(|c, _| over(c)), @"tinyx2_naive_b32~0001-2: its run.json was changed after it was recorded");
    let fitted = |c: &Path| {
        over(c);
        edit(&c.join(format!("{PAIR}-2/run.json")), |r| r["repetition"] = 2.into());
        edit(&c.join("campaign.json"), |m| drop(m.as_object_mut().unwrap().remove("filing")));
    };
    // Even where the journal was taken away, and with it everything that tells the two apart by digest.
    let all = |c: &Path| {
        fitted(c);
        std::fs::remove_file(c.join("journal.jsonl")).unwrap();
    };
    insta::assert_snapshot!(after(|c, _| all(c)), @"tinyx2_naive_b32~0001-1 is the same measurement as another run and 1 more");
}

#[test]
fn runs_that_were_swapped_between_cells_or_come_from_elsewhere_are_named() {
    let swap = |c: &Path| {
        let (a, b, aside) = (c.join(format!("{SOLO}-1")), c.join(format!("{SOLO}-2")), c.join("aside"));
        for (from, to) in [(&a, &aside), (&b, &a), (&aside, &b)] {
            std::fs::rename(from, to).unwrap();
        }
    };
    assert!(after(|c, _| swap(c)).contains("changed after it was recorded"));
    // Without a journal the record itself tells where it belongs.
    let older = |c: &Path| {
        edit(&c.join("campaign.json"), |m| drop(m.as_object_mut().unwrap().remove("filing")));
        std::fs::remove_file(c.join("journal.jsonl")).unwrap();
    };
    let swapped = after(|c, _| {
        swap(c);
        older(c);
    });
    insta::assert_snapshot!(swapped, @r#"tiny_solo_b32~0000-1: its run.json does not belong here: it is repetition 2 of "tiny_solo_b32~0000", which is another folder's and 1 more"#);
    let foreign = after(|c, store| {
        let other = store.complete("20261119-0800-beef", "2026-11-19T08:00:00Z");
        std::fs::remove_dir_all(c.join(format!("{PAIR}-2"))).unwrap();
        copy(&other.path().join(format!("{PAIR}-2")), &c.join(format!("{PAIR}-2")));
        older(c);
    });
    insta::assert_snapshot!(foreign, @r#"tinyx2_naive_b32~0001-2: its run.json does not belong here: it is a run of the campaign "20261119-0800-beef" of "pair""#);
    let added = after(|c, store| {
        let other = store.complete("20261119-0800-beef", "2026-11-19T08:00:00Z");
        copy(&other.path().join(format!("{PAIR}-2")), &c.join(format!("{PAIR}-4")));
    });
    assert!(added.contains("does not belong here"), "{added}");
}

#[test]
fn a_file_that_is_not_the_recorded_one_is_named_whatever_it_is_now() {
    let table = |c: &Path| c.join(format!("{PAIR}-1/epochs.parquet"));
    let flip = |file: &Path| {
        let mut bytes = std::fs::read(file).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(file, bytes).unwrap();
    };
    insta::assert_snapshot!(after(|c, _| flip(&table(c))), @"tinyx2_naive_b32~0001-1/epochs.parquet does not have its checksum");
    insta::assert_snapshot!(after(|c, _| std::fs::remove_file(table(c)).unwrap()), @"tinyx2_naive_b32~0001-1/epochs.parquet is missing");
    let pipe = |file: &Path| {
        std::fs::remove_file(file).unwrap();
        nix::unistd::mkfifo(file, nix::sys::stat::Mode::S_IRWXU).unwrap();
    };
    insta::assert_snapshot!(after(|c, _| pipe(&table(c))), @"tinyx2_naive_b32~0001-1/epochs.parquet cannot be read");
    let zero = |file: &Path| {
        std::fs::remove_file(file).unwrap();
        std::os::unix::fs::symlink("/dev/zero", file).unwrap();
    };
    insta::assert_snapshot!(after(|c, _| zero(&table(c))), @"tinyx2_naive_b32~0001-1/epochs.parquet cannot be read");
    let huge = |file: &Path| std::fs::File::options().write(true).open(file).unwrap().set_len(1 << 40).unwrap();
    insta::assert_snapshot!(after(|c, _| huge(&table(c))), @"tinyx2_naive_b32~0001-1/epochs.parquet does not have its checksum");
    for spoil in [pipe, zero, huge] {
        assert!(after(|c, _| spoil(&c.join(format!("{PAIR}-1/run.json")))).starts_with(&format!("{PAIR}-1: ")));
        assert!(after(|c, _| spoil(&c.join("journal.jsonl"))).contains("the journal"));
    }
}

#[test]
fn a_campaign_of_an_earlier_collo_is_read_and_its_want_of_digests_is_said_once() {
    let store = Store::new();
    let path = store.usual().path().to_path_buf();
    edit(&path.join("campaign.json"), |m| drop(m.as_object_mut().unwrap().remove("filing")));
    edit_journal(&path, |line| !line.contains("manifest") && !line.contains(&format!("{PAIR}-3")));
    let campaign = CampaignFolder::open(&path).unwrap();
    assert_eq!(campaign.runs().unwrap().0.len(), 6);
    let findings = verify(&campaign).unwrap();
    assert!(findings.iter().all(|f| f.level != Level::No), "{findings:?}");
    let digests: Vec<_> = findings.iter().filter(|f| f.subject == "digests").map(|f| &*f.text).collect();
    assert_eq!(digests, ["campaign.json and 1 run have no digest in the journal: changes would not show"]);
    assert_eq!(said(&path).0, Level::Warning, "neither yes nor no");
    campaign.expect_unchanged().unwrap();
}

/// What a manifest may not be; each is told from the others.
fn broken() -> Vec<(&'static str, Value)> {
    vec![
        ("/plan/order/0/cell", json!(2)),
        ("/plan/order/0/cell", json!(-1)),
        ("/plan/order/0/repetition", json!(2)),
        ("/plan/cells/0/members", json!([])),
        ("/plan/cells/0/degree", json!(3)),
        ("/plan/cells/0/slug", json!("../../../etc")),
        ("/plan/cells/0/slug", json!("")),
        ("/plan/cells/0/repetitions", json!(4)),
        ("/plan/cells/0/after_measured", json!("linger")),
        ("/plan/cells/0/mode/family", json!("mig")),
        ("/plan/cells/1/mode/limited", json!(true)),
        ("/plan/cells/1/mode/isolated", json!(true)),
        ("/id", json!("../../../evil")),
        ("/id", json!("20261120-1842-0000")),
        ("/experiment", json!("../../evil")),
        ("/experiment", json!("other")),
        ("/experiment", json!("")),
        ("/thresholds/slowdown", json!(-1.0)),
        ("/plan", json!(null)),
    ]
}

#[test]
fn a_manifest_that_cannot_be_is_named_and_the_other_campaigns_are_read() {
    for (place, value) in broken() {
        let store = Store::new();
        let bad = store.usual();
        store.complete("20261121-0800-beef", "2026-11-21T08:00:00Z");
        edit(&bad.path().join("campaign.json"), |m| *m.pointer_mut(place).unwrap() = value.clone());
        let (found, foreign) = store.runs().campaigns().unwrap();
        assert_eq!(found.len(), 1, "{place} {value}");
        assert!(
            foreign.len() == 1 && foreign[0].reason.contains("campaign.json is damaged, or was not written by collo: "),
            "{foreign:?}"
        );
        let error = store.runs().find("7f3a").unwrap_err().to_string();
        assert!(error.contains("campaign.json"), "{error}");
    }
}

#[test]
fn a_record_that_cannot_be_is_named_and_the_other_runs_are_read() {
    let older = |c: &Path| {
        edit(&c.join("campaign.json"), |m| drop(m.as_object_mut().unwrap().remove("filing")));
        std::fs::remove_file(c.join("journal.jsonl")).unwrap();
    };
    for (place, value) in [
        ("/members", json!([])),
        ("/cell/members", json!([])),
        ("/cell/slug", json!("other")),
        ("/cell/cell", json!("other")),
        ("/cell/degree", json!(7)),
        ("/cell/mode/mps", json!(true)),
        ("/campaign", json!("20261119-0800-beef")),
        ("/experiment", json!("other")),
        ("/repetition", json!(3)),
        ("/members/0/features", json!({"layers": {"Conv2d": u64::MAX, "Linear": 1}})),
        ("/outcome", json!({"kind": "splendid"})),
    ] {
        let store = Store::new();
        let path = store.usual().path().to_path_buf();
        older(&path);
        edit(&path.join(format!("{PAIR}-2/run.json")), |r| *r.pointer_mut(place).unwrap() = value.clone());
        let (runs, foreign) = CampaignFolder::open(&path).unwrap().runs().unwrap();
        assert_eq!((runs.len(), foreign.len()), (5, 1), "{place} {value}: {foreign:?}");
        assert!(foreign[0].reason.contains("run.json"), "{foreign:?}");
    }
}

#[test]
fn pipes_devices_and_endless_files_in_place_of_a_manifest_hold_nobody_up() {
    let store = Store::new();
    let bad = store.usual().path().join("campaign.json");
    store.complete("20261121-0800-beef", "2026-11-21T08:00:00Z");
    let looks = |reason: &str| {
        let (found, foreign) = store.runs().campaigns().unwrap();
        assert!(found.len() == 1 && foreign.len() == 1 && foreign[0].reason.contains(reason), "{foreign:?}");
        std::fs::remove_file(&bad).unwrap();
    };
    std::fs::remove_file(&bad).unwrap();
    nix::unistd::mkfifo(&bad, nix::sys::stat::Mode::S_IRWXU).unwrap();
    looks("is a named pipe");
    std::os::unix::fs::symlink("/dev/zero", &bad).unwrap();
    looks("is a device");
    std::fs::File::create(&bad).unwrap().set_len(1 << 40).unwrap();
    looks("is larger than");
    std::fs::write(&bad, format!("{{\"schema\": 2, \"plan\": {}{}}}", "[".repeat(1_000_000), "]".repeat(1_000_000))).unwrap();
    looks("campaign.json is damaged, or was not written by collo");
    std::fs::write(&bad, b"{\"schema\": 2, \"id\": \"\xff\"}").unwrap();
    looks("campaign.json");
}

#[test]
fn a_run_that_was_noted_when_collo_was_killed_is_put_in_its_place_by_the_next() {
    let store = Store::new();
    let campaign = store.usual();
    let (place, draft) = [format!("{PAIR}-3"), format!(".partial-{PAIR}-3")].map(|name| campaign.path().join(name)).into();
    std::fs::rename(&place, &draft).unwrap();
    assert_eq!(said(campaign.path()).0, Level::Ok, "nothing is lost");
    campaign.finish_drafts(&campaign.lock().unwrap()).unwrap();
    assert!(place.is_dir() && !draft.exists());
    assert!(said(campaign.path()).2);
    // One that is not what was noted stays aside.
    std::fs::rename(&place, &draft).unwrap();
    std::fs::write(draft.join("run.json"), "{}").unwrap();
    assert_eq!(said(campaign.path()).0, Level::No);
    campaign.finish_drafts(&campaign.lock().unwrap()).unwrap();
    assert!(!place.exists() && draft.is_dir());
}

#[test]
fn killed_between_the_digest_and_the_file_a_campaign_is_still_its_own() {
    let store = Store::new();
    let mut campaign = store.usual();
    let before = std::fs::read(campaign.path().join("campaign.json")).unwrap();
    campaign.mark_indicative("an ingredient changed").unwrap();
    let after = std::fs::read(campaign.path().join("campaign.json")).unwrap();
    assert!(said(campaign.path()).2);
    // As if the rename had not come.
    std::fs::write(campaign.path().join("campaign.json"), &before).unwrap();
    assert!(said(campaign.path()).2, "the manifest before it is there");
    campaign.journal().unwrap().opened(0).unwrap();
    assert!(said(campaign.path()).2, "and holds from now on");
    std::fs::write(campaign.path().join("campaign.json"), &after).unwrap();
    assert!(!said(campaign.path()).2, "the one that never came is none of this campaign");
    std::fs::write(campaign.path().join("campaign.json"), &before).unwrap();
    // A run whose digest is noted and which never came.
    let folder = campaign.path().join(format!("{PAIR}-3"));
    let kept = campaign.path().join(".superseded/x");
    std::fs::create_dir_all(campaign.path().join(".superseded")).unwrap();
    std::fs::rename(&folder, &kept).unwrap();
    assert!(said(campaign.path()).1.contains("is missing"));
    std::fs::rename(&kept, &folder).unwrap();
    measure(&campaign, 5, "interrupted");
    let first = campaign.path().join(format!(".superseded/{PAIR}-3.1"));
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::rename(first, &folder).unwrap();
    assert!(said(campaign.path()).2, "the run before it is still a recorded one");
}

#[test]
fn a_manifest_is_not_rolled_back_without_a_word() {
    let store = Store::new();
    let mut campaign = store.usual();
    let before = std::fs::read(campaign.path().join("campaign.json")).unwrap();
    campaign.mark_indicative("an ingredient changed").unwrap();
    campaign.journal().unwrap().opened(0).unwrap();
    std::fs::write(campaign.path().join("campaign.json"), before).unwrap();
    assert!(!said(campaign.path()).2);
}

#[test]
fn a_run_whose_folder_was_moved_is_discarded_and_what_is_in_its_place_is_not_touched() {
    let store = Store::new();
    let campaign = store.begin("20261120-1842-7f3a", "2026-11-20T18:42:09Z");
    campaign.journal().unwrap().opened(6).unwrap();
    let theirs = store.folder.path().join("theirs");
    std::fs::create_dir(&theirs).unwrap();
    let names = ["epochs.parquet", "member-0.log", "run.json", "samples.parquet"];
    names.iter().for_each(|name| std::fs::write(theirs.join(name), "theirs").unwrap());
    let moved = campaign.path().join(".moved");
    let reasons = [
        "its folder was moved away, and a link put in its place",
        "its folder was moved away, and something else put in its place",
        "its folder was moved or removed",
        "its folder was moved or removed",
    ];
    for (index, why) in reasons.into_iter().enumerate() {
        let run = support::measure_while(&campaign, index, "completed", |folder| match index {
            0 => {
                std::fs::rename(folder, &moved).unwrap();
                std::os::unix::fs::symlink(&theirs, folder).unwrap();
            }
            1 => {
                std::fs::rename(folder, &moved).unwrap();
                std::fs::create_dir(folder).unwrap();
                std::fs::write(folder.join("run.json"), "theirs").unwrap();
            }
            2 => std::fs::rename(folder, &moved).unwrap(),
            _ => std::fs::remove_dir_all(folder).unwrap(),
        });
        let _ = std::fs::remove_dir(&moved);
        assert!(run.symlink_metadata().unwrap().is_dir());
        let stored = StoredRun::open(&run).unwrap();
        assert_eq!(stored.record.validity.verdict, Verdict::Discarded);
        assert!(stored.record.validity.reasons[0].ends_with(why), "{:?}", stored.record.validity.reasons);
        assert_eq!(stored.damage(), Vec::<String>::new());
        // What was moved comes back, and what was removed does not.
        assert_eq!(stored.record.files.contains_key("member-0.log"), index < 3, "{index}");
        assert!(stored.record.files.contains_key("samples.parquet"));
    }
    assert_eq!(std::fs::read_dir(&theirs).unwrap().count(), names.len());
    names.iter().for_each(|name| assert_eq!(std::fs::read(theirs.join(name)).unwrap(), b"theirs", "{name}"));
    let kept =
        std::fs::read_dir(campaign.path().join(".superseded")).unwrap().map(|entry| entry.unwrap().path().join("run.json"));
    assert_eq!(kept.map(|kept| std::fs::read(kept).unwrap()).collect::<Vec<_>>(), [b"theirs"], "a folder is kept");
    assert!(campaign.runs().unwrap().1.is_empty());
}

#[test]
fn what_a_member_leaves_in_its_folder_is_recorded_and_no_link_is_followed() {
    let store = Store::new();
    let campaign = store.begin("20261120-1842-7f3a", "2026-11-20T18:42:09Z");
    let aside = campaign.begin(&format!("{SOLO}-1")).unwrap().path().to_path_buf();
    // The draft that follows begins anew, so what is put here must come after it began: a member does that while it runs.
    let draft = campaign.begin(&format!("{SOLO}-1")).unwrap();
    for name in ["a", "b"] {
        std::os::unix::fs::symlink(".", aside.join(name)).unwrap();
    }
    std::os::unix::fs::symlink("/etc/passwd", aside.join("passwd")).unwrap();
    nix::unistd::mkfifo(&aside.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    nix::unistd::mkfifo(&aside.join("epochs.parquet"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    std::os::unix::fs::symlink(store.folder.path().join("mine"), aside.join("run.json")).unwrap();
    std::fs::write(store.folder.path().join("mine"), "mine").unwrap();
    let deep: std::path::PathBuf = std::iter::repeat_n("deep", 50).collect();
    std::fs::create_dir_all(aside.join(&deep)).unwrap();
    std::fs::write(aside.join(&deep).join("log"), "x").unwrap();
    let odd: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(b"\xff\\x41\x1b.log");
    std::fs::write(aside.join(odd), "x").unwrap();
    std::fs::create_dir(aside.join("logs")).unwrap();
    std::fs::write(aside.join("logs/server.log"), "x").unwrap();
    draft.samples().unwrap().finish().unwrap();
    let other = store.complete("20261119-0800-beef", "2026-11-19T08:00:00Z");
    let mut record = other.runs().unwrap().0.remove(&format!("{SOLO}-1")).unwrap().record;
    record.campaign = campaign.manifest().id.clone();
    let path = draft.commit(record, &[], &[]).unwrap();
    let run = collo_store::StoredRun::open(&path).unwrap();
    let names: Vec<&str> = run.record.files.keys().map(String::as_str).collect();
    assert_eq!(names, ["\\xff\\\\x41\u{1b}.log", "epochs.parquet", "events.jsonl", "logs/server.log", "samples.parquet"]);
    assert_eq!(std::fs::read_to_string(store.folder.path().join("mine")).unwrap(), "mine");
    assert_eq!(said(campaign.path()).1, "7 files, checksums agree");
}

#[test]
fn a_record_that_names_files_elsewhere_is_not_intact() {
    for name in ["/etc/hostname", "../../../../etc/hostname"] {
        let text = after(|c, _| {
            edit(&c.join("campaign.json"), |m| drop(m.as_object_mut().unwrap().remove("filing")));
            std::fs::remove_file(c.join("journal.jsonl")).unwrap();
            let stored = json!({"bytes": 1, "sha256": "00"});
            edit(&c.join(format!("{PAIR}-2/run.json")), |r| r["files"][name] = stored.clone());
        });
        assert_eq!(text, format!("{PAIR}-2/{name} is not in the run's folder"));
    }
}

fn order(store: &Store) -> Vec<String> {
    store.runs().campaigns().unwrap().0.iter().map(|c| c.manifest().id.clone()).collect()
}

#[test]
fn what_was_begun_later_is_newer_whatever_the_clock_said() {
    let store = Store::new();
    store.begin("20261120-0000-aaaa", "2026-11-20T00:00:00Z");
    store.begin("20401120-0000-bbbb", "2040-11-20T00:00:00Z");
    store.begin("20261121-0000-cccc", "2026-11-21T00:00:00Z");
    store.begin("19700101-0000-dddd", "1970-01-01T00:00:00Z");
    store.begin("20261122-0000-eeee", "2026-11-22T00:00:00Z");
    let newest_first =
        ["20261122-0000-eeee", "19700101-0000-dddd", "20261121-0000-cccc", "20401120-0000-bbbb", "20261120-0000-aaaa"];
    assert_eq!(order(&store), newest_first);
    assert_eq!(store.runs().find("pair/last-3").unwrap().manifest().id, "20401120-0000-bbbb");
}

#[test]
fn the_name_of_an_experiment_is_its_newest_campaign_and_may_stand_before_an_id() {
    let store = Store::new();
    store.begin("20261120-0000-aaaa", "2026-11-20T00:00:00Z");
    store.begin("20261121-0000-abbb", "2026-11-21T00:00:00Z");
    let found = |asked: &str| store.runs().find(asked).map(|c| c.manifest().id.clone()).map_err(|e| e.to_string());
    assert_eq!(found("pair").as_deref(), Ok("20261121-0000-abbb"));
    assert_eq!(found("pair/aa").as_deref(), Ok("20261120-0000-aaaa"));
    assert_eq!(found("pair/20261121").as_deref(), Ok("20261121-0000-abbb"));
    insta::assert_snapshot!(found("pair/a").unwrap_err(), @"`pair/a` begins 2 campaigns: 20261121-0000-abbb, 20261120-0000-aaaa");
    insta::assert_snapshot!(found("pairs").unwrap_err(), @"no campaign `pairs`; the newest is `20261121-0000-abbb` of `pair`");
    insta::assert_snapshot!(found("other/aaaa").unwrap_err(), @"no campaign `other/aaaa`; the newest is `20261121-0000-abbb` of `pair`");
}

#[test]
fn campaigns_that_name_each_other_in_a_ring_are_sorted_by_date() {
    let store = Store::new();
    for (id, date, after) in
        [("a", "2026-11-20", "b"), ("b", "2026-11-21", "c"), ("c", "2026-11-22", "a"), ("d", "2026-11-23", "d")]
    {
        let campaign = store.begin(id, &format!("{date}T00:00:00Z"));
        edit(&campaign.path().join("campaign.json"), |m| m["filing"]["after"] = format!("pair/{after}").into());
    }
    assert_eq!(order(&store).len(), 4);
    assert_eq!(order(&store)[0], "d");
}

#[test]
fn a_store_of_somebody_else_says_whose_it_is() {
    use std::os::unix::fs::{PermissionsExt, chown};
    let store = Store::new();
    let path = store.usual().path().to_path_buf();
    store.complete("20261121-0800-beef", "2026-11-21T08:00:00Z");
    let locked = |path: &Path| std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o000)).unwrap();
    // A right of root is to read everything; on this thread alone it is given up.
    let is_root = nix::unistd::geteuid().is_root();
    if is_root {
        chown(&path, Some(1), Some(1)).unwrap();
    }
    std::fs::set_permissions(store.folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    locked(&path);
    let seen = std::thread::scope(|scope| {
        let look = scope.spawn(|| {
            if is_root {
                nix::unistd::setfsgid(nix::unistd::Gid::from_raw(65534));
                nix::unistd::setfsuid(nix::unistd::Uid::from_raw(65534));
            }
            store.runs().campaigns().unwrap()
        });
        look.join().unwrap()
    });
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let (found, foreign) = seen;
    assert_eq!((found.len(), foreign.len()), (1, 1), "{foreign:?}");
    let whose = if is_root { "may not be read by you, it belongs to " } else { "may not be read by you" };
    assert!(foreign[0].reason.starts_with(whose), "{}", foreign[0].reason);
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(|e| e.unwrap()) {
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to.join(entry.file_name())),
            false => drop(std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap()),
        }
    }
}

#[test]
fn a_disk_that_is_full_twice_takes_no_campaign_away() {
    let store = Store::new();
    let mut campaign = store.usual();
    let before = std::fs::read(campaign.path().join("campaign.json")).unwrap();
    // Each time the journal had room for the digest, and the disk none for the manifest.
    for why in ["an ingredient changed", "another changed"] {
        campaign.mark_indicative(why).unwrap();
        std::fs::write(campaign.path().join("campaign.json"), &before).unwrap();
        campaign = CampaignFolder::open(campaign.path()).unwrap();
        campaign.expect_unchanged().unwrap();
    }
    campaign.journal().unwrap().opened(0).unwrap();
    assert!(said(campaign.path()).2, "and what is there holds from now on");
}

#[test]
fn digits_that_two_campaigns_share_name_neither() {
    let store = Store::new();
    store.begin("20261120-0000-7f3a", "2026-11-20T00:00:00Z");
    store.begin("20261121-0000-7f3a", "2026-11-21T00:00:00Z");
    let found = |asked: &str| store.runs().find(asked).map(|c| c.manifest().id.clone()).map_err(|e| e.to_string());
    assert!(found("7f3a").unwrap_err().contains("begins 2 campaigns"));
    assert_eq!(found("20261120-0000-7f3a").as_deref(), Ok("20261120-0000-7f3a"));
    assert_eq!(found("pair").as_deref(), Ok("20261121-0000-7f3a"));
}
