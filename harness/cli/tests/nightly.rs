//! `collo nightly` from end to end: real campaigns on a simulated card, a history before them, and the guide's examples.

use std::process::Command;

use serde_json::{Value, json};

use crate::sim::Machine;
use crate::support::skip::skip;
use crate::support::{Bench, checkout};

const CELLS: &str = "repetitions = 2
[axes]
workload = [\"small\"]
limit_batches = 100
sharing = [\"naive\", \"mps\"]
degree = [2]";

fn nights(bench: &Bench) -> std::path::PathBuf {
    bench.at("reports/history/x/nights")
}

/// Nights before the one that is stored, each with its own wobble of half a percent.
fn remember(bench: &Bench, count: u32) {
    let folder = nights(bench);
    let id = bench.campaign().manifest().id.clone();
    let text = fs_err::read_to_string(folder.join(format!("{id}.json"))).expect("the night is kept");
    let night: Value = serde_json::from_str(&text).expect("JSON");
    for k in 1..=count {
        let mut old = night.clone();
        let id = format!("202601{k:02}-0200-{k:04x}");
        old["id"] = json!(id);
        old["created_utc"] = json!(format!("2026-01-{k:02}T02:00:00Z"));
        for (i, cell) in old["cells"].as_array_mut().expect("cells").iter_mut().enumerate() {
            let wobble = f64::from((k * 7 + i as u32 * 3) % 11) / 11.0 - 0.5;
            let mean = cell["first"][0].as_f64().expect("measured");
            cell["first"][0] = json!(mean + 0.01 * wobble);
            cell["first"][2] = json!(2e-4);
        }
        fs_err::write(folder.join(format!("{id}.json")), old.to_string()).expect("written");
    }
}

fn history(bench: &Bench) -> Value {
    let text = fs_err::read_to_string(bench.at("reports/history/x/history.json")).expect("written");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn a_slower_card_is_found_measured_again_and_told_once_and_a_quiet_night_is_quiet() {
    let machine = Machine::new("a100-40gb,driver=580.1", CELLS);
    let first = machine.collo(&["nightly", "x"]).exits(0).answers("still learning");
    assert!(!first.stdout.contains("slower  "), "{}", first.stdout);
    remember(&machine.bench, 12);
    machine.collo(&["nightly", "x"]).exits(0).answers("0 slower, 0 faster, 0 gone");
    // From now on everybody is a fifth slower, under another driver.
    let machine = machine.anew("a100-40gb,driver=580.2,throttle");
    let found = machine.collo(&["nightly", "x", "--more", "4"]).exits(1);
    let found = found.says("re-measuring, 4 more repetitions and their baselines").answers("slower  small×2 naive");
    assert!(found.stdout.contains("driver 580.1 → 580.2"), "{}", found.stdout);
    let told = history(&machine.bench);
    assert_eq!((told["schema"].as_u64(), told["regression"].as_bool()), (Some(1), Some(true)));
    let row = told["rows"].as_array().expect("rows").iter().find(|r| r["class"] == "stepped").expect("a step");
    let step = &row["steps"][0];
    assert!(
        step["ratio"].as_f64().is_some_and(|r| r > 1.1 && r < 1.35) && step["repetitions_added"].as_u64() >= Some(4),
        "{step}"
    );
    // The added repetitions are of the same campaign and no night of their own.
    assert_eq!(machine.bench.campaigns(), 3);
    assert_eq!(told["nights"].as_array().map(Vec::len), Some(15));
    // It is the new level: nothing is new the night after.
    let after = machine.collo(&["nightly", "x"]).exits(0);
    assert!(after.stdout.contains("0 slower"), "{}", after.stdout);
    for name in ["index.html", "history.md", "history.json"] {
        assert!(machine.bench.at("reports/history/x").join(name).is_file(), "{name}");
    }
    let json = machine.collo(&["nightly", "x", "--judge-only", "--json"]).exits(0).json();
    assert_eq!(json["simulated"], true);
}

#[test]
fn a_cell_that_no_longer_runs_is_a_regression() {
    let machine = Machine::new("a100-40gb", CELLS);
    machine.collo(&["nightly", "x"]).exits(0);
    let machine = machine.anew("a100-40gb,oom=1");
    let found = machine.collo(&["nightly", "x"]).exits(1);
    assert!(found.stdout.contains("gone") && found.stdout.contains("out of memory"), "{}", found.stdout);
}

#[test]
fn a_night_cut_short_is_not_judged_and_the_same_command_resumes_it() {
    let machine = Machine::new("a100-40gb", CELLS);
    let cut = machine.collo(&["nightly", "x", "--for", "1ms"]).exits(4).says("resume: collo nightly x");
    assert!(cut.stdout.contains("not judged"), "{}", cut.stdout);
    let night = &history(&machine.bench)["nights"][0];
    assert!(night["whole"] == false && night["incomplete"].as_str().is_some_and(|w| w.contains("missing")), "{night}");
    machine.collo(&["nightly", "x"]).exits(0);
    assert_eq!((machine.bench.campaigns(), history(&machine.bench)["nights"][0]["whole"].as_bool()), (1, Some(true)));
}

#[test]
fn what_cannot_be_judged_is_said() {
    let bench = Bench::of("[axes]\nworkload = [\"sleep\"]\ndegree = [1]");
    bench.collo(&["nightly", "x", "--judge-only"]).exits(2).says("no night of `x` is stored");
    bench.collo(&["nightly"]).exits(2).says("nightly");
    bench.collo(&["nightly", "x", "--more", "1"]).exits(2);
    bench.collo(&["nightly", "x", "--relevant", "3"]).exits(2);
    // A summary that is none is named, and the rest is read.
    bench.write("reports/history/x/nights/20260101-0200-0001.json", "{ half");
    bench.collo(&["nightly", "x", "--judge-only"]).exits(2).says("cannot be read");
}

/// The blocks of the guide in one language.
fn blocks(language: &str) -> Vec<String> {
    let guide = fs_err::read_to_string(checkout().join("docs/guide/nightly.md")).expect("the guide");
    let begin = format!("```{language}\n");
    guide.split(&begin).skip(1).filter_map(|rest| Some(rest.split_once("\n```")?.0.to_string())).collect()
}

/// The `collo …` of a line, up to what belongs to the shell.
fn commands(text: &str) -> Vec<Vec<String>> {
    let lines = text.lines().filter(|l| !l.trim_start().starts_with('#') && !l.starts_with("Description"));
    let calls = lines.flat_map(|l| l.match_indices("collo ").map(|(at, _)| &l[at..]).collect::<Vec<_>>());
    let word = |w: &&str| !["&", "&&", "||", ">", "|", "#", "2>&1"].contains(w);
    let words = |call: &str| call.split_whitespace().take_while(word).map(str::to_string).collect::<Vec<_>>();
    calls.map(words).filter(|w| w.get(1).is_some_and(|v| ["nightly", "prune", "run"].contains(&v.as_str()))).collect()
}

#[test]
fn every_command_of_the_guides_examples_is_one_that_collo_takes() {
    let mut seen = 0;
    for language in ["ini", "cron", "bash", "text"] {
        let found = blocks(language);
        assert!(!found.is_empty(), "no block of {language}");
        for call in found.iter().flat_map(|b| commands(b)) {
            // With --help a command is read to its end, and nothing is done.
            let answer = Command::new(env!("CARGO_BIN_EXE_collo")).args(&call[1..]).arg("--help").output().expect("starts");
            assert!(answer.status.success(), "{call:?}: {}", String::from_utf8_lossy(&answer.stderr));
            seen += 1;
        }
    }
    assert!(seen >= 10, "{seen}");
}

#[test]
fn the_slurm_script_is_a_script() {
    let script = blocks("bash").into_iter().find(|b| b.contains("#SBATCH")).expect("a script");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("nightly.sh");
    fs_err::write(&path, &script).expect("written");
    let Ok(answer) = Command::new("bash").arg("-n").arg(&path).output() else {
        return skip("bash", "there is no bash");
    };
    assert!(answer.status.success(), "{}", String::from_utf8_lossy(&answer.stderr));
    // It passes on how collo ended, and asks for the rest of a night that was cut short.
    for (code, asked) in [(0, 1), (1, 1), (4, 2)] {
        let bin = folder.path().join(format!("bin{code}"));
        fs_err::create_dir_all(&bin).expect("a folder");
        let log = folder.path().join(format!("log{code}"));
        for (name, body) in [("collo", format!("exit {code}")), ("sbatch", format!("echo \"$@\" >> {}", log.display()))] {
            let file = bin.join(name);
            fs_err::write(&file, format!("#!/bin/sh\n{body}\n")).expect("written");
            use std::os::unix::fs::PermissionsExt;
            fs_err::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).expect("set");
        }
        let here = script.replace("/srv/bench", &folder.path().display().to_string());
        fs_err::write(&path, here).expect("written");
        let search = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
        let ended = Command::new("bash").arg(&path).env("PATH", search).status().expect("bash runs");
        assert_eq!(ended.code(), Some(code));
        assert_eq!(fs_err::read_to_string(&log).expect("asked").lines().count(), asked, "exit {code}");
    }
}

#[test]
fn systemd_understands_the_units() {
    let folder = tempfile::tempdir().expect("a folder");
    let names = ["collo-nightly.service", "collo-nightly.timer", "collo-alarm.service"];
    let units = blocks("ini");
    assert_eq!(units.len(), names.len());
    for (name, unit) in names.iter().zip(units) {
        assert!(unit.starts_with("[Unit]\n"), "{name}");
        fs_err::write(folder.path().join(name), unit + "\n").expect("written");
    }
    let paths = names.map(|n| folder.path().join(n));
    let Ok(answer) = Command::new("systemd-analyze").arg("verify").arg("--man=no").args(paths).output() else {
        return skip("systemd-analyze", "there is no systemd-analyze");
    };
    let said = String::from_utf8_lossy(&answer.stderr);
    // A container may have no systemd to ask about other units; what is said of ours counts.
    let ours: Vec<&str> = said.lines().filter(|l| l.contains("collo-") && !l.contains("not executable")).collect();
    assert!(ours.is_empty(), "{said}");
}
