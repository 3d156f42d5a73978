use std::path::PathBuf;

use super::*;
use crate::fixture::{TINY, workloads};
use collo_store::MemberSpec;

fn read(text: &str) -> Result<Workload, Mistakes> {
    Workload::parse("mynet", &PathBuf::from("workloads/mynet"), &Source::file("workloads/mynet/workload.toml", text))
}

fn said(text: &str) -> String {
    read(text).expect_err("it is wrong").to_string()
}

fn member(batch_size: Option<u32>, settings: &[(&str, Json)]) -> MemberSpec {
    let settings = settings.iter().map(|(k, v)| (k.to_string(), v.clone())).collect();
    MemberSpec { workload: "mynet".into(), batch_size, settings, solo: String::new() }
}

#[test]
fn a_command_has_its_settings_filled_in() {
    let workload = read(TINY).expect("right");
    let words = workload.command_for(&member(Some(128), &[("images", 512.into())])).expect("complete");
    assert_eq!(words, ["python", "train.py", "--batch-size", "128", "--images", "512"]);
    let words = workload.command_for(&member(None, &[])).expect("defaults");
    assert_eq!(words[3..], ["32", "--images", "1024"]);
    let unknown = workload.command_for(&member(None, &[("image", 1.into())])).expect_err("unknown").to_string();
    assert_eq!(unknown, "error: workload `mynet` has no setting `image`\nhint: did you mean `images`?");
}

#[test]
fn the_adapter_of_a_foreign_script_is_checked() {
    let text = r"
command = ['python', 'fit.py']
environment = 'system'
[epochs]
pattern = '^epoch (?P<epoch>\d+) done in (?P<seconds>[0-9.]+) s'
items = 1000
";
    let adapter = read(text).expect("right").epochs.expect("there");
    assert_eq!(&adapter.pattern.captures("epoch 3 done in 0.25 s").expect("a match")["seconds"], "0.25");
    assert_eq!(adapter.items, Some(1000));
    insta::assert_snapshot!(said("command = ['x']\n[epochs]\npattern = 'epoch (?P<epoch>\\d+'\n"), @r"
    error: `pattern` is not a regular expression: unclosed group at workloads/mynet/workload.toml:3:11
     3 | pattern = 'epoch (?P<epoch>\d+'
       |           ^^^^^^^^^^^^^^^^^^^^^
    ");
    insta::assert_snapshot!(said("command = ['x']\n[epochs]\npattern = 'epoch (?P<epoch>\\d+)'\n"), @r"
    error: `pattern` has no group `seconds` at workloads/mynet/workload.toml:3:11
     3 | pattern = 'epoch (?P<epoch>\d+)'
       |           ^^^^^^^^^^^^^^^^^^^^^^ as in `(?P<seconds>…)`
    ");
    insta::assert_snapshot!(said("command = ['x']\n[epochs]\nitems = 3\n"), @r"
    error: `pattern` is missing in `[epochs]` at workloads/mynet/workload.toml:2:1
     2 | [epochs]
       | ^ a regular expression over output lines
    ");
}

#[test]
fn placeholders_and_settings_belong_together() {
    insta::assert_snapshot!(said("command = ['python', 'train.py', '{image}']\n[settings]\nimages = 1\n"), @r"
    error: `{image}` is no setting at workloads/mynet/workload.toml:1:34
     1 | command = ['python', 'train.py', '{image}']
       |                                  ^^^^^^^^^ did you mean `{images}`?
    error: setting `images` is not in `command`, so it would change nothing, at workloads/mynet/workload.toml:3:1
     3 | images = 1
       | ^^^^^^ add `{images}` to `command`
    ");
    insta::assert_snapshot!(said("command = ['python', '{n}']\n"), @r"
    error: `{n}` is no setting at workloads/mynet/workload.toml:1:22
     1 | command = ['python', '{n}']
       |                      ^^^^^ add `n = …` to `[settings]`
    ");
}

#[test]
fn a_workload_needs_its_command_and_types_are_told() {
    insta::assert_snapshot!(said("description = 'x'\n"), @r#"
    error: `command` is missing in workloads/mynet/workload.toml
    hint: it is the one line that is needed: `command = ["python", "train.py"]`
    "#);
    insta::assert_snapshot!(said("command = 'python train.py'\nenviroment = 'torch'\n"), @r#"
    error: `command` is a list, not text, at workloads/mynet/workload.toml:1:11
     1 | command = 'python train.py'
       |           ^^^^^^^^^^^^^^^^^ write `["python", "train.py"]`
    error: unknown key `enviroment` at workloads/mynet/workload.toml:2:1
     2 | enviroment = 'torch'
       | ^^^^^^^^^^ did you mean `environment`?
    "#);
    insta::assert_snapshot!(said("command = ['{batch_size}', '{degree}']\n[settings]\nbatch_size = 0\ndegree = 1\n[forecast.cpu]\nepoch_s = -1\n"), @r"
    error: `batch_size` is a whole number between 1 and 1000000 at workloads/mynet/workload.toml:3:14
     3 | batch_size = 0
       |              ^
    error: `degree` is not a name for a setting at workloads/mynet/workload.toml:4:1
     4 | degree = 1
       | ^^^^^^ that is already an axis or a key of every experiment
    error: epoch_s -1 is not 0 or more at workloads/mynet/workload.toml:6:11
     6 | epoch_s = -1
       |           ^^
    ");
}

#[test]
fn a_folder_without_its_file_says_what_one_line_would_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let mynet = folder.path().join("mynet");
    std::fs::create_dir(&mynet).expect("created");
    for file in ["train.py", "model.py"] {
        std::fs::write(mynet.join(file), "").expect("written");
    }
    let workloads = Workloads::load(folder.path()).expect("readable");
    insta::assert_snapshot!(workloads.find("mynet").expect_err("no file"), @r#"
    error: workload `mynet` has no `workload.toml`, only train.py and model.py
    hint: it needs one line to begin: `command = ["python", "train.py"]`
    "#);
    assert_eq!(workloads.iter().count() + workloads.broken().len(), 0);
}

#[test]
fn a_broken_workload_hurts_only_who_asks_for_it() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in [("good", TINY), ("bad", "command = 3\n"), ("net2x4", "command = ['x']\n")] {
        std::fs::create_dir(folder.path().join(name)).expect("created");
        std::fs::write(folder.path().join(name).join("workload.toml"), text).expect("written");
    }
    let workloads = Workloads::load(folder.path()).expect("readable");
    assert!(workloads.find("good").is_ok());
    assert_eq!(workloads.broken().keys().collect::<Vec<_>>(), ["bad", "net2x4"]);
    assert!(workloads.find("bad").expect_err("broken").to_string().contains("`command` is a list, not a whole number"));
    insta::assert_snapshot!(workloads.find("net2x4").expect_err("its name reads as a count"), @r"
    error: `net2x4` is not a name for a workload
    hint: a name is a letter, then letters, digits and `-`, at most 40, not ending in `x` and digits
    ");
}

#[test]
fn names_end_in_no_count() {
    for name in ["a", "resnet26", "small-2", "max"] {
        assert!(is_name(name), "{name}");
    }
    for name in ["", "2a", "netx2", "Net", "a_b", "a×2", &"a".repeat(41)] {
        assert!(!is_name(name), "{name}");
    }
}

#[test]
fn the_forecast_is_absent_where_nobody_measured() {
    let all = workloads();
    assert_eq!(all.get("sleep").expect("there").forecast, Forecast::default());
    assert_eq!(all.get("tiny").expect("there").forecast.memory_bytes, Some(800_000_000));
}
