//! A store that is full, read-only, newer, damaged or full of other things: what is stored is safe, and what is wrong is said.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::support::{Answer, Bench};

const SLEEP: &str = "[axes]\nworkload = \"sleep\"\nseconds = 0.1\nitems = 5\ndegree = 2";

/// A bench with one complete campaign of three runs.
fn measured() -> Bench {
    let bench = Bench::of(SLEEP);
    bench.run(&[]).exits(0);
    bench
}

fn a_run(bench: &Bench) -> PathBuf {
    bench.runs().into_values().next().expect("three are stored").path
}

/// Keep the first half of a file.
fn truncate(file: &Path) {
    let bytes = fs_err::read(file).expect("it is there");
    fs_err::write(file, &bytes[..bytes.len() / 2]).expect("written");
}

#[test]
fn a_file_in_place_of_the_store_is_said_and_left_alone() {
    let bench = Bench::of(SLEEP).file("runs", "mine");
    bench.run(&[]).exits(3).says("runs");
    bench.collo(&["list"]).exits(3).says("runs");
    assert_eq!(fs_err::read_to_string(bench.at("runs")).expect("it is there"), "mine");
}

/// A command in a mount namespace of its own, where `runs/` is a small file system; none where the system does not allow that.
fn in_small_store(bench: &Bench, kib: u32, script: &str) -> Option<Answer> {
    let namespace = ["--user", "--map-root-user", "--mount"];
    if !Command::new("unshare").args(namespace).args(["mount", "-t", "tmpfs", "tmpfs", "/mnt"]).output().ok()?.status.success() {
        crate::support::skip::skip("mounts", "this system does not let its users mount anything of their own");
        return None;
    }
    fs_err::create_dir_all(bench.at("runs")).expect("a folder");
    let script = format!("set -e; mount -t tmpfs -o size={kib}k tmpfs runs; set +e\n{script}");
    let collo = bench.command(&[]);
    let mut shell = Command::new("unshare");
    shell.args(namespace).args(["sh", "-c", &script]).current_dir(bench.at("."));
    shell.env("COLLO", collo.get_program()).envs(collo.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let answer = Answer::from(shell.process_group(0).output().expect("it starts"));
    bench.nothing_is_left(Duration::from_secs(60));
    Some(answer)
}

#[test]
fn on_a_full_disk_what_is_stored_is_safe_and_the_last_line_resumes() {
    let bench = Bench::of(SLEEP);
    // Room for one run, not for three.
    let script = "$COLLO run x --no-report; echo exit $? >&2; $COLLO list
        mount -o remount,size=10m runs; $COLLO run x --no-report && $COLLO verify && $COLLO list";
    let Some(answer) = in_small_store(&bench, 72, script) else { return };
    let answer = answer.exits(0).says("exit 4\n").says("of 3 runs are safe").says("No space left on device").answers("complete");
    let (full, then) = answer.stderr.split_once("exit 4\n").expect("it said so");
    assert_eq!(full.trim_end().lines().last(), Some("resume: collo run x"), "{full}");
    assert!(full.contains("error: no space in runs/x/"), "{full}");
    assert!(then.contains("resuming "), "what was stored before is continued: {then}");
    assert!(answer.stdout.contains("unfinished"), "{}", answer.stdout);
}

#[test]
fn without_room_for_a_campaign_none_is_begun() {
    let bench = Bench::of(SLEEP);
    let script = "dd if=/dev/zero of=runs/full bs=1k 2>/dev/null; $COLLO run x --no-report; echo exit $? >&2; rm runs/full; find runs -type f";
    let Some(answer) = in_small_store(&bench, 16, script) else { return };
    assert!(answer.stderr.contains("No space left on device") && answer.stderr.contains("exit 3"), "{}", answer.stderr);
    assert_eq!(answer.stdout, "", "nothing is left that could be taken for a campaign");
}

#[test]
fn a_read_only_store_can_be_read_and_not_written() {
    let bench = Bench::of(SLEEP);
    let script = "$COLLO run x --no-report -q; mount -o remount,ro runs
        $COLLO run x --no-report; echo exit $? >&2; $COLLO list && $COLLO show && $COLLO verify && $COLLO report";
    let Some(answer) = in_small_store(&bench, 4096, script) else { return };
    answer.exits(0).says("Read-only file system").says("exit 3").answers("complete").answers("✓ intact");
}

#[test]
fn what_is_no_campaign_is_named_and_left_alone() {
    let bench = measured().file("runs/old.zip", "PK").file("runs/notes/todo.txt", "buy a GPU").file("runs/x/README", "hello");
    let answer = bench.collo(&["list"]).exits(0).answers("complete");
    let answer = answer.says("warning: `runs/old.zip` is not a campaign, left alone").says("`runs/notes/todo.txt`");
    answer.says("`runs/x/README` is not a campaign");
    bench.run(&[]).exits(0);
    assert_eq!(bench.campaigns(), 2);
    for (name, text) in [("runs/old.zip", "PK"), ("runs/notes/todo.txt", "buy a GPU"), ("runs/x/README", "hello")] {
        assert_eq!(fs_err::read_to_string(bench.at(name)).expect("it is there"), text);
    }
}

#[test]
fn a_campaign_of_a_newer_collo_is_said_to_be_newer() {
    let bench = measured();
    let manifest = bench.campaign().path().join("campaign.json");
    let text = fs_err::read_to_string(&manifest).expect("it is there").replacen("\"schema\": 2", "\"schema\": 7", 1);
    let id = bench.campaign().manifest().id.clone();
    let short = id.rsplit('-').next().expect("it has parts").to_string();
    fs_err::write(&manifest, &text).expect("written");
    let newer = format!("campaign `{short}` has schema 7, this collo reads up to 2");
    bench.collo(&["list"]).exits(0).says(&newer);
    bench.collo(&["show", &short]).exits(3).says(&newer).says("hint: update collo; nothing was changed");
    bench.collo(&["verify", &format!("runs/x/{id}")]).exits(3).says(&newer);
    // What there is of this one's own time goes on.
    bench.run(&[]).exits(0);
    assert_eq!(bench.campaigns(), 1, "a new one beside it");
    assert_eq!(fs_err::read_to_string(&manifest).expect("it is there"), text);
}

#[test]
fn a_damaged_manifest_does_not_hide_the_other_campaigns() {
    let bench = measured();
    let damaged = bench.campaign().path().join("campaign.json");
    truncate(&damaged);
    bench.run(&[]).exits(0);
    bench.collo(&["list"]).exits(0).answers("complete").says("campaign.json");
    bench.collo(&["show"]).exits(0);
    bench.collo(&["report"]).exits(0);
}

#[test]
fn a_truncated_run_is_no_and_the_rest_still_speaks() {
    let bench = measured();
    let run = a_run(&bench);
    truncate(&run.join("run.json"));
    bench.collo(&["verify"]).exits(1).answers("✗ intact").answers("✗ accounted   3 planned = 2 completed + 1 missing");
    bench.collo(&["list"]).exits(0).answers("2/3").answers("unfinished");
    bench.collo(&["show"]).exits(0);
    bench.collo(&["report"]).exits(0);
    // It is missing, so it is measured again; the damaged one is kept aside.
    bench.run(&[]).exits(0).says("2 of 3 runs stored, 1 to do");
    bench.collo(&["verify"]).exits(0);
}

#[test]
fn a_truncated_table_is_no_and_the_rest_still_speaks() {
    let bench = measured();
    let run = a_run(&bench);
    truncate(&run.join("epochs.parquet"));
    bench.collo(&["verify"]).exits(1).answers("epochs.parquet does not have its checksum");
    bench.collo(&["list"]).exits(0);
    bench.collo(&["show"]).exits(0);
    bench.collo(&["report"]).exits(0);
}

#[test]
fn a_changed_file_does_not_have_its_checksum() {
    let bench = measured();
    bench.collo(&["verify"]).exits(0).answers("checksums agree");
    let run = a_run(&bench);
    let samples = run.join("samples.parquet");
    let mut bytes = fs_err::read(&samples).expect("it is there");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs_err::write(&samples, bytes).expect("written");
    bench.collo(&["verify"]).exits(1).answers("samples.parquet does not have its checksum");
    // A record that was touched up afterwards.
    let bench = measured();
    let run = a_run(&bench);
    let record = run.join("run.json");
    let text = fs_err::read_to_string(&record).expect("it is there").replacen("\"valid\"", "\"indicative\"", 1);
    fs_err::write(&record, text).expect("written");
    bench.collo(&["verify"]).exits(1).answers("run.json was changed after it was recorded");
    fs_err::remove_file(run.join("samples.parquet")).expect("it is there");
    bench.collo(&["verify"]).exits(1);
}

/// Change a text in a file of the only campaign.
fn replaced(bench: &Bench, file: &str, from: &str, to: &str) {
    let path = bench.campaign().path().join(file);
    let text = fs_err::read_to_string(&path).expect("it is there");
    assert!(text.contains(from), "{text}");
    fs_err::write(path, text.replacen(from, to, 1)).expect("written");
}

#[test]
fn a_campaign_that_was_edited_is_neither_reported_nor_continued() {
    let bench = measured();
    replaced(&bench, "campaign.json", "\"slowdown\": 1.1", "\"slowdown\": 9.1");
    let changed = "was changed after collo wrote it";
    bench.collo(&["verify"]).exits(1).answers(changed);
    bench.collo(&["list"]).exits(0).answers("modified");
    for verb in ["report", "show"] {
        bench.collo(&[verb]).exits(3).says(changed).says("hint: restore the file");
    }
    fs_err::remove_dir_all(a_run(&bench)).expect("removed");
    bench.run(&[]).exits(3).says(changed);
    bench.run(&["--new"]).exits(0);
}

#[test]
fn a_campaign_that_names_a_place_outside_is_read_nowhere_and_writes_nowhere() {
    for (from, to) in
        [("\"id\": \"", "\"id\": \"../../../collo-was-here"), ("\"experiment\": \"", "\"experiment\": \"../../collo-was-here")]
    {
        let bench = measured();
        let folder = bench.campaign().path().to_path_buf();
        replaced(&bench, "campaign.json", from, to);
        for verb in ["report", "verify", "show", "status"] {
            let code = bench.collo(&[verb, &folder.display().to_string()]).says("is not a folder name").code;
            assert_eq!(code, Some(3), "{verb}");
        }
        bench.collo(&["report"]).exits(3).says("is not a folder name");
        bench.collo(&["list"]).exits(0).says("is not a folder name");
        assert!(!bench.at("reports").exists() && !bench.at("../collo-was-here").exists() && !bench.at("collo-was-here").exists());
    }
}

#[test]
fn pipes_and_indices_out_of_bounds_do_not_take_the_other_campaigns_along() {
    let bench = measured();
    replaced(&bench, "campaign.json", "\"cell\": 0,", "\"cell\": 99,");
    bench.run(&[]).exits(0);
    let pipe = a_run(&bench).join("run.json");
    fs_err::remove_file(&pipe).expect("it is there");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("made");
    bench.collo(&["list"]).exits(0).answers("2/3").says("its plan has a run of cell 99");
    bench.collo(&["prune"]).exits(0).says("its plan has a run of cell 99");
    bench.collo(&["status"]).exits(4).says("its plan has a run of cell 99");
    bench.collo(&["verify"]).exits(1).answers("is a named pipe");
    bench.collo(&["report"]).exits(0);
    bench.run(&[]).exits(0).says("2 of 3 runs stored, 1 to do");
    bench.collo(&["verify"]).exits(0);
}

#[test]
fn a_clock_that_was_wrong_once_hides_no_campaign_that_came_after_it() {
    let bench = measured();
    let (old, new) = (bench.campaign().path().to_path_buf(), bench.at("runs/x/20400101-0000-f00d"));
    fs_err::rename(&old, &new).expect("renamed");
    let mut manifest: serde_json::Value =
        serde_json::from_str(&fs_err::read_to_string(new.join("campaign.json")).expect("there")).expect("JSON");
    manifest["id"] = "20400101-0000-f00d".into();
    manifest["created_utc"] = "2040-01-01T00:00:00Z".into();
    fs_err::write(new.join("campaign.json"), manifest.to_string()).expect("written");
    for run in
        fs_err::read_dir(&new).expect("readable").map(|e| e.expect("readable").path().join("run.json")).filter(|p| p.exists())
    {
        let text = fs_err::read_to_string(&run).expect("there");
        let id = old.file_name().expect("named").to_string_lossy().into_owned();
        fs_err::write(&run, text.replace(&id, "20400101-0000-f00d")).expect("written");
    }
    crate::support::noted::noted(&new);
    bench.collo(&["verify"]).exits(0);
    bench.collo(&["list"]).exits(0).says("20400101-0000-f00d has a date in the future, 2040-01-01T00:00:00Z");
    bench.run(&["--for", "0s"]).exits(4);
    bench.run(&[]).exits(0).says("resuming");
    assert_eq!(bench.campaigns(), 2, "the interrupted one was finished, and no third begun");
    assert!(!bench.campaign().manifest().id.starts_with("2040"));
}

#[test]
fn an_edited_run_is_named_by_merge_list_and_status_with_the_way_out() {
    let bench = measured();
    bench.run(&["--new"]).exits(0);
    let path = a_run(&bench).join("run.json");
    let text = fs_err::read_to_string(&path).expect("it is there");
    fs_err::write(&path, text + " ").expect("written");
    let folder = path.parent().and_then(Path::file_name).expect("a run").to_string_lossy().into_owned();
    let answer = bench.collo(&["merge", "last", "x/last-1"]).exits(2).says(&format!("`{folder}` of `"));
    answer.says("was changed after it was recorded").says("move its folder away to measure it again");
    bench.collo(&["list"]).exits(0).answers("1 run edited");
    bench.collo(&["status", "last"]).exits(4).answers("1 run edited");
}
